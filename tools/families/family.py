"""A family of problems: a law, random smooth functions that keep it, and noisy rows of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np
from scipy.integrate import solve_ivp

Function = Callable[[np.ndarray], np.ndarray]  # inputs (n, D) to outputs (n, T)
TEST_ROWS = 100  # prediction points of a problem
ODE_PRECISION = 1e-11  # relative and absolute, far below any noise


@dataclass(frozen=True)
class Truth:
    """A function on the law, and the values of the law's constants for it."""

    function: Function
    constants: dict[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Problem:
    """Noisy rows x (N, D), y (N, T) and the true outputs at the prediction points."""

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    truth: np.ndarray
    constants: dict[str, float | str]


@dataclass(frozen=True)
class Family:
    """``truth`` draws a function on the laws; a seed gives one function with one set of noisy rows.

    ``noise`` is a share of each output's standard deviation, for each output up to ``unequal`` times more or less;
    ``missing`` is the share of cells not measured. ``scattered`` rows are uniform in the unit cube of ``n_inputs``
    inputs, others are equally spaced (one input only).
    """

    name: str
    laws: tuple[str, ...]
    outputs: tuple[str, ...]
    truth: Callable[[np.random.Generator], Truth]
    rows: int
    noise: float
    n_inputs: int = 1
    scattered: bool = False
    missing: float = 0.0
    unequal: float = 1.0
    groups: tuple[tuple[str, ...], ...] | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs, which no law uses."""
        return tuple(f"input_{d}" for d in range(self.n_inputs))

    def problem(self, seed: int) -> Problem:
        """The problem of a seed; families differ in their random numbers, too."""
        generator = np.random.default_rng([seed, crc32(self.name.encode())])
        truth = self.truth(generator)
        x, x_test = self._rows(generator), self._prediction_points(generator)
        values = truth.function(x_test)
        sd = self.noise * self.unequal ** generator.spawn(1)[0].uniform(-1.0, 1.0, len(self.outputs)) * values.std(axis=0)
        y = truth.function(x) + sd * generator.standard_normal((self.rows, len(self.outputs)))
        y[generator.uniform(size=y.shape) < self.missing] = np.nan
        return Problem(x, y, x_test, values, truth.constants)

    def _rows(self, generator: np.random.Generator) -> np.ndarray:
        if self.scattered or self.n_inputs > 1:
            return generator.uniform(size=(self.rows, self.n_inputs))
        return np.linspace(0.0, 1.0, self.rows)[:, None]

    def _prediction_points(self, generator: np.random.Generator) -> np.ndarray:
        if self.n_inputs > 1:
            return generator.uniform(size=(TEST_ROWS, self.n_inputs))
        return np.linspace(0.0, 1.0, TEST_ROWS)[:, None]


def wave(generator: np.random.Generator, turns: float = 1.0, n_inputs: int = 1, terms: int = 3) -> Function:
    """A random smooth function (n, D) to (n,) of about unit size: sines of up to ``turns`` periods over the unit cube."""
    frequency = generator.uniform(-turns, turns, (n_inputs, terms)) * 2.0 * np.pi
    phase, size = generator.uniform(0.0, 2.0 * np.pi, terms), generator.uniform(0.5, 1.0, terms)
    return lambda x: np.sin(x @ frequency + phase) @ size / np.sqrt(0.5 * terms)


def positive(generator: np.random.Generator, turns: float = 1.0, n_inputs: int = 1, spread: float = 0.4) -> Function:
    """A random smooth positive function (n, D) to (n,), its logarithm of size ``spread``."""
    logarithm = wave(generator, turns, n_inputs)
    return lambda x: np.exp(spread * logarithm(x))


def columns(*functions: Function) -> Function:
    """Functions (n, D) to (n,) beside each other: (n, D) to (n, T)."""
    return lambda x: np.stack([f(x) for f in functions], axis=1)


def motion(slope: Callable[[np.ndarray], np.ndarray], start: np.ndarray, duration: float) -> Function:
    """The solution of df/dt = slope(f) from ``start``, with the input 0 to 1 standing for t from 0 to ``duration``."""
    solution = solve_ivp(
        lambda t, f: slope(f),
        (0.0, duration),
        start,
        method="DOP853",
        rtol=ODE_PRECISION,
        atol=ODE_PRECISION,
        dense_output=True,
    )
    return lambda x: solution.sol(duration * x[:, 0]).T
