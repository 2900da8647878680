"""Predictions: a mixture of Gaussian posteriors in the user's units, with means and samples on the law."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sumgp.data import Data, Scaling
from sumgp.errors import DataError, worded
from sumgp.laws import Law, project
from sumgp.numerics import threads_for
from sumgp.prediction.branches import likelier_mean
from sumgp.prediction.gaussian_mixture import GaussianMixture, mixture_quantile
from sumgp.prediction.joint import mixture_covariance
from sumgp.prediction.skewed import SkewedMixture
from sumgp.strategies import (
    Fitted,
    LocalPosterior,
    MovedOntoLaw,
    PosteriorComponent,
    joined,
    local_posteriors,
    pointwise_draws,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

BLOCK = 256  # points per block: bounds memory whatever the number of asked points
LARGEST_JOINT = 6000  # points times outputs of a joint covariance (0.3 GB)
BENT = 0.1  # share of an output's variance due to the law's curvature above which intervals are those of draws
BENT_DRAWS = 15_000  # draws times points, at most (200 of each point at least)
MOST_BENT = 1000  # points; with more of them intervals are Gaussian, bend included, so that memory stays bounded


@dataclass(frozen=True, eq=False)
class _Marginals:
    """Unit-free: the mixture of the outputs, mean (n, C) and covariance (n, C, C) of all columns, strongly bent points."""

    mixture: GaussianMixture
    centre: np.ndarray
    covariance: np.ndarray
    bent: np.ndarray  # (n,)
    bent_parts: list[LocalPosterior]  # of each component, at these points


def single_points(components: tuple[PosteriorComponent, ...], inputs: np.ndarray, x: np.ndarray) -> list[LocalPosterior]:
    """Local posteriors of all components."""
    known = [c for c in components if isinstance(c, MovedOntoLaw)]
    if len(known) == len(components):
        return local_posteriors(known, inputs, x)
    first: Any = components[0]
    if hasattr(first, "marginals_of_all"):
        return [LocalPosterior(*found) for found in first.marginals_of_all(components, inputs, x)]
    return [LocalPosterior(*c.marginals(inputs, x)) for c in components]


@dataclass(frozen=True)
class Posterior:
    """Outputs at asked points given the data (and the law).

    ``mean``, ``std`` (n, T), ``interval(level)`` and ``sample`` are in the user's units. ``noisy`` posteriors describe a
    new measurement instead of the true value (see ``observed``).
    """

    fitted: Fitted
    scaling: Scaling
    law: Law | None
    data: Data
    x: np.ndarray  # (n, D + E) in the user's units
    noisy: bool = False
    truth: Posterior | None = None  # of the same points without noise, whose work a noisy one need not do again

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the T outputs."""
        return self.data.output_names

    @property
    def _n_outputs(self) -> int:
        return len(self.output_names)

    def _blocks(self) -> Iterator[slice]:
        for start in range(0, len(self.x), BLOCK):
            yield slice(start, start + BLOCK)

    @cached_property
    def _marginals(self) -> _Marginals:
        """Of the true values, also where ``noisy``."""
        if self.truth is not None:
            return self.truth._marginals
        parts: list[_Marginals] = []
        too_many = False
        for block in self._blocks():
            with threads_for(self.data.y.size):
                parts.append(self._block_marginals(self.x[block]))
            too_many = too_many or sum(p.bent.sum() for p in parts) > MOST_BENT
            if too_many:
                parts = [replace(p, bent=np.zeros_like(p.bent), bent_parts=[]) for p in parts]
        mixture = GaussianMixture(
            np.concatenate([p.mixture.means for p in parts], axis=1),
            np.concatenate([p.mixture.sds for p in parts], axis=1),
            self.fitted.weights,
        )
        local = [joined(some) for some in zip(*(p.bent_parts for p in parts if p.bent.any()), strict=True)]
        return _Marginals(
            mixture,
            np.concatenate([p.centre for p in parts]),
            np.concatenate([p.covariance for p in parts]),
            np.concatenate([p.bent for p in parts]),
            local,
        )

    def _block_marginals(self, x: np.ndarray) -> _Marginals:
        """Marginals at some of the points."""
        weights, T = self.fitted.weights, self._n_outputs
        inputs = self.scaling.inputs(x)
        parts = single_points(self.fitted.components, inputs, x)
        mean = np.stack([p.mean for p in parts])
        variance = np.stack([np.einsum("ncc->nc", p.covariance)[:, :T] for p in parts])
        bends_law = self.fitted.law is not None and not self.fitted.law.is_linear
        centre = likelier_mean(mean, variance, weights) if bends_law else np.einsum("k,knc->nc", weights, mean)
        offset = mean - centre
        covariance = np.einsum("k,kncd->ncd", weights, np.stack([p.covariance for p in parts]))
        covariance = covariance + np.einsum("k,knc,knd->ncd", weights, offset, offset)
        means = mean[:, :, :T]
        bent = np.zeros(len(x), dtype=bool)
        if all(p.bend is not None for p in parts):
            bends = np.stack([p.bend.variance[:, :T] for p in parts if p.bend is not None])
            means = means + np.stack([p.bend.shift[:, :T] for p in parts if p.bend is not None])
            bent = np.any(np.einsum("k,knt->nt", weights, bends / (variance + bends + 1e-300)) > BENT, axis=1)
            variance = variance + bends
        sds = np.sqrt(np.maximum(variance, 1e-300))
        local = [p.at(bent) for p in parts] if bent.any() else []
        return _Marginals(GaussianMixture(means, sds, weights), centre, covariance, bent, local)

    @cached_property
    def _mixture(self) -> GaussianMixture:
        """Marginals of the outputs, those of measurements where ``noisy``."""
        mixture = self._marginals.mixture
        if not self.noisy:
            return mixture
        noise = np.stack([c.noise for c in self.fitted.components])[:, None, :]
        return replace(mixture, sds=np.sqrt(mixture.sds**2 + noise))

    @cached_property
    def _skewed(self) -> SkewedMixture | None:
        """Marginals of transformed outputs, which are not Gaussian; None where all components are Gaussian."""
        components = self.fitted.components
        if not hasattr(components[0], "distribution"):
            return None
        noise = np.stack([np.sqrt(c.noise) if self.noisy else np.zeros(self._n_outputs) for c in components])
        if self.truth is not None and self.truth._skewed is not None:
            return replace(self.truth._skewed, noise=noise)
        inputs = self.scaling.inputs(self.x)
        parts = [c.distribution(inputs, self.x) for c in components]  # type: ignore[attr-defined]
        return SkewedMixture(parts, self.fitted.weights, noise)

    @cached_property
    def _centre(self) -> np.ndarray:
        """(n, C) mixture mean brought back onto the law, unit-free."""
        if self.truth is not None:
            return self.truth._centre
        law, centre = self.fitted.law, self._marginals.centre
        if law is None or len(self.fitted.weights) == 1:
            return centre
        T, U = self._n_outputs, len(law.law.unknowns)
        metric = self._marginals.covariance.copy()
        metric[:, T : T + U, :] = 0.0
        metric[:, :, T : T + U] = 0.0
        # Constants are one value for all points: the mixture's own mean of them.
        centre = centre.copy()
        centre[:, T : T + U] = centre[:, T : T + U].mean(axis=0)
        return project(law, centre, metric, self.x).points

    @property
    def mean(self) -> np.ndarray:
        """(n, T) means, on the law."""
        return self.scaling.restore(self._centre[:, : self._n_outputs])

    @property
    def std(self) -> np.ndarray:
        """(n, T) standard deviations around ``mean``."""
        return self._mixture.spread(self._centre[:, : self._n_outputs]) * self.scaling.y_scale

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends (n, T) of the central interval that holds the value with probability ``level``."""
        if not 0.0 < level < 1.0:
            raise DataError(worded("level", "a probability between 0 and 1", repr(level), "e.g. 0.95"))
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
        values = self._mixture.quantile(probability)
        bent = self._marginals.bent
        if bent.any():
            values[bent] = np.quantile(self._bent_draws, probability, axis=0)
        return self.scaling.restore(values)

    def cdf(self, values: np.ndarray) -> np.ndarray:
        """(n, T) probability of an output below ``values``."""
        if self._skewed is not None:
            return self._skewed.cdf(self.scaling.outputs(np.asarray(values, dtype=float)))
        unit_free = self.scaling.outputs(np.asarray(values, dtype=float))
        result, bent = self._mixture.cdf(unit_free), self._marginals.bent
        if bent.any():
            result[bent] = np.mean(self._bent_draws <= unit_free[bent], axis=0)
        return result

    def gaussian_mixture(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Weights (K,), means and standard deviations (K, n, T) of the marginals; None for transformed outputs."""
        if self._skewed is not None:
            return None
        mixture, scaling = self._mixture, self.scaling
        return mixture.weights, scaling.restore(mixture.means), mixture.sds * scaling.y_scale

    def log_density(self, values: np.ndarray) -> np.ndarray:
        """(n, T) log densities of the marginals at ``values``, in the user's units."""
        if self._skewed is not None:
            density = self._skewed.density(self.scaling.outputs(np.asarray(values, dtype=float)))
            return np.log(np.maximum(density, np.finfo(float).tiny)) - np.log(self.scaling.y_scale)
        values = self.scaling.outputs(np.asarray(values, dtype=float))
        return self._mixture.log_density(values) - np.log(self.scaling.y_scale)

    def covariance(self) -> np.ndarray:
        """(nT, nT) joint covariance, ordered point by point."""
        self._check_joint("covariance")
        T, n = self._n_outputs, len(self.x)
        total = mixture_covariance(self.fitted, self.scaling.inputs(self.x), self.x, self._centre[:, :T])
        if self.noisy:
            noise = self.fitted.weights @ np.stack([c.noise for c in self.fitted.components])
            total[np.diag_indices(n * T)] += np.tile(noise, n)
        scale = np.tile(self.scaling.y_scale, n)
        total *= scale
        total *= scale[:, None]
        # The law's curvature widens single points: what it adds to their variances has no correlations we know of.
        total[np.diag_indices(n * T)] = np.maximum(self.std.ravel() ** 2, total[np.diag_indices(n * T)])
        return total

    def sample(self, n: int = 1, random_state: int = 0) -> np.ndarray:
        """(n, points, T) joint draws; each obeys the law (with its own value of an unknown constant)."""
        self._check_joint("sample")
        draws = self._draws(n, random_state)[:, :, : self._n_outputs]
        return self.scaling.restore(draws)

    def _draws(self, count: int, random_state: int) -> np.ndarray:
        generator = np.random.default_rng(random_state)
        owners = np.sort(generator.choice(len(self.fitted.weights), size=count, p=self.fitted.weights))
        inputs = self.scaling.inputs(self.x)
        parts = []
        for owner in np.unique(owners):
            component = self.fitted.components[owner]
            draws = component.sample(inputs, self.x, int(np.sum(owners == owner)), generator)
            if self.noisy:
                T = self._n_outputs
                draws[:, :, :T] += generator.standard_normal(draws[:, :, :T].shape) * np.sqrt(component.noise)
            parts.append(draws)
        return np.concatenate(parts)[generator.permutation(count)]

    @cached_property
    def _bent_draws(self) -> np.ndarray:
        """(draws, bent points, T) unit-free draws of single points where the law's curvature shapes the marginals."""
        law, x = self.fitted.law, self.x[self._marginals.bent]
        assert law is not None
        count = int(np.clip(BENT_DRAWS / len(x), 200, 600))
        generator = np.random.default_rng(0)
        # Systematic sampling: each component's number of draws is its share rounded up or down.
        ends = np.floor(np.cumsum(self.fitted.weights) * count + generator.uniform()).astype(int)
        counts = np.diff(ends, prepend=0)
        draws = pointwise_draws(law, self._marginals.bent_parts, counts, x, generator)[:, :, : self._n_outputs]
        if not self.noisy:
            return draws
        noise = np.repeat([np.sqrt(c.noise) for c in self.fitted.components], counts, axis=0)
        return draws + generator.standard_normal(draws.shape) * noise[:, None, :]

    def _check_joint(self, what: str) -> None:
        size = len(self.x) * self._n_outputs
        if size > LARGEST_JOINT:
            raise DataError(
                f"{what}: a joint covariance of {size} values would need {size**2 * 8 * 4 / 1e9:.1f} GB; "
                f"ask for at most {LARGEST_JOINT // self._n_outputs} points at a time"
            )

    def constants(self, level: float = 0.95) -> pd.DataFrame:
        """Estimated constants of the law: mean, sd, lower, upper, one row each (empty without unknowns)."""
        import pandas as pd

        law = self.fitted.law
        names = law.law.unknowns if law is not None else ()
        T = self._n_outputs
        rows = []
        for i, name in enumerate(names):
            shift, scale = law.shift[T + i], law.scale[T + i]  # type: ignore[union-attr]
            parts = [c.marginals(self.scaling.inputs(self.x[:1]), self.x[:1]) for c in self.fitted.components]
            m = np.array([p[0][0, T + i] for p in parts])[:, None, None]
            s = np.sqrt(np.array([p[1][0, T + i, T + i] for p in parts]))[:, None, None]
            w = self.fitted.weights
            mean = float(np.sum(w * m[:, 0, 0]))
            sd = float(np.sqrt(np.sum(w * (s[:, 0, 0] ** 2 + (m[:, 0, 0] - mean) ** 2))))
            ends = [float(mixture_quantile(m, s, w, p)[0, 0]) for p in (0.5 - level / 2, 0.5 + level / 2)]
            rows.append([name, shift + scale * mean, scale * sd, shift + scale * ends[0], shift + scale * ends[1]])
        return pd.DataFrame(rows, columns=["constant", "mean", "sd", "lower", "upper"]).set_index("constant")

    def residual(self) -> np.ndarray:
        """(n, R) law residual of the mean, in the law's own units; zero columns without a law."""
        if self.law is None:
            return np.zeros((len(self.x), 0))
        return self._residual_of(self.mean, self._centre)

    def _residual_of(self, outputs: np.ndarray, columns: np.ndarray) -> np.ndarray:
        assert self.law is not None
        U, T = len(self.law.unknowns), self._n_outputs
        f = outputs
        if U:
            law = self.fitted.law
            if law is None:
                return np.zeros((len(self.x), 0))
            f = np.concatenate([outputs, law.shift[T : T + U] + law.scale[T : T + U] * columns[:, T : T + U]], axis=1)
        with np.errstate(all="ignore"):
            return np.where(self.law.active(self.x), self.law.residual(f, self.x), 0.0)

    def observed(self) -> Posterior:
        """The same for a new noisy measurement of each output."""
        return self if self.noisy else replace(self, noisy=True, truth=self)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """One row per point: inputs, then mean, sd, lower and upper of each output, then the law's residual."""
        import pandas as pd

        lower, upper = self.interval(level)
        names = [*self.data.input_names, *self.data.extra_columns]
        columns: dict[str, np.ndarray] = {name: self.x[:, i] for i, name in enumerate(names)}
        mean, std = self.mean, self.std
        for t, name in enumerate(self.output_names):
            columns |= {
                name: mean[:, t],
                f"{name}_sd": std[:, t],
                f"{name}_lower": lower[:, t],
                f"{name}_upper": upper[:, t],
            }
        residual = self.residual()
        for r in range(residual.shape[1]):
            columns["law_residual" if residual.shape[1] == 1 else f"law_residual_{r + 1}"] = residual[:, r]
        return pd.DataFrame(columns)

    def plot(self, level: float = 0.95) -> Figure:
        """Figure with data, missing marks, mean and band of each output, and the law's residual."""
        from sumgp.prediction.plotting import plot_posterior

        return plot_posterior(self, level)


__all__ = ["Posterior"]
