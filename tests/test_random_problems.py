"""A sample of the soak test: random laws, units, offsets and gaps give finite results on the law, or a worded refusal."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import soak
from properties import trials
from properties.trials import ALLOWED, FITTED, Trial, pose, random_bounds, run

FIRST, COUNT, GROUPS = 200_000, 300, 6


@cache
def seeds() -> list[int]:
    """The first of every kind among ``COUNT`` seeds: kinds of law, strategy and uncertainty, with bounds or without."""
    kinds: dict[tuple[object, ...], int] = {}
    for seed in range(FIRST, FIRST + COUNT):
        problem, strategy, uncertainty = pose(seed)
        kind = (problem.shape.kind, str(strategy), uncertainty, random_bounds(seed, problem, strategy) is None)
        kinds.setdefault(kind, seed)
    return list(kinds.values())


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_problems_end_well(group: int) -> None:
    found = [run(seed) for seed in seeds()[group::GROUPS]]
    assert len(found) >= 8
    assert [trial for trial in found if trial.outcome not in ALLOWED] == []
    assert sum(trial.outcome == FITTED for trial in found) >= len(found) // 2


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "out" / "trials.jsonl"
    calls: list[int] = []

    def quick(seed: int) -> Trial:
        calls.append(seed)
        return Trial(seed, "none", "chosen", "plug-in", FITTED)

    monkeypatch.setattr(soak, "run", quick)
    soak.run_missing(file, range(3), jobs=1)
    file.write_bytes(file.read_bytes()[:-5])
    found = soak.run_missing(file, range(5), jobs=1)
    assert calls == [0, 1, 2, 2, 3, 4]
    assert list(found) == [0, 1, 2, 3, 4]
    assert len(soak.read_trials(file)) == 5


def test_a_problem_that_takes_too_long_is_stopped_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*arguments: object) -> None:
        while True:
            pass

    monkeypatch.setattr(trials, "attempt", endless)
    trial = run(FIRST, limit=0.2)
    assert trial.outcome == "over 0 s"
    assert 0.2 <= trial.seconds < 5.0


@pytest.mark.parametrize("error", [ValueError("a"), TypeError("a"), ZeroDivisionError("a"), IndexError("a")])
def test_a_crash_is_an_outcome(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(trials, "attempt", fail)
    assert run(FIRST).outcome == f"crash: {type(error).__name__}"


def test_the_page_counts_every_problem_and_shows_what_is_not_allowed() -> None:
    good = Trial(1, "linear", "chosen", "plug-in", FITTED, violation=2e-15, seconds=1.5, cpu=1.0)
    refused = Trial(2, "sum", "Projected", "plug-in", "refused: DataError", message="Y: 3 rows of 'a|b'; drop them")
    page = soak.page([good, replace(good, seed=3), refused, replace(good, seed=9, outcome="not finite")])
    assert "**1 of 4 problems failed.** CPU time 0.75 s a problem." in page
    assert "| linear | 3 | 2 | 0 | 1 |" in page
    assert "| Y: N rows of '...'; drop them | 1 |" in page
    assert "| 9 | linear | chosen | not finite | 0 |  |" in page
    assert "| linear | 2.0e-15 |" in page
