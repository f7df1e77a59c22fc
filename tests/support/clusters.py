"""Dask clusters on this machine, for tests."""

from __future__ import annotations

import logging
from typing import Any

import dask
import distributed

# Dask would limit the threads of this process, too: it sets OMP_NUM_THREADS here whenever it starts
# a worker's process, and again when it replaces one that was killed.
dask.config.set({"distributed.nanny.pre-spawn-environ": {}})


def client_of(*, is_current: bool = True, **how: Any) -> Any:
    """A client of a new cluster, which `closed` closes.

    Its workers have no limit of memory: those in this process would count all of it as their own,
    and pause for ever where other tests have left much of it.
    """
    cluster = distributed.LocalCluster(
        threads_per_worker=1,
        memory_limit=0,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
        **how,
    )
    return distributed.Client(cluster, set_as_default=is_current)


def closed(client: Any) -> None:
    client.close()
    client.cluster.close()


def what_is_left(dask_worker: Any) -> list[str]:
    """The fits that a worker still answers for."""
    from gpustump.dask.worker import _HOSTS

    answering = [name for name in dask_worker.handlers if name.startswith("gpustump")]
    hosts = _HOSTS.get(dask_worker, {})
    return answering + [name for name, host in hosts.items() if host is not None]


def tasks_left(dask_scheduler: Any) -> list[str]:
    """The tasks of fits that the scheduler still knows."""
    return [str(key) for key in dask_scheduler.tasks if "store" in str(key)]
