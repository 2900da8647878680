"""A sample of the soak test: random laws, units, offsets and gaps give finite results on the law, or a worded refusal."""

from __future__ import annotations

import pytest
from soak import ALLOWED
from support.random_problems import outcome, random_problem


@pytest.mark.parametrize("first", range(0, 60, 6))
def test_random_problems_end_well(first: int) -> None:
    found = {seed: outcome(random_problem(seed)) for seed in range(first, first + 6)}
    assert {seed: result for seed, result in found.items() if result not in ALLOWED} == {}
