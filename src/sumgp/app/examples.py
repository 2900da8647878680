"""The data sets that come with the package, as the page offers them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from sumgp.app.choice import Choice, Constant
from sumgp.cli.tables import as_csv
from sumgp.datasets import Dataset, all_datasets


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
