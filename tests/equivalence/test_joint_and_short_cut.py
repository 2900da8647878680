"""The general joint (Algorithm 2) equals the short cut on the task covariance (Algorithm 3): mean, covariance, evidence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from equivalence.held import fit_held
from equivalence.small_problems import gaussian_given, small_prior, textbook_covariance
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from sumgp import Conditioned, ConstrainedGP, LinearConstraint
from sumgp.priors import FullTask

ROUGH = Matern(length_scale=2.0, length_scale_bounds="fixed", nu=0.5)
ASKED = np.array([-1.0, 0.3, 0.31, 2.0, 4.9, 7.0])


def varying_total(X: np.ndarray) -> np.ndarray:
    return np.sin(X[:, 0]) + 0.2 * X[:, 0]


def data(missing: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.0, 5.0, 12))
    parts = np.column_stack([np.sin(x), np.cos(x)])
    Y = np.column_stack([parts, varying_total(x[:, None]) - parts.sum(axis=1)]) + 0.05 * rng.standard_normal((12, 3))
    Y[rng.uniform(size=Y.shape) < missing] = np.nan
    return x, Y


def fitted(law: LinearConstraint, strategy: Conditioned, kernel: Kernel | list[Kernel], missing: float) -> ConstrainedGP:
    gp = ConstrainedGP(law, kernel=kernel, noise=0.05, strategy=strategy, uncertainty="plug-in", restarts=0)
    x, Y = data(missing)
    return fit_held(gp, x, Y, theta_for(kernel))


def theta_for(kernel: Kernel | list[Kernel]) -> np.ndarray:
    """Amplitudes and correlations away from zero, per term."""
    terms = len(kernel) if isinstance(kernel, list) else 1
    return np.tile([0.2, -0.1, 0.3, 0.4, -0.5, 0.2], terms)


LAWS: dict[str, Callable[[], LinearConstraint]] = {
    "constant total": lambda: LinearConstraint([1.0, 1.0, 1.0], 2.0),
    "varying total": lambda: LinearConstraint([1.0, 1.0, 1.0], varying_total),
    "two rows": lambda: LinearConstraint([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0]], [2.0, 0.1]),
    "an output outside": lambda: LinearConstraint([1.0, 2.0, 0.0], 0.5),
    "soft": lambda: LinearConstraint([1.0, 1.0, 1.0], varying_total, noise=0.1),
}


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", LAWS)
def test_mean_covariance_and_evidence_are_equal(name: str, missing: float) -> None:
    short, joint = (fitted(LAWS[name](), Conditioned(joint=j), ROUGH, missing) for j in (False, True))
    assert short.fit_report_["law"] == "on the task covariance"
    assert joint.fit_report_["law"] == "on the full joint"
    a, b = short.posterior(ASKED), joint.posterior(ASKED)
    np.testing.assert_allclose(b.mean, a.mean, atol=1e-8)
    np.testing.assert_allclose(b.std, a.std, atol=1e-8)
    np.testing.assert_allclose(b.covariance(), a.covariance(), atol=1e-8)
    assert joint.fit_report_.log_evidence == pytest.approx(short.fit_report_.log_evidence, rel=1e-8)


def test_coefficients_given_as_a_function_that_is_constant_change_nothing() -> None:
    def coefficients(X: np.ndarray) -> np.ndarray:
        return np.tile([1.0, 1.0, 1.0], (len(X), 1))

    constant = fitted(LinearConstraint([1.0, 1.0, 1.0], varying_total), Conditioned(), ROUGH, 0.2)
    varying = fitted(LinearConstraint(coefficients, varying_total), Conditioned(), ROUGH, 0.2)
    assert varying.fit_report_["law"] == "on the full joint"
    np.testing.assert_allclose(varying.posterior(ASKED).mean, constant.posterior(ASKED).mean, atol=1e-8)
    np.testing.assert_allclose(varying.posterior(ASKED).covariance(), constant.posterior(ASKED).covariance(), atol=1e-8)


def test_a_smooth_kernel_agrees_to_its_truncation() -> None:
    """Law points of a smooth kernel imply each other down to 1e-11 of the variance, 3e-6 of the sd."""
    smooth = RBF(length_scale=1.5, length_scale_bounds="fixed")
    short, joint = (fitted(LAWS["varying total"](), Conditioned(joint=j), smooth, 0.2) for j in (False, True))
    np.testing.assert_allclose(joint.posterior(ASKED).mean, short.posterior(ASKED).mean, atol=1e-5)
    np.testing.assert_allclose(joint.posterior(ASKED).std, short.posterior(ASKED).std, atol=1e-5)


def test_joint_posterior_equals_conditioning_everything_by_hand() -> None:
    """F(x) and two terms: the full joint over data, law points and one asked point, by one textbook formula."""

    def coefficients(X: np.ndarray) -> np.ndarray:
        return np.column_stack([1.0 + X[:, 0], np.cos(X[:, 0]), np.ones(len(X))])

    kernels = [ROUGH, Matern(length_scale=0.5, length_scale_bounds="fixed", nu=0.5)]
    gp = fitted(LinearConstraint(coefficients, varying_total), Conditioned(), kernels, 0.2)
    component = gp.fitted_.components[0]
    law_x = component.conditioning.points * gp.scaling_.x_scale + gp.scaling_.x_shift
    theta = theta_for(kernels)
    prior = small_prior(3, kernels, tasks=(FullTask(3, np.sqrt(0.5)),) * 2)
    x, Y = data(0.2)
    scale, shift = gp.scaling_.y_scale, gp.scaling_.y_shift
    for asked in ASKED:
        points = np.concatenate([x, law_x[:, 0], [asked]])[:, None]
        covariance = textbook_covariance(prior, np.concatenate([theta, np.zeros(3)]), points, points)
        covariance *= np.outer(np.tile(scale, len(points)), np.tile(scale, len(points)))
        seen = ~np.isnan(np.vstack([Y, np.full((len(law_x) + 1, 3), np.nan)]))
        H = [np.eye(3 * len(points))[seen.ravel()]]
        for i in range(len(x), len(points)):
            row = np.zeros(3 * len(points))
            row[3 * i : 3 * i + 3] = coefficients(points[i : i + 1])[0]
            H.append(row[None])
        value = np.concatenate([Y[~np.isnan(Y)], varying_total(points[len(x) :])])
        noise = np.zeros(len(value))
        noise[: seen.sum()] = 0.05**2 + (1e-6 * np.tile(scale, (len(x), 1))[~np.isnan(Y)]) ** 2
        m, V = gaussian_given(np.tile(shift, len(points)), covariance, np.vstack(H), value, np.diag(noise))
        posterior = gp.posterior([asked])
        np.testing.assert_allclose(posterior.mean[0], m[-3:], atol=1e-7)
        np.testing.assert_allclose(posterior.covariance(), V[-3:, -3:], atol=1e-7)
