"""How much one request, one table and one fit may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds that keep a page on somebody's own machine usable, whatever file is dropped on it."""

    upload_bytes: int = 20_000_000
    form_bytes: int = 1_000_000  # of a request without a file
    rows: int = 20_000
    columns: int = 200
    points: int = 5_000  # at which values are asked for at a time
    read_seconds: float = 120.0
    fit_seconds: float = 1_800.0
    values_seconds: float = 300.0
    memory_bytes: int = 8_000_000_000  # address space of a process that reads or fits
    tables: int = 20  # kept at a time; the oldest is forgotten
    running: int = 2  # fits at a time
