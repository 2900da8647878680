"""The problems of tools/never_worse.py: truths that keep their laws, slopes that are right, scores that are the fits'."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from equivalence.small_problems import differences

import never_worse


def test_the_skeleton_keeps_its_bones() -> None:
    case = never_worse.skeleton(1000)
    law = never_worse.bones().bind(never_worse.OUTPUTS, ["t"])
    np.testing.assert_allclose(law.residual(case.truth, case.x_test), 0.0, atol=1e-12)
    assert np.std(case.y - never_worse.skeleton(1001).y) > 0.1
    point, x = case.truth[:1], case.x_test[:1]
    slopes = [differences(lambda f, r=r: float(law.residual(f[None], x)[0, r]), point[0]) for r in range(3)]
    np.testing.assert_allclose(law.jacobian(point, x)[0], slopes, atol=1e-6)


@pytest.mark.parametrize("laws", never_worse.LAWS)
def test_windows_have_the_laws_they_are_named_for(laws: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUMGP_DATA_DIR", raising=False)
    case = never_worse.window(1000, laws)
    law = case.law.bind(never_worse.OUTPUTS[:8], ["t"])
    assert law.n_rows == {"energy": 1, "arms": 2, "energy + arms + velocities": 5}[laws]
    size = law.magnitude(case.truth, case.x_test)
    assert np.median(np.abs(law.residual(case.truth, case.x_test)) / np.maximum(size, 1e-12)) < 0.1


def test_scores_name_each_strategy_and_the_law_is_kept() -> None:
    found = never_worse.scores("skeleton", 1000, "plug-in")
    assert list(found) == ["no law", "projected", "linearized"]
    assert found["linearized"][1] < 1e-9
    assert 0.0 < found["linearized"][0] < found["no law"][0]
