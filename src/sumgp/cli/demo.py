"""``sumgp demo``: a noisy oscillator with gaps, fitted with and without the law of its energy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from sumgp import datasets
from sumgp.cli.fit import rich_table
from sumgp.cli.outputs import stages
from sumgp.cli.tables import as_csv
from sumgp.estimator import ConstrainedGP
from sumgp.files import write_files
from sumgp.prediction import Posterior
from sumgp.report import PlainTable, caught, render_fit, study
from sumgp.strategies import Linearized, Projected, Strategy

N_GRID = 200  # prediction points: smooth curves at the size of a figure


@dataclass(frozen=True)
class Line:
    """One row of the demo's table: error against the truth, and mean |left minus right side| of the law."""

    name: str
    rmse: float
    violation: float


def truth(t: np.ndarray, energy: float) -> np.ndarray:
    """(n, 2) position and velocity, with spring and mass of one, that the measurements were made from."""
    amplitude = np.sqrt(2.0 * energy)
    return np.column_stack([amplitude * np.sin(t), amplitude * np.cos(t)])


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report, the data and the predictions.")] = Path("demo-output"),
) -> None:
    """Fit a noisy oscillator with and without its law of energy; a table here and a report in the folder."""
    console = Console()
    data = datasets.oscillator()
    frame = data.frame
    grid = np.linspace(frame["t"].min(), frame["t"].max(), N_GRID)[:, None]
    with stages(console, "fitting the oscillator") as tell:
        linearized, told = _fitted(data, Linearized(), tell)
        projected, _ = _fitted(data, Projected(), tell)
        found = study(linearized, grid, told, tell)
        assert found.plain is not None
        fits = {"unconstrained": found.plain, "projected": projected.posterior(grid), "linearized": found.posterior}
        lines = [_raw(data), *(_line(name, posterior, linearized, grid) for name, posterior in fits.items())]
        tell("report")
        page = render_fit(found, "A noisy oscillator and the law of its energy", [_page_table(lines)])
    write_files(
        out,
        {
            "oscillator.csv": as_csv(frame),
            "predictions.csv": as_csv(found.posterior.to_frame()),
            "report.html": page.encode(),
        },
    )
    _show(console, data, lines)
    console.print(f"report: {out / 'report.html'}", highlight=False, soft_wrap=True)


def _fitted(
    data: datasets.Dataset, strategy: Strategy, tell: Callable[[str], None]
) -> tuple[ConstrainedGP, tuple[str, ...]]:
    """A model that knows the law, and the warnings of its fit."""
    return caught(lambda: data.model(strategy=strategy).fit(data.X, data.Y, progress=tell))


def _raw(data: datasets.Dataset) -> Line:
    measured, energy = data.Y.to_numpy(), data.constants["E"]
    difference = measured - truth(data.frame["t"].to_numpy(), energy)
    missed = 0.5 * np.sum(measured**2, axis=1) - energy
    return Line("raw measurements", float(np.sqrt(np.nanmean(difference**2))), float(np.nanmean(np.abs(missed))))


def _line(name: str, posterior: Posterior, model: ConstrainedGP, grid: np.ndarray) -> Line:
    assert model.law_ is not None
    true = truth(grid[:, 0], model.constants["E"])  # type: ignore[index]
    violation = np.abs(model.law_.residual(posterior.mean, grid)).mean()
    return Line(name, float(np.sqrt(np.mean((posterior.mean - true) ** 2))), float(violation))


def _words(line: Line) -> tuple[str, str, str]:
    return line.name, f"{line.rmse:.4f}", f"{line.violation:.1e}"


HEADER = ("method", "error against the truth", "energy missed by")


def _show(console: Console, data: datasets.Dataset, lines: list[Line]) -> None:
    missing, rows = int(data.Y.isna().sum().sum()), len(data.Y)
    console.print(f"{rows} rows of position z and velocity v, {missing} of {2 * rows} values missing", highlight=False)
    console.print(f"law: {data.law}", highlight=False)
    console.print(rich_table(_page_table(lines)))


def _page_table(lines: list[Line]) -> PlainTable:
    note = "Root mean square error over 200 times and both outputs (raw: at the measurements), mean |left minus right side|."
    best = int(np.argmin([line.rmse for line in lines]))
    return PlainTable(
        "Against the truth, which is known here", note, HEADER, tuple(_words(line) for line in lines), frozenset({(best, 1)})
    )
