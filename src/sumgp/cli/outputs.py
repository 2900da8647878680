"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from sumgp.errors import DataError, worded


def check_folder(folder: Path, force: bool) -> None:
    """Refuse a folder that results would be mixed into, and one that cannot be written to, before any work is done."""
    if folder.exists() and not folder.is_dir():
        raise DataError(worded("--out", "a folder", f"the file {str(folder)!r}", "choose another name"))
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise DataError(
            worded("--out", "a new or empty folder", f"{str(folder)!r}, which has files", "choose another or add --force")
        )
    parent = next(p for p in (folder, *folder.absolute().parents) if p.is_dir())
    if not os.access(parent, os.W_OK | os.X_OK):
        raise DataError(
            worded("--out", "a folder that may be written to", f"no permission in {str(parent)!r}", "choose another")
        )


def check_file(path: Path, force: bool) -> None:
    """The same for a single file."""
    if path.is_dir():
        raise DataError(worded("-o", "the name of a file", f"the folder {str(path)!r}", "add a file name"))
    if path.exists() and not force:
        raise DataError(worded("-o", "a new file", f"{str(path)!r}, which exists", "choose another name or add --force"))
    if not path.absolute().parent.is_dir():
        raise DataError(worded("-o", "a file in an existing folder", f"{str(path)!r}", "create the folder first"))


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write all files, or none: each goes to a temporary name first, and all are renamed once the last is on disk.

    A folder made here is removed again if the disk is full or the program is stopped.
    """
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    waiting: list[tuple[Path, Path]] = []
    try:
        for name, content in contents.items():
            waiting.append((_temporary(folder, name), folder / name))
            _fill(waiting[-1][0], content)
        for temporary, final in waiting:
            os.replace(temporary, final)
    except BaseException:
        for temporary, _ in waiting:
            temporary.unlink(missing_ok=True)
        if made and not any(folder.iterdir()):
            folder.rmdir()
        raise


def write_file(path: Path, content: bytes) -> None:
    """Write one file, or leave what was there."""
    write_files(path.absolute().parent, {path.name: content})


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
