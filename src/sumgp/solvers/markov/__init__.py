"""Regression on one input in linear time, in state-space form."""

from sumgp.solvers.markov.evidence import (
    LawRows,
    MarkovEvidence,
    MarkovObjectiveEvidence,
    evidence,
    markov_terms,
    observed_series,
    state_space_prior,
)
from sumgp.solvers.markov.law import LawSmooth, PointLaw, law_smooth, project
from sumgp.solvers.markov.posterior import MarkovPosterior, MarkovPrior, markov_prior, predict, sample, smooth
from sumgp.solvers.markov.state_space import MaternTerm, TimeSeries, time_series, with_rows, with_times

__all__ = [
    "LawRows",
    "LawSmooth",
    "MarkovEvidence",
    "MarkovObjectiveEvidence",
    "MarkovPosterior",
    "MarkovPrior",
    "MaternTerm",
    "PointLaw",
    "TimeSeries",
    "evidence",
    "law_smooth",
    "markov_prior",
    "markov_terms",
    "observed_series",
    "predict",
    "project",
    "sample",
    "smooth",
    "state_space_prior",
    "time_series",
    "with_rows",
    "with_times",
]
