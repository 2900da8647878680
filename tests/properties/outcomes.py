"""What comes of a fit: numbers, or one of our own refusals with a remedy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from equivalence.held import fit_held
from properties.problems import Problem

from sumgp import ConstrainedGP, SumGPError, SumGPWarning

Fit = Callable[[ConstrainedGP, Any, Any], ConstrainedGP]


def anew(gp: ConstrainedGP, X: Any, Y: Any) -> ConstrainedGP:
    """Hyperparameters found by a search."""
    return gp.fit(X, Y)


def held(gp: ConstrainedGP, X: Any, Y: Any) -> ConstrainedGP:
    """Hyperparameters carried over: those of the prior's start, which know no units and no order."""
    return fit_held(gp, X, Y)


def fitted(problem: Problem, fit: Fit = anew, **choices: Any) -> ConstrainedGP | str:
    """The fitted estimator, or the words of the refusal, which must hold a remedy."""
    settings = {"uncertainty": "plug-in", "restarts": 0, **choices}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SumGPWarning)
        try:
            return fit(ConstrainedGP(problem.constraint, **settings), problem.X, problem.Y)
        except SumGPError as error:
            words = str(error)
    assert ";" in words, f"a refusal without a remedy: {words}"
    return words


def numbers(problem: Problem, fit: Fit = anew, **choices: Any) -> np.ndarray | None:
    """(2, n, T) means and standard deviations without the outputs' units; None for a refusal."""
    gp = fitted(problem, fit, **choices)
    if isinstance(gp, str):
        return None
    posterior = gp.posterior(problem.X_new)
    return np.stack([posterior.mean, posterior.std]) / problem.units


def violation(gp: ConstrainedGP, values: np.ndarray, x: np.ndarray) -> float:
    """Largest residual of outputs (n, T), relative to the largest term of its row."""
    if gp.law_ is None:
        return 0.0
    size = np.maximum(gp.law_.magnitude(values, x), np.finfo(float).tiny)
    return float(np.max(np.abs(gp.law_.residual(values, x)) / size))


def assert_alike(first: np.ndarray | None, second: np.ndarray | None, share: float, scale: np.ndarray) -> None:
    """Both refused, or means and standard deviations equal up to ``share`` of the standard deviations ``scale`` (n, T)."""
    assert (first is None) == (second is None)
    if first is not None and second is not None:
        means, spreads = np.max(np.abs(first - second) / scale, axis=(1, 2))
        assert means <= share, f"means differ by {means:.1e} of the standard deviation"
        assert spreads <= share, f"standard deviations differ by {spreads:.1e} of themselves"


def assert_same(problem: Problem, posed: Problem, fit: Fit, share: float, outputs: Sequence[int] | None = None) -> None:
    """The same problem posed in another way gives the same numbers; ``outputs`` is the order of the other's outputs."""
    first = numbers(problem, fit)
    if first is not None and outputs is not None:
        first = first[:, :, list(outputs)]
    assert_alike(first, numbers(posed, fit), share, reference(first))


SAME = 1e-5  # of a standard deviation: where a law is nearly flat, points moved onto it are known no better
SAME_FOR_TWINS = 0.05  # error of 512 draws: 1 / sqrt(512)
SAME_AFTER_A_NEW_FIT = 0.02


def reference(first: np.ndarray | None) -> np.ndarray:
    """(n, T) standard deviations to compare with, not below the round-off of outputs that the law fixes altogether."""
    if first is None:
        return np.ones(1)
    return np.maximum(first[1], 1e-6 * np.maximum(np.max(np.abs(first[0]), axis=0), np.max(first[1], axis=0)))


def never_measured(problem: Problem) -> int:
    """Number of outputs without a single measurement."""
    return int(np.sum(np.all(np.isnan(problem.Y), axis=0)))


def tells_its_units(problem: Problem) -> bool:
    """True where every input and output has a spread to measure it by.

    Inputs that are all alike have no unit of length. An output that was never measured has a size only if the law gives
    it: a linear one does for a single output, while others are searched from a value of one in the user's unit.
    """
    spread = bool(np.all(np.ptp(problem.X, axis=0) > 0))
    return spread and never_measured(problem) <= (1 if problem.shape.kind == "linear" else 0)
