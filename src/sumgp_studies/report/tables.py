"""Tables of published and own results side by side: as data, as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sumgp_studies.experiments import LABELS, Cell, Problem, order, published_scores, published_source, record_field
from sumgp_studies.report.summary import CellScores, Comparison, Spread

NEGLIGIBLE = 1e-9  # violations below this are round-off, and equally good
LOWER_IS_BETTER = frozenset({"rmse", "rmse_norm", "violation", "violation_own", "violation_length", "nlpd", "crps"})
TITLES = {
    "rmse": "Root mean squared error (RMSE)",
    "rmse_norm": "RMSE (root of the sum over outputs)",
    "violation": "Violation of the law, mean |ΔC|",
    "violation_own": "Violation of the total that was given, mean |ΔC|",
    "violation_length": "Violation in lengths, mean |ΔL|",
    "coverage": "Coverage of 95 % intervals",
    "width": "Mean width of 95 % intervals",
    "nlpd": "Negative log predictive density (NLPD)",
    "crps": "Continuous ranked probability score (CRPS)",
    "cpu_seconds": "CPU seconds, fit and prediction",
}


@dataclass(frozen=True)
class Entry:
    """One number of a table; n = None for published ones."""

    mean: float
    std: float
    n: int | None
    best: bool = False

    def text(self, score: str) -> str:
        """Mean ± std with the digits that matter, published ones with those that were printed."""
        if score == "coverage":
            return f"{100 * self.mean:.1f} %"
        if self.n is None:
            return f"{self.mean:g} ± {self.std:g}"
        if self.n == 1:
            return f"{self.mean:.3g}"
        if self.mean == 0 or not 1e-4 <= abs(self.mean) < 1e4:
            return f"{_short(self.mean)} ± {_short(self.std)}"
        decimals = max(0, 2 - math.floor(math.log10(max(abs(self.mean), self.std))))
        return f"{self.mean:.{decimals}f} ± {self.std:.{decimals}f}"


@dataclass(frozen=True)
class Row:
    """A method's entries by cell; None where it has none."""

    label: str
    published: bool
    entries: tuple[Entry | None, ...]
    failures: int = 0

    def counts(self) -> str:
        """Number of data sets behind the row, and of failed fits."""
        numbers = sorted({entry.n for entry in self.entries if entry is not None and entry.n is not None})
        text = "" if not numbers else f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
        return text + (f", {self.failures} failed" if self.failures else "")


@dataclass(frozen=True)
class Section:
    """All rows of one score."""

    score: str
    rows: tuple[Row, ...]

    @property
    def title(self) -> str:
        """The score in words."""
        return TITLES[self.score]


@dataclass(frozen=True)
class Table:
    """One table of the paper, with ours beside it."""

    experiment: str
    title: str
    source: str  # of the published numbers; empty if none are shown
    data: str
    cells: tuple[Cell, ...]
    sections: tuple[Section, ...]


def experiment_table(problem: Problem, scores: Sequence[CellScores]) -> Table | None:
    """The table of an experiment, or None if nothing was run for it."""
    own = [entry for entry in scores if entry.experiment == problem.name]
    if not own:
        return None
    cells = tuple(cell for cell in problem.cells if any(entry.cell == cell for entry in own))
    # Where the paper's score is the root of the sum over outputs, the root of their mean stands below it.
    roots = ["rmse_norm", "rmse"] if record_field(problem.name, "rmse") == "rmse_norm" else ["rmse"]
    names = roots + [name for name in TITLES if not name.startswith("rmse") and any(name in entry.scores for entry in own)]
    sections = tuple(_section(problem, name, cells, own) for name in names)
    shown = problem.comparable()
    return Table(
        problem.name, problem.title, published_source(problem.name) if shown else "", problem.source(), cells, sections
    )


def _section(problem: Problem, score: str, cells: Sequence[Cell], own: Sequence[CellScores]) -> Section:
    rows = _published_rows(problem, score, cells) if problem.comparable() else []
    by_method: dict[str, dict[Cell, CellScores]] = {}
    for entry in own:
        by_method.setdefault(entry.method, {})[entry.cell] = entry
    for method in sorted(by_method, key=order):
        found = by_method[method]
        entries = tuple(_entry(found[cell].scores.get(score)) if cell in found else None for cell in cells)
        failures = sum(entry.failures for entry in found.values())
        if any(entries) or failures:
            rows.append(Row(method, False, entries, failures))
    return Section(score, tuple(_with_best(rows, score)))


