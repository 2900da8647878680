"""``sumgp bench``: measure the speed of everything in one run and write a page with a figure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from sumgp.cli.progress import stages
from sumgp_studies.speed import (
    KRONECKER_SIZES,
    QUICK_SIZES,
    Bar,
    Section,
    dense_section,
    fit_section,
    kronecker_section,
    long_section,
    many_section,
    maps_section,
    markov_section,
    oscillator_section,
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


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes only: about half a minute.")] = False,
    out: Annotated[Path, typer.Option("--out", help="Folder for results.md and results.png.")] = Path("benchmarks"),
) -> None:
    """Measure CPU times side by side (GPyTorch too where it is installed) and write them to a folder."""
    console = Console()
    with stages(console, "measuring") as tell, threadpool_limits(limits=1):
        sections = []
        for name, measure in QUICK if quick else FULL:
            tell(name)
            sections.append(measure())
    files = write_results(out, sections, quick)
    bars = [bar for section in sections for bar in section.bars]
    if bars:
        console.print(_summary(bars))
    for file in files:
        console.print(f"written: {file}", markup=False, highlight=False, soft_wrap=True)


def _summary(bars: list[Bar]) -> Table:
    table = Table("what", "at most", "measured", "met")
    for bar in bars:
        table.add_row(bar.what, f"{bar.limit:g} {bar.unit}", f"{bar.measured:.3g}", "yes" if bar.met else "NO")
    return table
