"""Somebody else's forecasts moved onto a law: reconcile(forecasts, law).

A forecast N(m, V) of the outputs at one point is conditioned on the law. For a linear law F f = S,

    m' = m - G (F m - S),   V' = (I - G F) V,   G = V F^T (F V F^T)^+,

which is minimum-trace reconciliation (MinT) where V is the covariance of the forecast errors. A curved law takes m to the
nearest point on it in the metric V, and draws of N(m, V) likewise, one by one. Forecasts given as draws keep their shape:
each draw is moved. Bounds come last: means and draws outside them go to the nearest point that obeys law and bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from sumgp.errors import ConstraintError, DataError
from sumgp.laws import (
    BoundedLaw,
    Inequalities,
    Law,
    Limits,
    UnitFreeLaw,
    check_bounds,
    make_unit_free,
    project,
    projected_draws,
)
from sumgp.notebook import facts_table, listed
from sumgp.numerics import spectral_root
from sumgp.prediction import BoundedPoints, DrawnMarginals, common_numbers, output_columns, point_draws
from sumgp.reconciliation.given import Forecasts, bound_law, error_covariances, read_forecasts
from sumgp.strategies import Unprojected, with_soft_errors

if TYPE_CHECKING:
    import pandas as pd

UNMET = 1e-6  # scaled residual above which a point counts as off the law


def reconcile(
    forecasts: Any,
    law: Any,
    *,
    outputs: Sequence[str] | None = None,
    constants: Mapping[str, Any] | None = None,
    covariance: Any = None,
    errors: Any = None,
) -> Reconciled:
    """Move forecasts onto a law, each as far as its uncertainty allows.

    ``forecasts``: a DataFrame or array (n, T) of means, or an array (M, n, T) of M draws. ``outputs`` names the columns that
    the law speaks of; other columns of a DataFrame are inputs of the law. ``law``: a formula, a constraint object, the
    summing matrix of a hierarchy as a DataFrame (one row for each series, one column for each bottom series), or a list of
    them; bounds such as "all >= 0" beside it or alone. ``constants``: as in ConstrainedGP, numbers only.

    The uncertainty decides who moves: ``covariance`` of the forecast errors, (T, T) or (n, T, T); or past ``errors``
    (m, T), forecast minus outcome, whose covariance is estimated with shrunk correlations. With both, past errors decide,
    and the covariance is that of the forecasts, e.g. of several steps ahead. Draws bring their own. Without any, all
    outputs move alike in their own units, and no intervals are given.

    >>> import sumgp
    >>> moved = sumgp.reconcile([[3.0, 5.0, 10.0]], "a + b = total", outputs=["a", "b", "total"])
    >>> moved.mean.round(3).tolist()
    [[3.667, 5.667, 9.333]]
    """
    given = read_forecasts(forecasts, outputs, law)
    found = bound_law(law, constants, given)
    V, spread = error_covariances(given, covariance, errors)
    moved = Reconciled(given.outputs, None, given.x, given.mean, spread, given.draws, given.index)
    if found.law is not None:
        moved = _onto(found.law, given, moved, V)
    return moved if found.bounds is None else into_bounds(found.bounds, moved, V)


def _onto(law: Law, given: Forecasts, before: Reconciled, V: np.ndarray) -> Reconciled:
    """Forecasts on the law, with their uncertainty where it is known."""
    free = _unit_free(law, given, V)
    T, scale, soft = given.mean.shape[1], free.scale, free.soft_variances
    units = scale[:, None] * scale
    start, metric = with_soft_errors(given.mean / scale, V / units, soft)
    moved = project(free, start, metric, given.x)
    _check_met(moved.unmet, given)
    found = replace(before, law=law, mean=scale * moved.points[:, :T])
    if given.draws is not None:
        draws = projected_draws(free, np.pad(given.draws / scale, ((0, 0), (0, 0), (0, len(soft)))), metric, given.x)
        return replace(found, covariance=None, draws=scale * draws[:, :, :T])
    if before.covariance is None:
        return found
    _, spread = with_soft_errors(given.mean, before.covariance / units, soft)
    if free.is_linear:
        tangent = (moved.projectors @ spread @ moved.projectors.mT)[:, :T, :T]
        return replace(found, covariance=tangent * units)
    draws = gaussian_draws(free, Unprojected(start, spread, metric), given.x)
    return replace(found, covariance=None, draws=scale * draws[:, :, :T])


def _unit_free(law: Law, given: Forecasts, V: np.ndarray) -> UnitFreeLaw:
    """The law in units of each output's typical error, so that rows of very different size count alike."""
    scale = np.sqrt(np.mean(np.einsum("ntt->nt", V), axis=0))
    size = np.max(np.abs(given.mean), axis=0)
    scale = np.where(scale > 0, scale, np.where(size > 0, size, 1.0))
    return make_unit_free(law, np.zeros_like(scale), scale, given.mean / scale, given.x)


