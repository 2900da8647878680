"""The page of a reproduction made again from its records."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from sumgp.cli.outputs import stages
from sumgp.errors import DataError
from sumgp_studies.commands.reproduce import report
from sumgp_studies.experiments import FOLDER, RecordFile, all_problems, find_recordings, records_path
from sumgp_studies.report import ReportSettings


def write_records_report(folder: Path, console: Console, figures: bool) -> None:
    """Write the page of the records in a folder."""
    file = RecordFile(records_path(folder))
    records = file.read()
    names = {record.experiment for record in records}
    recordings = None
    if any(record.data == "real" for record in records):
        downloaded = folder / FOLDER
        recordings = find_recordings(downloaded if downloaded.is_dir() else None)
        if recordings is None and figures:
            raise DataError("--figures: the recordings of the pendulum were not found; set SUMGP_DATA_DIR to their folder")
        # Without figures nobody reads them: any folder says that the records are those of recordings.
        recordings = recordings or folder
    problems = [problem for name, problem in all_problems(recordings).items() if name in names]
    with stages(console, "report"):
        report(file, problems, folder, ReportSettings(figures, 1, "integrated", 0), 0.0)
