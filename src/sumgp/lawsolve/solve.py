"""Conditioning a Gaussian on a nonlinear law at many points at once, by iterated linearisation.

Given f ~ N(m, P) over n points with C columns each, find the most probable f with g(f, x) = 0: Gauss-Newton on
q^T P q / 2 + |g|^2 / (2 s^2) with f = m + P q, the law's sd s annealed from the size of its own uncertainty downwards.
Globalised by a line search; a second-order correction keeps full steps acceptable near a curved law (Maratos effect).

A second start for nonlinear laws: impose the law at one point after the other, from where outputs are known outwards.
Gauss-Newton from the posterior mean takes the branch of the law that is nearest to it point by point. Where an output was
not measured, the mean runs back to its average, and the nearest branch may be one that no smooth curve reaches. Conditioning
on the law one point at a time carries value and slope along, also through turning points where two branches cross.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from sumgp.errors import Status
from sumgp.laws import UnitFreeLaw
from sumgp.numerics import backtrack, cholesky, pivoted_cholesky, solve_cholesky

# Of the law's sd, in units of what the data leave open of it; at the last the law holds to 1e-3 sds.
LEVELS = (1.0, 0.1, 0.01, 1e-3)
REPEATED = 1e-11  # a linear row with less variance than this share of its own, given the others, repeats them
ROUND_OFF = 1e-13  # of the largest variance: rows are not asked to hold more sharply
INNER_STEPS = 12  # of one level; what is left to do the next one takes up
LAST_STEPS = 60  # where the solution is wanted to round-off
ROUGH = 3e-2  # steps below this many posterior sds end a level
ENOUGH = 1e-5  # and the last one of a solution that is averaged with others
FULL = 1e-10  # and of one that stands alone
SHORTEST = 1e-3  # of a full step: a step below 1/512 that does not lower the merit ends a level
UNMET = 100.0  # residual, in the law's sd at the last level, above which a law counts as infeasible
EQUAL = 1e-6  # evidences closer than this differ by round-off only


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

    def widened(self, factor: float) -> LawSolution:
        """The solution for a covariance factor^2 P: the same f."""
        return replace(
            self,
            w=self.w / factor**2,
            factor=factor * self.factor,
            variances=factor**2 * self.variances,
            misfit=self.misfit / factor**2,
        )


@dataclass(frozen=True)
class _Problem:
    law: UnitFreeLaw
    x: np.ndarray
    m: np.ndarray
    by_point: np.ndarray  # (n, nC, C): P with its columns grouped by point

    def times(self, J: np.ndarray) -> np.ndarray:
        """P J^T (nC, nR)."""
        n, R, _ = J.shape
        return np.matmul(self.by_point, J.transpose(0, 2, 1)).transpose(1, 0, 2).reshape(self.by_point.shape[1], n * R)


def _by_point(P: np.ndarray, n: int) -> np.ndarray:
    """(n, nC, C): the columns of P (nC, nC) grouped by point. P is symmetric, and its rows lie together in memory."""
    return np.ascontiguousarray(P.reshape(n, -1, len(P)).transpose(0, 2, 1))


def solve_law(
    law: UnitFreeLaw,
    x: np.ndarray,
    m: np.ndarray,
    P: np.ndarray,
    start: np.ndarray | None = None,
    tolerance: float = ENOUGH,
) -> LawSolution:
    """Condition f ~ N(m, P), m (n, C), P (nC, nC) point by point, on the law at x (n, D).

    ``tolerance`` is the last step's size in posterior standard deviations.
    """
    n, C = m.shape
    problem = _Problem(law, x, m, _by_point(P, n))
    J = law.jacobian(m, x)
    blocks = P.reshape(n, C, n, C)[np.arange(n), :, np.arange(n), :]
    sizes = np.sqrt(np.maximum(np.einsum("nrc,ncd,nrd->nr", J, blocks, J), 0.0)).ravel()
    floor = ROUND_OFF * np.sum(J**2, axis=2).ravel() * float(np.max(np.einsum("ncc->nc", blocks), initial=0.0))
    typical = float(np.sqrt(np.mean(sizes**2))) or 1.0
    sizes = np.maximum(sizes, 1e-2 * typical)
    f, q = m if start is None else start, np.zeros_like(m)
    steps, most = 0, 0
    # A start that was found with a soft law needs no soft levels again.
    levels = LEVELS if start is None else LEVELS[-2:]
    for level in levels:
        variances = (level * sizes) ** 2 + floor
        warm = start is not None and level == levels[0]
        final = level == levels[-1]
        limit = LAST_STEPS if final and tolerance < ENOUGH else INNER_STEPS
        last = _anneal(problem, f, q, _Level(variances, tolerance if final else ROUGH, limit), warm)
        f, q = last.f, last.q
        steps, most = steps + last.steps, most + limit
    misfit = float(np.sum(q * (f - m)))
    left = np.abs(law.residual(f, x)).ravel() / (levels[-1] * sizes)
    status: str = Status.STEP_LIMIT if steps >= most else Status.CONVERGED
    met = bool(np.all(np.isfinite(f))) and float(np.max(left, initial=0.0)) <= UNMET
    if not met:
        worst = int(np.argmax(np.where(np.isfinite(left), left, np.inf))) // law.n_rows
        status = Status.LAW_INFEASIBLE.at(f"near x = {np.array2string(x[worst], precision=4)}")
    return LawSolution(f, last.linear.J, last.w, last.linear.factor, variances, status, steps, misfit, met)


def solve_linear_law(law: UnitFreeLaw, x: np.ndarray, m: np.ndarray, P: np.ndarray) -> LawSolution:
    """The same for a linear law, in one exact step: f = m + P J^T (J P J^T)^-1 (S - F m).

    Rows that the others imply under a smooth prior are left out (they get a variance far above their own), so that no
    jitter is needed on the rows that count.
    """
    n, C = m.shape
    J = law.jacobian(m, x)
    problem = _Problem(law, x, m, _by_point(P, n))
    PJ = problem.times(J)
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


def law_evidence(
    law: UnitFreeLaw,
    x: np.ndarray,
    m: np.ndarray,
    P: np.ndarray,
    law_sd: np.ndarray,
    starts: Sequence[np.ndarray | None] = (None,),
) -> tuple[float, np.ndarray]:
    """Log evidence of the law, -merit - logdet(I + J P J^T / s^2) / 2 (Laplace), and the f it is attained at.

    ``law_sd`` (nR,) is the s within which the law is asked to hold. The search begins at each of ``starts``
    (None = m); the highest evidence counts.
    """
    problem = _Problem(law, x, m, _by_point(P, len(m)))
    variances = law_sd**2
    best: tuple[float, np.ndarray] | None = None
    for start in starts:
        f = m if start is None else start
        last = _anneal(problem, f, np.zeros_like(m), _Level(variances, ROUGH, INNER_STEPS), start is not None)
        merit = _merit(last.q, last.f - m, law.residual(last.f, x), variances)
        value = -merit - float(np.sum(np.log(np.diagonal(last.linear.factor)) - np.log(law_sd)))
        if best is None or value > best[0] + EQUAL:
            best = value, last.f
    assert best is not None
    return best


class _Level(NamedTuple):
    """One variance (n R,) of the law, the step in posterior sds that ends it, and the most steps."""

    variances: np.ndarray
    tolerance: float
    most_steps: int


class _Linear(NamedTuple):
    """The law linearised at a point: J (n, R, C), P J^T (nC, nR) and the lower factor of J P J^T + s^2."""

    J: np.ndarray
    PJ: np.ndarray
    factor: np.ndarray


class _Annealed(NamedTuple):
    """Where the steps of a level ended, f = m + P q, with its last linearisation and multipliers."""

    f: np.ndarray
    q: np.ndarray
    linear: _Linear
    w: np.ndarray
    steps: int


def _linearised(problem: _Problem, f: np.ndarray, variances: np.ndarray) -> _Linear:
    n, C = f.shape
    J = problem.law.jacobian(f, problem.x)
    PJ = problem.times(J)
    A = np.einsum("nrc,nck->nrk", J, PJ.reshape(n, C, -1)).reshape(PJ.shape[1], -1)
    A[np.diag_indices_from(A)] += variances
    return _Linear(J, PJ, cholesky(A, "law"))


def _anneal(problem: _Problem, f: np.ndarray, q: np.ndarray, level: _Level, warm: bool) -> _Annealed:
    """Gauss-Newton at one law variance until the steps are small against the posterior sd."""
    n, C = problem.m.shape
    variances = level.variances
    g = problem.law.residual(f, problem.x)
    merit = np.inf if warm else _merit(q, f - problem.m, g, variances)
    here = _Point(np.zeros(len(variances)), f, q, g, merit)
    sd = np.sqrt(np.maximum(np.einsum("iicc->ic", problem.by_point.reshape(n, n, C, C)), 1e-300))
    steps = 0
    while steps < level.most_steps:
        steps += 1
        linear = _linearised(problem, here.f, variances)
        aim = _corrected(problem, linear, here.f, here.g, variances)
        moved = backtrack(partial(_lower, problem, here, aim, variances), SHORTEST)
        if moved is None:
            break
        change = float(np.max(np.abs(moved.f - here.f) / sd, initial=0.0))
        here = moved
        if change < level.tolerance:
            break
    return _Annealed(here.f, here.q, linear, aim.w, steps)


def _lower(problem: _Problem, here: _Point, aim: _Point, variances: np.ndarray, length: float) -> _Point | None:
    """The point at this share of the step, None where its merit is higher."""
    point = aim if length == 1.0 else _between(problem, here, aim, variances, length)
    return point if point.merit <= here.merit * (1.0 + 1e-12) + 1e-12 else None


@dataclass(frozen=True)
class _Point:
    """Where a step leads: f = m + P q, its residual g and its merit; ``w`` are the multipliers of the full step."""

    w: np.ndarray
    f: np.ndarray
    q: np.ndarray
    g: np.ndarray
    merit: float


def _corrected(problem: _Problem, linear: _Linear, f: np.ndarray, g: np.ndarray, variances: np.ndarray) -> _Point:
    """Full step, then up to three re-projections with the same factor, keeping the best by merit."""
    J, PJ, factor = linear
    best: _Point | None = None
    for _ in range(4):
        right = np.einsum("nrc,nc->nr", J, f - problem.m) - g
        if not np.all(np.isfinite(right)):
            break
        w = solve_cholesky(factor, right.ravel())
        displacement = (PJ @ w).reshape(f.shape)
        f = problem.m + displacement
        g = problem.law.residual(f, problem.x)
        q = np.einsum("nrc,nr->nc", J, w.reshape(J.shape[:2]))
        point = _Point(w, f, q, g, _merit(q, displacement, g, variances))
        if best is not None and not point.merit < 0.999 * best.merit:
            return point if point.merit < best.merit else best
        best = point
    if best is None:
        zeros, g = np.zeros_like(problem.m), problem.law.residual(problem.m, problem.x)
        best = _Point(np.zeros(len(factor)), problem.m, zeros, g, _merit(zeros, zeros, g, variances))
    return best


def _between(problem: _Problem, here: _Point, aim: _Point, variances: np.ndarray, length: float) -> _Point:
    """The point a share ``length`` of the way from here to ``aim``."""
    f, q = here.f + length * (aim.f - here.f), here.q + length * (aim.q - here.q)
    g = problem.law.residual(f, problem.x)
    return _Point(aim.w, f, q, g, _merit(q, f - problem.m, g, variances))


def _merit(q: np.ndarray, displacement: np.ndarray, g: np.ndarray, variances: np.ndarray) -> float:
    # Far from the law residuals may have squares that overflow: as bad as can be, and no cause for a warning.
    with np.errstate(over="ignore", invalid="ignore"):
        value = 0.5 * float(np.sum(q * displacement)) + 0.5 * float(np.sum(g.ravel() ** 2 / variances))
    return value if np.isfinite(value) else np.inf


LOCAL_STEPS = 2  # linearisations at each stop: the second is where the first one led
EQUAL_BRANCH = 1e-6  # relative difference of variances that round-off may make
STOPS = 30  # points at which the law is imposed on the way


def follow_law(law: UnitFreeLaw, x: np.ndarray, m: np.ndarray, P: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """(n, C) mean of N(m, P) after conditioning on g = 0 at some of the points in turn, the least uncertain first.

    Each turn is an iterated Kalman update with the law's ``variances`` (n R,) as noise: the law is linearised where the
    point itself comes to lie, and all points move with it. Returns m where the law is not finite.
    """
    n, C = m.shape
    noise = variances.reshape(n, -1)
    stops = np.linspace(0, n - 1, min(n, STOPS)).round().astype(int)
    mean, K = m.copy(), P.reshape(n, C, n, C)[:, :, stops]
    # (stops,) total variance of each stop that is still waiting.
    spread = np.einsum("scsc->s", K[stops])
    for _ in stops:
        least = float(np.min(spread))
        s = int(np.argmax(spread <= least + EQUAL_BRANCH * abs(least)))
        i = stops[s]
        here, local, f = x[i : i + 1], K[i, :, s], mean[i]
        for _ in range(LOCAL_STEPS):
            g, J = law.residual(f[None], here)[0], law.jacobian(f[None], here)[0]
            left = J @ (f - mean[i]) - g
            JP = J @ local
            S = JP @ J.T
            S.flat[:: len(S) + 1] += noise[i]
            if not (np.isfinite(left).all() and np.isfinite(S).all()):
                return m
            w = _solved(S, left)
            f = mean[i] + JP.T @ w
        gain = K[:, :, s] @ J.T  # (n, C, R)
        mean = mean + gain @ w
        at_stops = gain[stops].reshape(-1, len(w))
        pulled = _solved(S, at_stops.T)
        K = K - (gain @ pulled).reshape(K.shape)
        spread = spread - np.einsum("kr,rk->k", at_stops, pulled).reshape(-1, C).sum(axis=1)
        spread[s] = np.inf
    return mean if np.all(np.isfinite(mean)) else m


def _solved(S: np.ndarray, right: np.ndarray) -> np.ndarray:
    return right / S[0, 0] if len(S) == 1 else np.linalg.solve(S, right)
