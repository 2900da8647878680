"""Data kernels: scikit-learn kernels, with closed forms on stored distances for the common stationary ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.gaussian_process import kernels as library
from sklearn.gaussian_process.kernels import Kernel

from sumgp.errors import DataError
from sumgp.priors.growth import Growth

SKLEARN_DEFAULT_BOUNDS = (1e-5, 1e5)  # of every hyperparameter there: a user who has these has chosen none


HEAVY = 1.5  # widths below half the range from which on a lengthscale's density falls by a power, not like a normal
SPIKES = 1e-2  # a lengthscale below this share of its prior's centre, and
GROWTH_SD = 1.0  # prior sd of the logarithm of sizes at an edge over those in the middle
SPIKES_APART = 0.2  # below this share of the distance between rows, means spikes towards each training point


@dataclass(frozen=True)
class HyperPrior:
    """Weak prior of one log-hyperparameter: normal around ``centre``, other widths below and above.

    More than ``heavy`` widths below the centre the tail is exponential, so that many data may ask for lengthscales far
    shorter than expected. ``spacing``: log distance between neighbouring rows along the input of a lengthscale,
    infinite if it is not known.
    """

    centre: float
    below: float
    above: float
    heavy: float = math.inf
    spacing: float = math.inf

    @property
    def spikes(self) -> float:
        """Log lengthscale below which a curve is spikes towards each training point."""
        return min(self.centre + math.log(SPIKES), self.spacing + math.log(SPIKES_APART))

    def log_density(self, value: float) -> float:
        """Up to a constant: -z^2 / 2 with z in widths, continued as a straight line where the tail is heavy."""
        z = (value - self.centre) / (self.below if value < self.centre else self.above)
        inner = max(z, -self.heavy)
        return 0.5 * inner * inner - inner * z

    def slope(self, value: float) -> float:
        """Derivative of the log density."""
        width = self.below if value < self.centre else self.above
        return -max((value - self.centre) / width, -self.heavy) / width


def leaves(kernel: Kernel) -> Iterator[Kernel]:
    """The elementary kernels a kernel is composed of, in the order of its theta."""
    if isinstance(kernel, library.KernelOperator):
        yield from leaves(kernel.k1)
        yield from leaves(kernel.k2)
    elif isinstance(kernel, library.Exponentiation):
        yield from leaves(kernel.kernel)
    elif isinstance(kernel, library.CompoundKernel):
        raise DataError("kernel", "one kernel per term", "a CompoundKernel", "give a list of kernels instead")
    else:
        yield kernel


def prepare_kernel(kernel: Any, half_range: np.ndarray) -> Kernel:
    """A private copy of the user's kernel, checked, with lengthscales left at their defaults set from the data.

    A lengthscale of 1 with scikit-learn's default bounds says nothing about the data: it becomes half the inputs' range.
    """
    if not isinstance(kernel, Kernel):
        raise DataError("kernel", "a scikit-learn kernel or a list of them", type(kernel).__name__, "e.g. Matern(nu=2.5)")
    kernel = clone(kernel)
    for leaf in leaves(kernel):
        if isinstance(leaf, library.WhiteKernel):
            raise DataError("kernel", "a kernel without white noise", "a WhiteKernel", "use the argument noise= instead")
        if _has_lengthscale(leaf) and _is_default(leaf):
            size = half_range if np.ndim(leaf.length_scale) else float(np.sqrt(np.mean(half_range**2)))
            leaf.set_params(
                length_scale=np.broadcast_to(size, np.shape(leaf.length_scale)).copy() if np.ndim(size) else size,
                length_scale_bounds=(1e-4 * float(np.min(size)), 1e3 * float(np.max(size))),
            )
    return kernel


def _has_lengthscale(leaf: Kernel) -> bool:
    return isinstance(leaf, (library.RBF, library.RationalQuadratic))  # Matern is an RBF to scikit-learn


def _is_default(leaf: Any) -> bool:
    bounds = leaf.length_scale_bounds
    return (
        bool(np.all(np.asarray(leaf.length_scale) == 1.0))
        and not isinstance(bounds, str)
        and (np.shape(bounds) == (2,) and tuple(bounds) == SKLEARN_DEFAULT_BOUNDS)
    )


def hyper_priors(kernel: Kernel, half_range: np.ndarray, spacing: float = 0.0) -> list[HyperPrior]:
    """Priors of the entries of ``kernel.theta``: lengthscales around half the range, anything else around its start.

    ``spacing``: distance between neighbouring rows in half ranges, 0 if it is not known.
    """
    result = []
    apart = math.log(spacing) if spacing > 0 else math.inf
    for leaf in leaves(kernel):
        for parameter in leaf.hyperparameters:
            if parameter.fixed:
                continue
            start = np.log(np.atleast_1d(getattr(leaf, parameter.name)))
            for i in range(parameter.n_elements):
                if parameter.name == "length_scale" and _has_lengthscale(leaf):
                    size = half_range[i] if parameter.n_elements > 1 else float(np.sqrt(np.mean(half_range**2)))
                    result.append(HyperPrior(math.log(size), 1.0, 10.0, HEAVY, math.log(size) + apart))
                elif isinstance(leaf, Growth):
                    reach = half_range[i] if parameter.n_elements > 1 else float(np.sqrt(np.mean(half_range**2)))
                    result.append(HyperPrior(float(start[i]), GROWTH_SD / reach, GROWTH_SD / reach))
                else:
                    result.append(HyperPrior(float(start[i]), 2.0, 2.0))
    return result


def lengthscale_mask(kernel: Kernel) -> np.ndarray:
    """Which entries of ``kernel.theta`` are lengthscales over the inputs."""
    flags: list[bool] = []
    for leaf in leaves(kernel):
        for parameter in leaf.hyperparameters:
            if not parameter.fixed:
                flags += [parameter.name == "length_scale" and _has_lengthscale(leaf)] * parameter.n_elements
    return np.array(flags, dtype=bool)


def local_lengthscales(kernel: Kernel, theta: np.ndarray) -> np.ndarray:
    """The kernel's lengthscales at theta, none longer than the distance w period / (2 pi) over which a wave of it varies."""
    lengths = np.exp(theta[lengthscale_mask(kernel)])
    waves = [leaf for leaf in leaves(with_theta(kernel, theta)) if isinstance(leaf, library.ExpSineSquared)]
    return np.minimum(lengths, min((w.length_scale * w.periodicity / (2.0 * math.pi) for w in waves), default=math.inf))


