"""Closed forms of the kernels against scikit-learn's, preparation of the user's kernel, hyperpriors."""

from __future__ import annotations

import numpy as np
import pytest
from equivalence.small_problems import differences
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Kernel,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from sumgp.errors import DataError
from sumgp.priors import Growth
from sumgp.priors.kernels import KernelOnPoints, hyper_priors, lengthscale_mask, prepare_kernel

KERNELS: list[Kernel] = [
    RBF(0.7),
    RBF([0.5, 2.0]),
    RBF(0.7, "fixed"),
    Matern(0.4, nu=0.5),
    Matern(0.4, nu=1.5),
    Matern(0.4, nu=2.5),
    Matern([0.4, 0.9], nu=1.5),
    RationalQuadratic(0.6, alpha=2.0, alpha_bounds="fixed"),
    RationalQuadratic(0.6, alpha=0.7),
    ConstantKernel(2.0) * RBF(0.3) + Matern(0.2, nu=1.5),
    Exponentiation(RBF(0.5), 2.0),
    ConstantKernel(2.0, "fixed") * RBF(0.3),
    ExpSineSquared(1.0, 3.0),
    DotProduct(1.0) * RBF(1.0),
    Growth([2.0, 0.3]) * RBF(1.0),
    Growth(1.5),
    Growth([2.0, 0.3], "fixed"),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_matrix_equals_scikit_learns_and_gradient_equals_differences(kernel: Kernel) -> None:
    points = np.random.default_rng(0).uniform(size=(6, 2))
    theta = kernel.theta + 0.2
    K, dK = KernelOnPoints(kernel, points).matrix_and_gradient(theta)
    np.testing.assert_allclose(K, kernel.clone_with_theta(theta)(points), rtol=1e-12, atol=1e-14)
    assert dK.shape == (len(theta), 6, 6)
    numerical = differences(lambda t: kernel.clone_with_theta(t)(points), theta)
    np.testing.assert_allclose(dK, numerical.reshape(dK.shape), atol=1e-6 * max(np.max(np.abs(dK), initial=0.0), 1e-3))


def test_matern_of_any_smoothness_works_with_scikit_learns_own_differences() -> None:
    """Its forward differences (step 1e-10) are good to about 1e-5 only."""
    kernel = Matern(0.4, nu=1.0)
    points = np.random.default_rng(0).uniform(size=(6, 2))
    _, dK = KernelOnPoints(kernel, points).matrix_and_gradient(kernel.theta)
    numerical = differences(lambda t: kernel.clone_with_theta(t)(points), kernel.theta)
    np.testing.assert_allclose(dK, numerical, atol=1e-4 * np.max(np.abs(dK)))


def test_white_noise_compound_kernels_and_other_things_are_refused() -> None:
    half = np.array([1.0])
    with pytest.raises(DataError, match="WhiteKernel; use the argument noise="):
        prepare_kernel(RBF() + WhiteKernel(), half)
    with pytest.raises(DataError, match="list of kernels instead"):
        prepare_kernel(CompoundKernel([RBF(), RBF()]), half)
    with pytest.raises(DataError, match="scikit-learn kernel"):
        prepare_kernel("RBF", half)


def test_default_lengthscales_come_from_the_data_and_given_ones_stay() -> None:
    half = np.array([3.0, 5.0])
    kernel = RBF([1.0, 1.0])
    np.testing.assert_allclose(prepare_kernel(kernel, half).length_scale, [3.0, 5.0])
    np.testing.assert_allclose(kernel.length_scale, 1.0)
    assert prepare_kernel(Matern(), half).length_scale == pytest.approx(np.sqrt((9 + 25) / 2))
    assert prepare_kernel(RBF(2.0), half).length_scale == 2.0
    assert prepare_kernel(RBF(1.0, (0.5, 2.0)), half).length_scale == 1.0
    assert prepare_kernel(RBF(1.0, "fixed"), half).length_scale == 1.0


def test_hyperpriors_follow_the_order_of_theta() -> None:
    kernel = ConstantKernel(2.0) * RBF([1.0, 1.0]) + RationalQuadratic(1.0, alpha=3.0)
    half = np.array([2.0, 8.0])
    centres = np.array([p.centre for p in hyper_priors(kernel, half)])
    names = [h.name for h in kernel.hyperparameters]
    assert [n.split("__")[-1] for n in names] == ["constant_value", "length_scale", "alpha", "length_scale"]
    np.testing.assert_allclose(centres, np.log([2.0, 2.0, 8.0, 3.0, np.sqrt((4 + 64) / 2)]))
    assert lengthscale_mask(kernel).tolist() == [False, True, True, False, True]


def test_growth_is_expected_over_half_the_range_of_each_input() -> None:
    priors = hyper_priors(Growth(np.ones(2)) * RBF(1.0), np.array([0.5, 4.0]))
    assert [(p.centre, p.below, p.above) for p in priors[:2]] == [(0.0, 2.0, 2.0), (0.0, 0.25, 0.25)]
    assert lengthscale_mask(Growth(np.ones(2)) * RBF(1.0)).tolist() == [False, False, True]
    points = np.random.default_rng(0).uniform(size=(4, 2))
    kernel = Growth([2.0, 0.3])
    np.testing.assert_allclose(kernel.diag(points), np.diagonal(kernel(points)))
    np.testing.assert_allclose(np.sqrt(kernel.diag(points + np.array([1.0, 0.0])) / kernel.diag(points)), 2.0)
