"""Outputs as derivatives of latent functions: f(x) = G(d) g(x) + offset, a prior under which a differential law holds.

G is the ``Potential`` of the law, unit-free. Besides the kernels' share each g_k has a polynomial of the monomials x^e whose
derivative d^e occurs in its column of G, with marginalised coefficients: the counterpart of a constant mean of the outputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sumgp.laws.elimination import Potential

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
