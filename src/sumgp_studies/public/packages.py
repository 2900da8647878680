"""Competitors from other packages, where they are installed: GPyTorch and GPBoost."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from sumgp_studies.public.case import Case
from sumgp_studies.public.methods import Gaussians

GPYTORCH_STEPS = 150
GPYTORCH_RATE = 0.1
GPYTORCH_VALUES = 450  # most measured values of a case: its time grows with their cube
GPBOOST_SMOOTHNESS = 2.5  # derivatives of its Matern kernel


def has_package(name: str) -> bool:
    """True if it is installed (the extra "bench")."""
    return find_spec(name) is not None


def suits_gpytorch(case: Case) -> bool:
    """Installed, and the case is small enough."""
    return has_package("gpytorch") and int(np.sum(~np.isnan(case.y))) <= GPYTORCH_VALUES


def gpytorch_multitask(case: Case) -> Callable[[np.ndarray], Gaussians]:
    """GPyTorch's multitask GP for values with gaps, as in its documentation: K(x, x') times a task covariance, Adam."""
    import gpytorch
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    D, T = len(case.inputs), len(case.outputs)
    shift, size = case.x[:, :D].min(axis=0), np.ptp(case.x[:, :D], axis=0)
    centre, spread = np.nanmean(case.y, axis=0), np.nanstd(case.y, axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    row, task = np.nonzero(~np.isnan(case.y))
    X = torch.as_tensor(np.column_stack([(case.x[row, :D] - shift) / size, task]))  # the task is the last column
    y = torch.as_tensor((case.y[row, task] - centre[task]) / spread[task])
    likelihood = gpytorch.likelihoods.HadamardGaussianLikelihood(num_tasks=T, task_feature_index=D).double()

    class Multitask(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(X, y, likelihood)
            self.mean = gpytorch.means.ConstantMean()
            self.smooth = gpytorch.kernels.RBFKernel(ard_num_dims=D)
            self.smooth.lengthscale = 0.3
            self.between = gpytorch.kernels.IndexKernel(num_tasks=T, rank=min(T, 3))

        def forward(self, points: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
            x, task = points[..., :D], points[..., D:].long()
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.smooth(x).mul(self.between(task)))

    model = Multitask().double()
    optimiser = torch.optim.Adam(model.parameters(), lr=GPYTORCH_RATE)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    for _ in range(GPYTORCH_STEPS):
        optimiser.zero_grad()
        loss = -objective(model(X), y, [X])
        loss.backward()
        optimiser.step()
    model.eval()
    likelihood.eval()

    def predict(new: np.ndarray) -> Gaussians:
        means, variances = [], []
        for t in range(T):
            points = torch.as_tensor(np.column_stack([(new[:, :D] - shift) / size, np.full(len(new), t)]))
            with torch.no_grad():
                found = model(points)
                shown = found if case.latent else likelihood(found, [points])
            means.append(centre[t] + spread[t] * shown.mean.numpy())
            variances.append(spread[t] ** 2 * shown.variance.numpy() + 1e-300)
        return Gaussians(np.stack(means, axis=1), np.stack(variances, axis=1))

    return predict


def gpboost_outputs(case: Case) -> Callable[[np.ndarray], Gaussians]:
    """GPBoost for each output alone: Matern 5/2 with a lengthscale for each input, its own optimiser."""
    import gpboost

    D = len(case.inputs)
    shift, size = case.x[:, :D].min(axis=0), np.ptp(case.x[:, :D], axis=0)
    models = []
    for column in case.y.T:
        seen = ~np.isnan(column)
        centre, spread = float(column[seen].mean()), float(column[seen].std()) or 1.0
        model = gpboost.GPModel(
            gp_coords=(case.x[seen, :D] - shift) / size,
            cov_function="matern_ard" if D > 1 else "matern",
            cov_fct_shape=GPBOOST_SMOOTHNESS,
            likelihood="gaussian",
            num_parallel_threads=1,
        )
        model.fit(y=(column[seen] - centre) / spread, params={"trace": False})
        models.append((model, centre, spread))

    def predict(new: np.ndarray) -> Gaussians:
        points = (new[:, :D] - shift) / size
        means, variances = [], []
        for model, centre, spread in models:
            found = model.predict(gp_coords_pred=points, predict_var=True, predict_response=not case.latent)
            means.append(centre + spread * found["mu"])
            variances.append(spread**2 * np.maximum(found["var"], 1e-12))
        return Gaussians(np.stack(means, axis=1), np.stack(variances, axis=1))

    return predict
