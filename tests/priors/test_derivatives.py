"""Derivatives of kernels against finite differences in high precision, their gradients, and refusals."""

from itertools import product

import mpmath
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
)

from sumgp.errors import DataError
from sumgp.priors import Growth, KernelDerivatives, derivative_gram, smoothness
from sumgp.priors.kernels import with_theta

X1 = np.array([[0.1, -0.4], [0.9, 0.3], [-0.7, 0.8]])
X2 = np.array([[0.5, 0.2], [-0.3, -0.9], [0.9, 0.3], [0.1, -0.4]])  # two points are among X1

TWO_INPUTS = [
    RBF(0.8),
    RBF([0.8, 1.4]),
    RationalQuadratic(length_scale=0.9, alpha=1.7),
    Matern(length_scale=[0.7, 1.3], nu=1.5),
    Matern(length_scale=0.9, nu=2.5),
    Matern(length_scale=1.2, nu=3.5),
    Matern(length_scale=[0.9, 1.6], nu=4.5),
    DotProduct(sigma_0=0.6),
    ConstantKernel(1.3) * RBF([0.8, 1.4]) + DotProduct(0.4) * Matern(1.1, nu=2.5),
    (DotProduct(0.5) + RBF(1.2)) ** 2,
    Growth([1.4, 0.6]) * RBF(0.8),
    Growth(1.3),
    Growth([1.0, 0.5], "fixed") * Matern(1.1, nu=2.5),
]
ONE_INPUT = [ExpSineSquared(length_scale=0.9, periodicity=1.7) * RBF(1.5), ExpSineSquared(1.2, 2.1)]
IDS = [str(kernel) for kernel in TWO_INPUTS]


STEP = 1e-5


def orders(n_inputs: int, most: int) -> list[tuple[int, ...]]:
    return [o for o in product(range(most + 1), repeat=n_inputs) if sum(o) <= most]


def differenced(kernel, x1, a, x2, b, step=STEP):
    """Central differences of the closed form one order lower, or of the kernel for the first."""
    for side, order in ((0, a), (1, b)):
        for i, n in enumerate(order):
            if n:
                lower = [list(a), list(b)]
                lower[side][i] -= 1
                shift = np.zeros(x1.shape[1])
                shift[i] = step
                points = [[x1 + shift, x2], [x1 - shift, x2]] if side == 0 else [[x1, x2 + shift], [x1, x2 - shift]]
                high, low = (
                    kernel(*p) if not any(map(sum, lower)) else derivative_gram(kernel, p[0], lower[0], p[1], lower[1])
                    for p in points
                )
                return (high - low) / (2.0 * step)
    return kernel(x1, x2)


@pytest.mark.parametrize("kernel", TWO_INPUTS, ids=IDS)
def test_every_order_is_the_difference_of_the_order_below(kernel):
    most = int(min(2, smoothness(kernel)))
    coincident = np.linalg.norm(X1[:, None] - X2[None], axis=2) == 0
    kinked = coincident & ("nu=" in str(kernel))
    for a, b in product(orders(2, most), repeat=2):
        found = derivative_gram(kernel, X1, a, X2, b)
        expected = differenced(kernel, X1, a, X2, b)
        assert np.allclose(found[~kinked], expected[~kinked], rtol=1e-6, atol=1e-8), (a, b)
        # The highest derivatives of a Matern kernel have a kink where points coincide: differences err by the step there.
        assert np.allclose(found[kinked], expected[kinked], rtol=10 * STEP, atol=10 * STEP), (a, b)


@pytest.mark.parametrize("kernel", ONE_INPUT, ids=str)
def test_periodic_kernels_on_one_input(kernel):
    x1, x2 = X1[:, :1], X2[:, 1:]
    for a, b in product(range(3), repeat=2):
        found = derivative_gram(kernel, x1, (a,), x2, (b,))
        assert np.allclose(found, differenced(kernel, x1, (a,), x2, (b,)), rtol=1e-7, atol=1e-7), (a, b)


