"""The law solves of the package, which take many Gaussians at once, for one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sumgp.laws import UnitFreeLaw
from sumgp.lawsolve import ENOUGH, LawSolution, law_evidences, solve_laws


def solve_law(
    law: UnitFreeLaw,
    x: np.ndarray,
    m: np.ndarray,
    P: np.ndarray,
    start: np.ndarray | None = None,
    tolerance: float = ENOUGH,
) -> LawSolution:
    """Condition f ~ N(m, P), m (n, C), P (nC, nC) point by point, on the law at x (n, D)."""
    return solve_laws(law, x, m[None], P[None], None if start is None else start[None], tolerance)[0]


def law_evidence(
    law: UnitFreeLaw,
    x: np.ndarray,
    m: np.ndarray,
    P: np.ndarray,
    law_sd: np.ndarray,
    starts: Sequence[np.ndarray | None] = (None,),
) -> tuple[float, np.ndarray]:
    """Log evidence of the law, and the f (n, C) it is attained at."""
    values, f = law_evidences(law, x, m[None], P[None], law_sd, starts)
    return float(values[0]), f[0]
