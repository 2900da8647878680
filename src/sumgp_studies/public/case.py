"""One fit of a protocol: rows to fit, parts to score, the law."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sumgp_studies.public.system import System


@dataclass(frozen=True)
class Part:
    """Rows of one part: inputs (n, D) with the law's own columns after them, and values (n, T), NaN = not scored."""

    name: str
    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Case:
    """Rows ``x`` (N, D + E), ``y`` (N, T, NaN = not measured) for fitting, a law that is true, and the parts.

    ``laws`` hold between the outputs of a row: everybody is moved onto them. Our fit takes ``own_laws`` in their place where
    there are any, with derivatives or up to an error, and ``bounds``. ``system`` is the differential equation for least
    squares on its solution. ``extra`` names the E columns of x that only the law uses. ``latent``: parts hold noiseless
    values, else measurements. ``sizes`` (T,): errors are divided by them; None = by the pooled standard deviation.
    """

    set_name: str
    label: str
    x: np.ndarray
    y: np.ndarray
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    laws: tuple[str, ...]
    parts: tuple[Part, ...]
    constants: dict[str, Any] = field(default_factory=dict)
    extra: tuple[str, ...] = ()
    latent: bool = False
    sizes: np.ndarray | None = None
    groups: tuple[tuple[str, ...], ...] = ()
    own_laws: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()
    system: System | None = None

    @property
    def scale(self) -> np.ndarray:
        """(T,) what errors are divided by."""
        if self.sizes is not None:
            return self.sizes
        return np.full(len(self.outputs), np.sqrt(np.nanmean(np.nanvar(self.y, axis=0))))


DRAWS = 5  # of rows and noise from each stored solution: a single one may differ from the next by a tenth


class NoisyDraw(NamedTuple):
    """A noise level and the generator of one draw."""

    noise: float
    generator: np.random.Generator

    @property
    def label(self) -> str:
        """Of the part that it is scored in."""
        return f"noise {self.noise:.0%}"


def noisy_draws(noises: Sequence[float], purpose: int) -> Iterator[NoisyDraw]:
    """Every level once, then every level again; ``purpose`` keeps the draws of different sets apart."""
    for draw in range(DRAWS):
        yield from (NoisyDraw(v, np.random.default_rng([k, purpose, draw])) for k, v in enumerate(noises))


def gap_and_random(count: int, gap: tuple[float, float], seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows for fitting, of the gap (a share of the ordered rows) and drawn at random, never the first or the last."""
    inside = np.arange(int(gap[0] * count), int(gap[1] * count))
    others = np.setdiff1d(np.arange(1, count - 1), inside)
    drawn = np.sort(np.random.default_rng(seed).choice(others, int(0.2 * count), replace=False))
    return np.setdiff1d(np.arange(count), np.concatenate([inside, drawn])), inside, drawn
