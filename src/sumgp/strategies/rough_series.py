"""Series of some hundred rows that are rough: in state-space form, since dense algebra compares smooth kernels only."""

from __future__ import annotations

from dataclasses import replace

from sklearn.gaussian_process.kernels import Matern

from sumgp.priors import given_candidate, rougher_candidates
from sumgp.solvers import Automatic, markov
from sumgp.strategies.markov_fits import as_rough_as_the_data, fit_time_series
from sumgp.strategies.problem import FitProblem, Fitted, Strategy


def fit_if_rough(strategy: Strategy, problem: FitProblem) -> Fitted | None:
    """A fit by Markov(); None where kernel or solver were chosen, with several inputs, or where rows are smooth."""
    settled = not problem.default_kernels or not isinstance(problem.solver, Automatic)
    if settled or problem.split is not None or problem.x.shape[1] > 1 or not strategy.takes_long_series:
        return None
    series = replace(problem, solver=markov.Markov(), default_kernels=False)
    kinds = (*given_candidate(Matern(nu=2.5), series.half_range), *rougher_candidates(series.half_range, True))
    priors = replace(series, candidates=kinds).priors("identity")
    chosen_prior = as_rough_as_the_data(series, priors, None, None)
    kind = next(kind for kind, prior in zip(kinds, priors, strict=True) if prior is chosen_prior)
    if kind is kinds[0]:
        return None
    return fit_time_series(replace(series, candidates=(kind,), rougher=()), strategy.series_plan(series))
