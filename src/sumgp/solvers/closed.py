"""Evidence of closed data: rows that meet the law as measured, so that their noise obeys it too.

Noise e of a closed row is independent noise N(0, V) given that F e = 0. With outputs f that obey the law, the imbalance
F y - S of a row is then no measurement of f: p(y | f, closed) = p(y | f) / N(F y - S; 0, F V F^T). So the posterior of f is
that of independent noise, and the evidence differs by a term that holds V alone. Without it V would be driven to zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sumgp.numerics import LOG_2PI
from sumgp.priors import MultitaskPrior
from sumgp.solvers.dense import Evidence


class ClosedRows(NamedTuple):
    """The law at the rows of the data, unit-free: ``F`` (N, R, T), zero where not all of its outputs were measured, and
    the ``imbalance`` (N, R) F y - S, zero there too."""

    F: np.ndarray
    imbalance: np.ndarray

    def of(self, rows: np.ndarray, outputs: np.ndarray) -> ClosedRows:
        """These rows of the data, with the outputs in this order."""
        return ClosedRows(self.F[rows][:, :, outputs], self.imbalance[rows])


def closed_rows(y: np.ndarray, F: np.ndarray, totals: np.ndarray, misprints: tuple[int, ...] = ()) -> ClosedRows:
    """The law F (N, R, T), ``totals`` (N, R) at rows y (N, T) with NaN = missing; rows in ``misprints`` do not count."""
    involved = F != 0
    complete = ~np.any(involved & np.isnan(y)[:, None, :], axis=2) & involved.any(axis=2)
    complete[list(misprints)] = False
    own = np.where(complete[:, :, None], F, 0.0)
    # A row that follows from those before it says nothing more.
    for r in range(1, F.shape[1]):
        own[:, r][np.linalg.matrix_rank(own[:, : r + 1]) <= np.linalg.matrix_rank(own[:, :r])] = 0.0
    said = own.any(axis=2)
    return ClosedRows(own, np.where(said, np.einsum("nrt,nt->nr", own, np.where(np.isnan(y), 0.0, y)) - totals, 0.0))


class ClosedEvidence:
    """log p(y | theta, closed): that of independent noise less the log density of the imbalances, and its gradient."""

    def __init__(self, evidence: Evidence, prior: MultitaskPrior, rows: ClosedRows) -> None:
        self.evidence = evidence
        self.prior = prior
        self.rows = rows
        silent = np.all(rows.F == 0, axis=2)
        self._silent = silent[:, :, None] * np.eye(rows.F.shape[1])
        self._count = int((~silent).sum())

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient."""
        value, gradient = self.evidence(theta)
        noise, place = self.prior.noise, self.prior.noise_slice
        F, c = self.rows
        variances = np.broadcast_to(noise.variances(theta[place]), (len(F), F.shape[2]))
        M = np.einsum("nrt,nt,nst->nrs", F, variances, F) + self._silent
        inverse = np.linalg.inv(M)
        a = np.einsum("nrs,ns->nr", inverse, c)
        value += 0.5 * float(np.sum(a * c) + np.linalg.slogdet(M)[1].sum() + self._count * LOG_2PI)
        by_variance = 0.5 * np.einsum("nrt,nrs,nst->nt", F, inverse - a[:, :, None] * a[:, None, :], F)
        gradient = gradient.copy()
        gradient[place] += noise.pull_back(theta[place], by_variance)
        return value, gradient

    def value(self, theta: np.ndarray) -> float:
        """The value alone."""
        return self(theta)[0]
