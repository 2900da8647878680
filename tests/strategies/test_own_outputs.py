"""Independent outputs beside shared covariances: left-out values, correlations, weights, predictions on the law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF, Matern

import sumgp
from sumgp.laws import make_unit_free
from sumgp.prediction.row_cells import Rows, given_cells
from sumgp.strategies import Fitted
from sumgp.strategies.left_out import LeftOut, TrainingRows
from sumgp.strategies.output_posterior import GridPoint, OutputPosterior, output_posterior
from sumgp.strategies.own_outputs import Cells, OwnComponent, own_priors
from sumgp.strategies.stacking import (
    JOINTLY,
    ROWS_BEFORE,
    blocks_of,
    independent_outputs,
    moved_left_out,
    own_left_out,
    shrunk_correlation,
    simplex_weights,
)
from sumgp.strategies.weight_component import Component, plain_component

POINTS = [GridPoint(RBF(0.2), 1.3, 0.2, 0.6), GridPoint(RBF(0.4), 0.8, 0.3, 0.4)]


def one_output(count: int = 12) -> tuple[np.ndarray, np.ndarray, OutputPosterior]:
    x = np.linspace(0.0, 1.0, count)[:, None]
    y = np.sin(6.0 * x[:, 0]) + 0.1 * np.cos(40.0 * x[:, 0])
    return x, y, output_posterior(x, y, POINTS)


@pytest.mark.parametrize("block", [np.array([3]), np.array([4, 5, 6, 7])])
def test_a_block_left_out_is_what_the_other_rows_predict(block: np.ndarray) -> None:
    x, y, posterior = one_output()
    residual, variance = posterior.left_out([block])
    others = np.setdiff1d(np.arange(len(y)), block)
    parts = [output_posterior(x[others], y[others], [point._replace(weight=1.0)]) for point in POINTS]
    means = [part.moments(x[block])[0] for part in parts]
    spreads = [part.covariance(x[block]) + part.noise * np.eye(len(block)) for part in parts]
    # Kernels that have not foreseen the block would weigh more without it.
    density = [multivariate_normal(m, S).pdf(y[block]) for m, S in zip(means, spreads, strict=True)]
    weights = np.array([p.weight for p in POINTS]) / density
    weights /= weights.sum()
    assert abs(weights[0] - POINTS[0].weight) > 0.01
    mean = weights @ np.array(means)
    assert residual[block] == pytest.approx(y[block] - mean, abs=1e-6)
    whole = weights @ (np.array([np.diagonal(S) for S in spreads]) + (np.array(means) - mean) ** 2)
    assert variance[block] == pytest.approx(whole, rel=1e-5)


def test_rows_left_out_one_by_one_are_blocks_of_one() -> None:
    _, y, posterior = one_output()
    alone = posterior.left_out(None)
    blocks = posterior.left_out([np.array([i]) for i in range(len(y))])
    assert alone[0] == pytest.approx(blocks[0])
    assert alone[1] == pytest.approx(blocks[1])


def test_correlations_of_residuals_are_found_and_shrunk() -> None:
    generator = np.random.default_rng(0)
    z = generator.standard_normal((400, 3))
    z[:, 1] = 0.8 * z[:, 0] + 0.6 * z[:, 1]
    many = shrunk_correlation(LeftOut(z, np.ones_like(z)))
    assert many[0, 1] == pytest.approx(0.8, abs=0.08)
    assert abs(many[0, 2]) < 0.1
    few = shrunk_correlation(LeftOut(generator.standard_normal((6, 3)), np.ones((6, 3))))
    assert np.max(np.abs(few - np.eye(3))) < 0.6
    assert np.all(np.linalg.eigvalsh(few) > 0)


def test_weights_of_kinds_maximise_the_density_of_the_mixture() -> None:
    generator = np.random.default_rng(1)
    logs = np.stack([generator.normal(0.0, 1.0, (2, 25)), generator.normal(0.5, 1.0, (2, 25))])
    found = simplex_weights(logs)
    tried = np.linspace(0.001, 0.999, 999)
    # What rows left out one by one say counts twice as much as what blocks say.
    each = [np.logaddexp(np.log(w) + logs[0], np.log(1.0 - w) + logs[1]).sum(axis=1) @ [2 / 3, 1 / 3] for w in tried]
    total = each + ROWS_BEFORE[0] * np.log(tried)
    assert found[0] == pytest.approx(tried[int(np.argmax(total))], abs=0.01)
    total = each + 1.0 * np.log(tried) + 2.0 * np.log(1.0 - tried)
    assert simplex_weights(logs, (1.0, 2.0))[0] == pytest.approx(tried[int(np.argmax(total))], abs=0.01)
    # Ways of leaving the same rows out are not more rows.
    once = logs[:, :1]
    assert simplex_weights(np.repeat(once, 3, axis=1)) == pytest.approx(simplex_weights(once), abs=1e-6)


def test_few_rows_do_not_decide_on_a_kind() -> None:
    """Ten rows that are a little better under the second kind leave most of the weight with the first."""
    logs = np.stack([np.zeros((2, 10)), np.full((2, 10), 0.3)])
    assert simplex_weights(logs)[0] > 0.6
    assert simplex_weights(np.tile(logs, (1, 1, 40)))[0] < 0.1


def test_a_row_is_filled_from_its_other_cells() -> None:
    """Two rough outputs with nearly the same residuals, one cell not measured: against the Gaussian written out."""
    generator = np.random.default_rng(5)
    x = np.linspace(0.0, 1.0, 30)[:, None]
    common = 0.5 * generator.standard_normal(30)
    y = np.stack([np.sin(4.0 * x[:, 0]) + common, np.cos(3.0 * x[:, 0]) + common], axis=1)
    y[12, 1] = np.nan
    points = [GridPoint(RBF(0.5), 1.0, 0.5, 1.0)]
    seen = ~np.isnan(y[:, 1])
    outputs = (output_posterior(x, y[:, 0], points), output_posterior(x[seen], y[seen, 1], points))
    plain = independent_outputs(outputs, 1.0)
    component = replace(plain, correlation=shrunk_correlation(own_left_out(plain, y, None)))
    assert component.correlation[0, 1] > 0.9
    used = np.array([[True, False]])
    row = component.without_cells(x[12:13], x[12:13], Cells(y[12:13], used), closed=False)
    others = np.delete(np.arange(30), 12)
    alone = output_posterior(x[others], y[others, 0], points).moments(x[12:13])
    assert row.mean[0, 0] == pytest.approx(alone[0][0], abs=1e-7)
    total = row.covariance[0] + np.diag(component.noise)
    expected = component.correlation[0, 1] * np.sqrt((alone[1][0] + component.noise[0]) * total[1, 1])
    assert total[0, 1] == pytest.approx(expected, rel=1e-7)
    filled = given_cells(Fitted((component,), np.ones(1)), Rows(x[12:13], x[12:13], y[12:13], used)).y[0, 1]
    assert filled == pytest.approx(row.mean[0, 1] + total[0, 1] / total[0, 0] * (y[12, 0] - row.mean[0, 0]), abs=1e-9)
    assert abs(filled - (np.cos(3.0 * x[12, 0]) + common[12])) < 0.5 * abs(common[12])


def test_blocks_hold_each_row_once() -> None:
    x = np.random.default_rng(2).uniform(size=(23, 2))
    assert sorted(np.concatenate(blocks_of(x)).tolist()) == list(range(23))


def unlike(seed: int, law: bool, count: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Slow outputs and one that varies ten times as fast; under the law the last is what is left of ten."""

    def truth(x: np.ndarray) -> np.ndarray:
        slow = np.stack([np.sin(2.0 * x + seed), np.cos(1.5 * x), np.exp(-x)], axis=1)
        fast = 0.5 * np.sin(17.0 * x + seed)
        return np.column_stack([slow[:, :2], fast, 10.0 - slow[:, :2].sum(axis=1) - fast if law else slow[:, 2]])

    x, test = np.linspace(0.0, 3.0, count), np.linspace(0.04, 2.96, 61)
    noise = 0.05 * np.random.default_rng(seed).standard_normal((count, 4))
    return x, truth(x) + noise, test, truth(test)


