"""What a module computes for all of its tests is computed once, not once in each process."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="module")
def shared() -> str:
    return "computed once"


def test_tests_that_share_a_fixture_run_in_one_process(shared: str, request: pytest.FixtureRequest) -> None:
    """pytest-xdist marks the tests it keeps together by a suffix of their names."""
    assert shared
    assert "PYTEST_XDIST_WORKER" not in os.environ or "@" in request.node.nodeid
