"""Switches by root finding, back-transformed marginals against sampling, values moved into their domain."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from sumgp.data.table import Data
from sumgp.paper_method.component import _moved_inside
from sumgp.paper_method.marginals import OutputMarginal, SkewedMarginals
from sumgp.paper_method.switches import find_switches, segments
from sumgp.prediction.mixture import SkewedMixture
from sumgp.transforms import Absolute, Exp, Identity, Log, Sin, Square, Transform


def line_data(x: np.ndarray, extra: tuple[str, ...] = ()) -> Data:
    return Data(x, np.zeros((len(x), 1)), tuple(f"x{i}" for i in range(x.shape[1] - len(extra))), ("y",), extra)


def test_switches_are_the_roots_in_both_directions_and_beyond_the_ends() -> None:
    x = np.linspace(0.05, 3.0, 12)[:, None]

    def guide(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return 6.0 * np.sin(points[:, :1]), np.full((len(points), 1), 0.3)

    found = find_switches(guide, line_data(x), [(0, Sin())])
    rising = np.arcsin(np.array([0.5, 1.5]) * np.pi / 6.0)
    expected = np.sort(np.concatenate([rising, np.pi - rising, -rising[:1] * 0.0 - np.arcsin(0.5 * np.pi / 6.0)]))
    locations = np.sort([s.x[0] for s in found])
    inside = expected[(expected > x[0, 0] - 0.27) & (expected < x[-1, 0] + 0.27)]
    np.testing.assert_allclose(locations, inside, atol=1e-9)
    for switch in found:
        np.testing.assert_allclose(switch.value, np.sin(6.0 * np.sin(switch.x[0])), atol=1e-9)
        np.testing.assert_allclose(switch.sd, 1.0 - np.exp(-0.5 * 0.3**2), rtol=1e-6)


def test_a_square_is_known_to_the_square_of_the_sd_at_its_switch() -> None:
    def guide(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return points[:, :1] - 0.4, np.full((len(points), 1), 0.2)

    (switch,) = find_switches(guide, line_data(np.linspace(0.0, 1.0, 4)[:, None]), [(0, Square())])
    np.testing.assert_allclose([switch.x[0], switch.value, switch.sd], [0.4, 0.0, 0.04], atol=1e-9)
    assert find_switches(guide, line_data(np.zeros((1, 1))), [(0, Square())]) == ()
    assert find_switches(guide, line_data(np.linspace(0.0, 1.0, 4)[:, None]), [(0, Square("positive"))]) == ()


def test_segments_of_several_inputs_join_neighbours_and_extra_columns_follow() -> None:
    grid = np.stack(np.meshgrid([0.0, 1.0, 2.0], [0.0, 10.0]), axis=-1).reshape(-1, 2)
    starts, ends = segments(line_data(grid))
    assert len(starts) >= 6
    assert np.max(np.abs((ends - starts) / [1.0, 10.0])) <= 2.0

    def guide(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return points[:, :1] - 0.5, np.full((len(points), 1), 0.1)

    for switch in find_switches(guide, line_data(grid), [(0, Square())]):
        assert switch.x[0] == pytest.approx(0.5, abs=1e-9)
    with_total = np.column_stack([np.linspace(0.0, 1.0, 5), np.linspace(0.0, 1.0, 5) ** 2])
    (switch,) = find_switches(guide, line_data(with_total, ("C",)), [(0, Square())])
    np.testing.assert_allclose(switch.x, [0.5, 0.25], atol=1e-9)


def marginal(h: Transform, mean: float, sd: float, aux: float = 0.0, aux_sd: float = 1.0) -> OutputMarginal:
    return OutputMarginal(h, *(np.array([value]) for value in (mean, sd, aux, aux_sd)))


CASES = {
    "identity": marginal(Identity(), 0.3, 0.2),
    "log": marginal(Log(), 0.1, 0.5),
    "exponential near its edge": marginal(Exp(), 0.3, 0.2),
    "square far from zero": marginal(Square(), 2.0, 0.3, 1.4, 0.1),
    "square at a switch": marginal(Square(), 0.05, 0.1, 0.02, 0.2),
    "negative square": marginal(Square(), 1.0, 0.3, -0.4, 0.5),
    "absolute value": marginal(Absolute(), 0.3, 0.4, 0.1, 0.2),
    "sine near its top": marginal(Sin(), 0.9, 0.15, 1.3, 0.4),
    "sine between": marginal(Sin(), -0.2, 0.3, 3.3, 0.3),
}


def sampled(m: OutputMarginal, count: int) -> np.ndarray:
    """Draws by the definition: fold f' into the image, draw the branch of the auxiliary output, go back."""
    rng = np.random.default_rng(0)
    lo, hi = m.transform.image
    value = m.mean[0] + m.sd[0] * rng.standard_normal(count)
    value = lo + np.abs(value - lo) if np.isfinite(lo) else value
    value = hi - np.abs(hi - value) if np.isfinite(hi) else value
    branch = m.transform.branch_of(m.aux_mean[0] + m.aux_sd[0] * rng.standard_normal(count))
    return m.transform.inverse(value, branch)


@pytest.mark.parametrize("name", CASES)
def test_distribution_and_spread_are_those_of_draws(name: str) -> None:
    m = CASES[name]
    draws = sampled(m, 200_000)
    points = np.quantile(draws, [0.03, 0.2, 0.5, 0.8, 0.97])
    shares = np.array([m.cdf(np.array([p]))[0] for p in points])
    np.testing.assert_allclose(shares, [np.mean(draws < p) for p in points], atol=5e-3)
    centre = np.array([np.median(draws)])
    np.testing.assert_allclose(m.spread(centre)[0], np.sqrt(np.mean((draws - centre) ** 2)), rtol=0.02)


