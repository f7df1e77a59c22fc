"""Workers that are lost in the middle of a fit on a Dask cluster."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from gpustump.dask.conversation import Conversation


def lose_one(client: Any, chance: random.Random) -> None:
    """Close a worker at once, and start another one."""
    worker = chance.choice(list(client.cluster.workers.values()))
    name = next(n for n, own in client.cluster.workers.items() if own is worker)
    client.sync(worker.close, nanny=False, executor_wait=False)
    client.cluster.workers.pop(name, None)
    client.cluster.scale(3)


def sent_through(monkeypatch: pytest.MonkeyPatch, before: Callable[[int, Any], None]) -> None:
    """Call `before` before each sending, with its number, from 0, and the messages."""
    numbers = iter(range(10**9))
    send = Conversation.send

    def noted(self: Conversation, messages: Any) -> Any:
        before(next(numbers), messages)
        return send(self, messages)

    monkeypatch.setattr(Conversation, "send", noted)
