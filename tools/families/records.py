"""Records of scored problems, one line of JSON each; a run that was stopped goes on where it ended."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from families.family import Family
from families.score import scored


def read(path: Path) -> list[dict[str, Any]]:
    """The records of a file, none if there is no such file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def completed(path: Path, families: Iterable[Family], seeds: range, jobs: int) -> list[dict[str, Any]]:
    """Records of all families and seeds: those in the file, and the others scored and added to it."""
    known = {(r["family"], r["seed"]): r for r in read(path)}
    wanted = [(family, seed) for seed in seeds for family in families]
    with path.open("a") as out:
        for record in _scores([pair for pair in wanted if (pair[0].name, pair[1]) not in known], jobs):
            out.write(json.dumps(record) + "\n")
            out.flush()
            known[record["family"], record["seed"]] = record
    return [known[family.name, seed] for family, seed in wanted]


def _scores(pairs: list[tuple[Family, int]], jobs: int) -> Iterator[dict[str, Any]]:
    """Records in the order in which they are ready."""
    if jobs == 1:
        return (scored(family, seed) for family, seed in pairs)
    return Parallel(jobs, return_as="generator_unordered")(delayed(scored)(family, seed) for family, seed in pairs)
