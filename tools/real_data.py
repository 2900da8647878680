"""Real data: fits with a law and without, and baselines, on ten development sets that nobody simulated.

    python tools/real_data.py [--sets NAME ...] [--methods NAME ...] [--records FILE] [--first-only] [--freeze FILE]

The sets are read from SUMGP_DATA_DIR/real; each folder's NOTE.md states law and protocol. Each case and method is a few
lines of JSON in --records, and those that are there already are not fitted again. ``--first-only`` takes the first case of
each set. Prints the table of docs/real-data.md. ``--freeze`` writes the scores of the fit without a law, which later
versions are compared with, to a file.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import sumgp_studies.public
from sumgp_studies.public import METHODS, SETS, Case, cases, page, predicted, scored, summary

FROZEN_FILE = Path(sumgp_studies.public.__file__).parent / "frozen.jsonl"


def records_of(path: Path) -> list[dict[str, Any]]:
    """The records of a file, none if there is no such file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def completed(path: Path, wanted: list[tuple[Case, str]]) -> list[dict[str, Any]]:
    """Records of all cases and methods: those in the file, and the others fitted and added to it."""
    known = records_of(path)
    done = {(r["set"], r["case"], r["method"]) for r in known}
    with path.open("a") as out:
        for case, method in wanted:
            if (case.set_name, case.label, method) in done:
                continue
            new = [r | {"method": method} for r in scored(case, lambda c, m=method: predicted(c, m))]
            known += new
            out.write("".join(json.dumps(r) + "\n" for r in new))
            out.flush()
            short = ", ".join(f"{r['part']} {r['mse'] ** 0.5:.3f} ({r['coverage']:.2f})" for r in new)
            print(f"{case.set_name} {case.label} {method}: {short}, {new[0]['cpu']:.1f} s", file=sys.stderr, flush=True)
    keys = {(case.set_name, case.label, method) for case, method in wanted}
    return [r for r in known if (r["set"], r["case"], r["method"]) in keys]


def with_frozen(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records and, for the same cases, those of the frozen fit without a law."""
    present = {(r["set"], r["case"]) for r in records}
    frozen = [r | {"method": "frozen"} for r in records_of(FROZEN_FILE) if (r["set"], r["case"]) in present]
    return [*records, *frozen]


def main() -> None:
    """Read the arguments, fit what is missing, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--records", type=Path, default=Path("real_data.jsonl"))
    parser.add_argument("--first-only", action="store_true")
    parser.add_argument("--freeze", type=Path)
    chosen = parser.parse_args()
    root = os.environ.get("SUMGP_DATA_DIR")
    if not root or not (Path(root) / "real").is_dir():
        parser.error("set SUMGP_DATA_DIR to the folder that holds real/electricity_mix and the others")
    wanted: list[tuple[Case, str]] = []
    for name in chosen.sets:
        found = list(cases(Path(root) / "real", [name]))
        wanted += [(case, method) for case in (found[:1] if chosen.first_only else found) for method in chosen.methods]
    records = completed(chosen.records, wanted)
    if chosen.freeze is not None:
        kept = [r for r in records if r["method"] == "no law"]
        chosen.freeze.write_text("".join(json.dumps(r) + "\n" for r in kept))
        return
    print(page(summary(with_frozen(records))))


if __name__ == "__main__":
    main()
