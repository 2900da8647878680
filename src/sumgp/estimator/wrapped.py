"""Angles that were cut to one turn: they jump where the curve goes on, which no smooth function follows."""

from __future__ import annotations

import numpy as np

from sumgp.errors import doubted
from sumgp.laws import Law, typical_rows
from sumgp.strategies import FitProblem

TURNS = (2.0 * np.pi, 360.0, 24.0, 1.0)  # radians, degrees, hours, and phases from 0 to 1
JUMP = 0.75  # of a turn, between neighbouring rows: less may be a fast one
RANGE = 1.2  # turns: noise leads a little beyond both ends
SAME = 1e-9  # residual, in units of the law's terms


def wrapped_angle(problem: FitProblem, law: Law) -> str:
    """What a status must say of an output that jumps by a turn along the one input, where a turn more is the same to the
    law; empty where none does. Warns.
    """
    data, scaling = problem.data, problem.scaling
    if data.n_inputs != 1:
        return ""
    f = np.ones((len(data.x), law.n_columns))
    f[:, : data.y.shape[1]] = scaling.y_shift + scaling.y_scale * typical_rows(data, scaling)
    order = np.argsort(data.x[:, 0], kind="stable")
    for t, name in enumerate(data.output_names):
        rows = order[~np.isnan(data.y[order, t])]
        steps = np.abs(np.diff(data.y[rows, t]))
        for turn in TURNS:
            if np.any(steps > JUMP * turn) and np.ptp(data.y[rows, t]) < RANGE * turn and _is_same(law, f, data.x, t, turn):
                first, next_ = rows[np.argmax(steps)], rows[np.argmax(steps) + 1]
                words = f"{name!r} jumps by a turn of {turn:.4g} between rows {first} and {next_}"
                return doubted(words, ", which the law does not see; let the angle go on beyond a turn, e.g. with np.unwrap")
    return ""


def _is_same(law: Law, f: np.ndarray, x: np.ndarray, t: int, turn: float) -> bool:
    """Whether a turn more of output t leaves the law as it is, and half a turn does not."""

    def change(by: float) -> float:
        moved = f.copy()
        moved[:, t] += by
        with np.errstate(all="ignore"):
            size = np.abs(law.residual(moved, x) - law.residual(f, x)) / law.magnitude(f, x)
        return float(np.max(np.nan_to_num(size, nan=np.inf)))

    return change(turn) < SAME < change(0.5 * turn)
