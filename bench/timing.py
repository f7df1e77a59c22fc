"""Timing that holds on a noisy machine: contenders take turns, and each turn is kept whole.

Turns go A B C, A B C, ..., so a slow spell of the machine meets all of them, and ratios can be
formed within a turn. Before the first turn everyone warms up.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from tqdm import tqdm

from bench.records import Turn

Result = TypeVar("Result")


class WithdrawnError(Exception):
    """A contender that cannot take part, or not any further; the message says why."""


class Player(Protocol):
    """Someone who takes turns. Each method may raise `WithdrawnError`."""

    name: str

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
    bar: Any = None,
) -> list[tuple[list[Turn], str | None]]:
    """Let all players warm up, then take turns.

    Parameters
    ----------
    players : sequence of Player
    turns : int
    patience : float
        Seconds. A player whose first turn takes longer is given no second one.
    before_turn : callable
        Called before every round of turns, for what else is to be measured in the same run.
    bar : tqdm, optional
        Moves on by one for each warm-up and turn.

    Returns
    -------
    list
        For each player its turns, and the reason if it withdrew.
    """
    bar = tqdm(disable=True) if bar is None else bar
    taken: list[list[Turn]] = [[] for _ in players]
    reasons: list[str | None] = [None for _ in players]
    slow: set[int] = set()
    for number in range(turns + 1):
        if number > 0:
            before_turn()
        for index, player in enumerate(players):
            bar.set_postfix_str(player.name)
            try:
                if number == 0:
                    player.warm_up()
                elif reasons[index] is None and index not in slow:
                    seconds, turn = timed(player.turn)
                    taken[index].append(turn)
                    if number == 1 and seconds > patience:
                        slow.add(index)
            except WithdrawnError as withdrawal:
                reasons[index] = str(withdrawal)
            bar.update()
    return list(zip(taken, reasons, strict=True))
