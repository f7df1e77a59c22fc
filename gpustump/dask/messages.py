"""Messages of a fit to workers, and their answers: who is gone, and how many bytes it took.

The leading process, the one that calls `fit`, sends a message to each worker, and waits for all
answers. A worker counts as gone when its connection breaks or stalls, or when the scheduler does
not know it any more. So nothing waits for a worker that does not exist.

Messages go by bare sockets, which take a fraction of the time of Dask's servers (`bench/NOTES.md`).
For each connection a worker listens at a port of its own, which it tells with a secret in answer to
a call of Dask's. Each end shows its half of the secret before the other unpickles anything.
Encrypted connections, and those within one process, are left to Dask. If the leading process cannot
reach the workers, for example because of a gateway, the scheduler passes the messages on.
"""

from __future__ import annotations

import asyncio
import itertools
import pickle
import secrets
import selectors
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed.comm.addressing import get_address_host

_LOOK_AGAIN = 2.0
"""Seconds without an answer after which the scheduler is asked whether the workers still exist."""

_PATIENCE = 60.0
"""Seconds in which a worker must answer a ping, or else counts as gone."""

_FIRST_WORD = 10.0
"""Seconds in which a worker must answer the first call, or else messages go by the scheduler."""

_STALLED = 60.0
"""Seconds without a byte in the middle of a message after which its worker counts as gone. The
system would notice a lost machine only after a time limit of its own, which may be hours."""

CONNECT = "-connect"
"""Ends the name of the messages that ask for a connection; the first part is the fit's name."""

_ALIGNMENT = 8
"""Bytes. Kernels take aligned arrays only."""

_LENGTH = struct.Struct("<Q")
"""What comes before each message on a socket: how many bytes it has."""

_PARTS_AT_ONCE = 512
"""Systems take up to 1024."""

_CAN_SEND_PARTS = hasattr(
    socket.socket, "sendmsg"
)  # not on Windows, where there are no connections

_HALF = 32
"""Bytes of the secret that each end shows the other."""


@dataclass
class Traffic:
    """The messages so far.

    Attributes
    ----------
    n_messages : int
        To all workers together.
    sent, received : int
        Bytes of messages, and of answers.
    """

    n_messages: int = 0
    sent: int = 0
    received: int = 0

    @property
    def n_bytes(self) -> int:
        """Bytes of messages and answers."""
        return self.sent + self.received


@dataclass(frozen=True)
class Message:
    """A call of a method on a shard.

    Attributes
    ----------
    shard, worker : str
        The shard's name, and the address of the worker that holds it.
    method : str
    arguments : tuple
    """

    shard: str
    worker: str
    method: str
    arguments: Sequence[Any] = ()


class UnknownShardError(LookupError):
    """A worker does not hold the shard that it is asked about, as it was started again."""


class Gone:
    """In place of an answer: the worker, or what it held, does not exist any more."""


GONE = Gone()


