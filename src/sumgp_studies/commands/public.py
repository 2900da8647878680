"""``sumgp reproduce public``: public sets with known laws, our fits beside competitors."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from sumgp.errors import SumGPError
from sumgp_studies.experiments import RecordFile
from sumgp_studies.public import (
    HIERARCHIES,
    PUBLIC_SETS,
    PublicSet,
    hierarchy_scores,
    plan,
    read_hierarchy,
    run_public,
    unfinished,
    write_page,
)

WORD = "public"


def data_folder(given: Path | None) -> Path:
    """The folder of the public data: the option, or the environment variable SUMGP_DATA_DIR."""
    folder = given or (Path(os.environ["SUMGP_DATA_DIR"]) if os.environ.get("SUMGP_DATA_DIR") else None)
    if folder is None or not folder.is_dir():
        got = "none" if folder is None else str(folder)
        raise SumGPError("data-dir", "a folder with the public data", got, "give --data-dir or set SUMGP_DATA_DIR")
    return folder


def chosen_sets(names: list[str], folder: Path) -> tuple[list[PublicSet], list[str]]:
    """The named sets whose data are there, and the hierarchies; without names all that are there."""
    known = {entry.name: entry for entry in PUBLIC_SETS}
    for name in names:
        if name not in known and name not in HIERARCHIES:
            near = difflib.get_close_matches(name, [*known, *HIERARCHIES], n=1)
            remedy = f"did you mean {near[0]!r}?" if near else "see the list"
            raise SumGPError("set", f"one of {', '.join([*known, *HIERARCHIES])}", repr(name), remedy)
    sets = [entry for entry in PUBLIC_SETS if entry.name in names or not names]
    lost = [entry.name for entry in sets if not entry.is_there(folder)]
    if names and lost:
        raise SumGPError("data-dir", f"the folder of {lost[0]!r}", f"none below {folder}", "put its files there")
    there = [name for name in HIERARCHIES if (folder / "hierarchies" / f"{name}.csv").is_file()]
    trees = [name for name in there if name in names or not names]
    return [entry for entry in sets if entry.is_there(folder)], trees


def reproduce_public(names: list[str], out: Path, jobs: int, quick: bool, data_dir: Path | None) -> None:
    """Run what is left, then write tables and figure; killed and started again, it continues where it was."""
    console = Console()
    folder = data_folder(data_dir)
    sets, trees = chosen_sets(names, folder)
    if not sets and not trees:
        raise SumGPError("data-dir", "at least one public set", f"none below {folder}", "see the docs for sources")
    file = RecordFile(out / ("public_quick.jsonl" if quick else "public.jsonl"))
    file.repair()
    tasks = list(plan(sets, folder, quick))
    left = unfinished(tasks, file)
    console.print(f"{len(tasks)} fits in all, {len(tasks) - len(left)} done before", highlight=False)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("fits", total=len(left))
        run_public(left, file, jobs, lambda: bar.advance(task))
    found = {name: hierarchy_scores(read_hierarchy(folder, name)) for name in trees}
    records = file.read()
    seen = {r.experiment.partition("/")[0] for r in records}  # sets of earlier runs stay on the page
    page = write_page(records, [entry for entry in PUBLIC_SETS if entry.name in seen], found, out)
    failed = sum(record.failed for record in records)
    console.print(f"{page}: {len(records)} scores, {failed} failed", markup=False, highlight=False, soft_wrap=True)
