"""Small problems with a known law, in any units: curves that obey it, noise, gaps, repeated and shifted inputs.

Everything is drawn in plain numbers of size one first. Units and an order of the outputs are applied afterwards, to the
data and to the law alike, so that one problem can be posed in several ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sumgp import FunctionConstraint, LinearConstraint, SumConstraint, Term
from sumgp.laws import Constraint
from sumgp.transforms import Absolute, Exp, Identity, Power, Sin, Square, Transform

Law = Callable[[np.ndarray, np.ndarray], Constraint | None]  # of the outputs' units (T,) and their order (T,)
Drawn = tuple[np.ndarray, Law]
SomeTransform = tuple[Transform, int]

# The power of its unit that a transformed output has; 0 = the output must be a plain number.
TRANSFORMS: tuple[SomeTransform, ...] = ((Square(), 2), (Power(3), 3), (Absolute(), 1), (Exp(), 0), (Sin(), 0))
GRID = 2.0**-16  # inputs are multiples of it: adding a large power of two then loses no digit


@dataclass(frozen=True)
class Shape:
    """What a problem looks like; ``seed`` draws the numbers."""

    kind: str
    n_outputs: int
    n_rows: int
    n_inputs: int
    missing: float = 0.0
    repeated: bool = False
    noise: float = 0.05  # of the largest spread of an output
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Problem:
    """Data (N, D), (N, T), inputs asked for, and the law as a function of units and order of the outputs."""

    shape: Shape
    X: np.ndarray
    Y: np.ndarray
    X_new: np.ndarray
    law: Law
    units: np.ndarray
    order: np.ndarray
    plain: np.ndarray  # (T,) outputs that have no unit, such as arguments of exp

    @property
    def constraint(self) -> Constraint | None:
        """The law for the outputs as they stand in Y."""
        return self.law(self.units, self.order)

    def in_units(self, units: np.ndarray) -> Problem:
        """Outputs times ``units`` (T,), but for those that have none."""
        units = np.where(self.plain, 1.0, units)
        return replace(self, Y=self.Y * units, units=self.units * units)

    def with_outputs(self, order: np.ndarray) -> Problem:
        """Outputs in another order."""
        return replace(self, Y=self.Y[:, order], units=self.units[order], order=self.order[order], plain=self.plain[order])

    def with_rows(self, order: np.ndarray) -> Problem:
        """Measurements in another order."""
        return replace(self, X=self.X[order], Y=self.Y[order])

    def with_inputs(self, units: np.ndarray, offset: float | np.ndarray) -> Problem:
        """Inputs times ``units`` (D,), then shifted."""
        return replace(self, X=self.X * units + offset, X_new=self.X_new * units + offset)


def build(shape: Shape) -> Problem:
    """The problem of a shape; the law must not depend on the inputs other than by its seed."""
    generator = np.random.default_rng([shape.seed, 4711])
    X = _inputs(generator, shape.n_rows, shape.n_inputs, 1.0)
    if shape.repeated and shape.n_rows > 2:
        X[: shape.n_rows // 3 + 1] = X[-1]
    X_new = _inputs(generator, 5, shape.n_inputs, 1.3)
    f, law = BUILDERS[shape.kind](generator, X, shape.n_outputs)
    spread = max(float(np.max(np.std(f, axis=0))), 1e-3)
    Y = f + shape.noise * spread * generator.standard_normal(f.shape)
    Y[generator.uniform(size=Y.shape) < shape.missing] = np.nan
    count = f.shape[1]
    constraint = law(np.ones(count), np.arange(count))
    plain = np.zeros(count, dtype=bool)
    if isinstance(constraint, SumConstraint):
        plain[[t for t, term in enumerate(constraint.terms) if isinstance(term.transform, Exp | Sin)]] = True
    return Problem(shape, X, Y, X_new, law, np.ones(count), np.arange(count), plain)


def _inputs(generator: np.random.Generator, rows: int, columns: int, reach: float) -> np.ndarray:
    return np.round(generator.uniform(-reach, reach, (rows, columns)) / GRID) * GRID


def _curves(generator: np.random.Generator, X: np.ndarray, count: int) -> np.ndarray:
    """(N, count) smooth functions of the inputs, of size about one."""
    frequency = generator.uniform(0.5, 3.0, (X.shape[1], count))
    return np.sin(X @ frequency + generator.uniform(0, 6.0, count)) + 0.3 * generator.standard_normal(count)


def _none(generator: np.random.Generator, X: np.ndarray, count: int) -> Drawn:
    return _curves(generator, X, count), lambda units, order: None


def _linear(generator: np.random.Generator, X: np.ndarray, count: int) -> Drawn:
    """F f = S of random rank, at times with a row that follows from the others."""
    rank = int(generator.integers(1, max(count - 1, 1) + 1))
    F, S = generator.standard_normal((rank, count)), generator.standard_normal(rank)
    f = _curves(generator, X, count)
    f = f - (np.linalg.pinv(F) @ (F @ f.T - S[:, None])).T
    if generator.uniform() < 0.3:
        weights = generator.standard_normal(rank)
        F, S = np.vstack([F, weights @ F]), np.append(S, weights @ S)
    return f, lambda units, order: LinearConstraint(F[:, order] / units, S)


def _sum(generator: np.random.Generator, X: np.ndarray, count: int) -> Drawn:
    """Transforms of all outputs but the last, which closes the sum."""
    f = _curves(generator, X, count)
    total = float(generator.standard_normal())
    chosen = [TRANSFORMS[int(k)] for k in generator.integers(len(TRANSFORMS), size=count - 1)] + [(Identity(), 1)]
    weights = np.append(generator.uniform(0.3, 2.0, count - 1), 1.0)
    f[:, -1] = total
    for t, (h, _) in enumerate(chosen[:-1]):
        f[:, -1] -= weights[t] * h.value(f[:, t])
    return f, lambda units, order: SumConstraint(
        [Term(place, float(weights[t] / units[place] ** chosen[t][1]), chosen[t][0]) for place, t in enumerate(order)], total
    )


def _squares(generator: np.random.Generator, X: np.ndarray, count: int) -> Drawn:
    """An energy: weighted squares with a fixed total."""
    weights, total = generator.uniform(0.3, 2.0, count), float(generator.uniform(0.5, 2.0))
    f = _curves(generator, X, count)
    f *= np.sqrt(total / (f**2 @ weights))[:, None]
    return f, lambda units, order: SumConstraint(
        [Term(place, float(weights[t] / units[place] ** 2), Square()) for place, t in enumerate(order)], total
    )


def _lengths(generator: np.random.Generator, X: np.ndarray, count: int) -> Drawn:
    """A rod between two points of a plane or of space."""
    dimension, length = (2 if count <= 4 else 3), float(generator.uniform(0.5, 2.0))
    start = _curves(generator, X, dimension)
    direction = _curves(generator, X, dimension) + 0.2
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)

    def law(units: np.ndarray, order: np.ndarray) -> Constraint:
        back = np.argsort(order)

        def residual(values: np.ndarray, x: np.ndarray) -> np.ndarray:
            plain = (values / units)[:, back]
            return np.sum((plain[:, dimension:] - plain[:, :dimension]) ** 2, axis=1) - length**2

        return FunctionConstraint(residual)

    return np.hstack([start, start + length * direction]), law


BUILDERS: dict[str, Callable[[np.random.Generator, np.ndarray, int], Drawn]] = {
    "none": _none,
    "linear": _linear,
    "sum": _sum,
    "squares": _squares,
    "lengths": _lengths,
}
