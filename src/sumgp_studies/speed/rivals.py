"""The same evidence and gradient by other libraries, as their documentation says to compute it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

ValueAndGradient = Callable[[np.ndarray], tuple[float, np.ndarray]]


def has_gpytorch() -> bool:
    """True if GPyTorch is installed (the extra "bench")."""
    return find_spec("gpytorch") is not None


def sklearn_evidence(x: np.ndarray, y: np.ndarray) -> Callable[[], object]:
    """Evidence and gradient of one output with as many values as y (N, T) has: scikit-learn has no multitask prior."""
    points = np.linspace(0.0, 1.0, y.size)[:, None]
    model = GaussianProcessRegressor(RBF(0.3) + WhiteKernel(0.1), optimizer=None).fit(points[:2], y.ravel()[:2])
    model.X_train_, model.y_train_ = points, y.ravel()
    return lambda: model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True, clone_kernel=False)


def gpytorch_evidence(
    x: np.ndarray, y: np.ndarray, mean_variance: float, exact: bool = True
) -> tuple[ValueAndGradient, np.ndarray]:
    """log p(y) and gradient as functions of GPyTorch's own flat parameters, and the start.

    The model is ours: (K_RBF + mean_variance) (x) (B B^T + diag v), one noise per output, mean zero. ``exact`` asks for
    Cholesky factors; by default GPyTorch estimates log determinant and traces from random vectors above 800 values.
    """
    import gpytorch
    import torch

    torch.set_num_threads(1)
    model, likelihood = _gpytorch_model(x, y, mean_variance, gpytorch, torch)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    free = [p for p in model.parameters() if p.requires_grad]
    inputs, targets = model.train_inputs[0], model.train_targets

    def value(theta: np.ndarray) -> tuple[float, np.ndarray]:
        torch.nn.utils.vector_to_parameters(torch.as_tensor(theta), free)
        for parameter in free:
            parameter.grad = None
        largest = 10**9 if exact else gpytorch.settings.max_cholesky_size.value()
        with gpytorch.settings.max_cholesky_size(largest):
            log_evidence = objective(model(inputs), targets) * y.size  # it divides by the number of values
            log_evidence.backward()
        return float(log_evidence.detach()), torch.cat([p.grad.reshape(-1) for p in free]).numpy().copy()

    return value, torch.nn.utils.parameters_to_vector(free).detach().numpy().copy()


def _gpytorch_model(x: np.ndarray, y: np.ndarray, mean_variance: float, gpytorch: Any, torch: Any) -> tuple[Any, Any]:
    kernels = gpytorch.kernels
    T = y.shape[1]
    X, Y = torch.as_tensor(x), torch.as_tensor(y)
    constant = kernels.ConstantKernel()
    constant.constant = torch.tensor(mean_variance)
    constant.raw_constant.requires_grad_(False)
    smooth = kernels.RBFKernel()
    smooth.lengthscale = 0.3
    mean = gpytorch.means.MultitaskMean(gpytorch.means.ZeroMean(), num_tasks=T)
    covariance = kernels.MultitaskKernel(smooth + constant, num_tasks=T, rank=T)
    likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(num_tasks=T, has_global_noise=False)
    likelihood.task_noises = torch.full((T,), 0.1, dtype=torch.float64)

    class Multitask(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(X, Y, likelihood)
            self.mean, self.covariance = mean, covariance

        def forward(self, points: Any) -> Any:
            return gpytorch.distributions.MultitaskMultivariateNormal(self.mean(points), self.covariance(points))

    model = Multitask().double()
    likelihood.double()
    model.train()
    likelihood.train()
    return model, likelihood
