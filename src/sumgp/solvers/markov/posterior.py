"""Gaussian-process regression of several outputs over time in O(N): Matern priors as Markov chains.

f(t) = mean(t) + sum_r what term r reads from its functions. The mean is a constant for each output, or a combination of
M given functions, with coefficients ~ N(prior mean, mean covariance). It is kept out of the chain: the chain is solved for
the data and for one unit of each coefficient, and their posterior follows from these 1 + M columns, however wide the prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sumgp.laws import LatentMap
from sumgp.numerics import root, symmetric
from sumgp.solvers.markov.chain import (
    Chain,
    Factor,
    Lanes,
    Solution,
    factorise,
    prior_paths,
    smoothed,
    smoothed_covariance,
    solve,
)
from sumgp.solvers.markov.state_space import MaternTerm, StateSpace, TimeSeries, assemble, with_times

BLOCK = 4096  # new times handled at once: bounds memory
COLUMNS = 16  # sample paths handled at once: bounds memory


@dataclass(frozen=True)
class PolynomialMean:
    """Mean of outputs that are derivatives of latent functions: what these functions' polynomials make of them.

    Columns: T outputs, unknown constants, errors of soft laws; coefficients: the polynomials' and the constants.
    """

    latent: LatentMap
    n_unknown: int
    n_soft: int

    def __call__(self, times: np.ndarray, order: int) -> np.ndarray:
        """(n, C, M), differentiated ``order`` times."""
        parts = self.latent.polynomials(times[:, None], (order,))
        (n, T, P), U = parts.shape, self.n_unknown
        result = np.zeros((n, T + U + self.n_soft, P + U))
        result[:, :T, :P] = parts
        if order == 0:
            result[:, range(T, T + U), range(P, P + U)] = 1.0
        return result


@dataclass(frozen=True)
class MarkovPrior:
    """A sum of terms plus a mean of f (C columns): ``mean`` (C,) plus ``basis`` times coefficients ~ N(0, mean_covariance).

    Without ``basis`` the mean is a constant ~ N(mean, mean_covariance). (M, M) ``mean_covariance`` may be zero.
    """

    terms: tuple[MaternTerm, ...]
    mean: np.ndarray
    mean_covariance: np.ndarray
    basis: PolynomialMean | None = None

    def mean_basis(self, times: np.ndarray, order: int = 0) -> np.ndarray:
        """(n, C, M), or (1, C, M) if it is the same for all times (n,): the mean per unit of each coefficient."""
        if self.basis is not None:
            return self.basis(times, order)
        return np.eye(len(self.mean))[None] * (order == 0)  # a constant has no slope

    def mean_at(self, times: np.ndarray, coefficients: np.ndarray, order: int = 0) -> np.ndarray:
        """(n, C), or (1, C), mean of f, or of a derivative of it, for coefficients (M,) or (M, p) (then (n, C, p))."""
        made = self.mean_basis(times, order) @ coefficients
        if self.basis is None or order > 0:
            return made
        return made + self.mean.reshape(-1, *[1] * (coefficients.ndim - 1))


def markov_prior(
    terms: Sequence[MaternTerm],
    mean: np.ndarray | None = None,
    mean_covariance: np.ndarray | None = None,
    basis: PolynomialMean | None = None,
) -> MarkovPrior:
    """A prior; without ``mean`` its mean is zero, without ``mean_covariance`` the mean is known exactly."""
    C = terms[0].n_columns
    centre = np.zeros(C) if mean is None else mean
    spread = np.zeros((C, C)) if mean_covariance is None else mean_covariance
    return MarkovPrior(tuple(terms), centre, spread, basis)


@dataclass(frozen=True)
class MeanPosterior:
    """Posterior of the mean's coefficients: ``estimate`` (M,), ``covariance`` (M, M) and the chain's part in it.

    ``precision`` (M, M) = B^T C^-1 B and ``score`` (M,) = B^T C_total^-1 (y - prior mean) with B the mean per unit of each
    coefficient, C the covariance of the data at a known mean and C_total the same with an unknown one. ``standard`` (M,) is
    u in estimate = prior mean + R u with R R^T the prior covariance.
    """

    estimate: np.ndarray
    covariance: np.ndarray
    precision: np.ndarray
    score: np.ndarray
    standard: np.ndarray


@dataclass(frozen=True)
class MarkovPosterior:
    """f given a time series: ``time_mean`` (n, T) at its distinct times, and log p(y).

    ``solution`` holds 1 + M columns: the state at the estimated mean, and its change with each of the mean's coefficients.
    """

    prior: MarkovPrior
    series: TimeSeries
    space: StateSpace
    factor: Factor
    solution: Solution
    constant: MeanPosterior
    time_mean: np.ndarray
    log_evidence: float

    @cached_property
    def time_covariance(self) -> np.ndarray:
        """(n, T, T) covariances at the series' distinct times; worked out when first asked for."""
        H, collect = self.space.observe, self.factor.chain.lanes.collect
        units = Solution(*(part[..., 1:] for part in vars(self.solution).values()))
        response = self.prior.mean_basis(self.series.times) + collect(smoothed(self.factor, units, H))
        own = collect(smoothed_covariance(self.factor, H))
        return symmetric(own + response @ self.constant.covariance @ response.mT)

    @property
    def mean(self) -> np.ndarray:
        """(N, T) means at the points as given, repeated times included."""
        return self.time_mean[self.series.place]

    @property
    def covariance(self) -> np.ndarray:
        """(N, T, T) covariances at the points as given."""
        return self.time_covariance[self.series.place]


