"""An output that was never measured, where its law has two values for it: the status says that one was taken."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import sumgp

T = np.linspace(0.0, 6.0, 12)


def status(law: str | list[str], a: np.ndarray, **options: object) -> str:
    Y = np.column_stack([a, np.full(len(a), np.nan)])
    gp = sumgp.ConstrainedGP(law, outputs=["a", "b"], uncertainty="plug-in", restarts=0, **options)
    return gp.fit(T, Y).fit_report_.status


def test_the_other_side_of_a_circle_is_named() -> None:
    """The mean took one side of b = +-sqrt(1 - a**2) for all inputs, and was called converged."""
    with pytest.warns(sumgp.SumGPWarning, match="which of its branches 'b' lies"):
        found = status("a**2 + b**2 = 1", np.sin(T) + 0.01 * np.cos(40.0 * T))
    assert "which of its branches 'b' lies" in found


@pytest.mark.parametrize("law", ["exp(b) = a", "a*b = 1", "2*a + b = 3", ["a**2 + b**2 = 9", "b >= 0"]])
def test_laws_with_one_value_raise_no_alarm(law: str | list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sumgp.SumGPWarning)
        assert status(law, 2.0 + 0.5 * np.sin(T) + 0.01 * np.cos(40.0 * T)) == "converged"
