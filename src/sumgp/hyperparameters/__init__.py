"""Searching, drawing and weighting hyperparameters."""

from sumgp.hyperparameters.average import Integration, curvature, integrate
from sumgp.hyperparameters.objective import Evidence, Objective
from sumgp.hyperparameters.optimise import MapEstimate, maximise
from sumgp.hyperparameters.proposal import CURVATURE_FLOOR

__all__ = [
    "CURVATURE_FLOOR",
    "Evidence",
    "Integration",
    "MapEstimate",
    "Objective",
    "curvature",
    "integrate",
    "maximise",
]
