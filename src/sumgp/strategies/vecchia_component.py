"""The posterior of many points in several inputs: latent fields, mixed into outputs, moved onto a law where it bends."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sumgp.laws import RightSides, UnitFreeLaw
from sumgp.numerics import cholesky
from sumgp.solvers.vecchia import LatentField, LatentMarginals, SeparateFields
from sumgp.strategies.problem import LocalPosterior
from sumgp.strategies.weight_component import MovedComponent, Unprojected, moved_onto_law, moving_metric


@dataclass(frozen=True)
class LinearOffset:
    """S(x) @ D + base: what a linear law says of the outputs whatever the latents are."""

    right_sides: RightSides
    D: np.ndarray  # (R, T)
    base: np.ndarray  # (T,)

    def __call__(self, x_law: np.ndarray) -> np.ndarray:
        """(n, T) unit-free, at law inputs in the user's units."""
        return self.right_sides(x_law) @ self.D + self.base


@dataclass(frozen=True)
class VecchiaComponent(MovedComponent):
    """f = offset + loading g with independent fields g given the data; unit-free.

    A linear law with constant coefficients is in offset and loading; any other ``law`` moves each point onto it.
    """

    field: LatentField | SeparateFields
    loading: np.ndarray  # (T, q)
    noise: np.ndarray  # (T,) variances of a new measurement
    theta: np.ndarray
    n_outputs: int
    offset: LinearOffset | None = None
    law: UnitFreeLaw | None = None
    widening: float = 1.0
    noise_between: np.ndarray | None = None  # (T, T), where outputs share noise

    @property
    def noise_covariance(self) -> np.ndarray:
        """(T, T) as it was learned; models of version 0.2.0 hold its diagonal only."""
        return np.diag(self.noise) if self.noise_between is None else self.noise_between

    @property
    def n_columns(self) -> int:
        """Outputs; laws with columns of their own are refused."""
        return len(self.loading)

    def widened(self, factor: float) -> VecchiaComponent:
        """The same means with all standard deviations ``factor`` times as large."""
        return replace(self, widening=factor * self.widening)

    def differentiated(self, order: tuple[int, ...], x_scale: np.ndarray) -> None:
        """None: neighbours change from point to point, so that predictions have jumps."""

    def lengthscales(self) -> list[np.ndarray]:
        """Of each kernel, for each input."""
        return self.field.lengthscales()

    def unprojected(self, x: np.ndarray, x_law: np.ndarray) -> Unprojected:
        """Each point on its own, before it is moved onto the law."""
        return self._of_latents(self.field.marginals(x), x_law)

    def at_own_rows(self, x_law: np.ndarray) -> LocalPosterior:
        """At all rows of the fit, in their order, with ``x_law`` (N, D') of theirs: ``marginals`` by dense algebra."""
        free = self._of_latents(self.field.at_own_rows, x_law)
        if self.law is None:
            return LocalPosterior(free.mean, free.covariance)
        return moved_onto_law(self.law, free, x_law)

    def _of_latents(self, found: LatentMarginals, x_law: np.ndarray) -> Unprojected:
        mean = self._outputs(found.mean, x_law)
        covariance = self.widening**2 * np.einsum(
            "ti,nij,uj->ntu", self.loading, found.covariance, self.loading, optimize=True
        )
        if self.law is None:
            return Unprojected(mean, covariance)
        metric = moving_metric(covariance, covariance, False, slice(self.n_columns, self.n_columns))
        return Unprojected(mean, covariance, metric, np.einsum("ntt->nt", covariance))

    def free_draws(self, x: np.ndarray, x_law: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
        """(count, n, T) joint draws."""
        n, q = len(x), self.field.n_latents
        mean, covariance = self._joint(x)
        root = cholesky(covariance.swapaxes(1, 2).reshape(q * n, q * n), "joint covariance of the prediction points")
        white = generator.standard_normal((count, q * n))
        return self._outputs(mean + self.widening * (white @ root.T).reshape(count, q, n).swapaxes(1, 2), x_law)

    def free_covariance(self, x: np.ndarray, x_law: np.ndarray) -> np.ndarray:
        """(nT, nT) covariance between all points."""
        size, left = len(x) * self.n_columns, self.loading
        whole = np.einsum("ti,ijab,uj->atbu", left, self._joint(x)[1], left, optimize=True)
        return self.widening**2 * whole.reshape(size, size)

    def _joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, q) and covariance (q, q, n, n): correlations of all points, means and sds of each on its own."""
        alone, (_, covariance) = self.field.marginals(x), self.field.joint(x)
        sd = np.sqrt(np.einsum("nii->in", alone.covariance))
        ratio = sd / np.sqrt(np.einsum("iinn->in", covariance))
        return alone.mean, covariance * ratio[:, None, :, None] * ratio[None, :, None, :]

    def _outputs(self, latents: np.ndarray, x_law: np.ndarray) -> np.ndarray:
        outputs = latents @ self.loading.T
        return outputs if self.offset is None else outputs + self.offset(x_law)
