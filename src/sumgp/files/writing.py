"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write all files, or none: each goes to a temporary name first, and all are renamed once the last is on disk.

    A folder made here is removed again if the disk is full or the program is stopped.
    """
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _put(folder, contents)
    finally:
        if made and not any(folder.iterdir()):
            folder.rmdir()


def write_file(path: Path, content: bytes) -> None:
    """Write one file into a folder that exists: whoever looks sees the old file or the new one."""
    _put(path.absolute().parent, {path.name: content})


def _put(folder: Path, contents: Mapping[str, bytes]) -> None:
    waiting: list[tuple[Path, Path]] = []
    try:
        for name, content in contents.items():
            waiting.append((_temporary(folder, name), folder / name))
            _fill(waiting[-1][0], content)
        for temporary, final in waiting:
            os.replace(temporary, final)
    finally:
        # Those that were renamed are gone already.
        for temporary, _ in waiting:
            temporary.unlink(missing_ok=True)


def _temporary(folder: Path, name: str) -> Path:
    handle, path = tempfile.mkstemp(prefix=f".{name}.", suffix=".part", dir=folder)
    os.close(handle)
    return Path(path)


def _fill(path: Path, content: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    # Temporary files are private; results get the rights any new file would have.
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)
