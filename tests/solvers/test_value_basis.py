"""A function and its derivatives by weights: the kernel's own covariances, in the span and beside it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, RationalQuadratic

from sumgp.priors import derivative_gram
from sumgp.solvers import MEAN_VARIANCE, ValueBasis

POINTS = np.linspace(0.0, 2.0, 31)[:, None]
BETWEEN = np.linspace(0.03, 1.97, 9)[:, None]
ORDERS = ((0,), (1,), (2,))


@pytest.mark.parametrize("kernel", [RBF(0.4), RationalQuadratic(0.5, alpha=2.0)])
def test_span_and_rest_make_up_the_kernel(kernel: RBF) -> None:
    basis = ValueBasis.over(kernel, 1.7, POINTS)
    for x in (BETWEEN, BETWEEN + 5.0):
        features = basis.at(x, ORDERS)
        rest = basis.left_over(x, ORDERS, features)
        joint = basis.joint_left_over(x, ORDERS, features).reshape(9, 3, 9, 3)
        for i, first in enumerate(ORDERS):
            for j, second in enumerate(ORDERS):
                whole = 1.7 * derivative_gram(kernel, x, first, x, second)
                spanned = features[i][:, :-1] @ features[j][:, :-1].T
                size = np.abs(whole).max()
                np.testing.assert_allclose(np.diagonal(spanned) + rest[:, i, j], np.diagonal(whole), atol=2e-6 * size)
                np.testing.assert_allclose(spanned + joint[:, i, :, j], whole, atol=1e-9 * size)


def test_points_in_the_span_leave_little_over() -> None:
    basis = ValueBasis.over(RBF(0.4), 1.0, POINTS)
    rest = np.einsum("ncc->nc", basis.left_over(BETWEEN, ORDERS, basis.at(BETWEEN, ORDERS)))
    assert np.all(rest < 1e-3 * basis.prior_variances(BETWEEN, ORDERS))
    far = np.einsum("ncc->nc", basis.left_over(BETWEEN + 50.0, ORDERS, basis.at(BETWEEN + 50.0, ORDERS)))
    np.testing.assert_allclose(far, basis.prior_variances(BETWEEN, ORDERS))


def test_features_of_derivatives_are_derivatives_of_features() -> None:
    # Features of the least directions have round-off of 1e-9: differences of fourth order over a step that is not tiny.
    basis, step = ValueBasis.over(RBF(0.4), 1.0, POINTS), 3e-4
    value, slope, _ = basis.at(BETWEEN, ORDERS)
    far_behind, behind, ahead, far_ahead = (basis.at(BETWEEN + k * step, ORDERS)[0] for k in (-2, -1, 1, 2))
    size = np.abs(slope).max()
    differences = (8.0 * (ahead - behind) - (far_ahead - far_behind)) / (12.0 * step)
    np.testing.assert_allclose(slope, differences, atol=1e-6 * size)
    np.testing.assert_allclose(value[:, -1], np.sqrt(MEAN_VARIANCE))
    np.testing.assert_allclose(slope[:, -1], 0.0)
