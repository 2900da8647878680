"""Log evidence of a series and its gradient in linear time, as an objective of hyperparameters.

Gradient of the Markov evidence in closed form: d log p(y) = <lambda, dm> + <(lambda lambda^T - Lambda)/2, dP>.
lambda and Lambda are the smoother's adjoints at a time, m and P the predicted state there. No inverse of a process
noise appears, so small gaps do no harm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.linalg import block_diag
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern, Product, Sum

from sumgp.errors import DataError
from sumgp.laws import LatentMap
from sumgp.numerics import root
from sumgp.priors import MultitaskPrior
from sumgp.solvers.dense import KRONECKER_OUTPUTS, KroneckerEvidence, Solver, fits_kronecker
from sumgp.solvers.markov.chain import residuals
from sumgp.solvers.markov.posterior import MarkovPosterior, MarkovPrior, PolynomialMean, markov_prior, smooth
from sumgp.solvers.markov.state_space import SMOOTHNESS, MaternTerm, TimeSeries, matern, time_series, with_rows


@dataclass(frozen=True)
class MarkovEvidence:
    """log p(y) and its derivatives.

    ``lengthscales`` (R,): by the log of each term's lengthscale. ``covariances``: (q, q) by Sigma_r of each term, symmetric,
    so that d log p = sum(covariances[r] * dSigma_r). ``noise`` (N, T): by each measurement's variance, zero where missing.
    ``mean_covariance`` (M, M): by the covariance of the mean's coefficients. ``pull`` (N, T): (y - E f) / variance, by what
    is added to the mean at each point; zero where missing.
    """

    value: float
    lengthscales: np.ndarray
    covariances: list[np.ndarray]
    noise: np.ndarray
    mean_covariance: np.ndarray
    pull: np.ndarray


def evidence(prior: MarkovPrior, series: TimeSeries) -> MarkovEvidence:
    """log p(y) of a time series and its gradient, in O(N)."""
    posterior = smooth(prior, series, compact=False)
    constant = posterior.constant
    by_mean = 0.5 * (
        np.outer(constant.score, constant.score)
        - constant.precision
        + constant.precision @ constant.covariance @ constant.precision
    )
    noise, pull = _measurement_gradients(posterior)
    return MarkovEvidence(posterior.log_evidence, *_kernel_gradient(posterior), noise, by_mean, pull)


def _measurement_gradients(posterior: MarkovPosterior) -> tuple[np.ndarray, np.ndarray]:
    """By variances ((y - E f)^2 + Var f) / (2 variance^2) - 1 / (2 variance), by means (y - E f) / variance, (N, T) each."""
    series = posterior.series
    measured = ~np.isnan(series.values)
    precision = np.where(measured, 1.0 / np.where(measured, series.variance, 1.0), 0.0)
    pull = precision * np.where(measured, series.values - posterior.mean, 0.0)
    spread = precision**2 * np.einsum("ntt->nt", posterior.covariance)
    return 0.5 * (pull**2 + spread - precision), pull


def _kernel_gradient(posterior: MarkovPosterior) -> tuple[np.ndarray, list[np.ndarray]]:
    """Derivatives by log lengthscales (R,) and by Sigma_r (q, q) of each term.

    A step tau changes the prediction by dm = F m dtau, dP = (F P + P F^T + diffusion (x) Sigma) dtau, and dtau / dlog l
    = -tau. Averaging over the mean's posterior adds columns to lambda and m. Where f is read from derivatives, which are
    l^-k times the states, that changes with l too.
    """
    terms, slices = posterior.prior.terms, posterior.space.slices
    lanes = posterior.factor.chain.lanes
    gaps = lanes.deal(np.append(0.0, np.diff(posterior.series.times)))
    along, across, covariances = _contractions(posterior, gaps)
    read = any(term.read is not None and term.read.shape[1] > 1 for term in terms)
    by_sight = _sight_gradient(posterior) * posterior.space.observe if read else np.zeros_like(posterior.space.observe)
    lengthscales = []
    for term, part in zip(terms, slices, strict=True):
        process, q = matern(term.nu), len(term.covariance)
        drift = np.kron(process.drift, np.eye(q))
        diffusion = np.kron(process.diffusion, term.covariance)
        steps = float(np.sum(along[part, part] * drift) + np.sum(across[part, part] * diffusion))
        orders = np.repeat(np.arange(process.n_states), q)
        lengthscales.append(-term.rate * steps - float(np.sum(by_sight[:, part] * orders)))
    return np.array(lengthscales), [0.5 * (G + G.T) for G in covariances]


def _mean_weights(posterior: MarkovPosterior) -> np.ndarray:
    """(1 + M, 1 + M): columns of a solution times these are its value and a root of what the mean's uncertainty adds."""
    return block_diag(1.0, root(posterior.constant.covariance[None])[0].T)


