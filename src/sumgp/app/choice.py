"""What a person chose for a fit, as it travels between page and process, and the lines of Python that do the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePath
from typing import Any

from sumgp.cli.arguments import noise
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


EXCEL = (".xlsx", ".xls", ".xlsm", ".ods")
# About 200 points over one input, 900 over two.
GRID = "points = np.linspace(X.min(), X.max(), 200)"
MAP = "points = np.stack(np.meshgrid(*np.linspace(X.min(), X.max(), 30).T, indexing='ij'), axis=-1).reshape(-1, 2)"
ROWS = "points = np.unique(X, axis=0)"


def python_lines(choice: Choice, info: TableInfo, shown: str) -> str:
    """A program that reads the same file, fits the same model and writes the same predictions and model."""
    columns = [*choice.inputs, *choice.extra]
    gaps = any(column.missing for column in info.columns if column.name in choice.outputs)
    points = ROWS if choice.extra else {1: GRID, 2: MAP}.get(len(choice.inputs), ROWS)
    return "\n".join(
        [
            "import numpy as np",
            "import pandas as pd",
            "",
            "import sumgp",
            "",
            *_reading(info, shown),
            *_dates(info, (*columns, *choice.outputs)),
            f"columns = {columns!r}",
            f"X, Y = data[columns].to_numpy(), data[{list(choice.outputs)!r}].to_numpy()",
            *_model(choice),
            "gp.fit(pd.DataFrame(X, columns=columns), Y)",
            points,
            "posterior = gp.posterior(points)",
            "posterior.to_frame().to_csv('predictions.csv', index=False)",
            *(["gp.complete(pd.DataFrame(X, columns=columns), Y).to_csv('completed.csv', index=False)"] if gaps else []),
            "gp.save('model.sumgp')",
            "print(gp.fit_report_)",
            "",
        ]
    )


def _reading(info: TableInfo, shown: str) -> list[str]:
    ending = PurePath(shown).suffix.lower()
    name = "read_excel" if ending in EXCEL else "read_parquet" if ending in (".parquet", ".pq") else "read_csv"
    arguments = "".join(f", {key}={value!r}" for key, value in info.reading.items())
    return [f"data = pd.{name}({shown!r}{arguments})"]


def _dates(info: TableInfo, used: tuple[str, ...]) -> list[str]:
    """Dates are counted in days from the first."""
    return [
        f"data[{c.name!r}] = (pd.to_datetime(data[{c.name!r}]) - pd.Timestamp({c.origin!r})) / pd.Timedelta(days=1)"
        for c in info.columns
        if c.origin and c.name in used
    ]


def _model(choice: Choice) -> list[str]:
    arguments = [repr(choice.law) if choice.law else "None"]
    arguments += [f"inputs={list(choice.inputs)!r}", f"outputs={list(choice.outputs)!r}"]
    if choice.values:
        arguments.append(f"constants={choice.values!r}")
    if choice.kernel:
        arguments.append(f"kernel={choice.kernel!r}")
    if choice.noise not in ("", "per-output"):
        arguments.append(f"noise={noise(choice.noise)!r}")
    if choice.quick:
        arguments.append("uncertainty='plug-in'")
    return ["gp = sumgp.ConstrainedGP(", *(f"    {argument}," for argument in arguments), ")"]


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
