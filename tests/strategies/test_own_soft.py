"""Outputs with kernels of their own under laws that hold up to an error: a slow output, a fast one and their sum."""

from __future__ import annotations

import numpy as np
import pytest

import sumgp
from sumgp.strategies import OwnComponent

BIAS, SIZE = 0.5, 0.1
X = np.linspace(0.0, 10.0, 30)
AT = np.linspace(0.13, 9.8, 9)[:, None]
VARYING = "z = (1 + 0.5*cos(x))*a + b +- unknown"


def table(factor: np.ndarray | float) -> np.ndarray:
    a, b = np.sin(0.4 * X), 0.7 * np.abs(np.sin(4.0 * X))
    noise = np.random.default_rng(1000).standard_normal((len(X), 3)) * [0.02, 0.02, SIZE]
    return np.column_stack([a, b, factor * a + b + BIAS]) + noise


def fitted(Y: np.ndarray, *laws: str) -> sumgp.ConstrainedGP:
    return sumgp.ConstrainedGP(list(laws), outputs=list("abzs")[: Y.shape[1]], inputs=["x"], restarts=0).fit(X[:, None], Y)


@pytest.fixture(scope="module")
def soft() -> sumgp.ConstrainedGP:
    return fitted(table(1.0 + 0.5 * np.cos(X)), VARYING)


def own(gp: sumgp.ConstrainedGP) -> OwnComponent:
    return next(c for c in gp.fitted_.components if isinstance(c, OwnComponent))


def test_a_soft_law_leaves_outputs_their_own_kernels(soft: sumgp.ConstrainedGP) -> None:
    assert soft.fit_report_["kinds"]["own"] > 0.5


def test_points_are_conditioned_on_the_law_with_its_error(soft: sumgp.ConstrainedGP) -> None:
    """f ~ N(m, V), and (1 + cos(x) / 2) a + b - z + bias ~ N(0, s^2) is measured as zero."""
    component, scale, shift = own(soft), soft.scaling_.y_scale, soft.scaling_.y_shift
    u = soft.scaling_.inputs(AT)
    moments = [output.moments(u) for output in component.outputs]
    Y = table(1.0 + 0.5 * np.cos(X))
    missed = Y[:, 2] - (1.0 + 0.5 * np.cos(X)) * Y[:, 0] - Y[:, 1]
    n, s2 = len(X), missed.var(ddof=1)
    s2 *= (1.0 + 1.0 / n) * (n - 1.0) / (n - 3.0)
    mean, covariance = component.marginals(u, AT)
    for i, x in enumerate(AT[:, 0]):
        m = shift + scale * np.array([m[i] for m, _ in moments])
        sd = scale * component.widening * np.sqrt([v[i] for _, v in moments])
        V = sd[:, None] * component.correlation * sd
        J = np.array([-(1.0 + 0.5 * np.cos(x)), -1.0, 1.0])
        gain = V @ J / (J @ V @ J + s2)
        assert shift + scale * mean[i, :3] == pytest.approx(m - gain * (J @ m - missed.mean()), abs=1e-6)
        assert scale * covariance[i, :3, :3] * scale[:, None] == pytest.approx(V - np.outer(gain, J @ V), abs=1e-7)


def test_points_together_are_what_they_are_alone(soft: sumgp.ConstrainedGP) -> None:
    component, u = own(soft), soft.scaling_.inputs(AT)
    mean, covariance = component.marginals(u, AT)
    together = component.joint_gaussian(u, AT)
    assert together.mean == pytest.approx(mean, abs=1e-9)
    n, C = mean.shape
    blocks = together.covariance().reshape(n, C, n, C)[range(n), :, range(n)]
    assert blocks == pytest.approx(covariance, abs=1e-6)
    draws = component.sample(u, AT, 2000, np.random.default_rng(0))
    assert np.abs(draws.mean(axis=0) - mean).max() < 0.1 * np.sqrt(np.einsum("ncc->nc", covariance)).max()
    assert component.law is not None
    assert np.abs(component.law.residual(draws[0], AT)).max() < 1e-9


def test_cells_of_closed_rows_meet_all_laws_exact_and_soft() -> None:
    Y = table(1.0)
    Y = np.column_stack([Y, Y[:, 0] + Y[:, 1]])
    Y[:, 2] = (1.0 + 0.5 * np.cos(X)) * Y[:, 0] + Y[:, 1]
    holes = Y.copy()
    holes[5, 0] = holes[9, 1] = holes[20, 2] = np.nan
    gp = fitted(holes, VARYING.replace("unknown", "0.1"), "s = a + b")
    assert own(gp).closed
    filled = gp.complete(X[:, None], holes)
    assert filled["a"][5] == pytest.approx(Y[5, 0], abs=1e-9)
    assert filled["b"][9] == pytest.approx(Y[9, 1], abs=1e-9)
