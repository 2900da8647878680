"""Rows, or blocks of rows, predicted from all others at held hyperparameters, in closed form; and what they weigh.

They weigh what the evidence of a law cannot: how far a law speaks, and how rough curves may be. That evidence is highest for
priors that leave little open, right or wrong. It prefers joint conditioning to tapered and smooth curves to rough ones, also
where the truth has sharper peaks than a smooth prior expects; there the joint posterior is too sure of itself. Left-out rows
tell, if only weakly, since each holds noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit, logsumexp, softmax

from sumgp.numerics import LOG_2PI, cholesky, cholesky_inverse, symmetric_root
from sumgp.priors import MultitaskPrior, NoiseModel, nullspace_basis
from sumgp.strategies.problem import FitProblem, PosteriorComponent
from sumgp.strategies.weight_component import Component, moved_onto_law, own_points

# V <= R in exact arithmetic, and equal where a measurement alone says what is known; round-off and tapers exceed it.
SMALLEST_GAP = 1e-6  # of the noise
NO_NOISE = 1e-10  # variance along a direction in which closed data have none, as a share of the largest


@dataclass(frozen=True)
class RowNoise:
    """Noise of the measurements: variances (N, T), and the law F (R, T) that noise of closed data obeys.

    ``between`` (T, T) is the covariance of each row's noise where outputs share some, times the row's ``factor`` (N,); it
    comes before both.
    """

    variances: np.ndarray
    F: np.ndarray | None = None
    between: np.ndarray | None = None
    factor: np.ndarray | None = None

    @classmethod
    def of(cls, prior: MultitaskPrior, theta: np.ndarray, n_rows: int) -> RowNoise:
        """That of a prior's noise model at theta."""
        variances = prior.noise.variances(theta[prior.noise_slice])
        closed = prior.noise.closed and prior.law is not None
        return cls(np.broadcast_to(variances, (n_rows, prior.n_outputs)), prior.law.F if closed else None)  # type: ignore[union-attr]

    @classmethod
    def learnt(cls, model: NoiseModel, typical: np.ndarray, n_rows: int, F: np.ndarray | None = None) -> RowNoise:
        """That of a component whose new measurements have variances ``typical`` (T,); given ones and weights stay."""
        each = np.broadcast_to(typical, (n_rows, len(typical))) if model.known is None else model.known
        return cls(each if model.row_factor is None else each * model.row_factor[:, None], F)

    def whitening(self, rows: np.ndarray, seen: np.ndarray) -> Whitening:
        """For blocks ``rows`` (B, n) of which the entries ``seen`` (k,) were measured."""
        if self.between is not None:
            one = _whitened(np.kron(np.eye(rows.shape[1]), self.between)[np.ix_(seen, seen)])
            same = Whitening(*(np.broadcast_to(part, (len(rows), *np.shape(part))) for part in one))
            if self.factor is None:
                return same
            return same.times(np.sqrt(self.factor[rows]).repeat(len(self.between), axis=1)[:, seen])
        if self.F is None:
            sd = np.sqrt(self.variances[rows].reshape(len(rows), -1)[:, seen])
            eye = np.eye(len(seen))
            return Whitening(sd[:, :, None] * eye, eye / sd[:, None, :], np.log(sd).sum(axis=1))
        basis = nullspace_basis(self.F)
        inside = basis @ basis.T
        each = []
        for block in rows:
            T = self.variances.shape[1]
            R = np.zeros((len(block), T, len(block), T))
            R[range(len(block)), :, range(len(block)), :] = inside @ (self.variances[block][:, :, None] * inside)
            each.append(_whitened(R.reshape(len(block) * T, -1)[np.ix_(seen, seen)]))
        return Whitening(*(np.stack(parts) for parts in zip(*each, strict=True)))


class Whitening(NamedTuple):
    """Roots W (B, k, q) of noise covariances W W^T, their pseudo-inverses (B, q, k), and log |W| (B,)."""

    roots: np.ndarray
    inverses: np.ndarray
    log_sizes: np.ndarray

    def times(self, sds: np.ndarray) -> Whitening:
        """Of noise ``sds`` (B, k) times as large, where all entries of a row have the same factor."""
        directions = np.einsum("bkq,bqk->bk", self.roots, self.inverses)  # of an entry: of a row, those that have noise
        sizes = self.log_sizes + np.sum(directions * np.log(sds), axis=1)
        return Whitening(sds[:, :, None] * self.roots, self.inverses / sds[:, None, :], sizes)


def _whitened(R: np.ndarray) -> Whitening:
    """Of one block with noise R (k, k), in the directions that have noise."""
    root = symmetric_root(R, NO_NOISE)
    squares = np.sum(root**2, axis=0)
    return Whitening(root, (root / squares).T, 0.5 * np.sum(np.log(squares)))


