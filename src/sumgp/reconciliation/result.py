"""Forecasts on the law: means, uncertainty, draws, tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from sumgp.errors import DataError
from sumgp.laws import Law, Limits
from sumgp.notebook import facts_table, listed
from sumgp.prediction import DrawnMarginals, output_columns

if TYPE_CHECKING:
    import pandas as pd


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
        values, vectors = np.linalg.eigh(self._known_covariance())
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        normal = generator.standard_normal((n_samples, *self.mean.shape))
        return self.mean + np.einsum("ntk,snk->snt", root, normal)

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
