"""One self-contained HTML page: no network, no script, everything that is text is escaped."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sumgp.report import Picture, templates, version
from sumgp_studies.experiments import Record
from sumgp_studies.report.summary import Comparison
from sumgp_studies.report.tables import Table

PACKAGES = ("sumgp", "numpy", "scipy", "scikit-learn", "sympy", "pandas", "joblib")


@dataclass(frozen=True)
class RunFacts:
    """How the records came about, in pairs of words for the page."""

    facts: tuple[tuple[str, str], ...]
    troubles: tuple[tuple[str, int], ...]
    warnings: tuple[tuple[str, int], ...]


def run_facts(records: Sequence[Record], extra: Sequence[tuple[str, str]] = ()) -> RunFacts:
    """Numbers of records, seeds, CPU time and versions; what failed and what was warned of, with counts."""
    seeds = sorted({record.dataset for record in records})
    cpu = sum(record.cpu_seconds or 0.0 for record in records)
    failed = Counter(f"{r.experiment}, {r.method}: {r.status}" for r in records if r.failed)
    warned = Counter(f"{r.experiment}, {r.method}: {text}" for r in records for text in r.warnings)
    facts = [
        ("records", f"{len(records)}, of which {sum(failed.values())} failed"),
        ("seeds", _ranges(seeds)),
        ("CPU time of all fits and predictions", f"{cpu:.0f} s"),
        *extra,
        ("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        ("versions", ", ".join(f"{name} {version(name)}" for name in PACKAGES)),
    ]
    return RunFacts(tuple(facts), tuple(failed.most_common(20)), tuple(warned.most_common(20)))


def render_page(
    title: str,
    summary: Sequence[Comparison],
    notes: Sequence[str],
    tables: Sequence[Table],
    pictures: Sequence[Picture],
    facts: RunFacts,
) -> str:
    """The page as text."""
    by_experiment: dict[str, list[Picture]] = {}
    for picture in pictures:
        by_experiment.setdefault(picture.experiment, []).append(picture)
    return (
        templates("sumgp_studies.report")
        .get_template("page.html.j2")
        .render(title=title, summary=summary, notes=notes, tables=tables, pictures=by_experiment, facts=facts)
    )


def _ranges(numbers: Sequence[int]) -> str:
    """Sorted whole numbers as text, runs joined: 0 to 49, 60."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in runs) or "none"
