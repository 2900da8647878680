"""Bands under a curved law are as much wider as the draws of hyperparameters disagree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm, t
from sklearn.gaussian_process.kernels import RBF

from sumgp import ConstrainedGP, Linearized
from sumgp.strategies import linearized
from sumgp.strategies.averaging import WIDENING
from sumgp.strategies.problem import Fitted, LocalPosterior
from sumgp.strategies.stacking import as_draws_disagree

ROWS = 6
CURVED, LINEAR = SimpleNamespace(is_linear=False), SimpleNamespace(is_linear=True)
X = np.linspace(0.0, 6.0, 12)[:, None]


@dataclass(frozen=True)
class Known:
    """A component of two outputs whose mean is the same everywhere, with variances of ``sd`` squared."""

    mean: float
    sd: float = WIDENING

    def widened(self, factor: float) -> Known:
        return replace(self, sd=factor * self.sd)

    @staticmethod
    def local_posteriors(components: Sequence[Known], x: np.ndarray, x_law: np.ndarray) -> list[LocalPosterior]:
        n = len(x)
        return [LocalPosterior(np.full((n, 2), c.mean), np.tile(c.sd**2 * np.eye(2), (n, 1, 1))) for c in components]


def widened(apart: float, effective: float, law: Any = CURVED, split: Any = None) -> tuple[Fitted, Fitted]:
    """Two components ``apart`` times their sd from their mean, before and after."""
    problem: Any = SimpleNamespace(
        x=np.zeros((ROWS, 1)), data=SimpleNamespace(x=np.zeros((ROWS, 1))), n_outputs=2, split=split
    )
    components: Any = (Known(apart), Known(-apart))
    before = Fitted(components, np.full(2, 0.5), law, {"effective_sample_size": effective, "widening": WIDENING})
    return before, as_draws_disagree(problem, before)


def student(effective: float) -> float:
    """What the variance between components is multiplied by."""
    return (effective + 1) / (effective - 1) * (t.ppf(0.975, effective - 1) / norm.ppf(0.975)) ** 2


@pytest.mark.parametrize("effective", [12.0, 40.5])
@pytest.mark.parametrize("apart", [0.0, 0.3, 0.8])
def test_what_few_draws_tell_of_their_spread_is_students(apart: float, effective: float) -> None:
    _, after = widened(apart, effective)
    expected = np.sqrt(1.0 + (student(effective) - 1.0) * apart**2)
    assert after.report["widening"] == pytest.approx(expected, rel=1e-9)
    assert [c.sd for c in after.components] == pytest.approx([expected] * 2, rel=1e-9)  # type: ignore[attr-defined]
    assert [c.mean for c in after.components] == [apart, -apart]  # type: ignore[attr-defined]


def test_branches_far_apart_do_not_make_bands_wide() -> None:
    assert widened(1e3, 20.0)[1].report["widening"] == pytest.approx(np.sqrt(student(20.0)), rel=1e-9)


def test_hardly_any_draws_count_as_five() -> None:
    """Student's quantile is 13 Gaussian ones at two draws: the warning for so few says enough."""
    assert widened(0.5, 1.2)[1].report["widening"] == widened(0.5, 5.0)[1].report["widening"]


@pytest.mark.parametrize("other", [{"law": LINEAR}, {"law": None}, {"split": object()}], ids=["linear", "none", "split"])
def test_other_laws_keep_their_bands(other: dict[str, Any]) -> None:
    before, after = widened(0.5, 12.0, **other)
    assert after is before


def test_a_single_set_of_hyperparameters_keeps_its_bands() -> None:
    problem: Any = None
    plug_in = Fitted((Known(0.0),), np.ones(1), CURVED, {})  # type: ignore[arg-type]
    assert as_draws_disagree(problem, plug_in) is plug_in


def test_a_fit_changes_its_bands_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = 0.1 * np.random.default_rng(0).standard_normal((12, 2))
    Y = np.column_stack([np.cos(X[:, 0]), -np.sin(X[:, 0])]) + noise
    gp = ConstrainedGP("z**2 + v**2 = 1", outputs=["z", "v"], strategy=Linearized(taper=None), kernel=RBF(), restarts=0)
    new = gp.fit(X, Y).fitted_
    monkeypatch.setattr(linearized, "as_draws_disagree", lambda problem, fitted: fitted)
    old = gp.fit(X, Y).fitted_
    factor = new.report["widening"] / WIDENING
    assert 1.0 / WIDENING < factor < 1.0  # a smooth curve and twelve rows: draws agree
    np.testing.assert_array_equal(new.weights, old.weights)
    x = gp.scaling_.inputs(X)
    for one, other in zip(new.components, old.components, strict=True):
        (mean, variance), (same, wider) = one.marginals(x, X), other.marginals(x, X)
        np.testing.assert_allclose(mean, same, atol=1e-9)
        np.testing.assert_allclose(variance, factor**2 * wider, rtol=1e-6, atol=1e-12)
