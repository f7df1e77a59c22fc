"""What a Dask worker keeps during a fit: its rows, coded, and the weights of its samples.

Dask tasks bring the partitions here, one by one; the first one opens the fit's `Host`. From then on
the leading process, the one that calls `fit`, sends messages: each is the name of a method and its
arguments, and a round takes a few of them. They come by bare sockets (see `messages`), or else to
the worker's own server. (Dask's actors, and tasks, which pass through the scheduler, would take
many times as long.)

At the end of a fit, however it ends, its hosts are closed, and everything that they held is gone.
If the leading process dies, a host closes itself after half an hour without a message.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import socket
import threading
import weakref
from typing import Any, NamedTuple

import numpy as np
from distributed import Worker, get_worker
from distributed.comm.addressing import get_address_host
from distributed.protocol.serialize import to_serialize

from gpustump.dask.messages import (
    CONNECT,
    GONE,
    accepted,
    got,
    listening,
    put,
)
from gpustump.dask.partitions import Reading, Rows, Summary
from gpustump.dask.worker_rows import Store, WorkerRows
from gpustump.estimators.targets import Offset

_IDLE_SECONDS = 1800.0

_LISTENS = 10.0
"""Seconds for which a worker waits for a connection that it was asked for."""

_LOCK = threading.Lock()

_HOSTS: weakref.WeakKeyDictionary[Worker, dict[str, Host | None]] = weakref.WeakKeyDictionary()
"""For each worker in this process the hosts of its fits by name; None for a closed one, as a task
of that fit may still be running."""


class Destination(NamedTuple):
    """Where a partition is brought.

    Attributes
    ----------
    fit : str
        The fit's name, and that of its messages.
    shard : str
    number : int
        The partition's.
    max_memory : int or None
        Bytes that the fit may take on a worker; None for the worker's own limit.
    reading : Reading
    """

    fit: str
    shard: str
    number: int
    max_memory: int | None
    reading: Reading


def store(destination: Destination, X: Any, y: Any, sample_weight: Any, offset: Offset) -> Summary:
    """The task that brings a partition to the worker that it runs on."""
    worker = get_worker()
    with _LOCK:
        hosts = _HOSTS.setdefault(worker, {})
        if destination.fit not in hosts:
            hosts[destination.fit] = Host(worker, destination.fit, destination.max_memory)
        host = hosts[destination.fit]
    if host is None:
        raise RuntimeError("the fit that this partition was for is over")
    return host.store(destination, X, y, sample_weight, offset)._replace(worker=worker.address)


def close_host(fit: str, dask_worker: Worker) -> None:
    """Close the host of a fit on a worker; a task that comes later cannot open it again."""
    with _LOCK:
        hosts = _HOSTS.setdefault(dask_worker, {})
        host, hosts[fit] = hosts.get(fit), None
    if host is not None:
        host.close()


class Host:
    """Holds the shards of one fit on one worker, and answers its messages.

    Parameters
    ----------
    worker : distributed.Worker
    fit : str
    max_memory : int or None
        See `Destination`.
    """

    def __init__(self, worker: Worker, fit: str, max_memory: int | None) -> None:
        self._worker, self._fit = weakref.ref(worker), fit
        memory = worker.memory_manager.memory_limit
        self._limit, self._folder = max_memory or memory, worker.local_directory
        self._n_threads = int(worker.state.nthreads)
        self._shards: dict[str, WorkerRows] = {}
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._heard, self._is_closed = threading.Event(), False
        worker.handlers[fit] = self._answer
        worker.handlers[fit + CONNECT] = self._open_connection
        threading.Thread(target=self._close_when_idle, name=fit, daemon=True).start()

    def store(
        self, destination: Destination, X: Any, y: Any, sample_weight: Any, offset: Offset
    ) -> Summary:
        """Keep a partition for a shard. One is checked at a time, as that takes memory."""
        self._heard.set()
        with self._lock:
            rows = Rows.of(X, y, sample_weight, destination.reading, offset)
            summary = Summary.of(rows)
            own = self._shards.get(destination.shard)
            if own is None:
                own = WorkerRows(Store(self._limit, self._folder), self._n_threads)
                self._shards[destination.shard] = own
            own.add(destination.number, rows)
            return summary

    def close(self) -> None:
        """Forget everything, and answer no more."""
        self._is_closed = True
        worker = self._worker()
        if worker is not None:
            worker.handlers.pop(self._fit, None)
            worker.handlers.pop(self._fit + CONNECT, None)
        self._heard.set()
        for own in self._sockets:
            with contextlib.suppress(OSError):  # it may be closed
                own.shutdown(socket.SHUT_RDWR)  # ends its thread
        with self._lock:
            self._shards.clear()

    async def _answer(self, payload: bytes) -> dict[str, Any]:
        self._heard.set()
        if not payload:  # a ping
            return {"packed": None}
        answers = await asyncio.to_thread(self._answers, payload)
        array = np.frombuffer(pickle.dumps(answers, protocol=5), dtype=np.uint8)
        return {"packed": to_serialize(array)}  # bytes would take longer

    async def _open_connection(self) -> dict[str, Any]:
        """Listen in a thread of its own, and tell where; an empty answer if not."""
        worker = self._worker()
        found = None if worker is None else listening(get_address_host(worker.address))
        if found is None:
            return {}
        self._sockets.append(found[0])
        threading.Thread(target=self._serve, args=found, name=self._fit, daemon=True).start()
        return {"port": found[0].getsockname()[1], "secret": found[1]}

    def _serve(self, listener: socket.socket, secret: bytes) -> None:
        with contextlib.suppress(OSError):  # until the connection is closed
            with listener:
                connection = accepted(listener, secret, _LISTENS)
            self._sockets.append(connection)
            with connection:
                while not self._is_closed:
                    pieces = got(connection)
                    self._heard.set()
                    put(connection, self._answers(*pieces))

    def _answers(self, packed: bytes | memoryview, *buffers: memoryview) -> list[Any]:
        """The answers to packed messages; an error in place of the last one."""
        answers = list[Any]()
        try:
            for own in pickle.loads(packed, buffers=buffers):
                rows = self._shards.get(own.shard)
                answers.append(GONE if rows is None else rows.call(own.method, own.arguments))
        except Exception as error:
            answers.append(error)
        return answers

    def _close_when_idle(self) -> None:
        while self._heard.wait(_IDLE_SECONDS) and not self._is_closed:
            self._heard.clear()
        worker = self._worker()
        if worker is not None and not self._is_closed:
            close_host(self._fit, worker)
