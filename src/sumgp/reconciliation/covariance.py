"""The covariance of forecast errors, from few past errors of many series."""

from __future__ import annotations

import numpy as np

from sumgp.errors import DataError, worded


def shrunk_covariance(errors: np.ndarray) -> np.ndarray:
    """(T, T) covariance of the errors (m, T) about zero, correlations shrunk towards none.

    With standardised errors z and r_ij the mean of w_kij = z_ki z_kj over the m rows, the share taken off is

        lambda = sum_{i != j} Var(r_ij) / sum_{i != j} r_ij^2,   Var(r_ij) = sum_k (w_kij - r_ij)^2 / (m (m - 1)),

    the value that makes the expected squared error of the correlations least (Schafer and Strimmer, 2005). It makes the
    matrix positive definite even where there are more series than rows.
    """
    if errors.ndim != 2 or len(errors) < 3 or not np.all(np.isfinite(errors)):
        shape = f"shape {errors.shape}" if errors.ndim != 2 or len(errors) < 3 else "values that are not finite"
        raise DataError(worded("errors", "at least three rows of finite past errors", shape, "drop incomplete rows"))
    sd = np.sqrt(np.mean(errors**2, axis=0))
    if np.any(sd == 0):
        which = int(np.flatnonzero(sd == 0)[0])
        raise DataError(worded("errors", "errors of every series", f"only zeros in column {which}", "give a covariance"))
    z = errors / sd
    m = len(z)
    r = z.T @ z / m
    # sum_k (w_kij - r_ij)^2 = sum_k z_ki^2 z_kj^2 - m r_ij^2
    spread = ((z**2).T @ z**2 - m * r**2) / (m * (m - 1))
    off = ~np.eye(len(r), dtype=bool)
    total = np.sum(r[off] ** 2)
    share = 1.0 if total == 0 else float(np.clip(np.sum(spread[off]) / total, 0.0, 1.0))
    return sd[:, None] * (share * np.eye(len(r)) + (1.0 - share) * r) * sd[None, :]
