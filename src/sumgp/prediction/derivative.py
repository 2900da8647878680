"""Derivatives of predicted outputs by inputs: the same mixture, each component differentiated in closed form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sumgp.data import Scaling
from sumgp.errors import DataError
from sumgp.strategies import Fitted, PosteriorComponent

if TYPE_CHECKING:
    from sumgp.prediction.posterior import Posterior

# Differences of fourth order, in inputs as the kernels see them, or in lengthscales where these are shorter: the error is
# the step's fourth power beside round-off over the step. Only where points are moved onto a nonlinear law, which has no
# closed form.
STEP = 3e-4


@dataclass(frozen=True)
class DerivativePosterior:
    """Derivative of one output at the points of a posterior: ``mean``, ``std`` (n,), ``interval`` and ``sample``."""

    of: Posterior
    output: int
    order: tuple[int, ...]  # how often by each input

    @cached_property
    def _inner(self) -> Posterior:
        """A posterior whose outputs are the derivatives of all outputs, before points are moved onto a nonlinear law."""
        of, scaling = self.of, self.of.scaling
        components = _differentiated(of, self.order)
        if components is None:
            got = type(of.fitted.components[0]).__name__
            remedy = "fit with strategy=Linearized() and solver=Dense(), or leave both None on fewer points"
            raise DataError("derivative", "a fit by functions that have derivatives", got, remedy)
        slopes = scaling.y_scale / np.prod(scaling.x_scale ** np.array(self.order))
        inner = Scaling(scaling.x_shift, scaling.x_scale, np.zeros_like(scaling.y_shift), slopes)
        fitted = Fitted(components, of.fitted.weights)
        return replace(of, fitted=fitted, scaling=inner, law=None, noisy=False, truth=None)

    @cached_property
    def mean(self) -> np.ndarray:
        """(n,) derivative of the predicted mean."""
        if self.of.fitted.law is None:
            return self._inner.mean[:, self.output]
        return _differenced(self.of, self.order)[:, self.output]

    @cached_property
    def _moved(self) -> np.ndarray:
        """(n,) what moving points onto the law adds to the derivative."""
        return self.mean - self._inner.mean[:, self.output]

    @property
    def std(self) -> np.ndarray:
        """(n,) standard deviations."""
        return self._inner.std[:, self.output]

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends (n,) of the central interval that holds the derivative with probability ``level``."""
        lower, upper = self._inner.interval(level)
        return lower[:, self.output] + self._moved, upper[:, self.output] + self._moved

    def sample(self, n: int = 1, random_state: int = 0) -> np.ndarray:
        """(n, points) joint draws."""
        return self._inner.sample(n, random_state)[:, :, self.output] + self._moved


def _differentiated(posterior: Posterior, order: tuple[int, ...]) -> tuple[PosteriorComponent, ...] | None:
    """The derivatives of all components; None where they have none."""
    made = [c.differentiated(order, posterior.scaling.x_scale) for c in posterior.fitted.components]
    known = tuple(component for component in made if component is not None)
    return known if len(known) == len(made) else None


def derivative_of(posterior: Posterior, output: str, by: str, order: int = 1) -> DerivativePosterior:
    """The derivative of an output by an input, both by name."""
    inputs, outputs = posterior.data.input_names, posterior.output_names
    for argument, name, known in (("output", output, outputs), ("by", by, inputs)):
        if name not in known:
            raise DataError(argument, f"one of {', '.join(known)}", repr(name), "correct the name")
    if isinstance(order, bool) or not isinstance(order, (int, np.integer)) or order < 1:
        raise DataError("order", "a whole number of at least 1", repr(order), "e.g. derivative('z', 't', 2)")
    seen = [*inputs, *posterior.data.extra_columns][: len(posterior.scaling.x_scale)]
    orders = tuple(int(order) if name == by else 0 for name in seen)
    return DerivativePosterior(posterior, outputs.index(output), orders)


def _differenced(posterior: Posterior, order: tuple[int, ...]) -> np.ndarray:
    """(n, T) derivative of the mean by differences."""
    for i, count in enumerate(order):
        if count:
            step = np.zeros(posterior.x.shape[1])
            # Repeated differences divide round-off by the step again.
            lengths = [scales.min(initial=1.0) for c in posterior.fitted.components for scales in c.lengthscales()]
            size = STEP * min([1.0, *lengths]) * posterior.scaling.x_scale[i]
            step[i] = size * (1.0 if sum(order) == 1 else 10.0)
            lower = tuple(n - (j == i) for j, n in enumerate(order))
            parts = [_differenced(replace(posterior, x=posterior.x + c * step, truth=None), lower) for c in (1, -1, 2, -2)]
            return (8.0 * (parts[0] - parts[1]) - (parts[2] - parts[3])) / (12.0 * step[i])
    return posterior.mean


def own_columns(posterior: Posterior, centre: np.ndarray) -> np.ndarray:
    """(n, C - T) derivatives and constants that a posterior's law mentions; ``centre`` (n, C) unit-free means of the fit.

    (n, 0) where the fit knows nothing of them.
    """
    law, imposed = posterior.law, posterior.fitted.law
    nothing = np.zeros((len(posterior.x), 0))
    if law is None or (imposed is None and law.unknowns):
        return nothing
    T = len(law.outputs)
    if imposed is not None and imposed.law.n_columns == law.n_columns:
        own = slice(T, law.n_columns)
        return imposed.shift[own] + imposed.scale[own] * centre[:, own]
    if any(_differentiated(posterior, d.orders) is None for d in law.derivatives):
        return nothing
    slopes = [DerivativePosterior(posterior, d.output, d.orders).mean[:, None] for d in law.derivatives]
    if imposed is not None:
        own = imposed.constants
        slopes.append(imposed.shift[own] + imposed.scale[own] * centre[:, own])
    return np.concatenate([nothing, *slopes], axis=1)
