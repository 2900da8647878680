"""Searching, drawing and weighting hyperparameters."""

from sumgp.hyperparameters.average import Integration, curvature, integrate
from sumgp.hyperparameters.optimise import CURVATURE_FLOOR, Evidence, MapEstimate, Objective, maximise, starting_points
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
    "maximise",
    "row_spacing",
    "starting_points",
]
