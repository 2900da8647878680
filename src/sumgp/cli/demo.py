"""``sumgp demo``: a noisy oscillator with gaps, fitted with and without the law of its energy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from rich.console import Console
from rich.table import Table

from sumgp import datasets
from sumgp.cli.outputs import stages
from sumgp.cli.tables import as_csv
from sumgp.estimator import ConstrainedGP
from sumgp.files import write_files
from sumgp.prediction import Posterior
from sumgp.report import PlainTable, caught, render_fit, study
from sumgp.strategies import Linearized, Projected

LAW = "k/2*z**2 + m/2*v**2 = E"
CONSTANTS = {"k": 1.0, "m": 1.0, "E": 0.8}  # those that the data set was made with
N_GRID = 200  # prediction points: smooth curves at the size of a figure


@dataclass(frozen=True)
class Line:
    """One row of the demo's table: error against the truth, and mean |left minus right side| of the law."""

    name: str
    rmse: float
    violation: float


def oscillator() -> pd.DataFrame:
    """The data set that comes with the package: columns t, z, v with empty cells."""
    return datasets.oscillator().frame


def truth(t: np.ndarray) -> np.ndarray:
    """(n, 2) position and velocity that the measurements were made from."""
    amplitude = np.sqrt(2.0 * CONSTANTS["E"])
    return np.column_stack([amplitude * np.sin(t), amplitude * np.cos(t)])


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report, the data and the predictions.")] = Path("demo-output"),
) -> None:
    """Fit a noisy oscillator with and without its law of energy; a table here and a report in the folder."""
    console = Console()
    frame = oscillator()
    grid = np.linspace(frame["t"].min(), frame["t"].max(), N_GRID)[:, None]
    with stages(console, "fitting the oscillator") as tell:
        linearized, projected, told = _fits(frame, tell)
        found = study(linearized, grid, told, tell)
        assert found.plain is not None
        fits = {"unconstrained": found.plain, "projected": projected.posterior(grid), "linearized": found.posterior}
        lines = [_raw(frame), *(_line(name, posterior, linearized, grid) for name, posterior in fits.items())]
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
    _show(console, frame, lines)
    console.print(f"report: {out / 'report.html'}", highlight=False, soft_wrap=True)


def _fits(frame: pd.DataFrame, tell: Callable[[str], None]) -> tuple[ConstrainedGP, ConstrainedGP, tuple[str, ...]]:
    """Two models that know the law, and the warnings of the first."""

    def fitted(strategy: object) -> ConstrainedGP:
        gp = ConstrainedGP(LAW, outputs=["z", "v"], inputs=["t"], constants=CONSTANTS, strategy=strategy)
        return gp.fit(frame[["t"]], frame[["z", "v"]], progress=tell)

    linearized, told = caught(lambda: fitted(Linearized()))
    projected, _ = caught(lambda: fitted(Projected()))
    return linearized, projected, told


def _raw(frame: pd.DataFrame) -> Line:
    measured = frame[["z", "v"]].to_numpy()
    difference = measured - truth(frame["t"].to_numpy())
    energy = 0.5 * np.sum(measured**2, axis=1) - CONSTANTS["E"]
    return Line("raw measurements", float(np.sqrt(np.nanmean(difference**2))), float(np.nanmean(np.abs(energy))))


def _line(name: str, posterior: Posterior, model: ConstrainedGP, grid: np.ndarray) -> Line:
    assert model.law_ is not None
    true = truth(grid[:, 0])
    violation = np.abs(model.law_.residual(posterior.mean, grid)).mean()
    return Line(name, float(np.sqrt(np.mean((posterior.mean - true) ** 2))), float(violation))


def _words(line: Line) -> tuple[str, str, str]:
    return line.name, f"{line.rmse:.4f}", f"{line.violation:.1e}"


HEADER = ("method", "error against the truth", "energy missed by")


def _show(console: Console, frame: pd.DataFrame, lines: list[Line]) -> None:
    missing = int(frame[["z", "v"]].isna().sum().sum())
    console.print(
        f"{len(frame)} rows of position z and velocity v, {missing} of {2 * len(frame)} values missing", highlight=False
    )
    console.print(f"law: {LAW}", highlight=False)
    table = Table()
    for position, name in enumerate(HEADER):
        table.add_column(name, justify="left" if position == 0 else "right")
    for line in lines:
        table.add_row(*_words(line), style="bold" if line.name == "linearized" else None)
    console.print(table)


def _page_table(lines: list[Line]) -> PlainTable:
    note = "Root mean square error over 200 times and both outputs (raw: at the measurements), mean |left minus right side|."
    best = int(np.argmin([line.rmse for line in lines]))
    return PlainTable(
        "Against the truth, which is known here", note, HEADER, tuple(_words(line) for line in lines), frozenset({(best, 1)})
    )
