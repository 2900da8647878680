"""The model that Linearized approximates, written down a second time: data, hyperparameters and a law that holds up to s.

    theta ~ the package's hyperprior,  f | theta ~ GP,  y = f + noise,  g(f(x_j)) ~ N(0, s_j^2) at the law's points x_j.

One RBF kernel, two outputs, one law, one input. Everything is unit-free and for many theta (chains C) side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from sumgp import ConstrainedGP
from sumgp.data.table import Scaling
from sumgp.laws.geometry import UnitFreeLaw
from sumgp.laws.points import set_up_law
from sumgp.priors.multitask import MultitaskPrior
from sumgp.strategies.averaging import fit_candidates
from sumgp.strategies.linearized import LawEngine, law_spacing

NUGGET = 1e-11  # on the kernel's diagonal, so that its factor exists
TASK_FLOOR, SMALLEST_NOISE = 1e-4, 1e-6  # as stated by the package's priors


@dataclass(frozen=True)
class GivenData:
    """f = mean + root v, v ~ N(0, I), given the data alone; ``log_weight`` (C,) = log p(theta) p(y | theta)."""

    log_weight: np.ndarray
    mean: np.ndarray  # (C, n T)
    root: np.ndarray  # (C, n T, W)


@dataclass(frozen=True)
class SmearedLaw:
    """Target distribution of (theta, f); ``law_sd`` (n,) is s. Rows of ``y`` (n, T) without data are NaN."""

    prior: MultitaskPrior
    scaling: Scaling
    x: np.ndarray  # (n,) as the kernel sees it
    x_law: np.ndarray  # (n, 1) in the user's units
    y: np.ndarray
    law: UnitFreeLaw
    law_sd: np.ndarray
    start: np.ndarray  # (p,) a likely theta

    def log_prior(self, thetas: np.ndarray) -> np.ndarray:
        """(C,) the package's hyperprior, minus infinity beyond its bounds."""
        low, high = np.array(self.prior.bounds()).T
        inside = np.all((thetas >= low) & (thetas <= high), axis=1)
        return np.where(inside, [self.prior.log_prior(theta)[0] for theta in thetas], -np.inf)

    def design(self, thetas: np.ndarray) -> np.ndarray:
        """G (C, n T, W): G G^T = K (x) Sigma_t + mean_variance 1 1^T (x) I, point by point."""
        squared = (self.x[:, None] - self.x[None, :]) ** 2
        K = np.exp(-0.5 * squared * np.exp(-2.0 * thetas[:, 0])[:, None, None]) + NUGGET * np.eye(len(self.x))
        d, c = np.exp(thetas[:, 1:3]), thetas[:, 3]
        E = np.moveaxis(np.array([[np.cosh(c), np.sinh(c)], [np.sinh(c), np.cosh(c)]]), 2, 0)
        Sigma = d[:, :, None] * E * d[:, None, :] + TASK_FLOOR * np.eye(2)
        L, B = np.linalg.cholesky(K), np.linalg.cholesky(Sigma)
        C, n = len(thetas), len(self.x)
        varying = np.einsum("cij,cab->ciajb", L, B).reshape(C, 2 * n, 2 * n)
        constant = np.sqrt(self.prior.mean_variance) * np.tile(np.eye(2), (n, 1))
        return np.concatenate([varying, np.broadcast_to(constant, (C, 2 * n, 2))], axis=2)

    def given_data(self, thetas: np.ndarray) -> GivenData:
        """Regression on the weights w of f = G w: precision I + G_y^T R^-1 G_y, and the data's evidence from its factor."""
        G = self.design(thetas)
        seen = np.flatnonzero(~np.isnan(self.y.ravel()))
        variances = np.exp(2.0 * thetas[:, 4:6]) + SMALLEST_NOISE**2
        noise = np.sqrt(np.tile(variances, (1, len(self.x)))[:, seen])
        rows, right = G[:, seen] / noise[:, :, None], self.y.ravel()[seen] / noise
        factor = np.linalg.cholesky(rows.transpose(0, 2, 1) @ rows + np.eye(G.shape[2]))
        inverse = np.linalg.inv(factor)
        half = (inverse @ (rows.transpose(0, 2, 1) @ right[:, :, None]))[:, :, 0]
        log_det = np.sum(np.log(np.einsum("cww->cw", factor)), axis=1) + np.sum(np.log(noise), axis=1)
        misfit = np.sum(right**2, axis=1) - np.sum(half**2, axis=1)
        evidence = -0.5 * misfit - log_det - 0.5 * len(seen) * np.log(2.0 * np.pi)
        root = G @ inverse.transpose(0, 2, 1)
        return GivenData(self.log_prior(thetas) + evidence, (root @ half[:, :, None])[:, :, 0], root)

    def misses(self, f: np.ndarray) -> np.ndarray:
        """z (C, n) = g / s at outputs f (C, n T)."""
        C, n = len(f), len(self.x)
        return self.law.residual(f.reshape(C * n, 2), np.tile(self.x_law, (C, 1))).reshape(C, n) / self.law_sd

    def slopes(self, f: np.ndarray) -> np.ndarray:
        """(C, n, T) derivatives of z."""
        C, n = len(f), len(self.x)
        J = self.law.jacobian(f.reshape(C * n, 2), np.tile(self.x_law, (C, 1)))
        return J.reshape(C, n, 2) / self.law_sd[:, None]


def smeared_law(formula: str, X: np.ndarray, Y: np.ndarray) -> SmearedLaw:
    """The target for a fit of these data by Linearized with one RBF.

    s is the sd that the package's evidence of the law uses, at the same points: a share of the sd that the data alone
    leave the law. A smaller s would be another model, in which the law says more about hyperparameters.
    """
    gp = ConstrainedGP(formula, outputs=["a", "b"], inputs=["x"], kernel=RBF())
    problem, law = gp._problem(X, Y, lambda stage: None)
    assert law is not None
    fitted = fit_candidates(problem, problem.priors("identity"))
    prior, theta = fitted.priors[0], fitted.maxima[0].theta
    setup = set_up_law(law, problem.data, problem.scaling, law_spacing(problem, prior, theta))
    engine = LawEngine.calibrated(problem, setup, LawEngine(problem, setup).state(prior, theta))
    assert engine.law_sd is not None
    y = np.full((len(setup.x), 2), np.nan)
    rows = [int(np.flatnonzero(setup.x_law[:, 0] == value)[0]) for value in problem.data.x[:, 0]]
    y[rows] = problem.y
    return SmearedLaw(prior, problem.scaling, setup.x[:, 0], setup.x_law, y, setup.law, engine.law_sd, theta)
