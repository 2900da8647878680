"""The few lines of Python that do what the page did."""

from __future__ import annotations

from pathlib import PurePath

from sumgp.app.choice import Choice, TableInfo
from sumgp.cli.arguments import noise

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
