"""How many threads linear algebra may use."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

SMALL_BLAS = 400  # measured entries below which threads cost more than they give


@cache
def _libraries() -> ThreadpoolController:
    # Looking for them takes as long as some fits' algebra; NumPy and SciPy load theirs when imported.
    return ThreadpoolController()


def limited_threads(threads: int | None) -> AbstractContextManager[Any]:
    """Within this context BLAS uses at most so many threads; None = as many as it likes."""
    return _libraries().limit(limits=threads, user_api="blas")


def threads_for(entries: int) -> AbstractContextManager[Any]:
    """Threads that suit so many measured entries: one, or as many as BLAS likes."""
    return limited_threads(1 if entries <= SMALL_BLAS else None)
