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
import enum
import pickle
import secrets
import selectors
import socket
import struct
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed.comm.addressing import get_address_host

_LOOK_AGAIN = 2.0
"""Seconds without an answer after which the scheduler is asked whether the worker still exists."""

_PATIENCE = 60.0
"""Seconds in which a worker must answer a ping, or else counts as gone."""

_FIRST_WORD = 10.0
"""Seconds in which a worker must answer the first call, or else messages go by the scheduler."""

_STALLED = 60.0
"""Seconds without a byte in the middle of a message after which its worker counts as gone. The
system would notice a lost machine only after a time limit of its own, which may be hours."""

CONNECT = "-connect"
"""Ends the name of the messages that ask for a connection; the first part is the fit's name."""

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

    def note(self, sent: int, received: int) -> None:
        """Count a message that was answered."""
        self.n_messages += 1
        self.sent += sent
        self.received += received


@dataclass(frozen=True)
class Message:
    """A call of a method on a shard.

    Attributes
    ----------
    worker, shard : str
        The address of the worker that holds the shard, and the shard's name.
    method : str
    arguments : tuple
    """

    worker: str
    shard: str
    method: str
    arguments: Sequence[Any] = ()


class NoAnswer(enum.Enum):
    """What comes in place of an answer."""

    GONE = "the worker, or what it held, does not exist any more"
    NO_SAMPLES = "the bag leaves out all samples of the worker"


GONE, NO_SAMPLES = NoAnswer.GONE, NoAnswer.NO_SAMPLES


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
        by_worker: dict[str, list[Message]] = {}
        for message in messages:
            by_worker.setdefault(message.worker, []).append(message)
        try:
            found = self._answers(by_worker)
        except BaseException:
            self.close()  # answers may be on their way
            raise
        for worker, own in found.items():
            for answer in own:
                if isinstance(answer, Exception):
                    answer.add_note(f"on the worker {worker}")
                    raise answer
        in_order = {worker: iter(own) for worker, own in found.items()}
        return [next(in_order[message.worker]) for message in messages]

    def close(self) -> None:
        """Close all connections; they are opened again if they are needed."""
        for worker in list(self._connections):
            self._drop(worker)

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

    def _answers(self, by_worker: Mapping[str, Sequence[Message]]) -> dict[str, list[Any]]:
        """What each worker answers to its messages, all of which it is sent at once."""
        self._connect([worker for worker in by_worker if worker not in self._connections])
        found, by_dask, sent = dict[str, Any](), dict[str, Sequence[Message]](), dict[str, int]()
        for worker, own in by_worker.items():
            connection = self._connections[worker]
            if connection is None:
                by_dask[worker] = own
                continue
            try:
                sent[worker] = put(connection, own)
            except OSError:
                self._drop(worker)
                found[worker] = GONE
        if by_dask:
            found |= self.client.sync(self._sent_by_dask, by_dask)
        for worker, n_bytes in sent.items():
            found[worker] = self._received(worker, n_bytes)
        return {w: [GONE] * len(by_worker[w]) if own is GONE else own for w, own in found.items()}

    def _received(self, worker: str, n_sent: int) -> Any:
        """The answer that comes by a worker's socket; `GONE` if it will not come."""
        connection = self._connections[worker]
        assert connection is not None
        try:
            with selectors.DefaultSelector() as waiting:
                waiting.register(connection, selectors.EVENT_READ)
                while not waiting.select(_LOOK_AGAIN):
                    if self.client.sync(self._is_gone, worker):
                        raise ConnectionResetError(f"{worker} has gone")
            pieces = got(connection)
        except OSError:
            self._drop(worker)
            return GONE
        self.traffic.note(n_sent, sum(map(len, pieces)))
        return unpacked(pieces)

    def _drop(self, worker: str) -> None:
        """Close a connection, which may be broken."""
        connection = self._connections.pop(worker)
        if connection is not None:
            connection.close()

    def _connect(self, workers: Sequence[str]) -> None:
        """Open connections to some workers, where there can be connections."""
        if not workers:
            return
        places = self.client.sync(self._places, workers)
        with ThreadPoolExecutor(len(workers)) as at_once:  # a firewall may let each wait in vain
            self._connections |= zip(workers, at_once.map(connected, workers, places), strict=True)

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

    async def _sent_by_dask(self, by_worker: Mapping[str, Sequence[Message]]) -> dict[str, Any]:
        """The answers to messages by Dask's own connections."""
        found = await asyncio.gather(*map(self._by_dask, by_worker, by_worker.values()))
        return dict(zip(by_worker, found, strict=True))

    async def _by_dask(self, worker: str, messages: Sequence[Message]) -> Any:
        """The answer of one worker; `GONE` if it will not come."""
        payload = pickle.dumps(messages, protocol=5)
        asked = asyncio.ensure_future(self._passed_on(worker, payload))
        try:
            while not (await asyncio.wait({asked}, timeout=_LOOK_AGAIN))[0]:
                if await self._is_gone(worker):
                    return GONE
            answer = asked.result()["packed"].data
        except (TimeoutError, OSError, EOFError):  # Dask's errors of comms are OSErrors
            return GONE
        finally:
            asked.cancel()
        self.traffic.note(len(payload), len(answer))
        return pickle.loads(answer)

    async def _is_gone(self, worker: str) -> bool:
        """Whether a worker does not exist any more, or does not know this fit."""
        if worker not in await self._workers():
            return True
        try:
            await asyncio.wait_for(self._passed_on(worker, b""), _PATIENCE)
        except Exception:
            return True
        return False

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


