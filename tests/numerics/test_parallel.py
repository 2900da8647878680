"""Work over processes: every item comes back once, and the death of a process costs only the item that caused it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from sumgp.errors import SumGPError
from sumgp.numerics.parallel import Lost, spread


@dataclass(frozen=True)
class Deadly:
    """Squares numbers, and kills its own process over one of them."""

    over: int

    def __call__(self, item: int) -> int:
        if item == self.over:
            os.kill(os.getpid(), signal.SIGKILL)
        return item**2


def square(item: int) -> int:
    return item**2


def refused(item: int) -> int:
    raise ValueError(f"refused {item}")


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_item_comes_back_once(jobs: int) -> None:
    found = list(spread(square, list(range(7)), jobs))
    assert sorted(found) == [(i, i**2) for i in range(7)]


def test_nothing_to_do() -> None:
    assert list(spread(square, [], 2)) == []


def test_a_dying_process_costs_one_item_only() -> None:
    found = dict(spread(Deadly(over=5), list(range(12)), 2))
    assert sorted(found) == list(range(12))
    lost = found.pop(5)
    assert isinstance(lost, Lost)
    assert "died" in lost.reason
    assert found == {i: i**2 for i in range(12) if i != 5}


def test_an_error_in_the_work_is_not_swallowed() -> None:
    with pytest.raises(ValueError, match="refused 0"):
        list(spread(refused, [0], 1))


def test_dask_gives_the_same() -> None:
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        found = list(spread(square, list(range(5)), dask_address=cluster.scheduler_address))
    assert sorted(found) == [(i, i**2) for i in range(5)]


def test_dask_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SumGPError, match="distributed is not installed"):
        list(spread(square, [1], dask_address="tcp://nowhere:1"))


ORPHANS = """
import os, pathlib, sys, time
from sumgp.numerics import spread

def work(item):
    pathlib.Path(sys.argv[1], f"{os.getpid()}").touch()
    time.sleep(60.0)

list(spread(work, [0, 1], jobs=2))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not list its processes there")
def test_workers_end_with_a_caller_that_is_killed(tmp_path: Path) -> None:
    """They went on for as long as their work took, minutes for a map."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    caller = subprocess.Popen([sys.executable, "-c", ORPHANS, str(tmp_path)], env=environment)
    try:
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2, 30.0)
    finally:
        caller.kill()
        caller.wait()
    workers = [int(path.name) for path in tmp_path.iterdir()]
    wait_until(lambda: not any(is_running(pid) for pid in workers), 10.0)


def is_running(pid: int) -> bool:
    """Whether a process does; one that has ended and that nobody waits for does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def wait_until(true: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)