class LeftOut(NamedTuple):
    """What the other rows say of those left out, unit-free.

    ``residual`` (N, T) measurement minus prediction and ``variance`` (N, T) of it, noise included, NaN where nothing was
    measured or left out; ``log_density`` (blocks,) of each block's measurements, where that was asked for.
    """

    residual: np.ndarray
    variance: np.ndarray
    log_density: np.ndarray = np.zeros(0)

    @property
    def each_log_density(self) -> np.ndarray:
        """(N, T) of each value alone; not finite where a law leaves nothing open, so that nothing is told by it."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return -0.5 * (self.residual**2 / self.variance + np.log(self.variance) + LOG_2PI)


class Known(NamedTuple):
    """The posterior given all rows: mean (N, T), and a covariance (nT, nT) for each block of n rows, point by point."""

    mean: np.ndarray
    covariances: Sequence[np.ndarray] | np.ndarray


def left_out(
    y: np.ndarray, known: Known, noise: RowNoise, blocks: Sequence[np.ndarray] | np.ndarray, widening: float = 1.0
) -> LeftOut:
    """Each block of rows of y (N, T) given all rows but its own.

    With posterior mean m, covariance V and noise R of the measured entries of a block, and r = y - m, the block left out
    has residual R (R - V)^-1 r and covariance R (R - V)^-1 R = R + R (R - V)^-1 V. The formula needs V as it follows from
    the noise: one that was made ``widening`` times as wide afterwards is taken back first, and what the other rows leave
    open is made as much wider. Where closed data have no noise there is nothing to be told: those directions drop out.
    """
    measured = ~np.isnan(y)
    alike: dict[bytes, list[int]] = {}
    for b, rows in enumerate(blocks):
        alike.setdefault(measured[rows].tobytes(), []).append(b)
    result = LeftOut(np.full(y.shape, np.nan), np.full(y.shape, np.nan), np.zeros(len(blocks)))
    # Blocks with the same entries measured are solved together: one call for the rows of most data sets.
    for members in alike.values():
        rows = np.stack([blocks[b] for b in members])
        seen = np.flatnonzero(measured[rows[0]].ravel())
        if not len(seen):
            continue
        r = (y - known.mean)[rows].reshape(len(rows), -1)[:, seen]
        V = np.stack([known.covariances[b] for b in members])[:, seen][:, :, seen] / widening**2
        residual, variance, result.log_density[members] = _cavities(r, V, noise.whitening(rows, seen), widening)
        places = np.repeat(rows, y.shape[1], axis=1)[:, seen], np.tile(np.arange(y.shape[1]), rows.shape[1])[seen]
        result.residual[places], result.variance[places] = residual, variance
    return result


def _cavities(r: np.ndarray, V: np.ndarray, noise: Whitening, widening: float) -> LeftOut:
    """Residuals, variances (B, k) and log densities (B,) of blocks with r (B, k) and V (B, k, k) given all rows."""
    W, inverse = noise.roots, noise.inverses
    q = W.shape[2]
    values, vectors = np.linalg.eigh(np.eye(q) - inverse @ V @ inverse.swapaxes(1, 2))
    values = np.clip(values, SMALLEST_GAP, 1.0)  # above one where round-off of V, beside hardly any noise, is below zero
    z = (vectors.swapaxes(1, 2) @ (inverse @ r[:, :, None]))[:, :, 0]
    residual = (W @ (vectors @ (z / values)[:, :, None]))[:, :, 0]
    # What the other rows leave open has the factor 1 / v - 1 in units of the noise.
    of_noise = 1.0 + widening**2 * (1.0 / values - 1.0)
    variance = np.einsum("bkj,bj->bk", (W @ vectors) ** 2, of_noise)
    log_density = -0.5 * np.sum(z**2 / (values * of_noise) / values, axis=1) - 0.5 * np.sum(np.log(of_noise), axis=1)
    return LeftOut(residual, variance, log_density - noise.log_sizes - 0.5 * q * LOG_2PI)


class TrainingRows(NamedTuple):
    """Inputs as the kernels see them (N, D), in the user's units, and unit-free outputs (N, T)."""

    x: np.ndarray
    x_law: np.ndarray
    y: np.ndarray


def component_left_out(component: PosteriorComponent, rows: TrainingRows, noise: RowNoise, widening: float = 1.0) -> LeftOut:
    """``left_out`` of one component fitted to these rows, each row on its own."""
    return left_out(rows.y, known_rows(component, rows), noise, np.arange(len(rows.x))[:, None], widening)


