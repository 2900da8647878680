"""Cases at the edge of what floating-point numbers can hold; docs/numerics.md tells the same in words."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from sumgp import ConstrainedGP, ConstraintError, FunctionConstraint, LinearConstraint, SumGPWarning

x = np.linspace(0.0, 1.0, 40)
SHARES = np.column_stack([np.sin(3.0 * x), 1.0 - np.sin(3.0 * x)])
BUDGET = LinearConstraint([1.0, 1.0], 1.0)
EPS = np.finfo(float).eps


def fit(law: Any, X: np.ndarray, Y: np.ndarray, restarts: int = 0, **choices: Any) -> ConstrainedGP:
    return ConstrainedGP(law, uncertainty="plug-in", restarts=restarts, **choices).fit(X, Y)


def noise_of(gp: ConstrainedGP) -> np.ndarray:
    """(T,) noise standard deviations in the user's units."""
    return np.sqrt(gp.fitted_.components[0].noise) * gp.scaling_.y_scale


def normal(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape)


def check(gp: ConstrainedGP, at: np.ndarray, tolerance: float = 1e-12) -> Any:
    """Everything finite and on the law, to ``tolerance`` of its largest term."""
    posterior = gp.posterior(at)
    draws = posterior.sample(3)
    for values in (posterior.mean, posterior.std, draws):
        assert np.all(np.isfinite(values))
    if gp.law_ is not None:
        for values in (posterior.mean, *draws):
            size = np.maximum(gp.law_.magnitude(values, posterior.x), 1.0)
            assert np.max(np.abs(gp.law_.residual(values, posterior.x)) / size) < tolerance
    return posterior


@pytest.mark.parametrize("law", [BUDGET, None])
def test_nearly_singular_kernel(law: Any) -> None:
    """Forty points within a fifth of a lengthscale: the kernel matrix has a condition number above 1 / eps."""
    assert np.linalg.cond(RBF(5.0)(x[:, None])) > 1.0 / EPS
    truth = np.column_stack([x, 1.0 - x])
    gp = fit(law, x, truth + 1e-3 * normal(truth.shape), kernel=RBF(5.0, "fixed"))
    posterior = check(gp, x)
    np.testing.assert_allclose(posterior.mean, truth, atol=2e-3)
    assert np.all(noise_of(gp) < 2e-3)


@pytest.mark.parametrize("noise", ["per-output", 0.0])
def test_data_without_noise(noise: Any) -> None:
    """Exact data are interpolated; a noise of zero stands for the smallest that keeps the matrices regular."""
    # As the noise goes to zero the evidence grows without end: where a search from one start gives up hangs on round-off.
    gp = fit(BUDGET, x, SHARES, restarts=1, noise=noise)
    posterior = check(gp, x)
    np.testing.assert_allclose(posterior.mean, SHARES, atol=1e-5)
    assert np.all(noise_of(gp) < 1e-5)
    between = 0.5 * (x[:-1] + x[1:])
    np.testing.assert_allclose(gp.predict(between)[:, 0], np.sin(3.0 * between), atol=1e-5)


def test_noise_far_above_the_signal() -> None:
    """Noise of 1e4 on signals of size one is found as such; means stay within what an average of forty can tell."""
    gp = fit(BUDGET, x, SHARES + 1e4 * normal(SHARES.shape))
    posterior = check(gp, x)
    np.testing.assert_allclose(noise_of(gp), 1e4, rtol=0.35)
    assert np.max(np.abs(posterior.mean)) < 4.0 * 1e4 / np.sqrt(len(x))
    assert np.all(posterior.std < 0.5e4)


def test_exact_duplicates_are_one_row_with_less_noise() -> None:
    """Six equal copies of each row against one copy of known noise smaller by the root of six."""
    few = x[::8]
    y = SHARES[::8] + 0.02 * normal((len(few), 2))
    kernel = RBF(0.4, "fixed")
    many = fit(None, np.repeat(few, 6), np.repeat(y, 6, axis=0), kernel=kernel, noise=0.06)
    one = fit(None, few, y, kernel=kernel, noise=0.06 / np.sqrt(6.0))
    theta = one.fitted_.components[0].theta
    from equivalence.held import fit_held

    same = fit_held(many, np.repeat(few, 6), np.repeat(y, 6, axis=0), theta)
    np.testing.assert_allclose(same.predict(x), one.predict(x), atol=1e-9)
    check(fit(BUDGET, np.repeat(few, 6), np.repeat(SHARES[::8], 6, axis=0)), x)