def fitted(law: str | None, seed: int = 0) -> tuple[sumgp.ConstrainedGP, np.ndarray, np.ndarray]:
    x, y, test, truth = unlike(seed, law is not None)
    gp = sumgp.ConstrainedGP(law, outputs=["a", "b", "c", "d"], inputs=["t"])
    return gp.fit(x, y), test, truth


def test_a_slow_output_is_not_made_to_vary_as_fast_as_another() -> None:
    gp, test, truth = fitted(None, seed=2)
    assert gp.fit_report_["kinds"]["own"] > 0.5
    whole = gp.fitted_
    shared = [k for k, c in enumerate(whole.components) if isinstance(c, Component)]
    weights = whole.weights[shared] / whole.weights[shared].sum()
    error = np.sqrt(np.mean((gp.predict(test) - truth) ** 2))
    gp.fitted_ = replace(whole, components=tuple(whole.components[k] for k in shared), weights=weights)
    assert error < 0.9 * np.sqrt(np.mean((gp.predict(test) - truth) ** 2))


def test_predictions_of_both_kinds_obey_the_law() -> None:
    gp, test, truth = fitted("a + b + c + d = 10")
    posterior = gp.posterior(test)
    assert any(isinstance(c, OwnComponent) for c in gp.fitted_.components)
    assert any(isinstance(c, Component) for c in gp.fitted_.components)
    assert np.max(np.abs(posterior.residual())) < 1e-9
    assert np.max(np.abs(posterior.sample(7).sum(axis=2) - 10.0)) < 1e-8
    lower, upper = posterior.interval(0.95)
    assert np.mean((lower <= truth) & (truth <= upper)) > 0.85
    together = gp.posterior(test[:6]).covariance()
    ones = np.kron(np.eye(6), np.ones((4, 1)))
    assert np.max(np.abs(ones.T @ together @ ones)) < 1e-8 * np.max(together)
    slopes = [gp.posterior(test[:6]).derivative(name, "t").std for name in "abcd"]
    assert np.all(np.isfinite(slopes))
    alone = gp.posterior(test[7:8])
    assert alone.mean == pytest.approx(posterior.mean[7:8], abs=1e-9)
    assert alone.std == pytest.approx(posterior.std[7:8], rel=1e-7)


