"""docs/paper.md names functions and commands that exist; its numbers are those published and those of the results."""

from __future__ import annotations

import re
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from sumgp.cli.app import COMMANDS
from sumgp_studies.experiments import all_problems
from sumgp_studies.experiments.published import published_scores

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "paper.md").read_text(encoding="utf-8")
RESULTS = (DOCS / "results.md").read_text(encoding="utf-8")
PATHS = sorted(set(re.findall(r"`(sumgp(?:_studies)?(?:\.\w+)+)`", PAGE)))
EXPERIMENTS = {
    "Table 1": "harmonic_oscillator",
    "Table 3": "free_fall",
    "Table 4": "damped_oscillator",
    "Table 5": "log_sine",
}
SECTIONS = ["1", "2.1", "2.2", "3.1.1", "3.1.2", "3.2", "3.2.1", "4.1", "4.2", "4.3", "5", "6"]
APPENDICES = [f"{letter}.{n}" for letter, last in (("A", 4), ("B", 9), ("C", 5), ("D", 2)) for n in range(1, last + 1)] + [
    "E"
]


def found_by_path(path: str) -> Any:
    """What a dotted path names: the longest module that imports, then its attributes."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for name in parts[end:]:
            found = getattr(found, name)
        return found
    raise ModuleNotFoundError(path)


def rows(text: str) -> list[list[str]]:
    """Cells of every line of every table."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]


def numbers(cell: str) -> list[float]:
    return [float(word) for word in cell.split(", ") if word]


@pytest.mark.parametrize("path", PATHS)
def test_function_exists(path: str) -> None:
    assert callable(found_by_path(path)) or isinstance(found_by_path(path), property | cached_property)


def test_a_path_that_leads_nowhere_is_seen() -> None:
    with pytest.raises((AttributeError, ModuleNotFoundError)):
        found_by_path("sumgp.numerics.linear_algebra.no_such_function")


def test_commands_exist() -> None:
    commands = re.findall(r"`sumgp ([a-z_ ]+)`", PAGE)
    assert len(commands) > 20
    for command in commands:
        name, *experiments = command.split()
        assert name in COMMANDS, command
        assert set(experiments) <= {*all_problems(), "all"}, command


def test_tests_named_there_exist() -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", PAGE))
    assert named
    assert [path for path in named if not (DOCS.parent / path).exists()] == []


def test_every_section_appendix_algorithm_table_and_figure_has_a_row() -> None:
    first = [cells[0] for cells in rows(PAGE)]
    items = [item for cell in first for item in re.split(r", ", cell)]
    wanted = [f"Section {n}" for n in SECTIONS] + APPENDICES
    wanted += (
        [f"Algorithm {n}" for n in (1, 2, 3)] + [f"Table {n}" for n in range(1, 8)] + [f"Fig. {n}" for n in range(1, 9)]
    )
    assert [item for item in wanted if item not in items] == []


def test_every_equation_has_a_row() -> None:
    first = " ".join(cells[0] for cells in rows(PAGE))
    named = set(re.findall(r"\b(\d+|[A-E]\.\d+)\b", first))
    for start, end in re.findall(r"Eq\. ([A-E]\.\d+) to ([A-E]\.\d+)", first):
        letter = start[0]
        named |= {f"{letter}.{n}" for n in range(int(start[2:]), int(end[2:]) + 1)}
    last = {"A": 2, "B": 13, "C": 14, "D": 4, "E": 4}
    wanted = [f"{letter}.{n}" for letter, end in last.items() for n in range(1, end + 1)] + [str(n) for n in range(1, 12)]
    assert [equation for equation in wanted if equation not in named] == []


def published(experiment: str, method: str, unit: float, missing: float | None = None) -> list[float]:
    scores = [s for s in published_scores(experiment) if s.method == method and s.score == "rmse"]
    return [round(s.mean * unit, 4) for s in scores if missing is None or (s.cell.missing > 0) == (missing > 0)]


@pytest.mark.parametrize("table", EXPERIMENTS)
def test_numbers_of_the_sum_tables(table: str) -> None:
    experiment = EXPERIMENTS[table]
    ours = [cells for cells in rows(RESULTS) if cells[0] == experiment]
    shown = [cells for cells in rows(PAGE) if cells[0] == table and len(cells) == 5 and cells[2][0].isdigit()]
    assert len(shown) == 2
    for missing, cells in zip((False, True), shown, strict=True):
        of_results = [row for row in ours if (float(row[2]) > 0) == missing]
        assert numbers(cells[2]) == published(experiment, "gp_c", 100.0, float(missing))
        assert numbers(cells[3]) == [float(row[4].split()[0]) for row in of_results]
        assert numbers(cells[4]) == [float(row[7].split()[0]) for row in of_results]


def test_numbers_of_the_other_tables() -> None:
    shown = {cells[0]: cells for cells in rows(PAGE) if len(cells) == 5 and cells[2][:1].isdigit()}
    triangle = [row for row in rows(RESULTS) if row[0] in ("0.0001", "0.001", "0.01")]
    engines = [row for row in rows(RESULTS) if len(row) == 7 and row[0] in ("0.05", "0.1")]
    pendulum = {row[0]: row[1] for row in rows(RESULTS) if len(row) == 4}
    assert numbers(shown["Table 2"][2]) == published("triangle", "gp_c", 1000.0)
    assert numbers(shown["Table 2"][3]) == [float(row[3]) for row in triangle]
    assert numbers(shown["Table 2"][4]) == [float(row[4]) for row in triangle]
    assert numbers(shown["Table 6, Laplace"][2]) == published("approximations", "gp_c_laplace", 100.0)
    assert numbers(shown["Table 6, Laplace"][4]) == [float(row[4]) for row in engines]
    assert numbers(shown["Table 6, variational"][2]) == published("approximations", "gp_c_variational", 100.0)
    assert numbers(shown["Table 6, variational"][4]) == [float(row[5]) for row in engines]
    assert numbers(shown["Section 4.3"][2]) == published("double_pendulum", "gp_c", 1.0)
    assert numbers(shown["Section 4.3"][3]) == [float(pendulum["linearized"])]
    assert numbers(shown["Section 4.3"][4]) == [float(pendulum["transformed-gaussian"])]
