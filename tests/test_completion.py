"""Gaps of tables: gp.complete(X, Y) and gp.posterior(X, given=Y)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

from sumgp import ConstrainedGP
from sumgp.errors import DataError, SumGPWarning

LAW = "a + b + c = 10"
FAST: dict[str, Any] = {"kernel": RBF(), "uncertainty": "plug-in", "restarts": 1}


def composition(seed: int, closed: bool, n: int = 40, sd: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Three smooth parts of ten with noise that obeys the sum, or does not."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 6.0, n)
    parts = np.stack([3.0 + np.sin(t), 3.0 + np.cos(1.3 * t), np.zeros(n)], axis=1)
    parts[:, 2] = 10.0 - parts.sum(axis=1)
    noise = sd * rng.standard_normal((n, 3))
    return t, parts + (noise - noise.mean(axis=1, keepdims=True) if closed else noise)


def with_gaps(Y: np.ndarray, seed: int) -> np.ndarray:
    """One cell missing in every fourth row, two in the row after."""
    rng, holed = np.random.default_rng(seed), Y.copy()
    for i in range(1, len(Y) - 1, 4):
        holed[i, rng.integers(3)] = np.nan
        holed[i + 1, rng.permutation(3)[:2]] = np.nan
    return holed


def test_closed_cells_are_filled_by_the_law_and_measured_cells_stay() -> None:
    t, Y = composition(1000, closed=True)
    holed = with_gaps(Y, 1000)
    gp = ConstrainedGP(LAW, outputs=["a", "b", "c"], **FAST).fit(t, holed)
    done = gp.completion(t, holed)
    measured = ~np.isnan(holed)
    assert np.array_equal(done.mean[measured], holed[measured])
    assert not done.std[measured].any()
    alone = ~measured & (measured.sum(axis=1) == 2)[:, None]
    assert np.array_equal(done.determined, alone)
    assert np.max(np.abs(done.mean - Y)[alone]) < 1e-9
    assert np.max(done.std[alone]) < 1e-6
    assert np.max(np.abs(done.mean.sum(axis=1) - 10.0)) < 1e-9
    assert set(done.source[alone]) == {"law"}


def test_a_determined_cell_of_rounded_rows_is_open_by_the_rounding() -> None:
    """Three parts, each rounded to 0.1: what is found by subtraction is wrong by sqrt(3 / 12) 0.1 = 0.05."""
    errors, sds = [], []
    for seed in range(1000, 1004):
        t, Y = composition(seed, closed=True)
        Y = np.round(Y, 1)
        holed = Y.copy()
        holed[::3, 1] = np.nan
        done = ConstrainedGP(LAW, outputs=["a", "b", "c"], **FAST).fit(t, holed).completion(t, holed)
        assert np.array_equal(done.determined, np.isnan(holed))
        errors.append((done.mean - Y)[done.determined])
        sds.append(done.std[done.determined])
    assert np.sqrt(np.mean(np.concatenate(sds) ** 2)) == pytest.approx(0.05, rel=0.15)
    assert np.sqrt(np.mean(np.concatenate(errors) ** 2)) == pytest.approx(0.05, rel=0.25)


@pytest.mark.parametrize("closed", [True, False])
def test_new_rows_and_fitted_rows_agree_and_nothing_is_used_twice(closed: bool) -> None:
    t, Y = composition(1001, closed)
    holed = with_gaps(Y, 1001)
    gp = ConstrainedGP(LAW, outputs=["a", "b", "c"], **FAST).fit(t, holed)
    done = gp.completion(t, holed)
    turned = gp.completion(t[::-1].copy(), holed[::-1].copy())
    assert turned.mean[::-1] == pytest.approx(done.mean, abs=1e-9)
    # Rows that were fitted have their cells in the posterior already.
    assert gp.posterior(t, given=holed).mean == pytest.approx(gp.posterior(t).mean, abs=1e-9)
    # A cell that is new narrows the rest of its row.
    narrower = gp.posterior(t[:1] + 0.05, given=[[Y[0, 0], np.nan, np.nan]])
    free = gp.posterior(t[:1] + 0.05)
    assert np.all(narrower.std < free.std)
    nothing = gp.posterior(t, given=np.full_like(holed, np.nan))
    assert nothing.mean == pytest.approx(gp.posterior(t).mean, abs=1e-9)
    assert nothing.observed().std == pytest.approx(gp.posterior(t).observed().std, rel=0.3)


def test_true_values_of_closed_rows_obey_the_law_and_have_variances() -> None:
    """Outputs with kernels of their own took the correlation of measurements for that of true values."""
    t, Y = composition(1002, closed=True, n=25)
    Y += np.outer(np.sin(5.0 * t), [0.0, 1.0, -1.0])
    gp = ConstrainedGP(LAW, outputs=["a", "b", "c"], restarts=0).fit(t, Y)
    assert gp.fit_report_.details["kinds"]["own"] > 0.05
    some = Y[4:12].copy()
    some[:, 1] = np.nan
    some[:4, 0] = np.nan
    rows = gp.posterior(t[4:12] + 0.02, given=some)
    assert rows.mean.sum(axis=1) == pytest.approx(np.full(8, 10.0), abs=1e-9)
    assert np.max(np.abs(rows.sample(3).sum(axis=2) - 10.0)) < 1e-6
    assert np.linalg.eigvalsh(rows.covariance).min() > -1e-9 * rows.covariance.max()
    assert rows.std.min() > 0.1 * gp.posterior(t[4:12] + 0.02).std.min()


@pytest.mark.parametrize("decimals", [1, 15])
def test_new_closed_rows_may_be_complete(decimals: int) -> None:
    """One of their cells tells nothing that the others have not told, rounded or not."""
    t, Y = composition(1003, closed=True)
    Y = np.round(Y, decimals)
    gp = ConstrainedGP(LAW, outputs=["a", "b", "c"], **FAST).fit(t, Y)
    between, new = t[:8] + 0.05, Y[10:18].copy()
    whole = gp.posterior(between, given=new)
    assert np.max(np.abs(whole.mean.sum(axis=1) - 10.0)) < 1e-9
    new[:, 2] = np.nan
    assert whole.mean == pytest.approx(gp.posterior(between, given=new).mean, abs=0.2 * 10.0**-decimals + 1e-9)


def test_only_gaps_are_determined_by_a_curved_law() -> None:
    """Averages over hyperparameters of a measured cell are that cell but for round-off, which looked like a gap."""
    t = np.linspace(0.0, 3.0, 14)
    width, height = np.round(2.0 + np.sin(t), 2), np.round(3.0 + np.cos(t), 2)
    table = np.column_stack([width, height, width * height])
    table[[2, 6, 9], [0, 1, 2]] = np.nan
    gp = ConstrainedGP("w*h = area", outputs=["w", "h", "area"], kernel=RBF(), restarts=0).fit(t, table)
    assert np.array_equal(gp.completion(t, table).determined, np.isnan(table))


def test_leave_cell_out_error_and_calibration_with_noise() -> None:
    """Filled cells are nearer than the fit alone, and their standard deviations are right."""
    z, alone, given = [], [], []
    for seed in range(1000, 1005):
        t, Y = composition(seed, closed=False, sd=0.5)
        holed = with_gaps(Y, seed)
        gp = ConstrainedGP(LAW, outputs=["a", "b", "c"], **FAST).fit(t, holed)
        done, gaps = gp.completion(t, holed), np.isnan(holed)
        z += ((done.mean - Y)[gaps] / done.std[gaps]).tolist()
        new = gp.posterior(t, given=Y).observed()
        assert np.array_equal(new.mean, Y)
        given += np.abs(done.mean - Y)[gaps].tolist()
        alone += np.abs(np.nanmean(holed, axis=0) - Y)[gaps].tolist()
    assert 0.85 < np.sqrt(np.mean(np.square(z))) < 1.2
    assert 0.9 < np.mean(np.abs(z) < 1.96) < 0.99
    assert np.mean(given) < 0.7 * np.mean(alone)


def test_closed_rows_with_two_gaps_use_the_measured_cell() -> None:
    """In closed data the third part's deviation tells about the other two: half of it each."""
    errors, without, z = [], [], []
    for seed in range(1000, 1004):
        t, Y = composition(seed, closed=True, sd=0.5)
        holed = with_gaps(Y, seed)
        gp = ConstrainedGP(LAW, outputs=["a", "b", "c"], **FAST).fit(t, holed)
        done, two = gp.completion(t, holed), np.isnan(holed) & (np.isnan(holed).sum(axis=1) == 2)[:, None]
        errors += ((done.mean - Y)[two] ** 2).tolist()
        without += ((gp.posterior(t).mean - Y)[two] ** 2).tolist()
        z += ((done.mean - Y)[two] / done.std[two]).tolist()
    assert np.mean(errors) < 0.95 * np.mean(without)
    assert 0.8 < np.sqrt(np.mean(np.square(z))) < 1.25


