"""Evidence and gradient through two small eigendecompositions: O(N^3 + T^3), and O(N^2 T) more for each missing entry.

With Sigma (x) K + diag(d) (x) I and whitened outputs d^-1/2 Sigma d^-1/2 = U L U^T, K = V M V^T, the covariance of
complete data is diagonal in U (x) V. Only traces of its inverse are needed, so no eigenvector is ever differentiated.
Free constants of the outputs (mean shape "identity") are T further columns: by Woodbury C^-1 = C0^-1 - Z Z^T, and the
gradient (a a^T + Z Z^T - C0^-1) / 2 just has more vectors in it. Missing entries u are vectors of the same kind: with
P = C^-1 and P_uu = L L^T, the inverse for the measured entries alone is P - Z Z^T with Z = P_:u L^-T, whatever value
the missing ones are given, and the determinant gains det P_uu.

Closed data have noise within the law F, of covariance B B^T diag(d) B B^T with the columns of B (T, q) a basis of its null
space. Outputs are then coordinates z, f = mean + B z, with noise B^T diag(d) B in place of diag(d). A row that is partly
measured leaves directions of z open, which take the place of missing entries.

Outputs that have nothing in common need neither: their evidence is the sum of those of each output alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from sumgp.numerics import LOG_2PI, SchurConditioning, cholesky, solve_lower, triangular_inverse
from sumgp.priors import KernelOnPoints, MultitaskPrior, NoiseModel, OneOutputTask, nullspace_basis

MOST_MISSING = 0.2  # share of the entries up to which the Kronecker form is measured to be faster than one dense factor


class Evidence(Protocol):
    """Log evidence log p(y | theta) of the data."""

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient; NumericalError where a factor fails."""

    def value(self, theta: np.ndarray) -> float:
        """The value alone, which some forms give at less cost."""


def has_kronecker_form(prior: MultitaskPrior) -> bool:
    """True if the covariance of complete data has the Kronecker form: one term, one noise variance per output."""
    rows_alike = prior.noise.known is None and prior.noise.row_factor is None and prior.latent is None
    constants_alike = not prior.noise.closed or prior.mean_shape == "task" or prior.law is not None
    return len(prior.kernels) == 1 and rows_alike and constants_alike


def fits_kronecker(prior: MultitaskPrior, y: np.ndarray) -> bool:
    """True if the Kronecker form is exact and few enough entries are missing for it to be the faster one."""
    return has_kronecker_form(prior) and float(np.isnan(y).mean()) <= MOST_MISSING


class Coordinates(NamedTuple):
    """Rows y - mean = B z: the outputs themselves, or, for closed data, what the law leaves of them.

    ``basis`` B (T, q); ``of_entries`` (N, q, T): z from the measured entries of a row; the directions ``open`` (m, q) of z
    that the rows ``rows`` (m,) leave open; ``log_size``: of the volume of the entries in units of z.
    """

    basis: np.ndarray
    of_entries: np.ndarray
    rows: np.ndarray
    open: np.ndarray
    log_size: float

    @classmethod
    def of_outputs(cls, y: np.ndarray) -> Coordinates:
        """The outputs y (N, T) themselves; entries that are missing are left open."""
        eye = np.eye(y.shape[1])
        rows, outputs = np.nonzero(np.isnan(y))
        return cls(eye, np.broadcast_to(eye, (len(y), *eye.shape)), rows, eye[outputs], 0.0)

    @classmethod
    def of_closed(cls, y: np.ndarray, F: np.ndarray) -> Coordinates:
        """Of the entries y (N, T), NaN = missing, of which those that the law fixes from others of their row drop out."""
        B = nullspace_basis(F)
        patterns, place = np.unique(independent_entries(y, F), axis=0, return_inverse=True)
        place = place.reshape(-1)
        of_entries, rows, left, log_size = np.zeros((len(y), B.shape[1], len(B))), [], [np.zeros((0, B.shape[1]))], 0.0
        for p, kept in enumerate(patterns):
            alike = np.flatnonzero(place == p)
            U, sizes, Vt = np.linalg.svd(B[kept])
            k = len(sizes)
            of_entries[np.ix_(alike, np.arange(B.shape[1]), np.flatnonzero(kept))] = (Vt[:k].T / sizes) @ U[:, :k].T
            log_size += len(alike) * float(np.sum(np.log(sizes)))
            for row in alike:
                rows += [int(row)] * (len(Vt) - k)
                left.append(Vt[k:])
        return cls(B, of_entries, np.array(rows, dtype=int), np.concatenate(left), log_size)


