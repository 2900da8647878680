"""Numbers and words of a fit's report: scores by a second way, advice that follows from the data."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import Matern

import sumgp
from sumgp.cli.points import default_count
from sumgp.paper_method import Transformed
from sumgp.report import figures
from sumgp.report.drawing import DARK, LIGHT, Curve, Map
from sumgp.report.figures import fit_pictures, in_dark, is_map, law_panel, map_panels
from sumgp.report.fit_page import number, render_fit
from sumgp.report.fit_study import FitStudy, caught, study
from sumgp.report.scores import law_violation, leave_one_out, lengthscales, noise_sds
from sumgp.report.wording import advice, verdict
from sumgp.solvers import Markov


def data(rows: int = 9, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    x = np.linspace(0.0, 5.0, rows)
    Y = np.column_stack([np.sin(x), 1.0 - np.sin(x)]) + noise * np.random.default_rng(1).standard_normal((rows, 2))
    Y[3, 0] = Y[6, 1] = np.nan
    return x, Y


def fitted(law: str | None, x: np.ndarray, Y: np.ndarray, **settings) -> sumgp.ConstrainedGP:
    quick = (
        {"uncertainty": "plug-in"} if "solver" in settings else {"uncertainty": "plug-in", "restarts": 0, "kernel": "rbf"}
    )
    return sumgp.ConstrainedGP(law, outputs=["a", "b"], inputs=["x"], **{**quick, **settings}).fit(x, Y)


def studied(gp: sumgp.ConstrainedGP, told: tuple[str, ...] = ()) -> FitStudy:
    return study(gp, np.linspace(0.0, 5.0, 30)[:, None], told, lambda stage: None)


@pytest.mark.parametrize("law", [None, "a + b = 1"])
def test_left_out_rows_are_those_of_textbook_regression(law: str | None) -> None:
    """Prior covariance from the model's own features, then dense conditioning without each row."""
    x, Y = data()
    gp = fitted(law, x, Y)
    component = gp.fitted_.components[0]
    u, y = gp.scaling_.inputs(gp.data_.x), gp.scaling_.outputs(Y)
    G, _ = component.posterior.features.design(u)
    n, T, _ = G.shape
    flat = G.reshape(n * T, -1)
    prior = flat @ flat.T
    offset = component.posterior.features.offset
    mean = np.zeros((n, T)) if offset is None else offset(gp.data_.x)
    noise = np.tile(component.noise, n)
    seen = ~np.isnan(y.ravel())
    squares = [[], []]
    for row in range(n):
        inside = np.repeat(np.arange(n) == row, T)
        keep = seen & ~inside
        gain = np.linalg.solve(prior[np.ix_(keep, keep)] + np.diag(noise[keep]), (y - mean).ravel()[keep])
        predicted = (mean.ravel() + prior[:, keep] @ gain)[inside]
        for t in np.flatnonzero(seen[inside]):
            squares[t].append((y[row, t] - predicted[t]) ** 2)
    expected = np.sqrt([np.mean(s) for s in squares]) * gp.scaling_.y_scale
    assert leave_one_out(gp).rmse == pytest.approx(expected, rel=1e-5)


def test_left_out_intervals_are_honest() -> None:
    """Over many simulated sets about 95 % of left-out measurements lie inside."""
    shares = []
    for seed in range(6):
        x = np.linspace(0.0, 5.0, 25)
        Y = np.column_stack([np.sin(x), np.cos(x)]) + 0.1 * np.random.default_rng(seed).standard_normal((25, 2))
        shares.append(leave_one_out(fitted(None, x, Y)).inside)
    assert 0.88 < np.mean(shares) < 0.99


def test_violation_is_that_of_the_law_itself() -> None:
    x, Y = data()
    gp = fitted("a + b = 1", x, Y)
    found = studied(gp)
    complete = ~np.isnan(Y).any(axis=1)
    assert found.violation is not None
    assert found.violation.raw == pytest.approx([np.abs(Y[complete].sum(axis=1) - 1.0).mean()], rel=1e-12)
    assert found.plain is not None
    assert found.violation.plain == pytest.approx([np.abs(found.plain.mean.sum(axis=1) - 1.0).mean()], rel=1e-12)
    assert found.violation.own[0] < 1e-13