def _published_rows(problem: Problem, score: str, cells: Sequence[Cell]) -> list[Row]:
    found = [entry for entry in published_scores(problem.name) if record_field(problem.name, entry.score) == score]
    rows = []
    for method in dict.fromkeys(entry.method for entry in found):
        by_cell = {entry.cell: Entry(entry.mean, entry.std, None) for entry in found if entry.method == method}
        rows.append(Row(f"paper: {LABELS[method]}", True, tuple(by_cell.get(cell) for cell in cells)))
    return rows


def _entry(spread: Spread | None) -> Entry | None:
    return None if spread is None else Entry(spread.mean, spread.std, spread.n)


def _with_best(rows: Sequence[Row], score: str) -> list[Row]:
    """Mark the lowest mean of each cell, what reads the same, and everything that is round-off where the lowest is."""
    if score not in LOWER_IS_BETTER or not rows:
        return list(rows)
    columns = [_column_with_best(column, score) for column in zip(*(row.entries for row in rows), strict=True)]
    by_row = zip(*columns, strict=True)
    return [Row(row.label, row.published, entries, row.failures) for row, entries in zip(rows, by_row, strict=True)]


def _column_with_best(column: Sequence[Entry | None], score: str) -> list[Entry | None]:
    found = [entry for entry in column if entry is not None]
    if not found:
        return list(column)
    lowest = min(found, key=lambda entry: entry.mean)
    return [None if entry is None else _marked(entry, lowest, score) for entry in column]


def _marked(entry: Entry, lowest: Entry, score: str) -> Entry:
    limit = max(lowest.mean, NEGLIGIBLE) if score.startswith("violation") else lowest.mean
    same = entry.text(score).split()[0] == lowest.text(score).split()[0]
    return Entry(entry.mean, entry.std, entry.n, entry.mean <= limit or same)


def _short(value: float) -> str:
    return "0" if value == 0 else f"{value:.1g}" if abs(value) >= 1e-3 else f"{value:.1e}"


def markdown(tables: Sequence[Table], summary: Sequence[Comparison], notes: Sequence[str] = ()) -> str:
    """All tables as one Markdown page, the summary first."""
    lines = ["# Reproduction of the paper's tables", ""]
    lines += [f"- {_plain(comparison.sentence())}" for comparison in summary]
    lines += [f"- {_plain(note)}" for note in notes]
    lines += ["", "Mean ± standard deviation over data sets; the best of each column is bold.", ""]
    for table in tables:
        lines += [f"## {_plain(table.title)}", "", f"Data: {_plain(table.data)}."]
        lines += [f"Published numbers: {_plain(table.source)}."] if table.source else ["Published numbers: not comparable."]
        for section in table.sections:
            lines += ["", f"**{section.title}**", ""]
            heads = [section.title.split(",")[0], *(cell.label() for cell in table.cells), "data sets"]
            lines += ["| " + " | ".join(_plain(head) for head in heads) + " |", "|" + "---|" * len(heads)]
            lines += [_markdown_row(row, section.score) for row in section.rows]
        lines.append("")
    return "\n".join(lines)


def _markdown_row(row: Row, score: str) -> str:
    texts = ["" if entry is None else entry.text(score) for entry in row.entries]
    bold = [f"**{t}**" if e is not None and e.best else t for t, e in zip(texts, row.entries, strict=True)]
    return "| " + " | ".join([_plain(row.label), *bold, row.counts()]) + " |"


def _plain(text: str) -> str:
    """Text that cannot break out of a table cell or become markup."""
    return text.replace("\n", " ").replace("|", "\\|").replace("<", "&lt;")


def comma_separated(tables: Sequence[Table]) -> str:
    """All tables in long form: one line for each number."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["experiment", "noise", "missing", "score", "method", "source", "mean", "std", "datasets", "best"])
    for table in tables:
        for section in table.sections:
            for row in section.rows:
                for cell, entry in zip(table.cells, row.entries, strict=True):
                    if entry is not None:
                        writer.writerow([table.experiment, *_csv_cell(cell), section.score, *_csv_entry(row, entry)])
    return buffer.getvalue()


def _csv_cell(cell: Cell) -> list[str]:
    return ["" if value is None else repr(value) for value in (cell.noise, cell.missing)]


def _csv_entry(row: Row, entry: Entry) -> list[object]:
    source, method = ("paper", row.label.removeprefix("paper: ")) if row.published else ("own", row.label)
    return [method, source, entry.mean, entry.std, "" if entry.n is None else entry.n, int(entry.best)]


def tables_of(problems: Mapping[str, Problem], scores: Sequence[CellScores]) -> list[Table]:
    """One table for each experiment that was run, in the order of the paper."""
    found = (experiment_table(problem, scores) for problem in problems.values())
    return [table for table in found if table is not None]
