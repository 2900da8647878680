"""A person in front of the page, whose folder is removed afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from app.person import Person, person_with

from sumgp.app.store import Limits


@pytest.fixture
def person() -> Iterator[Person]:
    found = person_with(Limits(upload_bytes=200_000, form_bytes=50_000, rows=500, points=1_000))
    yield found
    found.workspace.close()
