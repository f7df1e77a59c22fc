"""The shards of a fit on the workers of a cluster, and what happens when a worker is lost.

Everything that changes a shard is noted in a journal. If a worker is lost with its shard, the
partitions of that shard are brought to the other workers, where they form new shards, and the
journal is replayed in these. What a shard holds follows from its rows and the journal, exactly. So
the new shards hold what the lost one held, and the round goes on.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

import distributed
from dask.delayed import delayed

from gpustump.dask.messages import GONE, NO_SAMPLES, Message, Messages
from gpustump.dask.partitions import ByPart, Collection, Reading, Summary
from gpustump.dask.worker import Destination, close_host, store
from gpustump.dask.worker_rows import WorkerMemoryError

_OF_RUN = frozenset(("begin", "advance", "watch", "judge"))
"""Messages that change a shard in a run of boosting; the next run begins anew."""

_OF_BAG = _OF_RUN | {"take_share", "code"}
"""Those of a bag; the next bag begins anew."""

_CHANGES = _OF_BAG | {
    "number_categories", "weigh_labels", "number_classes", "scale_targets", "join",
}  # fmt: skip
"""All messages that change a shard. The journal holds them in the order in which they were sent."""

_BEGINNINGS = {"begin": _OF_RUN, "take_share": _OF_BAG}

_LOOK_AGAIN = 1.0
"""Seconds between two checks whether the workers that compute partitions still exist."""

_WAIT_FOR_WORKERS = 60.0
"""Seconds to wait for a worker if none is left, as killed workers may be started again."""


class ClusterLostError(RuntimeError):
    """Workers or data are gone for good.

    Attributes
    ----------
    model : StumpEnsemble or None
        The model of the rounds that were done; None if there were none.

    Examples
    --------
    Keep the rounds that were done (X and y are those of `gpustump.dask.fit`):

    >>> import gpustump.dask
    >>> from gpustump import AdaBoostClassifier
    >>> from gpustump.dask import ClusterLostError
    >>> try:  # doctest: +SKIP
    ...     gpustump.dask.fit(AdaBoostClassifier(n_estimators=3), X, y)
    ... except ClusterLostError as error:
    ...     print(error, error.model)
    the cluster has had no worker for 60 seconds. StumpEnsemble of 2 stumps ...
    """

    model: Any = None


@dataclass(frozen=True)
class Home:
    """A shard and the worker that holds it.

    Attributes
    ----------
    shard, worker : str
    parts : tuple of int
        The numbers of its partitions.
    """

    shard: str
    worker: str
    parts: tuple[int, ...]


class DaskShards:
    """All shards of a fit; see `engines.cluster.shards.Shards`.

    Parameters
    ----------
    messages : Messages
    collection : Collection
        Kept by the leading process, from which any partition can be made again.
    reading : Reading
    max_memory : int or None
        Bytes that the fit may take on a worker; by default the worker's own limit.

    Attributes
    ----------
    homes : tuple of Home
    traffic : Traffic
        The messages so far.
    n_lost : int
        How many shards were lost and made again.
    """

    def __init__(
        self,
        messages: Messages,
        collection: Collection,
        reading: Reading,
        max_memory: int | None,
    ) -> None:
        self.homes: tuple[Home, ...] = ()
        self.traffic, self.n_lost = messages.traffic, 0
        self._messages, self._collection, self._reading = messages, collection, reading
        self._max_memory = max_memory
        self._journal: list[tuple[str, tuple[Any, ...]]] = []
        self._numbers = itertools.count()

    def bring(self) -> dict[int, Summary]:
        """Bring all partitions to workers. Returns the summary of each."""
        self.homes, summaries = self._settled(range(len(self._collection)))
        return summaries

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        """The answer of each shard that has samples; lost shards are made again.

        Raises
        ------
        ClusterLostError
            If there is no worker left, or if a partition cannot be made again.
        """
        if method in _BEGINNINGS:  # what earlier runs, or bags, did is of no use any more
            gone = _BEGINNINGS[method]
            self._journal = [one for one in self._journal if one[0] not in gone]
        found: list[Any] = []
        waiting: Sequence[Home] = self.homes
        while waiting:
            answers = self._told(waiting, method, arguments)
            found += [own for own in answers if own is not GONE and own is not NO_SAMPLES]
            lost = [home for home, own in zip(waiting, answers, strict=True) if own is GONE]
            waiting = self._made_again(lost)
        if method in _CHANGES:
            self._journal.append((method, arguments))
        return found

    def ask_by_part(self, method: str, *arguments: Any) -> dict[int, Any]:
        """The same for answers that are by partition, put together, in order of these."""
        answers = self.ask(method, *arguments)
        return dict(sorted((part, own) for answer in answers for part, own in answer.items()))

    def close(self) -> None:
        """Make all workers that still exist forget this fit."""
        self._messages.close()
        self._messages.client.run(close_host, self._messages.name, on_error="ignore")

    def _told(self, homes: Sequence[Home], method: str, arguments: tuple[Any, ...]) -> list[Any]:
        """The answers of some shards, or `GONE`."""
        return self._messages.send(
            [Message(home.worker, home.shard, method, _of_home(home, arguments)) for home in homes]
        )

    def _made_again(self, lost: Sequence[Home]) -> tuple[Home, ...]:
        """New shards with the partitions of lost ones, in the state that those were in."""
        made: list[Home] = []
        while lost:
            self.n_lost += len(lost)
            self.homes = tuple(home for home in self.homes if home not in lost)
            fresh, _ = self._settled([part for home in lost for part in home.parts])
            lost = []
            for home in fresh:
                journal = [(method, _of_home(home, own)) for method, own in self._journal]
                (answer,) = self._told([home], "replay", (journal,))
                (lost if answer is GONE else made).append(home)
        self.homes += tuple(made)
        return tuple(made)

    def _settled(self, parts: Sequence[int]) -> tuple[tuple[Home, ...], dict[int, Summary]]:
        """Bring partitions to workers, as a new shard on each. Returns the shards and summaries.

        If a worker is lost meanwhile, the scheduler gives its tasks to another one. So only the end
        shows where each partition is. Then each shard is told which partitions are its own, since a
        worker may also hold one that the scheduler took for lost.
        """
        homes: tuple[Home, ...] = ()
        summaries: dict[int, Summary] = {}
        waiting = list(parts)
        while waiting:
            shard = f"shard {next(self._numbers)}"
            found = self._stored(shard, waiting)
            fresh = [
                Home(shard, worker, tuple(part for part in waiting if found[part].worker == worker))
                for worker in dict.fromkeys(found[part].worker for part in waiting)
            ]
            answers = self._told(fresh, "keep", (ByPart(dict.fromkeys(waiting)),))
            kept = [home for home, own in zip(fresh, answers, strict=True) if own is True]
            homes += tuple(kept)
            summaries |= {part: found[part] for home in kept for part in home.parts}
            waiting = [part for home in fresh if home not in kept for part in home.parts]
        return homes, summaries

    def _stored(self, shard: str, parts: Sequence[int]) -> dict[int, Summary]:
        """Have partitions computed and kept, each by a worker that Dask chooses.

        Dask chooses the one that holds the partition, or computes it. A task that is bound to a
        worker would wait for ever if that worker were lost at the wrong moment; so would the tasks
        that it needs, which other partitions may need, too.
        """
        client = self._messages.client
        data, bring = self._collection, delayed(store, pure=False)
        fit, limit = self._messages.name, self._max_memory
        tasks = [
            bring(Destination(fit, shard, part, limit, self._reading), *data.parts[part])
            for part in parts
        ]
        self._workers()  # waits for one if there is none
        futures = dict(zip(parts, client.compute(tasks), strict=True))
        try:
            self._await(futures)
            return {part: future.result() for part, future in futures.items()}
        except CancelledError as error:
            raise _not_to_be_had(str(error)) from error
        finally:
            client.cancel(list(futures.values()), force=True)

    def _await(self, futures: Mapping[int, Any]) -> None:
        """Wait until all partitions are kept."""
        last_ready = time.monotonic()
        while any(future.status == "pending" for future in futures.values()):
            with contextlib.suppress(TimeoutError, CancelledError):
                distributed.wait(list(futures.values()), _LOOK_AGAIN)
            self._workers()
            if self._messages.takes_tasks():
                last_ready = time.monotonic()
            elif time.monotonic() > last_ready + _WAIT_FOR_WORKERS:
                raise WorkerMemoryError(
                    "every worker has paused, as its memory is nearly full, for "
                    f"{_WAIT_FOR_WORKERS:.0f} seconds. Give the workers more memory "
                    "(memory_limit), or free what else they hold, which client.who_has() shows."
                )
        for part, future in futures.items():
            if future.status != "finished":
                raise _why_not_made(self._collection.name_of(part), future)

    def _workers(self) -> dict[str, int]:
        """All workers, at least one."""
        ends = time.monotonic() + _WAIT_FOR_WORKERS
        while not (found := self._messages.workers()):
            if time.monotonic() > ends:
                raise ClusterLostError(
                    f"the cluster has had no worker for {_WAIT_FOR_WORKERS:.0f} seconds."
                )
            time.sleep(0.2)
        return found


def _of_home(home: Home, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments that a shard is sent."""
    return tuple(
        {part: own[part] for part in home.parts if part in own} if isinstance(own, ByPart) else own
        for own in arguments
    )


def _why_not_made(part: str, future: Any) -> Exception:
    """Why a partition could not be brought to a worker."""
    error: Exception | None = future.exception() if future.status == "error" else None
    if error is None or isinstance(error, distributed.scheduler.KilledWorker | CancelledError):
        return _not_to_be_had(f"{part}: {error or future.status}")
    error.add_note(f"in {part}")
    return error


def _not_to_be_had(what: str) -> ClusterLostError:
    return ClusterLostError(
        f"a part of the data is lost: {what}. It was on a worker that is gone, and Dask cannot "
        "compute it again; or workers die while they compute it."
    )
