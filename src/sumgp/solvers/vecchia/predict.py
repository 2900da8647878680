"""Latent processes at prediction points, each from its own nodes of the tree of averages.

A node with precision matrix J (k, k) over the latents counts as a measurement of f at its centre, with the spread of its
mean about that as further variance. With J = E E^T the posterior needs B = I + E^T C E only, which is never singular.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtri, dtrtrs
from sklearn.gaussian_process.kernels import Kernel

from sumgp.solvers.vecchia.covariance import ScaledCovariance
from sumgp.solvers.vecchia.evidence import AT_ONCE, lower_factor
from sumgp.solvers.vecchia.low_rank import Functions, GlobalWeights, Rows, functions, global_weights
from sumgp.solvers.vecchia.solver import EXACT_ROWS
from sumgp.solvers.vecchia.tree import AverageTree, build_tree, nodes_for_all, nodes_for_each

JOINT_NODES = 4  # times the nodes of one point, for several points together
SHORTFALL = 1e-12  # of a prior variance: least that is left


class LatentMarginals(NamedTuple):
    """Mean (n, k) and covariance (n, k, k) of the latents at each point."""

    mean: np.ndarray
    covariance: np.ndarray


@dataclass(frozen=True)
class LatentField:
    """k latent processes lambda_i (K + mean_variance) given rows with precision matrices over them.

    ``precision`` (N,) where each row measures all latents alike, else (N, k, k); ``pulled`` (N, k) is precision times
    measured value.
    """

    x: np.ndarray  # (N, D)
    precision: np.ndarray
    pulled: np.ndarray
    signal: np.ndarray  # (k,) lambda
    kernel: Kernel
    mean_variance: float
    nodes: int  # per prediction point

    @property
    def n_latents(self) -> int:
        """Number k of latents."""
        return len(self.signal)

    @cached_property
    def covariance(self) -> ScaledCovariance:
        """The kernel's form."""
        return ScaledCovariance(self.kernel)

    @cached_property
    def tree(self) -> AverageTree:
        """Sums over nodes: pulled values, and precision matrices where rows differ in them."""
        weight, carried = self.precision, self.pulled
        if self.precision.ndim == 3:
            weight = np.einsum("nkk->n", self.precision) / self.n_latents
            carried = np.concatenate([self.pulled, self.precision.reshape(len(self.x), -1)], axis=1)
        return build_tree(self.x, weight, carried, self.covariance)

    @cached_property
    def weights(self) -> GlobalWeights | None:
        """Of the few functions that carry a smooth field; None where there are too many, or a node for each row."""
        if len(self.x) <= self.nodes:
            return None
        rows = Rows(self._scaled(self.x), self.precision, self.pulled)
        return global_weights(rows, self.signal, self.covariance, self.mean_variance)

    def lengthscales(self) -> list[np.ndarray]:
        """(D,) of the kernel, in the term that varies most rapidly."""
        return [np.array(self.covariance.lengthscales(self.x.shape[1]))]

    def marginals(self, x: np.ndarray) -> LatentMarginals:
        """At each of the points x (n, D) as if it were the only one."""
        n, k = len(x), self.n_latents
        result = LatentMarginals(np.empty((n, k)), np.zeros((n, k, k)))
        points, left = self._scaled(x), np.ones(n, dtype=bool)
        if self.is_small:
            self._from_all_rows(points, result)
            return result
        if self.weights is not None:
            found = functions(self.weights, points, self.covariance, self.mean_variance)
            left = ~self.weights.apply_at(found.rest)
            self._from_weights(self.weights, found, ~left, result)
        if left.any():
            self._from_nodes(points, np.flatnonzero(left), result)
        return result

    @property
    def is_small(self) -> bool:
        """True for few rows, each of which measures all latents alike: these are used as they are."""
        return len(self.x) <= EXACT_ROWS and self.precision.ndim == 1

    @cached_property
    def at_own_rows(self) -> LatentMarginals:
        """At all of its rows, exactly, by one factor for each latent.

        With C the covariance of the measured values w and P their precisions, f has mean w - P^-1 C^-1 w and variance
        P^-1 - P^-1 (C^-1)_nn P^-1.
        """
        k, noise = self.n_latents, 1.0 / self.precision
        result = LatentMarginals(np.empty((len(self.x), k)), np.zeros((len(self.x), k, k)))
        for i, factor in enumerate(self._factors):
            inverse = np.tril(dtrtri(factor, lower=1)[0])
            w = self.pulled[:, i] * noise
            result.mean[:, i] = w - noise * (inverse.T @ (inverse @ w))
            left = noise - noise**2 * np.einsum("mn,mn->n", inverse, inverse)
            result.covariance[:, i, i] = np.maximum(left, SHORTFALL * noise)
        return result

    @cached_property
    def _factors(self) -> tuple[np.ndarray, ...]:
        """Of the covariance of each latent's measured values."""
        K = self.covariance.within(self._scaled(self.x)[None])[0] + self.mean_variance
        covariances = [signal * K for signal in self.signal]
        for C in covariances:
            C.flat[:: len(C) + 1] += 1.0 / self.precision
        return tuple(lower_factor(C) for C in covariances)

    def _from_all_rows(self, points: np.ndarray, result: LatentMarginals) -> None:
        """Fill in all points, exactly."""
        near = self.covariance.between(self._scaled(self.x)[None], points[None])[0] + self.mean_variance
        for i, (signal, factor) in enumerate(zip(self.signal, self._factors, strict=True)):
            right = np.column_stack([self.pulled[:, i] / self.precision, signal * near])
            solved = dtrtrs(factor, right, lower=1)[0]
            prior = signal * (1.0 + self.mean_variance)
            result.mean[:, i] = solved[:, 1:].T @ solved[:, 0]
            left = prior - np.einsum("mn,mn->n", solved[:, 1:], solved[:, 1:])
            result.covariance[:, i, i] = np.maximum(left, SHORTFALL * prior)

    def _scaled(self, x: np.ndarray) -> np.ndarray:
        return x / self.covariance.lengthscales(x.shape[1])

    def _from_weights(self, weights: GlobalWeights, found: Functions, rows: np.ndarray, result: LatentMarginals) -> None:
        """Fill in the points ``rows`` (n,) from the weights of global functions."""
        values, rest = found.values[rows], found.rest[rows]
        result.mean[rows] = np.sqrt(self.signal) * (values @ weights.mean.T)
        for i, j, left, right in weights.covariance(values, self.signal):
            result.covariance[rows, i, j] = np.sum(left * right, axis=1) + (i == j) * self.signal[i] * rest

    def _from_nodes(self, points: np.ndarray, rows: np.ndarray, result: LatentMarginals) -> None:
        """Fill in the points ``rows`` from the nodes opened for each."""
        nodes = nodes_for_each(self.tree, points[rows], self.nodes)
        step = max(1, AT_ONCE // self.nodes**2)
        for start in range(0, len(rows), step):
            part = slice(start, min(start + step, len(rows)))
            centres = self.tree.centre[nodes[part]]
            K = self.covariance.within(centres)
            K += self.mean_variance
            K.reshape(len(K), -1)[:, :: self.nodes + 1] += self.tree.spread[nodes[part]]
            near = self.covariance.between(centres, points[rows[part], None])[:, :, 0] + self.mean_variance
            if self.precision.ndim == 1:
                self._fill_in(nodes[part], K, near, rows[part], result)
                continue
            for i, row in enumerate(rows[part]):
                seen = nodes[start + i] >= 0
                used = K[i] if seen.all() else K[i][np.ix_(seen, seen)]
                prior = np.array([[1.0 + self.mean_variance]])
                mean, covariance = self._given(nodes[start + i][seen], used, near[i][seen, None], prior)
                result.mean[row], result.covariance[row] = mean[0], covariance[:, :, 0, 0]

    def _fill_in(
        self, nodes: np.ndarray, K: np.ndarray, near: np.ndarray, rows: np.ndarray, result: LatentMarginals
    ) -> None:
        """Points with nodes (n, m), -1 for none, K (n, m, m), overwritten, and ``near`` (n, m); one latent at a time."""
        root = np.sqrt(np.where(nodes >= 0, self.tree.weight[nodes], 0.0))
        values = self.tree.total[nodes] / np.where(root > 0, root, np.inf)[:, :, None]
        K *= root[:, :, None]
        K *= root[:, None]
        near, right = near * root, np.empty((len(nodes), 2, nodes.shape[1]))
        for i, signal in enumerate(self.signal):
            right[:, 0], right[:, 1] = values[:, :, i], signal * near
            B = signal * K
            B.reshape(len(B), -1)[:, :: B.shape[1] + 1] += 1.0
            for one, pair in zip(B, right, strict=True):
                pair[:] = dtrtrs(lower_factor(one), pair.T, lower=1)[0].T
            prior = signal * (1.0 + self.mean_variance)
            result.mean[rows, i] = np.sum(right[:, 0] * right[:, 1], axis=1)
            result.covariance[rows, i, i] = np.maximum(prior - np.sum(right[:, 1] ** 2, axis=1), SHORTFALL * prior)

    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, k) and covariance (k, k, n, n) of points together: global weights, or nodes opened for all of them."""
        points = self._scaled(x)
        if self.weights is not None:
            found = functions(self.weights, points, self.covariance, self.mean_variance)
            if np.all(self.weights.apply_at(found.rest)):
                return self._joint_from_weights(self.weights, found)
        nodes = nodes_for_all(self.tree, points, JOINT_NODES * self.nodes + len(x))
        centres = self.tree.centre[nodes][None]
        K = self.covariance.within(centres)[0] + self.mean_variance
        K[np.diag_indices(len(K))] += self.tree.spread[nodes]
        near = self.covariance.between(centres, points[None])[0] + self.mean_variance
        prior = self.covariance.within(points[None])[0] + self.mean_variance
        return self._given(nodes, K, near, prior)

    def _joint_from_weights(self, weights: GlobalWeights, found: Functions) -> tuple[np.ndarray, np.ndarray]:
        k, n = self.n_latents, len(found.values)
        covariance = np.zeros((k, k, n, n))
        for i, j, left, right in weights.covariance(found.values, self.signal):
            covariance[i, j] = left @ right.T + (i == j) * self.signal[i] * np.diag(found.rest)
        return np.sqrt(self.signal) * (found.values @ weights.mean.T), covariance

    def _given(self, nodes: np.ndarray, K: np.ndarray, near: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, k) and covariance (k, k, n, n) given nodes with K (m, m), ``near`` (m, n) and ``prior`` (n, n)."""
        k, n = self.n_latents, near.shape[1]
        mean, covariance = np.zeros((n, k)), np.zeros((k, k, n, n))
        if self.precision.ndim == 3:
            return self._given_matrices(nodes, K, near, prior)
        root = np.sqrt(self.tree.weight[nodes])
        values = self.tree.total[nodes] / np.where(root > 0, root, 1.0)[:, None]
        K = K * root * root[:, None]
        near = near * root[:, None]
        for i, signal in enumerate(self.signal):
            mean[:, i], covariance[i, i] = _posterior(signal * K, values[:, i], signal * near, signal * prior)
        return mean, covariance

    def _given_matrices(
        self, nodes: np.ndarray, K: np.ndarray, near: np.ndarray, prior: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same where rows measure different combinations of latents, which are then solved for together."""
        k, n, m = self.n_latents, near.shape[1], len(nodes)
        total = self.tree.total[nodes]
        size, vectors = np.linalg.eigh(total[:, k:].reshape(m, k, k))
        root = np.sqrt(np.maximum(size, 0.0))
        E = vectors * root[:, None, :]
        pulled = np.einsum("mik,mi->mk", vectors, total[:, :k])
        values = np.divide(pulled, root, out=np.zeros_like(pulled), where=size > SHORTFALL * size.max())
        by_node = E.swapaxes(1, 2)  # [m, a, i]
        A = (by_node * np.sqrt(self.signal)).reshape(m * k, k)
        C = (K[:, None, :, None] * (A @ A.T).reshape(m, k, m, k)).reshape(m * k, m * k)
        cross = ((by_node * self.signal)[:, :, :, None] * near[:, None, None, :]).reshape(m * k, k * n)
        whole = np.kron(np.diag(self.signal), prior)
        mean, covariance = _posterior(C, values.ravel(), cross, whole)
        return mean.reshape(k, n).T, covariance.reshape(k, n, k, n).swapaxes(1, 2)


@dataclass(frozen=True)
class SeparateFields:
    """Latents with a kernel each, as fields of one latent, given rows that measure all of them alike."""

    each: tuple[LatentField, ...]

    @property
    def n_latents(self) -> int:
        """Number k of latents."""
        return len(self.each)

    def marginals(self, x: np.ndarray) -> LatentMarginals:
        """At each of the points x (n, D) as if it were the only one."""
        return _side_by_side([field.marginals(x) for field in self.each])

    @property
    def is_small(self) -> bool:
        """True where ``at_own_rows`` may be asked for."""
        return self.each[0].is_small

    @property
    def at_own_rows(self) -> LatentMarginals:
        """At all of their rows, exactly."""
        return _side_by_side([field.at_own_rows for field in self.each])

    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, k) and covariance (k, k, n, n) of points together."""
        parts = [field.joint(x) for field in self.each]
        covariance = np.zeros((len(parts), len(parts), len(x), len(x)))
        for i, (_, own) in enumerate(parts):
            covariance[i, i] = own[0, 0]
        return np.concatenate([mean for mean, _ in parts], axis=1), covariance

    def lengthscales(self) -> list[np.ndarray]:
        """(D,) of each kernel."""
        return [lengths for field in self.each for lengths in field.lengthscales()]


def _side_by_side(parts: list[LatentMarginals]) -> LatentMarginals:
    """Independent latents, one of each part."""
    mean = np.concatenate([part.mean for part in parts], axis=1)
    covariance = np.zeros((*mean.shape, len(parts)))
    for i, part in enumerate(parts):
        covariance[:, i, i] = part.covariance[:, 0, 0]
    return LatentMarginals(mean, covariance)


def _posterior(C: np.ndarray, values: np.ndarray, cross: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean cross^T B^-1 values and covariance prior - cross^T B^-1 cross with B = I + C, which is overwritten."""
    C.flat[:: len(C) + 1] += 1.0
    L = lower_factor(C)
    right = np.empty((len(C), 1 + cross.shape[1]), order="F")
    right[:, 0], right[:, 1:] = values, cross
    solved = dtrtrs(L, right, lower=1, overwrite_b=1)[0]
    W = solved[:, 1:]
    covariance = prior - W.T @ W
    floor = SHORTFALL * np.diagonal(prior)
    diagonal = np.diagonal(covariance)
    covariance.flat[:: len(prior) + 1] = np.maximum(diagonal, floor)
    return W.T @ solved[:, 0], covariance
