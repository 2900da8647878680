"""Finding, checking, downloading and reading the recorded double pendulum.

A file holds rows of six integers: vertical and horizontal position of the pivot, of the end of arm 1 and of the end of
arm 2, in fifths of a pixel, the vertical axis growing downward.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
import warnings
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np

from sumgp.errors import DataError, SumGPWarning

FOLDER = "double_pendulum"
VARIABLE = "SUMGP_DATA_DIR"


@cache
def checksums() -> dict[str, str]:
    """SHA-256 of each file of the known copy, by file name."""
    return dict(_description()["sha256"])


@cache
def _description() -> dict:
    return tomllib.loads(
        resources.files("sumgp_studies.experiments").joinpath("double_pendulum.toml").read_text(encoding="utf-8")
    )


def find_recordings(data_dir: Path | None = None) -> Path | None:
    """The folder that holds 0.csv .. 20.csv, or None if there is none.

    Looked for in ``data_dir`` itself, in its subfolder double_pendulum, then below the folder that the environment
    variable SUMGP_DATA_DIR names. A folder that was named by hand but holds no data is an error.
    """
    named = [data_dir] if data_dir is not None else []
    if os.environ.get(VARIABLE):
        named.append(Path(os.environ[VARIABLE]))
    for base in named:
        for folder in (base, base / FOLDER):
            if all((folder / name).is_file() for name in checksums()):
                return folder
    if data_dir is not None:
        expected = f"the files 0.csv to {len(checksums()) - 1}.csv there or in its subfolder {FOLDER}"
        raise DataError("data_dir", expected, str(data_dir), "name the folder that holds them, or download them")
    return None


def altered_files(folder: Path) -> tuple[str, ...]:
    """Names of the files whose content differs from the known copy."""
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in checksums()}
    return tuple(name for name, digest in digests.items() if digest != checksums()[name])


def warn_if_altered(folder: Path) -> None:
    """Warn if the recordings are not the known ones: results would not be comparable."""
    altered = altered_files(folder)
    if altered:
        warnings.warn(
            f"double pendulum: {', '.join(altered)} differ from the published recordings, so the results are not "
            "comparable with the paper's",
            SumGPWarning,
            stacklevel=2,
        )


def download_recordings(folder: Path, address: str | None = None) -> Path:
    """Fetch the files that are not yet in ``folder`` from the public copy, each checked by its SHA-256.

    Raises DataError if a file cannot be had or is not the known one.
    """
    # Imported here because downloading is rare and the import costs as much as reading the data.
    import pooch
    import requests

    for name, digest in checksums().items():
        url = (address or str(_description()["address"])) + name
        try:
            pooch.retrieve(url, known_hash=f"sha256:{digest}", fname=name, path=folder)
        except (requests.RequestException, ValueError, OSError) as error:
            raise DataError(
                f"download: {url} could not be fetched ({error}); give --data-dir with the files, or leave --download "
                "out to run on a simulated pendulum"
            ) from error
    return folder


def read_recording(path: Path) -> np.ndarray:
    """(rows, 6) raw positions of one recording."""
    try:
        values = np.loadtxt(path, delimiter=",", ndmin=2)
    except (OSError, ValueError) as error:
        raise DataError(str(path), "rows of six numbers", str(error), "use the original files") from error
    if values.ndim != 2 or values.shape[1] != 6 or not np.all(np.isfinite(values)):
        raise DataError(str(path), "rows of six numbers", f"shape {values.shape}", "use the original files")
    return values
