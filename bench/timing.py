"""Timing that holds on a noisy machine: contenders take turns, and each turn is kept whole.

Turns go A B C, A B C, ..., so a slow spell of the machine meets all of them, and ratios can be
formed within a turn. Before the first turn everyone runs once untimed (that is, timed apart).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TypeVar

from bench.records import Turn

Result = TypeVar("Result")


class WithdrawnError(Exception):
    """A contender that cannot take part, or not any further; the message says why."""


class Player(Protocol):
    """Whoever takes turns. Each method may raise `WithdrawnError`."""

    def warm_up(self) -> None:
        """Everything that only a first run pays."""

    def turn(self) -> Turn:
        """One turn."""


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """The seconds that some work took, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def take_turns(
    players: Sequence[Player],
    turns: int,
    *,
    patience: float = math.inf,
    before_turn: Callable[[], None] = lambda: None,
    step: Callable[[Player], AbstractContextManager[None]] = lambda _: nullcontext(),
) -> list[tuple[list[Turn], str | None]]:
    """Let all players warm up, then take turns.

    Parameters
    ----------
    players : sequence of Player
    turns : int
    patience : float
        Seconds. Whoever's first turn takes longer than this is given no second one.
    before_turn : callable
        Called before every round of turns, for what else is to be measured in the same run.
    step : callable
        Given a player, a context that its warm-up or a turn of it happens in.

    Returns
    -------
    list
        For each player its turns, and the reason if it withdrew.
    """
    taken: list[list[Turn]] = [[] for _ in players]
    reasons: list[str | None] = [None for _ in players]
    slow: set[int] = set()

    def attempt(index: int, work: Callable[[], None]) -> None:
        with step(players[index]):
            if reasons[index] is None:
                try:
                    work()
                except WithdrawnError as withdrawal:
                    reasons[index] = str(withdrawal)

    def one_turn(index: int) -> None:
        if index in slow:
            return
        seconds, turn = timed(players[index].turn)
        taken[index].append(turn)
        if seconds > patience and len(taken[index]) == 1:
            slow.add(index)

    for index, player in enumerate(players):
        attempt(index, player.warm_up)
    for _ in range(turns):
        before_turn()
        for index in range(len(players)):
            attempt(index, lambda index=index: one_turn(index))  # type: ignore[misc]
    return list(zip(taken, reasons, strict=True))
