"""A law in two parts: rows that hold by construction, because outputs are derivatives of latent functions, and the rest.

Outputs are f(x) = G(d) g(x) + offset, a prior under which the first rows hold. G is the ``Potential`` of the law, unit-free.
Besides the kernels' share each g_k has a polynomial of the monomials x^e whose derivative d^e occurs in its column of G,
with marginalised coefficients: the counterpart of a constant mean of the outputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sumgp.data import Data, Scaling
from sumgp.errors import ConstraintError
from sumgp.laws.elimination import Operator, Potential, as_operator, constant_rows, find_potential
from sumgp.laws.law import Law
from sumgp.laws.other_columns import seen_from
from sumgp.laws.points import complete_scaling

FREE_CONSTANT, LEAST_CONSTANT = 2.0, 0.2  # prior sd of an output's constant, in those of the output
SIMILAR = 10.0  # ratio of the inputs' ranges below which they are taken to be in one unit


@dataclass(frozen=True)
class SplitLaw:
    """Rows ``eliminated`` hold for every f = f_0 + G(d) g with a constant f_0 that meets their totals; ``rest`` is the law
    of the others, None if there are none."""

    potential: Potential
    eliminated: tuple[int, ...]
    rest: Law | None
    operator: Operator  # of the eliminated rows

    def tied(self, measured: np.ndarray) -> np.ndarray:
        """(T,) whether an output shares a free function with another that was ``measured`` (T,): v where d(z, t) = v."""
        used = np.any(self.potential.coefficients != 0, axis=2)
        seen = used & measured[:, None]
        return np.any(used & (seen.sum(axis=0) > seen), axis=1)

    def offset(self, scaling: Scaling) -> np.ndarray:
        """(T,) least change of the outputs' shift, unit-free, that makes it a constant which the eliminated rows allow."""
        F = self.operator.undifferentiated * scaling.y_scale
        size = np.sqrt(np.sum(F**2, axis=1))
        used = size > 0
        F, total = F[used] / size[used, None], self.operator.totals[used] / size[used]
        shift = scaling.y_shift / scaling.y_scale
        return np.linalg.pinv(F) @ (total - F @ shift) if len(F) else np.zeros(len(shift))

    def constants(self, scaling: Scaling, y: np.ndarray) -> np.ndarray:
        """(T,) prior sds of the outputs' constants, unit-free: where nothing was shifted, the size of the mean of y (N, T).

        That is the most probable variance of a single number; the mean of few values is uncertain.
        """
        seen = ~np.isnan(y)
        mean = np.abs(np.where(seen, y, 0.0).sum(axis=0)) / np.maximum(seen.sum(axis=0), 1)
        at_rest = (scaling.y_shift == 0) & seen.any(axis=0) & (len(scaling.x_scale) > 1)
        return np.where(at_rest, np.clip(mean, LEAST_CONSTANT, FREE_CONSTANT), FREE_CONSTANT)

    def completed(self, data: Data, scaling: Scaling) -> Scaling:
        """The scaling of a field, and sizes of outputs that were never measured.

        Those come from the rest of the law, or from the others: a latent function is as large as the measured outputs say,
        and varies over half the inputs' range.
        """
        scaling = _of_a_field(scaling) if len(scaling.x_scale) > 1 else scaling
        measured = data.measured.any(axis=0)
        never = np.flatnonzero(~measured)
        if not len(never) or (self.rest is not None and np.all(self.rest.involved()[never])):
            return complete_scaling(self.rest, data, scaling)
        span = 0.5 * np.ptp(data.x[:, : self.potential.exponents.shape[1]], axis=0)
        reach = np.prod(np.where(span > 0, span, 1.0)[None, :] ** self.potential.exponents, axis=1)
        made = np.abs(self.potential.coefficients / reach).max(axis=2)  # (T, K) outputs for latent functions of size one
        with np.errstate(divide="ignore"):
            latent = np.min(np.where(made > 0, scaling.y_scale[:, None] / made, np.inf)[measured], axis=0)
        lost = [t for t in never if not np.all(np.isfinite(latent[made[t] > 0]))]
        if lost:
            raise ConstraintError(
                f"Y: output {data.output_names[lost[0]]!r} was never measured and no law determines it; "
                "measure it, drop it, or give a law that contains it"
            )
        shift, scale = scaling.y_shift.copy(), scaling.y_scale.copy()
        shift[never] = 0.0
        scale[never] = [np.max(made[t, made[t] > 0] * latent[made[t] > 0]) for t in never]
        return Scaling(scaling.x_shift, scaling.x_scale, shift, scale)


def _of_a_field(scaling: Scaling) -> Scaling:
    """Inputs of similar ranges divided by one number, and outputs whose mean is small beside their spread not shifted.

    A field over a plane or room then has one lengthscale in all directions of it, and far from the data it is at rest.
    """
    low, high = scaling.x_scale.min(), scaling.x_scale.max()
    x_scale = np.full_like(scaling.x_scale, high) if high < SIMILAR * low else scaling.x_scale
    small = np.abs(scaling.y_shift) < scaling.y_scale
    return replace(scaling, x_scale=x_scale, y_shift=np.where(small, 0.0, scaling.y_shift))


