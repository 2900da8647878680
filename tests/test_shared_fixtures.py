"""What a module computes for all of its tests is computed once, not once in each process; the unmeasured tests exist."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def shared() -> str:
    return "computed once"


def test_tests_that_share_a_fixture_run_in_one_process(shared: str, request: pytest.FixtureRequest) -> None:
    """pytest-xdist marks the tests it keeps together by a suffix of their names."""
    assert shared
    assert "PYTEST_XDIST_WORKER" not in os.environ or "@" in request.node.nodeid


def test_the_list_of_unmeasured_tests_names_tests() -> None:
    """A test that was renamed would be measured again without a word."""
    here = Path(__file__).parent
    for line in (here / "unmeasured.txt").read_text(encoding="utf-8").split():
        place, _, name = line.partition("::")
        assert place.startswith("tests/")
        (found, *_) = sorted(here.glob(f"{place.removeprefix('tests/')}*"))
        assert not name or f"def {name}(" in found.read_text(encoding="utf-8"), line
