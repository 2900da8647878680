"""Scores of one problem, fitted with the law and without."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

import sumgp
from families.family import Family, Problem

LEVEL = 0.95  # of the intervals


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
    report, sd = gp.fit_report_, problem.truth.std(axis=0)
    return {
        "rmse": float(np.sqrt(np.mean(((posterior.mean - problem.truth) / sd) ** 2))),
        "coverage": float(np.mean((problem.truth >= lower) & (problem.truth <= upper))),
        "width": float(np.mean((upper - lower) / sd)),
        "cpu_seconds": time.process_time() - start,
        "status": report.status,
        "taper": report.details.get("taper"),
        "effective": report.details.get("effective_sample_size"),
        "temperature": report.details.get("temperature"),
        "warnings": [str(w.message)[:200] for w in said if issubclass(w.category, sumgp.SumGPWarning)],
    }
