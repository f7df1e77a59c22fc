"""Training on Dask: what a round costs on more and more worker processes of this machine.

gpustump by `gpustump.dask.fit`, with each kind of votes, beside XGBoost's and LightGBM's estimators
for Dask on the same clusters, and beside gpustump in one process with all threads. All train on the
same rows; the Dask arrays lie in the workers' memory, in twelve chunks. The workers of a cluster
have the threads together, at least one each. The models of all long fits are compared: gpustump's
must be the same everywhere, else the command fails. All of it takes about 10 minutes on two cores.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import importlib
import importlib.util
import json
import logging
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from bench.contenders import GROUPS, VOTES, Contender, chosen, is_ours
from bench.data import OF_CLASSES, Stored, load, store
from bench.records import Result
from bench.timing import (
    Found,
    UsageError,
    add_option,
    add_shared,
    check,
    play,
    scratch_folder,
    whole,
)
from bench.worker import Entry, Stage, Worker
from gpustump.arrays.devices import how_to_install

LOCAL = 0
"""Workers of a fit in one process, without Dask."""
_CHUNKS = 12
_SIZES = [(1_000_000, 50), (10_000, 30)]


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen on the command line."""
    add = functools.partial(add_option, parser)
    add("--data", str, ["synthetic", "noise"], "data sets", nargs="+", choices=OF_CLASSES)
    add("--sizes", _size, _SIZES, "samples and features, MxD", nargs="+")
    add("--workers", whole(1), [1, 2, 4], "worker processes of each cluster", nargs="+")
    add("--rounds", whole(1), (10, 100), "of the short and the long fit of a turn", nargs=2)
    add("--turns", whole(1), 2, "at most")
    add_shared(parser, "cluster", 10, 300)