def curved(seed: int) -> tuple[sumgp.ConstrainedGP, np.ndarray, np.ndarray]:
    """Two slow outputs, a fast one and the rest of ten under a curved law."""

    def truth(x: np.ndarray) -> np.ndarray:
        a, b, c = np.sin(2.0 * x + seed), np.cos(1.5 * x), 0.5 * np.sin(17.0 * x + seed)
        return np.stack([a, b, c, 10.0 - a**2 - b - c], axis=1)

    x, test = np.linspace(0.0, 3.0, 30), np.linspace(0.04, 2.96, 61)
    y = truth(x) + 0.05 * np.random.default_rng(seed).standard_normal((30, 4))
    gp = sumgp.ConstrainedGP("a**2 + b + c + d = 10", outputs=["a", "b", "c", "d"], inputs=["t"])
    return gp.fit(x, y), test, truth(test)


def test_independent_outputs_may_have_the_law_at_all_points_together() -> None:
    gp, test, truth = curved(0)
    whole, posterior = gp.fitted_, gp.posterior(test)
    assert gp.fit_report_["kinds"][JOINTLY] > 0.3
    assert np.max(np.abs(posterior.residual())) < 1e-8
    error = np.sqrt(np.mean((posterior.mean - truth) ** 2))
    added = [isinstance(c, Component) and _has_kernels_of_its_own(c) for c in whole.components]
    assert whole.weights[added].sum() == pytest.approx(gp.fit_report_["kinds"][JOINTLY], rel=0.05)
    kept = [k for k, new in enumerate(added) if not new]
    weights = whole.weights[kept] / whole.weights[kept].sum()
    gp.fitted_ = replace(whole, components=tuple(whole.components[k] for k in kept), weights=weights)
    assert error < 0.97 * np.sqrt(np.mean((gp.predict(test) - truth) ** 2))


def _has_kernels_of_its_own(component: Component) -> bool:
    return sum(term.kernel is not None for term in component.posterior.features.terms) == 4


def test_priors_of_independent_outputs_have_their_posteriors() -> None:
    """The same kernels, amplitudes and noise in weight space and output by output."""
    x = np.linspace(0.0, 1.0, 12)[:, None]
    y = np.stack([np.sin(6.0 * x[:, 0]), np.cos(4.0 * x[:, 0])], axis=1)
    problem, _ = sumgp.ConstrainedGP(None, outputs=["a", "b"], inputs=["t"])._problem(x, y, lambda stage: None, None)
    points = [p._replace(weight=1.0, size=1.0) for p in POINTS]
    outputs = tuple(output_posterior(problem.x, column, [p]) for column, p in zip(problem.y.T, points, strict=True))
    component = independent_outputs(outputs, 1.0)
    ((prior, theta),) = own_priors(problem, component, 1)
    new = problem.scaling.inputs(np.linspace(0.02, 0.98, 7)[:, None])
    mean, covariance = plain_component(problem, prior, theta).marginals(new, new)
    expected, spread = component.marginals(new, new)
    # Task covariances have a floor of 1e-4.
    assert mean == pytest.approx(expected, abs=1e-4)
    assert covariance == pytest.approx(spread, abs=1e-4)


