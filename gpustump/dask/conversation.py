"""Messages to workers and their answers: who has answered, who is gone, and how many bytes it took.

The leading process, the one that calls `fit`, sends messages directly to the workers' own servers.
If it cannot reach them, for example because of a gateway, the scheduler passes the messages on. A
worker counts as gone when its connection breaks, or when the scheduler does not know it any more.
So nothing waits for a worker that does not exist.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpustump.dask.worker import UnknownShardError, unpacked

_LOOK_AGAIN = 2.0
"""Seconds without an answer after which the scheduler is asked whether the workers still exist."""

_PATIENCE = 60.0
"""Seconds in which a worker must answer a ping, or else counts as gone."""

_FIRST_WORD = 10.0
"""Seconds in which a worker must answer the first call, or else messages go by the scheduler."""


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

    def send(self, messages: Sequence[Message]) -> list[Any]:
        """The answer to each message, or `GONE`.

        Raises
        ------
        Exception
            What a worker raised.
        """
        answers = self.client.sync(self._send, messages)
        for message, own in zip(messages, answers, strict=True):
            if isinstance(own, Exception):
                own.add_note(f"on the worker {message.worker}")
                raise own
        return list(answers)

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

    async def _send(self, messages: Sequence[Message]) -> list[Any]:
        payloads: dict[int, bytes] = {}
        for message in messages:  # the same arguments are packed once
            if id(message.arguments) not in payloads:
                about = (message.method, tuple(message.arguments))
                payloads[id(message.arguments)] = pickle.dumps(about, protocol=5)
        tasks = [
            asyncio.ensure_future(self._call(message, payloads[id(message.arguments)]))
            for message in messages
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

    async def _call(self, message: Message, about: bytes) -> Any:
        """The answer, or the exception that the worker raised; `GONE` if no answer can come."""
        payload = pickle.dumps((message.shard, about), protocol=5)
        try:
            answer = await self._passed_on(message.worker, payload)
        except (TimeoutError, OSError, EOFError):  # Dask's errors of comms are OSErrors
            return GONE
        self.traffic.n_messages += 1
        self.traffic.sent += len(payload)
        (is_answer, found), n_bytes = unpacked(answer)
        self.traffic.received += n_bytes
        if isinstance(found, UnknownShardError) and not is_answer:
            return GONE
        return found

    async def _passed_on(self, worker: str, payload: bytes) -> dict[str, Any]:
        if self._is_direct is None:
            self._is_direct = await self._can_reach(worker)
        if self._is_direct:
            answer: dict[str, Any] = await getattr(self.client.rpc(worker), self.name)(
                payload=payload
            )
        else:
            message = {"op": self.name, "payload": payload}
            answer = await self.client.scheduler.proxy(worker=worker, msg=message)
        if "head" not in answer:
            raise OSError(f"{worker} does not know this fit")
        return answer

    async def _can_reach(self, worker: str) -> bool:
        """Whether workers can be reached without the scheduler."""
        try:
            await asyncio.wait_for(self.client.rpc(worker).identity(), _FIRST_WORD)
        except (TimeoutError, OSError):
            return worker not in await self._workers()  # if it is gone, others may be reached
        return True
