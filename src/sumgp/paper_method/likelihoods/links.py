"""Smooth inverses g of a transform on one branch: y = g(f') + noise, defined for every real f'.

Where h turns round, its inverse ends with an infinite slope. A Gaussian latent value may lie beyond that end, so g is
continued as an odd function about it and its slope is bounded on the scale of the noise: for the square,
g(u) = u / (u^2 + d^2)^(1/4) with d = 0.1 sigma^2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from sumgp.transforms import Absolute, Cos, Log, Power, Sin, Square, Transform

# Width of the smoothed end, in units of the noise variance of the transformed value at the turning point.
SMOOTHING = 0.1


@dataclass(frozen=True)
class LinkTerms:
    """g and its derivatives by the latent value and by log noise sd, each of the shape of the latent values."""

    value: np.ndarray
    first: np.ndarray
    second: np.ndarray
    noise: np.ndarray
    first_noise: np.ndarray


class Link(ABC):
    """An inverse branch of h, made smooth and total."""

    @abstractmethod
    def evaluate(self, u: np.ndarray, sd: np.ndarray, branch: np.ndarray) -> LinkTerms:
        """g(u) on the given branch; ``sd`` and ``branch`` broadcast with u."""

    @abstractmethod
    def kinks(self, branch: np.ndarray) -> np.ndarray:
        """(n, k) latent values around which g bends sharply, for branch numbers (n,)."""


def link_of(transform: Transform, scale: float) -> Link:
    """The link of a transform; ``scale`` is the typical size of the transformed values."""
    if isinstance(transform, Square):
        return RootLink(2, even=True)
    if isinstance(transform, Power):
        return RootLink(int(transform.exponent), even=transform.exponent % 2 == 0)
    if isinstance(transform, Absolute):
        return RootLink(1, even=True)
    if isinstance(transform, Sin):
        return ArcSineLink()
    if isinstance(transform, Cos):
        return ArcSineLink(turns=1)
    if isinstance(transform, Log):
        return ExponentialLink()
    return InverseLink(transform, 1e-3 * scale)


def _smooth_root(u: np.ndarray, width: np.ndarray, exponent: int) -> LinkTerms:
    """s(u) = u (u^2 + d^2)^-a with a = (1 - 1/exponent)/2, an odd |u|^(1/exponent); ``noise`` is here d/dlog d."""
    a = 0.5 * (1.0 - 1.0 / exponent)
    square, d2 = u**2, width**2
    total = square + d2
    slope = (1.0 - 2.0 * a) * square + d2
    power = total ** (-a)
    return LinkTerms(
        value=u * power,
        first=power / total * slope,
        second=2.0 * u * power / total**2 * ((1.0 - 2.0 * a) * total - (a + 1.0) * slope),
        noise=-2.0 * a * d2 * u * power / total,
        first_noise=-2.0 * a * d2 * power / total**2 * (total - 2.0 * (a + 1.0) * square),
    )


@dataclass(frozen=True)
class RootLink(Link):
    """Inverse of f^exponent (|f| for exponent 1, even): the sign from the branch if even, the smooth odd root if odd."""

    exponent: int
    even: bool

    def evaluate(self, u: np.ndarray, sd: np.ndarray, branch: np.ndarray) -> LinkTerms:
        root = _smooth_root(u, SMOOTHING * sd**self.exponent, self.exponent)
        sign = np.where(branch < 0, -1.0, 1.0) if self.even else 1.0
        rate = sign * self.exponent  # d log width / d log sd
        return LinkTerms(
            sign * root.value, sign * root.first, sign * root.second, rate * root.noise, rate * root.first_noise
        )

    def kinks(self, branch: np.ndarray) -> np.ndarray:
        return np.zeros((len(branch), 1 if self.exponent > 1 else 0))


@dataclass(frozen=True)
class ArcSineLink(Link):
    """Inverse of the sine on branch k: k pi + (-1)^k a(u), a odd and equal to arcsin up to the smoothing at +-1.

    With t = (1 - |u|)/2, arcsin|u| = pi/2 - 2 arcsin(sqrt t), and the square root is replaced by the smooth odd root,
    normalised so that a(0) = 0. Beyond |u| = 2, where the mirrored curve is back at its middle, a is a straight line.
    The cosine is the sine a quarter turn on: ``turns`` = 1 shifts the branch by one and f by -pi/2.
    """

    turns: int = 0

    def evaluate(self, u: np.ndarray, sd: np.ndarray, branch: np.ndarray) -> LinkTerms:
        arc = _smooth_arcsine(u, sd)
        number = branch + self.turns
        sign = np.where(number % 2 == 0, 1.0, -1.0)
        start = np.pi * number - 0.5 * np.pi * self.turns
        return LinkTerms(
            start + sign * arc.value, sign * arc.first, sign * arc.second, sign * arc.noise, sign * arc.first_noise
        )

    def kinks(self, branch: np.ndarray) -> np.ndarray:
        return np.tile([-1.0, 1.0], (len(branch), 1))


def _smooth_arcsine(u: np.ndarray, sd: np.ndarray) -> LinkTerms:
    side, size = np.where(u < 0, -1.0, 1.0), np.abs(u)
    beyond = np.maximum(size - 2.0, 0.0)
    # Near a turning point 1 - |u| = (f - c)^2 / 2, so sqrt(t) = |f - c|/2 has half the noise of f.
    width = SMOOTHING * (0.5 * sd) ** 2
    root = _smooth_root(0.5 * (1.0 - (size - beyond)), width, 2)
    norm = np.sqrt(2.0) * (0.25 + width**2) ** 0.25
    norm_rate = 0.5 * width**2 / (0.25 + width**2)
    w, w1, w2 = norm * root.value, norm * root.first, norm * root.second
    wd, w1d = norm * root.noise + norm_rate * w, norm * root.first_noise + norm_rate * w1
    cosine = np.sqrt(1.0 - w**2)
    first = w1 / cosine  # dt/du = -1/2 and the factor -2 of arcsin cancel
    second = -0.5 * (w2 / cosine + w * w1**2 / cosine**3)
    noise = -4.0 * wd / cosine  # d log width / d log sd = 2
    first_noise = 2.0 * (w1d / cosine + w * w1 * wd / cosine**3)
    return LinkTerms(
        value=side * (0.5 * np.pi - 2.0 * np.arcsin(w) + beyond * first),
        first=first,
        second=side * np.where(beyond > 0, 0.0, second),
        noise=side * (noise + beyond * first_noise),
        first_noise=first_noise,
    )


@dataclass(frozen=True)
class ExponentialLink(Link):
    """Inverse of the logarithm, continued by its tangent where a float would overflow."""

    def evaluate(self, u: np.ndarray, sd: np.ndarray, branch: np.ndarray) -> LinkTerms:
        inside = np.clip(u, -300.0, 300.0)
        slope, zero = np.exp(inside), np.zeros(u.shape)
        return LinkTerms(slope * (1.0 + u - inside), slope, np.where(inside == u, slope, 0.0), zero, zero)

    def kinks(self, branch: np.ndarray) -> np.ndarray:
        return np.empty((len(branch), 0))


@dataclass(frozen=True)
class InverseLink(Link):
    """The inverse itself, continued by its tangent from ``margin`` inside a finite end of the branch's image."""

    transform: Transform
    margin: float

    def evaluate(self, u: np.ndarray, sd: np.ndarray, branch: np.ndarray) -> LinkTerms:
        branch = np.broadcast_to(branch, u.shape)
        lower, upper = self._edges(branch)
        inside = np.clip(u, lower, upper)
        with np.errstate(over="ignore"):
            f = self.transform.inverse(inside, branch)
            slope = 1.0 / self.transform.derivative(f)
            bend = -self.transform.second_derivative(f) * slope**3
        zero = np.zeros(u.shape)
        return LinkTerms(f + slope * (u - inside), slope, np.where(inside == u, bend, 0.0), zero, zero)

    def kinks(self, branch: np.ndarray) -> np.ndarray:
        edges = np.stack(self._edges(branch), axis=1)
        # The poles of a tangent come out as huge numbers; no marginal reaches them.
        within = np.abs(edges) < 1e12
        return np.where(within, edges, np.nan)[:, within.any(axis=0)]

    def _edges(self, branch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the tangents begin, each of the shape of ``branch``; infinite where the image has no end."""
        lower, upper = np.full(branch.shape, -np.inf), np.full(branch.shape, np.inf)
        for number in np.unique(branch):
            lo, hi = self._image(int(number))
            lower[branch == number], upper[branch == number] = lo + self.margin, hi - self.margin
        return lower, upper

    def _image(self, branch: int) -> tuple[float, float]:
        """Values of h between the ends of a branch."""
        lo, hi = self.transform.image
        if self.transform.monotone:
            return lo, hi
        ends = [
            float(self.transform.value(np.array(end))) for end in self.transform.branch_interval(branch) if np.isfinite(end)
        ]
        if len(ends) == 2:
            return min(ends), max(ends)
        middle = float(self.transform.value(np.array(_inner_point(*self.transform.branch_interval(branch)))))
        return (ends[0], hi) if middle > ends[0] else (lo, ends[0])


def _inner_point(lo: float, hi: float) -> float:
    return lo + 1.0 if np.isfinite(lo) else hi - 1.0
