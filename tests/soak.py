"""Thousands of random problems, each under a time limit: writes a table of outcomes and fails if any is not allowed.

Run by ``make soak``; arguments: number of problems (default 10000) and first seed (default 0). Each result is appended to
soak-output/trials.jsonl as it comes in; a run that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from properties.trials import ALLOWED, LIMIT, REFUSALS, TOLERANCE, Trial, run, without_numbers

from sumgp.numerics.parallel import Lost, spread

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "soak-output" / "trials.jsonl"
PAGE = ROOT / "docs" / "soak.md"
JOBS = 2
SLOWEST = 5
INTRODUCTION = (
    "`make soak` draws random problems: laws of every kind with 1 to 8 outputs, 1 to 60 rows (most are small) and 1 to 3",
    "inputs; outputs in units from 1e-12 to 1e12, inputs shifted by up to 1e9, repeated inputs, up to 95 % of the entries",
    "missing; a quarter with hyperparameters averaged over, a third with bounds on some outputs. Each problem is fitted,",
    "predicted and sampled. Allowed are",
    "finite numbers on the law, and refusals with a remedy; where a law was not met, the fit's status must say so.",
)


def read_trials(path: Path) -> dict[int, Trial]:
    """Trials by seed; a last line that was cut off is left out and removed."""
    if not path.exists():
        return {}
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        path.write_bytes(whole)
    trials = (Trial(**json.loads(line)) for line in whole.decode().splitlines())
    return {trial.seed: trial for trial in trials}


def run_missing(path: Path, seeds: Sequence[int], jobs: int = JOBS) -> dict[int, Trial]:
    """Trials of all seeds: those in the file, and the others run now and appended as they finish."""
    known = read_trials(path)
    left = [seed for seed in seeds if seed not in known]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for done, (position, result) in enumerate(spread(run, left, jobs), 1):
            trial = result
            if isinstance(result, Lost):
                trial = Trial(left[position], "unknown", "unknown", "unknown", "process died", 0, result.reason[:200])
            known[trial.seed] = trial
            file.write(json.dumps(asdict(trial)) + "\n")
            file.flush()
            os.fsync(file.fileno())
            if trial.outcome not in ALLOWED:
                print(f"seed {trial.seed} ({trial.kind}, {trial.strategy}): {trial.outcome} {trial.message}", flush=True)
            if done % 200 == 0:
                print(f"{done} of {len(left)}", flush=True)
    return {seed: known[seed] for seed in seeds}


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lines of a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows), ""]


def counts(trials: Sequence[Trial], field: str) -> list[str]:
    """Outcomes by the values of a field."""
    outcomes = sorted({t.outcome for t in trials}, key=lambda o: (o not in ALLOWED, o))
    found = Counter((getattr(t, field), t.outcome) for t in trials)
    values = sorted({getattr(t, field) for t in trials})
    return table(
        [field, "problems", *outcomes],
        ([v, sum(found[v, o] for o in outcomes), *(found[v, o] for o in outcomes)] for v in values),
    )


def page(trials: Sequence[Trial]) -> str:
    """The table of outcomes as a page of the documentation."""
    cpu = sum(t.cpu for t in trials)
    bad = [t for t in trials if t.outcome not in ALLOWED]
    seeds = f"{min(t.seed for t in trials)} to {max(t.seed for t in trials)}"
    lines = ["# Soak test", "", *INTRODUCTION, "", f"This table: {len(trials)} problems, seeds {seeds}.", ""]
    verdict = f"{len(bad)} of {len(trials):,} problems failed." if bad else f"All {len(trials):,} problems passed."
    lines += [f"**{verdict}** CPU time {cpu / len(trials):.2f} s a problem.", ""]
    lines += ["## By law", "", *counts(trials, "kind"), "## By strategy", "", *counts(trials, "strategy")]
    lines += ["## By uncertainty", "", *counts(trials, "uncertainty")]
    lines += ["## Slowest", "", *slowest(trials), "## Largest violation of the law", "", *violations(trials)]
    lines += ["## Refusals by message", "", *refusals(trials)]
    if bad:
        rows = ([t.seed, t.kind, t.strategy, t.outcome, t.unmeasured, without_numbers(t.message)] for t in bad[:50])
        lines += [
            "## Not allowed",
            "",
            *table(["seed", "law", "strategy", "outcome", "outputs never measured", "message"], rows),
        ]
    return "\n".join(lines).rstrip() + "\n"


def slowest(trials: Sequence[Trial]) -> list[str]:
    """The problems that took longest."""
    worst = sorted(trials, key=lambda t: -t.seconds)[:SLOWEST]
    rows = ([t.seed, t.kind, t.strategy, t.uncertainty, f"{t.seconds:.1f}"] for t in worst)
    return [
        f"No problem may take longer than {LIMIT:.0f} s.",
        "",
        *table(["seed", "law", "strategy", "uncertainty", "seconds"], rows),
    ]


def violations(trials: Sequence[Trial]) -> list[str]:
    """The largest violation among fitted problems of each kind of law, relative to the largest term."""
    fitted = [t for t in trials if t.outcome == "fitted" and t.kind != "none"]
    rows = [[kind, f"{max(t.violation for t in fitted if t.kind == kind):.1e}"] for kind in sorted({t.kind for t in fitted})]
    return [f"Relative to the largest term; at most {TOLERANCE:g} is allowed.", "", *table(["law", "violation"], rows)]


def refusals(trials: Sequence[Trial]) -> list[str]:
    """How often each message was given, numbers and names left out."""
    found = Counter(without_numbers(t.message) for t in trials if t.outcome in REFUSALS)
    return table(["message", "problems"], found.most_common())


def main() -> int:
    """Run all trials and write docs/soak.md."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    trials = list(run_missing(RESULTS, range(first, first + count)).values())
    PAGE.write_text(page(trials), encoding="utf-8")
    bad = sum(t.outcome not in ALLOWED for t in trials)
    print(f"{len(trials)} problems, {bad} ended in a way that is not allowed; the table is in {PAGE.relative_to(ROOT)}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
