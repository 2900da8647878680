"""Outputs that were never measured: whether the law leaves open on which of its branches they lie."""

from __future__ import annotations

import numpy as np

from sumgp.errors import warn
from sumgp.laws import Law
from sumgp.prediction import Posterior

REACH = 3.0  # how far another value is looked for, in the largest value of the output
TRIED = 200  # values of the output at each row
OPEN = 0.5  # share of the rows


def open_branch(posterior: Posterior, law: Law, measured: np.ndarray) -> str:
    """What a status must say where another value of an output that was never measured meets the law as well, the other
    outputs being what they are; empty elsewhere. ``measured`` (T,): outputs with at least one measurement. Warns."""
    f = np.concatenate([posterior.mean, posterior.law_columns()], axis=1)
    if law.derivatives or f.shape[1] != law.n_columns:
        return ""
    for t in np.flatnonzero(~measured):
        if np.mean(_other_values(posterior, law, f, int(t))) > OPEN:
            name = posterior.output_names[t]
            words = f"the law leaves open on which of its branches {name!r} lies, which was never measured"
            warn(f"{words}; measure it once, or bound it, e.g. '{name} >= 0'")
            return f"converged, but {words}"
    return ""


def _other_values(posterior: Posterior, law: Law, f: np.ndarray, t: int) -> np.ndarray:
    """(n,) True where the one law that holds output t is met by two values of it or more."""
    with np.errstate(all="ignore"):
        rows = np.flatnonzero(np.any(law.jacobian(f, posterior.x)[:, :, t] != 0, axis=0))
        if len(rows) != 1:
            return np.zeros(len(f), dtype=bool)
        reach = REACH * np.abs(f[:, t]).max()
        values = np.linspace(-reach, reach, TRIED)
        tried = np.repeat(f[:, None, :], TRIED, axis=1)
        tried[:, :, t] = values
        x = np.repeat(posterior.x, TRIED, axis=0)
        residual = law.residual(tried.reshape(-1, f.shape[1]), x)[:, rows[0]].reshape(len(f), TRIED)
    allowed = np.isfinite(residual)
    if posterior.ends is not None:
        limits = posterior.ends.limits
        allowed &= (values >= limits.lower[:, t : t + 1]) & (values <= limits.upper[:, t : t + 1])
    crossed = (np.sign(residual[:, 1:]) != np.sign(residual[:, :-1])) & allowed[:, 1:] & allowed[:, :-1]
    # A pole changes sign without a value that meets the law.
    small = np.minimum(np.abs(residual[:, 1:]), np.abs(residual[:, :-1])) < np.median(np.abs(residual), axis=1)[:, None]
    return np.sum(crossed & small, axis=1) > 1