def test_violation_with_an_unknown_constant_uses_its_estimate() -> None:
    x, Y = data()
    gp = fitted("a + b = c", x, Y, constants={"c": "unknown"})
    posterior = gp.posterior(x)
    c = float(posterior.constants().loc["c", "mean"])
    complete = ~np.isnan(Y).any(axis=1)
    raw = law_violation(gp, posterior, None).raw
    assert raw == pytest.approx([np.abs(Y[complete].sum(axis=1) - c).mean()], rel=1e-9)


def test_noise_and_lengthscale_are_in_the_users_units() -> None:
    x, Y = data(40, 0.05)
    one, other = fitted("a + b = 1", x, Y), fitted("a + b = 1000", 60.0 * x, 1000.0 * Y)
    assert noise_sds(other) == pytest.approx(1000.0 * noise_sds(one), rel=1e-3)
    assert lengthscales(other) == pytest.approx(60.0 * lengthscales(one), rel=1e-3)
    assert noise_sds(one) == pytest.approx([0.05, 0.05], rel=0.5)


@pytest.mark.parametrize(
    "settings",
    [{"strategy": Transformed()}, {"solver": Markov(), "kernel": Matern(nu=2.5)}, {"strategy": sumgp.Projected()}],
    ids=["transformed", "time series", "projected"],
)
def test_every_kind_of_fit_has_a_report(settings) -> None:
    t = np.linspace(0.0, 6.0, 14)
    Y = np.sqrt(1.6) * np.column_stack([np.sin(t), np.cos(t)]) + 0.05 * np.random.default_rng(1).standard_normal((14, 2))
    found = studied(fitted("a**2 + b**2 = 1.6", t, Y, **settings))
    assert found.plain is not None, found.plain_trouble
    assert found.violation is not None
    assert found.violation.own[0] < 1e-9
    assert 0.5 < lengthscales(found.model)[0] < 20.0
    assert noise_sds(found.model) == pytest.approx([0.05, 0.05], rel=1.0)
    transformed = "strategy" in settings and isinstance(settings["strategy"], Transformed)
    assert np.all(np.isnan(found.left_out.rmse)) if transformed else np.all(found.left_out.rmse < 0.5)
    assert ("left out" in findings(found, True) + findings(found, False)) is not transformed
    assert "How well the law holds" in render_fit(found, "title")


def findings(found: FitStudy, good: bool) -> str:
    return " ".join(entry.finding + entry.remedy for entry in advice(found) if entry.good is good)


def test_a_good_fit_is_called_good() -> None:
    x, Y = data(20)
    found = studied(fitted("a + b = 1", x, Y))
    assert "obey the law" in findings(found, True)
    assert findings(found, False) == ""
    assert verdict(found).kind in ("better", "same")
    page = render_fit(found, "title")
    assert page.index(verdict(found).text.split(":")[0]) < page.index('id="figures"')


def test_a_wrong_law_is_noticed() -> None:
    x, Y = data(20, 0.02)
    gp, told = caught(lambda: fitted("a + b = 1.5", x, Y))
    found = studied(gp, told)
    words = findings(found, False)
    assert "contradict" in words
    assert "worse with the law" in words
    assert verdict(found).kind == "worse"
    assert verdict(found).text.startswith("The law makes the predictions worse")


def test_short_lengthscales_are_noticed() -> None:
    rng = np.random.default_rng(0)
    found = studied(fitted(None, np.arange(12.0), rng.standard_normal((12, 2)), noise=0.01))
    assert "shorter than the distance between rows" in findings(found, False)


def test_wide_intervals_are_noticed() -> None:
    x, Y = data()
    gp = fitted(None, x, Y)
    far = study(gp, np.linspace(30.0, 40.0, 5)[:, None], (), lambda stage: None)
    assert "The intervals of a are wide" in findings(far, False)
    assert "wide" not in findings(studied(gp), False)


def test_points_beyond_the_data_are_mentioned() -> None:
    x, Y = data()
    gp = fitted("a + b = 1", x, Y)
    found = study(gp, np.linspace(0.0, 10.0, 21)[:, None], (), lambda stage: None)
    assert "48 % of the prediction points" in findings(found, True)


def test_a_rough_law_is_said_to_hold_up_to_its_error() -> None:
    x, Y = data()
    found = studied(fitted("a + b = 1 +- 0.2", x, Y))
    assert "'a + b = 1 +- 0.2' holds up to an error with a standard deviation of 0.2" in findings(found, True)
    assert "obey the law: on average" not in findings(found, True)