def test_a_model_with_outputs_of_their_own_is_stored(tmp_path) -> None:  # type: ignore[no-untyped-def]
    gp, test, _ = fitted("a + b + c + d = 10")
    gp.save(tmp_path / "model.sumgp")
    again = sumgp.load(tmp_path / "model.sumgp").posterior(test)
    assert again.mean == pytest.approx(gp.predict(test), abs=1e-9)
    assert again.std == pytest.approx(gp.posterior(test).std, rel=1e-9)


def test_joint_draws_have_the_means_and_the_spread_of_single_points() -> None:
    gp, test, _ = fitted(None)
    own = next(c for c in gp.fitted_.components if isinstance(c, OwnComponent))
    x = gp.scaling_.inputs(test[::10, None])
    mean, covariance = own.marginals(x, test[::10, None])
    draws = own.sample(x, test[::10, None], 4000, np.random.default_rng(3))
    sd = np.sqrt(np.einsum("ntt->nt", covariance))
    assert np.max(np.abs(draws.mean(axis=0) - mean) / sd) < 5.0 / np.sqrt(4000)
    assert draws.std(axis=0) == pytest.approx(sd, rel=0.1)
    wide = replace(own, widening=2.0 * own.widening).marginals(x, test[::10, None])[1]
    assert wide == pytest.approx(4.0 * covariance)


def test_rows_left_out_are_those_of_a_posterior_without_them_also_where_inputs_repeat() -> None:
    generator = np.random.default_rng(1000)
    x = np.repeat(np.linspace(0.0, 1.0, 8), 2)[:, None]
    y = np.sin(6.0 * x[:, 0]) + 0.2 * generator.standard_normal(16)
    points = [GridPoint(RBF(0.3), 1.0, 0.3, 1.0)]
    component = independent_outputs((output_posterior(x, y, points),), 1.0)
    found = component.left_out(TrainingRows(x, x, y[:, None]))
    for row in range(16):
        rest = np.delete(np.arange(16), row)
        mean, _ = output_posterior(x[rest], y[rest], points).moments(x[row : row + 1])
        assert y[row] - found.residual[row, 0] == pytest.approx(mean[0], abs=1e-6)


def test_left_out_values_of_a_component_hold_each_measured_entry() -> None:
    x, y, posterior = one_output()
    component = independent_outputs((posterior, posterior), 1.0)
    table = np.stack([y, y], axis=1)
    values = own_left_out(component, table, blocks_of(x))
    assert np.all(np.isfinite(values.each_log_density))
    assert values.residual[:, 0] == pytest.approx(values.residual[:, 1])


def test_a_partly_measured_row_is_left_out_under_the_law_too() -> None:
    """a + b = 1 with b not measured in one row: a is then what it is without that row, moved by what b says there."""
    x = np.linspace(0.0, 1.0, 16)[:, None]
    a = np.sin(4.0 * x[:, 0])
    y = np.stack([a, 1.0 - a], axis=1) + 0.1 * np.random.default_rng(6).standard_normal((16, 2))
    y[5, 1] = np.nan
    points = [GridPoint(RBF(0.5), 1.0, 0.1, 1.0)]
    seen = np.delete(np.arange(16), 5)
    outputs = (output_posterior(x, y[:, 0], points), output_posterior(x[seen], y[seen, 1], points))
    law = make_unit_free(
        sumgp.LinearConstraint([1.0, 1.0], 1.0).bind(("a", "b"), ("t",)), np.zeros(2), np.ones(2), y[seen], x[seen]
    )
    component = replace(independent_outputs(outputs, 1.0), law=law)
    values = own_left_out(component, y, None)
    moved = moved_left_out(component, values, y, x, x)
    without = output_posterior(x[seen], y[seen, 0], points).moments(x[5:6])
    other = outputs[1].moments(x[5:6])
    share = without[1][0] / (without[1][0] + other[1][0])
    mean = without[0][0] - share * (without[0][0] + other[0][0] - 1.0)
    assert y[5, 0] - moved.residual[5, 0] == pytest.approx(mean, abs=1e-6)
    assert moved.variance[5, 0] == pytest.approx(share * other[1][0] + component.noise[0], rel=1e-6)
    assert np.isnan(moved.residual[5, 1])
    assert np.isnan(moved.variance[5, 1])
    # Rows of blocks, of which neighbours are left out as well: as they are without the law.
    np.testing.assert_array_equal(moved_left_out(component, values, y, x).residual[5], values.residual[5])