def test_curved_law_fills_with_the_root_nearest_the_fit() -> None:
    t = np.linspace(0.0, 6.0, 30)
    Y = np.stack([np.cos(t), np.sin(t)], axis=1)
    holed = Y.copy()
    holed[[7, 16, 20], 1] = np.nan
    gp = ConstrainedGP("z**2 + v**2 = 1", outputs=["z", "v"], **FAST).fit(t, holed)
    done = gp.completion(t, holed)
    assert done.mean == pytest.approx(Y, abs=1e-6)
    assert done.determined.sum() == 3
    holed[7, 0] = 1.5
    with pytest.warns(SumGPWarning, match=r"1 row \(7, counted from 0\)"):
        impossible = gp.completion(t, holed)
    assert not impossible.determined[7].any()


def test_cells_that_the_fit_did_not_foresee_are_named() -> None:
    t = np.linspace(0.0, 6.0, 20)
    Y = np.stack([np.cos(t), np.sin(t)], axis=1) + 0.05 * np.random.default_rng(0).standard_normal((20, 2))
    gp = ConstrainedGP("z**2 + v**2 = 1", outputs=["z", "v"], **FAST).fit(t, Y)
    new = np.stack([np.cos(t), np.full(20, np.nan)], axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gp.posterior(t + 0.1, given=new[:, [1, 1]])
        gp.completion(t, new)
    new[3, 0], new[5, 0] = -9999.0, 80.0
    with pytest.warns(SumGPWarning, match="row 3, output 'z' is -9999, where .* was expected, and 1 more cell"):
        gp.posterior(t, given=new)


def test_tables_blocks_and_words() -> None:
    t, Y = composition(1002, closed=True)
    holed = with_gaps(Y, 1002)
    X, table = pd.DataFrame({"t": t}), pd.DataFrame(holed, columns=["a", "b", "c"])
    gp = ConstrainedGP(LAW, **FAST).fit(X, table)
    done = gp.completion(X, table)
    many = gp.completion(np.tile(t, 10), np.tile(holed, (10, 1)))
    assert many.mean[-40:] == pytest.approx(done.mean, abs=1e-9)
    frame = gp.complete(X, table)
    pd.testing.assert_frame_equal(frame, done.to_frame())
    assert frame["a_determined"].dtype == bool
    assert list(frame.columns[:6]) == ["t", "a", "a_sd", "a_lower", "a_upper", "a_determined"]
    assert frame["a"].notna().all()
    assert "30 gaps filled, 10 of them determined by the law" in repr(done)
    assert "<table" in done._repr_html_()
    assert np.all(done.lower <= done.mean)
    assert np.all(done.mean <= done.upper)
    smooth = gp.completion(X, table, smooth_measured=True)
    assert smooth.mean[0] == pytest.approx(gp.posterior(X).mean[0], abs=1e-9)
    assert np.all(smooth.std[0] > 0)
    draws = gp.posterior(X, given=table).observed().sample(50)
    assert np.max(np.abs(draws.sum(axis=2) - 10.0)) < 1e-6
    assert np.array_equal(draws[0][~np.isnan(holed)], holed[~np.isnan(holed)])
    with pytest.raises(DataError, match="level"):
        gp.completion(X, table, level=1.0)


@pytest.mark.parametrize("law", ["d(z, t) = v", "d(z, t) = v; z**2/2 + v**2/2 = 0.5", "d(z, t) = v; d(v, t) = -z"])
def test_laws_with_derivatives_fill_rows_too(law: str) -> None:
    t = np.linspace(0.0, 6.0, 20)
    truth = np.column_stack([np.sin(t), np.cos(t)])
    y = truth + 0.05 * np.random.default_rng(1000).standard_normal(truth.shape)
    y[7, 1] = np.nan
    gp = ConstrainedGP(law, outputs=["z", "v"], inputs=["t"], uncertainty="plug-in").fit(t, y)
    filled = gp.complete(t, y)
    assert filled["z"].to_numpy() == pytest.approx(y[:, 0])
    assert filled["v"].iloc[7] == pytest.approx(truth[7, 1], abs=0.1)
    assert filled["v_lower"].iloc[7] < truth[7, 1] < filled["v_upper"].iloc[7]


def test_cells_in_very_small_units_are_filled_as_well() -> None:
    """What the law fixes is rounded to remove round-off, which must not remove the number."""
    t, Y = composition(1000, closed=True, n=12)
    holed = Y * 1e-20
    holed[4, 1] = np.nan
    done = ConstrainedGP("a + b + c = 1e-19", outputs=["a", "b", "c"], **FAST).fit(t, holed).completion(t, holed)
    assert done.determined[4, 1]
    assert done.mean[4, 1] == pytest.approx(1e-20 * Y[4, 1], rel=1e-9)


@pytest.mark.parametrize(("skew", "bends"), [(0.2, False), (1.2, True)])
def test_cells_at_a_bend_of_the_law_are_named(skew: float, bends: bool) -> None:
    """Factors of a known product: cells were up to 25 standard deviations off, without a word."""
    rng = np.random.default_rng(1000)
    x = np.sort(rng.uniform(size=60))
    factors = np.array([50.0, 10.0]) * np.exp(skew * rng.standard_normal((60, 2)))
    Y = np.column_stack([factors, factors.prod(axis=1)])
    Y[rng.permutation(60)[:10], :2] = np.nan
    gp = ConstrainedGP("a*b = c", outputs=["a", "b", "c"], uncertainty="plug-in", restarts=0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        gp.fit(x, Y).complete(x, Y)
    assert any("the law bends between" in str(warning.message) for warning in said) == bends
