"""What is being done, shown while it is done: on a terminal only, and apart from the results."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

LOG = logging.getLogger("sumgp")


@contextmanager
def stages(console: Console, start: str) -> Iterator[Callable[[str], None]]:
    """A function to call with the name of each stage; the log gets them too. Off a terminal nothing is drawn."""
    if not console.is_terminal:
        yield lambda stage: LOG.info(stage)
        return
    spinner = "dots" if console.encoding.startswith("utf") else "line"
    with console.status(start, spinner=spinner) as status:

        def tell(stage: str) -> None:
            LOG.info(stage)
            status.update(stage)

        yield tell
