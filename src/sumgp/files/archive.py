"""The file itself: an uncompressed zip of ``model.json`` and ``arrays/N.npy``, checked before anything is believed.

Nothing is compressed, so that a file cannot hold more than its own size; names, sizes, kinds of numbers and checksums
are verified, and every fault is a DataError with one line. Files appear whole or not at all.
"""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sumgp.errors import DataError

DOCUMENT = "model.json"
ARRAY = re.compile(r"arrays/(0|[1-9][0-9]{0,5})\.npy")
LARGEST_FILE = 4_000_000_000  # bytes, unpacked: no fit that memory allows is as large
LARGEST_DOCUMENT = 50_000_000  # bytes of the JSON part, which holds no arrays
MOST_ENTRIES = 200_000  # files in the archive: each draw of hyperparameters has a few arrays
LONGEST_HEADER = 4096  # bytes of the header of an array
KINDS = {"<f8": np.float64, "<i8": np.int64, "|b1": np.bool_}
DATE = (1980, 1, 1, 0, 0, 0)  # the same model gives the same bytes whenever it is saved


def pack(document: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> bytes:
    """The archive as bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        text = json.dumps(document, allow_nan=False, separators=(",", ":"))
        archive.writestr(zipfile.ZipInfo(DOCUMENT, DATE), text.encode())
        for number, array in enumerate(arrays):
            archive.writestr(zipfile.ZipInfo(f"arrays/{number}.npy", DATE), _array_bytes(array))
    return buffer.getvalue()


def _array_bytes(array: np.ndarray) -> bytes:
    """One array in NumPy's own format; rows or columns first as in memory, so that products round alike."""
    kind = {"f": np.float64, "i": np.int64, "u": np.int64, "b": np.bool_}.get(array.dtype.kind)
    if kind is None:
        raise DataError(f"save: expected arrays of numbers, got {array.dtype}; this model cannot be stored")
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        array = np.ascontiguousarray(array)
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array.astype(np.dtype(kind).newbyteorder("<"), copy=False), (1, 0), allow_pickle=False)
    return buffer.getvalue()


def unpack(path: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The document and the arrays of a file, or DataError."""
    try:
        if path.exists() and not path.is_file():
            raise DataError("expected a model file, got a folder or device; give the path that save() wrote")
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise DataError(f"expected a model file of at most {LARGEST_FILE} bytes, got {size}; it is another file")
        with zipfile.ZipFile(path) as archive:
            entries = _checked_entries(archive, size)
            document = _document(archive.read(entries.pop(DOCUMENT)))
            arrays = [_array(archive.read(entries[name])) for name in _in_order(entries)]
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    except (zipfile.BadZipFile, EOFError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: damaged, truncated, or not a model file ({error}); give a file written by save(), or save again"
        ) from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); check the path") from error
    return document, arrays


def _checked_entries(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    entries = archive.infolist()
    if len(entries) > MOST_ENTRIES:
        raise DataError(f"{len(entries)} entries are more than any model has; refused")
    names = [entry.filename for entry in entries]
    for entry in entries:
        if entry.filename != DOCUMENT and not ARRAY.fullmatch(entry.filename):
            raise DataError(f"unexpected entry {entry.filename[:60]!r}; a model file holds {DOCUMENT} and arrays only")
        if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size or entry.flag_bits & 0x1:
            raise DataError(f"entry {entry.filename!r} is compressed or encrypted, which model files never are; refused")
    if len(set(names)) < len(names):
        raise DataError("two entries of the same name; refused")
    if DOCUMENT not in names:
        raise DataError(f"{DOCUMENT} is missing: not a model file, or a damaged one; save the model again")
    if sum(entry.file_size for entry in entries) > size:
        raise DataError("the entries claim more bytes than the file has; refused")
    return {entry.filename: entry for entry in entries}


def _in_order(entries: Mapping[str, zipfile.ZipInfo]) -> list[str]:
    names = [f"arrays/{number}.npy" for number in range(len(entries))]
    missing = [name for name in names if name not in entries]
    if missing:
        raise DataError(f"{missing[0]} is missing; the file is damaged, save the model again")
    return names


def _document(content: bytes) -> dict[str, Any]:
    if len(content) > LARGEST_DOCUMENT:
        raise DataError(f"{DOCUMENT} is larger than any model needs; refused")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{DOCUMENT} cannot be read ({type(error).__name__}); the file is damaged") from error
    if not isinstance(document, dict):
        raise DataError(f"{DOCUMENT} is not an object; the file is damaged")
    return document


def _array(content: bytes) -> np.ndarray:
    stream = io.BytesIO(content)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise DataError("an array of an unknown format; refused")
        shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=LONGEST_HEADER)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"an array's header cannot be read ({type(error).__name__}); the file is damaged") from error
    if dtype.str not in KINDS:
        raise DataError(f"an array of kind {dtype.str!r}, expected one of {sorted(KINDS)}; refused")
    count, start = 1, stream.tell()
    for extent in shape:
        count *= extent
    if len(shape) > 4 or min(shape, default=0) < 0 or count * dtype.itemsize != len(content) - start:
        raise DataError(f"an array says it has shape {shape} but holds another number of values; the file is damaged")
    flat: np.ndarray = np.frombuffer(content, dtype=dtype, offset=start).astype(KINDS[dtype.str])
    return flat.reshape(shape, order="F" if by_columns else "C")


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
