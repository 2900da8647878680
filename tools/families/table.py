"""The page on all families: the figures that matter, and a row for each family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from families.family import Family
from families.score import LOW

WORSE = 1.2  # ratio of errors from which a law has made the answer worse
MUCH_WORSE = 2.0

HEAD = """# Does a law ever make the answer worse?

`python tools/never_worse.py families` draws {families} families of smooth problems whose truth obeys the law, each with
random functions, constants and noise, and fits them with default settings, with the law and without. Errors are in
standard deviations of each output; a ratio below 1 means that the law helped. Coverage is the share of true values inside
the 95 % intervals. The outputs of a law err together, so that a few errors decide on all prediction points of a problem:
even if every posterior were exactly right, some problems would have a coverage below 85 %. How many is found by scoring
draws of each posterior in place of the truth.

This table: {problems} problems, seeds {first} to {last}.

| | all problems | bar |
|---|---|---|
"""


@dataclass(frozen=True)
class Summary:
    """What a set of problems shows: ratios of errors with and without the law (P,), coverages (P,) of both."""

    ratios: np.ndarray
    coverage: np.ndarray
    plain_coverage: np.ndarray
    low_if_exact: float  # share of problems that would have low coverage if every posterior were right
    cpu_seconds: float

    @classmethod
    def of(cls, records: Sequence[dict[str, Any]]) -> Summary:
        """The summary of records."""
        ratios = np.array([r["law"]["rmse"] / r["no law"]["rmse"] for r in records])
        coverage, plain = (np.array([r[kind]["coverage"] for r in records]) for kind in ("law", "no law"))
        low, seconds = (float(np.mean([r["law"][what] for r in records])) for what in ("low_if_exact", "cpu_seconds"))
        return cls(ratios, coverage, plain, low, seconds)

    @property
    def ratio(self) -> float:
        """Geometric mean of the ratios of errors."""
        return float(np.exp(np.mean(np.log(self.ratios))))


def page(families: Sequence[Family], records: Sequence[dict[str, Any]]) -> str:
    """The page in Markdown."""
    seeds = [r["seed"] for r in records]
    whole = Summary.of(records)
    head = HEAD.format(families=len(families), problems=len(records), first=min(seeds), last=max(seeds))
    return head + "\n".join([*_whole(whole), "", *_rows(families, records)]) + "\n"


def _whole(s: Summary) -> list[str]:
    shares = [
        ("geometric mean of RMSE with / without the law", f"{s.ratio:.3f}", "at most .70"),
        (f"problems with a ratio above {WORSE}", f"{np.mean(s.ratios > WORSE):.1%}", "at most 1 %"),
        ("largest ratio", f"{s.ratios.max():.2f}", f"at most {MUCH_WORSE:.0f}"),
        ("mean coverage with the law", f"{s.coverage.mean():.1%}", "93 to 97 %"),
        (f"problems with coverage below {LOW:.0%}", f"{np.mean(s.coverage < LOW):.1%}", "at most 5 %"),
        ("the same if every posterior were exactly right", f"{s.low_if_exact:.1%}", ""),
        ("mean coverage without the law", f"{s.plain_coverage.mean():.1%}", ""),
        (f"problems with coverage below {LOW:.0%} without the law", f"{np.mean(s.plain_coverage < LOW):.1%}", ""),
        ("CPU seconds a fit with the law", f"{s.cpu_seconds:.2f}", ""),
    ]
    return [f"| {what} | {figure} | {bar} |" for what, figure, bar in shares]


def _rows(families: Sequence[Family], records: Sequence[dict[str, Any]]) -> list[str]:
    rows = [
        "## By family",
        "",
        "N rows, T outputs, D inputs; ratio: geometric mean and largest; coverage: mean and lowest with the law, "
        "mean without it.",
        "",
        "| family | law | N | T | D | ratio | largest | coverage | lowest | without | CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for f in families:
        s = Summary.of([r for r in records if r["family"] == f.name])
        rows.append(
            f"| {f.name} | `{'; '.join(f.laws)}` | {f.rows} | {len(f.outputs)} | {f.n_inputs} | {s.ratio:.2f} | "
            f"{s.ratios.max():.2f} | {s.coverage.mean():.1%} | {s.coverage.min():.0%} | {s.plain_coverage.mean():.1%} | "
            f"{s.cpu_seconds:.2f} |"
        )
    return rows
