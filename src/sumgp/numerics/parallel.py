"""Independent work spread over processes or a Dask cluster, one result at a time, surviving the death of a worker."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from typing import Any

from joblib import Parallel, delayed

from sumgp.errors import SumGPError

LOOK_EVERY = 1.0  # seconds between looks at whether the caller is still there


@dataclass(frozen=True)
class Lost:
    """Stands for a result whose process died."""

    reason: str


def spread(
    work: Callable[[Any], Any], items: Sequence[Any], jobs: int = 1, dask_address: str | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield (position, work(item)) as results come in, in any order; ``Lost`` where a process died over an item."""
    return _through_dask(work, items, dask_address) if dask_address else _through_processes(work, items, jobs)


def _numbered(work: Callable[[Any], Any], position: int, item: Any, caller: int) -> tuple[int, Any]:
    _end_with(caller)
    return position, work(item)


@cache
def _end_with(caller: int) -> None:
    """End this process once the one that started it has died: the pool lets the work under way go on, for nobody."""
    if os.getpid() == caller:
        return
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_EVERY)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _through_processes(work: Callable[[Any], Any], items: Sequence[Any], jobs: int) -> Iterator[tuple[int, Any]]:
    left = dict(enumerate(items))
    while left:
        pool = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs", max_nbytes=None)
        try:
            under_way = (delayed(_numbered)(work, i, item, os.getpid()) for i, item in list(left.items()))
            for position, result in pool(under_way):
                del left[position]
                yield position, result
        except BrokenProcessPool:
            # One of the items under way killed its process (out of memory, say); each alone shows which.
            for position in list(left)[: 2 * jobs]:
                yield position, _alone(work, left.pop(position))


def _alone(work: Callable[[Any], Any], item: Any) -> Any:
    try:
        return next(iter(Parallel(n_jobs=2, max_nbytes=None)([delayed(work)(item)])))
    except BrokenProcessPool as error:
        return Lost(f"the process died: {error}")


def _through_dask(work: Callable[[Any], Any], items: Sequence[Any], address: str) -> Iterator[tuple[int, Any]]:
    try:
        from distributed import Client, KilledWorker, as_completed
    except ImportError as error:
        raise SumGPError("dask: the package distributed is not installed; install sumgp with the extra 'dask'") from error
    with Client(address) as client:
        run_name = uuid.uuid4().hex
        futures = {client.submit(work, item, key=f"sumgp-{run_name}-{i}", pure=False): i for i, item in enumerate(items)}
        for future in as_completed(list(futures)):
            position = futures.pop(future)
            try:
                # A result that was lost together with its worker is computed again by the scheduler.
                yield position, future.result()
            except KilledWorker as error:
                yield position, Lost(f"the workers died: {error}")
