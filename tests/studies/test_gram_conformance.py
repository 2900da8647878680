"""Lengths by way of products, with and without the law, for every missing pattern."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.laws import PATTERNS

from sumgp_studies.gram import GramChoices, fit_products
from sumgp_studies.gram_matrix import Gram

T = np.linspace(0.0, 2.0, 9)
LENGTH = 1.25**0.5
GRAM = Gram(2, [(0, 1, LENGTH)], 2.0 * np.eye(2))

pytestmark = pytest.mark.filterwarnings("ignore::sumgp.SumGPWarning")


def rod() -> np.ndarray:
    """(9, 4) ends of a rod that turns while it moves."""
    start = np.column_stack([1.0 + 0.2 * T, 2.0 - 0.1 * T])
    return np.hstack([start, start + LENGTH * np.column_stack([np.cos(0.8 * T), np.sin(0.8 * T)])])


# A coordinate that was never measured leaves products without any measurement.
@pytest.mark.parametrize("pattern", [name for name in PATTERNS if name != "last_never"])
@pytest.mark.parametrize("constrained", [True, False])
@pytest.mark.parametrize("project", [True, False])
def test_every_pattern(pattern: str, constrained: bool, project: bool) -> None:
    truth = rod()
    y = PATTERNS[pattern](truth + 0.01 * np.random.default_rng(3).standard_normal(truth.shape))
    posterior = fit_products(GRAM, T[:, None], y, GramChoices(constrained, "plug-in", 0, project)).posterior(T[:, None])
    lower, upper = posterior.interval()
    for values in (posterior.mean, posterior.std, lower, upper):
        assert np.all(np.isfinite(values))
    assert np.all(lower <= upper)
    assert np.sqrt(np.mean((posterior.mean - truth) ** 2)) < 0.1
    residual = np.max(np.abs(GRAM.residual(posterior.mean)))
    assert residual < 1e-9 if project else residual > 1e-9
