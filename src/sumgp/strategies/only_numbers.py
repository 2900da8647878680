"""Laws that leave nothing but numbers open: every output is a function of the inputs and of unknown constants."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2
from sklearn.gaussian_process.kernels import Matern

from sumgp.laws import UnitFreeLaw
from sumgp.lawsolve import FULL, solve_laws
from sumgp.priors import Candidate, MultitaskPrior
from sumgp.strategies.averaging import Mixed, fit_candidates
from sumgp.strategies.eliminated import noise_given_law
from sumgp.strategies.problem import FitProblem, Fitted
from sumgp.strategies.weight_component import Component, LawConditioning, given_data

FREE = 30.0  # sd of the outputs before the data, in units of their spread: with 10 or 1,000 intervals differ by a per cent
APART = 0.1  # lengthscale, in the least distance of two rows: none tells anything of another but by the constants
NOISES = 8  # draws of the noise: intervals are those of Student's distribution to 1 %
ELSEWHERE = 0.7  # of an output's spread: where else it is looked whether the law is linear in the outputs
SAME = 1e-9  # relative difference of slopes, above round-off
DETERMINED = 1e-9  # smallest singular value over the largest of the outputs' slopes


def leaves_only_numbers(problem: FitProblem, law: UnitFreeLaw) -> bool:
    """Whether the law is linear in the outputs, curved or not in its constants, and determines all outputs given these."""
    if problem.split is not None or law.is_soft or law.n_rows < problem.n_outputs:
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


def fit_numbers(problem: FitProblem, law: UnitFreeLaw) -> Fitted:
    """Constants by least squares, in the form that all predictions are made of.

    Curves have no say here: a prior that was found with the same data would count them twice, and intervals came out at
    0.6 of those of least squares. So every row is free before the data, y_i ~ N(f_i, s^2) with f_i nearly anything, and
    the law alone ties them: the posterior of the constants is that of the likelihood. The noise s^2 is what the law leaves
    of the data, r^2 / nu, and is drawn from r^2 / chi^2_nu, which makes the intervals Student's.
    """
    prior, theta = _free(problem, law)
    if prior.noise.n_parameters:
        louder = noise_given_law(problem, prior, theta, lambda by: _component(problem, law, prior, _with(prior, theta, by)))
        theta = _with(prior, theta, louder)
    found = _component(problem, law, prior, theta)
    left = _left(problem, found, prior.noise.variances(theta[prior.noise_slice]))
    draws = [theta]
    if prior.noise.n_parameters and problem.uncertainty == "integrated":
        quantiles = chi2.ppf((np.arange(NOISES) + 0.5) / NOISES, left.degrees)
        draws = [_with(prior, theta, 0.5 * np.log(left.degrees / value)) for value in quantiles]
    components = tuple(_component(problem, law, prior, each) for each in draws)
    weights = np.full(len(components), 1.0 / len(components))
    report = Mixed(components, weights, {}).law_report() | {"kernel": "none: the law leaves only constants open"}
    return Fitted(components, weights, law, report | {"uncertainty": problem.uncertainty, "log_evidence": left.log_density})


class _Left(NamedTuple):
    """What the law leaves of the data: log density of the measurements, and degrees of freedom of their noise."""

    log_density: float
    degrees: float


def _left(problem: FitProblem, component: Component, noise: np.ndarray) -> _Left:
    mean, covariance = component.marginals(problem.x, problem.data.x)
    seen, taken = ~np.isnan(problem.y), np.einsum("ncc->nc", covariance)[:, : problem.n_outputs] / noise
    squares = np.nansum((problem.y - mean[:, : problem.n_outputs]) ** 2 / noise)
    logs = np.sum(seen * np.log(2.0 * np.pi * noise))
    return _Left(float(-0.5 * (squares + logs)), max(float(np.sum(seen * (1.0 - taken))), 1.0))


def _free(problem: FitProblem, law: UnitFreeLaw) -> tuple[MultitaskPrior, np.ndarray]:
    """A prior under which every row is nearly anything, with the noise that the data alone tell."""
    alone = fit_candidates(problem, problem.priors("identity", law)).supported
    noise = alone.maxima[alone.best].theta[alone.priors[alone.best].noise_slice]
    kernel = Matern(length_scale=np.ones(problem.x.shape[1]), nu=0.5)
    prior = replace(problem, candidates=(Candidate((kernel,)),), rank=None).priors("identity", law)[0]
    theta = prior.start()
    theta[prior.lengthscales()] = np.log(APART * _least_distance(problem.x))
    for task, (_, own) in zip(prior.tasks, prior.slices, strict=True):
        theta[own] = task.like(FREE**2 * np.eye(problem.n_outputs))
    theta[prior.noise_slice] = noise
    return prior, theta


def _with(prior: MultitaskPrior, theta: np.ndarray, louder: np.ndarray | float) -> np.ndarray:
    changed = theta.copy()
    changed[prior.noise_slice] += louder
    return changed


def _least_distance(x: np.ndarray) -> float:
    """Of two different rows, along the input in which they are nearest."""
    steps = [np.diff(np.unique(column)) for column in x.T]
    return min(float(step.min()) for step in steps if step.size)


def _component(problem: FitProblem, law: UnitFreeLaw, prior: MultitaskPrior, theta: np.ndarray) -> Component:
    """Posterior given data and law, which is imposed at the rows."""
    first = np.unique(problem.data.x, axis=0, return_index=True)[1]
    x, x_law = problem.x[first], problem.data.x[first]
    posterior = given_data(problem, prior, theta, x)
    mean, root = posterior.carried(x, x_law)
    flat = root.reshape(mean.size, -1)
    solution = solve_laws(law, x_law, mean[None], (flat @ flat.T)[None], None, FULL)[0]
    noise = prior.noise.typical(theta[prior.noise_slice])
    return Component(posterior, theta, noise, prior.n_outputs, law, LawConditioning(x, root, solution, None))