def _contractions(posterior: MarkovPosterior, gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Sums over all times of gap (lambda m^T + 2 G P), gap G, and per term <G, Q (x) .>, G = (lambda lambda^T - Lambda)/2.

    Shapes (D, D), (D, D), (q, q) each; ``gaps`` (s, l) lead to each time, the first time has the stationary state instead.
    """
    factor, solution, weights = posterior.factor, posterior.solution, _mean_weights(posterior)
    terms, D = posterior.prior.terms, len(posterior.space.stationary)
    processes = [matern(term.nu) for term in terms]
    steps = [p.steps(gaps, term.lengthscale) for p, term in zip(processes, terms, strict=True)]
    along, across = np.zeros((D, D)), np.zeros((D, D))
    covariances = [np.zeros_like(term.covariance) for term in terms]
    for s in range(len(gaps)):
        adjoint, predicted = solution.adjoint[s] @ weights, solution.predicted[s] @ weights
        G = 0.5 * (adjoint @ adjoint.swapaxes(1, 2) - factor.adjoint[s])
        scaled = gaps[s][:, None, None] * G
        along += np.tensordot(gaps[s][:, None, None] * adjoint, predicted, axes=([0, 2], [0, 2]))
        along += 2.0 * scaled.reshape(-1, D).T @ factor.predicted[s].reshape(-1, D)
        across += scaled.sum(axis=0)
        for r, (process, part) in enumerate(zip(processes, posterior.space.slices, strict=True)):
            noise = process.process_noise(steps[r][s])
            if s == 0:
                noise[0] = process.stationary
            covariances[r] += _contracted(noise, G[:, part, part], len(covariances[r]))
    return along, across, covariances


def _sight_gradient(posterior: MarkovPosterior) -> np.ndarray:
    """(C, D) derivative of log p by H in f = mean + H x: the sum over all times of rows^T E[(rho - rows f) x^T].

    That is the derivative of log p(rho given x), averaged over the posterior of x (Fisher's identity).
    """
    factor, solution, weights = posterior.factor, posterior.solution, _mean_weights(posterior)
    left = residuals(factor, solution) @ weights
    rows = factor.chain.lanes.deal(posterior.series.rows)
    total = np.zeros_like(posterior.space.observe)
    for s in range(len(left)):
        P = factor.predicted[s]
        state = (solution.predicted[s] + P @ solution.adjoint[s]) @ weights
        own = P - P @ factor.adjoint[s] @ P
        product = left[s] @ state.swapaxes(1, 2) - factor.chain.sight[s] @ own
        total += np.tensordot(rows[s], product, axes=([0, 1], [0, 1]))
    return total


def _contracted(noise: np.ndarray, G: np.ndarray, q: int) -> np.ndarray:
    """(q, q) sums over times n and states k, l of noise_n[k, l] G_n[(k, a), (l, b)]."""
    d = noise.shape[1]
    blocks = G.reshape(len(G), d, q, d, q).swapaxes(2, 3).reshape(-1, q * q)
    return (noise.ravel() @ blocks).reshape(q, q)


LAW_VARIANCE = 1e-11  # of the law's rows, in unit-free columns: far below what data tell, far above round-off


def is_markov(kernel: Kernel) -> bool:
    """True for Matern 1/2, 3/2, ... 9/2 with one lengthscale."""
    return type(kernel) is Matern and kernel.nu in SMOOTHNESS and np.ndim(kernel.length_scale) == 0


def markov_terms(kernel: Kernel) -> list[Kernel]:
    """The Matern parts of a sum, each with constant factors left to its task covariance; else an error."""
    if is_markov(kernel):
        return [kernel]
    if isinstance(kernel, Sum):
        return [*markov_terms(kernel.k1), *markov_terms(kernel.k2)]
    if isinstance(kernel, Product):
        for constant, other in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if isinstance(constant, ConstantKernel):
                return markov_terms(other)
    raise DataError(
        "kernel", "Matern 1/2, 3/2 ... 9/2, or sums of them, for solver=Markov()", str(kernel), "e.g. Matern(nu=2.5)"
    )


def has_markov_form(kernel: Kernel) -> bool:
    """Whether a kernel is a sum of such parts."""
    try:
        markov_terms(kernel)
    except DataError:
        return False
    return True


def state_space_prior(prior: MultitaskPrior, theta: np.ndarray) -> MarkovPrior:
    """The prior at theta over all columns: outputs, unknown constants, errors of soft laws."""
    if prior.latent is not None:
        return _latent_state_space(prior, prior.latent, theta)
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
    own = prior.constant_root @ prior.constant_root.T
    spread[:T, :T] = prior.mean_variance * (Sigmas[0] if prior.mean_shape == "task" else own)
    spread[range(T, T + U), range(T, T + U)] = prior.unknown
    if prior.mean_shape == "task":
        spread[soft_columns, soft_columns] = prior.mean_variance * soft
    return markov_prior(terms, mean_covariance=spread)


def _latent_state_space(prior: MultitaskPrior, latent: LatentMap, theta: np.ndarray) -> MarkovPrior:
    """The same for outputs that are derivatives of latent functions: each function is a term, read by the outputs."""
    hyper = prior.unpack(theta)
    T, U, Q = prior.n_outputs, len(prior.unknown), len(prior.soft)
    terms = []
    for kernel, task, Sigma in zip(hyper.kernels, prior.tasks, hyper.Sigmas, strict=True):
        own = task.speaks_of
        assert own is not None
        orders, coefficients = latent.orders(own)
        read = np.zeros((T + U + Q, 1 + max(order[0] for order in orders), 1))
        read[:T, [order[0] for order in orders], 0] = coefficients
        terms.append(MaternTerm(float(kernel.nu), float(kernel.length_scale), Sigma[own : own + 1, own : own + 1], read))
    if Q:
        errors = np.eye(T + U + Q)[:, None, T + U :]
        terms.append(replace(terms[0], covariance=np.diag(prior.soft), read=errors))
    spread = np.diag([*np.full(len(latent.monomials), prior.mean_variance), *prior.unknown])
    offset = np.concatenate([latent.offset, np.zeros(U + Q)])
    return markov_prior(terms, offset, spread, PolynomialMean(latent, U, Q))


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

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient in O(N)."""
        series = observed_series(self.prior, theta, self.x, self.y)
        if self.law is None:
            return self._evaluated(theta, series)
        blank = observed_series(self.prior, theta, self.x, np.full_like(self.y, np.nan))
        both, by_both = self._evaluated(theta, self.law.imposed(series))
        alone, by_alone = self._evaluated(theta, self.law.imposed(blank))
        return both - alone, by_both - by_alone

    def value(self, theta: np.ndarray) -> float:
        """The value alone; the gradient costs little beside it."""
        return self(theta)[0]

    def _evaluated(self, theta: np.ndarray, series: TimeSeries) -> tuple[float, np.ndarray]:
        """Log density of a series and its gradient with respect to theta."""
        prior, T = self.prior, self.prior.n_outputs
        result = evidence(state_space_prior(prior, theta), series)
        gradient = np.empty(prior.n_parameters)
        conditioning = prior.conditioned(prior.Sigmas(theta)[0])
        for r, (ks, ts) in enumerate(prior.slices):
            gradient[ks] = result.lengthscales[r]
            own = prior.tasks[r].speaks_of if prior.latent is not None else None
            if own is not None:
                G_S = np.zeros_like(prior.tasks[r].covariance(theta[ts]))
                G_S[own, own] = result.covariances[r][0, 0]
            else:
                G_S = result.covariances[r][:T, :T]
            if r == 0 and prior.mean_shape == "task":
                G_S = G_S + prior.mean_variance * result.mean_covariance[:T, :T]
            if conditioning is not None:
                G_S = conditioning.pull_back(G_S, prior.law.totals.T @ result.pull[:, :T])  # type: ignore[union-attr]
            gradient[ts] = prior.tasks[r].pull_back(theta[ts], G_S)
        gradient[prior.noise_slice] = prior.noise.pull_back(theta[prior.noise_slice], result.noise[:, :T])
        return result.value, gradient


# Short series of many outputs: a filter works on matrices of three times the outputs in turn, row by row. With so many
# rows for each output, and so large a share of the entries missing, two eigendecompositions are measured to be at least
# twice as fast (300 rows of 12 outputs: 7 times).
SERIES_ROWS = 40  # for each output
SERIES_GAPS = 0.01  # share of the entries


@dataclass(frozen=True)
class Markov(Solver):
    """State-space form on one input: Matern kernels, O(N)."""

    on_series: ClassVar[bool] = True

    def check(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> None:
        """Memory grows with N alone. Outputs must have the derivatives that laws with derivatives speak of."""
        needed = 0.5 if prior.latent is None else 2.0 * prior.latent.potential.degree + 0.5
        rough = [kernel for kernel in prior.kernels if kernel.nu < needed]
        if rough:
            remedy = f"use Matern(nu={needed}) or a smoother one, leave kernel=None, or use Dense()"
            raise DataError("kernel", f"Matern(nu={needed}) at least for this law", str(rough[0]), remedy)

    def evidence(
        self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray, law: LawRows | None = None
    ) -> MarkovObjectiveEvidence | KroneckerEvidence:
        """Given a linear law at the rows if there is one; the same number by the Kronecker form where that is faster."""
        short = len(y) <= SERIES_ROWS * y.shape[1] and y.shape[1] >= KRONECKER_OUTPUTS
        if (
            law is None
            and prior.latent is None
            and short
            and fits_kronecker(prior, y)
            and float(np.isnan(y).mean()) <= SERIES_GAPS
        ):
            return KroneckerEvidence(prior, x, y)
        return MarkovObjectiveEvidence(prior, x, y, law)
