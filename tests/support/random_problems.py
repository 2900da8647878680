"""Random small problems with a known law: any number of outputs and inputs, wild units, offsets, gaps and repetitions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sumgp import ConstrainedGP, FunctionConstraint, LinearConstraint, SumConstraint, SumGPError, Term
from sumgp.constraints import Constraint
from sumgp.transforms import Absolute, Exp, Power, Sin, Square

TRANSFORMS = (Square(), Power(3), Absolute(), Exp(), Sin())
TOLERANCE = 1e-8  # of the largest term of a law


@dataclass(frozen=True)
class RandomProblem:
    """Data in wild units and a law they obey up to noise."""

    kind: str
    X: np.ndarray
    Y: np.ndarray
    X_new: np.ndarray
    constraint: Constraint | None


def random_problem(seed: int) -> RandomProblem:
    """A problem drawn from the given seed."""
    generator = np.random.default_rng([seed, 4711])
    kind = str(generator.choice(["none", "linear", "sum", "lengths"]))
    n_inputs, n_rows = int(generator.integers(1, 4)), int(generator.integers(1, 61))
    X = generator.uniform(-1.0, 1.0, (n_rows, n_inputs))
    if n_rows > 3 and generator.uniform() < 0.3:
        X[: n_rows // 3] = X[n_rows // 3]
    X_new = generator.uniform(-1.3, 1.3, (7, n_inputs))
    f, constraint, scale = _BUILDERS[kind](generator, X)
    Y = (
        f + 10.0 ** generator.uniform(-4, -0.5) * f.std(axis=0).max() * generator.standard_normal(f.shape)
        if n_rows > 1
        else f
    )
    Y = Y * scale
    missing = generator.choice([0.0, 0.0, 0.2, 0.5, 0.95])
    Y[generator.uniform(size=Y.shape) < missing] = np.nan
    unit, offset = 10.0 ** generator.uniform(-6, 6, n_inputs), generator.choice([0.0, 0.0, 1e3, 1e9])
    # An offset can only be told from the inputs' differences while those are above its round-off.
    offset = offset if offset * 1e-10 < unit.min() else 0.0
    return RandomProblem(kind, X * unit + offset, Y, X_new * unit + offset, constraint)


def _curves(generator: np.random.Generator, X: np.ndarray, count: int) -> np.ndarray:
    """(n, count) smooth functions of the inputs, of size about one."""
    frequency = generator.uniform(0.5, 3.0, (X.shape[1], count))
    return np.sin(X @ frequency + generator.uniform(0, 6.0, count)) + 0.3 * generator.standard_normal(count)


def _units(generator: np.random.Generator, count: int) -> np.ndarray:
    return 10.0 ** generator.uniform(-12, 12, count)


Built = tuple[np.ndarray, Constraint | None, np.ndarray]


def _none(generator: np.random.Generator, X: np.ndarray) -> Built:
    count = int(generator.integers(1, 9))
    return _curves(generator, X, count), None, _units(generator, count)


def _linear(generator: np.random.Generator, X: np.ndarray) -> Built:
    count = int(generator.integers(2, 9))
    rows = int(generator.integers(1, count))
    F = generator.standard_normal((rows, count))
    S = generator.standard_normal(rows)
    f = _curves(generator, X, count)
    f = f - (np.linalg.pinv(F) @ (F @ f.T - S[:, None])).T
    scale = _units(generator, count)
    return f, LinearConstraint(F / scale, S), scale


def _sum(generator: np.random.Generator, X: np.ndarray) -> Built:
    count = int(generator.integers(2, 7))
    f = _curves(generator, X, count)
    total = float(generator.standard_normal())
    terms, left = [], np.zeros(len(X))
    for t in range(count - 1):
        transform = TRANSFORMS[int(generator.integers(len(TRANSFORMS)))]
        weight = float(generator.uniform(0.3, 2.0))
        terms.append(Term(t, weight, transform))
        left += weight * transform.value(f[:, t])
    # The last output closes the sum, in a unit of its own.
    unit = float(_units(generator, 1)[0])
    terms.append(Term(count - 1, 1.0 / unit))
    f[:, -1] = total - left
    return f, SumConstraint(terms, total), np.append(np.ones(count - 1), unit)


def _lengths(generator: np.random.Generator, X: np.ndarray) -> Built:
    dimension = int(generator.integers(2, 4))
    unit, length = float(_units(generator, 1)[0]), float(generator.uniform(0.5, 2.0))
    start = _curves(generator, X, dimension)
    direction = _curves(generator, X, dimension) + 0.2
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    f = np.hstack([start, start + length * direction])

    def residual(values: np.ndarray, x: np.ndarray) -> np.ndarray:
        gap = values[:, dimension:] - values[:, :dimension]
        return np.sum(gap**2, axis=1) - (length * unit) ** 2

    return f, FunctionConstraint(residual), np.full(2 * dimension, unit)


_BUILDERS: dict[str, Callable[[np.random.Generator, np.ndarray], Built]] = {
    "none": _none,
    "linear": _linear,
    "sum": _sum,
    "lengths": _lengths,
}


def outcome(problem: RandomProblem) -> str:
    """Fit, predict, sample, and say in a few words what came of it; only our own refusals are caught."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            gp = ConstrainedGP(problem.constraint, uncertainty="plug-in", restarts=0).fit(problem.X, problem.Y)
            posterior = gp.posterior(problem.X_new)
            mean, std, draws = posterior.mean, posterior.std, posterior.sample(2)
        except SumGPError as error:
            return "refused: " + type(error).__name__ if ";" in str(error) else "refused without a remedy: " + str(error)
        if not (np.all(np.isfinite(mean)) and np.all(np.isfinite(std)) and np.all(np.isfinite(draws))):
            return "not finite"
        if gp.law_ is None:
            return "fitted"
        for values in (mean, *draws):
            size = np.maximum(gp.law_.magnitude(values, problem.X_new), np.finfo(float).tiny)
            if float(np.max(np.abs(gp.law_.residual(values, problem.X_new)) / size)) > TOLERANCE:
                return "law not met, " + ("and said so" if gp.fit_report_.status != "converged" else "unsaid")
    return "fitted"
