"""Settings every test runs under: repeatable property tests, figures without a screen."""

from __future__ import annotations

import os

import hypothesis
import numpy as np
import pytest

# Through the environment, so that programs started by a test draw without a screen as well.
os.environ["MPLBACKEND"] = "Agg"

hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("repeatable")

MOST_PROCESSES = 5  # a container may see more cores than it may use; each process takes 400 MB


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: some tests wait for programs that they start."""
    return min((os.cpu_count() or 1) + 1, MOST_PROCESSES)


@pytest.fixture
def rng() -> np.random.Generator:
    """A fresh generator with a fixed seed: the same numbers whatever ran before."""
    return np.random.default_rng(0)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a fixture of their module run in one process, so that it is computed once."""
    for item in items:
        found = item._fixtureinfo.name2fixturedefs.values() if isinstance(item, pytest.Function) else ()
        if any(fixture.scope == "module" for *_, fixture in found):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.split("::")[0]))