def _check_met(unmet: np.ndarray, given: Forecasts) -> None:
    worst = int(np.argmax(unmet))
    if unmet[worst] > UNMET:
        label = worst if given.index is None else given.index[worst]
        raise ConstraintError(
            f"law: no values that meet it were found near the forecast of row {label}; check the law and its constants, "
            "allow an error with noise= on the law, or give a covariance that lets more outputs move"
        )


def gaussian_draws(law: UnitFreeLaw | None, before: Unprojected, x: np.ndarray) -> np.ndarray:
    """(M, n, C) draws of a Gaussian at each of n points, moved onto the law in its metric."""
    numbers = common_numbers(np.ones(1), np.arange(before.mean.shape[1]))
    return point_draws(law, [before], numbers, x)


def into_bounds(bounds: Inequalities, moved: Reconciled, V: np.ndarray) -> Reconciled:
    """Means and draws outside the bounds go to the nearest point that obeys them and the law.

    Outputs are measured in the standard deviations of the forecasts, from V (n, T, T); one that is certain stays. Gaussian
    forecasts become draws, of which each is moved.
    """
    check_bounds(bounds, moved.law, moved.x)
    draws = moved.draws
    if draws is None and moved.covariance is not None:
        draws = gaussian_draws(None, Unprojected(moved.mean, moved.covariance, None), moved.x)
    limits = bounds.limits(moved.x)
    T, sds = moved.mean.shape[1], np.sqrt(np.einsum("ntt->nt", V))
    points = BoundedPoints(BoundedLaw(bounds, moved.law), limits, moved.x, sds, np.zeros(T), np.ones(T))
    mean = points.mean(moved.mean)
    inside = None if draws is None else points.draws(draws, mean)
    return replace(moved, mean=mean, covariance=None, draws=inside, limits=limits)


@dataclass(frozen=True, eq=False)
class Reconciled:
    """Forecasts on the law: mean (n, T), and their uncertainty where one was given.

    ``covariance`` (n, T, T) for linear laws; ``draws`` (M, n, T) for curved laws, bounds, and forecasts that came as draws.
    """

    outputs: tuple[str, ...]
    law: Law | None  # None: bounds alone
    x: np.ndarray  # (n, D) what the law takes besides the outputs
    mean: np.ndarray
    covariance: np.ndarray | None = None
    draws: np.ndarray | None = None
    index: Any = None  # of the table of forecasts
    limits: Limits | None = None  # bounds that means, draws and ends of intervals obey

    @property
    def std(self) -> np.ndarray:
        """(n, T) standard deviations."""
        if self.draws is not None:
            return self.draws.std(axis=0)
        return np.sqrt(np.maximum(np.einsum("ntt->nt", self._known_covariance()), 0.0))

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends (n, T) of central intervals."""
        if not 0 < level < 1:
            raise DataError("level", "a number between 0 and 1", repr(level), "e.g. 0.95")
        return self.quantile(0.5 * (1.0 - level)), self.quantile(0.5 * (1.0 + level))

    def quantile(self, probability: float) -> np.ndarray:
        """(n, T) quantiles of the marginals."""
        if self.draws is not None:
            found = DrawnMarginals(np.sort(self.draws, axis=0)).quantile(probability)
            return found if self.limits is None else np.clip(found, self.limits.lower, self.limits.upper)
        return self.mean + float(ndtri(probability)) * self.std

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """(n_samples, n, T) draws on the law; points are independent of each other."""
        generator = np.random.default_rng(random_state)
        if self.draws is not None:
            chosen = generator.integers(len(self.draws), size=n_samples)
            return self.draws[chosen]
        normal = generator.standard_normal((n_samples, *self.mean.shape))
        return self.mean + np.einsum("ntk,snk->snt", spectral_root(self._known_covariance()), normal)

    def residual(self) -> np.ndarray:
        """(n, R) left side minus right side of the law at the means."""
        return np.zeros((len(self.mean), 0)) if self.law is None else self.law.residual(self.mean, self.x)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """One row per forecast: mean, and sd, lower and upper where the uncertainty is known."""
        import pandas as pd

        parts = {"": self.mean}
        if self.covariance is not None or self.draws is not None:
            lower, upper = self.interval(level)
            parts |= {"_sd": self.std, "_lower": lower, "_upper": upper}
        return pd.DataFrame(output_columns(self.outputs, parts), index=self.index)

    def _known_covariance(self) -> np.ndarray:
        if self.covariance is None:
            raise DataError(
                "covariance: these forecasts came without their uncertainty; "
                "give reconcile a covariance=, past errors=, or draws"
            )
        return self.covariance

    def _facts(self) -> list[tuple[str, object]]:
        return [
            ("forecasts", len(self.mean)),
            ("outputs", listed(self.outputs)),
            ("laws", 0 if self.law is None else self.law.n_rows),
            ("largest residual", f"{np.max(np.abs(self.residual()), initial=0.0):.1e}"),
        ]

    def __repr__(self) -> str:
        return f"Reconciled({', '.join(f'{name}: {value}' for name, value in self._facts())})"

    def _repr_html_(self) -> str:
        return facts_table(self._facts())
