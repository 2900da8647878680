"""Memory that dense algebra will need, compared with what is there before anything is allocated."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from sumgp.errors import DataError

NUMBER = 8  # bytes
GIGABYTE = 1e9


def dense_bytes(n_points: int, n_outputs: int, n_measured: int) -> float:
    """Peak of one dense evidence with gradient, as measured: a matrix over all entries, 3 over points, and over the
    measured entries 3, or 2.75 where gaps make some of them short-lived copies.
    """
    n_all = n_points * n_outputs
    copies = 3.0 if n_measured == n_all else 2.75
    return NUMBER * (copies * n_measured**2 + n_all**2 + 3.0 * n_points**2)


def kronecker_bytes(n_points: int, n_outputs: int, n_measured: int) -> float:
    """Peak of one Kronecker evidence with gradient, as measured: 7 matrices over points, or 5 and as many numbers for each
    pair of a missing entry with any entry.
    """
    n_all = n_points * n_outputs
    return NUMBER * max(7.0 * n_points**2, 5.0 * n_points**2 + 5.1 * (n_all - n_measured) * n_all)


def available_bytes() -> float:
    """Memory that can still be had without swapping, within a container's limit; infinite where no system tells."""
    found = [_meminfo(), _container_limit()]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found.append(float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE"))
    return min(found)


def check_memory(n_points: int, n_outputs: int, n_measured: int, n_inputs: int, kronecker: bool = False) -> None:
    """Raise DataError if a fit by dense algebra would not fit into memory, with the figures and the way out."""
    needed = (kronecker_bytes if kronecker else dense_bytes)(n_points, n_outputs, n_measured)
    free = available_bytes()
    if needed <= free:
        return
    ways = ""
    if n_inputs == 1:
        ways = "use solver=Markov() with a Matern kernel (memory grows with the rows only), or "
    elif not kronecker and kronecker_bytes(n_points, n_outputs, n_measured) <= free:
        ways = "use solver=Kronecker() (one kernel term, linear laws with constant coefficients), or "
    most = int(n_points * np.sqrt(free / needed))
    raise DataError(
        f"memory: a {'Kronecker' if kronecker else 'dense'} fit of {n_points} rows with {n_measured} measured values needs "
        f"about {needed / GIGABYTE:.1f} GB, {free / GIGABYTE:.1f} GB are available; {ways}use at most {most} rows"
    )


def _meminfo() -> float:
    path = Path("/proc/meminfo")
    if not path.is_file():
        return float("inf")
    for line in path.read_text(encoding="ascii").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return float(rest.split()[0]) * 1024.0
    return float("inf")


def _container_limit() -> float:
    path = Path("/sys/fs/cgroup/memory.max")
    text = path.read_text(encoding="ascii").strip() if path.is_file() else "max"
    return float(text) if text.isdigit() else float("inf")
