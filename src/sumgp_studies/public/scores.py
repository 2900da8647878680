"""Scores of one method on one case: a record for each part."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from sumgp_studies.public.case import Case
from sumgp_studies.public.methods import Predict

ROUND_OFF = 1e-6  # of an output's size: stored values have six digits or more


def scored(case: Case, fit: Callable[[Case], Predict]) -> list[dict[str, Any]]:
    """Mean square error in units of the case's scale, coverage, and negative log density of values in that unit."""
    start = time.process_time()
    predict = fit(case)
    seconds = time.process_time() - start
    records = []
    for part in case.parts:
        found = predict(part.x, part.y)
        seen = ~np.isnan(part.y)
        error = ((found.mean - part.y) / case.scale)[seen]
        # A law may determine an output: its interval is then as narrow as the round-off of the stored values.
        slack = ROUND_OFF * case.scale
        inside = ((found.lower - slack <= part.y) & (part.y <= found.upper + slack))[seen]
        records.append(
            {
                "set": case.set_name,
                "case": case.label,
                "part": part.name,
                "rows": len(case.x),
                "values": int(seen.sum()),
                "mse": float(np.mean(error**2)),
                "coverage": float(np.mean(inside)),
                "nlpd": float(np.mean(-(found.log_density + np.log(case.scale))[seen])),
                "cpu": seconds,
            }
        )
    return records
