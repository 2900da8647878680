"""The runner: every pair once, the same numbers for any number of processes, and no end but the last task."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from distributed import LocalCluster
from studies import stand_in
from studies.stand_in import Fails, Waves, stand_in_tasks, without_times

from sumgp.errors import SumGPWarning
from sumgp.numerics.parallel import Lost
from sumgp_studies.experiments import Cell, DoublePendulum, HarmonicOscillator, Triangle, runner
from sumgp_studies.experiments.methods import Fitted, all_methods
from sumgp_studies.experiments.records import RecordFile
from sumgp_studies.experiments.runner import plan, records_path, run, run_task, unfinished


def test_plan_goes_seed_by_seed_and_leaves_out_unsuited_methods():
    methods = [all_methods()["linearized"], all_methods()["gram"], all_methods()["transformed-laplace"]]
    tasks = plan([HarmonicOscillator(), Triangle()], lambda problem: methods, [4, 5])
    assert [task.seed for task in tasks] == [4] * 18 + [5] * 18
    assert {task.method.name for task in tasks if task.problem.name == "triangle"} == {"linearized", "gram"}
    assert {task.method.name for task in tasks if task.problem.name != "triangle"} == {"linearized", "transformed-laplace"}


def test_scores_of_a_record_by_hand():
    task = plan([HarmonicOscillator()], lambda problem: [Waves()], [3])[0]
    record = run_task(task)
    data = HarmonicOscillator().dataset(task.cell, 3)
    design = Waves.features(data.X_train)
    mean = Waves.features(data.X_test) @ np.linalg.solve(design.T @ design, design.T @ data.Y_train)
    assert record.rmse == pytest.approx(np.sqrt(np.mean((mean - data.F_test) ** 2)), rel=1e-9)
    assert record.rmse_norm == pytest.approx(record.rmse * np.sqrt(2), rel=1e-9)
    assert record.violation == pytest.approx(np.mean(np.abs(np.sum(mean**2, axis=1) / 2 - 0.8)), rel=1e-9)
    assert record.coverage == pytest.approx(np.mean(np.abs(mean - data.F_test) < 1.959964 * 0.1))
    assert record.width == pytest.approx(2 * 1.959964 * 0.1, rel=1e-6)
    expected = np.mean(((mean - data.F_test) / 0.1) ** 2 / 2 + np.log(0.1 * np.sqrt(2 * np.pi)))
    assert record.nlpd == pytest.approx(expected, rel=1e-9)
    assert record.status == "converged"
    assert record.cpu_seconds is not None
    assert record.coverages["0.95"] == record.coverage


def test_a_failed_fit_is_a_record_and_not_a_crash(tmp_path):
    file = RecordFile(tmp_path / "records.jsonl")
    tasks = plan([HarmonicOscillator()], lambda problem: [Waves(), Fails()], [0])
    run(tasks, file)
    failed = [record for record in file.read() if record.failed]
    assert len(failed) == 6
    assert failed[0].status.startswith("failed: NumericalError: nothing converged")
    assert failed[0].rmse is None
    assert unfinished(tasks, file) == []


def test_predictions_that_are_not_numbers_are_failures():
    class Lost(Waves):
        def fit(self, dataset, settings):
            return Fitted(lambda X: stand_in.Bell(np.full((len(X), 2), np.nan)), "converged")

    assert run_task(plan([HarmonicOscillator()], lambda problem: [Lost()], [0])[0]).failed


def test_warnings_of_a_fit_are_kept_in_its_record():
    class Worried(Waves):
        def fit(self, dataset, settings):
            warnings.warn("few effective samples", SumGPWarning, stacklevel=1)
            return super().fit(dataset, settings)

    record = run_task(plan([HarmonicOscillator()], lambda problem: [Worried()], [0])[0])
    assert record.warnings == ["SumGPWarning: few effective samples"]


def test_failed_records_are_repeated_only_when_asked(tmp_path):
    file = RecordFile(tmp_path / "records.jsonl")
    run(plan([HarmonicOscillator()], lambda problem: [Fails("waves")], [0]), file)
    tasks = plan([HarmonicOscillator()], lambda problem: [Waves()], [0])
    run(tasks, file)
    assert all(record.failed for record in file.read())
    run(tasks, file, retry_failed=True)
    assert not any(record.failed for record in file.read())


def test_nothing_is_computed_twice(tmp_path):
    file, seen = RecordFile(tmp_path / "records.jsonl"), []
    run(stand_in_tasks(1), file, on_record=seen.append)
    assert len(seen) == 12
    run(stand_in_tasks(2), file, on_record=seen.append)
    assert len(seen) == 24
    assert len({record.key for record in seen}) == 24


def test_number_of_processes_changes_no_number(tmp_path):
    one, two = RecordFile(tmp_path / "one.jsonl"), RecordFile(tmp_path / "two.jsonl")
    run(stand_in_tasks(2), one, jobs=1)
    run(stand_in_tasks(2), two, jobs=2)
    assert without_times(one) == without_times(two)
    assert len(without_times(one)) == 24


def test_a_dying_process_costs_only_its_own_task(tmp_path, monkeypatch):
    """What the runner makes of a death; tests/test_many.py kills a process of the same ``spread``."""

    def spread(work, items, jobs, dask_address):
        for position, task in enumerate(items):
            yield position, Lost("the process died: killed") if task.seed == 1 else work(task)

    monkeypatch.setattr(runner, "spread", spread)
    file = RecordFile(tmp_path / "records.jsonl")
    run(plan([DoublePendulum()], lambda problem: [Waves()], range(5)), file, jobs=2)
    records = file.read()
    assert len(records) == 5
    assert {record.dataset for record in records if record.failed} == {1}
    assert all("process died" in record.status for record in records if record.failed)


def start(out: Path, n_seeds: int, pause: float) -> subprocess.Popen:
    command = [sys.executable, stand_in.__file__, str(out), str(n_seeds), "2", str(pause)]
    return subprocess.Popen(command, start_new_session=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_killed_in_the_middle_and_started_again_gives_the_same_records(tmp_path):
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    run(stand_in_tasks(2), RecordFile(records_path(undisturbed)), jobs=1)
    process = start(killed, 2, pause=0.1)
    deadline = time.monotonic() + 120
    while lines(records_path(killed)) < 7 and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert 7 <= lines(records_path(killed)) < 24
    before = records_path(killed).read_bytes()
    run(stand_in_tasks(2), RecordFile(records_path(killed)), jobs=1)
    assert records_path(killed).read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    assert lines(records_path(killed)) == 24
    assert without_times(RecordFile(records_path(killed))) == without_times(RecordFile(records_path(undisturbed)))


def test_dask_cluster_that_loses_a_worker(tmp_path):
    plain, clustered = RecordFile(tmp_path / "plain.jsonl"), RecordFile(tmp_path / "clustered.jsonl")
    run(stand_in_tasks(2), plain)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        pids = [worker.pid for worker in cluster.workers.values()]
        seen = []

        def lose_one(record) -> None:
            seen.append(record)
            if len(seen) == 5:
                os.kill(pids[0], signal.SIGKILL)

        run(stand_in_tasks(2, pause=0.05), clustered, dask_address=cluster.scheduler_address, on_record=lose_one)
    assert len(seen) == 24
    assert without_times(clustered) == without_times(plain)


def test_cell_labels():
    assert Cell(0.05, 0.2).label() == "noise 0.05, 20% missing"
    assert Cell(1e-4).label() == "noise 0.0001"
    assert Cell().label() == "all data"
