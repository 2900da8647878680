"""Searches for the hyperparameters of large maps."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import sumgp
from sumgp.solvers.vecchia import search
from sumgp.solvers.vecchia.covariance import LatentKernels, ScaledCovariance
from sumgp.solvers.vecchia.mixing import Found, LengthPrior, MixedObjective, MixedRows, search_near
from sumgp.solvers.vecchia.search import KEPT_RANGE, LARGER, MOST_COMPARED_ON, SearchEnd, _stages, least_theta


class _Bowl(SimpleNamespace):
    """|x|^2 for 100 rows."""

    rows = SimpleNamespace(x=np.zeros((100, 1)))

    def bounds(self) -> list[tuple[float, float]]:
        return [(-10.0, 10.0)] * 3

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        return float(x @ x), 2.0 * x


def test_a_search_that_its_curvature_misled_does_not_end_as_converged() -> None:
    bowl: Any = _Bowl()
    far_too_long = Found(np.array([1.0, 2.0, 3.0]), 0.0, "", 0, 1e8 * np.eye(3))
    found = search_near(bowl, far_too_long, 25, 0.05)
    assert found.status == "converged"
    assert found.value < 0.1  # 1400 at the start


def test_terms_of_long_range_keep_it_on_all_rows() -> None:
    kernel = Matern([0.1, 0.2], nu=1.5) + ConstantKernel(2.0) * Matern([1.0, 3.0], nu=1.5)
    rows = MixedRows(np.zeros((5, 2)), np.zeros((5, 1)), np.ones(5), np.eye(1))
    prior = LengthPrior(*(np.zeros(5) for _ in range(3)))
    objective = MixedObjective(rows, LatentKernels((ScaledCovariance(kernel),)), ((),), prior)
    end = SearchEnd(objective, Found(np.append(kernel.theta, [0.0, 1.0]), 0.0, "", 0, np.eye(7)))
    least = least_theta(end)
    np.testing.assert_array_equal(least[:3], -np.inf)
    np.testing.assert_allclose(np.exp(least[3:]), KEPT_RANGE * np.array([1.0, 3.0]))
    low = np.array(MixedObjective(rows, objective.kernels, ((),), prior, least).bounds())[:, 0]
    np.testing.assert_allclose(low[3:5], least[3:])
    np.testing.assert_allclose(low[:3], np.array(objective.bounds())[:3, 0])


def test_very_many_rows_are_searched_in_stages() -> None:
    """A search that begins with 2,000 of 100,000 rows had nearly all its evaluations on all of them."""
    for rows in (3_000, 20_000, 45_000):
        assert _stages(MOST_COMPARED_ON, rows) == []
    assert _stages(MOST_COMPARED_ON, 100_000) == [100_000 // LARGER]
    million = _stages(MOST_COMPARED_ON, 1_000_000)
    assert million == sorted(million)
    assert len(million) == 2


@pytest.mark.parametrize("searched_on", [search.WIDE_ROWS, 1200])
def test_the_lengthscale_of_a_smooth_map_of_many_rows(searched_on: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The field has 0.25. With 64 neighbours 0.32 and 0.35: intervals then hold 80 %, where these hold 97."""
    monkeypatch.setattr(search, "WIDE_ROWS", searched_on)
    rng, waves = np.random.default_rng(1005), 3000
    x, frequencies = rng.uniform(0, 1, (1900, 2)), rng.standard_normal((2, waves)) / 0.25
    f = np.sqrt(2 / waves) * np.cos(x @ frequencies + rng.uniform(0, 2 * np.pi, waves)) @ rng.standard_normal(waves)
    y = f + 0.3 * rng.standard_normal(1900)
    gp = sumgp.ConstrainedGP(solver=sumgp.Vecchia(), kernel=RBF([0.3, 0.3]), uncertainty="plug-in").fit(x[:1500], y[:1500])
    assert gp.fit_report_.status == "converged"
    np.testing.assert_allclose(gp.fit_report_["lengthscales"], 0.25, rtol=0.2)


def test_priors_of_kernels_with_more_parameters_integrate_to_one() -> None:
    """Averages over kernels weigh them by evidence; without this factor two lengthscales more were worth 5 nats."""
    for is_length in (True, False):
        prior = LengthPrior(np.array([0.7]), np.array([is_length]), np.array([-9.0]))
        density = lambda t, prior=prior: np.exp(prior(np.array([t]))[0] - prior.log_mass)  # noqa: E731
        total = quad(density, -60.0, 0.7)[0] + quad(density, 0.7, 150.0)[0]
        assert total == pytest.approx(1.0, abs=1e-9)
        assert prior.repeated(3).log_mass == pytest.approx(3.0 * prior.log_mass)
