"""The benchmark measures what it says, writes its page and figure, and compares with others at the same model."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from sumgp_studies.commands import bench as command
from sumgp_studies.speed import Bar, Section, cpu_seconds, timing, write_results
from sumgp_studies.speed import evidence as evidence_sections
from sumgp_studies.speed.evidence import dense_section, fit_section, kronecker_section
from sumgp_studies.speed.fits import many_section, oscillator_section
from sumgp_studies.speed.problems import Size, multitask, outputs_over
from sumgp_studies.speed.series import long_section, markov_section
from sumgp_studies.speed.timing import side_by_side

TINY = Size(8, 3)


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call is timed once: what the tables hold does not hang on repeats."""
    monkeypatch.setattr(timing, "LONG_ENOUGH", 0.0)
    monkeypatch.setattr(timing, "FEWEST_REPEATS", 0)


def busy(seconds: float) -> None:
    start = time.process_time()
    while time.process_time() - start < seconds:
        pass


def test_cpu_seconds_are_those_of_the_work_not_of_waiting() -> None:
    assert cpu_seconds(lambda: time.sleep(0.02)) < 0.01
    assert cpu_seconds(lambda: busy(0.05)) == pytest.approx(0.05, rel=0.3)


def test_bars_say_whether_they_are_met() -> None:
    assert Bar("a", 2.0, 2.0).met
    assert not Bar("a", 2.0, 2.1).met


@pytest.mark.parametrize(
    ("section", "rows"),
    [
        (lambda: dense_section((TINY,)), 1),
        (lambda: kronecker_section((TINY, Size(9, 3))), 2),
        (lambda: fit_section((Size(8, 2),)), 1),
        (lambda: markov_section((20,), (20, 40)), 2),
        (lambda: long_section(300), 1),
        (oscillator_section, 3),
        (lambda: many_section(2, jobs=1), 1),
    ],
    ids=["dense", "kronecker", "fit", "markov", "long", "oscillator", "many"],
)
@pytest.mark.usefixtures("once")
def test_every_section_fills_its_table(section, rows: int) -> None:
    found = section()
    assert len(found.rows) == rows
    assert all(len(row) == len(found.columns) for row in found.rows)
    for sizes, seconds in found.curves.values():
        assert len(sizes) == len(seconds) > 0
        assert min(seconds) > 0


def test_ratios_are_quotients_of_the_times_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that gives 1, 2, 3, 4 seconds: Cholesky 1, dense 2, Kronecker 3, scikit-learn 4."""
    monkeypatch.setattr(evidence_sections, "side_by_side", lambda works: {name: i + 1.0 for i, name in enumerate(works)})
    monkeypatch.setattr(evidence_sections, "has_gpytorch", lambda: False)
    section = dense_section((Size(200, 4),))
    assert section.rows == (("200 x 4", "1000", "2000", "3000", "4000", "2.0", "2.0"),)
    assert section.bars == (Bar("evidence + gradient / one Cholesky, 200 x 4", 8.0, 2.0),)


def test_repeats_are_taken_in_turn() -> None:
    order: list[str] = []
    times = side_by_side({"a": lambda: order.append("a"), "b": lambda: order.append("b")})
    assert order[:6] == ["a", "b", "a", "a", "b", "b"]
    assert set(times) == {"a", "b"}


@pytest.mark.usefixtures("once")
def test_the_search_reaches_a_maximum() -> None:
    """The log evidence in the table is not below any other point tried."""
    size = Size(12, 2)
    x, y = outputs_over(size)
    prior = multitask(size)
    evidence = evidence_sections.Automatic().evidence(prior, x, y)
    best = float(fit_section((size,)).rows[0][3])
    rng = np.random.default_rng(0)
    tried = [evidence(prior.start() + 0.5 * rng.standard_normal(prior.n_parameters))[0] for _ in range(50)]
    assert best > max(tried)


def test_page_and_figure(tmp_path: Path) -> None:
    section = Section(
        "Title", "Note.", ("size", "ms"), (("3", "1.0"),), (Bar("late", 1.0, 2.0, "s"),), {"a": ([1.0, 2.0], [0.1, 0.2])}
    )
    page, figure = write_results(tmp_path / "new", [section], quick=True)
    text = page.read_text(encoding="utf-8")
    assert "| late | 1 s | 2 s | NO |" in text
    assert "| 3 | 1.0 |" in text
    assert "sumgp bench --quick" in text
    assert "cores" in text
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_the_command_writes_its_files(sumgp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "QUICK", (("tiny", lambda: kronecker_section((TINY,))),))
    result = sumgp("bench", "--quick", "--out", tmp_path / "out")
    assert result.code == 0, result.err
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"results.md", "results.png"}
    assert "results.md" in result.out.replace("\n", "")


def test_the_full_command_measures_every_item() -> None:
    names = [name for name, _ in command.FULL]
    assert names == [
        "long series",
        "evidence and gradient",
        "whole fits",
        "oscillator",
        "Kronecker",
        "time series",
        "many fits",
        "maps",
    ]
