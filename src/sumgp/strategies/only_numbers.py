"""Laws that leave nothing but numbers open: every output is a function of the inputs and of unknown constants."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2
from sklearn.gaussian_process.kernels import Matern

from sumgp.errors import warn
from sumgp.hyperparameters import noise_told
from sumgp.laws import UnitFreeLaw, rival_constants
from sumgp.lawsolve import FULL, solve_laws
from sumgp.priors import Candidate, MultitaskPrior
from sumgp.strategies.averaging import Mixed, fit_candidates
from sumgp.strategies.problem import FitProblem, Fitted
from sumgp.strategies.weight_component import Component, LawConditioning, given_data

FREE = 100.0  # sd of the outputs before the data, in sds of the noise, and no less than so many of their own spread,
NO_LESS = 3.0  # which together leave the data all but one part in 10,000 of the say
APART = 0.1  # lengthscale, in the least distance of two rows: none tells anything of another but by the constants
ROUNDS = 2  # of constants and noise, which depend on each other where outputs have noises of their own
NOISES = 8  # draws of the noise: intervals are those of Student's distribution to 1 %
NORMAL = 100.0  # degrees of freedom from which on Student's distribution has the normal one's intervals, to 1.5 %
ELSEWHERE = 0.7  # of an output's spread: where else it is looked whether the law is linear in the outputs
SAME = 1e-9  # relative difference of slopes, above round-off
AHEAD = 5.0  # log evidence of curves over constants: 1 in 300 data sets of true laws had 2 to 3
DETERMINED = 1e-9  # smallest singular value over the largest of the outputs' slopes


class ConstantsAlone(Component):
    """Predictions from constants: no curve has a say, so that there is no lengthscale either."""

    def lengthscales(self) -> list[np.ndarray]:
        """None."""
        return []


def fit_numbers(problem: FitProblem, law: UnitFreeLaw) -> Fitted | None:
    """Constants by least squares, in the form that all predictions are made of; None where curves are open as well.

    Curves have no say here: a prior that was found with the same data would count them twice, and intervals came out at
    0.6 of those of least squares. So every row is free before the data, y_i ~ N(f_i, s^2) with f_i nearly anything, and
    the law alone ties them: the posterior of the constants is that of the likelihood. The noise s^2 is what the law leaves
    of the data, r^2 / nu, and is drawn from r^2 / chi^2_nu, which makes the intervals Student's. None too where curves
    explain the data far better: the law is false, or no constants that fit were found, and the usual way tells which.
    """
    if not _leaves_only_numbers(problem, law):
        return None
    alone = fit_candidates(problem, problem.priors("identity", law)).supported
    prior, theta = _free(problem, law, alone.maxima[alone.best].theta[alone.priors[alone.best].noise_slice])
    for _ in range(ROUNDS if prior.noise.n_parameters > 1 else 1):
        left = _left(problem, _component(problem, law, prior, theta), prior, theta)
        theta[prior.noise_slice] = left.noise
    if not left.evidence > alone.approximate_evidence()[alone.best] - AHEAD:
        return None
    draws = [theta]
    if prior.noise.n_parameters and problem.uncertainty == "integrated" and left.degrees < NORMAL:
        quantiles = chi2.ppf((np.arange(NOISES) + 0.5) / NOISES, left.degrees)
        draws = [_louder(prior, theta, 0.5 * np.log(left.degrees / value)) for value in quantiles]
    components = tuple(_component(problem, law, prior, each) for each in draws)
    weights = np.full(len(components), 1.0 / len(components))
    report = Mixed(components, weights, {}).law_report() | {"kernel": "none: the law leaves only constants open"}
    report["status"] = _ambiguous(problem, law, components[0]) or report["status"]
    return Fitted(components, weights, law, report | {"uncertainty": problem.uncertainty, "log_evidence": left.evidence})


def _leaves_only_numbers(problem: FitProblem, law: UnitFreeLaw) -> bool:
    """Whether the law is linear in the outputs, curved or not in its constants, and determines all outputs given these."""
    if problem.split is not None or len(law.soft_rows) or law.n_rows < problem.n_outputs:
        return False
    here = np.zeros((len(problem.x), law.n_columns))
    there = here.copy()
    there[:, : problem.n_outputs] = ELSEWHERE
    with np.errstate(all="ignore"):
        J, other = (law.jacobian(u, problem.data.x)[:, :, : problem.n_outputs] for u in (here, there))
    if not (np.isfinite(J).all() and np.all(np.abs(J - other) <= SAME * np.abs(J).max())):
        return False
    values = np.linalg.svd(J, compute_uv=False)
    return bool(np.all(values[:, -1] > DETERMINED * values[:, 0]))


def _ambiguous(problem: FitProblem, law: UnitFreeLaw, component: Component) -> str:
    """What the status must say where other constants explain the rows about as well; empty where none do. Warns."""
    assert component.conditioning is not None
    T, complete = problem.n_outputs, ~np.isnan(problem.y).any(axis=1)
    if not complete.any():
        return ""
    found = law.shift[T:] + law.scale[T:] * component.conditioning.solution.f[0, T:]
    noise = np.sqrt(component.noise) * law.scale[:T]
    other = rival_constants(law.law, problem.data.y[complete], problem.data.x[complete], found, noise)
    if other is None:
        return ""
    values = ", ".join(f"{name} = {value:.4g}" for name, value in zip(law.law.unknowns, other, strict=True))
    warn(
        f"constants: {values} explain the rows about as well, with other values between them; measure rows closer together, "
        "or give the value of a constant"
    )
    return f"converged, but {values} explain the rows about as well"


class _Left(NamedTuple):
    """What the law leaves of the data."""

    evidence: float  # log density of the measurements, less half the log of their number for each constant (Schwarz 1978)
    degrees: float  # of freedom
    noise: np.ndarray  # the most probable log sds


def _left(problem: FitProblem, component: Component, prior: MultitaskPrior, theta: np.ndarray) -> _Left:
    seen, constants = ~np.isnan(problem.y), len(prior.unknown)
    mean = component.marginals(problem.x, problem.data.x)[0][:, : problem.n_outputs]
    squares = np.where(seen, (problem.y - mean) ** 2, 0.0)
    degrees = max(float(seen.sum() - constants), 1.0)
    told = theta[prior.noise_slice]
    if len(told):
        factors = np.ones((len(seen), 1)) if prior.noise.row_factor is None else prior.noise.row_factor[:, None]
        told = noise_told(prior.noise, np.sum(squares / factors, axis=0), seen.sum(axis=0) * degrees / seen.sum())
    variances = prior.noise.variances(told)
    log_density = -0.5 * np.sum(squares / variances + seen * np.log(2.0 * np.pi * variances))
    return _Left(float(log_density - 0.5 * constants * np.log(seen.sum())), degrees, told)


def _free(problem: FitProblem, law: UnitFreeLaw, noise: np.ndarray) -> tuple[MultitaskPrior, np.ndarray]:
    """A prior under which every row is nearly anything, with this ``noise`` of the data."""
    kernel = Matern(length_scale=np.ones(problem.x.shape[1]), nu=0.5)
    prior = replace(problem, candidates=(Candidate((kernel,)),), rank=None).priors("identity", law)[0]
    theta = prior.start()
    theta[prior.lengthscales()] = np.log(APART * _least_distance(problem.x))
    size = max(FREE * float(np.sqrt(prior.noise.variances(noise).max())), NO_LESS)
    for task, (_, own) in zip(prior.tasks, prior.slices, strict=True):
        theta[own] = task.like(size**2 * np.eye(problem.n_outputs))
    theta[prior.noise_slice] = noise
    return prior, theta


def _louder(prior: MultitaskPrior, theta: np.ndarray, by: float) -> np.ndarray:
    changed = theta.copy()
    changed[prior.noise_slice] += by
    return changed


def _least_distance(x: np.ndarray) -> float:
    """Of two different rows, along the input in which they are nearest."""
    steps = [np.diff(np.unique(column)) for column in x.T]
    return min(float(step.min()) for step in steps if step.size)


def _component(problem: FitProblem, law: UnitFreeLaw, prior: MultitaskPrior, theta: np.ndarray) -> Component:
    """Posterior given data and law, which is imposed at the rows, beginning with the constants that all rows suggested."""
    first = np.unique(problem.data.x, axis=0, return_index=True)[1]
    x, x_law = problem.x[first], problem.data.x[first]
    posterior = given_data(problem, prior, theta, x)
    mean, root = posterior.carried(x, x_law)
    start = np.zeros_like(mean)
    outputs = law.jacobian(start, x_law)[:, :, : problem.n_outputs]
    start[:, : problem.n_outputs] = -np.einsum("ntr,nr->nt", np.linalg.pinv(outputs), law.residual(start, x_law))
    solution = solve_laws(law, x_law, mean[None], posterior.between(root)[None], start[None], FULL)[0]
    noise = prior.noise.typical(theta[prior.noise_slice])
    return ConstantsAlone(posterior, theta, noise, prior.n_outputs, law, LawConditioning(x, root, solution, None))