def split_law(law: Law | None) -> SplitLaw | None:
    """The law split, None if no differential row can be eliminated, or others would mention derivatives still."""
    if law is None or not law.derivatives:
        return None
    eliminated, potential = _eliminable(law, [int(row) for row in np.flatnonzero(constant_rows(law))])
    if potential is None or not _has_derivatives(law, eliminated):
        return None
    others = [row for row in range(law.n_rows) if row not in eliminated]
    rest = law.rows(others) if others else None
    if rest is not None and np.any(rest.involved()[_derivative_columns(rest)]):
        return None
    operator = as_operator(law.rows(eliminated))
    return SplitLaw(potential, tuple(eliminated), None if rest is None else _lean(rest), operator)


def between_outputs(law: Law) -> Law | None:
    """The rows that mention no derivative, over outputs and unknown constants alone; None if there are none."""
    if not law.derivatives:
        return law
    derivatives = _derivative_columns(law)
    rows = [row for row in range(law.n_rows) if not np.any(law.rows([row]).involved()[derivatives])]
    return _lean(law.rows(rows)) if rows else None


def _eliminable(law: Law, rows: list[int]) -> tuple[list[int], Potential | None]:
    """All rows if they have a potential together, else as many as have one, taken in turn."""
    potential = _potential(law, rows)
    if potential is not None or not rows:
        return rows, potential
    kept: list[int] = []
    for row in rows:
        if (more := _potential(law, [*kept, row])) is not None:
            kept, potential = [*kept, row], more
    return kept, potential


def _potential(law: Law, rows: Sequence[int]) -> Potential | None:
    if not rows:
        return None
    operator = as_operator(law.rows(rows))
    return find_potential(operator.exponents, operator.coefficients) if operator.has_constant_solution else None


def _has_derivatives(law: Law, rows: Sequence[int]) -> bool:
    operator = as_operator(law.rows(rows))
    return bool(np.any(operator.coefficients[:, :, operator.exponents.any(axis=1)]))


def _derivative_columns(law: Law) -> slice:
    return slice(len(law.outputs), len(law.outputs) + len(law.derivatives))


def _lean(law: Law) -> Law:
    """A law that mentions no derivative over outputs and unknown constants alone."""
    return seen_from(law, (), law.unknowns, law.extra_columns)


Order = tuple[int, ...]


@dataclass(frozen=True)
class LatentMap:
    """Where the outputs come from; ``sizes`` (P,) limit each polynomial at the training inputs."""

    potential: Potential  # unit-free
    offset: np.ndarray  # (T,) what the scaling's shift takes from outputs although the law does not allow it
    centre: np.ndarray  # (D,) origin of the polynomials
    sizes: np.ndarray  # (P,)

    @property
    def n_latent(self) -> int:
        """Number of latent functions."""
        return self.potential.n_latent

    def orders(self, latent: int) -> tuple[tuple[Order, ...], np.ndarray]:
        """Derivatives of one latent function that occur, and the outputs' coefficients (T, A) of them."""
        used = np.flatnonzero(np.any(self.potential.coefficients[:, latent] != 0, axis=0))
        orders = tuple(tuple(int(i) for i in self.potential.exponents[m]) for m in used)
        return orders, self.potential.coefficients[:, latent, used]

    @cached_property
    def monomials(self) -> tuple[tuple[int, Order], ...]:
        """(latent function, exponents) of each polynomial."""
        return tuple((k, order) for k in range(self.n_latent) for order in self.orders(k)[0])

    def reordered(self, order: np.ndarray) -> LatentMap:
        """The same functions for the outputs ``order`` (T,)."""
        turned = replace(self.potential, coefficients=self.potential.coefficients[order])
        return replace(self, potential=turned, offset=self.offset[order])

    def polynomials(self, x: np.ndarray, order: Order | None = None) -> np.ndarray:
        """(n, T, P) outputs that the polynomials make at x, differentiated by ``order``."""
        return _polynomials(self, x, order) / self.sizes


def _polynomials(latent: LatentMap, x: np.ndarray, order: Order | None) -> np.ndarray:
    z = x - latent.centre
    more = (0,) * z.shape[1] if order is None else order
    parts = []
    for k, exponents in latent.monomials:
        orders, coefficients = latent.orders(k)
        slopes = [_monomial(z, exponents, tuple(np.add(o, more).tolist())) for o in orders]
        parts.append(np.stack(slopes, axis=1) @ coefficients.T)
    return np.stack(parts, axis=2)


def _monomial(z: np.ndarray, exponents: Order, order: Order) -> np.ndarray:
    """(n,) derivative of z^exponents."""
    result = np.ones(len(z))
    for i, (e, o) in enumerate(zip(exponents, order, strict=True)):
        result = result * (math.perm(e, o) * z[:, i] ** (e - o) if e >= o else 0.0)
    return result


def latent_map(potential: Potential, offset: np.ndarray, x: np.ndarray, largest: np.ndarray) -> LatentMap:
    """The map of a unit-free potential for training inputs x (N, D); no polynomial makes outputs above ``largest`` (T,)."""
    centre = 0.5 * (x.min(axis=0) + x.max(axis=0))
    plain = LatentMap(potential, offset, centre, np.ones(1))
    size = (np.sqrt(np.mean(_polynomials(plain, x, None) ** 2, axis=0)) / largest[:, None]).max(axis=0)
    return LatentMap(potential, offset, centre, np.where(size > 0, size, 1.0))