def independent_entries(y: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Measured entries less those that the law fixes from the others of their row (closed data hold nothing more)."""
    patterns, place = np.unique(~np.isnan(y), axis=0, return_inverse=True)
    for measured in patterns:
        for t in np.flatnonzero(measured):
            others = ~measured
            with_t = others.copy()
            with_t[t] = True
            # Some combination of the rows of F is zero on all that is not measured, and not on t.
            if _rank(F[:, with_t]) > _rank(F[:, others]):
                measured[t] = False
    return patterns[place.reshape(-1)]


def _rank(matrix: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(matrix)) if matrix.size else 0


class _Solved(NamedTuple):
    """Log evidence at one theta, in the eigenbasis where C0 is diagonal: vectors of all entries are V z Ud^T.

    ``mu`` and V are the spectrum of K, ``lam`` that of the task covariance in units of the noise, ``inverse`` (N, q) the
    diagonal of C0^-1. The first of the ``vectors`` z (N, q, v) is C^-1 r, the others are the columns of Z.
    """

    value: float
    conditioning: SchurConditioning | None
    vectors: np.ndarray
    lam: np.ndarray
    mu: np.ndarray
    V: np.ndarray
    inverse: np.ndarray
    Ud: np.ndarray


class KroneckerEvidence:
    """log p(y | theta) for y (N, T) with NaN = missing, given the law where the prior has one."""

    def __init__(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> None:
        self.prior = prior
        self.kernel = KernelOnPoints(prior.kernels[0], x)
        self.y = y
        closed = prior.law if prior.noise.closed else None
        self.coordinates = Coordinates.of_outputs(y) if closed is None else Coordinates.of_closed(y, closed.F)

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log p(y | theta) and its gradient with respect to theta."""
        prior, (ks, ts) = self.prior, self.prior.slices[0]
        K, dK = self.kernel.matrix_and_gradient(theta[ks])
        value, conditioning, vectors, lam, mu, V, inverse, Ud = self._solved(theta, K, True)
        N, q, _ = vectors.shape
        G_K = (vectors * lam[:, None]).reshape(N, -1) @ vectors.reshape(N, -1).T
        by_output = vectors.transpose(1, 0, 2).reshape(q, -1)
        G_S = (mu[:, None, None] * vectors).transpose(1, 0, 2).reshape(q, -1) @ by_output.T
        G_R = by_output @ by_output.T
        for G, of_C0 in ((G_K, inverse @ lam), (G_S, mu @ inverse), (G_R, inverse.sum(axis=0))):
            np.einsum("ii->i", G)[...] -= of_C0  # a view of the diagonal
        basis = self.coordinates.basis @ Ud
        G_K, G_S = 0.5 * (V @ G_K @ V.T), 0.5 * (basis @ G_S @ basis.T)
        G_d = 0.5 * np.einsum("tq,qp,tp->t", basis, G_R, basis)
        if conditioning is not None:
            by_mean = np.einsum("nqt,nq->nt", self.coordinates.of_entries, V @ vectors[:, :, 0] @ Ud.T)
            G_S = conditioning.pull_back(G_S, prior.law.totals.T @ by_mean)  # type: ignore[union-attr]
        gradient = np.empty(prior.n_parameters)
        gradient[ks] = np.tensordot(dK, G_K, axes=([1, 2], [0, 1]))
        gradient[ts] = prior.tasks[0].pull_back(theta[ts], G_S)
        gradient[prior.noise_slice] = prior.noise.pull_back(theta[prior.noise_slice], G_d)
        return value, gradient

    def value(self, theta: np.ndarray) -> float:
        """The value alone, in about half of the time."""
        return self._solved(theta, self.kernel.matrix(theta[self.prior.slices[0][0]]), False).value

    def _solved(self, theta: np.ndarray, K: np.ndarray, with_slopes: bool) -> _Solved:
        """The value, and what the gradient needs if it is to follow (``with_slopes``)."""
        prior = self.prior
        if prior.mean_shape == "task":
            K = K + prior.mean_variance
        Sigma = prior.Sigmas(theta)[0]
        conditioning = prior.conditioned(Sigma)
        residual = self.y
        if conditioning is not None:
            Sigma = conditioning.covariance
            residual = residual - prior.law.totals @ conditioning.D  # type: ignore[union-attr]
        B, of_entries, rows, directions, log_size = self.coordinates
        residual = np.einsum("nqt,nt->nq", of_entries, np.where(np.isnan(residual), 0.0, residual))
        Sigma = B.T @ Sigma @ B
        d = prior.noise.variances(theta[prior.noise_slice])
        root = cholesky(B.T @ (d[:, None] * B), "noise")
        white = triangular_inverse(root)
        lam, U = np.linalg.eigh(white @ Sigma @ white.T)
        mu, V = np.linalg.eigh(K)
        lam, mu = np.maximum(lam, 0.0), np.maximum(mu, 0.0)
        inverse = 1.0 / (1.0 + mu[:, None] * lam)  # (N, q)
        Ud = white.T @ U
        rotated = V.T @ residual @ Ud
        vectors = (rotated * inverse)[:, :, None]  # C0^-1 residual
        value = -0.5 * float(np.sum(rotated**2 * inverse)) + 0.5 * float(np.sum(np.log(inverse)))
        value -= len(K) * float(np.sum(np.log(np.diagonal(root)))) + 0.5 * residual.size * LOG_2PI + log_size
        if prior.mean_shape == "identity":
            constants = Ud.T @ B.T @ prior.constant_root
            ones = V.sum(axis=0)[:, None, None] * constants
            vectors, more = _with_columns(vectors, ones, inverse, 1.0 / prior.mean_variance)
            value += more - 0.5 * constants.shape[1] * float(np.log(prior.mean_variance))
        if len(rows):
            missing = V[rows].T[:, None, :] * (directions @ Ud).T
            vectors, more = _with_columns(vectors, missing, inverse, 0.0, with_slopes)
            value += more + 0.5 * len(rows) * LOG_2PI
        return _Solved(value, conditioning, vectors, lam, mu, V, inverse, Ud)


def _with_columns(
    vectors: np.ndarray, units: np.ndarray, inverse: np.ndarray, precision: float, further: bool = True
) -> tuple[np.ndarray, float]:
    """C^-1 becomes C^-1 - C^-1 E (E^T C^-1 E + precision)^-1 E^T C^-1 with the columns ``units`` (N, q, k) of E.

    Gives the vectors that say so, if ``further`` steps need them, and the change in value.
    """
    known, E = vectors.reshape(inverse.size, -1), units.reshape(inverse.size, -1)
    seen = E.T @ known
    columns = inverse.reshape(-1, 1) * E - known[:, 1:] @ seen[:, 1:].T  # C^-1 E
    middle = E.T @ columns + precision * np.eye(E.shape[1])
    factor = cholesky(0.5 * (middle + middle.T), "constants and missing entries")
    projection = solve_lower(factor, seen[:, 0])
    change = 0.5 * float(projection @ projection) - float(np.sum(np.log(np.diagonal(factor))))
    if not further:
        return vectors, change
    Z = solve_lower(factor, columns.T).T
    result = np.hstack([known[:, :1] - Z @ projection[:, None], known[:, 1:], Z])
    return result.reshape(*inverse.shape, -1), change


def are_independent(prior: MultitaskPrior) -> bool:
    """Whether every term, every constant and the noise are of one output alone."""
    alone = all(task.speaks_of is not None for task in prior.tasks) and prior.mean_shape == "identity"
    return alone and prior.law is None and prior.latent is None and not prior.noise.closed


class IndependentEvidence:
    """log p(y | theta) for y (N, T) with NaN = missing; ``alone`` gives the evidence of one output at its rows."""

    def __init__(
        self,
        prior: MultitaskPrior,
        x: np.ndarray,
        y: np.ndarray,
        alone: Callable[[MultitaskPrior, np.ndarray, np.ndarray], Evidence],
    ) -> None:
        self.n_parameters = prior.n_parameters
        self.outputs: list[tuple[np.ndarray, Evidence]] = []  # with the positions in theta of their parameters
        for t, column in enumerate(y.T):
            rows = np.flatnonzero(~np.isnan(column))
            if len(rows):
                own, places = output_alone(prior, t, rows)
                self.outputs.append((places, alone(own, x[rows], column[rows, None])))

    def value(self, theta: np.ndarray) -> float:
        """log p(y | theta) alone."""
        return sum(evidence.value(theta[places]) for places, evidence in self.outputs)

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log p(y | theta) and its gradient with respect to theta."""
        total, gradient = 0.0, np.zeros(self.n_parameters)
        for places, evidence in self.outputs:
            value, slope = evidence(theta[places])
            total += value
            gradient[places] += slope
        return total, gradient


def output_alone(prior: MultitaskPrior, t: int, rows: np.ndarray) -> tuple[MultitaskPrior, np.ndarray]:
    """The prior of output t at some of the rows, and the positions of its parameters among those of all."""
    noise = prior.noise.at(rows)
    own_noise = NoiseModel(
        ((0,),), noise.reference[[t]], None if noise.known is None else noise.known[:, [t]], row_factor=noise.row_factor
    )
    terms = [r for r, task in enumerate(prior.tasks) if task.speaks_of == t]
    places = [np.arange(part.start, part.stop) for r in terms for part in prior.slices[r]]
    if noise.known is None:
        group = next(i for i, outputs in enumerate(noise.groups) if t in outputs)
        places.append(np.array([prior.noise_slice.start + group]))
    own = replace(
        prior,
        kernels=tuple(prior.kernels[r] for r in terms),
        kernel_priors=tuple(prior.kernel_priors[r] for r in terms),
        tasks=tuple(OneOutputTask(1, 0) for _ in terms),
        noise=own_noise,
        n_outputs=1,
    )
    return own, np.concatenate(places)
