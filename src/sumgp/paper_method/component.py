"""One fitted posterior of the latent tasks, seen as outputs on the law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from sumgp.data import Scaling
from sumgp.laws import UnitFreeLaw, project
from sumgp.numerics import spectral_root, symmetric_root
from sumgp.paper_method.marginals import OutputMarginal, SkewedMarginals
from sumgp.paper_method.observations import LatentTasks
from sumgp.priors import lengthscale_mask
from sumgp.strategies import Component, LocalPosterior, PosteriorComponent


@dataclass(frozen=True, eq=False)
class LatentPosterior:
    """Tasks u(x) given Gaussian sites: mean D^T S(x) + k alpha, covariance k(x, x') Sigma' - (half k)^T (half k)."""

    kernel: Kernel
    mean_variance: float
    Sigma: np.ndarray  # (L, L) task covariance given the law
    D: np.ndarray  # (R, L)
    x: np.ndarray  # (P, D) points with observations
    point: np.ndarray  # (n,)
    task: np.ndarray  # (n,)
    alpha: np.ndarray  # (n,)
    half: np.ndarray  # (n, n) root of R = (K + W^-1)^-1

    @cached_property
    def root(self) -> np.ndarray:
        """(L, q) factor of Sigma: all the tasks can do under the law."""
        return symmetric_root(self.Sigma)

    def widened(self, factor: float) -> LatentPosterior:
        """The same means with all standard deviations ``factor`` times as large."""
        return replace(self, Sigma=factor**2 * self.Sigma, alpha=self.alpha / factor**2, half=self.half / factor)

    def _kernel_to(self, x: np.ndarray) -> np.ndarray:
        return (self.kernel(x, self.x) + self.mean_variance)[:, self.point]

    def marginals(self, x: np.ndarray, totals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, L) and covariance (n, L, L) of the tasks at each point."""
        k = self._kernel_to(x)
        cross = k[:, None, :] * self.Sigma[:, self.task]
        gain = (cross.reshape(-1, len(self.half)) @ self.half.T).reshape(cross.shape)
        prior = (self.kernel.diag(x) + self.mean_variance)[:, None, None] * self.Sigma
        return totals @ self.D + cross @ self.alpha, prior - gain @ gain.mT

    def joint(self, x: np.ndarray) -> np.ndarray:
        """(nq, nq) covariance of the coordinates v with u = mean + root v."""
        n, q = len(x), self.root.shape[1]
        cross = (self._kernel_to(x)[:, None, :] * self.root[self.task].T).reshape(n * q, -1)
        gain = cross @ self.half.T
        return np.kron(self.kernel(x) + self.mean_variance, np.eye(q)) - gain @ gain.T

    def sample(self, x: np.ndarray, totals: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
        """(count, n, L) joint draws, on the linear law to round-off."""
        root = spectral_root(self.joint(x))
        draws = generator.standard_normal((count, len(root))) @ root.T
        mean, _ = self.marginals(x, totals)
        return mean + draws.reshape(count, len(x), -1) @ self.root.T


@dataclass(frozen=True, eq=False)
class _Restored:
    """Outputs (n, T) restored from the tasks alone, their spreads and marginals, and the tasks' covariances (n, L, L)."""

    f: np.ndarray
    sd: np.ndarray
    marginals: tuple[OutputMarginal, ...]
    cov: np.ndarray


@dataclass(frozen=True, eq=False)
class TransformedComponent(PosteriorComponent):
    """f | y, theta and the law by way of f' = h(f); unit-free outputs outside, the user's units inside.

    The mean of ``guide`` picks the branch of each output. With a ``law`` given, what the guide says of the values of outputs
    with several branches joins in when means are back-transformed.
    """

    latent: LatentPosterior
    tasks: LatentTasks
    guide: Component
    scaling: Scaling
    theta: np.ndarray
    noise: np.ndarray  # (T,) variances of measurements
    n_outputs: int
    law: UnitFreeLaw | None = None

    def differentiated(self, order: tuple[int, ...], x_scale: np.ndarray) -> None:
        """None: transformed outputs have derivatives without bound where branches meet."""

    @property
    def n_columns(self) -> int:
        """C: the outputs, since the law has no columns of its own here."""
        return self.n_outputs

    def widened(self, factor: float) -> TransformedComponent:
        """The same means of the transforms with all standard deviations ``factor`` times as large."""
        return replace(self, latent=self.latent.widened(factor))

    @staticmethod
    def local_posteriors(components: Sequence[Any], x: np.ndarray, x_law: np.ndarray) -> list[LocalPosterior]:
        """Means on the law (n, T) and covariances (n, T, T) about them, of all components moved onto it in one call.

        Correlations are those of the transforms, with the sign of their slopes: standard deviations come from the
        marginals, since a linearised back-transform has none at a branch point.
        """
        parts = [component._restored_alone(x, x_law) for component in components]
        means = [part.f for part in parts]
        law, scaling = components[0].law, components[0].scaling
        if law is not None:
            pairs = [c._joined_by_guide(part) for c, part in zip(components, parts, strict=True)]
            joined, metric = (np.concatenate(several) for several in zip(*pairs, strict=True))
            moved = project(law, scaling.outputs(joined), metric, np.tile(x_law, (len(parts), 1))).points
            means = np.split(scaling.restore(moved), len(parts))
        return [LocalPosterior(*c._about(f, part)) for c, f, part in zip(components, means, parts, strict=True)]

    def _restored_alone(self, x: np.ndarray, x_law: np.ndarray) -> _Restored:
        mean, cov = self._natural(x, x_law)
        marginals = self._output_marginals(x, x_law, mean, cov)
        f = self._restored(self._feasible(mean, cov), marginals)
        sd = SkewedMarginals(marginals, self.scaling.y_shift, self.scaling.y_scale).spread(f)
        return _Restored(f, sd, marginals, cov)

    def _about(self, f: np.ndarray, part: _Restored) -> tuple[np.ndarray, np.ndarray]:
        """Unit-free means (n, T) and covariances (n, T, T) from means f in the user's units."""
        main = self.tasks.main
        size = np.sqrt(np.maximum(np.einsum("nll->nl", part.cov), 1e-300))[:, main]
        correlation = part.cov[:, main][:, :, main] / (size[:, :, None] * size[:, None, :])
        signed = part.sd * self._directions(f) / self.scaling.y_scale
        return self.scaling.outputs(f), correlation * signed[:, :, None] * signed[:, None, :]

    def distribution(self, x: np.ndarray, x_law: np.ndarray) -> SkewedMarginals:
        """Marginal distributions of the outputs, unit-free."""
        mean, cov = self._natural(x, x_law)
        return SkewedMarginals(self._output_marginals(x, x_law, mean, cov), self.scaling.y_shift, self.scaling.y_scale)

    def joint_covariance(self, x: np.ndarray, x_law: np.ndarray) -> np.ndarray:
        """(nT, nT) covariance whose diagonal blocks are those of ``marginals``."""
        n, T = len(x), self.n_outputs
        f, blocks = self.marginals(x, x_law)
        root = self.latent.root[self.tasks.main]
        joint = self.latent.joint(x).reshape(n, root.shape[1], n, root.shape[1])
        cov = np.einsum("tq,nqmr,ur->ntmu", root, joint, root).reshape(n * T, n * T)
        size = np.sqrt(np.maximum(np.diagonal(cov), 1e-300))
        signed = (np.sqrt(np.einsum("ntt->nt", blocks)) * self._directions(self.scaling.restore(f))).ravel()
        return cov * np.outer(signed / size, signed / size)

    def lengthscales(self) -> list[np.ndarray]:
        """Of the one kernel of all tasks."""
        kernel = self.latent.kernel
        return [np.exp(kernel.theta[lengthscale_mask(kernel)])]

    def sample(self, x: np.ndarray, x_law: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
        """(count, n, T) joint draws, each on the law; each has the branches of its own auxiliary draw."""
        totals = self.tasks.right_sides(x_law)
        draws = self._values(self._on_law(self.latent.sample(x, totals, count, generator), totals))
        _, cov = self._natural(x, x_law)
        guides = self.scaling.restore(self.guide.sample(x, x_law, count, generator)[:, :, : self.n_outputs])
        f = np.empty((count, len(x), self.n_outputs))
        for k in range(count):
            feasible = self._feasible(draws[k], cov, folded=True)
            for t, task in enumerate(self.tasks.main):
                h = self.tasks.tasks[task].transform
                f[k, :, t] = h.inverse(feasible[:, task], h.branch_of(guides[k, :, t]))
        return self.scaling.outputs(f)

    def _values(self, u: np.ndarray) -> np.ndarray:
        return self.tasks.shift + self.tasks.scale * u

    def _natural(self, x: np.ndarray, x_law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, L) and covariance (n, L, L) of the tasks in the user's units."""
        totals, scale = self.tasks.right_sides(x_law), self.tasks.scale
        mean, cov = self.latent.marginals(x, totals)
        return self._values(self._on_law(mean, totals)), cov * scale[:, None] * scale

    def _on_law(self, u: np.ndarray, totals: np.ndarray) -> np.ndarray:
        """Round-off taken out of exact rows: very precise virtual measurements have large weights that cancel."""
        exact = self.tasks.noise == 0
        F = self.tasks.F[exact]
        return u + (totals[..., exact] - u @ F.T) @ np.linalg.pinv(F).T

    def _output_marginals(
        self, x: np.ndarray, x_law: np.ndarray, mean: np.ndarray, cov: np.ndarray
    ) -> tuple[OutputMarginal, ...]:
        aux, aux_cov = self.guide.marginals(x, x_law)
        aux = self.scaling.restore(aux[:, : self.n_outputs])
        aux_sd = np.sqrt(np.maximum(np.einsum("ncc->nc", aux_cov)[:, : self.n_outputs], 1e-300)) * self.scaling.y_scale
        result = []
        for t, task in enumerate(self.tasks.main):
            sd = np.sqrt(np.maximum(cov[:, task, task], 1e-300))
            h = self.tasks.tasks[task].transform
            result.append(OutputMarginal(h, mean[:, task], sd, aux[:, t], aux_sd[:, t]))
        return tuple(result)

    def _restored(self, values: np.ndarray, marginals: tuple[OutputMarginal, ...]) -> np.ndarray:
        """(n, T) outputs on the branches of the auxiliary means from task values (n, L)."""
        return np.stack([m.central(values[:, task]) for m, task in zip(marginals, self.tasks.main, strict=True)], axis=1)

    def _joined_by_guide(self, part: _Restored) -> tuple[np.ndarray, np.ndarray]:
        """Means (n, T) weighted with those of the guide by their precisions, and the metric to move them onto the law in.

        Near a branch point h says little about f and the guide much. Intervals stay those of the back-transform alone.
        """
        f, sd, marginals = part.f, part.sd, part.marginals
        branched = np.array([not m.transform.monotone for m in marginals])
        aux = np.stack([m.aux_mean for m in marginals], axis=1)
        aux_variance = np.where(branched, np.stack([m.aux_sd for m in marginals], axis=1) ** 2, np.inf)
        share = 1.0 / (1.0 + sd**2 / aux_variance)
        joined = np.where(branched, share * f + (1.0 - share) * aux, f)
        return joined, np.eye(self.n_outputs) * (share * sd**2 / self.scaling.y_scale**2)[:, :, None]

    def _directions(self, f: np.ndarray) -> np.ndarray:
        """(n, T) whether each transform rises (1) or falls (-1) at f."""
        slopes = [self.tasks.tasks[task].transform.derivative(f[:, t]) for t, task in enumerate(self.tasks.main)]
        return np.where(np.stack(slopes, axis=1) < 0, -1.0, 1.0)

    def _feasible(self, values: np.ndarray, cov: np.ndarray, folded: bool = False) -> np.ndarray:
        """Task values (n, L) moved into the images of their transforms with F f' unchanged.

        What leaves its image is set to the edge and held there; the other terms of the law make up for it in the metric
        of the covariance, until nothing is outside. Where everything is held, the law cannot be met. ``folded`` holds it
        at its mirror image instead, as the marginals have it, wherever the law can be met so.
        """
        images = np.array([task.transform.image for task in self.tasks.tasks])
        outside = np.any((values < images[:, 0]) | (values > images[:, 1]), axis=1)
        result = values.copy()
        F = self.tasks.F / self.tasks.scale
        for i in np.flatnonzero(outside):
            result[i] = _moved_inside(values[i], F, cov[i], images)
            if folded:
                mirrored = _moved_inside(values[i], F, cov[i], images, _folded(values[i], images))
                if np.allclose(F @ mirrored, F @ values[i], rtol=0.0, atol=1e-9 * np.max(np.abs(F * values[i]))):
                    result[i] = mirrored
        return result


def _folded(values: np.ndarray, images: np.ndarray) -> np.ndarray:
    """Values (L,) mirrored at the ends of their images (L, 2); what is still outside goes to the end."""
    lo, hi = np.where(np.isfinite(images), images, 0.0).T
    result = np.where(np.isfinite(images[:, 0]), lo + np.abs(values - lo), values)
    result = np.where(np.isfinite(images[:, 1]), hi - np.abs(hi - result), result)
    return np.clip(result, images[:, 0], images[:, 1])


def _moved_inside(
    values: np.ndarray, F: np.ndarray, cov: np.ndarray, images: np.ndarray, start: np.ndarray | None = None
) -> np.ndarray:
    """``values`` (L,) inside their images with F f' unchanged; those that ``start`` changes are held there."""
    wanted = F @ values
    free = np.ones(len(values), dtype=bool) if start is None else start == values
    # A little of the plain metric, since the covariance of tasks under a law is singular.
    metric = cov + 1e-6 * np.diag(np.diagonal(cov) + 1e-12 * np.max(np.diagonal(cov)))
    current = values.copy() if start is None else start.copy()
    for _ in range(len(values)):
        clipped = np.clip(current, images[:, 0], images[:, 1])
        free &= clipped == current
        current = clipped
        if not free.any():
            break
        rows = F[:, free] @ metric[np.ix_(free, free)]
        gram = rows @ F[:, free].T
        current[free] += rows.T @ np.linalg.lstsq(gram, wanted - F @ current, rcond=1e-12)[0]
        if np.all((current >= images[:, 0]) & (current <= images[:, 1])):
            break
    return np.clip(current, images[:, 0], images[:, 1])