def test_fourth_order_of_the_rbf_in_high_precision():
    x, z, length = 0.35, -0.6, 0.8
    with mpmath.workdps(40):
        exact = mpmath.diff(lambda u, v: mpmath.exp(-((u - v) ** 2) / (2 * mpmath.mpf(length) ** 2)), (x, z), (2, 2))
    found = derivative_gram(RBF(length), np.array([[x]]), (2,), np.array([[z]]), (2,))
    assert found[0, 0] == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("kernel", [*TWO_INPUTS, *ONE_INPUT], ids=[*IDS, "quasi-periodic", "periodic"])
def test_gradients_by_theta_are_differences(kernel):
    one = kernel in ONE_INPUT
    x1, x2 = (X1[:, :1], X2[:, 1:]) if one else (X1, X2)
    most = int(min(2, smoothness(kernel)))
    theta, step = kernel.theta, 1e-6
    for a, b in product(orders(x1.shape[1], most), repeat=2):
        gradient = KernelDerivatives(kernel, x1, x2).gradient(a, b)
        assert gradient.shape == (len(theta), len(x1), len(x2))
        for p in range(len(theta)):
            shift = step * np.eye(len(theta))[p]
            high, low = (derivative_gram(with_theta(kernel, theta + s), x1, a, x2, b) for s in (shift, -shift))
            assert np.allclose(gradient[p], (high - low) / (2.0 * step), rtol=1e-6, atol=1e-6), (a, b, p)


def test_fixed_hyperparameters_have_no_gradient():
    kernel = RationalQuadratic(0.9, 2.0, alpha_bounds="fixed")
    assert KernelDerivatives(kernel, X1, X2).gradient((1, 0), (0, 1)).shape == (1, 3, 4)


@pytest.mark.parametrize("kernel", [RBF([0.8, 1.4]), Matern(nu=2.5), RationalQuadratic(alpha=2.0)], ids=str)
def test_derivatives_at_many_points_have_a_covariance(kernel):
    """Value, gradient and Hessian at random points: a symmetric matrix without negative eigenvalues."""
    x = np.random.default_rng(0).uniform(-1, 1, (6, 2))
    table = KernelDerivatives(kernel, x, x)
    full = np.block([[table.value(a, b) for b in orders(2, 2)] for a in orders(2, 2)])
    assert np.allclose(full, full.T, atol=1e-13)
    assert np.linalg.eigvalsh(full).min() > -1e-12 * np.abs(full).max()


def test_paired_points_are_the_diagonal():
    kernel = ConstantKernel(1.3) * RBF([0.8, 1.4])
    found = KernelDerivatives.paired(kernel, X1, X2[:3]).value((1, 0), (0, 2))
    assert np.allclose(found, np.diagonal(derivative_gram(kernel, X1, (1, 0), X2[:3], (0, 2))), rtol=1e-14)


@pytest.mark.parametrize(
    ("kernel", "order", "said"),
    [
        (Matern(nu=0.5), 1, "first derivatives"),
        (Matern(nu=1.5), 2, "second derivatives"),
        (RBF() * Matern(nu=0.5), 1, "Matern"),
        (Matern(nu=2.5), 3, "order 3"),
        (RBF() ** 0.5, 1, "first derivatives"),
    ],
    ids=str,
)
def test_rough_kernels_are_refused_and_smooth_ones_named(kernel, order, said):
    with pytest.raises(DataError, match=said) as caught:
        derivative_gram(kernel, X1, (order, 0), X2, (0, 0))
    assert "RationalQuadratic" in str(caught.value)


def test_periodic_kernels_on_several_inputs_are_refused():
    with pytest.raises(DataError, match="one input"):
        derivative_gram(ExpSineSquared(), X1, (1, 0), X2, (0, 0))
