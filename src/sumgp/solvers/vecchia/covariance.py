"""Stationary covariances of scaled distances, with derivatives that need one array for all lengthscales.

With s = sum_d (x_d - x'_d)^2 / l_d^2 every kernel here is k(s), and dk / dlog l_d = p(s) (x_d - x'_d)^2 / l_d^2 with
p = -2 dk/ds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, Product, RationalQuadratic

from sumgp.errors import DataError, worded

SMOOTHNESS = (0.5, 1.5, 2.5, np.inf)
NEAREST = 1e-6  # lengthscales; nearer points have derivatives r^2 / r that are of no account
WANTED = "RBF, Matern 1/2, 3/2, 5/2 or RationalQuadratic, alone or times a constant, for solver=Vecchia()"


class Profile(NamedTuple):
    """k(s), p(s) = -2 dk/ds, and dk/dlog(alpha) where alpha is free."""

    k: np.ndarray
    p: np.ndarray
    by_shape: np.ndarray | None = None


@dataclass(frozen=True)
class ScaledCovariance:
    """One elementary kernel of scikit-learn with its own free parameters ``theta``, as ``kernel.theta`` orders them."""

    kernel: Kernel

    @property
    def n_parameters(self) -> int:
        """Length of theta."""
        return len(self.kernel.theta)

    def at(self, theta: np.ndarray) -> ScaledCovariance:
        """The same kernel with other parameters."""
        return ScaledCovariance(self.kernel.clone_with_theta(theta))

    def lengthscales(self, n_inputs: int) -> np.ndarray:
        """(D,) lengthscale of each input."""
        return np.broadcast_to(np.asarray(self.kernel.length_scale, dtype=float), (n_inputs,))

    def profile(self, s: np.ndarray) -> Profile:
        """k and p at squared scaled distances."""
        kernel = self.kernel
        if type(kernel) is RationalQuadratic:
            return _rational(s, float(kernel.alpha), kernel.alpha_bounds != "fixed")
        nu = np.inf if type(kernel) is RBF else kernel.nu
        if nu == np.inf:
            k = np.exp(-0.5 * s)
            return Profile(k, k)
        r = np.sqrt(2.0 * nu * s)
        decay = np.exp(-r)
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

    def values(self, s: np.ndarray) -> np.ndarray:
        """k alone."""
        kernel = self.kernel
        if type(kernel) is RationalQuadratic:
            return _rational(s, float(kernel.alpha), False).k
        nu = np.inf if type(kernel) is RBF else kernel.nu
        if nu == np.inf:
            return np.exp(-0.5 * s)
        r = np.sqrt(2.0 * nu * s)
        decay = np.exp(-r)
        return decay if nu == 0.5 else (1.0 + r) * decay if nu == 1.5 else (1.0 + r + r * r / 3.0) * decay

    def gradient(self, by_length: np.ndarray, by_shape: float) -> np.ndarray:
        """Derivative by theta from those by the log of each input's lengthscale (D,) and by log alpha."""
        parts: list[np.ndarray] = []
        for parameter in self.kernel.hyperparameters:
            if parameter.fixed:
                continue
            if parameter.name == "length_scale":
                parts.append(by_length if parameter.n_elements > 1 else by_length.sum()[None])
            else:
                parts.append(np.array([by_shape]))
        return np.concatenate(parts) if parts else np.zeros(0)


def _rational(s: np.ndarray, alpha: float, shape_is_free: bool) -> Profile:
    base = 1.0 + s / (2.0 * alpha)
    k = base**-alpha
    by_shape = k * (0.5 * s / base - alpha * np.log(base)) if shape_is_free else None
    return Profile(k, k / base, by_shape)


def elementary(kernel: Kernel) -> Kernel:
    """The kernel without constant factors, which are left to the signal's size; an error for kernels not of this form."""
    if isinstance(kernel, Product):
        for constant, other in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if isinstance(constant, ConstantKernel):
                return elementary(other)
    if type(kernel) in (RBF, RationalQuadratic) or (type(kernel) is Matern and kernel.nu in SMOOTHNESS):
        return kernel
    raise DataError(worded("kernel", WANTED, str(kernel), "use such a kernel, or solver=Dense() with fewer rows"))


def has_elementary_form(kernel: Kernel) -> bool:
    """True if ``elementary`` takes the kernel."""
    try:
        elementary(kernel)
    except DataError:
        return False
    return True
