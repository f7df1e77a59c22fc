"""Messages to workers and their answers: who has answered, who is gone, and how many bytes it took.

The leading process, the one that calls `fit`, sends messages by lines (see `lines`), or where there
can be none to the workers' own servers. If it cannot reach them, for example because of a gateway,
the scheduler passes the messages on. A worker counts as gone when its connection breaks or stalls,
or when the scheduler does not know it any more. So nothing waits for a worker that does not exist.
"""

from __future__ import annotations

import asyncio
import pickle
import selectors
import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from distributed.comm.addressing import get_address_host

from gpustump.dask.lines import connected, got, put, unpacked
from gpustump.dask.worker import LINE, UnknownShardError

_LOOK_AGAIN = 2.0
"""Seconds without an answer after which the scheduler is asked whether the workers still exist."""

_PATIENCE = 60.0
"""Seconds in which a worker must answer a ping, or else counts as gone."""

_FIRST_WORD = 10.0
"""Seconds in which a worker must answer the first call, or else messages go by the scheduler."""

_STALLED = 60.0
"""Seconds without a byte in the middle of a message after which its worker counts as gone. The
system would notice a lost machine only after a time limit of its own, which may be hours."""


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


class Gone:
    """In place of an answer: the worker, or what it held, does not exist any more."""


GONE = Gone()


class Conversation:
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
        self._lines: dict[str, socket.socket | None] = {}  # None where there can be none

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
        """Close all lines; they are opened again if they are needed."""
        for line in self._lines.values():
            if line is not None:
                line.close()
        self._lines.clear()

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
        if any(message.worker not in self._lines for message in messages):
            self._open_lines([message.worker for message in messages])
        answers: list[Any] = [GONE] * len(messages)
        asked, others = dict[int, socket.socket](), []
        for k, (message, payload) in enumerate(zip(messages, payloads, strict=True)):
            line = self._lines[message.worker]
            if line is None:
                others.append(k)
                continue
            try:
                put(line, [payload])
                asked[k] = line
            except OSError:
                self._drop(message.worker)
        if others:
            pairs = [messages[k] for k in others], [payloads[k] for k in others]
            for k, own in zip(others, self.client.sync(self._send, *pairs), strict=True):
                answers[k] = own
        self._await(asked, messages, answers)
        for payload, own in zip(payloads, answers, strict=True):
            self._count(payload, own)
        return [_opened(own) for own in answers]

    def _await(
        self, asked: Mapping[int, socket.socket], messages: Sequence[Message], answers: list[Any]
    ) -> None:
        """Wait for all answers that come by lines; those of workers that have gone will not."""
        with selectors.DefaultSelector() as waiting:
            for k, line in asked.items():
                waiting.register(line, selectors.EVENT_READ, k)
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
        """Close a line that is broken."""
        line = self._lines.pop(worker)
        if line is not None:
            line.close()

    def _open_lines(self, workers: Sequence[str]) -> None:
        """Open the lines to some workers that have none, where there can be lines."""
        new = [worker for worker in workers if worker not in self._lines]
        places = self.client.sync(self._places, new)
        with ThreadPoolExecutor(len(new)) as at_once:  # a firewall may let each wait in vain
            self._lines |= dict(zip(new, at_once.map(_line_to, new, places), strict=True))

    async def _places(self, workers: Sequence[str]) -> list[tuple[int, bytes] | None]:
        return await asyncio.gather(*map(self._place, workers))

    async def _place(self, worker: str) -> tuple[int, bytes] | None:
        """The port at which a worker listens, and the secret; None if it does not."""
        if not worker.startswith("tcp://") or not await self._reaches(worker):
            return None
        try:
            asked = getattr(self.client.rpc(worker), self.name + LINE)()
            told = await asyncio.wait_for(asked, _FIRST_WORD)
        except (TimeoutError, OSError, EOFError):
            return None
        # A worker that does not know the fit answers with something else.
        return (told["port"], told["secret"]) if isinstance(told, dict) and "port" in told else None

    def _count(self, payload: bytes, answer: Any) -> None:
        if answer is not GONE:
            self.traffic.n_messages += 1
            self.traffic.sent += len(payload)
            self.traffic.received += len(answer)

    async def _send(self, messages: Sequence[Message], payloads: Sequence[bytes]) -> list[Any]:
        """The answers, packed, to messages by Dask's own connections; or `GONE`."""
        tasks = [
            asyncio.ensure_future(self._call(*pair))
            for pair in zip(messages, payloads, strict=True)
        ]
        try:
            return await self._all(messages, tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def _all(
        self, messages: Sequence[Message], tasks: Sequence[asyncio.Future[Any]]
    ) -> list[Any]:
        """Wait for all answers; those of workers that have gone will not come."""
        waiting = set(tasks)
        while waiting:
            _, waiting = await asyncio.wait(waiting, timeout=_LOOK_AGAIN)
            if waiting:
                late = [m for m, task in zip(messages, tasks, strict=True) if task in waiting]
                gone = await self._gone({message.worker for message in late})
                for message, task in zip(messages, tasks, strict=True):
                    if message.worker in gone:
                        task.cancel()
                await asyncio.sleep(0)
                waiting = {task for task in waiting if not task.done()}
        return [GONE if task.cancelled() else task.result() for task in tasks]

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


def _line_to(worker: str, place: tuple[int, bytes] | None) -> socket.socket | None:
    """A line to a worker that listens at this place; None if there can be none."""
    if place is None:
        return None
    host = get_address_host(worker)
    return connected(host, *place, first_word=_FIRST_WORD, stalled=_STALLED)


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
    is_answer, found = unpacked(answer)
    return GONE if isinstance(found, UnknownShardError) and not is_answer else found
