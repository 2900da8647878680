"""Searching, drawing and weighting hyperparameters."""

from sumgp.hyperparameters.average import Integration, curvature, integrate
from sumgp.hyperparameters.lengthscale import OneOutput, OutputFit, fit_output
from sumgp.hyperparameters.optimise import (
    CURVATURE_FLOOR,
    MapEstimate,
    Objective,
    latent_size,
    latent_starts,
    maximise,
    starting_points,
)
from sumgp.hyperparameters.own_lengths import own_length_families
from sumgp.hyperparameters.residual_noise import noise_told
from sumgp.hyperparameters.scan import Scan, around, clustered_rows, gappy, noises_differ, pool, row_spacing, share_noise
