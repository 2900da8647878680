"""Conditioning a Gaussian on a nonlinear law at many points at once, by iterated linearisation.

Given f ~ N(m, P) over n points with C columns each, find the most probable f with g(f, x) = 0: Gauss-Newton on
q^T P q / 2 + |g|^2 / (2 s^2) with f = m + P q, the law's sd s annealed from the size of its own uncertainty downwards.
Globalised by a line search; a second-order correction keeps full steps acceptable near a curved law (Maratos effect).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sumgp.errors import Status
from sumgp.laws import FunctionLaw, UnitFreeLaw
from sumgp.numerics import cholesky, pivoted_cholesky, solve_cholesky

# Of the law's sd, in units of what the data leave open of it; at the last the law holds to 1e-3 sds.
LEVELS = (1.0, 0.1, 0.01, 1e-3)
REPEATED = 1e-11  # a linear row with less variance than this share of its own, given the others, repeats them
ROUND_OFF = 1e-13  # of the largest variance: rows are not asked to hold more sharply
INNER_STEPS = 12  # of one level; what is left to do the next one takes up
LAST_STEPS = 60  # where the solution is wanted to round-off
ROUGH = 3e-2  # steps below this many posterior sds end a level
ENOUGH = 1e-5  # and the last one of a solution that is averaged with others
FULL = 1e-10  # and of one that stands alone
STEEPEST = 1e100  # slope of a law far from its points: squares of steeper ones overflow
SHORTEST = 1e-3  # of a full step: a step below 1/512 that does not lower the merit ends a level
UNMET = 100.0  # residual, in the law's sd at the last level, above which a law counts as infeasible
EQUAL = 1e-6  # evidences closer than this differ by round-off only, and so do misfits relative to their size
MANY_TURNS = 0.15  # share of the law's points


@dataclass(frozen=True)
class LawSolution:
    """The last linearisation: what predictions elsewhere are conditioned on."""

    f: np.ndarray  # (n, C)
    J: np.ndarray  # (n, R, C)
    w: np.ndarray  # (n R,) multipliers: f = m + P J^T w
    factor: np.ndarray  # lower factor of J P J^T + s^2
    variances: np.ndarray  # (n R,) s^2
    status: str
    steps: int
    misfit: float  # q^T P q: squared distance the law asks for, in posterior sds
    met: bool = True  # False where no f near the mean obeys the law

    @property
    def q(self) -> np.ndarray:
        """(n, C) J^T w."""
        n, R, _ = self.J.shape
        return np.einsum("nrc,nr->nc", self.J, self.w.reshape(n, R))


@dataclass(frozen=True)
class _Problems:
    """Gaussians N(m, P) of the same points, all on their way onto one law; each as if it were alone, to the last bit."""

    law: UnitFreeLaw
    x: np.ndarray  # (B n, D): the points once for each
    m: np.ndarray  # (B, n, C)
    P: np.ndarray  # (B, n, C, nC): rows grouped by point

    @classmethod
    def of(cls, law: UnitFreeLaw, x: np.ndarray, m: np.ndarray, P: np.ndarray) -> _Problems:
        return cls(law, np.tile(x, (len(m), 1)), m, P.reshape(*m.shape, -1))

    def only(self, chosen: np.ndarray) -> _Problems:
        if len(chosen) == len(self.m):
            return self
        return _Problems(self.law, self.x, self.m[chosen], self.P[chosen])

    def residual(self, f: np.ndarray) -> np.ndarray:
        """(b, n, R) at points f (b, n, C) of some of them."""
        return self._asked(self.law.residual, f)

    def jacobian(self, f: np.ndarray) -> np.ndarray:
        """(b, n, R, C)."""
        return self._asked(self.law.jacobian, f)

    def _asked(self, function: Callable[[np.ndarray, np.ndarray], np.ndarray], f: np.ndarray) -> np.ndarray:
        b, n, C = f.shape
        if not (isinstance(self.law.law, FunctionLaw) and self.law.law.by_point):
            return np.stack([function(each, self.x[:n]) for each in f])
        values = function(f.reshape(b * n, C), self.x[: b * n])
        return values.reshape(b, n, *values.shape[1:])

    def blocks(self) -> np.ndarray:
        """(B, n, C, C) covariances at each point."""
        B, n, C = self.m.shape
        return np.ascontiguousarray(np.einsum("bicid->bicd", self.P.reshape(B, n, C, n, C)))


def solve_laws(
    law: UnitFreeLaw, x: np.ndarray, m: np.ndarray, P: np.ndarray, start: np.ndarray | None, tolerance: float
) -> list[LawSolution]:
    """Condition each of several f ~ N(m, P), m (B, n, C), P (B, nC, nC) point by point, on the law at x (n, D).

    ``start`` (B, n, C), None = m. ``tolerance`` is the last step's size in posterior standard deviations.
    """
    B, problems = len(m), _Problems.of(law, x, m, P)
    J = problems.jacobian(m)
    blocks = problems.blocks()
    sizes = np.sqrt(np.maximum(np.einsum("bnrc,bncd,bnrd->bnr", J, blocks, J), 0.0)).reshape(B, -1)
    largest = np.max(np.einsum("bncc->bnc", blocks), axis=(1, 2), initial=0.0)
    floor = ROUND_OFF * np.sum(J**2, axis=3).reshape(B, -1) * largest[:, None]
    typical = np.sqrt(np.mean(sizes**2, axis=1, keepdims=True))
    sizes = np.maximum(sizes, 1e-2 * np.where(typical > 0, typical, 1.0))
    f, q = m if start is None else start, np.zeros_like(m)
    steps, most = np.zeros(B, dtype=int), 0
    # A start that was found with a soft law needs no soft levels again.
    levels = LEVELS if start is None else LEVELS[-2:]
    for level in levels:
        variances = (level * sizes) ** 2 + floor
        warm = start is not None and level == levels[0]
        final = level == levels[-1]
        limit = LAST_STEPS if final and tolerance < ENOUGH else INNER_STEPS
        last = _anneal(problems, f, q, _Level(variances, tolerance if final else ROUGH, limit), warm)
        f, q = last.at.f, last.at.q
        steps, most = steps + last.steps, most + limit
    misfits = np.sum((q * (f - m)).reshape(B, -1), axis=1)
    left = np.abs(last.at.g).reshape(B, -1) / (levels[-1] * sizes)
    result = []
    for b in range(B):
        status: str = Status.STEP_LIMIT if steps[b] >= most else Status.CONVERGED
        met = bool(np.all(np.isfinite(f[b]))) and float(np.max(left[b], initial=0.0)) <= UNMET
        if not met:
            worst = int(np.argmax(np.where(np.isfinite(left[b]), left[b], np.inf))) // law.n_rows
            status = Status.LAW_INFEASIBLE.at(f"near x = {np.array2string(x[worst], precision=4)}")
        solved = (f[b], last.J[b], last.at.w[b], last.factors[b], variances[b])
        result.append(LawSolution(*solved, status, int(steps[b]), float(misfits[b]), met))
    return result


def solve_linear_law(law: UnitFreeLaw, x: np.ndarray, m: np.ndarray, P: np.ndarray) -> LawSolution:
    """The same for a linear law, in one exact step: f = m + P J^T (J P J^T)^-1 (S - F m).

    Rows that the others imply under a smooth prior are left out (they get a variance far above their own), so that no
    jitter is needed on the rows that count.
    """
    n, C = m.shape
    J = law.jacobian(m, x)
    by_point = np.ascontiguousarray(P.reshape(n, C, n * C).transpose(0, 2, 1))  # P is symmetric
    PJ = (by_point @ J.transpose(0, 2, 1)).transpose(1, 0, 2).reshape(n * C, -1)
    A = np.einsum("nrc,nck->nrk", J, PJ.reshape(n, C, -1)).reshape(PJ.shape[1], -1)
    size = np.sqrt(np.maximum(np.diagonal(A), 0.0))
    live = np.flatnonzero(size > 0)
    scaled = A[np.ix_(live, live)] / np.outer(size[live], size[live])
    variances = np.where(size > 0, 1e12 * size**2, 1.0)
    if len(live):
        variances[live[pivoted_cholesky(scaled, REPEATED)[0]]] = 0.0
    factor = cholesky(A + np.diag(variances), "law")
    w = solve_cholesky(factor, -law.residual(m, x).ravel())
    f = m + (PJ @ w).reshape(n, C)
    left = np.abs(law.residual(f, x)).ravel() / np.where(size > 0, size, np.inf)
    status: str = Status.CONVERGED
    if float(np.max(left, initial=0.0)) > 0.1:
        worst = int(np.argmax(left)) // law.n_rows
        status = Status.PRIOR_MISFIT.at(f"near x = {np.array2string(x[worst], precision=4)}")
    misfit = float(w @ A @ w)
    return LawSolution(f, J, w, factor, variances, status, 1, misfit)


def law_evidences(
    law: UnitFreeLaw, x: np.ndarray, m: np.ndarray, P: np.ndarray, law_sd: np.ndarray, starts: Sequence[np.ndarray | None]
) -> tuple[np.ndarray, np.ndarray]:
    """Log evidences (B,) of the law, -merit - logdet(I + J P J^T / s^2) / 2 (Laplace), and the f (B, n, C) of each.

    For several Gaussians, m (B, n, C) and P (B, nC, nC). ``law_sd`` (nR,) is the s within which the law is asked to hold.
    The search begins at each of ``starts`` (None = m); the highest evidence counts.
    """
    problems = _Problems.of(law, x, m, P)
    variances = np.tile(law_sd**2, (len(m), 1))
    best, where = np.full(len(m), -np.inf), m.copy()
    for start in starts:
        f = m if start is None else np.broadcast_to(start, m.shape)
        last = _anneal(problems, f, np.zeros_like(m), _Level(variances, ROUGH, INNER_STEPS), start is not None)
        logs = [float(np.sum(np.log(np.diagonal(factor)) - np.log(law_sd))) for factor in last.factors]
        values = -_merit(last.at.q, last.at.f - m, last.at.g, variances) - logs
        better = (values > best + EQUAL) | (start is starts[0])
        best[better], where[better] = values[better], last.at.f[better]
    return best, where


def least_misfit(solutions: Sequence[LawSolution]) -> LawSolution:
    """The one of least misfit among those that meet the law."""
    met = [s for s in solutions if s.met] or solutions
    least = min(s.misfit for s in met)
    # Branches that are mirror images fit equally well: the first of them, whatever round-off says.
    return next(s for s in met if s.misfit <= least + EQUAL * (1.0 + abs(least)))


def turns(law: UnitFreeLaw, x: np.ndarray, m: np.ndarray, sd: np.ndarray) -> bool:
    """True if at many points x the law's slope changes its sign within two sds (n, C) of m; at a few it always does."""
    found = np.zeros(len(x), dtype=bool)
    for c in range(sd.shape[1]):
        step = np.zeros_like(sd)
        step[:, c] = 2.0 * sd[:, c]
        below, above = law.jacobian(m - step, x), law.jacobian(m + step, x)
        found |= np.any(np.sign(below) * np.sign(above) < 0, axis=(1, 2))
    return float(found.mean()) > MANY_TURNS


