"""Rows that stray further than one noise explains, and what closed data say of a kind before any row is left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import sumgp
from sumgp.strategies import Fitted, stacking
from sumgp.strategies.stacking import ROWS_BEFORE, ROWS_BEFORE_CLOSED, STRAYING, WIDELY, Kind

OUTPUTS = ["a", "b", "c", "total"]


def table(seed: int, strays: float, closed: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, three parts with their total, noise ``strays`` times as large in every tenth row, and the truth."""
    generator = np.random.default_rng(seed)
    t = np.linspace(0.0, 6.0, 80)
    parts = np.stack([np.sin(t), np.cos(1.3 * t), 0.1 * t], axis=1)
    size = 0.1 * np.where(generator.permutation(80) % 10 == 0, strays, 1.0)[:, None]
    truth = np.column_stack([parts, parts.sum(axis=1)])
    noisy = parts + size * generator.standard_normal(parts.shape)
    total = noisy.sum(axis=1) if closed else truth[:, 3] + size[:, 0] * generator.standard_normal(80)
    return t, np.column_stack([noisy, total]), truth


def fitted(seed: int, strays: float, closed: bool = False) -> sumgp.ConstrainedGP:
    t, y, _ = table(seed, strays, closed)
    law = "a + b + c = total" if closed else None
    return sumgp.ConstrainedGP(law, outputs=OUTPUTS, inputs=["t"]).fit(t[::2], y[::2])


def test_rows_that_stray_give_predictions_heavier_tails() -> None:
    """Mean log density of rows that were not fitted: higher than under the same fit without the wider kind."""
    gp = fitted(1001, 6.0)
    t, y, _ = table(1001, 6.0)
    whole = gp.fitted_
    assert gp.fit_report_["kinds"][WIDELY] > 0.04
    mixed = gp.posterior(t[1::2]).observed().log_density(y[1::2]).mean()
    narrow = [k for k, c in enumerate(whole.components) if getattr(c, "widening", 1.0) < STRAYING]
    weights = whole.weights[narrow] / whole.weights[narrow].sum()
    gp.fitted_ = Fitted(tuple(whole.components[k] for k in narrow), weights, whole.law, whole.report)
    assert mixed > gp.posterior(t[1::2]).observed().log_density(y[1::2]).mean() + 0.1


def test_even_noise_leaves_the_wider_kind_without_weight() -> None:
    assert fitted(1001, 1.0).fit_report_["kinds"][WIDELY] < 0.05


@pytest.mark.parametrize("closed", [True, False])
def test_closed_data_begin_with_outputs_of_their_own(closed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Sequence[float]] = []
    usual = stacking.combined

    def spied(fitted: Fitted, kinds: Sequence[Kind], before: Sequence[float] = ROWS_BEFORE) -> Fitted:
        seen.append(before)
        return usual(fitted, kinds, before)

    monkeypatch.setattr(stacking, "combined", spied)
    t, y, _ = table(1000, 1.0, closed)
    sumgp.ConstrainedGP("a + b + c = total", outputs=OUTPUTS, inputs=["t"], restarts=0).fit(t[::4], y[::4])
    assert seen == [ROWS_BEFORE_CLOSED if closed else ROWS_BEFORE]