def smooth(prior: MarkovPrior, series: TimeSeries, compact: bool = True) -> MarkovPosterior:
    """Condition the prior on a time series; ``compact=False`` keeps the states that gradients need."""
    return posterior(prior, series, *factorise_series(prior, series, compact))


def factorise_series(prior: MarkovPrior, series: TimeSeries, compact: bool = True) -> tuple[StateSpace, Factor]:
    """The part of the work that does not depend on the observed values."""
    lanes = Lanes.of(len(series.times))
    gaps = lanes.deal(np.append(np.diff(series.times), 0.0))
    space = assemble(prior.terms, gaps.ravel(), compact)
    shape = (*gaps.shape, *space.stationary.shape)
    sight = lanes.deal(series.rows @ space.observe)
    steps = (space.transition.reshape(shape), space.noise.reshape(shape))
    chain = Chain(lanes, *steps, space.stationary, sight)
    return space, factorise(chain)


def refactorise(space: StateSpace, chain: Chain, series: TimeSeries) -> Factor:
    """The factor for other rows at the same times and with the same prior."""
    return factorise(replace(chain, sight=chain.lanes.deal(series.rows @ space.observe)))


def posterior(prior: MarkovPrior, series: TimeSeries, space: StateSpace, factor: Factor) -> MarkovPosterior:
    """The posterior for the observed values of ``series``, given its factor."""
    lanes, M = factor.chain.lanes, len(prior.mean_covariance)
    centre = _centre(prior, series)
    basis = prior.mean_basis(series.times)
    units = [] if _known(prior) else [-(series.rows @ basis if prior.basis is not None else series.rows)]
    known = prior.mean_at(series.times, centre)[:, :, None]
    columns = np.concatenate([series.observed[:, :, None] - series.rows @ known, *units], axis=2)
    solution = solve(factor, lanes.deal(columns))
    means = lanes.collect(smoothed(factor, solution, space.observe))
    innovation = solution.innovation.reshape(-1, columns.shape[2])
    constant, log_mean = _mean_posterior(prior, centre, innovation.T @ innovation)
    weights = np.eye(1 + M)[: columns.shape[2]]
    weights[1:, 0] = (constant.estimate - centre)[: columns.shape[2] - 1]
    folded = Solution(*(_fold(part, weights) for part in (solution.predicted, solution.adjoint, solution.innovation)))
    mean = means @ weights[:, 0] + prior.mean_at(series.times, constant.estimate)
    log_evidence = series.constant - 0.5 * factor.logdet + log_mean
    return MarkovPosterior(prior, series, space, factor, folded, constant, mean, log_evidence)


