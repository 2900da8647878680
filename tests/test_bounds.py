"""Predictions within bounds: means, intervals and samples of every strategy, with a law and without."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import sumgp
from sumgp import Bounds, Conditioned, ConstrainedGP, ConstraintError, Linearized, Projected, Transformed, Unconstrained
from sumgp.cli.app import app
from sumgp.prediction import complete_rows
from sumgp.prediction.bounding import clipped_std
from sumgp.prediction.marginals import GaussianMixture
from sumgp.report import caught, render_fit, study

T_NEW = np.linspace(0.0, 1.0, 23)[:, None]
SHARES = "a + b + c = 1"


def shares(t):
    raw = np.exp(4.0 * np.sin(2 * np.pi * np.outer(t, [0.6, 0.9, 1.1]) + [0.0, 2.0, 4.0]))
    return raw / raw.sum(axis=1, keepdims=True)


def measured(n=18, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0, 1, n))
    return t[:, None], shares(t) + noise * rng.standard_normal((n, 3))


def fitted(constraint, X, Y, **choices):
    quick = {"kernel": "matern52"} if choices.get("solver") == "markov" else {"kernel": "rbf", "restarts": 0}
    choices = {"outputs": list("abc")[: Y.shape[1]], "uncertainty": "plug-in", **quick, **choices}
    return ConstrainedGP(constraint, **choices).fit(X, Y)


def told(posterior):
    """Means, interval ends and samples: all that must lie within bounds."""
    return np.concatenate([posterior.mean[None], *(e[None] for e in posterior.interval(0.999)), posterior.sample(40)])


@pytest.fixture(scope="module")
def composition():
    return fitted([SHARES, Bounds(lower=0)], *measured(), uncertainty="integrated")


def test_without_bounds_the_data_lead_outside(composition):
    free = replace(composition.posterior(T_NEW), bounding=None)
    assert free.mean.min() < 0
    assert free.interval(0.95)[0].min() < 0
    assert free.sample(5).min() < 0


@pytest.mark.parametrize(
    ("strategy", "solver"),
    [
        (Conditioned(), None),
        (Conditioned(joint=True), None),
        (Linearized(), None),
        (Projected(), None),
        (Unconstrained(), None),
        (None, "markov"),
        (Projected(), "markov"),
        (Unconstrained(), "markov"),
    ],
    ids=str,
)
def test_every_strategy_keeps_law_and_bounds(strategy, solver):
    gp = fitted([SHARES, "all >= 0", "b <= 0.9", "a + b <= 0.95"], *measured(), strategy=strategy, solver=solver)
    posterior = gp.posterior(T_NEW)
    values = told(posterior)
    assert values.min() >= 0.0
    assert values[:, :, 1].max() <= 0.9
    joint = np.concatenate([posterior.mean[None], values[3:]])
    assert np.max(joint[:, :, 0] + joint[:, :, 1]) <= 0.95
    assert np.all(np.isfinite(posterior.std))
    if not isinstance(strategy, Unconstrained):
        assert np.abs(joint.sum(axis=2) - 1.0).max() < 1e-12


def test_bounds_alone_are_a_constraint():
    X, Y = measured()
    for bounds in ("all >= 0", ["a >= 0", "b > 0; c >= 0"], Bounds(lower=0)):
        gp = fitted(bounds, X, Y)
        assert type(gp.strategy_) is Unconstrained
        assert told(gp.posterior(T_NEW)).min() == 0.0


def test_a_point_is_told_the_same_alone_and_among_others(composition):
    whole = composition.posterior(T_NEW)
    for i in (0, 7, 22):
        alone = composition.posterior(T_NEW[i : i + 1])
        for one, many in (
            (alone.mean, whole.mean),
            (alone.std, whole.std),
            *zip(alone.interval(), whole.interval(), strict=True),
        ):
            assert np.array_equal(one[0], many[i])


def test_many_points_are_drawn_in_parts(composition, monkeypatch):
    monkeypatch.setattr("sumgp.prediction.posterior.DRAWN_AT_ONCE", 7)
    few = composition.posterior(T_NEW[::6])
    whole = composition.posterior(T_NEW)
    assert np.array_equal(whole.interval()[0][::6], few.interval()[0])
    assert whole.mean.min() >= 0.0


def test_intervals_are_quantiles_of_projected_draws():
    """Against path draws of the free posterior, each max(draw - w variance, 0) with w found by bisection."""
    posterior = fitted([SHARES, Bounds(lower=0)], *measured()).posterior(T_NEW)
    variance = posterior._bounded.sds**2
    draws = replace(posterior, bounding=None).sample(4000, random_state=1)
    low, high = np.full((4000, 23, 1), -1e4), np.full((4000, 23, 1), 1e4)
    for _ in range(70):
        w = 0.5 * (low + high)
        over = np.maximum(draws - w * variance, 0.0).sum(axis=2, keepdims=True) > 1.0
        low, high = np.where(over, w, low), np.where(over, high, w)
    moved = np.maximum(draws - w * variance, 0.0)
    # Shares of draws at or below an end: many may lie on the bound itself.
    for end, level in zip(posterior.interval(0.9), (0.05, 0.95), strict=True):
        assert np.mean(moved <= end + 1e-9, axis=0).min() > level - 0.025
        assert np.mean(moved < end - 1e-9, axis=0).max() < level + 0.025
    assert np.abs(moved.std(axis=0) - posterior.std).max() < 0.05 * posterior.std.max()
    assert np.abs(posterior.sample(4000, random_state=1) - moved).max() < 1e-9


def test_closed_form_is_kept_where_no_bound_is_near():
    X, Y = measured()
    free, bounded = fitted(SHARES, X, Y).posterior(T_NEW), fitted([SHARES, Bounds(-5, 5)], X, Y).posterior(T_NEW)
    assert not bounded._marginals.drawn.any()
    assert np.array_equal(free.mean, bounded.mean)
    assert np.array_equal(free.interval()[0], bounded.interval()[0])
    assert np.array_equal(free.std, bounded.std)
    assert bounded.gaussian_mixture() is not None
    # Even the ends of an interval of all but nothing stay inside.
    assert bounded.interval(1 - 1e-15)[1].max() <= 5.0


def test_distribution_function_and_quantiles_agree(composition):
    posterior = composition.posterior(T_NEW)
    at_bound = posterior.cdf(np.zeros((23, 3)))
    assert at_bound.max() > 0.5
    assert np.all(posterior.cdf(np.full((23, 3), -1e-9)) == 0.0)
    free = at_bound < 0.3
    middle = posterior.quantile(0.4)
    assert np.abs(posterior.cdf(middle) - 0.4)[free].max() < 1e-9
    assert np.all(np.isfinite(posterior.log_density(middle)))
    assert np.allclose(np.sqrt(np.diagonal(posterior.covariance())), posterior.std.ravel())


def test_new_measurements_obey_bounds_that_all_measurements_obey():
    X, Y = measured()
    noisy = fitted([SHARES, Bounds(lower=0)], X, Y).posterior(T_NEW).observed()
    assert noisy.ends is None
    assert noisy.interval()[0].min() < 0
    closed = np.maximum(Y, 0.0)
    gp = fitted([SHARES, "all >= 0", "a + b <= 1.5"], X, closed / closed.sum(axis=1, keepdims=True))
    inside = gp.posterior(T_NEW).observed()
    assert min(e.min() for e in (*inside.interval(0.999), inside.sample(40))) == 0.0
    drawn = inside.sample(3000, random_state=3)
    assert np.abs(drawn.std(axis=0) / inside.std - 1.0).max() < 0.15
    assert np.all(inside.cdf(np.full((23, 3), -1e-9)) == 0.0)


def test_new_measurements_of_closed_data_have_the_noise_of_their_component():
    """Components whose noises differ: samples and marginals near a bound must agree with the closed form of the mixture."""
    X, Y = measured()
    closed = np.maximum(Y, 0.0)
    gp = fitted([SHARES, "all >= 0"], X, closed / closed.sum(axis=1, keepdims=True))
    one = gp.fitted_.components[0]
    # Nine draws in ten measure far better than the mean of all.
    parts = [replace(one, noise=one.noise * factor) for factor in (1e-4, 25.0)]
    gp.fitted_ = replace(gp.fitted_, components=parts, weights=np.array([0.9, 0.1]))
    noisy = gp.posterior(T_NEW).observed()
    drawn = noisy.sample(4000, random_state=1)
    lower, upper = noisy.interval(0.8)
    inside = np.mean((drawn >= lower) & (drawn <= upper), axis=0)
    assert inside.min() > 0.77
    free = replace(noisy, bounding=None)
    lower, upper = free.interval(0.8)
    drawn = free.sample(4000, random_state=1)
    assert np.abs(np.mean((drawn >= lower) & (drawn <= upper), axis=0) - 0.8).max() < 0.03


def test_noises_that_differ_by_chance_only_are_taken_as_one():
    X, Y = measured(60, 0.02)
    gp = fitted([SHARES, "all >= 0"], X, Y)
    pooling = gp.bounding_.pooling
    chance = np.array([0.9, 1.0, 1.15])
    assert np.ptp(pooling.pooled(chance)) < 1e-12
    apart = pooling.pooled(np.array([0.01, 0.01, 1.0]))
    assert np.log(apart[2] / apart[0]) == pytest.approx(0.5 * np.log(100), rel=0.02)
    # In other units, and with coefficients that undo them, the same.
    units = np.array([1.0, 1e3, 1e-3])
    law = f"a + {1e-3:g}*b + {1e3:g}*c = 1"
    other = fitted([law, "all >= 0"], X, Y * units).bounding_.pooling
    assert np.allclose(other.pooled(units * np.array([0.01, 0.01, 1.0])), units * apart, rtol=1e-9)
    alone = fitted("all >= 0", X, Y).bounding_.pooling
    assert np.allclose(alone.pooled(np.array([0.01, 0.01, 1.0])), [0.01, 0.01, 1.0])
    pairs = fitted(["a + b = 1", "all >= 0"], X, Y).bounding_.pooling
    assert pairs.group[0] == pairs.group[1] != pairs.group[2]


def test_with_one_noise_no_mean_moves_away_from_the_truth():
    """The nearest point of a convex set is nearer to every point of the set."""
    t = np.linspace(0, 1, 23)
    for seed in range(3):
        posterior = fitted([SHARES, "all >= 0"], *measured(seed=seed), noise="shared").posterior(T_NEW)
        before, after = (np.sum((p.mean - shares(t)) ** 2, axis=1) for p in (replace(posterior, bounding=None), posterior))
        assert np.all(after <= before * (1 + 1e-9))
        assert np.any(after < 0.999 * before)


def test_standard_deviations_of_clipped_mixtures():
    rng = np.random.default_rng(5)
    means, sds, weights = rng.normal(0, 1, (3, 4, 2)), rng.uniform(0.2, 1, (3, 4, 2)), np.array([0.5, 0.3, 0.2])
    lower, upper = np.full((4, 2), -0.3), np.array([[0.4, np.inf]] * 4)
    owner = rng.choice(3, 200_000, p=weights)
    draws = np.clip(means[owner] + sds[owner] * rng.standard_normal((200_000, 4, 2)), lower, upper)
    assert np.abs(clipped_std(GaussianMixture(means, sds, weights), lower, upper) - draws.std(axis=0)).max() < 0.005


def test_bounds_given_by_columns_and_inputs():
    X, Y = measured()
    frame = pd.DataFrame({"t": X[:, 0], "capacity": 0.5 + 0.1 * X[:, 0], "total": 1.0})
    table = pd.DataFrame(Y, columns=list("abc"))
    gp = ConstrainedGP(
        ["a + b + c = S", "all >= 0", "a <= capacity", "b <= 0.9 - t/5"],
        inputs=["t"],
        outputs=list("abc"),
        constants={"capacity": "capacity", "S": "total"},
        uncertainty="plug-in",
        restarts=0,
    ).fit(frame, table)
    new = pd.DataFrame({"t": T_NEW[:, 0], "capacity": 0.5 + 0.1 * T_NEW[:, 0], "total": 1.0})
    values = told(gp.posterior(new))
    assert np.all(values[:, :, 0] <= new["capacity"].to_numpy())
    assert np.all(values[:, :, 1] <= 0.9 - T_NEW[:, 0] / 5)
    assert np.abs(np.concatenate([values[:1], values[3:]]).sum(axis=2) - 1.0).max() < 1e-12
    impossible = new.assign(capacity=-1.0)
    with pytest.raises(ConstraintError, match=r"no outputs .* lie within the bounds .* at x = \[0.0, -1.0, 1.0\]"):
        _ = gp.posterior(impossible).mean


def test_infeasible_sets_and_wrong_strategies_are_refused():
    X, Y = measured(6)
    with pytest.raises(ConstraintError, match=r"'a >= 0.8', 'b >= 0.3', 'c >= 0' and 'a \+ b \+ c = 1' together"):
        fitted([SHARES, "a >= 0.8; b >= 0.3; c >= 0; c <= 4"], X, Y)
    with pytest.raises(ConstraintError, match="takes no bounds"):
        fitted([SHARES, "a >= 0"], X, Y, strategy=Transformed())


def test_measured_values_outside_are_counted_and_kept():
    X, Y = measured()
    gp = fitted([SHARES, "all >= 0"], X, Y)
    assert gp.fit_report_["measured_outside_bounds"] == {n: int(np.sum(Y[:, t] < 0)) for t, n in enumerate("abc")}
    assert "all >= 0" not in str(gp.fit_report_)
    assert "bounds: a >= 0; b >= 0; c >= 0" in str(gp.fit_report_)
    free = fitted(SHARES, X, Y)
    assert np.array_equal(free.fitted_.components[0].theta, gp.fitted_.components[0].theta)


@pytest.fixture(scope="module")
def gaps():
    """A closed composition with gaps, fitted with bounds; and the whole one."""
    X, Y = measured(24)
    closed = np.maximum(Y, 0.0)
    closed = closed / closed.sum(axis=1, keepdims=True)
    holes = np.random.default_rng(7).uniform(size=closed.shape) < 0.35
    holes[holes.all(axis=1)] = False
    return fitted([SHARES, "all >= 0"], X, np.where(holes, np.nan, closed)), X, np.where(holes, np.nan, closed)


def test_filled_gaps_obey_law_and_bounds(gaps):
    gp, X, Y = gaps
    done = gp.completion(X, Y)
    gap = ~done.measured
    free = replace(gp.posterior(X), bounding=None)
    assert complete_rows(free, Y, 0.95, False).lower[gap].min() < 0
    assert min(done.mean[gap].min(), done.lower[gap].min()) == 0.0
    assert np.array_equal(done.mean[~gap], Y[~gap])
    assert np.abs(done.mean.sum(axis=1) - 1.0).max() < 1e-12
    rows = gp.posterior(X, given=Y)
    drawn = rows.observed().sample(300, random_state=2)
    for draws in (rows.sample(40), drawn):
        assert draws.min() >= 0.0
        assert np.abs(draws.sum(axis=2) - 1.0).max() < 1e-12
    assert np.array_equal(drawn[5][~gap], Y[~gap])
    # Draws and intervals tell the same.
    inside = np.mean((drawn >= done.lower - 1e-9) & (drawn <= done.upper + 1e-9), axis=0)
    assert inside[gap & ~done.determined].min() > 0.9
    assert np.abs(drawn.std(axis=0) - done.std).max() < 0.15 * done.std.max()
    assert min(rows.mean.min(), rows.interval(0.999)[0].min()) == 0.0


def test_a_row_whose_cells_leave_no_room_is_named(gaps):
    gp, _, _ = gaps
    with pytest.warns(sumgp.SumGPWarning, match=r"in 1 row \(0, .* no missing values within the bounds meet the law"):
        row = gp.completion([[0.5]], [[0.7, 0.4, np.nan]])
    assert row.mean[0].tolist() == [0.7, 0.4, 0.0]
    assert not row.determined.any()
    # A measured cell outside its bound stays, and the others keep theirs.
    row = gp.completion([[0.5]], [[-0.01, np.nan, np.nan]])
    assert row.mean[0, 0] == -0.01
    assert row.mean[0, 1:].min() >= 0.0
    assert abs(row.mean.sum() - 1.0) < 1e-12


def test_where_measurements_leave_the_bounds_expected_ones_do_not():
    X, Y = measured()
    Y[::3, 1] = np.nan
    gp = fitted([SHARES, "all >= 0"], X, Y)
    done = gp.completion(X, Y)
    gap = ~done.measured
    assert done.mean[gap].min() >= 0.0
    assert done.lower[gap].min() < 0.0
    smooth = gp.completion(X, Y, smooth_measured=True)
    assert min(smooth.mean.min(), smooth.lower[~gap].min()) >= 0.0


def test_a_law_that_bounds_leave_out_of_reach_is_told():
    """The bound leaves points that miss the circle by 1e-7 of its radius."""
    t = np.linspace(0, 1, 6)[:, None]
    Y = np.stack([np.cos(t[:, 0]), np.sin(t[:, 0])], axis=1)
    with pytest.warns(sumgp.SumGPWarning, match="violated by"):
        gp = fitted(["a**2 + b**2 = 1", Bounds({"a": 1.0 + 1e-7})], t, Y)
    assert "violated by" in gp.fit_report_.status


def test_bounds_that_the_data_contradict_are_told():
    X, Y = measured()
    for constraint, who in ((Bounds({"a": 2.0}), "a bound"), ([SHARES, "a >= 0.6"], "the law or a bound")):
        with pytest.warns(sumgp.SumGPWarning, match="and the bounds against the data"):
            gp = fitted(constraint, X, Y)
        assert gp.fit_report_.status.startswith(f"{who} pulls 'a' away from its data")


def test_measured_values_far_outside_a_bound_are_told():
    """A capacity below the peak: too few rows for the whole output to be off, too far for noise."""
    X, Y = measured(40)
    with pytest.warns(sumgp.SumGPWarning, match=r"measured values of 'a' lie outside its bounds by more than noise"):
        gp = fitted([SHARES, "all >= 0", f"a <= {Y[:, 0].max() - 0.4:g}"], X, Y)
    assert gp.fit_report_.status != "converged"
    assert fitted([SHARES, "all >= 0"], X, Y).fit_report_.status == "converged"


def test_bounds_that_move_points_off_slopes_are_told():
    t = np.linspace(0, 6, 30)[:, None]
    Y = np.hstack([1 - np.exp(-t), np.exp(-t)]) + 0.05 * np.random.default_rng(3).standard_normal((30, 2))
    gp = fitted(["d(a, t) = b", "b >= 0", "a <= 1"], t, Y, inputs=["t"], outputs=["a", "b"])
    assert gp.fit_report_.status.startswith(
        "converged, but bounds move points off a law with derivatives: law 'd(a, t) = b'"
    )
    assert told(gp.posterior(t))[:, :, 1].min() >= 0.0


def test_bounds_out_of_reach_are_not_blamed():
    """A mean on a curved law is no exact derivative; a bound that moves nothing has no part in that."""
    t = np.linspace(0, 6, 12)[:, None]
    Y = np.hstack([np.sin(t), np.cos(t)]) + 0.1 * np.random.default_rng(0).standard_normal((12, 2))
    laws = ["d(z, t) = v", "z**2 + v**2 = E", "z >= -2"]
    gp = ConstrainedGP(laws, inputs=["t"], outputs=["z", "v"], constants={"E": "unknown"}).fit(t, Y)
    assert gp.fit_report_.status == "converged"


def test_zeros_in_a_composition_need_no_replacement():
    t = np.linspace(0, 1, 16)
    a = np.maximum(0.6 - 1.5 * t, 0.0)
    Y = np.stack([a, 0.3 + 0 * t, 0.7 - a], axis=1)
    values = told(fitted([SHARES, "all >= 0"], t[:, None], Y).posterior(T_NEW))
    assert values.min() == 0.0
    assert np.abs(values[0, 18:, 0]).max() < 0.02


@pytest.mark.parametrize("strategy", [Linearized(), Projected()], ids=str)
def test_curved_laws(strategy):
    t = np.linspace(0, 1, 20)
    angle = np.pi * np.clip(0.5 + 0.55 * np.sin(2 * np.pi * t), 0, 1)
    Y = np.stack([np.sin(angle), np.cos(angle)], axis=1) + 0.1 * np.random.default_rng(4).standard_normal((20, 2))
    gp = fitted("a**2 + b**2 = 1; a >= 0; b <= 1", t[:, None], Y, strategy=strategy)
    posterior = gp.posterior(T_NEW)
    values = told(posterior)
    assert replace(posterior, bounding=None).interval(0.95)[0][:, 0].min() < 0
    assert values[:, :, 0].min() >= 0.0
    assert values[:, :, 1].max() <= 1.0
    joint = np.concatenate([values[:1], values[3:]])
    assert np.abs(np.sum(joint**2, axis=2) - 1.0).max() < 1e-9


def test_a_bound_chooses_the_branch():
    """z was never measured and its square is: without the bound both signs are possible."""
    t = np.linspace(0, 1, 12)
    Y = np.stack([np.full(12, np.nan), 1.0 + t], axis=1)
    gp = fitted("a**2 = b; a >= 0", t[:, None], Y)
    posterior = gp.posterior(T_NEW)
    assert np.abs(posterior.mean[:, 0] - np.sqrt(1 + T_NEW[:, 0])).max() < 0.05
    assert told(posterior)[:, :, 0].min() >= 0.0


def test_an_unknown_constant_stands_beside_bounds():
    X, Y = measured()
    gp = fitted(["a + b + c = S", "all >= 0"], X, Y, constants={"S": "unknown"})
    posterior = gp.posterior(T_NEW)
    assert told(posterior).min() >= 0.0
    total = posterior.constants()["mean"].iloc[0]
    assert np.abs(posterior.mean.sum(axis=1) - total).max() < 1e-10


@pytest.mark.parametrize("constraint", [[SHARES, "all >= 0", "a + b <= 0.9"], Bounds({"a": 0.0}, {"b": 0.9})], ids=str)
def test_saved_models_keep_their_bounds(constraint, tmp_path):
    gp = fitted(constraint, *measured())
    gp.save(tmp_path / "model.sumgp")
    loaded = sumgp.load(tmp_path / "model.sumgp")
    assert np.array_equal(told(gp.posterior(T_NEW)), told(loaded.posterior(T_NEW)))


def test_bounds_that_are_functions_are_handed_over_again(tmp_path):
    bounds = Bounds({"a": lambda x: 0.1 * x[:, 0]})
    gp = fitted([SHARES, bounds], *measured())
    with pytest.warns(sumgp.SumGPWarning, match="given as Python code"):
        gp.save(tmp_path / "model.sumgp")
    with pytest.raises(ConstraintError, match="load it with constraint="):
        sumgp.load(tmp_path / "model.sumgp")
    with pytest.raises(ConstraintError, match="pass that one"):
        sumgp.load(tmp_path / "model.sumgp", constraint=SHARES)
    with pytest.raises(ConstraintError, match="not the law that was fitted"):
        sumgp.load(tmp_path / "model.sumgp", constraint=[SHARES, Bounds({"a": lambda x: 0.2 * x[:, 0]})])
    loaded = sumgp.load(tmp_path / "model.sumgp", constraint=[SHARES, bounds])
    assert np.array_equal(told(gp.posterior(T_NEW)), told(loaded.posterior(T_NEW)))


def test_figures_and_the_report_show_bounds(composition):
    labels = composition.posterior(T_NEW).plot().axes[0].get_legend_handles_labels()[1]
    assert "bound" in labels
    far = fitted([SHARES, Bounds(lower=-50)], *measured())
    assert "bound" not in far.posterior(T_NEW).plot().axes[0].get_legend_handles_labels()[1]
    found, _ = caught(lambda: study(composition, T_NEW, (), lambda stage: None))
    page = render_fit(found, "shares")
    assert "bound: a &gt;= 0" in page
    assert "Measured values outside the bounds count as noise" in page


def test_the_command_line(tmp_path):
    X, Y = measured(8)
    table = tmp_path / "data.csv"
    pd.DataFrame({"t": X[:, 0], **dict(zip("abc", Y.T, strict=True))}).to_csv(table, index=False)
    run = CliRunner().invoke
    checked = run(app, ["check", SHARES, "all >= 0", "--outputs", "a,b,c"])
    assert checked.exit_code == 0
    assert "bound: c >= 0" in checked.output
    alone = run(app, ["check", "a >= 0", "--outputs", "a,b,c", "--json"])
    assert '"bounds": [\n    "a >= 0"\n  ]' in alone.output
    assert '"strategy": "Unconstrained"' in alone.output
    refused = run(app, ["check", SHARES, "a >= 2", "b >= 0", "c >= 0", "--outputs", "a,b,c"])
    assert refused.exit_code != 0
    assert "and 'a + b + c = 1' together; correct" in str(refused.exception)
    arguments = ["fit", str(table), "--inputs", "t", "--out", str(tmp_path / "out"), "--plug-in", "--grid", "15"]
    done = run(app, [*arguments, "--constraint", SHARES, "--constraint", "all >= 0"])
    assert done.exit_code == 0, done.output
    predictions = pd.read_csv(tmp_path / "out" / "predictions.csv")
    assert predictions[[f"{n}{s}" for n in "abc" for s in ("", "_lower")]].min().min() >= 0.0
