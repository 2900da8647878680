"""Laws with derivatives that the prior obeys as a whole, and whether the data contradict such a law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sumgp.errors import warn
from sumgp.hyperparameters import Scan
from sumgp.priors import MultitaskPrior
from sumgp.strategies.averaging import fit_candidates, mix
from sumgp.strategies.problem import FitProblem, Fitted
from sumgp.strategies.weight_component import plain_component

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
    warn(f"{text}; check its signs, its factors and the units of inputs and outputs")
    return f"converged, but {text}"


def fit_eliminated(problem: FitProblem, draws: int) -> Fitted:
    """The posterior of a prior that obeys the whole law: nothing is left to impose."""
    fitted = fit_candidates(problem, problem.priors("identity"))
    components, weights, report = mix(
        problem, fitted, lambda prior, theta: plain_component(problem, prior, theta), None, draws
    )
    best = fitted.best
    contradiction = disagreement(problem, fitted.priors[best], fitted.maxima[best].theta)
    return Fitted(components, weights, None, {"status": contradiction or report["hyperparameter_status"], **report})
