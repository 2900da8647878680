"""``sumgp check``: how a law is understood, before anything is fitted, and what raw data say about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console

from sumgp import laws
from sumgp.cli import arguments
from sumgp.cli.tables import Reading, number_columns, read_table
from sumgp.data import read_columns
from sumgp.estimator import default_strategy


class Miss(NamedTuple):
    """Complete rows of the data, mean and mean size of left minus right side there, and that size over the mean of the
    largest term; NaN without such rows."""

    rows: int
    mean: float
    size: float
    share: float


NO_ROWS = Miss(0, np.nan, np.nan, np.nan)


def check(
    constraint: Annotated[list[str], typer.Argument(help='One or more laws, e.g. "k/2*z**2 + m/2*v**2 = E".')],
    outputs: Annotated[str, typer.Option(help="Names of the outputs, separated by commas.")],
    inputs: Annotated[str | None, typer.Option(help="Names of the inputs.")] = None,
    constant: arguments.Constants = None,
    data: Annotated[Path | None, typer.Option(help="Table whose complete rows are held against the law.")] = None,
    separator: Annotated[str | None, typer.Option(help="Separator of the table's columns: , ; tab ...")] = None,
    decimal: Annotated[str, typer.Option(help="Decimal sign of the table's numbers.")] = ".",
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Say how a law is understood: its kind, terms, branches, unknown constants, and the strategy chosen for it."""
    constants = arguments.constants(constant or [])
    x_names = arguments.names(inputs, "--inputs") if inputs else []
    formula, y_names = laws.FormulaConstraint(list(constraint), constants), arguments.names(outputs, "--outputs")
    reading = Reading(separator, decimal)
    if data is not None:
        formula.check_columns(y_names, x_names, [str(name) for name in read_table(data, reading).columns])
    both = laws.bind_constraint(formula, y_names, x_names, arguments.extra_columns(constants))
    law = both.law if both.law is not None else formula.bind(y_names, x_names)
    if both.bounds is not None:
        _check_constant_bounds(both.bounds, both.law)
    misses = None if data is None else _misses(law, data, x_names, reading)
    if as_json:
        typer.echo(json.dumps(_as_numbers(law, misses, both), indent=2))
        return
    console = Console()
    console.print(both.explain(), markup=False, highlight=False)
    for label, miss in zip(law.labels, misses or [], strict=False):
        told = f"{miss.rows} complete rows miss it by {miss.mean:.3g} on average; mean size {miss.size:.3g}"
        told += f", {100.0 * miss.share:.2g} % of its largest term"
        told = told if miss.rows else "no complete rows"
        console.print(f"data against {label!r}: {told}", markup=False, highlight=False)


def _check_constant_bounds(bounds: laws.Inequalities, law: laws.Law | None) -> None:
    """Refuse bounds that contradict each other or the law, where no data are needed to tell."""
    constant = [isinstance(row.total, np.ndarray) and isinstance(row.coefficients, np.ndarray) for row in bounds.laws]
    rows = tuple(row for row, told in zip(bounds.laws, constant, strict=True) if told)
    fixed = isinstance(law, laws.SumLaw) and law.has_constant_coefficients and isinstance(law.total, np.ndarray)
    if rows:
        width = sum(1 for _ in bounds.laws[0].extra_columns)
        laws.check_bounds(laws.Inequalities(rows), law if fixed else None, np.zeros((1, width)))


def _as_numbers(law: laws.Law, misses: list[Miss] | None, both: laws.BoundConstraint) -> dict[str, Any]:
    result: dict[str, Any] = {
        "laws": list(law.labels),
        "kind": law.explain().splitlines()[0].removeprefix("kind: "),
        "strategy": type(default_strategy(both.law)).__name__,
        "bounds": [] if both.bounds is None else list(dict.fromkeys(both.bounds.labels)),
        "unknown_constants": list(law.unknowns),
        "data_columns": list(law.extra_columns),
        "outputs_outside": list(law.outputs_outside()),
        "explanation": law.explain().splitlines(),
        "held": list(laws.where_held(law)),
    }
    if misses is not None:
        result["data"] = [
            {
                "complete_rows": m.rows,
                "mean": m.mean if m.rows else None,
                "mean_size": m.size if m.rows else None,
                "share_of_largest_term": m.share if m.rows else None,
            }
            for m in misses
        ]
    return result


def _misses(law: laws.Law, path: Path, inputs: list[str], reading: Reading) -> list[Miss]:
    """How complete rows of the data miss each row of the law.

    Unknown constants take the value that a row suggests for them, so a law with one is not judged, nor one
    with derivatives, which are not measured.
    """
    if law.unknowns or law.derivatives or not law.n_rows:
        return [NO_ROWS] * law.n_rows
    x_names = [*inputs, *law.extra_columns]
    frame = number_columns(read_table(path, reading), [*x_names, *law.outputs], str(path), reading.decimal, inputs)
    involved = [name for name, used in zip(law.outputs, law.involved(), strict=False) if used]
    complete = frame[frame[[*x_names, *involved]].notna().all(axis=1)]
    f, x = (
        complete[list(law.outputs)].fillna(0.0).to_numpy(),
        read_columns(complete[x_names], None, str(path)).table.to_numpy(),
    )
    if not len(f):
        return [NO_ROWS] * law.n_rows
    with np.errstate(all="ignore"):
        g, terms = np.where(law.active(x), law.residual(f, x), np.nan), law.magnitude(f, x)
    return [_miss(row, sizes) for row, sizes in zip(g.T, terms.T, strict=True)]


def _miss(g: np.ndarray, terms: np.ndarray) -> Miss:
    """Of the residuals and largest terms (n,) of one row of the law."""
    usable = np.isfinite(g) & np.isfinite(terms)
    if not usable.any():
        return NO_ROWS
    size, largest = float(np.abs(g[usable]).mean()), float(terms[usable].mean())
    return Miss(int(usable.sum()), float(g[usable].mean()), size, size / largest if largest > 0 else 0.0)
