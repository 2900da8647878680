"""Transformed with every engine on every law kind and missing pattern, or refused with the strategy to use instead."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.checks import check_numbers, check_on_law, data, estimator
from conformance.laws import ASKED, LAWS, PATTERNS, X
from sklearn.gaussian_process.kernels import RBF

from sumgp import (
    ConstraintError,
    ExpectationPropagation,
    Gaussian,
    Laplace,
    MomentMatched,
    Transformed,
    Variational,
)
from sumgp.paper_method.engines import Engine

# A new engine joins by one line.
ENGINES: dict[str, Engine] = {
    "laplace": Laplace(),
    "variational": Variational(),
    "ep": ExpectationPropagation(),
    "moments": MomentMatched(),
    "gaussian": Gaussian(),
}

# What Transformed does not promise, and the words that say so; every refusal names the strategy to use.
REFUSED = {
    "varying coefficients": "constant coefficients",
    "part of the inputs": "constant coefficients",
    "unknown total": "known totals",
    "squares, unknown total": "known totals",
    "length": "sum of transforms of single outputs",
    "product": "sum of transforms of single outputs",
}
SAME_LAW = ("formula",)  # the constant law once it is read: test_strategies has it
EVERY_PATTERN = ("constant", "squares", "logarithm")
CASES = [
    (engine, kind, pattern)
    for engine in ENGINES
    for kind in LAWS
    for pattern in PATTERNS
    if kind not in (*REFUSED, *SAME_LAW)
    and (pattern == "scattered" or kind in EVERY_PATTERN)
    and (pattern != "last_never" or LAWS[kind].determines_last)
]

pytestmark = pytest.mark.filterwarnings("ignore::sumgp.SumGPWarning")


@pytest.mark.parametrize(("engine", "kind", "pattern"), CASES)
def test_promised_combinations_work_and_repeat(engine: str, kind: str, pattern: str) -> None:
    law = LAWS[kind]
    gp = estimator(Transformed(ENGINES[engine]), law, RBF()).fit(X, data(law, pattern))
    posterior = gp.posterior(ASKED)
    check_numbers(posterior)
    check_on_law(posterior)
    assert gp.fit_report_.status
    if (kind, pattern) == ("squares", "scattered"):
        again = estimator(Transformed(ENGINES[engine]), law, RBF()).fit(X, data(law, pattern)).posterior(ASKED)
        np.testing.assert_array_equal(again.mean, posterior.mean)
        np.testing.assert_array_equal(again.sample(2), posterior.sample(2))


@pytest.mark.parametrize("kind", sorted(REFUSED))
@pytest.mark.parametrize("engine", ENGINES)
def test_other_laws_are_refused_with_the_strategy_to_use(engine: str, kind: str) -> None:
    law = LAWS[kind]
    with pytest.raises(ConstraintError, match=rf"{REFUSED[kind]}.*use Linearized\(\)"):
        estimator(Transformed(ENGINES[engine]), law, RBF()).fit(X, data(law, "scattered"))


def test_engines_are_not_all_the_same() -> None:
    """A table whose entries all led to one engine would pass everything above."""
    law = LAWS["squares"]
    y = data(law, "scattered")
    stds = [estimator(Transformed(engine), law, RBF()).fit(X, y).posterior(ASKED).std for engine in ENGINES.values()]
    assert all(not np.allclose(a, b, rtol=1e-6) for i, a in enumerate(stds) for b in stds[:i])
