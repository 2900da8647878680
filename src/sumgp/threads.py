"""How many threads linear algebra may use."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _libraries() -> ThreadpoolController:
    # Looking for them takes as long as some fits' algebra; NumPy and SciPy load theirs when imported.
    return ThreadpoolController()


def limited_threads(threads: int | None) -> AbstractContextManager[Any]:
    """Within this context BLAS uses at most so many threads; None = as many as it likes."""
    return _libraries().limit(limits=threads, user_api="blas")
