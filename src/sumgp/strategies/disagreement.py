"""Whether data contradict a law that the prior obeys: then each output alone explains them far better."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from sumgp.errors import SumGPWarning
from sumgp.hyperparameters import Scan
from sumgp.priors import MultitaskPrior
from sumgp.strategies.problem import FitProblem

# Log evidence by which outputs fitted each on its own are ahead. A law that holds puts them behind: it adds what the
# outputs say about each other (20 for 20 rows of an oscillator). A velocity in the wrong unit puts them ahead by as much.
AHEAD = 10.0


def disagreement(problem: FitProblem, prior: MultitaskPrior, theta: np.ndarray) -> str:
    """What a status must say of a contradiction, also warned of; empty where there is none.

    ``prior`` over latent functions at its most probable ``theta``; compared at the rows that a scan looks at.
    """
    scan = Scan(problem.x, problem.y)
    rows = scan.rows
    alone = scan.log_evidence_alone(prior.kernels[0], prior.kernel_priors[0])
    at_rows = replace(prior, noise=prior.noise.at(rows))
    together = problem.solver.evidence(at_rows, problem.x[rows], problem.y[rows]).value(theta)
    if together > alone - AHEAD:
        return ""
    text = "the data contradict the law with derivatives: each output alone explains them far better"
    warnings.warn(f"{text}; check its signs, its factors and the units of inputs and outputs", SumGPWarning, stacklevel=3)
    return f"converged, but {text}"
