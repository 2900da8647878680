"""Predictions: a mixture of Gaussian posteriors in the user's units, with means and samples on the law."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sumgp.data import Calendar, Data, Scaling
from sumgp.errors import DataError
from sumgp.laws import Law, mean_on_law
from sumgp.notebook import listed
from sumgp.numerics import limited_threads
from sumgp.prediction import marginals
from sumgp.prediction.bounding import BoundedPoints, Bounding, clipped_std
from sumgp.prediction.closed_noise import measured_outputs, noise_covariances, noise_variances
from sumgp.prediction.constants import ConstantsPosterior, constants_posterior
from sumgp.prediction.derivative import DerivativePosterior, derivative_of, own_columns
from sumgp.prediction.mixture import SkewedMixture, mixture_covariance, mixture_draws, with_variances
from sumgp.prediction.tabulated import as_frame, as_multiindex_frame, as_xarray
from sumgp.strategies import Fitted

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

BLOCK = 1024  # points per block: bounds memory whatever the number of prediction points
LARGEST_JOINT = 6000  # points times outputs of a joint covariance (0.3 GB)
DRAWN_AT_ONCE = 2048  # points whose draws are kept at a time
Part = TypeVar("Part")
SHOWN_POINTS = 5  # points of the table in a notebook


@dataclass(frozen=True, repr=False)
class Posterior:
    """Outputs at prediction points given the data (and the law).

    All in the user's units. ``noisy``: of a new measurement instead of the true value (see ``observed``).
    """

    fitted: Fitted
    scaling: Scaling
    law: Law | None
    data: Data
    x: np.ndarray  # (n, D + E) in the user's units
    noisy: bool = False
    truth: Posterior | None = None  # of the same points without noise, whose work a noisy one need not do again
    calendar: Calendar = field(default_factory=dict)  # of inputs that are dates
    bounding: Bounding | None = None  # bounds that predictions obey besides the law
    closed: bool = False  # measurements obey the law too

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the T outputs."""
        return self.data.output_names

    def __repr__(self) -> str:
        of = "measurements of " if self.noisy else ""
        return f"Posterior({len(self.x)} points of {listed(self.data.input_names)}: {of}{listed(self.output_names)})"

    def _repr_html_(self) -> str:
        """The first points as a table."""
        few = replace(self, x=self.x[:SHOWN_POINTS], truth=None)
        return f"{escape(repr(self))}, the first {len(few.x)}:{few.to_frame().to_html(float_format='{:.4g}'.format)}"

    @property
    def _n_outputs(self) -> int:
        return len(self.output_names)

    def _by_blocks(self, told: Callable[[Fitted, int, marginals.Points], Part]) -> Iterator[Part]:
        for start in range(0, len(self.x), BLOCK):
            x = self.x[start : start + BLOCK]
            with limited_threads(1):
                yield told(self.fitted, self._n_outputs, marginals.Points(self.scaling.inputs(x), x))

    @cached_property
    def _marginals(self) -> marginals.PointMarginals:
        """Of the true values, also where ``noisy``."""
        within = self.noisy and self.closed and self.ends is not None
        if self.truth is not None and not within:
            return self.truth._marginals
        noise = (
            np.max([np.diagonal(c.noise_covariance) for c in self.fitted.components], axis=0)
            if within
            else np.zeros(self._n_outputs)
        )
        near = None if self.bounding is None else partial(self.bounding.near, self.scaling, noise)
        parts = self._by_blocks(partial(marginals.point_marginals, near=near))
        return marginals.join_marginals([p if len(self.x) <= DRAWN_AT_ONCE else replace(p, drawn_parts=[]) for p in parts])

    @property
    def _centres(self) -> marginals.Centres:
        """Of the mixture; alone at many points of a curved law whose marginals nobody has asked for yet: half the work."""
        few, law = len(self.x) <= DRAWN_AT_ONCE, self.fitted.law
        if few or law is None or law.is_linear or "_marginals" in self.__dict__:
            return self._marginals.centres
        return marginals.join_centres(self._by_blocks(marginals.point_centres))

    @cached_property
    def _mixture(self) -> marginals.GaussianMixture:
        """Marginals of the outputs, those of measurements where ``noisy``."""
        mixture = self._marginals.mixture
        return replace(mixture, sds=np.sqrt(mixture.sds**2 + noise_variances(self))) if self.noisy else mixture

    @cached_property
    def _skewed(self) -> SkewedMixture | None:
        """Marginals of transformed outputs, which are not Gaussian; None where all components are Gaussian."""
        components = self.fitted.components
        noise = np.stack([np.sqrt(c.noise) if self.noisy else np.zeros(self._n_outputs) for c in components])
        if self.truth is not None and self.truth._skewed is not None:
            return replace(self.truth._skewed, noise=noise)
        inputs = self.scaling.inputs(self.x)
        parts = [part for c in components if (part := c.distribution(inputs, self.x)) is not None]
        return SkewedMixture(parts, self.fitted.weights, noise) if parts else None

    @cached_property
    def _centre(self) -> np.ndarray:
        """(n, C) mixture mean brought back onto the law, unit-free."""
        if self.truth is not None:
            return self.truth._centre
        law, (centre, covariance) = self.fitted.law, self._centres
        if law is None or len(self.fitted.weights) == 1:
            return centre
        return mean_on_law(law, centre, covariance, self.x)

    @property
    def mean(self) -> np.ndarray:
        """(n, T) means, on the law and within the bounds."""
        return self._mean.copy()

    @cached_property
    def _mean(self) -> np.ndarray:
        if self.truth is not None:
            return self.truth._mean
        bounded, centre = self._bounded, self._centre
        return self.scaling.restore(centre[:, : self._n_outputs]) if bounded is None else bounded.mean(centre)

    @cached_property
    def _bounded(self) -> BoundedPoints | None:
        """Bounds at the points; None where there are none."""
        return None if self.bounding is None else self.bounding.at(self.fitted, self.scaling, self.x)

    @property
    def ends(self) -> BoundedPoints | None:
        """Bounds that the values of this posterior obey: true values, and measurements if all those of the data do."""
        return self._bounded if self.bounding is not None and (self.bounding.measured or not self.noisy) else None

    def outputs_of(self, draws: np.ndarray, points: np.ndarray | slice = slice(None)) -> np.ndarray:
        """(M, n, T) outputs within the bounds, in the user's units, of unit-free draws (M, n, C) at some of the points."""
        if self._bounded is None:
            return self.scaling.restore(draws[:, :, : self._n_outputs])
        return self._bounded.at(points).draws(draws, self._mean[points])

    @property
    def std(self) -> np.ndarray:
        """(n, T) standard deviations of the outputs."""
        mixture, scaling, ends = self._mixture, self.scaling, self.ends
        values = mixture.std
        if self.noisy and ends is not None:
            values = clipped_std(mixture, scaling.outputs(ends.limits.lower), scaling.outputs(ends.limits.upper))
        values = values * scaling.y_scale
        for rows, drawn in self._drawn():
            values[rows] = drawn.std
        return values

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends (n, T) of the central interval that holds the value with probability ``level``."""
        if not 0.0 < level < 1.0:
            raise DataError("level", "a probability between 0 and 1", repr(level), "e.g. 0.95")
        tail = 0.5 * (1.0 - level)
        return self.quantile(tail), self.quantile(1.0 - tail)

    def quantile(self, probability: float) -> np.ndarray:
        """(n, T) quantiles of the mixture's marginals."""
        if probability not in self._quantiles:
            self._quantiles[probability] = self._quantile(probability)
        return self._quantiles[probability].copy()

    @cached_property
    def _quantiles(self) -> dict[float, np.ndarray]:
        """Those asked before: tables, figures and scores ask for the same again."""
        return {}

    def _quantile(self, probability: float) -> np.ndarray:
        if self._skewed is not None:
            spread = np.maximum(self.std / self.scaling.y_scale, 1e-12)
            return self.scaling.restore(self._skewed.quantile(probability, self._centre[:, : self._n_outputs], spread))
        values = self.scaling.restore(self._mixture.quantile(probability))
        for rows, drawn in self._drawn():
            values[rows] = drawn.quantile(probability)
        return values if self.ends is None else self.ends.clipped(values)

    def cdf(self, values: np.ndarray) -> np.ndarray:
        """(n, T) probability of an output below ``values``."""
        if self._skewed is not None:
            return self._skewed.cdf(self.scaling.outputs(np.asarray(values, dtype=float)))
        values = np.asarray(values, dtype=float)
        result = self._mixture.cdf(self.scaling.outputs(values))
        for rows, drawn in self._drawn():
            result[rows] = drawn.cdf(values[rows])
        if self.ends is None:
            return result
        limits = self.ends.limits
        return np.where(values < limits.lower, 0.0, np.where(values >= limits.upper, 1.0, result))

    def gaussian_mixture(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Weights (K,), means and standard deviations (K, n, T) of the marginals; None where these are not Gaussian."""
        if self._skewed is not None or self._marginals.drawn.any() or (self.noisy and self.ends is not None):
            return None
        mixture, scaling = self._mixture, self.scaling
        return mixture.weights, scaling.restore(mixture.means), mixture.sds * scaling.y_scale

    def log_density(self, values: np.ndarray) -> np.ndarray:
        """(n, T) log densities of the marginals at ``values``, in the user's units."""
        if self._skewed is not None:
            density = self._skewed.density(self.scaling.outputs(np.asarray(values, dtype=float)))
            return np.log(np.maximum(density, np.finfo(float).tiny)) - np.log(self.scaling.y_scale)
        values = np.asarray(values, dtype=float)
        result = self._mixture.log_density(self.scaling.outputs(values)) - np.log(self.scaling.y_scale)
        for rows, drawn in self._drawn():
            result[rows] = drawn.log_density(values[rows])
        return result

    def covariance(self) -> np.ndarray:
        """(nT, nT) joint covariance, ordered point by point."""
        self._check_joint("covariance")
        T, n = self._n_outputs, len(self.x)
        total = mixture_covariance(self.fitted, self.scaling.inputs(self.x), self.x, self.scaling.outputs(self._mean))
        if self.noisy:
            blocks = total.reshape(n, T, n, T)
            blocks[range(n), :, range(n), :] += noise_covariances(self)
        return with_variances(total, np.tile(self.scaling.y_scale, n), self.std.ravel())

    def sample(self, n: int = 1, random_state: int = 0) -> np.ndarray:
        """(n, points, T) joint draws; each obeys law and bounds (with its own value of an unknown constant)."""
        self._check_joint("sample")
        if n < 0:
            raise DataError("n", "a number of draws of zero or more", str(n), "e.g. 100")
        points = marginals.Points(self.scaling.inputs(self.x), self.x)
        if self.noisy and self.closed:
            T, numbers = self._n_outputs, np.random.default_rng([random_state, 1])
            measured = lambda d, noise: measured_outputs(self, d, numbers.standard_normal((*d.shape[:2], T)), noise)  # noqa: E731
            return mixture_draws(self.fitted, points, measured, np.zeros(T), n, random_state)
        noise = self.scaling.y_scale * float(self.noisy)
        draws = mixture_draws(self.fitted, points, lambda d, _: self.outputs_of(d), noise, n, random_state)
        return self.ends.closed(draws) if self.noisy and self.ends is not None else draws

    def _drawn(self) -> Iterator[tuple[np.ndarray, marginals.DrawnMarginals]]:
        """Points where the law's curvature or a bound shapes the marginals, and these; as many at a time as memory takes."""
        drawn = np.flatnonzero(self._marginals.drawn)
        if not len(drawn):
            return
        if self._marginals.drawn_parts:
            yield drawn, self._kept_draws
            return
        for start in range(0, len(drawn), DRAWN_AT_ONCE):
            rows = drawn[start : start + DRAWN_AT_ONCE]
            yield rows, replace(self, x=self.x[rows], truth=None)._kept_draws

    @cached_property
    def _kept_draws(self) -> marginals.DrawnMarginals:
        """Of all strongly bent points and those near a bound."""
        return marginals.drawn_marginals(self, self._marginals.drawn_parts, np.flatnonzero(self._marginals.drawn))

    def _check_joint(self, what: str) -> None:
        size = len(self.x) * self._n_outputs
        if size > LARGEST_JOINT:
            raise DataError(
                f"{what}: a joint covariance of {size} values would need {size**2 * 8 * 4 / 1e9:.1f} GB; "
                f"ask for at most {LARGEST_JOINT // self._n_outputs} points at a time"
            )

    def constants(self, level: float = 0.95) -> pd.DataFrame:
        """Estimated constants of the law: mean, sd, lower, upper, one row each (empty without unknowns)."""
        return self._constants.table(level)

    def constant_samples(self, n: int = 1000, random_state: int = 0) -> pd.DataFrame:
        """(n, U) joint draws of the estimated constants, one column each."""
        return self._constants.sample(n, random_state)

    def constant_correlations(self) -> pd.DataFrame:
        """(U, U) correlations of the estimated constants: near 1 or -1, only a combination of them is determined."""
        return self._constants.correlations()

    @cached_property
    def _constants(self) -> ConstantsPosterior:
        return constants_posterior(self.fitted, self.scaling.inputs(self.x[:1]), self.x[:1])

    def residual(self) -> np.ndarray:
        """(n, R) law residual of the mean, in the law's own units; zero columns without a law."""
        if self.law is None:
            return np.zeros((len(self.x), 0))
        return self._residual_of(self.mean)

    def law_columns(self) -> np.ndarray:
        """(n, C - T) means of the law's own columns: derivatives and constants; none where the fit does not have them."""
        return own_columns(self, self._centre)

    def _residual_of(self, outputs: np.ndarray) -> np.ndarray:
        assert self.law is not None
        more = self.law.n_columns > self._n_outputs
        f = np.concatenate([outputs, self.law_columns()], axis=1) if more else outputs
        if f.shape[1] < self.law.n_columns:
            return np.zeros((len(self.x), 0))
        with np.errstate(all="ignore"):
            return np.where(self.law.active(self.x), self.law.residual(f, self.x), 0.0)

    def derivative(self, output: str, by: str, order: int = 1) -> DerivativePosterior:
        """Derivative of an output by an input: mean, std (n,), interval(level) and sample(n)."""
        return derivative_of(self, output, by, order)

    def observed(self) -> Posterior:
        """The same for a new noisy measurement of each output."""
        return self if self.noisy else replace(self, noisy=True, truth=self)

    def to_frame(self, level: float = 0.95, multiindex: bool = False) -> pd.DataFrame:
        """One row per point: inputs, then mean, sd, lower and upper of each output, then the law's residual.

        ``multiindex``: inputs in the index and columns (output, mean | sd | lower | upper) instead.
        """
        return as_multiindex_frame(self, level) if multiindex else as_frame(self, level)

    def to_xarray(self, level: float = 0.95) -> xr.Dataset:
        """mean, sd, lower, upper (point, output) and residual (point, law) with the inputs as coordinates."""
        return as_xarray(self, level)

    def plot(
        self, ax: Any = None, residual: bool = False, labels: Mapping[str, str] | None = None, level: float = 0.95
    ) -> Figure:
        """Data, missing marks, mean and band of each output over the first input, on axes ``ax`` (one for all or one for
        each) if given, with a panel of the law's ``residual`` if asked; ``labels``: e.g. ``{"z": "position (m)"}``."""
        from sumgp.prediction.tabulated import plot_posterior

        return plot_posterior(self, level, ax, residual, labels)
