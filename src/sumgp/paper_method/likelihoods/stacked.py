"""The likelihood of a measured output, chosen by its transform, and several side by side as that of one latent vector."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from sumgp.errors import DataError
from sumgp.paper_method.likelihoods.base import Likelihood, NoisySites, Terms
from sumgp.paper_method.likelihoods.gaussian import GaussianLikelihood, LinkedLikelihood
from sumgp.paper_method.likelihoods.noncentral import NoncentralSquare
from sumgp.transforms import Square, Transform


@dataclass(frozen=True, eq=False)
class StackedLikelihood(Likelihood):
    """``parts[k]`` explains the entries ``positions[k]`` of the latent vector; each entry belongs to one part."""

    parts: tuple[Likelihood, ...]
    positions: tuple[np.ndarray, ...]

    def __post_init__(self) -> None:
        together = np.sort(np.concatenate([np.asarray(p, dtype=int) for p in self.positions]))
        sizes = [part.size for part in self.parts]
        if [len(p) for p in self.positions] != sizes or not np.array_equal(together, np.arange(sum(sizes))):
            raise DataError(
                "positions",
                f"each of 0 to {sum(sizes) - 1} once, in pieces of {sizes}",
                str([len(p) for p in self.positions]),
                "give every observation one place",
            )

    @cached_property
    def noise(self) -> np.ndarray:  # type: ignore[override]
        return self._gathered([part.noise for part in self.parts])

    @cached_property
    def active(self) -> np.ndarray:
        return self._gathered([part.active for part in self.parts])

    @cached_property
    def kinks(self) -> np.ndarray:
        pieces = [part.kinks for part in self.parts]
        most = max(piece.shape[1] for piece in pieces)
        padding = [((0, 0), (0, most - piece.shape[1])) for piece in pieces]
        return self._gathered([np.pad(p, pad, constant_values=np.nan) for p, pad in zip(pieces, padding, strict=True)])

    def terms(self, u: np.ndarray) -> Terms:
        pieces = [part.terms(u[where]) for part, where in zip(self.parts, self.positions, strict=True)]
        return Terms(*(self._gathered([getattr(p, field.name) for p in pieces]) for field in fields(Terms)))

    def plain_sites(self) -> NoisySites:
        return self._gathered_sites([part.plain_sites() for part in self.parts])

    def moment_sites(self) -> NoisySites:
        return self._gathered_sites([part.moment_sites() for part in self.parts])

    def with_noise(self, noise: np.ndarray) -> StackedLikelihood:
        parts = tuple(part.with_noise(noise[where]) for part, where in zip(self.parts, self.positions, strict=True))
        return StackedLikelihood(parts, self.positions)

    def without_gaussian(self) -> tuple[np.ndarray, Likelihood]:
        parts, places = [], []
        for part, where in zip(self.parts, self.positions, strict=True):
            kept, curved = part.without_gaussian()
            if len(kept):
                parts.append(curved)
                places.append(where[kept])
        if not parts:
            return self.parts[0].without_gaussian()
        if len(parts) == 1 and np.all(np.diff(places[0]) > 0):
            return places[0], parts[0]
        together = np.sort(np.concatenate(places))
        return together, StackedLikelihood(tuple(parts), tuple(np.searchsorted(together, place) for place in places))

    def _gathered(self, pieces: list[np.ndarray]) -> np.ndarray:
        result = np.empty((sum(map(len, pieces)), *pieces[0].shape[1:]), dtype=pieces[0].dtype)
        for piece, where in zip(pieces, self.positions, strict=True):
            result[where] = piece
        return result

    def _gathered_sites(self, pieces: list[NoisySites]) -> NoisySites:
        return NoisySites(*(self._gathered([getattr(p, field.name) for p in pieces]) for field in fields(NoisySites)))


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