def known_rows(component: PosteriorComponent, rows: TrainingRows) -> Known:
    """The outputs of each row on its own, given all rows."""
    T, (mean, covariance) = rows.y.shape[1], component.marginals(rows.x, rows.x_law)
    return Known(mean[:, :T], covariance[:, :T, :T])


def block_covariances(component: PosteriorComponent, rows: TrainingRows, blocks: Sequence[np.ndarray]) -> list[np.ndarray]:
    """(nT, nT) between the outputs in each block of n rows."""
    T, C, result = rows.y.shape[1], component.n_columns, []
    for block in blocks:
        n = len(block)
        whole = component.joint_covariance(rows.x[block], rows.x_law[block]).reshape(n, C, n, C)
        result.append(whole[:, :T, :, :T].reshape(n * T, n * T))
    return result


def left_out_of_sharp(
    component: Component, rows: TrainingRows, noise: RowNoise, blocks: Sequence[np.ndarray] | None, widening: float
) -> LeftOut:
    """``left_out`` where noise is so little that R - V there has no digits; rows one by one (None) are moved onto the law.

    With f = G w, w ~ N(0, I), noise R and Q = (R^-1/2 G G^T R^-1/2 + I)^-1, a block has I - R^-1/2 V R^-1/2 = Q_bb.
    """
    y, features, measured = rows.y, component.posterior.features, ~np.isnan(rows.y)
    T, sd = y.shape[1], np.sqrt(noise.variances)
    G = features.design(rows.x)[0][:, :T] / sd[:, :, None]
    centre = 0.0 if features.offset is None else features.offset(rows.x_law)[:, :T]
    H = G[measured]
    Q = cholesky_inverse(cholesky(H @ H.T + np.eye(len(H)), "left-out rows"))
    place = np.cumsum(measured).reshape(y.shape) - 1
    a = Q @ ((y - centre) / sd)[measured]
    covariance, residual = np.zeros((len(y), T, T)), np.full(y.shape, np.nan)
    density = []
    for block in np.arange(len(y))[:, None] if blocks is None else blocks:
        seen = measured[block]
        own, size = place[block][seen], sd[block][seen]
        inverse = np.linalg.inv(Q[np.ix_(own, own)])
        whole = np.zeros((seen.size, seen.size))
        whole[np.ix_(seen.ravel(), seen.ravel())] = widening**2 * (inverse - np.eye(len(own))) * size[:, None] * size
        covariance[block] = whole.reshape(*seen.shape, *seen.shape)[range(len(block)), :, range(len(block))]
        miss = np.full(seen.shape, np.nan)
        miss[seen] = size * (inverse @ a[own])
        residual[block] = miss
        spread = whole[np.ix_(seen.ravel(), seen.ravel())] + np.diag(size**2)
        away = miss[seen] @ np.linalg.solve(spread, miss[seen]) + np.linalg.slogdet(spread)[1]
        density.append(-0.5 * (away + len(own) * LOG_2PI))
    complete = measured.all(axis=1)
    if component.law is not None and blocks is None and complete.any():
        free = own_points(component.law, (y - residual)[complete], covariance[complete])
        moved = moved_onto_law(component.law, free, rows.x_law[complete])
        residual[complete], covariance[complete] = y[complete] - moved.mean, moved.covariance
    return LeftOut(residual, np.einsum("ntt->nt", covariance) + sd**2, np.array(density))


def mixed(parts: Sequence[LeftOut], weights: np.ndarray, blocks: Sequence[np.ndarray] | None = None) -> LeftOut:
    """What a mixture says whose components say ``parts``.

    Its weights are held, or, with the ``blocks`` that were left out, those given all rows but the block's: the weight over
    the density that a component gives the block.
    """
    log_densities = np.stack([p.log_density for p in parts])
    log_density = logsumexp(log_densities, b=weights[:, None], axis=0)
    w = np.repeat(weights[:, None, None], len(parts[0].residual), axis=1)
    for b, rows in enumerate(blocks or ()):
        w[:, rows, 0] = softmax(np.log(weights) - log_densities[:, b])[:, None]
    residual = np.sum(w * np.stack([p.residual for p in parts]), axis=0)
    spread = np.stack([p.variance + (p.residual - residual) ** 2 for p in parts])
    return LeftOut(residual, np.sum(w * spread, axis=0), log_density)


SCORED = 3  # heaviest components of a mixture whose left-out densities stand for all


def heaviest(weights: np.ndarray, count: int = SCORED) -> np.ndarray:
    """Positions of the components that stand for all."""
    return np.argsort(-weights, kind="stable")[:count]


