"""Outputs that a law tells to be in one unit share scale and noise."""

from __future__ import annotations

import numpy as np

from sumgp import ConstrainedGP
from sumgp.data.table import merged_groups
from sumgp.laws import AllOf, FormulaConstraint

NAMES = ["a_x", "a_y", "b_x", "b_y", "v"]


def test_norms_name_their_coordinates() -> None:
    law = FormulaConstraint("norm(a) = 1; 2*norm(a, b) + v = 3")
    assert law.in_one_unit(NAMES) == (("a_x", "a_y"), ("a_x", "a_y", "b_x", "b_y"))
    both = AllOf([law, FormulaConstraint("v = 1")])
    assert both.in_one_unit(NAMES, ["t"]) == law.in_one_unit(NAMES)


def test_overlapping_sets_are_one_group() -> None:
    assert merged_groups([("a", "b"), ("c", "d"), ("b", "c"), ("e",)]) == [["a", "b", "c", "d"]]
    assert merged_groups([]) == []


def test_coordinates_share_scale_and_noise_unless_told_otherwise() -> None:
    t = np.linspace(0.0, 3.0, 10)
    angle = 0.3 * np.sin(t)
    Y = np.stack([np.sin(angle), -np.cos(angle), 5.0 * t], axis=1)
    Y = Y + 0.01 * np.random.default_rng(0).standard_normal(Y.shape)
    names = ["a_x", "a_y", "v"]
    by_law = ConstrainedGP("norm(a) = 1", outputs=names, uncertainty="plug-in").fit(t, Y)
    alone = ConstrainedGP("norm(a) = 1", outputs=names, uncertainty="plug-in", groups=[]).fit(t, Y)
    assert by_law.scaling_.y_scale[0] == by_law.scaling_.y_scale[1]
    assert alone.scaling_.y_scale[0] != alone.scaling_.y_scale[1]
    assert by_law.scaling_.y_scale[2] != by_law.scaling_.y_scale[1]
    noise = by_law.fitted_.components[0].noise
    assert noise[0] == noise[1]
    assert noise[2] != noise[1]
