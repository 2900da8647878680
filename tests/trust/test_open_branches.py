"""An output never measured, or on one side only, where its law has two values for it: the status says that one was taken."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import sumgp

T = np.linspace(0.0, 6.0, 12)


def status(law: str | list[str], a: np.ndarray, b: np.ndarray | float = np.nan, **options: object) -> str:
    Y = np.column_stack([a, np.full(len(a), b)])
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


def measured_at(rows: list[int], b: np.ndarray) -> np.ndarray:
    return np.where(np.isin(np.arange(len(b)), rows), b, np.nan)


@pytest.mark.parametrize("rows", [[0], [0, 1], [5, 6, 7]])
def test_an_output_measured_on_one_side_of_a_circle_is_named(rows: list[int]) -> None:
    """b = cos came out as |cos|, with sds of 0.01, and was called converged."""
    with pytest.warns(sumgp.SumGPWarning, match="'b' lies beyond where it was measured"):
        found = status("a**2 + b**2 = 1", np.sin(T) + 0.01 * np.cos(40.0 * T), measured_at(rows, np.cos(T)))
    assert "'b' lies beyond where it was measured" in found


@pytest.mark.parametrize(
    ("law", "b", "rows"),
    [
        ("a**2 + b**2 = 1", np.cos(T), [0, 5]),  # both sides
        (["a**2 + b**2 = 1", "b >= 0"], np.abs(np.cos(T)), [0]),  # bounded
        ("b**2 = 4 + a**2", np.sqrt(4.0 + np.sin(T) ** 2), [0]),  # branches that never meet
        ("b**3 + b = a", None, [0]),  # one value
    ],
)
def test_measurements_that_decide_raise_no_alarm(law: str | list[str], b: np.ndarray | None, rows: list[int]) -> None:
    a = np.sin(T)
    if b is None:
        b = np.array([np.real(r[np.abs(r.imag) < 1e-9])[0] for r in (np.roots([1.0, 0.0, 1.0, -v]) for v in a)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", sumgp.SumGPWarning)
        assert status(law, a + 0.01 * np.cos(40.0 * T), measured_at(rows, b)) == "converged"


def test_a_position_of_which_only_the_acceleration_is_measured_rests_on_the_prior() -> None:
    """Two numbers of the position are open; its standard deviation of 38 for a size of 1 was called converged."""
    with pytest.warns(sumgp.SumGPWarning, match="hardly determine 'b', which was never measured"):
        found = status("d(b, x, 2) = a", np.sin(T) + 0.01 * np.cos(40.0 * T), inputs=["x"])
    assert "hardly determine 'b'" in found


def test_a_velocity_that_was_never_measured_is_determined_by_its_position() -> None:
    assert status("d(a, x) = b", np.sin(T) + 0.01 * np.cos(40.0 * T), inputs=["x"]) == "converged"
