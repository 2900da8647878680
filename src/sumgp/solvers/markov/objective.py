"""The multitask prior on one input as a state-space model: its evidence and gradient with respect to theta, in O(N)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern, Product

from sumgp.errors import DataError, worded
from sumgp.numerics import Scratch
from sumgp.priors import MultitaskPrior
from sumgp.solvers.markov.evidence import evidence
from sumgp.solvers.markov.posterior import MarkovPrior, markov_prior
from sumgp.solvers.markov.series import TimeSeries, time_series, with_rows
from sumgp.solvers.markov.state_space import MaternTerm

SMOOTHNESS = (0.5, 1.5, 2.5)
LAW_VARIANCE = 1e-11  # of the law's rows, in unit-free columns: far below what data tell, far above round-off


def is_markov(kernel: Kernel) -> bool:
    """True for Matern 1/2, 3/2, 5/2 with one lengthscale."""
    return type(kernel) is Matern and kernel.nu in SMOOTHNESS and np.ndim(kernel.length_scale) == 0


def markov_terms(kernel: Kernel) -> list[Kernel]:
    """The Matern parts of a sum, each with constant factors left to its task covariance; else an error."""
    if is_markov(kernel):
        return [kernel]
    if hasattr(kernel, "k1") and not isinstance(kernel, Product):
        return [*markov_terms(kernel.k1), *markov_terms(kernel.k2)]
    if isinstance(kernel, Product):
        for constant, other in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if isinstance(constant, ConstantKernel):
                return markov_terms(other)
    raise DataError(
        worded("kernel", "Matern 1/2, 3/2 or 5/2, or sums of them, for solver=Markov()", str(kernel), "e.g. Matern(nu=2.5)")
    )


def state_space_prior(prior: MultitaskPrior, theta: np.ndarray) -> MarkovPrior:
    """The prior at theta over all columns: outputs, unknown constants, errors of soft laws."""
    hyper = prior.unpack(theta)
    T, U, Q = prior.n_outputs, len(prior.unknown), len(prior.soft)
    Sigmas = list(hyper.Sigmas)
    conditioning = prior.conditioned(Sigmas[0])
    if conditioning is not None:
        Sigmas[0] = conditioning.covariance
    soft, soft_columns = prior.soft * prior.soft_share, range(T + U, T + U + Q)
    terms = []
    for r, (kernel, Sigma) in enumerate(zip(hyper.kernels, Sigmas, strict=True)):
        wide = np.zeros((T + U + Q,) * 2)
        wide[:T, :T] = Sigma
        if r == 0 and Q:
            wide[soft_columns, soft_columns] = soft
        terms.append(MaternTerm(float(kernel.nu), float(kernel.length_scale), wide))
    spread = np.zeros((T + U + Q,) * 2)
    spread[:T, :T] = prior.mean_variance * (Sigmas[0] if prior.mean_shape == "task" else np.eye(T))
    spread[range(T, T + U), range(T, T + U)] = prior.unknown
    if prior.mean_shape == "task":
        spread[soft_columns, soft_columns] = prior.mean_variance * soft
    return markov_prior(terms, mean_covariance=spread)


def observed_series(prior: MultitaskPrior, theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> TimeSeries:
    """The data as a time series over all columns, less the mean that a task law gives."""
    extra = len(prior.unknown) + len(prior.soft)
    values = y
    conditioning = prior.conditioned(prior.Sigmas(theta)[0])
    if conditioning is not None:
        values = y - prior.law.totals @ conditioning.D  # type: ignore[union-attr]
    variances = np.broadcast_to(prior.noise.variances(theta[prior.noise_slice]), y.shape)
    padded = np.concatenate([values, np.full((len(y), extra), np.nan)], axis=1)
    return time_series(x[:, 0], padded, np.concatenate([variances, np.ones((len(y), extra))], axis=1))


@dataclass(frozen=True)
class LawRows:
    """A linear law at the rows: ``rows`` (N, R, C) f = ``totals`` (N, R) over all columns; zero rows do not hold."""

    rows: np.ndarray
    totals: np.ndarray

    def imposed(self, series: TimeSeries) -> TimeSeries:
        """The series with the law as measurements whose variance is negligible."""
        rows, totals = self.rows[series.first], self.totals[series.first]
        size = np.sum(rows**2, axis=2)
        return with_rows(series, rows, totals, LAW_VARIANCE * np.where(size > 0, size, 1.0))


class MarkovObjectiveEvidence:
    """log p(y | theta) and its gradient for Matern terms on one input; with a ``law`` log p(y | theta, law).

    The latter is log p(y, law) - log p(law): two series that differ in their measurements only.
    """

    def __init__(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray, law: LawRows | None = None) -> None:
        self.prior = prior
        self.x = x
        self.y = y
        self.law = law
        self._scratch = Scratch()

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient in O(N)."""
        series = observed_series(self.prior, theta, self.x, self.y)
        if self.law is None:
            return self._evaluated(theta, series)
        blank = observed_series(self.prior, theta, self.x, np.full_like(self.y, np.nan))
        both, by_both = self._evaluated(theta, self.law.imposed(series))
        alone, by_alone = self._evaluated(theta, self.law.imposed(blank))
        return both - alone, by_both - by_alone

    def _evaluated(self, theta: np.ndarray, series: TimeSeries) -> tuple[float, np.ndarray]:
        """Log density of a series and its gradient with respect to theta."""
        prior, T = self.prior, self.prior.n_outputs
        result = evidence(state_space_prior(prior, theta), series, self._scratch)
        gradient = np.empty(prior.n_parameters)
        conditioning = prior.conditioned(prior.Sigmas(theta)[0])
        for r, (ks, ts) in enumerate(prior.slices):
            gradient[ks] = result.lengthscales[r]
            G_S = result.covariances[r][:T, :T]
            if r == 0 and prior.mean_shape == "task":
                G_S = G_S + prior.mean_variance * result.mean_covariance[:T, :T]
            if conditioning is not None:
                G_S = conditioning.pull_back(G_S, prior.law.totals.T @ result.pull[:, :T])  # type: ignore[union-attr]
            gradient[ts] = prior.tasks[r].pull_back(theta[ts], G_S)
        gradient[prior.noise_slice] = prior.noise.pull_back(theta[prior.noise_slice], result.noise[:, :T])
        return result.value, gradient
