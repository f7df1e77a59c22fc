"""Dask clusters on this machine, tables in partitions, and fits there and here, for tests."""

from __future__ import annotations

import logging
import random
import sys
from collections.abc import Collection
from typing import Any

import dask
import dask.array as da
import distributed
import numpy as np
from audited_fits import facts_of
from sklearn.base import clone

import gpustump.dask
from gpustump.dask.messages import Messages

# Dask would limit the threads of this process, too: it sets OMP_NUM_THREADS here whenever it starts
# a worker's process, and again when it replaces one that was killed.
dask.config.set({"distributed.nanny.pre-spawn-environ": {}})

WATCHED = ("X_val", "y_val", "sample_weight_val")


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
    answering = [name for name in dask_worker.handlers if name.startswith("gpustump")]
    module = sys.modules.get("gpustump.dask.worker")  # a worker without a fit has not imported it
    hosts = module._HOSTS.get(dask_worker, {}) if module else {}
    return answering + [name for name, host in hosts.items() if host is not None]


def tasks_left(dask_scheduler: Any) -> list[str]:
    """The tasks of fits that the scheduler still knows."""
    return [str(key) for key in dask_scheduler.tasks if "store" in str(key)]


def sizes_of(n_rows: int, seed: int, n_parts: int = 5) -> tuple[int, ...]:
    """Sizes of partitions: some empty, one of a single row, and all rows in order."""
    ends = np.sort(np.random.default_rng(seed).integers(0, n_rows + 1, size=n_parts - 1))
    ends[:2] = ends[:1] + np.arange(2) if ends[0] < n_rows else ends[:2]
    return tuple(np.diff([0, *np.sort(ends), n_rows]).tolist())


def spread(*arrays: Any, seed: int = 0) -> list[Any]:
    """Arrays of the same rows in partitions whose sizes are drawn; None stays None."""
    sizes = sizes_of(len(arrays[0]), seed)
    return [None if own is None else cut(own, *sizes) for own in arrays]


def cut(values: np.ndarray, *sizes: int) -> Any:
    """An array in partitions of some sizes, each made by a task of its own on any worker."""
    chunks = (sizes, *((width,) for width in values.shape[1:]))
    return da.from_array(values, chunks=chunks, inline_array=True)


def fitted(client: Any, estimator: Any, data: Any, validation: Any = (), *, seed: int = 0) -> Any:
    """A copy of an estimator that is fitted on a cluster, to arrays in drawn partitions."""
    own = dict(zip(WATCHED, spread(*validation, seed=seed + 4) if validation else (), strict=False))
    return gpustump.dask.fit(clone(estimator), *spread(*data, seed=seed), client=client, **own)


def fitted_here(estimator: Any, data: Any, validation: Any = ()) -> Any:
    """A copy that is fitted on this machine."""
    own = dict(zip(WATCHED, validation, strict=False))
    return clone(estimator).set_params(device="cpu").fit(*data, **own)


def check_equal(there: Any, here: Any) -> None:
    """Check that a cluster learnt what one machine learnt."""
    assert facts_of(there) == facts_of(here)


def lose_one(client: Any, chance: random.Random, among: Collection[str] = ()) -> None:
    """Close a worker at once, one of some addresses or any, and start another one."""
    there = {name: own for name, own in client.cluster.workers.items() if own.address in among}
    name, worker = chance.choice(list((there or client.cluster.workers).items()))
    client.sync(worker.close, nanny=False, executor_wait=False)
    client.cluster.workers.pop(name, None)
    client.cluster.scale(3)


def lose_at(monkeypatch: Any, client: Any, moments: Collection[int], seed: int) -> None:
    """Lose a worker before each sending of messages whose number, from 0, is among `moments`.

    It is one that a message is sent to: Dask may leave others without any partition.
    """
    chance, numbers, send = random.Random(seed), iter(range(10**9)), Messages.send

    def losing(self: Messages, messages: Any) -> Any:
        if next(numbers) in moments:
            lose_one(client, chance, {own.worker for own in messages})
        return send(self, messages)

    monkeypatch.setattr(Messages, "send", losing)
