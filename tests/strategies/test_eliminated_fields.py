"""Vector fields that obey their laws by construction: draws, rough fields, gradient and curl parts that nobody measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

import sumgp
from sumgp.priors import KernelDerivatives

STEP = 1e-2  # rounding of joint draws, about 1e-9, is divided by it; the error of these differences is below 1e-7
NO_CURL = "d(u, y) - d(v, x) = 0"


def drawn_gradient(x: np.ndarray, seed: int) -> np.ndarray:
    """(n, 2) gradient, at x (n, 2), of a function drawn from a Matern 5/2 process of lengthscale .7."""
    kernel, orders = KernelDerivatives(Matern(0.7, nu=2.5), x, x), [(1, 0), (0, 1)]
    covariance = np.block([[kernel.value(a, b) for b in orders] for a in orders])
    root = np.linalg.cholesky(covariance + 1e-10 * np.eye(2 * len(x)))
    return (root @ np.random.default_rng(seed).standard_normal(2 * len(x))).reshape(2, -1).T


def test_every_draw_of_a_field_has_no_divergence() -> None:
    generator = np.random.default_rng(0)
    x = generator.uniform(-1.0, 1.0, (25, 2))
    y = np.column_stack([np.sin(2 * x[:, 1]), np.cos(2 * x[:, 0])]) + 0.1 * generator.standard_normal((25, 2))
    gp = sumgp.ConstrainedGP("d(u, x) + d(v, y) = 0", outputs=["u", "v"], inputs=["x", "y"], kernel=RBF([1.0, 1.0]))
    gp.fit(x, y)
    steps = STEP * np.array([1.0, -1.0, 2.0, -2.0])
    across = np.concatenate([[(s, 0.0) for s in steps], [(0.0, s) for s in steps]])
    places = np.array([[0.0, 0.0], [0.7, -0.4], [1.2, 0.3]])
    draws = gp.posterior((places[:, None] + across).reshape(-1, 2)).sample(3, random_state=1).reshape(3, 3, 2, 4, 2)

    def slope(z: np.ndarray) -> np.ndarray:
        return (8.0 * (z[..., 0] - z[..., 1]) - (z[..., 2] - z[..., 3])) / (12.0 * STEP)

    divergence = slope(draws[:, :, 0, :, 0]) + slope(draws[:, :, 1, :, 1])
    assert np.abs(divergence).max() < 1e-6  # of a field of size one
    assert np.abs(slope(draws[:, :, 0, :, 0])).max() > 0.1
    assert np.abs(gp.posterior(places).residual()).max() < 1e-10


def test_a_part_of_a_field_that_breaks_the_law_is_told() -> None:
    """A part of a fifth of the field's size has a curl: too little for each output alone to be better than the law."""
    x = np.random.default_rng(1).uniform(-1.0, 1.0, (100, 2))
    g = drawn_gradient(x, 2)
    noise = 0.05 * np.random.default_rng(3).standard_normal(g.shape)
    settings = {"outputs": ["u", "v"], "inputs": ["x", "y"], "uncertainty": "plug-in", "kernel": Matern(0.7, nu=2.5)}
    curled = 0.2 * drawn_gradient(x, 4)[:, ::-1] * [1.0, -1.0]
    sound = sumgp.ConstrainedGP(NO_CURL, **settings).fit(x, g + noise)
    assert sound.fit_report_.status == "converged"
    with pytest.warns(sumgp.SumGPWarning, match="contradict the law with derivatives: about 30% of the outputs' spread"):
        wrong = sumgp.ConstrainedGP(NO_CURL, **settings).fit(x, g + curled + noise)
    assert "contradict" in wrong.fit_report_.status


def test_a_field_over_a_long_box_has_one_lengthscale_in_all_directions() -> None:
    """Isotropic means so in the user's units, where the inputs' ranges do not tell that they differ."""
    x = np.random.default_rng(0).uniform(0.0, 1.0, (40, 2)) * [6.0, 1.5]
    settings = {"outputs": ["u", "v"], "inputs": ["x", "y"], "uncertainty": "plug-in"}
    gp = sumgp.ConstrainedGP(NO_CURL, **settings).fit(x, drawn_gradient(x, 5))
    assert np.ptp(gp.scaling_.x_scale) == 0.0
    assert gp.fit_report_["kernel"] == "isotropic Matern"
    far = sumgp.ConstrainedGP(NO_CURL, **settings).fit(x * [1.0, 1000.0], drawn_gradient(x, 5) * [1000.0, 1.0])
    assert np.ptp(far.scaling_.x_scale) > 0.0


def test_a_field_without_mean_flow_is_at_rest_far_from_the_data() -> None:
    """The mean of few rows is no flow; one that is large beside the field's variation is kept."""
    x = np.random.default_rng(0).uniform(-1.0, 1.0, (12, 2))
    g = drawn_gradient(x, 7)
    g = g + 0.3 * g.std(axis=0) - g.mean(axis=0)
    settings = {"outputs": ["u", "v"], "inputs": ["x", "y"], "uncertainty": "plug-in", "kernel": Matern(0.7, nu=2.5)}
    far = np.array([[60.0, -60.0]])
    at_rest, flowing = (sumgp.ConstrainedGP(NO_CURL, **settings).fit(x, g + flow).predict(far)[0] for flow in (0.0, 10.0))
    assert np.all(np.abs(at_rest) < 0.9 * g.mean(axis=0))  # an average over the rows that weighs them evenly is above it
    assert np.all(flowing - 10.0 > g.mean(axis=0))


