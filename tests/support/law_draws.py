"""Outputs given theta, data and a law that holds up to s, with the exact density of how they were drawn.

Randomise, then optimise (Bardsley, Solonen, Haario and Laine 2014). With f = f_y + H v, v ~ N(0, I) given the data, and
z = g(f) / s, the target is N(v | 0, I) exp(-|z|^2 / 2). A draw solves v + A*^T z(v) = c for c ~ N(0, I + A*^T A*), where
A = dz/dv and A* is its value at the most probable v; in terms of the n values of z that is
z = z(c - A*^T z). The density of v is |det(I + A A*^T)| N(c | 0, I + A*^T A*): for a linear law that of the target
itself, for a curved one close to it however small s is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from support.smeared_law import GivenData, SmearedLaw

SEARCH, SOLVE = 7, 5  # Newton steps to the most probable v, and to a draw
WIDEST, NARROWING = 20.0, 0.3  # a wide law first: a full step to a narrow one may lead to another branch
CLOSE = 1e-4  # of z: a draw that is further off its equation gets no weight


@dataclass(frozen=True)
class Linearisation:
    """A* (C, n, W) and I + A* A*^T (C, n, n)."""

    A: np.ndarray
    inner: np.ndarray


@dataclass(frozen=True)
class LawDraws:
    """f (C, n T), and ``log_weight`` (C,) = log of N(v | 0, I) exp(-|z|^2 / 2) over the density of v.

    The weights' mean is the evidence of the law given theta and the data; minus infinity where no draw was found.
    """

    f: np.ndarray
    log_weight: np.ndarray


def draw_outputs(target: SmearedLaw, given: GivenData, at: Linearisation, rng: np.random.Generator) -> LawDraws:
    """One draw for each chain."""
    C, n, W = at.A.shape
    c = rng.standard_normal((C, W)) + _back(at.A, rng.standard_normal((C, n)))
    across = _times(at.A, c)
    z = solved = _solve(at.inner, across)
    for _ in range(SOLVE):
        value, A = law_and_slopes(target, given, c - _back(at.A, z))
        z = z - _solve(_inner(A, at.A), z - value)
    v = c - _back(at.A, z)
    value, A = law_and_slopes(target, given, v)
    squares = np.sum(c**2, axis=1) - np.sum(across * solved, axis=1)  # c^T (I + A*^T A*)^-1 c
    log_density = np.linalg.slogdet(_inner(A, at.A))[1] - 0.5 * np.linalg.slogdet(at.inner)[1] - 0.5 * squares
    log_weight = -0.5 * np.sum(v**2, axis=1) - 0.5 * np.sum(value**2, axis=1) - log_density
    found = np.max(np.abs(z - value), axis=1) < CLOSE * (1.0 + np.max(np.abs(value), axis=1))
    return LawDraws(given.mean + _times(given.root, v), np.where(found, log_weight, -np.inf))


def linearise(target: SmearedLaw, given: GivenData) -> Linearisation:
    """At the most probable v, by Gauss-Newton: v = A^T (I + A A^T)^-1 (A v - z). Depends on theta alone."""
    v = np.zeros((len(given.mean), given.root.shape[2]))
    for step in range(SEARCH):
        wider = replace(target, law_sd=target.law_sd * max(1.0, WIDEST * NARROWING**step))
        z, A = law_and_slopes(wider, given, v)
        v = _back(A, _solve(_inner(A, A), _times(A, v) - z))
    _, A = law_and_slopes(target, given, v)
    return Linearisation(A, _inner(A, A))


def law_and_slopes(target: SmearedLaw, given: GivenData, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """z (C, n) and A (C, n, W)."""
    f = given.mean + _times(given.root, v)
    slopes = target.slopes(f)
    root = given.root.reshape(len(f), -1, 2, given.root.shape[2])
    return target.misses(f), slopes[:, :, :1] * root[:, :, 0] + slopes[:, :, 1:] * root[:, :, 1]


def _times(A: np.ndarray, v: np.ndarray) -> np.ndarray:
    return (A @ v[:, :, None])[:, :, 0]


def _back(A: np.ndarray, z: np.ndarray) -> np.ndarray:
    return (z[:, None, :] @ A)[:, 0]


def _solve(M: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.linalg.solve(M, right[:, :, None])[:, :, 0]


def _inner(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.eye(A.shape[1]) + A @ B.transpose(0, 2, 1)