def measure(options: argparse.Namespace, found: Found) -> tuple[Result, ...]:
    """Measure every data set; `found` gets what has been measured so far, after every step.

    Raises
    ------
    UsageError
        If the options contradict each other, or if Dask is not installed.
    """
    check(options)
    for module in ("dask", "distributed"):
        if importlib.util.find_spec(module) is None:
            raise UsageError(f"{module} is not installed: {how_to_install('dask')}")
    done: tuple[Result, ...] = ()
    with scratch_folder() as folder, contextlib.ExitStack() as ending:
        clusters = []
        for n_workers in sorted(set(options.workers)):
            clusters.append(Cluster(n_workers, max(1, options.threads // n_workers)))
            ending.callback(clusters[-1].close)
        for size in options.sizes:
            for name in options.data:
                data = functools.partial(load, name, *size)
                stored = store(data(), folder / f"{name}-{size[0]}x{size[1]}")
                for cluster in clusters:
                    cluster.hold(stored)
                players = _players(stored, data, clusters, options)
                done = play(players, options.turns, options.patience, found, done)
    return done


def _players(
    stored: Stored, data: Any, clusters: Sequence[Cluster], options: argparse.Namespace
) -> list[ClusterWorker]:
    """Each contender on each cluster, then those of ours in one process."""
    pairs: list[tuple[Contender, Cluster | None]]
    pairs = [
        (each, cluster) for each in chosen(GROUPS["cluster"], options.only) for cluster in clusters
    ]
    pairs += [(each, None) for each in chosen(VOTES, options.only)]
    return [
        ClusterWorker(
            f"{stored.name}, {stored.shape[0]} x {stored.shape[1]}",
            Entry(each, data, options.rounds, cluster.threads if cluster else options.threads),
            stored,
            options.limit,
            cluster,
        )
        for each, cluster in pairs
    ]


class ClusterWorker(Worker):
    """A contender whose process leads fits on a cluster, or fits by itself where there is none."""

    def __init__(
        self, case: str, entry: Entry, data: Stored, limit: float, cluster: Cluster | None
    ) -> None:
        super().__init__(case, entry, data, limit)
        self.facts["workers"] = cluster.n_workers if cluster else LOCAL
        self.name += f", {self.facts['workers'] or 'no'} workers"
        self._scheduler = cluster.address if cluster else None
        self._threads = cluster.n_workers * cluster.threads if cluster else entry.threads

    def start(self) -> float:
        stage = functools.partial(Leader, self._scheduler)
        entry = self.entry
        self.process.start(self._threads, stage, entry.contender, self.data, entry.threads)
        return float(self.process.ask("load"))

    def turn(self) -> dict[str, Any]:
        """A short fit and a long one, what passed between processes, and the long one's model."""
        took: dict[str, Any] = {}
        for name, rounds in zip(("short", "long"), self.entry.rounds, strict=True):
            took[name] = self.process.ask("fit", rounds)
            found = self.process.ask("counted")
            took |= {f"{what}_{name}": count for what, count in found.items()}
        return {**took, "model": self.process.ask("model_sha256")}

    def judge(self) -> None:
        """Nothing: the model of every turn is looked at."""


class Leader(Stage):
    """The orders to a process that leads the fits of one contender.

    Parameters
    ----------
    scheduler : str or None
        The address of the cluster that holds the rows; None for this process's own memory.
    contender, data, threads
        As of a `Stage`.
    """

    def __init__(self, scheduler: str | None, contender: Contender, data: Stored, threads: int):
        super().__init__(contender, data, threads)
        self._scheduler = scheduler
        self._client: Any = None

    def load(self) -> float:
        seconds = super().load()
        if is_ours(self.contender.name):  # small tables would not wait for kernels to be loaded
            importlib.import_module("gpustump.engines.cpu.coded")
            importlib.import_module("gpustump.engines.cpu.sorted")
        if self._scheduler is not None:
            from distributed import Client

            self._client = Client(self._scheduler, set_as_default=False)
            self.X, self.y = (self._client.get_dataset(part) for part in "Xy")
        return seconds

    def fitted(self, rounds: int) -> Any:
        before = _through_the_loopback()
        model = self._fitted(self.contender.make(rounds, self.threads))
        self._passed = max(0, _through_the_loopback() - before)
        return model

    def _fitted(self, model: Any) -> Any:
        if self._client is None:
            return model.fit(self.X, self.y)
        with self._client.as_current():  # libraries ask for the current one here and there
            if is_ours(self.contender.name):
                from gpustump import dask

                return dask.fit(model, self.X, self.y, client=self._client)
            model.client = self._client
            return model.fit(self.X, self.y)

    def counted(self) -> dict[str, float]:
        """Bytes through the loopback during the last fit, of all processes; and gpustump's own
        count of its messages, and of the bytes of a worker and round."""
        use = getattr(self.model, "cluster_", None)
        own = {"messages": use.n_messages, "round_bytes": use.round_bytes} if use else {}
        return {"passed": self._passed, **own}

    def model_sha256(self) -> str:
        """The digest of one of our models; for a peer's the hash of its trees alone."""
        if hasattr(self.model, "model_"):
            return str(self.model.model_.digest())
        if hasattr(self.model, "get_booster"):
            trees = "\n".join(self.model.get_booster().get_dump(dump_format="json"))
        else:
            trees = json.dumps(self.model.booster_.dump_model()["tree_info"])
        return hashlib.sha256(trees.encode()).hexdigest()


def _through_the_loopback() -> int:
    """Bytes so far; 0 where the system does not tell."""
    found = psutil.net_io_counters(pernic=True)
    own = found.get("lo") or found.get("lo0")
    return int(own.bytes_sent) if own else 0


class Cluster:
    """Worker processes on this machine, which all contenders share.

    Parameters
    ----------
    n_workers, threads : int
        The number of processes, and of the threads of each.
    """

    def __init__(self, n_workers: int, threads: int) -> None:
        from distributed import Client, LocalCluster

        self.n_workers, self.threads = n_workers, threads
        self._cluster = LocalCluster(
            n_workers=n_workers,
            threads_per_worker=threads,
            processes=True,
            dashboard_address="127.0.0.1:0",  # any free port
            silence_logs=logging.ERROR,
        )
        self.address = self._cluster.scheduler_address
        self._client = Client(self._cluster, set_as_default=False)

    def hold(self, stored: Stored) -> None:
        """Take a data set into the workers' memory, in place of the last one.

        Contenders, in processes of their own, get it from the scheduler by name.
        """
        for name in self._client.list_datasets():
            self._client.unpublish_dataset(name)
        for part in "Xy":
            with self._client.as_current():
                array = self._persisted(stored.folder / f"{part}.npy")
            self._client.publish_dataset(array, name=part)

    def close(self) -> None:
        """End all processes."""
        self._client.close()
        self._cluster.close()

    def _persisted(self, file: Path) -> Any:
        """The rows of a file as a Dask array, whose chunks are shared evenly by the workers."""
        import dask.array
        from dask.delayed import delayed
        from distributed import wait

        whole = np.load(file, mmap_mode="r")
        homes = sorted(self._client.scheduler_info(n_workers=-1)["workers"])
        starts = np.linspace(0, len(whole), _CHUNKS + 1).astype(int).tolist()
        pieces = []
        for index, (start, stop) in enumerate(pairwise(starts)):
            rows = delayed(rows_of, pure=False)(str(file), start, stop)
            piece = dask.array.from_delayed(rows, (stop - start, *whole.shape[1:]), whole.dtype)
            home = [homes[index * len(homes) // _CHUNKS]]
            pieces.append(self._client.persist(piece, workers=home, allow_other_workers=False))
        wait(pieces)
        array = self._client.persist(dask.array.concatenate(pieces))
        wait(array)
        return array


def rows_of(file: str, start: int, stop: int) -> np.ndarray:
    """Some rows of an NPY file, in memory."""
    return np.array(np.load(file, mmap_mode="r")[start:stop])


def _size(text: str) -> tuple[int, int]:
    """Samples and features, written 10000x30."""
    found = re.fullmatch(r"(\d+)x(\d+)", text)
    if not found or int(found[1]) < 16 or int(found[2]) < 4:
        raise argparse.ArgumentTypeError(f"{text!r} is not samples x features, 16x4 at least")
    return int(found[1]), int(found[2])