def _fold(columns: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """columns (..., p) @ weights (p, q), as one large matrix product."""
    return (columns.reshape(-1, len(weights)) @ weights).reshape(*columns.shape[:-1], weights.shape[1])


def _known(prior: MarkovPrior) -> bool:
    """Whether the mean is known exactly."""
    return not np.any(prior.mean_covariance)


def _centre(prior: MarkovPrior, series: TimeSeries) -> np.ndarray:
    """(M,) coefficients of what is subtracted from the data so that large offsets cost no digits."""
    measured = ~np.isnan(series.values)
    if _known(prior) or prior.basis is not None:
        return _prior_coefficients(prior)
    average = np.where(measured, series.values, 0.0).sum(axis=0) / np.maximum(measured.sum(axis=0), 1)
    return np.where(measured.any(axis=0), average, prior.mean)


def _prior_coefficients(prior: MarkovPrior) -> np.ndarray:
    """(M,) prior mean of the mean's coefficients."""
    return prior.mean if prior.basis is None else np.zeros(len(prior.mean_covariance))


def _mean_posterior(prior: MarkovPrior, centre: np.ndarray, quadratic: np.ndarray) -> tuple[MeanPosterior, float]:
    """Posterior of the mean and -1/2 (y - mean)^T C^-1 (y - mean) - log-determinant, the mean integrated out.

    ``quadratic`` is Y^T C^-1 Y for the columns Y = [y - centre, -unit_1 ... -unit_M]. With coefficients = prior mean + R u,
    u ~ N(0, I), the exponent is quadratic in u; it is evaluated at its minimum, where no large numbers are left to cancel.
    """
    M, expected = len(centre), _prior_coefficients(prior)
    if _known(prior):
        nothing = np.zeros((M, M))
        return MeanPosterior(expected, nothing, nothing, np.zeros(M), np.zeros(M)), -0.5 * float(quadratic[0, 0])
    linear, precision = quadratic[1:, 0], quadratic[1:, 1:]
    half = root(prior.mean_covariance[None])[0].T
    offset = expected - centre
    inner = np.eye(M) + half.T @ precision @ half
    u = -np.linalg.solve(inner, half.T @ (linear + precision @ offset))
    shift = offset + half @ u
    covariance = symmetric(half @ np.linalg.solve(inner, half.T))
    exponent = quadratic[0, 0] + 2.0 * linear @ shift + shift @ precision @ shift + u @ u
    value = -0.5 * float(exponent) - 0.5 * float(np.linalg.slogdet(inner)[1])
    return MeanPosterior(centre + shift, covariance, precision, -(linear + precision @ shift), u), value


def predict(posterior: MarkovPosterior, times: np.ndarray, order: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Means (m, T) and covariances (m, T, T) at any times (m,): before, between, at and after those of the data.

    ``order``: of the derivative by time that is meant; the state holds it.

    Each new time needs only the filtered state at the data's last time before it and the adjoint at the next one, so
    the cost is O(m log N) and the answer does not depend on which other times are asked for.
    """
    times = np.asarray(times, dtype=float)
    parts = [_predict_block(posterior, times[i : i + BLOCK], order) for i in range(0, max(len(times), 1), BLOCK)]
    return np.concatenate([mean for mean, _ in parts]), np.concatenate([covariance for _, covariance in parts])


def _observe(prior: MarkovPrior, space: StateSpace, order: int) -> np.ndarray:
    """(T, D) matrix that reads f, or its derivative of this order, from the state."""
    if order == 0:
        return space.observe
    return np.concatenate([term.observe(space.compact, order) for term in prior.terms], axis=1)


def _predict_block(posterior: MarkovPosterior, times: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    known, compact = posterior.series.times, posterior.space.compact
    H = _observe(posterior.prior, posterior.space, order)
    last = np.searchsorted(known, times, side="right") - 1
    state, covariance = _filtered(posterior, last)
    before = assemble(posterior.prior.terms, np.where(last >= 0, times - known[np.maximum(last, 0)], 0.0), compact)
    state = before.transition @ state
    covariance = before.transition @ covariance @ before.transition.mT + before.noise
    following = np.minimum(last + 1, len(known) - 1)
    after = assemble(posterior.prior.terms, np.where(last + 1 < len(known), known[following] - times, 0.0), compact)
    column, information = _adjoints(posterior, last + 1)
    carried = after.transition.mT
    cross = H @ covariance
    means = H @ (state + covariance @ (carried @ column))
    own = cross @ H.T - cross @ (carried @ information @ after.transition) @ cross.mT
    response = posterior.prior.mean_basis(times, order) + means[:, :, 1:]
    spread = response @ posterior.constant.covariance @ response.mT
    mean = posterior.prior.mean_at(times, posterior.constant.estimate, order)
    return means[:, :, 0] + mean, symmetric(own + spread)


def _filtered(posterior: MarkovPosterior, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean columns and covariance of the state at time ``index`` given all up to it; index -1 is the prior."""
    factor, solution = posterior.factor, posterior.solution
    j, s = np.divmod(np.maximum(index, 0), factor.chain.lanes.steps)
    update = factor.update[s, j].mT
    state = solution.predicted[s, j] + update @ solution.innovation[s, j]
    kept, added = np.eye(len(factor.chain.initial)) - update @ factor.sight[s, j], update @ factor.innovate[s, j]
    covariance = kept @ factor.predicted[s, j] @ kept.mT + added @ added.mT
    state[index < 0] = 0.0
    covariance[index < 0] = factor.chain.initial
    return state, covariance


def _adjoints(posterior: MarkovPosterior, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """lambda and Lambda at time ``index``; zero beyond the last time."""
    lanes = posterior.factor.chain.lanes
    j, s = np.divmod(np.minimum(index, lanes.n - 1), lanes.steps)
    inside = (index < lanes.n)[:, None, None]
    return posterior.solution.adjoint[s, j] * inside, posterior.factor.adjoint[s, j] * inside


def sample(
    posterior: MarkovPosterior, times: np.ndarray, n_samples: int, rng: np.random.Generator, order: int = 0
) -> np.ndarray:
    """(n_samples, m, T) joint draws of f, or of a derivative of it, at the times (m,), in O((N + m) n_samples).

    A draw of the prior is moved by what the data say of its error (Matheron's rule): x + E[x | observed - seen of x].
    """
    prior, times = posterior.prior, np.asarray(times, dtype=float)
    series, new = with_times(posterior.series, times)
    space, factor = factorise_series(prior, series)
    lanes, constant, H = factor.chain.lanes, posterior.constant, _observe(prior, space, order)
    half = root(constant.covariance[None])[0].T
    result = np.empty((n_samples, len(times), series.n_outputs))
    for start in range(0, n_samples, COLUMNS):
        count = min(COLUMNS, n_samples - start)
        drawn = constant.estimate[:, None] + half @ rng.standard_normal((len(half), count))
        path = prior_paths(factor.chain, count, rng)
        seen = factor.chain.sight @ path + rng.standard_normal((*factor.chain.sight.shape[:3], count))
        error = lanes.deal(series.observed[:, :, None] - series.rows @ prior.mean_at(series.times, drawn)) - seen
        correction = solve(factor, error)
        moved = H @ path + smoothed(factor, correction, H)
        values = lanes.collect(moved)[new] + prior.mean_at(times, drawn, order)
        result[start : start + count] = values.transpose(2, 0, 1)
    return result
