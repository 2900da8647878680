"""Regression with Gaussian noise: dense, Kronecker, in weight space, and for time series in linear time."""

from sumgp.solvers.markov import MarkovPosterior, MarkovPrior, markov_prior, predict, sample, smooth
from sumgp.solvers.markov_evidence import MarkovEvidence, evidence
from sumgp.solvers.markov_law import LawSmooth, law_smooth
from sumgp.solvers.pointlaw import PointLaw, project
from sumgp.solvers.statespace import MaternTerm
from sumgp.solvers.timeseries import TimeSeries, time_series, with_rows, with_times

__all__ = [
    "LawSmooth",
    "MarkovEvidence",
    "MarkovPosterior",
    "MarkovPrior",
    "MaternTerm",
    "PointLaw",
    "TimeSeries",
    "evidence",
    "law_smooth",
    "markov_prior",
    "predict",
    "project",
    "sample",
    "smooth",
    "time_series",
    "with_rows",
    "with_times",
]