class Messages:
    """Messages of one fit.

    Parameters
    ----------
    client : distributed.Client
    name : str
        Of the fit; see `worker.Destination`.
    """

    def __init__(self, client: Any, name: str) -> None:
        self.client, self.name = client, name
        self.traffic = Traffic()
        self._is_direct: bool | None = None
        self._connections: dict[str, socket.socket | None] = {}  # None where there can be none

    def send(self, messages: Sequence[Message]) -> list[Any]:
        """The answer to each message, or `GONE`.

        Raises
        ------
        Exception
            What a worker raised.
        """
        payloads = _payloads(messages)
        answers: list[Any] = [GONE] * len(messages)
        waiting = list(range(len(messages)))
        try:
            while waiting:  # one message to each worker at a time
                first = list({messages[k].worker: k for k in reversed(waiting)}.values())
                found = self._sent([messages[k] for k in first], [payloads[k] for k in first])
                for k, own in zip(first, found, strict=True):
                    answers[k] = own
                waiting = [k for k in waiting if k not in first]
        except BaseException:
            self.close()  # answers may be on their way
            raise
        for message, own in zip(messages, answers, strict=True):
            if isinstance(own, Exception):
                own.add_note(f"on the worker {message.worker}")
                raise own
        return answers

    def close(self) -> None:
        """Close all connections; they are opened again if they are needed."""
        for connection in self._connections.values():
            if connection is not None:
                connection.close()
        self._connections.clear()

    def workers(self) -> dict[str, int]:
        """The addresses of all workers, and how many threads each has."""
        return dict(self.client.sync(self._workers))

    def takes_tasks(self) -> bool:
        """Whether some worker begins tasks. (Dask pauses workers whose memory is nearly full.)"""
        about = self.client.sync(self.client.scheduler.identity, n_workers=-1)
        return any(worker["status"] == "running" for worker in about["workers"].values())

    async def _workers(self) -> Mapping[str, int]:
        found: Mapping[str, int] = await self.client.scheduler.ncores()
        return found

    def _sent(self, messages: Sequence[Message], payloads: Sequence[bytes]) -> list[Any]:
        """The answers to messages to different workers."""
        if any(message.worker not in self._connections for message in messages):
            self._connect([message.worker for message in messages])
        answers: list[Any] = [GONE] * len(messages)
        asked, others = dict[int, socket.socket](), []
        for k, (message, payload) in enumerate(zip(messages, payloads, strict=True)):
            connection = self._connections[message.worker]
            if connection is None:
                others.append(k)
                continue
            try:
                put(connection, [payload])
                asked[k] = connection
            except OSError:
                self._drop(message.worker)
        if others:
            pairs = [messages[k] for k in others], [payloads[k] for k in others]
            for k, own in zip(others, self.client.sync(self._send, *pairs), strict=True):
                answers[k] = own
        self._await(asked, messages, answers)
        for payload, own in zip(payloads, answers, strict=True):
            if own is not GONE:
                self.traffic.n_messages += 1
                self.traffic.sent += len(payload)
                self.traffic.received += len(own)
        return [_opened(own) for own in answers]

    def _await(
        self, asked: Mapping[int, socket.socket], messages: Sequence[Message], answers: list[Any]
    ) -> None:
        """Wait for all answers by sockets; those of workers that have gone will not come."""
        with selectors.DefaultSelector() as waiting:
            for k, connection in asked.items():
                waiting.register(connection, selectors.EVENT_READ, k)
            while about := waiting.get_map():
                ready = [key for key, _ in waiting.select(_LOOK_AGAIN)]
                for key in ready:
                    waiting.unregister(key.fileobj)
                    try:
                        answers[key.data] = got(asked[key.data])
                    except OSError:
                        self._drop(messages[key.data].worker)
                if not ready:
                    late = list(about.values())
                    workers = {messages[key.data].worker for key in late}
                    gone = self.client.sync(self._gone, workers)
                    for key in late:
                        if messages[key.data].worker in gone:
                            waiting.unregister(key.fileobj)
                            self._drop(messages[key.data].worker)

    def _drop(self, worker: str) -> None:
        """Close a connection that is broken."""
        connection = self._connections.pop(worker)
        if connection is not None:
            connection.close()

    def _connect(self, workers: Sequence[str]) -> None:
        """Open the connections to some workers that have none, where there can be connections."""
        new = [worker for worker in workers if worker not in self._connections]
        places = self.client.sync(self._places, new)
        with ThreadPoolExecutor(len(new)) as at_once:  # a firewall may let each wait in vain
            self._connections |= zip(new, at_once.map(connected, new, places), strict=True)

    async def _places(self, workers: Sequence[str]) -> list[tuple[int, bytes] | None]:
        return await asyncio.gather(*map(self._place, workers))

    async def _place(self, worker: str) -> tuple[int, bytes] | None:
        """The port at which a worker listens, and the secret; None if it does not."""
        if not worker.startswith("tcp://") or not await self._reaches(worker):
            return None
        try:
            asked = getattr(self.client.rpc(worker), self.name + CONNECT)()
            told = await asyncio.wait_for(asked, _FIRST_WORD)
        except (TimeoutError, OSError, EOFError):
            return None
        # A worker that does not know the fit answers with something else.
        return (told["port"], told["secret"]) if isinstance(told, dict) and "port" in told else None

    async def _send(self, messages: Sequence[Message], payloads: Sequence[bytes]) -> list[Any]:
        """The answers, packed, to messages by Dask's own connections; those of workers that have
        gone will not come."""
        tasks = {
            asyncio.ensure_future(self._call(message, payload)): message.worker
            for message, payload in zip(messages, payloads, strict=True)
        }
        waiting = set(tasks)
        try:
            while waiting:
                _, waiting = await asyncio.wait(waiting, timeout=_LOOK_AGAIN)
                gone = await self._gone({tasks[task] for task in waiting}) if waiting else set()
                for task in waiting:
                    if tasks[task] in gone:
                        task.cancel()
                await asyncio.sleep(0)
                waiting = {task for task in waiting if not task.done()}
            return [GONE if task.cancelled() else task.result() for task in tasks]
        finally:
            for task in tasks:
                task.cancel()

    async def _gone(self, workers: set[str]) -> set[str]:
        """The workers that do not exist any more, or do not know this fit."""
        there = await self._workers()
        asked = sorted(workers & set(there))
        pings = [asyncio.wait_for(self._passed_on(worker, b""), _PATIENCE) for worker in asked]
        found = await asyncio.gather(*pings, return_exceptions=True)
        silent = {w for w, own in zip(asked, found, strict=True) if isinstance(own, Exception)}
        return silent | (workers - set(there))

    async def _call(self, message: Message, payload: bytes) -> Any:
        """The answer, packed; `GONE` if no answer can come."""
        try:
            return (await self._passed_on(message.worker, payload))["packed"].data
        except (TimeoutError, OSError, EOFError):  # Dask's errors of comms are OSErrors
            return GONE

    async def _passed_on(self, worker: str, payload: bytes) -> dict[str, Any]:
        if await self._reaches(worker):
            answer = await getattr(self.client.rpc(worker), self.name)(payload=payload)
        else:
            message = {"op": self.name, "payload": payload}
            answer = await self.client.scheduler.proxy(worker=worker, msg=message)
        if not isinstance(answer, dict) or "packed" not in answer:
            raise OSError(f"{worker} does not know this fit")
        return answer

    async def _reaches(self, worker: str) -> bool:
        if self._is_direct is None:
            self._is_direct = await self._can_reach(worker)
        return self._is_direct

    async def _can_reach(self, worker: str) -> bool:
        """Whether workers can be reached without the scheduler."""
        try:
            await asyncio.wait_for(self.client.rpc(worker).identity(), _FIRST_WORD)
        except (TimeoutError, OSError):
            return worker not in await self._workers()  # if it is gone, others may be reached
        return True