class _Level(NamedTuple):
    """One variance (B, n R) of the law, the step in posterior sds that ends it, and the most steps."""

    variances: np.ndarray
    tolerance: float
    most_steps: int


class _Points(NamedTuple):
    """Where steps lead: f = m + P q, residuals g and merits (B,); ``w`` (B, n R) are the multipliers of full steps."""

    w: np.ndarray
    f: np.ndarray
    q: np.ndarray
    g: np.ndarray
    merit: np.ndarray

    def at(self, chosen: np.ndarray) -> _Points:
        return _Points(*(part[chosen] for part in self))

    def put(self, chosen: np.ndarray, others: _Points) -> None:
        for part, other in zip(self, others, strict=True):
            part[chosen] = other


class _Linear(NamedTuple):
    """The law linearised at points: J (B, n, R, C), P J^T (B, nC, nR) and the lower factors of J P J^T + s^2."""

    J: np.ndarray
    PJ: np.ndarray
    factors: list[np.ndarray]


class _Annealed(NamedTuple):
    """Where the steps of a level ended, with the last linearisations and how many steps (B,) were taken."""

    at: _Points
    J: np.ndarray
    factors: list[np.ndarray]
    steps: np.ndarray


def _linearised(problems: _Problems, f: np.ndarray, variances: np.ndarray) -> _Linear:
    J = np.clip(problems.jacobian(f), -STEEPEST, STEEPEST)
    B, n, R, C = J.shape
    # P is symmetric: its rows are multiplied, so that nothing large is copied.
    PJ = (J @ problems.P).reshape(B, n * R, n * C).transpose(0, 2, 1)
    A = (J @ PJ.reshape(B, n, C, n * R)).reshape(B, n * R, n * R)
    np.einsum("bii->bi", A)[...] += variances
    return _Linear(J, PJ, [cholesky(each, "law") for each in A])