@pytest.mark.parametrize("seed", [1000, 1001])
def test_rough_fields_are_told_from_smooth_ones(seed: int) -> None:
    """The gradient of a Matern 5/2 function: its evidence is above that of smooth kernels, and so is accuracy."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1.0, 1.0, (160, 2))
    f = drawn_gradient(x, seed)
    y = f + 0.05 * generator.standard_normal(f.shape)
    settings = {"outputs": ["u", "v"], "inputs": ["x", "y"], "uncertainty": "plug-in"}
    fit, new = slice(0, 80), slice(80, None)
    gp = sumgp.ConstrainedGP(NO_CURL, **settings).fit(x[fit], y[fit])
    assert "Matern" in gp.fit_report_["kernel"]
    smooth = sumgp.ConstrainedGP(NO_CURL, kernel=RBF([1.0, 1.0]), **settings).fit(x[fit], y[fit])
    error, other = (np.sqrt(np.mean((model.predict(x[new]) - f[new]) ** 2)) for model in (gp, smooth))
    assert error < other


def test_names_of_candidates_tell_them_apart() -> None:
    x = np.random.default_rng(0).uniform(-1.0, 1.0, (20, 2))
    gp = sumgp.ConstrainedGP(NO_CURL, outputs=["u", "v"], inputs=["x", "y"])
    gp.fit(x, np.sin(2.0 * x) + 0.1 * np.random.default_rng(1).standard_normal((20, 2)))
    weights = gp.fit_report_["candidate_weights"]
    assert sum(weights.values()) == pytest.approx(1.0)
    assert set(weights) <= {"RBF", "isotropic RBF", "Matern", "isotropic Matern", "isotropic growing RBF"}
    assert len(gp.fit_report_["candidates"]) == 5


def decaying(x: np.ndarray) -> np.ndarray:
    """(n, 2) gradient of exp(-3 y) (cos(3 x) + sin(4 x - 1)): sources below, as a magnet under the floor has them."""
    a, size = x[:, 0], np.exp(-3.0 * x[:, 1])
    along = size * (-3.0 * np.sin(3.0 * a) + 4.0 * np.cos(4.0 * a - 1.0))
    return np.column_stack([along, -3.0 * size * (np.cos(3.0 * a) + np.sin(4.0 * a - 1.0))])


def test_a_field_that_decays_away_from_its_sources(tmp_path: Path) -> None:
    """A kernel of one size everywhere is too smooth near the sources and takes noise for detail far from them."""
    generator = np.random.default_rng(1000)
    x, new = generator.uniform(-1.0, 1.0, (60, 2)), generator.uniform(-1.0, 1.0, (200, 2))
    y = decaying(x) + 0.3 * generator.standard_normal((60, 2))
    settings = {"outputs": ["u", "v"], "inputs": ["x", "y"], "uncertainty": "plug-in"}
    gp = sumgp.ConstrainedGP(NO_CURL, **settings).fit(x, y)
    assert gp.fit_report_["kernel"] == "isotropic growing RBF"
    even = sumgp.ConstrainedGP(NO_CURL, kernel=RBF(1.0), **settings).fit(x, y)
    error, other = (np.sqrt(np.mean((model.predict(new) - decaying(new)) ** 2)) for model in (gp, even))
    assert error < 0.8 * other
    posterior = gp.posterior(new)
    curl = posterior.derivative("u", "y").mean - posterior.derivative("v", "x").mean
    assert np.abs(curl).max() < 1e-9 * np.abs(posterior.derivative("u", "y").mean).max()
    gp.save(tmp_path / "field.sumgp")
    np.testing.assert_array_equal(sumgp.load(tmp_path / "field.sumgp").predict(new), gp.predict(new))
    far = gp.predict(np.array([[0.0, -60.0], [60.0, 60.0], [0.0, 60.0]]))
    assert np.abs(far).max() < np.abs(y).max()  # its means come to rest on the sources' side too


def test_a_flow_as_gradient_and_curl_of_functions_that_nobody_measured() -> None:
    """u and v of a flow with divergence and vorticity, each of its own lengthscale: better than without."""
    generator = np.random.default_rng(3)
    x = generator.uniform(-1.0, 1.0, (140, 2))
    a, b = x.T
    f = np.column_stack([np.cos(a) + np.cos(4 * b), 0.2 * b + np.sin(4 * a)])
    y = f + 0.1 * generator.standard_normal(f.shape)
    fit, new = slice(0, 40), slice(40, None)
    laws = ["u = d(p, x) + d(s, y)", "v = d(p, y) - d(s, x)"]
    gp = sumgp.ConstrainedGP(laws, outputs=["u", "v", "p", "s"], inputs=["x", "y"], uncertainty="plug-in")
    gp.fit(x[fit], np.column_stack([y[fit], np.full((40, 2), np.nan)]))
    posterior = gp.posterior(x[new])
    without = sumgp.ConstrainedGP(None, outputs=["u", "v"], inputs=["x", "y"], uncertainty="plug-in").fit(x[fit], y[fit])
    error, other = (np.sqrt(np.mean((p - f[new]) ** 2)) for p in (posterior.mean[:, :2], without.predict(x[new])))
    assert error < other
    assert np.abs(posterior.residual()).max() < 1e-10
    divergence = posterior.derivative("u", "x").mean + posterior.derivative("v", "y").mean
    assert np.sqrt(np.mean((divergence - (0.2 - np.sin(x[new, 0]))) ** 2)) < 0.6