def test_output_known_from_the_law_alone() -> None:
    """Without the law such an output cannot be learned: there is no comparison, and the page says why."""
    x, Y = data()
    Y[:, 1] = np.nan
    found = studied(fitted("a + b = 1", x, Y))
    assert found.plain is None
    assert "never measured" in found.plain_trouble
    assert np.isnan(found.left_out.rmse[1])
    assert "no comparison without the law" in render_fit(found, "title")


def test_page_of_several_inputs_many_outputs_and_columns() -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.uniform(size=(15, 2)), columns=["p", "q"])
    Y = np.column_stack([np.sin(3 * frame["p"] + k) for k in range(14)]) + 0.01 * rng.standard_normal((15, 14))
    gp = sumgp.ConstrainedGP(
        None, outputs=[f"y{k}" for k in range(14)], uncertainty="plug-in", rank=2, restarts=0, noise="shared"
    )
    found = study(gp.fit(frame, Y), frame.to_numpy(), (), lambda stage: None)
    page = render_fit(found, "many")
    assert "The first 12 of 14 outputs" in page
    assert "drawn over p" in page


def test_a_grid_over_two_inputs_is_drawn_as_maps() -> None:
    rng = np.random.default_rng(2)
    x = rng.uniform(size=(15, 2))
    Y = np.column_stack([x[:, 0], 1.0 - x[:, 0]]) + 0.01 * rng.standard_normal((15, 2))
    gp = sumgp.ConstrainedGP("a + b = 1", outputs=["a", "b"], inputs=["p", "q"], uncertainty="plug-in", restarts=0).fit(x, Y)
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 4), np.linspace(0, 2, 5)), axis=-1).reshape(-1, 2)
    shuffled = rng.permutation(grid)
    found = study(gp, shuffled, (), lambda stage: None)
    own = map_panels(found, LIGHT)[0].marks[0]
    assert isinstance(own, Map)
    assert own.values.shape == (5, 4)
    at = np.array([[own.x[2], own.y[3]]])
    assert own.values[3, 2] == pytest.approx(gp.predict(at)[0, 0], abs=1e-9)
    assert [p.title for p in map_panels(found, LIGHT)][:3] == [
        "a, with the law",
        "a, without the law",
        "a, standard deviation",
    ]
    assert fit_pictures(found)[0].name == "maps"
    measured, without, own_sizes = law_panel(found, LIGHT).marks  # not in stripes over the first input
    for mark, count in ((measured, 15), (without, 20), (own_sizes, 20)):
        assert isinstance(mark, Curve)
        assert len(mark.x) == count
        assert 0.0 < mark.x[0] < mark.x[-1] < 1.0
        assert np.all(np.diff(mark.y) >= 0.0)
    assert measured.y[-1] == pytest.approx(np.abs(Y.sum(axis=1) - 1.0).max())
    assert not is_map(gp.posterior(shuffled[:-1]))
    assert default_count(2) == 900 > default_count(1)


def test_dots_of_many_rows_leave_the_map_to_be_seen() -> None:
    posterior: Any = SimpleNamespace(data=SimpleNamespace(x=np.zeros((600, 2)), measured=np.ones((600, 1), dtype=bool)))
    many = figures._measured(posterior, 0, LIGHT).size
    posterior.data.x, posterior.data.measured = posterior.data.x[:20], posterior.data.measured[:20]
    assert many < 1.0 < figures._measured(posterior, 0, LIGHT).size


def test_dark_figure_has_only_dark_colours() -> None:
    x, Y = data()
    for picture in fit_pictures(studied(fitted("a + b = 1", x, Y))):
        for old, new in zip((LIGHT.ink, LIGHT.panel, LIGHT.cycle[0]), (DARK.ink, DARK.panel, DARK.cycle[0]), strict=True):
            assert old.encode() in picture.light
            assert old.encode() not in picture.dark
            assert new.encode() in picture.dark
        assert len(picture.dark) == len(picture.light)
    assert in_dark(b"#1c2733 #ffffff") == b"#dde5ee #171d24"


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (0.123456, "0.1235"), (1e-9, "1.0e-09"), (np.nan, ""), (123456.0, "1.2e+05")]
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text