def test_all_rows_at_one_input() -> None:
    gp = fit(BUDGET, np.full(20, 3.0), np.array([0.3, 0.7]) + 0.01 * normal((20, 2)))
    posterior = check(gp, np.array([3.0, 3.0]))
    np.testing.assert_allclose(posterior.mean[0], [0.3, 0.7], atol=0.01)


@pytest.mark.parametrize("law", [None, LinearConstraint([3.0, -1.0], 0.0)])
def test_outputs_that_are_multiples_of_each_other(law: Any) -> None:
    z = np.sin(3.0 * x) + 0.01 * normal(x.shape)
    posterior = check(fit(law, x, np.column_stack([z, 3.0 * z])), x)
    share = 1e-12 if law is not None else 0.1 * posterior.std.min()
    np.testing.assert_allclose(posterior.mean[:, 1], 3.0 * posterior.mean[:, 0], atol=share)


def test_a_law_whose_gradient_vanishes_where_it_holds() -> None:
    """z**2 = 0 says z = 0: met to 1e-8 in z, i.e. to the round-off of z**2."""
    gp = fit("z**2 = 0", x, 0.01 * normal((len(x), 1)), outputs=["z"])
    assert np.max(np.abs(check(gp, x[::7], 1e-16).mean)) < 1e-8


def test_a_law_met_at_one_point_by_squares() -> None:
    """The mean reaches the point; the band does not close, since the linearised law leaves a direction free."""
    gp = fit("(z - 1)**2 + (v - 2)**2 = 0", x[::3], [1.0, 2.0] + 0.01 * normal((14, 2)), outputs=["z", "v"])
    posterior = check(gp, x[::7])
    np.testing.assert_allclose(posterior.mean, np.tile([1.0, 2.0], (len(x[::7]), 1)), atol=1e-6)
    assert np.all(posterior.std < 0.02)


def test_a_law_met_at_one_point_by_linear_rows() -> None:
    """As many rows as outputs: nothing is left to learn, the answer is exact and certain."""
    gp = fit(["z + v = 3", "z - v = -1"], x, [1.0, 2.0] + 0.01 * normal((len(x), 2)), outputs=["z", "v"])
    posterior = check(gp, x[::7])
    np.testing.assert_allclose(posterior.mean, np.tile([1.0, 2.0], (len(x[::7]), 1)), rtol=1e-14)
    assert np.all(posterior.std < 1e-12)


def test_one_output_that_a_linear_law_fixes() -> None:
    """No weight is left to condition on: an empty system of equations."""
    gp = ConstrainedGP(LinearConstraint([2.0], 1.0), restarts=0).fit(x, 0.5 + 0.01 * normal((len(x), 1)))
    posterior = check(gp, x[::7])
    np.testing.assert_allclose(posterior.mean, 0.5, rtol=1e-12)
    assert np.all(posterior.std < 1e-7)


def test_a_formula_without_solution_is_refused() -> None:
    with pytest.raises(ConstraintError, match=r"no solution.*; correct a sign or total"):
        fit("z**2 + v**2 = -1", x, normal((len(x), 2)), outputs=["z", "v"])


def test_a_function_without_solution_is_warned_of() -> None:
    """A law given as code cannot be looked into: the data's residuals tell, and so does the law's own residual."""

    def impossible(f: np.ndarray, at: np.ndarray) -> np.ndarray:
        return f[:, 0] ** 2 + f[:, 1] ** 2 + 1.0

    with pytest.warns(SumGPWarning, match="contradict the law"):
        gp = fit(FunctionConstraint(impossible), x[::3], [1.0, 2.0] + 0.01 * normal((14, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SumGPWarning)
        posterior = gp.posterior(x[::7])
        assert np.all(np.isfinite(posterior.mean))
        assert np.min(np.abs(posterior.residual())) >= 1.0
