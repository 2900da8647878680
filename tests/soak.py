"""Thousands of random problems, each under a time limit: writes a table of outcomes and fails if any is not allowed.

Run by ``make soak``; arguments: number of problems (default 10000) and first seed (default 0).
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from support.random_problems import outcome, random_problem

LIMIT = 30.0  # seconds of wall time
ALLOWED = ("fitted", "refused: DataError", "refused: ConstraintError", "refused: NumericalError", "law not met, and said so")


def trial(seed: int) -> tuple[int, str, str, float]:
    """Seed, kind, outcome and wall time of one problem."""
    problem = random_problem(seed)
    start = time.perf_counter()
    result = outcome(problem)
    seconds = time.perf_counter() - start
    return seed, problem.kind, result if seconds < LIMIT else f"over {LIMIT:.0f} s", seconds


def main() -> int:
    """Run all trials and write docs/soak.md."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    table: Counter[tuple[str, str]] = Counter()
    worst = 0.0
    with ProcessPoolExecutor(2) as pool:
        for done, (seed, kind, result, seconds) in enumerate(pool.map(trial, range(first, first + count), chunksize=4), 1):
            table[kind, result] += 1
            worst = max(worst, seconds)
            if result not in ALLOWED:
                print(f"seed {seed} ({kind}): {result}", flush=True)
            if done % 500 == 0:
                print(f"{done} of {count}", flush=True)
    lines = [f"{count} random problems, longest {worst:.1f} s.", "", "| law | outcome | problems |", "|---|---|---|"]
    lines += [f"| {kind} | {result} | {number} |" for (kind, result), number in sorted(table.items())]
    print("\n".join(lines))
    Path(__file__).parent.parent.joinpath("docs", "soak.md").write_text("# Soak test\n\n" + "\n".join(lines) + "\n")
    return int(any(result not in ALLOWED for _, result in table))


if __name__ == "__main__":
    sys.exit(main())