def _anneal(problems: _Problems, f: np.ndarray, q: np.ndarray, level: _Level, warm: bool) -> _Annealed:
    """Gauss-Newton at one law variance, of each until its steps are small against the posterior sd."""
    B = len(f)
    g = problems.residual(f)
    merit = np.full(B, np.inf) if warm else _merit(q, f - problems.m, g, level.variances)
    ended = _Points(np.zeros(level.variances.shape), f.copy(), q.copy(), g, merit)
    sd = np.sqrt(np.maximum(np.einsum("bncc->bnc", problems.blocks()), 1e-300))
    J, factors, steps = np.empty((*g.shape, f.shape[2])), [np.empty(0)] * B, np.zeros(B, dtype=int)
    live, here, variances = np.arange(B), ended, level.variances
    while len(live):
        linear = _linearised(problems, here.f, variances)
        aim = _corrected(problems, linear, here, variances)
        ended.w[live], J[live] = aim.w, linear.J
        for b, factor in zip(live, linear.factors, strict=True):
            factors[b] = factor
        moved, taken = _lowered(problems, here, aim, variances)
        small = np.max(np.abs(moved.f - here.f) / sd[live], axis=(1, 2), initial=0.0) < level.tolerance
        ended.put(live[taken], moved.at(taken))
        steps[live] += 1
        going = np.flatnonzero(taken & ~small & (steps[live] < level.most_steps))
        problems, live = problems.only(going), live[going]
        here, variances = ended.at(live), level.variances[live]
    return _Annealed(ended, J, factors, steps)


