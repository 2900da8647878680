"""More competitors: rough Gaussian processes, log-ratios for compositions, GPyTorch where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from scipy.special import softmax

from sumgp_studies.public.case import Case
from sumgp_studies.public.methods import Gaussians, Predict, Prediction, gaussian_processes

ZERO_SHARE = 0.65  # of the smallest positive value, put in place of zeros before logarithms
DRAWS = 400
GPYTORCH_STEPS = 150
GPYTORCH_RATE = 0.1


ROUGH = 1.5  # derivatives of a Matern kernel, for data that are rougher than RBF expects


def rough_processes(case: Case) -> Callable[[np.ndarray], Gaussians]:
    """scikit-learn with a Matern 3/2 kernel for each output alone."""
    return gaussian_processes(case, ROUGH)


def is_composition(case: Case) -> bool:
    """True for one law that all outputs sum to a number, complete rows, no negative values."""
    left, _, right = case.laws[0].partition("=")
    named = {name.strip() for name in left.split("+")} == set(case.outputs)
    return (
        len(case.laws) == 1
        and named
        and right.strip().isdigit()
        and not np.isnan(case.y).any()
        and bool(np.all(case.y >= 0))
    )


def log_ratios(case: Case) -> Predict:
    """Gaussian processes of centred log-ratios, turned back by draws: the usual way with compositions.

    Zeros are replaced by a share of the smallest positive value of their part.
    """
    total = float(case.laws[0].partition("=")[2])
    smallest = np.array([column[column > 0].min() for column in case.y.T])
    logs = np.log(np.where(case.y > 0, case.y, ZERO_SHARE * smallest))
    ratios = logs - logs.mean(axis=1, keepdims=True)
    each = rough_processes(Case(case.set_name, case.label, case.x, ratios, case.inputs, case.outputs, (), ()))

    def predict(x: np.ndarray, y: np.ndarray) -> Prediction:
        free = each(x)
        normal = np.random.default_rng(0).standard_normal((DRAWS, *free.mean.shape))
        shares = total * softmax(free.mean + np.sqrt(free.variance) * normal, axis=2)
        mean, sd = shares.mean(axis=0), shares.std(axis=0)
        lower, upper = np.quantile(shares, [0.025, 0.975], axis=0)
        log_density = -0.5 * ((y - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2.0 * np.pi)
        return Prediction(mean, lower, upper, log_density)

    return predict


def has_gpytorch() -> bool:
    """True if GPyTorch is installed (the extra "bench")."""
    return find_spec("gpytorch") is not None


def gpytorch_multitask(case: Case) -> Callable[[np.ndarray], Gaussians]:
    """GPyTorch's multitask GP as in its documentation: full task covariance, Adam; gaps filled by the outputs' means."""
    import gpytorch
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    D, T = len(case.inputs), len(case.outputs)
    x = case.x[:, :D]
    shift, size = x.min(axis=0), np.ptp(x, axis=0)
    centre, spread = np.nanmean(case.y, axis=0), np.nanstd(case.y, axis=0)
    X = torch.as_tensor((x - shift) / size)
    Y = torch.as_tensor(np.nan_to_num((case.y - centre) / np.where(spread > 0, spread, 1.0)))
    likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(num_tasks=T).double()

    class Multitask(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(X, Y, likelihood)
            self.mean = gpytorch.means.MultitaskMean(gpytorch.means.ConstantMean(), num_tasks=T)
            smooth = gpytorch.kernels.RBFKernel(ard_num_dims=D)
            smooth.lengthscale = 0.3
            self.covariance = gpytorch.kernels.MultitaskKernel(smooth, num_tasks=T, rank=min(T, 3))

        def forward(self, points: torch.Tensor) -> gpytorch.distributions.MultitaskMultivariateNormal:
            return gpytorch.distributions.MultitaskMultivariateNormal(self.mean(points), self.covariance(points))

    model = Multitask().double()
    optimiser = torch.optim.Adam(model.parameters(), lr=GPYTORCH_RATE)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    for _ in range(GPYTORCH_STEPS):
        optimiser.zero_grad()
        loss = -objective(model(X), Y)
        loss.backward()
        optimiser.step()
    model.eval()
    likelihood.eval()

    def predict(new: np.ndarray) -> Gaussians:
        with torch.no_grad():
            found = model(torch.as_tensor((new[:, :D] - shift) / size))
            shown = found if case.latent else likelihood(found)
        return Gaussians(centre + spread * shown.mean.numpy(), spread**2 * shown.variance.numpy() + 1e-300)

    return predict