# How far the law at one point speaks about others, in lengthscales (None: as far as the prior does), and how likely each is
# beforehand. The joint posterior is the right one where the prior holds functions that obey the law; it is far too sure
# of itself where it does not. Projection alone (0) predicts left-out rows well, but gaps badly: it needs more of them.
TAPERS = (None, 4.0, 1.0, 0.0)
BELIEFS = (0.69, 0.2, 0.1, 0.01)  # probabilities of TAPERS beforehand
HARM = 10.0  # log density of left-out rows by which no law is ahead of the best taper, from which on the report says so
# Share of rougher curves beforehand, and at most. On data sets kept for such choices (116 problems of the families, 48 of
# the paper's) the log density of a true value is 0.015 higher in the families, 0.002 lower in the paper's; errors are 1.2 %
# lower and 0.5 % higher; problems with coverage below 85 % go from 18 to 13 % and from 8 to 8 %.
ROUGH_BELIEF = 0.15
MOST_ROUGH = 0.3  # a few left-out rows may speak for them by chance; with next to no noise their densities have few digits
FEWER_ROUGH = 4  # times fewer draws of them: with 2, errors of 63 problems of the families are the same within .1 %
NEGLIGIBLE = 0.03  # a smaller share of rougher curves is not worth its time
GOLDEN = 0.5 * (5.0**0.5 - 1.0)  # multiples of it, modulo one, fill the unit interval evenly


@dataclass(frozen=True)
class TaperWeights:
    """Weights of taper lengths; ``scores`` are the log densities of left-out rows, () where the length was given."""

    lengths: tuple[float | None, ...]
    weights: tuple[float, ...]
    scores: tuple[float, ...] = ()
    without_law: float = -np.inf  # the same score, for comparison

    @classmethod
    def of_scores(cls, scores: Sequence[float], averaged: bool, without_law: float = -np.inf) -> TaperWeights:
        """Belief times density for each of TAPERS; unless ``averaged``, the one of highest weight."""
        shares = softmax(np.log(BELIEFS[: len(scores)]) + np.array(scores))
        if not averaged:
            shares = np.eye(len(scores))[int(np.argmax(shares))]
        return cls(TAPERS[: len(scores)], tuple(shares.tolist()), tuple(scores), without_law)

    @property
    def heaviest(self) -> float | None:
        """The length of highest weight."""
        return self.lengths[int(np.argmax(self.weights))]

    @property
    def log_density(self) -> float:
        """Of the left-out rows, all tapers together."""
        return float(logsumexp(np.log(BELIEFS[: len(self.scores)]) + np.array(self.scores)))

    def in_turn(self) -> Iterator[float | None]:
        """Lengths without end, each as often as its weight says."""
        ends = np.cumsum(self.weights)
        for i in count():
            yield self.lengths[min(int(np.searchsorted(ends, (0.5 + i * GOLDEN) % 1.0)), len(self.lengths) - 1)]

    def report(self) -> dict[str, Any]:
        """What the fit's report says about tapers."""
        if not self.scores:
            return {"taper": self.heaviest, "taper_reason": "as asked"}
        names = [str(length) for length in self.lengths]
        reason = "density of left-out rows given the others and the law"
        if self.without_law > max(self.scores) + HARM:
            reason += f"; without the law it is higher by {self.without_law - max(self.scores):.0f}: check the law"
        return {
            "taper": self.heaviest,
            "taper_scores": dict(zip([*names, "no law"], [*self.scores, self.without_law], strict=True)),
            "taper_weights": {name: w for name, w in zip(names, self.weights, strict=True) if w > 0},
            "taper_reason": reason,
        }


def taper_weights(
    problem: FitProblem,
    prior: MultitaskPrior,
    theta: np.ndarray,
    imposed: Sequence[PosteriorComponent],
    free: PosteriorComponent,
) -> TaperWeights:
    """Weights of TAPERS at one set of hyperparameters; ``imposed``: the posterior with the law so tapered, for each.

    ``free``: posterior without it.
    """
    rows = TrainingRows(problem.x, problem.data.x, problem.y)
    noise = RowNoise.of(prior, theta, len(rows.x))

    def score(component: PosteriorComponent) -> float:
        return float(np.sum(component_left_out(component, rows, noise).log_density))

    return TaperWeights.of_scores([score(c) for c in imposed], problem.uncertainty == "integrated", score(free))


def rough_share(smooth: TaperWeights, rough: TaperWeights) -> float:
    """Share of rougher curves in the average; 0 where it is negligible."""
    share = min(float(expit(logit(ROUGH_BELIEF) + rough.log_density - smooth.log_density)), MOST_ROUGH)
    return share if share > NEGLIGIBLE else 0.0
