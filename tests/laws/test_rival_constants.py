"""Constants that meet rows about as well as others, with other values between them."""

import numpy as np
import pytest

from sumgp.laws import rival_constants
from sumgp.laws.formula import FormulaConstraint
from sumgp.laws.shared_constants import _outputs

T = np.linspace(0.0, 10.0, 10)[:, None]


def bound(law: str, names: str):
    return FormulaConstraint(law, dict.fromkeys(names, "unknown")).bind(["z"], ["t"])


@pytest.mark.parametrize(("w", "has_rival"), [(2.655, True), (1.0, False)])
def test_an_oscillation_near_the_limit_has_one_and_a_slow_one_none(w: float, has_rival: bool):
    z = 2.0 * np.sin(w * T + 1.0) + 0.02 * np.random.default_rng(1000).standard_normal(T.shape)
    law = bound("z = A*sin(w*t + p)", "Awp")
    found = rival_constants(law, z, T, np.array([2.0, w, 1.0]), np.array([0.02]))
    assert (found is not None) == has_rival
    if found is not None:
        assert np.abs(found[1]) == pytest.approx(2.0 * np.pi / (T[1] - T[0]) - w, rel=0.01)


def test_slopes_that_overflow_between_rows_end_nothing():
    """pinv refuses what is not finite."""
    assert _outputs(bound("z*exp(k*t) = a", "ka"), np.array([1e3, 1.0]), T).shape == (10, 1)
