"""Outputs of a map one by one, beside those that vary together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sumgp
from sumgp import ConstrainedGP, Vecchia
from sumgp.solvers.vecchia import search
from sumgp.strategies import OwnComponent, vecchia_own
from sumgp.strategies.vecchia_output import MapOutput

LAW, NAMES = "a + b + c = 1", ["a", "b", "c"]
ROWS = 100  # fewer than the nodes of a prediction, which is then exact


def rows_of(count: int, second: str = "curved") -> tuple[np.ndarray, np.ndarray]:
    """Three outputs of sum one, the second a "curved" function of the first, a "multiple" of it, or its "own" one."""
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(count, 2))
    a = np.sin(6 * x[:, 0] + 2 * x[:, 1])
    curved, own = 1.0 / (1.0 + np.exp(-4.0 * a)), np.cos(14 * x[:, 1]) * np.sin(9 * x[:, 0])
    b = {"curved": curved, "multiple": 0.5 * a, "own": own}[second]
    f = np.column_stack([a, b, 1.0 - a - b])
    return x, f + 0.1 * rng.standard_normal(f.shape)


@pytest.fixture(scope="module")
def small() -> ConstrainedGP:
    return ConstrainedGP(LAW, outputs=NAMES, solver=Vecchia()).fit(*rows_of(ROWS))


def own(gp: ConstrainedGP) -> OwnComponent:
    (component,) = [c for c in gp.fitted_.components if isinstance(c, OwnComponent)]
    return component


def test_both_kinds_are_weighed_and_obey_the_law(small: ConstrainedGP) -> None:
    assert set(small.fit_report_["kinds"]) == {"shared", "own"}
    assert min(small.fit_report_["kinds"].values()) > 0.05
    whole = small.posterior(rows_of(40)[0] + 0.01)
    assert np.max(np.abs(whole.residual())) < 1e-12
    np.testing.assert_allclose(whole.sample(5, random_state=0).sum(axis=2), 1.0, atol=1e-10)
    inputs = small.scaling_.inputs(whole.x)
    mean, _ = own(small).marginals(inputs, whole.x)
    np.testing.assert_allclose(small.scaling_.restore(mean).sum(axis=1), 1.0, atol=1e-10)


def test_values_left_out_are_those_of_a_fit_without_them(small: ConstrainedGP) -> None:
    output: Any = own(small).outputs[1]
    assert isinstance(output, MapOutput)
    assert len(output.fields) > 1
    field = output.fields[0]
    one = replace(output, fields=(field,), weights=np.ones(1), scales=output.scales[:1])
    for i in (0, 17, 60):
        kept = np.arange(len(field.x)) != i
        fewer = replace(field, x=field.x[kept], precision=field.precision[kept], pulled=field.pulled[kept])
        mean, variance = replace(one, fields=(fewer,)).moments(field.x[[i]])
        value = field.pulled[i, 0] * output.scales[0]
        residual, whole = one.without(field.x[[i]], np.array([value]))
        np.testing.assert_allclose(residual, value - mean, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(whole, variance + output.scales[0] ** 2, rtol=1e-6)


def test_points_together_have_the_sds_that_they_have_alone(small: ConstrainedGP) -> None:
    at = small.scaling_.inputs(rows_of(12)[0] + 0.02)
    for output in own(small).outputs:
        np.testing.assert_allclose(np.diagonal(output.covariance(at)), output.moments(at)[1], rtol=1e-10)


def test_a_stored_model_predicts_the_same(small: ConstrainedGP, tmp_path: Path) -> None:
    small.save(tmp_path / "map.sumgp")
    again = sumgp.load(tmp_path / "map.sumgp")
    at = rows_of(30)[0]
    np.testing.assert_array_equal(again.posterior(at).mean, small.posterior(at).mean)
    np.testing.assert_array_equal(again.posterior(at).std, small.posterior(at).std)


@pytest.mark.parametrize(("second", "lost"), [("own", False), ("multiple", True)])
def test_many_rows_are_fitted_one_by_one_only_where_a_latent_is_lost(
    second: str, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "COMPARED_ON", 128)
    monkeypatch.setattr(search, "FEW_VALUES", 128)
    x, y = rows_of(300, second)
    gp = ConstrainedGP(LAW, outputs=NAMES, solver=Vecchia()).fit(x, y)
    assert ("kinds" in gp.fit_report_.details) == lost


def test_outputs_far_behind_have_no_search_for_kernels_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """One kernel each tells that multiples are better together: a search each, from where the shared one ended."""
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(100, 2))
    a = np.sin(12 * x[:, 0]) * np.cos(12 * x[:, 1])
    tried: list[int] = []

    def counted(rows: Any, log_signal: Any, candidates: Any, *given: Any) -> Any:
        tried.append(len(candidates))
        return search.fit_map(rows, log_signal, candidates, *given)

    monkeypatch.setattr(vecchia_own, "fit_map", counted)
    y = np.column_stack([a, 2.0 * a]) + 0.1 * rng.standard_normal((100, 2)) * [1.0, 2.0]
    gp = ConstrainedGP(outputs=["a", "b"], solver=Vecchia()).fit(x, y)
    assert gp.fit_report_["kinds"] == {"shared": 1.0}
    assert tried == [1, 1]


def test_gaps_speak_for_outputs_that_vary_together() -> None:
    """A value is foretold by the others of its row where outputs are multiples, which rows left out whole do not show."""
    rng = np.random.default_rng(5)
    x = rng.uniform(size=(150, 2))
    a = np.sin(9 * x[:, 0]) * np.cos(8 * x[:, 1])
    y = np.column_stack([a, 2.0 * a]) + 0.05 * rng.standard_normal((150, 2))
    y[::3, 1] = np.nan
    gp = ConstrainedGP(outputs=["a", "b"], solver=Vecchia()).fit(x, y)
    assert len(gp.fit_report_["kind_scores"]["shared"]) == 2
    assert gp.fit_report_["kinds"]["shared"] > 0.8
    error = gp.posterior(x[::3]).mean[:, 1] - 2.0 * a[::3]
    assert np.sqrt(np.mean(error**2)) < 0.1
