"""The multitask prior's parameter vector and its weak priors."""

from __future__ import annotations

import numpy as np
from equivalence.small_problems import assert_gradient, small_prior, some_theta
from scipy.integrate import quad
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from sumgp.priors import FullTask, LowRankTask, TaskLaw


def test_log_prior_gradient_on_both_sides_of_the_centre() -> None:
    prior = small_prior(
        kernels=(RBF(0.5), ConstantKernel(1.0) * Matern(0.3, nu=1.5)), tasks=(FullTask(3), LowRankTask(3, 1))
    )
    for sign in (-1.0, 1.0):
        assert_gradient(prior.log_prior, some_theta(prior) + sign)


def test_the_lower_half_of_each_prior_has_probability_one_half() -> None:
    """The wide upper side of lengthscales is not counted as volume, the heavy lower tail is."""
    prior = small_prior(T=1)
    centre = np.array([np.log(0.5), 0.0, np.log(0.05)])
    parts = []
    for i in range(3):

        def density(t: float, i: int = i) -> float:
            theta = centre.copy()
            theta[i] += t
            return float(np.exp(prior.log_prior(theta)[0] - prior.log_prior(centre)[0]))

        parts.append(quad(density, -40, 0, points=[-1.5], limit=200)[0])
    assert np.isclose(np.exp(prior.log_prior(centre)[0]) * np.prod(parts), 0.5**3, rtol=1e-8)
    assert prior.log_prior(centre + 3.0)[0] > prior.log_prior(centre - 3.0)[0]


def test_unpack_puts_each_parameter_where_it_belongs() -> None:
    prior = small_prior(T=2, kernels=(RBF(0.5), Matern(0.3, nu=1.5)))
    theta = some_theta(prior)
    hyper = prior.unpack(theta)
    assert hyper.kernels[0].length_scale == np.exp(theta[0])
    assert hyper.kernels[1].length_scale == np.exp(theta[4])
    np.testing.assert_array_equal(hyper.Sigmas[0], FullTask(2).covariance(theta[1:4]))
    np.testing.assert_array_equal(hyper.Sigmas[1], FullTask(2).covariance(theta[5:8]))
    np.testing.assert_array_equal(hyper.noise, prior.noise.variances(theta[8:10]))
    assert prior.lengthscales().tolist() == [i in (0, 4) for i in range(10)]
    assert len(prior.bounds()) == len(prior.start()) == prior.n_parameters == 10


def test_start_lies_within_the_bounds() -> None:
    prior = small_prior(kernels=(RBF(0.5),), law=TaskLaw(np.ones((1, 3)), np.zeros(1), np.zeros((4, 1))))
    low, high = np.array(prior.bounds()).T
    assert np.all((prior.start() > low) & (prior.start() < high))