def _payloads(messages: Sequence[Message]) -> list[bytes]:
    """The messages as bytes; the same arguments are packed once."""
    known: dict[int, bytes] = {}
    for message in messages:
        if id(message.arguments) not in known:
            about = (message.method, tuple(message.arguments))
            known[id(message.arguments)] = pickle.dumps(about, protocol=5)
    return [
        pickle.dumps((message.shard, known[id(message.arguments)]), protocol=5)
        for message in messages
    ]


def _opened(answer: Any) -> Any:
    """The answer in a packed one, or the exception that the worker raised; or `GONE`."""
    if answer is GONE:
        return GONE
    found = unpacked(answer)
    return GONE if isinstance(found, UnknownShardError) else found


def listening(host: str) -> tuple[socket.socket, bytes] | None:
    """A socket that waits for one connection, and a new secret; None if there can be none.

    Parameters
    ----------
    host : str
        The address at which this machine is reached.
    """
    if not _CAN_SEND_PARTS:
        return None
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, 0), family=family), secrets.token_bytes(2 * _HALF)
    except OSError:  # for example, the address is that of a gateway
        return None


def accepted(listener: socket.socket, secret: bytes, seconds: float) -> socket.socket:
    """The connection of the first caller that shows its half of the secret; others are turned away.

    Raises
    ------
    OSError
        If there is none in time, or if the listening socket is closed.
    """
    ends = time.monotonic() + seconds
    while True:
        listener.settimeout(max(0.0, ends - time.monotonic()))
        connection, _ = listener.accept()
        try:
            connection.settimeout(seconds)
            if secrets.compare_digest(_exactly(connection, _HALF), secret[:_HALF]):
                connection.sendall(secret[_HALF:])
                return _without_delay(connection, None)
        except OSError:  # it has gone or says nothing
            pass
        connection.close()


