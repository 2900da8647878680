"""Angles that were cut to one turn jump where the law sees nothing: status and a warning say so."""

import numpy as np
import pytest

from sumgp import ConstrainedGP
from sumgp.errors import SumGPWarning

T = np.linspace(0.0, 6.0, 16)
FAST = {"uncertainty": "plug-in", "restarts": 0, "kernel": "rbf"}


def fitted(turn: float, wrapped: bool) -> ConstrainedGP:
    angle = T + 0.02 * np.random.default_rng(1000).standard_normal(len(T))
    x = np.cos(T) + 0.02 * np.random.default_rng(1001).standard_normal(len(T))
    angle = ((angle + np.pi) % (2 * np.pi) - np.pi if wrapped else angle) * turn / (2 * np.pi)
    laws = f"x = cos(2*pi*p/{turn})" if turn != 2 * np.pi else "x = cos(p)"
    return ConstrainedGP(laws, outputs=["p", "x"], inputs=["t"], **FAST).fit(T, np.column_stack([angle, x]))


@pytest.mark.parametrize("turn", [2 * np.pi, 360.0])
def test_a_jump_by_a_turn_is_named(turn: float) -> None:
    with pytest.warns(SumGPWarning, match="'p' jumps by a turn of .* between rows 7 and 8, .*np.unwrap"):
        gp = fitted(turn, True)
    assert "jumps by a turn" in gp.fit_report_.status


def test_an_angle_that_goes_on_is_not() -> None:
    assert fitted(2 * np.pi, False).fit_report_.status == "converged"
