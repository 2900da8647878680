"""Outputs that a law tells to be in one unit share scale and noise."""

from __future__ import annotations

import numpy as np
import pytest

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


def rod(noise: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """A rod of length one whose ends move, measured with these noises along each axis."""
    t = np.linspace(0.0, 1.0, 40)
    x, y, angle = np.sin(5.0 * t), np.sin(4.0 * t + 1.0), 1.6 * np.sin(6.0 * t + 2.0)
    truth = np.stack([x, y, x + np.cos(angle), y + np.sin(angle)], axis=1)
    return t, truth + np.tile(noise, 2) * np.random.default_rng(1000).standard_normal(truth.shape)


@pytest.mark.parametrize("order", [1, -1])
def test_coordinates_whose_noises_differ_have_their_own(order: int) -> None:
    """A camera sees depth far worse than what is beside. With one noise for all, the law would raise the errors."""
    names = NAMES[:4][::order]
    gp = ConstrainedGP("norm(a, b) = 1", outputs=names, uncertainty="plug-in", restarts=0)
    t, Y = rod([0.05, 0.05])
    assert len(set(gp.fit(t, Y[:, ::order]).fitted_.components[0].noise)) == 1
    t, Y = rod([0.02, 0.15])
    found = np.sqrt(gp.fit(t[::-1], Y[::-1, ::order]).fitted_.components[0].noise) * gp.scaling_.y_scale
    sds = dict(zip(names, found, strict=True))
    assert sds["a_x"] < 0.05 < sds["a_y"]
    assert sds["b_x"] < 0.05 < sds["b_y"]
    told = ConstrainedGP("norm(a, b) = 1", outputs=NAMES[:4], groups=[NAMES[:4]], uncertainty="plug-in", restarts=0)
    assert len(set(told.fit(t, Y).fitted_.components[0].noise)) == 1
