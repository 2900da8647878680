"""Data and priors to measure on: smooth outputs over one input with noise, everything unit-free."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Kernel

from sumgp.priors import FullTask, MultitaskPrior, NoiseModel, hyper_priors


@dataclass(frozen=True)
class Size:
    """N points with T outputs each."""

    N: int
    T: int

    @property
    def entries(self) -> int:
        """Number of values."""
        return self.N * self.T

    def __str__(self) -> str:
        return f"{self.N} x {self.T}"


def outputs_over(size: Size, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """x (N, 1) in [0, 1] and y (N, T): waves of different frequency with noise of sd 0.2."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(size=(size.N, 1)), axis=0)
    return x, np.cos((3.0 + 2.0 * np.arange(size.T)) * x) + 0.2 * rng.standard_normal((size.N, size.T))


def multitask(size: Size, kernel: Kernel | None = None) -> MultitaskPrior:
    """One separable term with a full task covariance and one noise per output."""
    kernel = RBF(0.3) if kernel is None else kernel
    return MultitaskPrior(
        kernels=(kernel,),
        kernel_priors=(tuple(hyper_priors(kernel, np.array([0.5]))),),
        tasks=(FullTask(size.T),),
        noise=NoiseModel(tuple((t,) for t in range(size.T)), np.ones(size.T)),
        n_outputs=size.T,
    )
