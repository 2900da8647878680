"""The likelihood of a measured output, chosen by its transform, and several side by side as that of one latent vector."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from sumgp.paper_method.likelihoods.base import Likelihood, NoisySites, Terms, column
from sumgp.paper_method.likelihoods.gaussian import GaussianLikelihood, LinkedLikelihood, NoncentralSquare
from sumgp.transforms import Square, Transform

POWERS = (0, 1, 2, 2, 3, 0, 1, 2)  # of the scale in each field of Terms: how often it is differentiated by u


@dataclass(frozen=True, eq=False)
class StackedLikelihood(Likelihood):
    """``parts[k]`` explains the entries ``positions[k]`` of the latent vector; each entry belongs to one part.

    With ``shift`` and ``scale`` (n,) the latent vector u is unit-free: p(y | shift + scale u), densities still those of y.
    """

    parts: tuple[Likelihood, ...]
    positions: tuple[np.ndarray, ...]
    shift: np.ndarray | float = 0.0
    scale: np.ndarray | float = 1.0

    @cached_property
    def noise(self) -> np.ndarray:  # type: ignore[override]
        return self._gathered([part.noise for part in self.parts])

    @cached_property
    def active(self) -> np.ndarray:
        return self._gathered([part.active for part in self.parts])

    @cached_property
    def _units(self) -> tuple[np.ndarray, np.ndarray]:
        """(n,) shifts and scales."""
        n = sum(part.size for part in self.parts)
        return np.broadcast_to(self.shift, n), np.broadcast_to(self.scale, n)

    @cached_property
    def kinks(self) -> np.ndarray:
        pieces = [part.kinks for part in self.parts]
        most = max(piece.shape[1] for piece in pieces)
        padding = [((0, 0), (0, most - piece.shape[1])) for piece in pieces]
        found = self._gathered([np.pad(p, pad, constant_values=np.nan) for p, pad in zip(pieces, padding, strict=True)])
        return (found - self._units[0][:, None]) / self._units[1][:, None]

    def terms(self, u: np.ndarray) -> Terms:
        shift, scale = (column(values, u) for values in self._units)
        values = shift + scale * u
        pieces = [part.terms(values[where]) for part, where in zip(self.parts, self.positions, strict=True)]
        together = [self._gathered([getattr(p, field.name) for p in pieces]) for field in fields(Terms)]
        return Terms(*(scale**power * part if power else part for power, part in zip(POWERS, together, strict=True)))

    def plain_sites(self) -> NoisySites:
        return self._gathered_sites([part.plain_sites() for part in self.parts])

    def moment_sites(self) -> NoisySites:
        return self._gathered_sites([part.moment_sites() for part in self.parts])

    def with_noise(self, noise: np.ndarray) -> StackedLikelihood:
        parts = tuple(part.with_noise(noise[where]) for part, where in zip(self.parts, self.positions, strict=True))
        return replace(self, parts=parts)

    def without_gaussian(self) -> tuple[np.ndarray, Likelihood]:
        parts, places = [], []
        for part, where in zip(self.parts, self.positions, strict=True):
            kept, curved = part.without_gaussian()
            if len(kept):
                parts.append(curved)
                places.append(where[kept])
        if not parts:
            return self.parts[0].without_gaussian()
        together = np.sort(np.concatenate(places))
        positions = tuple(np.searchsorted(together, place) for place in places)
        return together, StackedLikelihood(tuple(parts), positions, *(values[together] for values in self._units))

    def _gathered(self, pieces: list[np.ndarray]) -> np.ndarray:
        result = np.empty((sum(map(len, pieces)), *pieces[0].shape[1:]), dtype=pieces[0].dtype)
        for piece, where in zip(pieces, self.positions, strict=True):
            result[where] = piece
        return result

    def _gathered_sites(self, pieces: list[NoisySites]) -> NoisySites:
        targets, variances, by_noise, variances_by_noise = (
            self._gathered([getattr(p, field.name) for p in pieces]) for field in fields(NoisySites)
        )
        shift, scale = self._units
        return NoisySites((targets - shift) / scale, variances / scale**2, by_noise / scale, variances_by_noise / scale**2)


def likelihood_of_output(y: np.ndarray, noise: np.ndarray, transform: Transform, reference: np.ndarray) -> Likelihood:
    """Likelihood of y itself given f' = h(f), on the branches of ``reference``: every finite y is used."""
    if transform.is_identity:
        return GaussianLikelihood(y, noise)
    return LinkedLikelihood(y, noise, transform, reference)


def likelihood_of_transformed(y: np.ndarray, noise: np.ndarray, transform: Transform, reference: np.ndarray) -> Likelihood:
    """Likelihood of y' = h(y) given f' = h(f): noncentral chi-square for squares, change of variables otherwise.

    Observations without an h(y) are kept in place but not used; ``n_dropped`` counts them.
    """
    if transform.is_identity:
        return GaussianLikelihood(y, noise)
    if isinstance(transform, Square):
        return NoncentralSquare(y, noise, reference)
    return LinkedLikelihood(y, noise, transform, reference, of_transformed=True)
