"""Sections on maps: how far predictions from a tree of averages are from dense algebra with the same hyperparameters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from sumgp.estimator import ConstrainedGP
from sumgp.solvers import Vecchia
from sumgp.solvers.vecchia import LatentField, LatentMarginals
from sumgp_studies.speed.timing import Bar, Section

LAWS = {"linear": "a + b + c = 1", "nonlinear": "a**2 + b**2 + c**2 = 1"}
NAMES = ["a", "b", "c"]
KERNELS = {
    "Matern 1/2": Matern(0.3, nu=0.5),
    "Matern 3/2": Matern(0.3, nu=1.5),
    "Matern 5/2": Matern(0.3, nu=2.5),
    "RBF": RBF(0.3),
}
LOW, HIGH = 0.5, 0.02  # sd of the noise, where the signal has one
SIZES = (400, 1_500)
ASKED = 100  # points
EXACT_ROWS = 200
MEAN_BAR, HIGH_SIGNAL_BAR, SD_BAR, EXACT_BAR = 0.25, 0.05, 0.03, 1e-8


class DenseField(NamedTuple):
    """The same latent processes given the same rows, by one Cholesky factor for each."""

    field: LatentField

    def marginals(self, x: np.ndarray) -> LatentMarginals:
        """At points x (n, D)."""
        given, k = self.field, self.field.n_latents
        K, near = given.kernel(given.x) + given.mean_variance, given.kernel(given.x, x) + given.mean_variance
        mean, covariance = np.empty((len(x), k)), np.zeros((len(x), k, k))
        for i, signal in enumerate(given.signal):
            factor = cho_factor(signal * K + np.diag(1.0 / given.precision))
            mean[:, i] = signal * near.T @ cho_solve(factor, given.pulled[:, i] / given.precision)
            seen = signal**2 * np.sum(near * cho_solve(factor, near), axis=0)
            covariance[:, i, i] = signal * (1.0 + given.mean_variance) - seen
        return LatentMarginals(mean, covariance)


class _Distance(NamedTuple):
    """From dense: of the means in sds, root mean square and largest; of the sds, in those of the point, largest."""

    mean: float
    largest: float
    sd: float


def accuracy_section(sizes: tuple[int, ...] = SIZES, kernels: tuple[str, ...] = tuple(KERNELS)) -> Section:
    """Every kernel at low and high signal, a linear and a nonlinear law."""
    rows, found = [], []
    for N in sizes:
        for law in LAWS:
            for name in kernels:
                for noise in (LOW, HIGH):
                    apart = _distance(N, law, KERNELS[name], noise)
                    found.append((noise, apart))
                    cells = (f"{apart.mean:.3f}", f"{apart.largest:.3f}", f"{100 * apart.sd:.2f}")
                    rows.append((f"{N:,}", law, name, f"{noise:g}", *cells))
    exact = max(_distance(EXACT_ROWS, law, KERNELS["Matern 3/2"], LOW, Vecchia(nodes=256)).largest for law in LAWS)
    bars = (
        Bar("map: means from dense, worst kernel, noise and law, rms", MEAN_BAR, max(a.mean for _, a in found), "sd"),
        Bar("map: the same at high signal", HIGH_SIGNAL_BAR, max(a.mean for noise, a in found if noise == HIGH), "sd"),
        Bar("map: sds from dense, worst point", SD_BAR, max(a.sd for _, a in found), "relative"),
        Bar("map: means from dense with all rows as nodes, worst point", EXACT_BAR, exact, "sd"),
    )
    note = (
        f"Fields of lengthscale 0.3 in the unit square, sd 1, {ASKED} points predicted, hyperparameters of the fit held. "
        "Dense: one Cholesky factor for each latent process, then the same law. Means in sds of the dense posterior."
    )
    columns = ("rows", "law", "kernel", "noise sd", "means, rms [sd]", "means, largest [sd]", "sds, largest [%]")
    return Section("Maps beside dense algebra", note, columns, tuple(rows), bars)


def _distance(N: int, law: str, kernel: Kernel, noise: float, solver: Vecchia | None = None) -> _Distance:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(N + ASKED, 2))
    root = np.linalg.cholesky(kernel(x) + 1e-10 * np.eye(len(x)))
    a, b = (root @ rng.standard_normal((len(x), 2))).T
    f = np.column_stack([a, 0.5 * a + b, 1.0 - 1.5 * a - b])
    if law == "nonlinear":
        f = np.column_stack([np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), np.sin(a)])
    y = f + noise * rng.standard_normal(f.shape)
    gp = ConstrainedGP(LAWS[law], outputs=NAMES, solver=solver or Vecchia(), kernel=kernel).fit(x[:N], y[:N])
    ours: Any = gp.fitted_.components[0]
    dense = replace(ours, field=DenseField(ours.field))
    inputs, there = gp.scaling_.inputs(x[N:]), x[N:]
    (mean, covariance), (exact, exact_covariance) = ours.marginals(inputs, there), dense.marginals(inputs, there)
    sd, exact_sd = np.sqrt(np.einsum("ntt->nt", covariance)), np.sqrt(np.einsum("ntt->nt", exact_covariance))
    away = (mean - exact) / exact_sd
    # On a curved law single outputs may have no sd at all: differences count beside the point's outputs together.
    whole = np.sqrt(np.mean(exact_sd**2, axis=1, keepdims=True))
    relative = float(np.max(np.abs(sd - exact_sd) / whole))
    return _Distance(float(np.sqrt(np.mean(away**2))), float(np.max(np.abs(away))), relative)