def kernel_at(kernel: Kernel) -> Callable[[np.ndarray], Kernel]:
    """The kernel as a function of theta; without scikit-learn's inspection of arguments where only a lengthscale is free."""
    return kernel.clone_with_theta if _closed_form(kernel) is None else partial(_of_length, kernel)


def _of_length(kernel: Kernel, theta: np.ndarray) -> Kernel:
    result = copy(kernel)
    result.length_scale = math.exp(theta[0])
    return result


def with_theta(kernel: Kernel, theta: np.ndarray) -> Kernel:
    """The kernel at theta."""
    return kernel_at(kernel)(theta)


MOST_STORED = 600  # points whose distances are kept for parts of the matrix too


class KernelOnPoints:
    """K and its gradients at fixed points, for many values of theta.

    For RBF, Matern 1/2, 3/2, 5/2 (one free lengthscale or one per input), RationalQuadratic (one free lengthscale) and
    ExpSineSquared * RBF closed forms are used, with stored distances; any other kernel is evaluated by scikit-learn.
    """

    def __init__(self, kernel: Kernel, points: np.ndarray) -> None:
        self.kernel = kernel
        self.points = points
        self._closed_form = _closed_form(kernel)
        self._anisotropic = _stationary(kernel) if _is_anisotropic(kernel, points) else None
        self._quasi_periodic = _is_quasi_periodic(kernel)

    @property
    def has_closed_form(self) -> bool:
        """Whether any part of the matrix can be had alone; its diagonal is then one."""
        return bool(self._closed_form or self._anisotropic or self._quasi_periodic)

    def matrix_and_gradient(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """K (n, n) and its derivatives (p, n, n) with respect to theta."""
        if self.has_closed_form:
            return self._evaluated(theta, self._squared, True)
        K, gradient = with_theta(self.kernel, theta)(self.points, eval_gradient=True)
        return K, np.moveaxis(gradient, 2, 0)

    def matrix(self, theta: np.ndarray) -> np.ndarray:
        """K (n, n) alone."""
        if self.has_closed_form:
            return self._evaluated(theta, self._squared, False)[0]
        return with_theta(self.kernel, theta)(self.points)

    def matrices(self, thetas: np.ndarray) -> np.ndarray:
        """K (m, n, n) of several thetas (m, p)."""
        if self._closed_form is None:
            return np.stack([self.matrix(theta) for theta in thetas])
        scales = np.array([math.exp(-2.0 * theta[0]) for theta in thetas])
        return self._closed_form(self._squared * scales[:, None, None], False)[0]

    def part(self, theta: np.ndarray, rows: Any, columns: Any, with_slopes: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """K of these rows and columns and its derivatives, which may be left out (p = 0); of a closed form only."""
        if len(self.points) <= MOST_STORED:
            return self._evaluated(theta, self._squared[..., rows, :][..., columns], with_slopes)
        return self._evaluated(theta, self._between(self.points[rows], self.points[columns]), with_slopes)

    @cached_property
    def _squared(self) -> np.ndarray:
        return self._between(self.points, self.points)

    def _between(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Squared distances (n, m), or (D, n, m) where each input has a lengthscale."""
        return (x.T[:, :, None] - z.T[:, None, :]) ** 2 if self._anisotropic else cdist(x, z, "sqeuclidean")

    def _evaluated(self, theta: np.ndarray, squared: np.ndarray, with_slopes: bool) -> tuple[np.ndarray, np.ndarray]:
        if self._closed_form:
            K, dK = self._closed_form(squared * math.exp(-2.0 * theta[0]), with_slopes)
            return K, dK[None] if with_slopes else dK
        if self._anisotropic:
            scales = np.exp(-2.0 * theta)
            total = np.tensordot(scales, squared, axes=1)
            K, dK = self._anisotropic(total, with_slopes)
            if not with_slopes:
                return K, dK
            # All lengthscales together change K by dK; each has its share of the squared distance in it.
            np.divide(dK, total, out=dK, where=total > 0.0)
            return K, np.multiply(slopes := scales[:, None, None] * squared, dK, out=slopes)
        return _quasi_periodic(squared, np.exp(theta), with_slopes)


def _closed_form(kernel: Kernel) -> Any:
    """Function of squared scaled distances giving K and dK/dlog(lengthscale) of one lengthscale, or None."""
    elementary = type(kernel) in (library.RBF, library.Matern, library.RationalQuadratic)
    if not elementary or len(kernel.theta) != 1 or not lengthscale_mask(kernel).all() or np.ndim(kernel.length_scale):
        return None
    return _stationary(kernel)


def _stationary(kernel: Kernel) -> Any:
    """The same for any number of lengthscales that change together."""
    if type(kernel) is library.RBF:
        return _rbf
    if type(kernel) is library.Matern and kernel.nu in CLOSED_MATERN:
        return CLOSED_MATERN[kernel.nu]
    if type(kernel) is library.RationalQuadratic:
        return partial(_rational, alpha=float(kernel.alpha))
    return None


def _is_anisotropic(kernel: Kernel, points: np.ndarray) -> bool:
    return (
        type(kernel) in (library.RBF, library.Matern)
        and np.ndim(kernel.length_scale) == 1
        and len(kernel.theta) == points.shape[1]
    )


def _is_quasi_periodic(kernel: Kernel) -> bool:
    if (
        type(kernel) is not library.Product
        or type(kernel.k1) is not library.ExpSineSquared
        or type(kernel.k2) is not library.RBF
    ):
        return False
    return len(kernel.k1.theta) == 2 and len(kernel.k2.theta) == 1 and not np.ndim(kernel.k2.length_scale)


def _quasi_periodic(squared: np.ndarray, parameters: np.ndarray, with_slopes: bool) -> tuple[np.ndarray, np.ndarray]:
    """K and, unless they are left out, its derivatives by the logarithms of w, period and lengthscale."""
    w, period, length = parameters
    angle = np.sqrt(squared) * (math.pi / period)
    sine = np.sin(angle)
    wave, scaled = (sine / w) ** 2, squared / length**2
    K = np.exp(-2.0 * wave - 0.5 * scaled)
    if not with_slopes:
        return K, _none_of(K)
    return K, np.stack([4.0 * wave * K, (4.0 / w**2) * angle * sine * np.cos(angle) * K, scaled * K])


def _none_of(K: np.ndarray) -> np.ndarray:
    """(0, n, m) in place of derivatives that are left out."""
    return np.zeros((0, *K.shape))


# Each gives K of squared scaled distances and its derivative by the logarithm of the lengthscale, or ``_none_of`` it.


def _rbf(squared: np.ndarray, with_slopes: bool) -> tuple[np.ndarray, np.ndarray]:
    K = np.exp(-0.5 * squared)
    return K, K * squared if with_slopes else _none_of(K)


def _matern12(squared: np.ndarray, with_slopes: bool) -> tuple[np.ndarray, np.ndarray]:
    r = np.sqrt(squared)
    K = np.exp(-r)
    return K, K * r if with_slopes else _none_of(K)


def _matern32(squared: np.ndarray, with_slopes: bool) -> tuple[np.ndarray, np.ndarray]:
    r = np.sqrt(3.0 * squared)
    decay = np.exp(-r)
    return (1.0 + r) * decay, 3.0 * squared * decay if with_slopes else _none_of(r)


def _matern52(squared: np.ndarray, with_slopes: bool) -> tuple[np.ndarray, np.ndarray]:
    r = np.sqrt(5.0 * squared)
    decay = np.exp(-r)
    K = (1.0 + r + r * r / 3.0) * decay
    return K, (5.0 / 3.0) * squared * (1.0 + r) * decay if with_slopes else _none_of(K)


def half_integer_bessel(p: float, r: np.ndarray) -> np.ndarray:
    """h_p(r) = sqrt(2 / pi) r^p K_p(r) for p = 1/2, 3/2, ...: a polynomial times e^-r.

    A Matern kernel is h_nu(r) / h_nu(0) with r = sqrt(2 nu) distance / lengthscale, and dh_p / dr = -r h_{p-1}. By
    K_{p+1} = K_{p-1} + (2 p / r) K_p: h_{p+1} = 2 p h_p + r^2 h_{p-1}.
    """
    lower, form, order = r, np.ones_like(r), 0.5  # r^2 h_{-1/2} = r e^-r
    while order < p:
        lower, form, order = r * r * form, 2.0 * order * form + lower, order + 1.0
    return form * np.exp(-r)


def _smoother_matern(squared: np.ndarray, with_slopes: bool, nu: float) -> tuple[np.ndarray, np.ndarray]:
    r = np.sqrt(2.0 * nu * squared)
    size = float(half_integer_bessel(nu, np.zeros(1))[0])
    slope = r * r * half_integer_bessel(nu - 1.0, r) / size if with_slopes else _none_of(r)
    return half_integer_bessel(nu, r) / size, slope


# Smoothness nu -> kernel and slope as functions of the squared distance: half-integers have a closed form.
CLOSED_MATERN: dict[float, Any] = {
    0.5: _matern12,
    1.5: _matern32,
    2.5: _matern52,
    3.5: partial(_smoother_matern, nu=3.5),
    4.5: partial(_smoother_matern, nu=4.5),
}


def _rational(squared: np.ndarray, with_slopes: bool, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    inverse = 1.0 / (1.0 + squared / (2.0 * alpha))
    K = inverse * inverse if alpha == 2.0 else inverse**alpha  # a general power takes ten times as long
    return K, squared * K * inverse if with_slopes else _none_of(K)