def _lowered(problems: _Problems, here: _Points, aim: _Points, variances: np.ndarray) -> tuple[_Points, np.ndarray]:
    """The first of 1, 1/2, 1/4, ... of each step that does not raise its merit, and (B,) whether there is one."""
    limit = here.merit * (1.0 + 1e-12) + 1e-12
    taken = aim.merit <= limit
    if taken.all():
        return aim, taken
    moved, length = _Points(*(part.copy() for part in aim)), 0.5
    while length > SHORTEST and not taken.all():
        high = np.flatnonzero(~taken)
        a, b = here.at(high), aim.at(high)
        f, q = a.f + length * (b.f - a.f), a.q + length * (b.q - a.q)
        g = problems.residual(f)
        moved.put(high, _Points(b.w, f, q, g, _merit(q, f - problems.m[high], g, variances[high])))
        taken = moved.merit <= limit
        length *= 0.5
    return moved, taken


def _corrected(problems: _Problems, linear: _Linear, here: _Points, variances: np.ndarray) -> _Points:
    """Full steps, then up to three re-projections with the same factors, keeping the best of each by merit."""
    best: _Points | None = None
    live, f, g = np.arange(len(here.f)), here.f, here.g
    for _ in range(4):
        J, m = linear.J[live], problems.m[live]
        right = (np.einsum("bnrc,bnc->bnr", J, f - m) - g).reshape(len(live), -1)
        finite = np.isfinite(right).all(axis=1)
        right[~finite] = 0.0  # leads back to the mean
        w = np.stack([solve_cholesky(linear.factors[b], each) for b, each in zip(live, right, strict=True)])
        displacement = np.stack([linear.PJ[b] @ each for b, each in zip(live, w, strict=True)]).reshape(f.shape)
        f = m + displacement
        g = problems.residual(f)
        q = np.einsum("bnrc,bnr->bnc", J, w.reshape(g.shape))
        points = _Points(w, f, q, g, _merit(q, displacement, g, variances[live]))
        if best is None:
            best, going = points, finite
        else:
            before = best.merit[live]
            lower = finite & (points.merit < before)
            best.put(live[lower], points.at(lower))
            going = finite & (points.merit < 0.999 * before)
        live, f, g = live[going], f[going], g[going]
        if not len(live):
            break
    assert best is not None
    return best


def _merit(q: np.ndarray, displacement: np.ndarray, g: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """(B,) q^T P q / 2 + |g|^2 / (2 s^2)."""
    # Far from the law residuals may have squares that overflow: as bad as can be, and no cause for a warning.
    with np.errstate(over="ignore", invalid="ignore"):
        moved = np.sum((q * displacement).reshape(len(q), -1), axis=1)
        value = 0.5 * moved + 0.5 * np.sum(g.reshape(len(g), -1) ** 2 / variances, axis=1)
    return np.where(np.isfinite(value), value, np.inf)
