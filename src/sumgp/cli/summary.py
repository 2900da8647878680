"""A fit in a few lines on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sumgp.report import FitStudy, PlainTable, advice, data_facts, score_tables, verdict


def print_summary(console: Console, found: FitStudy, files: Sequence[Path]) -> None:
    """Data, law as understood, scores with and without the law, verdict, advice, files."""
    for name, value in data_facts(found):
        console.print(f"{name + ':':<19}{value}", markup=False, highlight=False)
    console.print("the law as understood", style="bold")
    for line in found.law_text.splitlines():
        console.print(f"  {line}", markup=False, highlight=False)
    for table in score_tables(found):
        console.print(rich_table(table))
    console.print(verdict(found).text, markup=False, highlight=False, style="bold")
    for entry in advice(found):
        mark, style = ("ok", "green") if entry.good else ("look", "yellow")
        console.print(f"{mark}: {entry.finding} {entry.remedy}".rstrip(), markup=False, highlight=False, style=style)
    for path in files:
        console.print(f"written: {path}", markup=False, highlight=False, soft_wrap=True)


def rich_table(table: PlainTable) -> Table:
    """The table of a page for the terminal."""
    made = Table(title=table.title, title_justify="left", title_style="bold")
    for position, name in enumerate(table.header):
        # Other headers break between their words; this one would lose its sign.
        made.add_column(name, justify="left" if position == 0 else "right", overflow="fold", no_wrap=name.endswith("%"))
    for number, row in enumerate(table.rows):
        marked = [
            f"[bold]{_plain(cell)}[/bold]" if (number, i) in table.best else _plain(cell) for i, cell in enumerate(row)
        ]
        made.add_row(*marked)
    return made


def _plain(cell: str) -> str:
    """Names of columns are text, not markup."""
    return cell.replace("[", r"\[")
