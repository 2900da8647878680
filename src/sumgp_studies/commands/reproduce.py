"""``sumgp reproduce``: run the paper's experiments and set own results beside the published ones."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from sumgp.errors import SumGPError
from sumgp_studies.commands.public import WORD, reproduce_public
from sumgp_studies.experiments import (
    FOLDER,
    Method,
    Problem,
    Record,
    RecordFile,
    Task,
    all_methods,
    all_problems,
    download_recordings,
    find_recordings,
    method_named,
    plan,
    records_path,
    run,
    unfinished,
    warn_if_altered,
)
from sumgp_studies.report import ReportSettings, write_report

BASELINE = "projected"
QUICK_DATASETS = 2


def reproduce(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="Experiments to run, 'all', or 'public' and names of public sets.")
    ] = None,
    method: Annotated[list[str] | None, typer.Option("--method", help="Method to run; may be repeated.")] = None,
    datasets: Annotated[int, typer.Option(min=1, help="Number of data sets of each cell.")] = 50,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes.")] = 2,
    out: Annotated[Path, typer.Option(help="Folder for records, tables, figures and the report.")] = Path("reproduction"),
    quick: Annotated[bool, typer.Option("--quick", help="Two data sets of each cell, plug-in hyperparameters.")] = False,
    plug_in: Annotated[bool, typer.Option("--plug-in", help="Do not average over hyperparameters.")] = False,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler whose workers do the fits.")] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of the double pendulum's recordings or of the public data.")
    ] = None,
    download: Annotated[bool, typer.Option("--download", help="Download those recordings (10 MB).")] = False,
    first_seed: Annotated[int, typer.Option(min=0, help="First seed; tune on seeds from 1000 up.")] = 0,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Repeat fits that failed before.")] = False,
    figures: Annotated[bool, typer.Option("--figures/--no-figures", help="Fit and draw the figures.")] = True,
) -> None:
    """Run the paper's experiments; killed and started again, it continues where it was."""
    console = Console()
    start = time.perf_counter()
    try:
        if experiments and experiments[0] == WORD:
            reproduce_public(experiments[1:], out, jobs, quick, data_dir)
            return
        problems = chosen_problems(experiments or ["all"], all_problems(_recordings(out, data_dir, download)))
        tasks = planned(problems, method, range(first_seed, first_seed + (QUICK_DATASETS if quick else datasets)),
                        "plug-in" if quick or plug_in else "integrated")  # fmt: skip
        file = RecordFile(records_path(out))
        for problem in problems:
            if not problem.comparable():
                console.print(f"{problem.name}: {problem.source()}", markup=False, style="bold yellow")
        run_with_progress(tasks, file, jobs, dask, retry_failed, console)
        settings = ReportSettings(figures, jobs, tasks[0].uncertainty, first_seed)
        lines = report(file, problems, out, settings, time.perf_counter() - start)
    except SumGPError as error:
        console.print(f"error: {error}", markup=False, style="bold red")
        raise typer.Exit(2) from error
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def chosen_problems(names: Sequence[str], problems: dict[str, Problem]) -> list[Problem]:
    """The named experiments in the order of the paper; an unknown name is an error that suggests the nearest one."""
    if "all" in names:
        return list(problems.values())
    for name in names:
        if name not in problems:
            near = difflib.get_close_matches(name, problems, n=1)
            remedy = f"did you mean {near[0]!r}?" if near else "see the list"
            raise SumGPError("experiment", f"'all' or one of {', '.join(problems)}", repr(name), remedy)
    return [problem for name, problem in problems.items() if name in names]


def planned(problems: Sequence[Problem], names: Sequence[str] | None, seeds: Sequence[int], uncertainty: str) -> list[Task]:
    """The tasks of a run; the baseline ``projected`` is always among the methods."""
    tasks = plan(problems, _methods_for(names), seeds, uncertainty)
    if not tasks or (names and all(task.method.name == BASELINE for task in tasks) and set(names) != {BASELINE}):
        expected = f"a method that suits {', '.join(problem.name for problem in problems)}"
        raise SumGPError("method", expected, ", ".join(names or ()), "choose another experiment or method")
    return tasks


def _methods_for(names: Sequence[str] | None) -> Callable[[Problem], Sequence[Method]]:
    if names:
        given = [method_named(name) for name in dict.fromkeys([*names, BASELINE])]
        return lambda problem: given
    methods = all_methods()
    return lambda problem: [methods[name] for name in problem.default_methods]


def _recordings(out: Path, data_dir: Path | None, download: bool) -> Path | None:
    folder = find_recordings(data_dir)
    if folder is None and download:
        folder = download_recordings(out / FOLDER)
    if folder is not None:
        warn_if_altered(folder)
    return folder


def run_with_progress(
    tasks: Sequence[Task], file: RecordFile, jobs: int, dask: str | None, retry_failed: bool, console: Console
) -> None:
    """Run what is left, with a bar that shows the remaining time and the number of failed fits."""
    left = len(unfinished(tasks, file, retry_failed))
    console.print(f"{len(tasks)} fits in all, {len(tasks) - left} done before", highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"),
               TimeRemainingColumn(), TextColumn("{task.fields[failed]} failed"))  # fmt: skip
    with Progress(*columns, console=console, refresh_per_second=2) as progress:
        bar = progress.add_task("fits", total=len(tasks), completed=len(tasks) - left, failed=0)
        failures = 0

        def show(record: Record) -> None:
            nonlocal failures
            failures += record.failed
            progress.update(bar, advance=1, failed=failures)

        run(tasks, file, jobs, dask, show, retry_failed)


def report(file: RecordFile, problems: Sequence[Problem], out: Path, settings: ReportSettings, seconds: float) -> list[str]:
    """Write tables, figures and page of these experiments; the summary and the files in words."""
    by_name = {problem.name: problem for problem in problems}
    records = [record for record in file.read() if record.experiment in by_name]
    facts = (("wall time of the last call, until the report", f"{seconds:.0f} s with {settings.jobs} processes"),)
    settings = replace(settings, facts=facts)
    written = write_report(records, by_name, all_methods(), out, settings)
    return [*written.lines, f"report: {out / 'report.html'}", f"tables: {out / 'tables.md'}"]