def test_noise_of_closed_data_is_not_made_smaller_by_the_law_again() -> None:
    """b = 1 - a as measured: both show one noise, which the law between them must not halve; else noises are independent."""
    generator = np.random.default_rng(1003)
    x = np.linspace(0.0, 1.0, 50)
    a = np.sin(4.0 * x) + 0.3 * generator.standard_normal(50)

    def noise(b: np.ndarray) -> np.ndarray:
        gp = sumgp.ConstrainedGP("a + b = 1", outputs=["a", "b"], inputs=["t"]).fit(x, np.stack([a, b], axis=1))
        own = next(c for c in gp.fitted_.components if isinstance(c, OwnComponent))
        return own.noise_covariance * np.outer(gp.scaling_.y_scale, gp.scaling_.y_scale)

    V = noise(1.0 - a)
    left = V - np.outer(V.sum(axis=1), V.sum(axis=0)) / V.sum()
    assert np.all(np.diag(left) >= 0.95 * np.diag(V))
    assert noise(1.0 - a + 0.3 * generator.standard_normal(50))[0, 1] == 0.0


@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_of_an_output_of_its_own_by_differences(order: int) -> None:
    output = one_output()[2]
    at, step = np.array([[0.31], [0.77]]), 1e-3
    slope = output.differentiated((order,))
    assert slope is not None
    around = np.concatenate([at + k * step for k in (-1, 0, 1)])
    weights = {1: np.array([-0.5, 0.0, 0.5]) / step, 2: np.array([1.0, -2.0, 1.0]) / step**2}[order]
    stencil = np.kron(weights, np.eye(2))
    mean, variance = slope.moments(at)
    np.testing.assert_allclose(mean, stencil @ output.moments(around)[0], rtol=1e-3, atol=1e-3 * np.abs(mean).max())
    covariance = stencil @ output.covariance(around) @ stencil.T
    np.testing.assert_allclose(slope.covariance(at), covariance, rtol=2e-2, atol=2e-2 * np.abs(covariance).max())
    np.testing.assert_allclose(variance, np.diagonal(slope.covariance(at)), rtol=1e-8)


def test_rough_kernels_have_no_derivative() -> None:
    x, y, _ = one_output()
    rough = output_posterior(x, y, [GridPoint(Matern(0.3, nu=0.5), 1.0, 1.0, 0.1)])
    assert rough.differentiated((1,)) is None


@pytest.mark.filterwarnings("error")
def test_an_output_that_the_law_fixes_tells_nothing() -> None:
    x = np.linspace(0.0, 1.0, 15)
    share = 30.0 + 20.0 * np.sin(5.0 * x)
    Y = np.column_stack([share, 100.0 - share, np.full(15, 5.0)])
    gp = sumgp.ConstrainedGP("a + b = 100; c = 5", outputs=["a", "b", "c"]).fit(x, Y)
    np.testing.assert_allclose(gp.predict(x), Y, atol=0.01)
    assert all(np.isfinite(score).all() for score in gp.fit_report_["kind_scores"].values())


def of_two_inputs() -> tuple[sumgp.ConstrainedGP, np.ndarray, np.ndarray]:
    """Outputs that vary fast along one input each and hardly along the other; the third is what is left of ten."""

    def truth(x: np.ndarray) -> np.ndarray:
        a = np.sin(9.0 * x[:, 0]) + 0.2 * x[:, 1]
        b = np.cos(9.0 * x[:, 1]) - 0.2 * x[:, 0]
        return np.column_stack([a, b, 10.0 - a - b])

    generator = np.random.default_rng(1000)
    x, test = generator.uniform(size=(30, 2)), generator.uniform(0.1, 0.9, size=(40, 2))
    y = truth(x) + 0.02 * generator.standard_normal((30, 3))
    gp = sumgp.ConstrainedGP("a + b + c = 10", outputs=["a", "b", "c"], inputs=["u", "v"]).fit(x, y)
    return gp, test, truth(test)


def test_each_output_has_lengthscales_of_its_own_along_each_input(tmp_path) -> None:  # type: ignore[no-untyped-def]
    gp, test, truth = of_two_inputs()
    error = np.sqrt(np.mean((gp.predict(test) - truth) ** 2))
    assert error < 0.02  # 0.032 with one lengthscale for each output
    own = next(c for c in gp.fitted_.components if isinstance(c, OwnComponent))
    for t, output in enumerate(own.outputs[:2]):
        assert output.kernels[0].length_scale[1 - t] > 3.0 * output.kernels[0].length_scale[t]
    posterior = gp.posterior(test)
    assert np.max(np.abs(posterior.residual())) < 1e-9
    assert np.all(np.isfinite(posterior.derivative("a", "u").std))
    gp.save(tmp_path / "model.sumgp")
    assert sumgp.load(tmp_path / "model.sumgp").predict(test) == pytest.approx(gp.predict(test), abs=1e-9)
