"""Scores of one problem, fitted with the law and without."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

import sumgp
from families.family import Family, Problem
from sumgp.prediction import Posterior

LEVEL = 0.95  # of the intervals
LOW = 0.85  # coverage below which such intervals mislead
DRAWS = 40  # of the posterior, that its own intervals are to cover
STRIDE = 4  # between the prediction points of these draws


def scored(family: Family, seed: int) -> dict[str, Any]:
    """A record: error, coverage and CPU time of the default fit and of the fit that knows no law."""
    problem = family.problem(seed)
    record: dict[str, Any] = {"family": family.name, "seed": seed}
    return record | {"no law": _fitted(family, problem, sumgp.Unconstrained()), "law": _fitted(family, problem, None)}


def _fitted(family: Family, problem: Problem, strategy: sumgp.Unconstrained | None) -> dict[str, Any]:
    """``rmse`` is in standard deviations of each output's truth, ``coverage`` the share of truths inside the intervals."""
    gp = sumgp.ConstrainedGP(
        list(family.laws),
        outputs=family.outputs,
        inputs=family.inputs,
        constants=problem.constants or None,
        strategy=strategy,
        groups=family.groups,
    )
    start = time.process_time()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        posterior = gp.fit(problem.x, problem.y).posterior(problem.x_test)
        lower, upper = posterior.interval(LEVEL)
    seconds = time.process_time() - start
    report, sd = gp.fit_report_, problem.truth.std(axis=0)
    return {
        "rmse": float(np.sqrt(np.mean(((posterior.mean - problem.truth) / sd) ** 2))),
        "coverage": float(np.mean((problem.truth >= lower) & (problem.truth <= upper))),
        "low_if_exact": low_if_exact(posterior, lower, upper),
        "width": float(np.mean((upper - lower) / sd)),
        "cpu_seconds": seconds,
        "status": report.status,
        "taper": report.details.get("taper"),
        "effective": report.details.get("effective_sample_size"),
        "temperature": report.details.get("temperature"),
        "warnings": [str(w.message)[:200] for w in said if issubclass(w.category, sumgp.SumGPWarning)],
    }


def low_if_exact(posterior: Posterior, lower: np.ndarray, upper: np.ndarray) -> float:
    """Share of draws of the posterior of which less than LOW lies inside its intervals: how often that happens by chance.

    The outputs of a law err together, and at neighbouring points too: a few errors decide on all prediction points.
    """
    few = slice(None, None, STRIDE)
    draws = replace(posterior, x=posterior.x[few]).sample(DRAWS, random_state=0)
    inside = np.mean((draws >= lower[few]) & (draws <= upper[few]), axis=(1, 2))
    return float(np.mean(inside < LOW))
