"""Searching, drawing and weighting hyperparameters."""

from sumgp.hyperparameters.average import Integration, curvature, integrate
from sumgp.hyperparameters.latent_starts import latent_starts
from sumgp.hyperparameters.objective import Evidence, Objective
from sumgp.hyperparameters.optimise import MapEstimate, maximise, starting_points
from sumgp.hyperparameters.proposal import CURVATURE_FLOOR
from sumgp.hyperparameters.scan import Scan, clustered_rows, row_spacing

__all__ = [
    "CURVATURE_FLOOR",
    "Evidence",
    "Integration",
    "MapEstimate",
    "Objective",
    "Scan",
    "clustered_rows",
    "curvature",
    "integrate",
    "latent_starts",
    "maximise",
    "row_spacing",
    "starting_points",
]
