"""Small latent problems for the engines: prior mean and covariance, a likelihood, and how the prior moves."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sumgp.paper_method.likelihoods import (
    GaussianLikelihood,
    Likelihood,
    LinkedLikelihood,
    NoncentralSquare,
    StackedLikelihood,
)
from sumgp.transforms import Exp, Log, Power, Sin, Square


def stacked(parts: list[Likelihood]) -> StackedLikelihood:
    """Parts one after the other in the latent vector."""
    starts = np.cumsum([0] + [part.size for part in parts])
    return StackedLikelihood(tuple(parts), tuple(np.arange(a, b) for a, b in pairwise(starts)))


@dataclass(frozen=True)
class Problem:
    """u ~ N(mean, amplitude^2 T (x) RBF(lengthscale)) with T (tasks, tasks), observed through ``likelihood``."""

    name: str
    x: np.ndarray
    tasks: np.ndarray
    mean: np.ndarray
    amplitude: float
    lengthscale: float
    likelihood: Likelihood

    def prior(self, amplitude: float = 0.0, lengthscale: float = 0.0, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance with hyperparameters moved on the log scale, and the mean shifted."""
        distance = (self.x[:, None] - self.x) / (self.lengthscale * np.exp(lengthscale))
        K = (self.amplitude * np.exp(amplitude)) ** 2 * np.kron(self.tasks, np.exp(-0.5 * distance**2))
        return self.mean + shift * np.cos(np.arange(len(self.mean))), K

    def slopes(self) -> dict[str, np.ndarray]:
        """dK/dlog amplitude, dK/dlog lengthscale (n, n) and dm/dshift (n,)."""
        _, K = self.prior()
        square = ((self.x[:, None] - self.x) / self.lengthscale) ** 2
        longer = K * np.kron(np.ones_like(self.tasks), square)
        return {"amplitude": 2.0 * K, "lengthscale": longer, "shift": np.cos(np.arange(len(self.mean)))}


ONE = np.ones((1, 1))
# Conditioned on z^2 + v^2 = 1.6, the two latent squares mirror each other: the prior has half its rank.
MIRRORED = np.array([[1.0, -1.0], [-1.0, 1.0]])


def _noisy(f: np.ndarray, sd: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return f + sd * np.random.default_rng(seed).standard_normal(f.shape), np.full(f.shape, sd)


def far_square() -> Problem:
    x = np.linspace(0.0, 3.0, 6)
    f = 1.9 + 0.4 * np.cos(1.2 * x)
    return Problem("square, far from zero", x, ONE, np.full(6, 4.0), 1.5, 1.0, NoncentralSquare(*_noisy(f, 0.1, 1), f))


def crossing_square() -> Problem:
    x = np.linspace(0.0, 3.0, 6)
    f = 1.2 * np.cos(1.2 * x)
    return Problem(
        "square, crossing zero", x, ONE, np.full(6, 0.7), 0.7, 1.0, LinkedLikelihood(*_noisy(f, 0.3, 2), Square(), f)
    )


def logarithm() -> Problem:
    x = np.linspace(0.0, 3.0, 6)
    f = np.exp(0.7 * np.sin(x))
    return Problem("logarithm", x, ONE, np.zeros(6), 0.8, 1.0, LinkedLikelihood(*_noisy(f, 0.15, 3), Log(), f))


def sine() -> Problem:
    x = np.linspace(0.0, 3.0, 6)
    f = 1.4 * np.sin(1.5 * x) + 0.4
    return Problem(
        "sine, near its turning points", x, ONE, np.zeros(6), 0.7, 1.0, LinkedLikelihood(*_noisy(f, 0.2, 4), Sin(), f)
    )


def law() -> Problem:
    x = np.linspace(0.0, 2.5, 4)
    f = np.sqrt(1.6) * np.concatenate([np.cos(x), -np.sin(x)])
    return Problem(
        "two squares under a law", x, MIRRORED, np.full(8, 0.8), 0.7, 1.0, NoncentralSquare(*_noisy(f, 0.3, 5), f)
    )


def mixed() -> Problem:
    """Four outputs of different kinds: a cube, an exponential, logarithms of which one has no h(y), a plain output."""
    x = np.linspace(0.0, 2.0, 3)
    parts: list[Likelihood] = [
        LinkedLikelihood(*_noisy(1.0 + 0.3 * x, 0.1, 6), Power(3), 1.0 + 0.3 * x),
        LinkedLikelihood(*_noisy(0.2 * x, 0.2, 7), Exp(), 0.2 * x),
        LinkedLikelihood(
            np.array([0.6, -0.05, 1.2]), np.full(3, 0.2), Log(), np.array([0.6, 0.3, 1.1]), of_transformed=True
        ),
        GaussianLikelihood(*_noisy(np.sin(x), 0.1, 8)),
    ]
    tasks = np.array([[2.0, 0.5, 0.3, 0.1], [0.5, 1.0, 0.2, 0.0], [0.3, 0.2, 0.8, 0.1], [0.1, 0.0, 0.1, 0.7]])
    mean = np.repeat([2.0, 1.2, 0.0, 0.0], 3)
    return Problem("four kinds of output", x, tasks, mean, 0.8, 1.0, stacked(parts))


def anchored() -> Problem:
    """Squares and the outputs themselves, three of which are known to 1e-4: what virtual measurements look like."""
    x = np.linspace(0.0, 3.0, 6)
    f = 1.2 * np.cos(1.2 * x)
    y, noise = _noisy(f, 0.2, 10)
    y[[1, 3, 4]], noise[[1, 3, 4]] = f[[1, 3, 4]] ** 2, 1e-4
    parts: list[Likelihood] = [LinkedLikelihood(*_noisy(f, 0.3, 11), Square(), f), GaussianLikelihood(y, noise)]
    tasks = np.array([[1.0, 0.6], [0.6, 0.9]])
    return Problem("square beside precise values", x, tasks, np.repeat([0.7, 0.1], 6), 0.7, 1.0, stacked(parts))


def outlier() -> Problem:
    """A datum far below its neighbours' branch, where the likelihood is convex: its site ends on the precision floor."""
    x = np.linspace(0.0, 3.0, 6)
    f = np.full(6, 1.2)
    y, noise = _noisy(f, 0.3, 9)
    y[2] = -0.8
    return Problem("square, one outlier", x, ONE, np.full(6, 1.4), 0.7, 2.0, LinkedLikelihood(y, noise, Square(), f))


def plain(singular: bool) -> Problem:
    """Identity h, where every engine is exact regression."""
    x = np.linspace(0.0, 2.5, 4)
    y = np.concatenate([np.cos(x), -np.sin(x)])
    noise = np.linspace(0.02, 0.3, 8)
    tasks = MIRRORED if singular else np.array([[1.0, 0.4], [0.4, 0.6]])
    return Problem("identity", x, tasks, np.full(8, 0.1), 0.9, 1.0, GaussianLikelihood(y, noise))
