"""What is being done, shown while it is done: on a terminal only, and apart from the results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def stages(console: Console, start: str) -> Iterator[Callable[[str], None]]:
    """A function to call with the name of each stage; nothing is shown where the console is no terminal."""
    if not console.is_terminal:
        yield lambda stage: None
        return
    with console.status(start) as status:
        yield lambda stage: status.update(stage)
