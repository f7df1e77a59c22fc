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
from dataclasses import dataclass, replace
from typing import Any

import distributed
from dask.delayed import delayed

from gpustump.dask.conversation import GONE, Conversation, Message
from gpustump.dask.holding import OWN, WorkerMemoryError
from gpustump.dask.partitions import Collection, Summary
from gpustump.dask.worker import Destination, close_host, store

_CHANGES = frozenset(
    (
        "number_categories",
        "weigh_labels",
        "number_classes",
        "scale_targets",
        "set_aside",
        "join",
        "take_share",
        "code",
        "begin",
        "advance",
        "watch",
        "judge",
    )
)
"""Messages that change a shard. The journal holds them in the order in which they were sent."""

_OF_RUN = frozenset(("begin", "advance", "watch", "judge"))
"""Those of a run of boosting; the next run begins anew."""

_OF_BAG = _OF_RUN | {"take_share", "code"}
"""Those of a bag; the next bag begins anew."""

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


class ByPart(dict[int, Any]):
    """Arguments that differ by partition: each shard is sent those of its own."""


@dataclass(frozen=True)
class Home:
    """A shard and the worker that holds it.

    Attributes
    ----------
    shard, worker : str
    parts : tuple of int
        The numbers of its partitions.
    n_samples : int
        How many samples it is trained on; not known before its rows are joined.
    """

    shard: str
    worker: str
    parts: tuple[int, ...]
    n_samples: int = -1

    @property
    def name(self) -> tuple[str, str]:
        """What distinguishes it from other shards."""
        return self.shard, self.worker


