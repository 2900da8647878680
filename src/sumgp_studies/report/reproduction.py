"""The written outcome of a reproduction: tables.md, tables.csv, figures/*.svg and report.html in one folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sumgp.files import write_files
from sumgp_studies.experiments import Method, Problem, Record, Settings
from sumgp_studies.report.gallery import Picture, experiment_sketches, make, score_sketches
from sumgp_studies.report.page import render_page, run_facts
from sumgp_studies.report.summary import caveats, cell_scores, comparisons
from sumgp_studies.report.tables import comma_separated, markdown, tables_of


@dataclass(frozen=True)
class ReportSettings:
    """What a report may choose: whether to fit for figures, in how many processes, with which setting and seed."""

    figures: bool = True
    jobs: int = 1
    uncertainty: str = "integrated"
    seed: int = 0
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Written:
    """Summary lines of a report and the files that hold it."""

    lines: tuple[str, ...]
    files: tuple[Path, ...]


def write_report(
    records: Sequence[Record],
    problems: Mapping[str, Problem],
    methods: Mapping[str, Method],
    out: Path,
    settings: ReportSettings,
) -> Written:
    """Write tables, figures and the page for the experiments that have records; each file is replaced in one step."""
    scores = cell_scores(records)
    simulated = frozenset(name for name, problem in problems.items() if not problem.comparable())
    summary = comparisons(scores, simulated)
    tables = tables_of(problems, scores)
    notes = [f"{table.title}: {table.data}" for table in tables if table.experiment in simulated]
    notes += caveats(scores) if summary else []
    sketches = score_sketches(summary, records)
    if settings.figures:
        chosen = Settings(settings.uncertainty, settings.seed)
        sketches += [s for table in tables for s in experiment_sketches(problems[table.experiment], methods, chosen)]
    pictures = make(sketches, settings.jobs)
    page = render_page("sumgp: the paper reproduced", summary, notes, tables, pictures, run_facts(records, settings.facts))
    texts = {
        out / "tables.md": markdown(tables, summary, notes),
        out / "tables.csv": comma_separated(tables),
        out / "report.html": page,
    }
    files = [_write(path, text.encode()) for path, text in texts.items()]
    files += [_write(out / "figures" / f"{picture.name}.svg", picture.light) for picture in pictures if picture.light]
    return Written((*(entry.sentence() for entry in summary), *notes, *_troubles(pictures)), tuple(files))


def _troubles(pictures: Sequence[Picture]) -> list[str]:
    return [f"figure {picture.name} could not be made: {picture.trouble}" for picture in pictures if picture.trouble]


def _write(path: Path, content: bytes) -> Path:
    write_files(path.parent, {path.name: content})
    return path
