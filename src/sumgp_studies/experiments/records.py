"""Records: one line of JSON for each data set and method, in a file that survives being cut off anywhere."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from sumgp.errors import SumGPWarning

Key = tuple[str, float | None, float | None, int, str, str, str]
FAILED = "failed"


@dataclass(frozen=True)
class Record:
    """Scores of one method on one data set; None = not available (a failed fit, or a method without intervals).

    ``coverage`` is that of 95 % intervals, ``width`` their mean width, ``coverages`` maps other levels to theirs;
    ``violation_own`` and ``violation_length`` are given where they differ from ``violation`` (see ``Dataset``).
    """

    experiment: str
    noise: float | None
    missing: float | None
    dataset: int
    method: str
    uncertainty: str
    data: str  # "simulated" or "real"
    status: str
    rmse: float | None = None
    rmse_norm: float | None = None
    violation: float | None = None
    violation_own: float | None = None
    violation_length: float | None = None
    coverage: float | None = None
    width: float | None = None
    nlpd: float | None = None
    crps: float | None = None
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    cpu_seconds: float | None = None
    coverages: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    version: str = ""

    @property
    def key(self) -> Key:
        """What must not be computed twice."""
        return (self.experiment, self.noise, self.missing, self.dataset, self.method, self.uncertainty, self.data)

    @property
    def failed(self) -> bool:
        """True if there is no result."""
        return self.status.startswith(FAILED)

    def to_json(self) -> str:
        """One line of strict JSON; numbers that are not finite become null."""
        return json.dumps(_finite(asdict(self)), allow_nan=False)

    @staticmethod
    def from_json(line: str) -> Record:
        """The record in a line; fields of later versions are ignored. Raises ValueError if it is none."""
        values = json.loads(line)
        if not isinstance(values, dict):
            raise ValueError("a record is a JSON object")
        known = {f.name for f in fields(Record)}
        try:
            return Record(**{name: value for name, value in values.items() if name in known})
        except TypeError as error:
            raise ValueError(f"not a complete record: {error}") from error


class RecordFile:
    """An append-only file of records. Every append reaches the disk before it returns."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Record]:
        """All complete records, the last one of each key, in the order of their first appearance."""
        if not self.path.exists():
            return []
        records: dict[Key, Record] = {}
        broken = 0
        lines = self.path.read_text(encoding="utf-8", errors="replace").split("\n")
        # What follows the last line end is a line that was cut off while it was written.
        for line in lines[:-1]:
            try:
                record = Record.from_json(line)
            except ValueError:
                broken += 1
                continue
            records[record.key] = record
        if broken:
            warnings.warn(f"{self.path}: {broken} unreadable line(s) were left out", SumGPWarning, stacklevel=2)
        return list(records.values())

    def repair(self) -> None:
        """Cut off an unfinished last line, so that the next append starts a new one."""
        if not self.path.exists():
            return
        with self.path.open("r+b") as file:
            content = file.read()
            end = content.rfind(b"\n") + 1
            if end < len(content):
                file.truncate(end)
                file.flush()
                os.fsync(file.fileno())

    def append(self, records: Iterable[Record]) -> None:
        """Add records and wait until they are on disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(record.to_json() + "\n" for record in records)
        with self.path.open("ab") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return value