@pytest.mark.parametrize("name", CASES)
def test_density_is_the_slope_of_the_distribution(name: str) -> None:
    m = CASES[name]
    low, high = np.quantile(sampled(m, 2000), [0.02, 0.98])
    grid = np.linspace(low, high, 17)
    step = 1e-6
    slopes = [(m.cdf(np.array([g + step])) - m.cdf(np.array([g - step])))[0] / (2 * step) for g in grid]
    np.testing.assert_allclose([m.density(np.array([g]))[0] for g in grid], slopes, rtol=1e-4, atol=1e-6)
    critical = m.transform.critical_points(low, high)
    total = quad(lambda f: m.density(np.array([f]))[0], low, high, points=critical if len(critical) else None, limit=200)[0]
    np.testing.assert_allclose(total, (m.cdf(np.array([high])) - m.cdf(np.array([low])))[0], atol=1e-6)


def mixture(*parts: OutputMarginal, noise: float = 0.0) -> SkewedMixture:
    weights = np.full(len(parts), 1.0 / len(parts))
    skewed = [SkewedMarginals((p,), np.zeros(1), np.ones(1)) for p in parts]
    return SkewedMixture(skewed, weights, np.full((len(parts), 1), noise))


def test_certain_branch_gives_back_transformed_ends_and_open_branch_the_symmetric_interval() -> None:
    certain = mixture(marginal(Square(), 2.0, 0.1, -1.4, 0.05))
    ends = [certain.quantile(p, np.array([[-1.4]]), np.array([[0.1]]))[0, 0] for p in (0.025, 0.975)]
    np.testing.assert_allclose(ends, [-np.sqrt(2.0 + 0.196), -np.sqrt(2.0 - 0.196)], atol=1e-4)
    open_sign = mixture(marginal(Square(), 0.0, 0.1, 0.0, 0.3))
    ends = [open_sign.quantile(p, np.array([[0.0]]), np.array([[0.1]]))[0, 0] for p in (0.025, 0.975)]
    np.testing.assert_allclose(ends, [-np.sqrt(0.196), np.sqrt(0.196)], atol=1e-4)


def test_quantiles_of_mixtures_and_of_measurements_invert_their_distribution() -> None:
    parts = CASES["square at a switch"], CASES["negative square"]
    rng = np.random.default_rng(5)
    pooled = np.concatenate([sampled(p, 100_000) for p in parts])
    for noise in (0.0, 0.3):
        m = mixture(*parts, noise=noise)
        draws = pooled + noise * rng.standard_normal(len(pooled))
        for p in (0.025, 0.3, 0.9):
            value = m.quantile(p, np.zeros((1, 1)), np.full((1, 1), 0.2))
            assert m.cdf(value)[0, 0] == pytest.approx(p, abs=1e-9)
            assert np.mean(draws < value[0, 0]) == pytest.approx(p, abs=5e-3)


def test_outputs_that_are_alike_together_give_what_each_gives_alone() -> None:
    """Two squares, a sine and a plain output at two points, in other units, with leading axes."""
    squares = OutputMarginal(
        Square(), np.array([1.0, 0.02]), np.array([0.2, 0.1]), np.array([0.9, 0.1]), np.array([0.1, 0.2])
    )
    other = OutputMarginal(Square(), np.array([0.3, 2.0]), np.array([0.3, 0.1]), np.array([-0.5, -1.4]), np.full(2, 0.1))
    sine = OutputMarginal(Sin(), np.array([0.9, 0.1]), np.full(2, 0.1), np.array([1.4, 3.0]), np.full(2, 0.2))
    plain = OutputMarginal(Identity(), np.array([0.3, -0.2]), np.array([0.5, 0.4]), np.zeros(2), np.ones(2))
    outputs = (squares, sine, other, plain)
    shift, scale = np.array([0.1, 0.2, -0.3, 0.0]), np.array([2.0, 1.0, 0.5, 3.0])
    together = SkewedMarginals(outputs, shift, scale)
    values = np.random.default_rng(6).normal(0.0, 0.7, (5, 2, 4))
    f = shift + scale * values
    for t, marginal in enumerate(outputs):
        np.testing.assert_array_equal(together.cdf(values)[..., t], marginal.cdf(f[..., t]))
        np.testing.assert_array_equal(together.density(values)[..., t], scale[t] * marginal.density(f[..., t]))
        np.testing.assert_array_equal(together.spread(f[0])[:, t], marginal.spread(f[0, :, t]))
    assert np.ptp(together.cdf(values)) > 0.8


def test_values_outside_their_image_are_moved_along_the_law() -> None:
    F = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 1.0]])
    images = np.array([[0.0, np.inf], [0.0, np.inf], [-np.inf, np.inf]])
    values = np.array([-0.2, 1.8, 0.4])
    cov = np.diag([0.1, 0.2, 0.3])
    moved = _moved_inside(values, F, cov, images)
    np.testing.assert_allclose(moved, [0.0, 1.6, 0.6], atol=1e-12)
    np.testing.assert_allclose(F @ moved, F @ values, atol=1e-12)
    stuck = _moved_inside(np.array([-1.0, -1.0]), np.array([[1.0, 1.0]]), np.eye(2), images[:2])
    np.testing.assert_allclose(stuck, [0.0, 0.0])
