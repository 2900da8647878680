"""Regression on one input in linear time, in state-space form."""

from sumgp.solvers.markov.evidence import (
    LawRows,
    Markov,
    MarkovEvidence,
    MarkovObjectiveEvidence,
    evidence,
    has_markov_form,
    markov_terms,
    observed_series,
    state_space_prior,
)
from sumgp.solvers.markov.law import law_smooth
from sumgp.solvers.markov.posterior import MarkovPosterior, MarkovPrior, markov_prior, predict, sample, smooth
from sumgp.solvers.markov.state_space import MaternTerm, TimeSeries, time_series, with_rows, with_times
