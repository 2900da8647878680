"""Stationary covariances of scaled distances, alone or in sums, with derivatives that need one array for all lengthscales.

With s = sum_d (x_d - x'_d)^2 / l_d^2 every elementary kernel here is k(s), and dk / dlog l_d = p(s) (x_d - x'_d)^2 / l_d^2
with p = -2 dk/ds. A sum counts as sum_j w_j k_j / sum_j w_j: the signal's size is a parameter of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, Product, RationalQuadratic, Sum

from sumgp.errors import DataError
from sumgp.priors import leaves

SMOOTHNESS = (0.5, 1.5, 2.5, np.inf)  # nu of the Matern kernels with a closed form; infinite: RBF
NEAREST = 1e-6  # lengthscales; nearer points have derivatives r^2 / r that are of no account
WANTED = "RBF, Matern 1/2, 3/2, 5/2 or RationalQuadratic, alone, times a constant, or a sum of such, for solver=Vecchia()"


class Profile(NamedTuple):
    """k(s), p(s) = -2 dk/ds, and dk/dlog(alpha) where alpha is free."""

    k: np.ndarray
    p: np.ndarray
    by_shape: np.ndarray | None = None


class Term(NamedTuple):
    """An elementary kernel and the constants that multiply it."""

    kernel: Kernel
    constants: tuple[ConstantKernel, ...] = ()

    @property
    def weight(self) -> float:
        """The product of the constants."""
        return float(np.prod([c.constant_value for c in self.constants]))


class Slopes(NamedTuple):
    """Derivatives of a scalar by one term: its log lengthscales (D,), log alpha, log weight."""

    by_length: np.ndarray
    by_shape: float
    by_weight: float

    def plus(self, other: Slopes) -> Slopes:
        """The derivatives of a sum."""
        return Slopes(self.by_length + other.by_length, self.by_shape + other.by_shape, self.by_weight + other.by_weight)


@dataclass(frozen=True)
class ScaledCovariance:
    """A kernel of scikit-learn that ``elementary`` gives; its free parameters ``theta`` as ``kernel.theta`` orders them.

    Points are given to its methods in ``lengthscales``, those of the shortest term.
    """

    kernel: Kernel

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The elementary kernels."""
        return _terms(self.kernel)

    @cached_property
    def shares(self) -> np.ndarray:
        """(J,) of the unit variance that each term has."""
        weights = np.array([term.weight for term in self.terms])
        return weights / weights.sum()

    @cached_property
    def n_parameters(self) -> int:
        """Length of theta."""
        return len(self.kernel.theta)

    def at(self, theta: np.ndarray) -> ScaledCovariance:
        """The same kernel with other parameters."""
        return ScaledCovariance(self.kernel.clone_with_theta(theta))

    def lengthscales(self, n_inputs: int) -> np.ndarray:
        """(D,) lengthscale of each input, in the term that varies most rapidly."""
        lengths = self._all_lengthscales(n_inputs)
        return lengths[np.argmin(np.log(lengths).sum(axis=1))]

    def _all_lengthscales(self, n_inputs: int) -> np.ndarray:
        each = [np.asarray(term.kernel.length_scale, dtype=float) for term in self.terms]
        return np.stack([np.broadcast_to(lengths, (n_inputs,)) for lengths in each])

    def profiles(self, points: np.ndarray) -> list[Profile]:
        """k and p (B, m, m) of each term between points (B, m, D) of a block."""
        distances = self._squared_distances(points, points)
        return [_profile(term.kernel, s) for term, s in zip(self.terms, distances, strict=True)]

    def within(self, points: np.ndarray) -> np.ndarray:
        """(B, m, m) ``between`` the points (B, m, D) of a block, and themselves."""
        return self.between(points, points)

    def between(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(B, m, n) covariances between points a (B, m, D) and b (B, n, D), of variance one."""
        distances = self._squared_distances(a, b)
        values = [_values(term.kernel, s) for term, s in zip(self.terms, distances, strict=True)]
        if len(values) == 1:
            return values[0]
        return np.asarray(sum(w * k for w, k in zip(self.shares, values, strict=True)))

    def ratios(self, n_inputs: int) -> np.ndarray:
        """(J, D) lengthscales of each term over those of the shortest."""
        return self._all_lengthscales(n_inputs) / self.lengthscales(n_inputs)

    def _squared_distances(self, a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
        first, result = squared_distances(a, b), []
        for ratio in self.ratios(a.shape[2]):
            alike = bool(np.all(ratio == ratio[0]))
            if alike:
                result.append(first if ratio[0] == 1.0 else first / ratio[0] ** 2)
            else:
                result.append(squared_distances(a / ratio, b / ratio))
        return result

    def gradient(self, slopes: list[Slopes]) -> np.ndarray:
        """Derivative by theta from those by each term."""
        parts: list[np.ndarray] = []
        for leaf in leaves(self.kernel):
            if isinstance(leaf, ConstantKernel):
                of = [s for term, s in zip(self.terms, slopes, strict=True) if any(c is leaf for c in term.constants)]
                parts += [np.array([sum(s.by_weight for s in of)])] * sum(not p.fixed for p in leaf.hyperparameters)
                continue
            slope = next(s for term, s in zip(self.terms, slopes, strict=True) if term.kernel is leaf)
            for parameter in leaf.hyperparameters:
                if parameter.fixed:
                    continue
                if parameter.name == "length_scale":
                    parts.append(slope.by_length if parameter.n_elements > 1 else slope.by_length.sum()[None])
                else:
                    parts.append(np.array([slope.by_shape]))
        return np.concatenate(parts) if parts else np.zeros(0)


@dataclass(frozen=True)
class LatentKernels:
    """One kernel that all latents share, or one for each of them; their free parameters one after the other in ``theta``."""

    each: tuple[ScaledCovariance, ...]

    @property
    def shared(self) -> bool:
        """True if there is one kernel for all latents."""
        return len(self.each) == 1

    @cached_property
    def n_parameters(self) -> int:
        """Length of theta."""
        return sum(covariance.n_parameters for covariance in self.each)

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Of each entry of theta."""
        return [(float(a), float(b)) for c in self.each for a, b in np.reshape(c.kernel.bounds, (-1, 2))]

    def at(self, theta: np.ndarray) -> LatentKernels:
        """The same kernels with other parameters."""
        parts = np.split(theta, np.cumsum([c.n_parameters for c in self.each])[:-1])
        return LatentKernels(tuple(c.at(part) for c, part in zip(self.each, parts, strict=True)))

    def latents(self, number: int) -> slice:
        """The latents that have the kernel of this number."""
        return slice(None) if self.shared else slice(number, number + 1)


def squared_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(B, m, n) between points (B, m, D) and (B, n, D), from differences: near-duplicates keep their digits."""
    total = a[:, :, None, 0] - b[:, None, :, 0]
    total *= total
    for d in range(1, a.shape[2]):
        apart = a[:, :, None, d] - b[:, None, :, d]
        apart *= apart
        total += apart
    return total


def _profile(kernel: Kernel, s: np.ndarray) -> Profile:
    """k and p at squared scaled distances."""
    if type(kernel) is RationalQuadratic:
        return _rational(s, float(kernel.alpha), kernel.alpha_bounds != "fixed")
    nu = np.inf if type(kernel) is RBF else kernel.nu
    if nu == np.inf:
        k = np.exp(-0.5 * s)
        return Profile(k, k)
    r, decay = _decay(s, nu)
    if nu == 0.5:
        return Profile(decay, decay / np.maximum(r, NEAREST))
    slope = r * decay
    slope += decay  # (1 + r) exp(-r)
    if nu == 1.5:
        decay *= 3.0
        return Profile(slope, decay)
    r *= r
    r *= decay
    r *= 1.0 / 3.0
    r += slope
    slope *= 5.0 / 3.0
    return Profile(r, slope)


def _values(kernel: Kernel, s: np.ndarray) -> np.ndarray:
    """k alone."""
    if type(kernel) is RationalQuadratic:
        return _rational(s, float(kernel.alpha), False).k
    nu = np.inf if type(kernel) is RBF else kernel.nu
    if nu == np.inf:
        return np.exp(-0.5 * s)
    r, decay = _decay(s, nu)
    if nu == 0.5:
        return decay
    factor = r * r if nu == 2.5 else r
    if nu == 2.5:
        factor *= 1.0 / 3.0
        factor += r
    factor += 1.0
    factor *= decay
    return factor


def _decay(s: np.ndarray, nu: float) -> tuple[np.ndarray, np.ndarray]:
    """r = sqrt(2 nu s) and exp(-r), without more arrays than these."""
    r = np.multiply(s, 2.0 * nu)
    np.sqrt(r, out=r)
    decay = np.negative(r)
    return r, np.exp(decay, out=decay)


def _rational(s: np.ndarray, alpha: float, shape_is_free: bool) -> Profile:
    base = 1.0 + s / (2.0 * alpha)
    k = base**-alpha
    by_shape = k * (0.5 * s / base - alpha * np.log(base)) if shape_is_free else None
    return Profile(k, k / base, by_shape)


def _terms(kernel: Kernel, constants: tuple[ConstantKernel, ...] = ()) -> tuple[Term, ...]:
    if isinstance(kernel, Sum):
        return (*_terms(kernel.k1, constants), *_terms(kernel.k2, constants))
    if isinstance(kernel, Product):
        for constant, other in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if isinstance(constant, ConstantKernel):
                return _terms(other, (*constants, constant))
    if type(kernel) in (RBF, RationalQuadratic) or (type(kernel) is Matern and kernel.nu in SMOOTHNESS):
        return (Term(kernel, constants),)
    raise DataError("kernel", WANTED, str(kernel), "use such a kernel, or solver=Dense() with fewer rows")


def elementary(kernel: Kernel) -> Kernel:
    """The kernel, without constants where it has one term; an error for kernels not of this form."""
    terms = _terms(kernel)
    return terms[0].kernel if len(terms) == 1 else kernel


def has_elementary_form(kernel: Kernel) -> bool:
    """True if ``elementary`` takes the kernel."""
    try:
        elementary(kernel)
    except DataError:
        return False
    return True
