"""Where the fits of `python -m bench cluster` find their rows: clusters of worker processes here.

All contenders share the clusters. The rows are Dask arrays in the workers' memory, cut into chunks
of uneven sizes, which are dealt out so that all workers have about the same number of rows.
Contenders, in processes of their own, get them from the scheduler by name.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.data import DataSet, Stored

_SHARES = (7, 3, 11, 3, 9, 12, 5, 8, 3, 10, 6, 3)
"""How the rows are shared among the chunks; two or four workers can have equally many."""


class Place(NamedTuple):
    """Where a process finds rows to train on."""

    stored: Stored
    scheduler: str | None = None
    """Of the cluster that holds them; None for this process's own memory."""

    @contextlib.contextmanager
    def opened(self) -> Iterator[Rows]:
        """The rows, held until the end."""
        if self.scheduler is None:
            yield Rows(self.stored.load())
            return
        from distributed import Client

        with Client(self.scheduler, set_as_default=False) as client:
            X, y = (client.get_dataset(part) for part in "Xy")
            yield Rows(self.stored.load(shared=True)._replace(X=X, y=y), client)


class Rows(NamedTuple):
    """A data set, whose part to train on may be on a cluster."""

    data: DataSet
    client: Any = None


class Workers:
    """A cluster of worker processes on this machine.

    Parameters
    ----------
    n_workers, threads : int
        The number of processes, and of the threads of each.
    log : Path
        The file for what they print.
    """

    def __init__(self, n_workers: int, threads: int, log: Path) -> None:
        from distributed import Client, LocalCluster

        self.n_workers, self.threads = n_workers, threads
        self._cluster = LocalCluster(
            n_workers=n_workers,
            threads_per_worker=threads,
            processes=True,
            dashboard_address="127.0.0.1:0",  # any free port
            silence_logs=logging.ERROR,
        )
        self._client = Client(self._cluster, set_as_default=False)
        self._client.run(_print_into, str(log))

    def place(self, stored: Stored) -> Place:
        """How others find these rows here."""
        return Place(stored, self._cluster.scheduler_address)

    def hold(self, stored: Stored, chunks: Sequence[int]) -> None:
        """Take a data set into the workers' memory, in place of the last one."""
        self.drop()
        addresses = sorted(self._client.scheduler_info(n_workers=-1)["workers"])
        homes = dealt(chunks, addresses)
        for part in "Xy":
            with self._client.as_current():
                array = self._persisted(stored.folder / f"{part}.npy", chunks, homes)
            self._client.publish_dataset(array, name=part)

    def drop(self) -> None:
        """Let go of the data set."""
        for name in self._client.list_datasets():
            self._client.unpublish_dataset(name)

    def close(self) -> None:
        """End all processes."""
        self._client.close()
        self._cluster.close()

    def _persisted(self, file: Path, chunks: Sequence[int], homes: Sequence[str]) -> Any:
        """The rows of a file as a Dask array, each chunk on its worker."""
        import dask.array
        from dask.delayed import delayed
        from distributed import wait

        whole = np.load(file, mmap_mode="r")
        starts = np.cumsum([0, *chunks]).tolist()
        pieces = []
        for (start, stop), home in zip(pairwise(starts), homes, strict=True):
            rows = delayed(rows_of, pure=False)(str(file), start, stop)
            shape = (stop - start, *whole.shape[1:])
            piece = dask.array.from_delayed(rows, shape, whole.dtype)
            pieces.append(self._client.persist(piece, workers=[home], allow_other_workers=False))
        wait(pieces)
        array = self._client.persist(dask.array.concatenate(pieces))
        wait(array)
        return array


def cut(n_samples: int) -> tuple[int, ...]:
    """The rows of each chunk: twelve chunks, the largest four times the smallest."""
    ends = np.rint(np.cumsum(_SHARES) * (n_samples / sum(_SHARES))).astype(int)
    return tuple(np.diff([0, *ends.tolist()]).tolist())


def dealt(chunks: Sequence[int], workers: Sequence[str]) -> list[str]:
    """A worker for each chunk: from the largest on, the one that has the fewest rows so far."""
    held = dict.fromkeys(workers, 0)
    homes = [""] * len(chunks)
    for index in sorted(range(len(chunks)), key=lambda k: -chunks[k]):
        homes[index] = min(held, key=lambda worker: held[worker])
        held[homes[index]] += chunks[index]
    return homes


def rows_of(file: str, start: int, stop: int) -> np.ndarray:
    """Some rows of an NPY file, in memory."""
    return np.array(np.load(file, mmap_mode="r")[start:stop])


def _print_into(log: str) -> None:
    """Send what a process prints to a file."""
    with open(log, "a") as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
