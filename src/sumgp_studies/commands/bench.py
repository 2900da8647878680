"""``sumgp bench``: measure the speed of everything in one run and write a page with a figure."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from sumgp.cli.outputs import stages
from sumgp_studies.commands.public import data_folder
from sumgp_studies.speed import (
    KRONECKER_SIZES,
    QUICK_SIZES,
    Bar,
    Section,
    accuracy_section,
    compositions_section,
    dense_section,
    fit_section,
    gpboost_section,
    kronecker_section,
    long_section,
    many_section,
    maps_section,
    markov_section,
    oscillator_section,
    satellite_section,
    write_results,
)

Measurement = tuple[str, Callable[[], Section]]

FULL: tuple[Measurement, ...] = (
    ("long series", long_section),
    ("evidence and gradient", dense_section),
    ("whole fits", fit_section),
    ("oscillator", oscillator_section),
    ("Kronecker", kronecker_section),
    ("time series", markov_section),
    ("many fits", many_section),
    ("maps", maps_section),
)

QUICK: tuple[Measurement, ...] = (
    ("evidence and gradient", lambda: dense_section(QUICK_SIZES[:4])),
    ("oscillator", oscillator_section),
    ("Kronecker", lambda: kronecker_section(KRONECKER_SIZES[:2])),
    ("time series", lambda: markov_section((100, 200, 400), (1_000, 10_000))),
    ("many fits", lambda: many_section(8)),
    ("maps", lambda: maps_section((500, 1_000), ())),
)


QUICK_MAPS: tuple[Measurement, ...] = (
    ("maps", lambda: maps_section((500, 1_000), ())),
    ("maps beside dense algebra", lambda: accuracy_section((400,), ("Matern 3/2",))),
    ("maps beside GPBoost", lambda: gpboost_section(1_000)),
)


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes only: about half a minute.")] = False,
    maps: Annotated[bool, typer.Option("--maps", help="Maps only: speed, beside dense algebra and GPBoost, data.")] = False,
    data_dir: Annotated[Path | None, typer.Option("--data-dir", help="Public data for --maps; or SUMGP_DATA_DIR.")] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for results.md and results.png.")] = Path("benchmarks"),
) -> None:
    """Measure CPU times side by side (GPyTorch and GPBoost too where they are installed) and write them to a folder."""
    console = Console()
    chosen = _maps(quick, data_dir) if maps else QUICK if quick else FULL
    with stages(console, "measuring") as tell, threadpool_limits(limits=1):
        sections = []
        for name, measure in chosen:
            tell(name)
            sections.append(measure())
    files = write_results(out, sections, quick)
    bars = [bar for section in sections for bar in section.bars]
    if bars:
        console.print(_summary(bars))
    for file in files:
        console.print(f"written: {file}", markup=False, highlight=False, soft_wrap=True)


def _maps(quick: bool, data_dir: Path | None) -> tuple[Measurement, ...]:
    """All sections on maps; those on data only where these are there."""
    if quick:
        return QUICK_MAPS
    whole: tuple[Measurement, ...] = (
        ("maps", maps_section),
        ("maps beside dense algebra", accuracy_section),
        ("maps beside GPBoost", gpboost_section),
    )
    if data_dir is None and not os.environ.get("SUMGP_DATA_DIR"):
        return whole
    folder = data_folder(data_dir)
    return (
        *whole,
        ("composition maps", lambda: compositions_section(folder)),
        ("satellite", lambda: satellite_section(folder)),
    )


def _summary(bars: list[Bar]) -> Table:
    table = Table("what", "at most", "measured", "met")
    for bar in bars:
        table.add_row(bar.what, f"{bar.limit:g} {bar.unit}", f"{bar.measured:.3g}", "yes" if bar.met else "NO")
    return table
