"""What a person chose for a fit, as it travels between page and process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sumgp.cli.tables import as_csv
from sumgp.datasets import Dataset, all_datasets

KINDS = ("number", "unknown", "column")
# Kernels that the page offers, in its words.
KERNELS = {
    "rbf": "very smooth (RBF)",
    "matern52": "smooth (Matern 5/2)",
    "matern32": "rougher (Matern 3/2)",
    "matern12": "very rough (Matern 1/2)",
}


@dataclass(frozen=True)
class Constant:
    """A constant of the law as filled in: ``kind`` says which of the other fields counts."""

    name: str
    kind: str = "number"
    number: str = ""
    column: str = ""

    @property
    def value(self) -> float | str | None:
        """A number, "unknown", the name of a column, or None where nothing usable was filled in."""
        if self.kind == "unknown":
            return "unknown"
        if self.kind == "column":
            return self.column or None
        try:
            return float(self.number.strip().replace(",", "."))
        except ValueError:
            return None


@dataclass(frozen=True)
class Choice:
    """Columns, law, constants and settings of one fit."""

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    law: str = ""
    constants: tuple[Constant, ...] = ()
    kernel: str = ""
    noise: str = "per-output"
    quick: bool = False

    @property
    def values(self) -> dict[str, Any]:
        """Constants by name; those without a usable value are left out."""
        return {c.name: c.value for c in self.constants if c.value is not None}

    @property
    def extra(self) -> tuple[str, ...]:
        """Columns that constants refer to and that are no inputs."""
        named = (c.column for c in self.constants if c.kind == "column" and c.column)
        return tuple(dict.fromkeys(name for name in named if name not in self.inputs))


def choice_from(stored: Mapping[str, Any]) -> Choice:
    """The choice behind its ``asdict``."""
    constants = tuple(Constant(**constant) for constant in stored["constants"])
    named = {**stored, "constants": constants, "inputs": tuple(stored["inputs"]), "outputs": tuple(stored["outputs"])}
    return Choice(**named)


@dataclass(frozen=True)
class Column:
    """A column of a table: how it is filled, and a few of its cells; ``origin`` is the first day of a column of dates."""

    name: str
    is_number: bool
    missing: int
    low: str
    high: str
    first: tuple[str, ...]
    origin: str = ""


@dataclass(frozen=True)
class TableInfo:
    """What the page knows of a table; ``reading`` are the arguments with which pandas reads the file that was given."""

    rows: int
    columns: tuple[Column, ...]
    reading: dict[str, Any] = field(default_factory=dict)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the columns that hold numbers."""
        return tuple(column.name for column in self.columns if column.is_number)


def info_from(stored: Mapping[str, Any]) -> TableInfo:
    """The table's description behind its ``asdict``."""
    columns = tuple(Column(**{**column, "first": tuple(column["first"])}) for column in stored["columns"])
    return TableInfo(stored["rows"], columns, dict(stored["reading"]))


@dataclass(frozen=True)
class Example:
    """A data set by its name, and a line on it."""

    name: str
    title: str
    source: str


@cache
def examples() -> list[Example]:
    """All of them, in the package's order."""
    found = [make() for make in all_datasets().values()]
    return [Example(d.name, d.title, f"{d.source}, {d.licence}") for d in found]


def example_table(name: str) -> tuple[bytes, Choice]:
    """The table as CSV, and the columns, law and constants that go with it; KeyError for a name that is none."""
    dataset = all_datasets()[name]()
    return as_csv(dataset.frame), _choice(dataset)


def _choice(dataset: Dataset) -> Choice:
    constants = tuple(_constant(name, value) for name, value in dataset.constants.items())
    return Choice(tuple(dataset.inputs), tuple(dataset.outputs), dataset.law, constants)


def _constant(name: str, value: float | str) -> Constant:
    if value == "unknown":
        return Constant(name, "unknown")
    return Constant(name, "column", "", value) if isinstance(value, str) else Constant(name, "number", repr(float(value)))
