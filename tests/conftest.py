"""Settings every test runs under: repeatable property tests, figures without a screen."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import numpy as np
import pytest

# Through the environment, so that programs started by a test draw without a screen as well.
os.environ["MPLBACKEND"] = "Agg"

hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("repeatable")

# Many whole fits that are judged by their numbers: measuring the lines that they run makes them half as slow again, and
# the tests of the parts run the same lines.
FITS = ("calibration", "equivalence", "properties", "studies", "trust")
FITS_AT_TOP = ("test_docs_examples.py", "test_gallery.py", "test_random_problems.py", "test_sklearn.py")


@pytest.fixture
def rng() -> np.random.Generator:
    """A fresh generator with a fixed seed: the same numbers whatever ran before."""
    return np.random.default_rng(0)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a fixture of their module run in one process, so that it is computed once."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and item.path.relative_to(here).parts[0] in (*FITS, *FITS_AT_TOP):
            item.add_marker("no_cover")
        found = item._fixtureinfo.name2fixturedefs.values() if isinstance(item, pytest.Function) else ()
        if any(fixture.scope == "module" for *_, fixture in found):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.split("::")[0]))
