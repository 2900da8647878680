"""The posterior of a law's unknown constants: a mixture of Gaussians, one a component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sumgp.numerics import spectral_root
from sumgp.prediction.marginals import mixture_quantile
from sumgp.strategies import Fitted

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ConstantsPosterior:
    """Names (U,), weights (K,), means (K, U) and covariances (K, U, U), in the user's units."""

    names: tuple[str, ...]
    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    def mean(self) -> np.ndarray:
        """(U,) means."""
        return self.weights @ self.means

    def covariance(self) -> np.ndarray:
        """(U, U) covariance."""
        away = self.means - self.mean()
        return np.einsum("k,kuv->uv", self.weights, self.covariances + away[:, :, None] * away[:, None, :])

    def table(self, level: float) -> pd.DataFrame:
        """mean, sd, lower, upper, one row a constant."""
        import pandas as pd

        sds = np.sqrt(np.maximum(np.einsum("kuu->ku", self.covariances), 0.0))
        ends = [np.zeros(0)] * 2
        if self.names:
            tails = (0.5 - level / 2, 0.5 + level / 2)
            ends = [mixture_quantile(self.means[:, None], sds[:, None], self.weights, p)[0] for p in tails]
        values = {"mean": self.mean(), "sd": np.sqrt(np.diagonal(self.covariance())), "lower": ends[0], "upper": ends[1]}
        return pd.DataFrame(values, index=pd.Index(self.names, name="constant"))

    def sample(self, count: int, random_state: int) -> pd.DataFrame:
        """(count, U) draws."""
        import pandas as pd

        generator = np.random.default_rng(random_state)
        roots = spectral_root(self.covariances)
        owners = generator.choice(len(self.weights), size=count, p=self.weights)
        normal = generator.standard_normal((count, len(self.names)))
        draws = self.means[owners] + np.einsum("nuv,nv->nu", roots[owners], normal)
        return pd.DataFrame(draws, columns=list(self.names))

    def correlations(self) -> pd.DataFrame:
        """(U, U) correlations."""
        import pandas as pd

        covariance = self.covariance()
        sd = np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))
        return pd.DataFrame(covariance / np.outer(sd, sd), index=list(self.names), columns=list(self.names))


def constants_posterior(fitted: Fitted, inputs: np.ndarray, x: np.ndarray) -> ConstantsPosterior:
    """Of the law of a fit; constants are the same at every point, so that one point x (1, D) tells them."""
    law, K = fitted.law, len(fitted.weights)
    if law is None or not law.law.unknowns:
        return ConstantsPosterior((), fitted.weights, np.zeros((K, 0)), np.zeros((K, 0, 0)))
    own = law.constants
    shift, scale = law.shift[own], law.scale[own]
    parts = [component.marginals(inputs, x) for component in fitted.components]
    means = shift + scale * np.stack([mean[0, own] for mean, _ in parts])
    covariances = np.stack([covariance[0, own, own] for _, covariance in parts]) * np.outer(scale, scale)
    return ConstantsPosterior(law.law.unknowns, fitted.weights, means, covariances)
