"""Lengths by way of pairwise products (section 4.2, appendix C.5 of the paper): a GP on Q = Z^T Z, with or without the law.

A length between two points is linear in the products, so the law is imposed exactly on them; coordinates come back by a
decomposition of Q, which is of the right rank only approximately, and with it the lengths. ``project`` moves the
coordinates onto the lengths in the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import null_space
from scipy.special import ndtri

from sumgp.data import Data, Scaling, choose_scaling
from sumgp.errors import ConstraintError, DataError
from sumgp.laws import LinearConstraint
from sumgp.priors import SMALLEST, NoiseModel, default_candidates
from sumgp.strategies import Conditioned, FitProblem, Fitted, Unconstrained
from sumgp_studies.experiments import Dataset
from sumgp_studies.gram_matrix import Gram

STEP = 1e-4  # relative step of the differences of the back-transform
RANK = 0  # of the correlations between products besides those that the law makes


def fit_gram(
    dataset: Dataset, constrained: bool, uncertainty: str = "integrated", random_state: int = 0, project: bool = False
) -> GramFit:
    """Fit a data set whose ``lengths`` name the coordinates of points, the edges between them and known points."""
    lengths = dataset.lengths
    if lengths is None:
        raise ConstraintError("dataset", "points with lengths between them", "no lengths", "use another method")
    names = [name for point in lengths.points for name in point]
    columns = [dataset.outputs.index(name) for name in names]
    if columns != list(range(len(dataset.outputs))):
        raise DataError("outputs", f"the coordinates {names}", str(dataset.outputs), "order them point by point")
    edges = [(i, j, length) for (i, j), length in zip(lengths.edges, lengths.lengths, strict=True)]
    gram = Gram(len(lengths.points), edges, completed_anchors(np.array(lengths.anchors, dtype=float)))
    choices = GramChoices(constrained, uncertainty, random_state, project)
    return fit_products(gram, dataset.X_train, dataset.Y_train, choices)


def completed_anchors(anchors: np.ndarray) -> np.ndarray:
    """(A, d) known points joined by others at right angles, of the same size, until they span the space."""
    anchors = np.atleast_2d(anchors)
    size = float(np.max(np.linalg.norm(anchors, axis=1)))
    if not size > 0:
        raise ConstraintError("anchors", "a known point other than the origin", str(anchors.tolist()), "give one")
    return np.vstack([anchors, size * null_space(anchors).T])


@dataclass(frozen=True)
class GramChoices:
    """``constrained`` False leaves the law out (the paper's GP-tr); ``project`` moves points onto the lengths."""

    constrained: bool = True
    uncertainty: str = "integrated"
    random_state: int = 0
    project: bool = False


def fit_products(
    gram: Gram,
    X: np.ndarray,
    Y: np.ndarray,
    choices: GramChoices | None = None,
) -> GramFit:
    """Fit inputs X (N, D) and coordinates Y (N, P d), NaN = not measured.

    A plain GP on the coordinates gives their noise and an estimate of the truth; from both follow bias and variance of
    each product of noisy coordinates."""
    choices = choices or GramChoices()
    X, Y = np.asarray(X, dtype=float), np.asarray(Y, dtype=float)
    plain = _problem(X, Y, tuple(f"z{i}" for i in range(Y.shape[1])), None, None, replace(choices, uncertainty="plug-in"))
    guide = Unconstrained().fit(plain).components[0]
    estimate = plain.scaling.restore(guide.marginals(plain.x, X)[0])
    sd = float(np.sqrt(np.mean(guide.noise))) * float(plain.scaling.y_scale[0])
    bias, variance = gram.product_moments(estimate, sd)
    free, law = _free_products(gram)
    targets = (gram.products(Y) - bias)[:, free]
    problem = _problem(X, targets, law.outputs, law if choices.constrained else None, variance[:, free], choices)
    fitted = (Conditioned() if choices.constrained else Unconstrained()).fit(problem)
    return GramFit(gram, free, fitted, problem.scaling, guide.noise.mean() * plain.scaling.y_scale[0] ** 2, choices.project)


def _free_products(gram: Gram) -> tuple[np.ndarray, Any]:
    """Products that are not those of two known points, and the law between them."""
    i, _ = gram.pairs
    free = np.flatnonzero(i < gram.points)
    fixed = np.flatnonzero(i >= gram.points)
    known = gram.products(np.zeros((1, gram.points * gram.dimension)))[0]
    rows = np.any(gram.F[:, free] != 0, axis=1)
    names = tuple(f"q{k}" for k in free)
    total = gram.S[rows] - gram.F[np.ix_(rows, fixed)] @ known[fixed]
    return free, LinearConstraint(gram.F[np.ix_(rows, free)], total).bind(names, ())


def _problem(
    X: np.ndarray, Y: np.ndarray, names: tuple[str, ...], law: Any, variances: np.ndarray | None, choices: GramChoices
) -> FitProblem:
    """A fit problem; without known noise ``variances`` (N, T) the outputs are coordinates with one scale and noise."""
    data = Data(X, Y, tuple(f"x{i}" for i in range(X.shape[1])), names)
    everything = tuple(range(Y.shape[1]))
    together = variances is None
    scaling = choose_scaling(data, [everything] if together else [[i] for i in everything], unit_inputs=True)
    known = None if variances is None else variances / scaling.y_scale**2 + SMALLEST**2
    half_range = 0.5 * np.ptp(scaling.inputs(X), axis=0)
    return FitProblem(
        data=data,
        scaling=scaling,
        law=law,
        candidates=default_candidates(np.where(half_range > 0, half_range, 0.5)),
        rank=None if together else RANK,
        noise=NoiseModel((everything,), np.ones(len(everything)), known),
        uncertainty=choices.uncertainty,
        restarts=1,
        random_state=choices.random_state,
        progress=lambda stage: None,
    )


@dataclass(frozen=True, eq=False)
class GramFit:
    """A fitted GP on products."""

    gram: Gram
    free: np.ndarray
    fitted: Fitted
    scaling: Scaling
    noise: float  # variance of a measured coordinate
    project: bool

    @property
    def status(self) -> str:
        """How the search for hyperparameters ended."""
        return str(self.fitted.report["status"])

    def posterior(self, X: np.ndarray) -> GramPosterior:
        """Coordinates at X (n, D)."""
        X = np.asarray(X, dtype=float)
        products, cov = self._products(X)
        mean = self._coordinates(products)
        J = self._slopes(products)
        variance = np.einsum("ncm,nmk,nck->nc", J, cov, J)
        return GramPosterior(mean, np.sqrt(np.maximum(variance, 0.0)), self.noise)

    def _products(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, m) and covariance (n, m, m) of the mixture's free products, in the user's units."""
        parts = [c.marginals(self.scaling.inputs(X), X) for c in self.fitted.components]
        weights = self.fitted.weights
        means = np.stack([mean for mean, _ in parts])
        centre = np.einsum("k,knm->nm", weights, means)
        cov = np.einsum("k,knml->nml", weights, np.stack([c for _, c in parts]))
        cov += np.einsum("k,knm,knl->nml", weights, means - centre, means - centre)
        scale = self.scaling.y_scale
        return self.scaling.restore(centre), cov * scale[:, None] * scale

    def _coordinates(self, free_products: np.ndarray) -> np.ndarray:
        """(n, P d) coordinates, moved onto the lengths if asked."""
        known = self.gram.products(np.zeros((1, self.gram.points * self.gram.dimension)))
        products = np.repeat(known, len(free_products), axis=0)
        products[:, self.free] = free_products
        found = self.gram.coordinates(products)
        return self.gram.project(found) if self.project else found

    def _slopes(self, products: np.ndarray) -> np.ndarray:
        """(n, P d, m) derivative of the coordinates by the products, by central differences."""
        columns = []
        for m, step in enumerate(STEP * self.scaling.y_scale):
            shift = np.zeros(products.shape[1])
            shift[m] = step
            columns.append((self._coordinates(products + shift) - self._coordinates(products - shift)) / (2.0 * step))
        return np.stack(columns, axis=2)


@dataclass(frozen=True, eq=False)
class GramPosterior:
    """Coordinates (n, P d): mean, standard deviation, and Gaussian intervals, the back-transform being nearly linear."""

    mean: np.ndarray
    std: np.ndarray
    noise: float

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends (n, P d) of the central interval that holds a coordinate with probability ``level``."""
        if not 0.0 < level < 1.0:
            raise DataError("level", "a probability between 0 and 1", repr(level), "e.g. 0.95")
        reach = ndtri(0.5 + 0.5 * level) * self.std
        return self.mean - reach, self.mean + reach

    def log_density(self, values: np.ndarray) -> np.ndarray:
        """(n, P d) log densities at ``values``."""
        sd = np.maximum(self.std, 1e-300)
        return -0.5 * ((values - self.mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2.0 * np.pi)

    def observed(self) -> GramPosterior:
        """The same for a new noisy measurement of each coordinate."""
        return GramPosterior(self.mean, np.sqrt(self.std**2 + self.noise), 0.0)