class DaskShards:
    """All shards of a fit; see `engines.cluster.shards.Shards`.

    Parameters
    ----------
    conversation : Conversation
    collection : Collection
        Kept by the leading process, from which any partition can be made again.
    max_memory : int, optional
        Bytes that the fit may take on a worker; by default the worker's own limit.

    Attributes
    ----------
    homes : tuple of Home
    n_lost : int
        How many shards were lost and made again.
    """

    def __init__(
        self, conversation: Conversation, collection: Collection, max_memory: int | None = None
    ) -> None:
        self.homes: tuple[Home, ...] = ()
        self.n_lost = 0
        self._conversation, self._collection = conversation, collection
        self._max_memory = max_memory
        self._visited: set[str] = set()
        self._journal: list[tuple[str, tuple[Any, ...]]] = []
        self._numbers = itertools.count()

    def __len__(self) -> int:
        """How many partitions there are."""
        return len(self._collection)

    def bring(self) -> dict[int, Summary]:
        """Bring all partitions to workers. Returns the summary of each."""
        self.homes, summaries = self._settled(range(len(self._collection)))
        return summaries

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        """The answer of each shard; lost shards are made again.

        Raises
        ------
        ClusterLostError
            If there is no worker left, or if a partition cannot be made again.
        """
        found = self.ask_by_home(method, *arguments)
        return [own for home, own in found if home.n_samples or method in OWN]

    def ask_by_home(self, method: str, *arguments: Any) -> list[tuple[Home, Any]]:
        """The same with the home that each answer comes from."""
        if method in _BEGINNINGS:  # what earlier runs, or bags, did is of no use any more
            gone = _BEGINNINGS[method]
            self._journal = [one for one in self._journal if one[0] not in gone]
        found: list[tuple[Home, Any]] = []
        waiting: Sequence[Home] = self.homes
        while True:
            answers = self._told(waiting, method, arguments)
            pairs = list(zip(waiting, answers, strict=True))
            found += [(home, own) for home, own in pairs if own is not GONE]
            lost = [home for home, own in pairs if own is GONE]
            if not lost:
                break
            waiting = self._made_again(lost)
        if method in _CHANGES:
            self._journal.append((method, arguments))
        return found

    def learn_sizes(self) -> int:
        """Note how many samples each shard has; returns how many all have."""
        found = self.ask_by_home("size")
        self.homes = tuple(replace(home, n_samples=own) for home, own in found)
        return sum(home.n_samples for home in self.homes)

    def close(self) -> None:
        """Make all workers that still exist forget this fit."""
        self._conversation.close()
        there = sorted(self._visited & set(self._conversation.workers()))
        client, fit = self._conversation.client, self._conversation.name
        client.run(close_host, fit, workers=there, on_error="ignore")

    def _told(self, homes: Sequence[Home], method: str, arguments: tuple[Any, ...]) -> list[Any]:
        """The answers of some shards, or `GONE`; None for shards without samples, not asked."""
        asked = [home for home in homes if home.n_samples or method in OWN]
        messages = [
            Message(home.shard, home.worker, method, _of_home(home, arguments)) for home in asked
        ]
        answers = dict(zip(asked, self._conversation.send(messages), strict=True))
        return [answers.get(home) for home in homes]

    def _made_again(self, lost: Sequence[Home]) -> tuple[Home, ...]:
        """New shards with the partitions of lost ones, in the state that those were in."""
        made: tuple[Home, ...] = ()
        while lost:
            self.n_lost += len(lost)
            self.homes = tuple(home for home in self.homes if home not in lost)
            fresh, _ = self._settled([part for home in lost for part in home.parts])
            lost = []
            for home in fresh:
                size = self._brought_up(home)
                if size is GONE:
                    lost.append(home)
                else:
                    made += (replace(home, n_samples=size),)
        self.homes += made
        return made

    def _brought_up(self, home: Home) -> Any:
        """Replay the journal in a new shard. Returns its number of samples, or `GONE`."""
        journal = [(method, _of_home(home, own)) for method, own in self._journal]
        (answer,) = self._told([home], "replay", (journal,))
        if answer is GONE or not any(method == "take_share" for method, _ in journal):
            return answer or home.n_samples
        return self._told([home], "size", ())[0]

    def _settled(self, parts: Sequence[int]) -> tuple[tuple[Home, ...], dict[int, Summary]]:
        """Bring partitions to workers, as a new shard on each. Returns the shards and summaries.

        If a worker is lost meanwhile, the scheduler gives its tasks to another one. So only the end
        shows where each partition is. Then each shard is told which partitions are its own, since a
        worker may also hold one that the scheduler took for lost.
        """
        shard = f"shard {next(self._numbers)}"
        homes: tuple[Home, ...] = ()
        summaries: dict[int, Summary] = {}
        waiting = list(parts)
        while waiting:
            found = self._stored(shard, waiting)
            self._visited |= {own.worker for own in found.values()}
            fresh = [
                Home(shard, worker, tuple(part for part in waiting if found[part].worker == worker))
                for worker in dict.fromkeys(found[part].worker for part in waiting)
            ]
            answers = self._conversation.send(
                [Message(home.shard, home.worker, "keep", (home.parts,)) for home in fresh]
            )
            kept = [home for home, own in zip(fresh, answers, strict=True) if own is True]
            homes += tuple(kept)
            summaries |= {part: found[part] for home in kept for part in home.parts}
            waiting = [part for home in fresh if home not in kept for part in home.parts]
            shard = f"shard {next(self._numbers)}"
        return homes, summaries

    def _stored(self, shard: str, parts: Sequence[int]) -> dict[int, Summary]:
        """Have partitions computed and kept, each by a worker that Dask chooses.

        Dask chooses the one that holds the partition, or computes it. A task that is bound to a
        worker would wait for ever if that worker were lost at the wrong moment; so would the tasks
        that it needs, which other partitions may need, too.
        """
        client = self._conversation.client
        data, bring = self._collection, delayed(store, pure=False)
        fit, limit = self._conversation.name, self._max_memory
        tasks = [
            bring(
                Destination(fit, shard, part, limit, data.categorical, data.loss),
                data.X[part], data.y[part], data.sample_weight[part],
            )
            for part in parts
        ]  # fmt: skip
        self._visited |= set(self._workers())
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
            if self._conversation.takes_tasks():
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
        while not (found := self._conversation.workers()):
            if time.monotonic() > ends:
                raise ClusterLostError(
                    f"the cluster has had no worker for {_WAIT_FOR_WORKERS:.0f} seconds."
                )
            time.sleep(0.2)
        return found


def _of_home(home: Home, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments that a shard is sent; the same object if they do not differ by partition."""
    if not any(isinstance(own, ByPart) for own in arguments):
        return arguments
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