def connected(worker: str, place: tuple[int, bytes] | None) -> socket.socket | None:
    """A connection to a worker; None if it is not there in time, or shows another secret.

    Parameters
    ----------
    worker : str
        Its address.
    place : (int, bytes) or None
        The port at which it listens, and the secret; None if it does not listen.
    """
    if place is None:
        return None
    port, secret = place
    try:
        connection = socket.create_connection((get_address_host(worker), port), _FIRST_WORD)
    except OSError:
        return None
    try:
        connection.sendall(secret[:_HALF])
        if secrets.compare_digest(_exactly(connection, _HALF), secret[_HALF:]):
            return _without_delay(connection, _STALLED)
    except OSError:
        pass
    connection.close()
    return None


def _without_delay(connection: socket.socket, timeout: float | None) -> socket.socket:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.settimeout(timeout)
    return connection


def put(connection: socket.socket, message: Sequence[bytes | memoryview]) -> None:
    """Send the parts of a message, one after the other.

    Raises
    ------
    OSError
        If the connection is broken, or stands still for longer than its timeout.
    """
    length = _LENGTH.pack(sum(map(len, message)))
    waiting = [memoryview(part) for part in (length, *message)]
    while waiting:
        n_sent = connection.sendmsg(waiting[:_PARTS_AT_ONCE])
        while waiting and n_sent >= len(waiting[0]):
            n_sent -= len(waiting.pop(0))
        if n_sent:
            waiting[0] = waiting[0][n_sent:]


def got(connection: socket.socket) -> memoryview:
    """The next message.

    Raises
    ------
    OSError
        If the connection is broken, closed, or stands still for longer than its timeout.
    """
    return _exactly(connection, *_LENGTH.unpack(_exactly(connection, _LENGTH.size)))


def _exactly(connection: socket.socket, n_bytes: int) -> memoryview:
    found = np.empty(n_bytes, dtype=np.uint8).data
    room = found
    while len(room):
        n = connection.recv_into(room, 0, socket.MSG_WAITALL)
        if n == 0:
            raise ConnectionResetError("the other end of the connection is closed")
        room = room[n:]
    return found


def packed(answer: Any) -> list[bytes | memoryview]:
    """An answer as bytes, in parts that follow each other.

    They say how many bytes follow in each of several pieces, which are the pickled answer without
    its arrays, and these arrays. The pieces are aligned. Arrays are not copied.
    """
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(answer, protocol=5, buffer_callback=buffers.append)
    pieces = [memoryview(head), *(own.raw() for own in buffers)]
    sizes = struct.pack(f"<{len(pieces) + 1}q", len(pieces), *map(len, pieces))
    found: list[bytes | memoryview] = [sizes]
    for piece in pieces:
        found += [piece, bytes(-len(piece) % _ALIGNMENT)]
    return found


def unpacked(message: memoryview) -> Any:
    """The answer in such bytes."""
    whole = np.frombuffer(message, dtype=np.uint8)
    if whole.ctypes.data % _ALIGNMENT:
        whole = whole.copy()
    n_pieces = int(whole[:8].view(np.int64)[0])
    first = 8 * (n_pieces + 1)
    sizes = whole[8:first].view(np.int64).tolist()
    padded = [-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes]
    starts = itertools.accumulate(padded, initial=first)
    head, *buffers = (whole[at : at + n].data for at, n in zip(starts, sizes, strict=False))
    return pickle.loads(head, buffers=buffers)
