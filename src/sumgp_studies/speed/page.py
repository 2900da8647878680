"""Sections -> results.md and a figure."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from sumgp_studies.speed.timing import Section, machine

RESULTS, FIGURE = "results.md", "results.png"


def write_results(folder: Path, sections: Sequence[Section], quick: bool) -> tuple[Path, ...]:
    """Write the page and, where a section has curves, the figure; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [section for section in sections if section.curves]
    written = []
    if drawn:
        (folder / FIGURE).write_bytes(_figure(drawn))
        written.append(folder / FIGURE)
    (folder / RESULTS).write_text(page(sections, quick, bool(drawn)), encoding="utf-8")
    return (folder / RESULTS, *written)


def page(sections: Sequence[Section], quick: bool, with_figure: bool) -> str:
    """The results as Markdown: bars first, then each section's table."""
    load = f", load average {os.getloadavg()[0]:.1f} at the end" if hasattr(os, "getloadavg") else ""
    lines = [
        "# Speed",
        "",
        f"Written by `sumgp bench{' --quick' if quick else ''}`: CPU time, one BLAS thread, least of repeats taken in turn.",
        f"Machine: {machine()}{load}.",
        "",
    ]
    bars = [bar for section in sections for bar in section.bars]
    if bars:
        cells = [(b.what, f"{b.limit:g} {b.unit}", f"{b.measured:.3g} {b.unit}", "yes" if b.met else "NO") for b in bars]
        lines += ["## Bars", "", *_table(("what", "at most", "measured", "met"), cells), ""]
    if with_figure:
        lines += [f"![CPU time against size]({FIGURE})", ""]
    for section in sections:
        lines += [f"## {section.title}", "", section.note, "", *_table(section.columns, section.rows), ""]
    return "\n".join(lines)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [_line(columns), _line(["---"] * len(columns)), *(_line(row) for row in rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _figure(sections: Sequence[Section]) -> bytes:
    """One panel a section: CPU seconds against size, both logarithmic."""
    figure = Figure(figsize=(4.6 * len(sections), 3.8), layout="constrained")
    for axis, section in zip(figure.subplots(1, len(sections), squeeze=False)[0], sections, strict=True):
        for name, (sizes, seconds) in section.curves.items():
            style = "--" if "LAPACK" in name else "-"
            axis.loglog(sizes, seconds, style, marker="o", markersize=3, label=name)
        axis.set(title=section.title, xlabel=section.x_label, ylabel="CPU time [s]")
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()
