"""Families of honest smooth problems whose truth obeys the law."""

from __future__ import annotations

from families import chirps, fields, folds, gases, invariants, kinetics, orbits, peaks, products, ratios, rotations
from families.family import Family, Problem

MODULES = (products, ratios, folds, chirps, peaks, kinetics, invariants, rotations, gases, orbits, fields)
FAMILIES: tuple[Family, ...] = tuple(family for module in MODULES for family in module.FAMILIES)

__all__ = ["FAMILIES", "Family", "Problem"]
