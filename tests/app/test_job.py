"""Processes that can be stopped, are stopped in time, and do not outlive the program."""

from __future__ import annotations

import time
from pathlib import Path

from app.person import LAW, Person, trouble

from sumgp.app.job import CANCELLED, DONE, FAILED, RUNNING, TOO_LONG, Job

MEMORY = 8_000_000_000
PATIENCE = 60.0  # seconds for a process to end


def alive(process_id: int) -> bool:
    """A process that ended but was not waited for counts as gone."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except OSError:
        return False


def gone(process_id: int) -> bool:
    until = time.monotonic() + PATIENCE
    while alive(process_id) and time.monotonic() < until:
        time.sleep(0.05)
    return not alive(process_id)


def reading(folder: Path, seconds: float = 60.0, memory: int = MEMORY) -> Job:
    (folder / "upload.csv").write_bytes(b"t,z\n0,1\n1,2\n")
    task = {"name": "read", "file": "upload.csv", "shown": "mine.csv", "rows": 100, "columns": 10}
    return Job(folder, task, seconds, memory)


def test_a_job_answers(tmp_path: Path) -> None:
    job = reading(tmp_path)
    assert job.wait().kind == DONE
    assert job.answer()["info"]["rows"] == 2
    job.cancel()
    assert job.state().kind == DONE, "what is done stays done"


def test_cancel_kills_the_process(person: Person) -> None:
    fit = person.start(person.table(), LAW)
    process_id = fit.job._process.pid
    assert alive(process_id)
    assert "Cancel" in person.ask(f"/fits/{fit.key}").text
    assert person.send(f"/fits/{fit.key}/cancel").headers["location"] == f"/fits/{fit.key}"
    assert gone(process_id)
    assert fit.job.state().kind == CANCELLED
    page = person.ask(f"/fits/{fit.key}").text
    assert "Stopped as you asked" in trouble(page)
    assert person.ask(f"/fits/{fit.key}/files/model.sumgp").status_code == 404
    assert person.send(f"/fits/{fit.key}/values", {"points": "1"}).status_code == 404


def test_a_job_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    job = reading(tmp_path, seconds=0.05)
    state = job.wait()
    assert state.kind == TOO_LONG
    assert "longest time allowed" in state.message
    assert gone(job._process.pid)


def test_a_job_without_memory_says_so(tmp_path: Path) -> None:
    state = reading(tmp_path, memory=60_000_000).wait()
    assert state.kind == FAILED
    assert "memory" in state.message or "died" in state.message


def test_a_worker_ends_with_the_program_that_started_it(tmp_path: Path) -> None:
    """The pipe to the worker closes when the server is gone, in whatever way."""
    job = reading(tmp_path)
    assert job.state().kind == RUNNING
    assert job._process.stdin is not None
    job._process.stdin.close()
    assert gone(job._process.pid)
    assert job.state().kind in (FAILED, DONE)


def test_only_so_many_fits_run_and_all_end_with_the_page(person: Person) -> None:
    table = person.table()
    fits = [person.start(table, LAW) for _ in range(person.workspace.limits.running)]
    answer = person.send(f"/tables/{table.key}/fits", LAW)
    assert answer.status_code == 400
    assert "under way already" in trouble(answer.text)
    folder = person.workspace.folder
    assert folder.is_dir()
    person.workspace.close()
    assert all(gone(fit.job._process.pid) for fit in fits)
    assert not folder.exists()


def test_old_tables_are_forgotten_with_their_files(person: Person) -> None:
    object.__setattr__(person.workspace.limits, "tables", 1)
    first, second = person.table(), person.table()
    assert not first.folder.exists()
    assert second.folder.exists()
    assert person.ask(f"/tables/{first.key}").status_code == 404


def test_only_results_can_be_downloaded(person: Person) -> None:
    fit = person.start(person.table(), LAW)
    fit.job.cancel()
    (fit.folder / "body.html").write_text("inside")
    for name in ("task.json", "stderr.txt", "body.html", "%2e%2e", "..%2fupload.csv", "%2e%2e%2f..%2fetc%2fpasswd"):
        assert person.ask(f"/fits/{fit.key}/files/{name}").status_code == 404
    (fit.folder / "predictions.csv").write_text("t,z")
    assert person.ask(f"/fits/{fit.key}/files/predictions.csv").content == b"t,z"