def listening(host: str) -> tuple[socket.socket, bytes] | None:
    """A socket that waits for one connection, and a new secret; None if there can be none.

    Parameters
    ----------
    host : str
        The address at which this machine is reached.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, 0), family=family), secrets.token_bytes(2 * _HALF)
    except OSError:  # for example, the address is that of a gateway
        return None


def accepted(listener: socket.socket, secret: bytes, seconds: float) -> socket.socket:
    """The connection of a caller that shows its half of the secret.

    Raises
    ------
    OSError
        If nobody calls in time, or somebody else does.
    """
    listener.settimeout(seconds)
    connection, _ = listener.accept()
    connection.settimeout(seconds)
    if not secrets.compare_digest(_exactly(connection, _HALF), secret[:_HALF]):
        connection.close()
        raise ConnectionRefusedError("a caller does not know the secret")
    connection.sendall(secret[_HALF:])
    return _without_delay(connection, None)


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


def put(connection: socket.socket, message: Any) -> int:
    """Send a message, whose arrays are not copied. Returns how many bytes it has.

    The pieces that are sent are the pickled message without its arrays, and these arrays. Before
    them comes how many there are, and how many bytes each has.

    Raises
    ------
    OSError
        If the connection is broken, or stands still for longer than its timeout.
    """
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    arrays = [own.raw() for own in buffers]
    sizes = [len(head), *map(len, arrays)]
    connection.sendall(struct.pack(f"<{1 + len(sizes)}q", len(sizes), *sizes) + head)
    for own in arrays:
        connection.sendall(own)
    return sum(sizes)


def got(connection: socket.socket) -> list[memoryview]:
    """The pieces of the next message; each is a buffer of its own, so that arrays are aligned.

    Raises
    ------
    OSError
        If the connection is broken, closed, or stands still for longer than its timeout.
    """
    (n_pieces,) = struct.unpack("<q", _exactly(connection, 8))
    sizes = struct.unpack(f"<{n_pieces}q", _exactly(connection, 8 * n_pieces))
    return [_exactly(connection, size) for size in sizes]


def unpacked(pieces: Sequence[memoryview]) -> Any:
    """The message in such pieces."""
    return pickle.loads(pieces[0], buffers=pieces[1:])


def _exactly(connection: socket.socket, n_bytes: int) -> memoryview:
    found = np.empty(n_bytes, dtype=np.uint8).data
    room = found
    while len(room):
        n = connection.recv_into(room)
        if n == 0:
            raise ConnectionResetError("the other end of the connection is closed")
        room = room[n:]
    return found
