"""Every strategy on every law kind and missing pattern: finite, on the law, repeatable, or refused with a remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conformance.checks import check_numbers, check_on_law, data, estimator
from conformance.laws import ASKED, LAWS, PATTERNS, X
from sklearn.gaussian_process.kernels import RBF

from sumgp import Conditioned, ConstrainedGP, ConstraintError, Linearized, Projected, Unconstrained
from sumgp.strategies import Strategy

# strategy, whether nonlinear laws are promised, whether predictions are on the law
STRATEGIES: dict[str, tuple[Strategy | None, bool, bool]] = {
    "chosen": (None, True, True),
    "conditioned": (Conditioned(), False, True),
    "conditioned, joint": (Conditioned(joint=True), False, True),
    "linearized": (Linearized(), True, True),
    "linearized, jointly": (Linearized(taper=None), True, True),
    "projected": (Projected(), True, True),
    "unconstrained": (Unconstrained(), True, False),
}

pytestmark = pytest.mark.filterwarnings("ignore::sumgp.SumGPWarning")


def check(posterior: Any, on_law: bool) -> None:
    check_numbers(posterior)
    np.testing.assert_allclose(
        np.diagonal(posterior.covariance()), posterior.std.ravel() ** 2, rtol=1e-5, atol=1e-10 * np.max(posterior.std) ** 2
    )
    if on_law:
        check_on_law(posterior)


# Gaps at random and an output never measured for every law; the other patterns for one law of each sort.
EVERY_PATTERN = ("constant", "varying coefficients", "squares", "length")
CASES = [
    (s, k, p)
    for s in STRATEGIES
    for k in LAWS
    for p in PATTERNS
    if (p == "scattered" or (p == "last_never" and LAWS[k].determines_last) or k in EVERY_PATTERN)
    and (s != "chosen" or k in EVERY_PATTERN)
]


@pytest.mark.parametrize(("strategy", "kind", "pattern"), CASES)
def test_promised_combinations_work_and_repeat_and_others_are_refused(strategy: str, kind: str, pattern: str) -> None:
    way, nonlinear, on_law = STRATEGIES[strategy]
    law = LAWS[kind]
    y = data(law, pattern)
    if not law.linear and not nonlinear:
        with pytest.raises(ConstraintError, match=r"linear laws only.*use Linearized\(\)"):
            estimator(way, law).fit(X, y)
        return
    # All candidate kernels on complete data, one elsewhere: half the time.
    kernel = None if pattern == "complete" else RBF()
    gp = estimator(way, law, kernel).fit(X, y)
    posterior = gp.posterior(ASKED)
    check(posterior, on_law)
    assert gp.fit_report_.status
    if kind in EVERY_PATTERN and pattern == "scattered":
        again = estimator(way, law, kernel).fit(X, y).posterior(ASKED)
        np.testing.assert_array_equal(again.mean, posterior.mean)
        np.testing.assert_array_equal(again.sample(2), posterior.sample(2))


def test_an_output_outside_the_law_that_was_never_measured_is_refused() -> None:
    law = LAWS["an output outside"]
    with pytest.raises(ConstraintError, match=r"'y3' was never measured and no law determines it"):
        estimator(None, law).fit(X, data(law, "last_never"))


@pytest.mark.parametrize("kind", ["part of the inputs", "unknown total", "squares, unknown total"])
def test_an_output_that_the_law_leaves_open_gets_a_wide_band(kind: str) -> None:
    """Never measured, and determined only in part: as uncertain as what is not known."""
    law = LAWS[kind]
    posterior = estimator(None, law).fit(X, data(law, "last_never")).posterior(ASKED)
    assert np.all(np.isfinite(posterior.mean))
    assert posterior.std[-1, -1] > 3.0 * np.min(posterior.std[:, 0])


@pytest.mark.parametrize("strategy", [n for n in STRATEGIES if n not in ("chosen", "unconstrained")])
def test_a_strategy_for_laws_refuses_to_work_without_one(strategy: str) -> None:
    with pytest.raises(ConstraintError, match=r"needs a law, got constraint=None; .*Unconstrained\(\)"):
        ConstrainedGP(strategy=STRATEGIES[strategy][0]).fit(X, data(LAWS["constant"], "complete"))
