"""Folders and files that results may go to, checked before any work is done, and what is said meanwhile."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from rich.console import Console

from sumgp.errors import DataError


def check_folder(folder: Path, force: bool) -> None:
    """Refuse a folder that results would be mixed into, and one that cannot be written to, before any work is done."""
    if folder.exists() and not folder.is_dir():
        raise DataError("--out", "a folder", f"the file {str(folder)!r}", "choose another name")
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise DataError(
            "--out", "a new or empty folder", f"{str(folder)!r}, which has files", "choose another or add --force"
        )
    parent = next(p for p in (folder, *folder.absolute().parents) if p.is_dir())
    if not os.access(parent, os.W_OK | os.X_OK):
        raise DataError("--out", "a folder that may be written to", f"no permission in {str(parent)!r}", "choose another")


def check_file(path: Path, force: bool) -> None:
    """The same for a single file."""
    if path.is_dir():
        raise DataError("-o", "the name of a file", f"the folder {str(path)!r}", "add a file name")
    if path.exists() and not force:
        raise DataError("-o", "a new file", f"{str(path)!r}, which exists", "choose another name or add --force")
    if not path.absolute().parent.is_dir():
        raise DataError("-o", "a file in an existing folder", f"{str(path)!r}", "create the folder first")


def load_plotting() -> None:
    """Matplotlib without the docstrings that it writes for each of its classes: a third of its loading time, and a program
    shows none of them. For the command line only; in a user's own process they stay."""
    from matplotlib import artist as artists

    writer = artists.kwdoc
    artists.kwdoc = lambda artist: ""
    try:
        import_module("matplotlib.figure")
    finally:
        artists.kwdoc = writer


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
