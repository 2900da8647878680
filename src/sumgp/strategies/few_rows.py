"""Hyperparameters of large data sets: found on some of the rows, then improved on all of them where that is cheap.

The number of evaluations is decided by the shape of the posterior density, not by the amount of data; most of them need
only enough rows to see that shape. Half of them are chosen at random, which shows all there is of long lengthscales; the
others are clusters of neighbours, since rows that are further apart than a lengthscale tell nothing about it. Where noise
hides the curves from few rows, means of neighbouring rows show them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sumgp.hyperparameters import MapEstimate, Objective, Scan, clustered_rows, maximise
from sumgp.priors import MultitaskPrior
from sumgp.solvers import fits_kronecker
from sumgp.strategies.problem import FitProblem

THINNED_ENTRIES = 450  # values in the chosen rows
FEWEST_ROWS = 60  # of a first search: enough for its lengthscales
CLUSTERS = 4  # of neighbouring rows
LARGEST_DENSE = 2000  # measured entries up to which one dense factor is cheap enough to be taken a dozen times
STEPS = 12  # on all rows: the start is a maximum on some of them
STEPS_OF_MEANS = 30  # on all rows from what their means say, which is no maximum yet
MEANS = 150  # of neighbouring rows: as many as a look at every lengthscale takes
FEWEST_IN_A_MEAN = 2.0  # rows: with fewer a look at some rows sees almost as much


def chosen_rows(problem: FitProblem) -> np.ndarray:
    """Sorted positions of the rows to begin with; outputs measured in few rows keep up to 30 of them."""
    measured = problem.data.measured
    generator = np.random.default_rng([problem.random_state, 9])
    order = generator.permutation(len(measured))
    count = min(max(FEWEST_ROWS, THINNED_ENTRIES // problem.n_outputs), len(measured))
    chosen = set(clustered_rows(problem.x, count // 2, CLUSTERS).tolist())
    chosen.update([row for row in order.tolist() if row not in chosen][: count - len(chosen)])
    for t in problem.output_order:
        seen = [row for row in order.tolist() if measured[row, t]]
        missing = min(30, len(seen)) - sum(row in chosen for row in seen)
        chosen.update([row for row in seen if row not in chosen][: max(missing, 0)])
    return np.array(sorted(chosen))


def prior_on_rows(prior: MultitaskPrior, rows: np.ndarray) -> MultitaskPrior:
    """The same prior for these rows: a law's totals and known noise are given row by row."""
    law = None if prior.law is None else replace(prior.law, totals=prior.law.totals[rows])
    return replace(prior, law=law, noise=prior.noise.at(rows))


def improved(problem: FitProblem, prior: MultitaskPrior, found: MapEstimate) -> tuple[Objective, MapEstimate]:
    """The objective on all rows, and its maximum after a few steps from one found on some of them.

    ``prior`` and ``found`` are over the outputs in the order ``problem.output_order``.
    """
    y = problem.y[:, problem.output_order]
    objective = Objective(prior, problem.solver.evidence(prior, problem.x, y))
    if not fits_kronecker(prior, y) and int(problem.data.measured.sum()) > LARGEST_DENSE:
        return objective, found
    problem.progress("hyperparameters: all rows")
    start, steps = found.theta, STEPS
    other = start_from_means(prior, problem.x, y)
    if other is not None and objective.value(other) < objective.value(start):
        start, steps = other, STEPS_OF_MEANS
    best = maximise(objective, 0, problem.random_state, steps, [start])
    return objective, MapEstimate(best.theta, best.value, found.status, (*found.attempts, *best.attempts))


def start_from_means(prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    """Theta that explains means of neighbouring rows of x (N, 1), y (N, T); None where there are none.

    Means of k rows have the curves of the rows, and noise sqrt(k) times smaller.
    """
    rows = len(x) / MEANS
    if x.shape[1] > 1 or rows < FEWEST_IN_A_MEAN or prior.latent is not None:
        return None
    groups = np.array_split(np.argsort(x[:, 0], kind="stable"), MEANS)
    seen = np.array([np.sum(~np.isnan(y[group]), axis=0) for group in groups])
    total = np.array([np.nansum(y[group], axis=0) for group in groups])
    means = np.where(seen > 0, total / np.maximum(seen, 1), np.nan)
    starts = Scan(np.array([x[group].mean(axis=0) for group in groups]), means).starts(prior, 1)
    if not starts:
        return None
    theta = starts[0].copy()
    theta[prior.noise_slice] += 0.5 * np.log(rows)
    return theta
