"""Timing that holds on a noisy machine: interleaved runs, marginal costs, ratios pair by pair.

Contenders take turns (A B C, A B C, ...), so a slow spell of the machine meets all of them. The
cost of a round is the slope between a short and a long fit, so that preparation does not count.
Ratios are formed within one turn, and their median is what is reported.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Fit = Callable[[int], str | None]
"""Fits with a number of rounds; returns the model's digest, if there is such a thing."""


@dataclass
class Contender:
    """Something to time.

    Attributes
    ----------
    name : str
    fit : callable
    digest : str or None
        Of the long fit.
    short, long : list of float
        Seconds of every timed fit, one of each in a turn.
    """

    name: str
    fit: Fit
    digest: str | None = None
    short: list[float] = field(default_factory=list)
    long: list[float] = field(default_factory=list)


def take_turns(
    contenders: Sequence[Contender], rounds: tuple[int, int], turns: int, tick: Callable[[], None]
) -> None:
    """Time a short and a long fit of every contender in every turn, after one untimed fit each."""
    for contender in contenders:
        contender.fit(rounds[0])
        tick()
    for _ in range(turns):
        for contender in contenders:
            contender.short.append(_seconds(contender, rounds[0]))
            contender.long.append(_seconds(contender, rounds[1]))
            tick()


def per_round(short: Sequence[float], long: Sequence[float], rounds: Sequence[int]) -> list[float]:
    """Seconds per round in every turn: the slope between the short and the long fit."""
    return [(b - a) / (rounds[1] - rounds[0]) for a, b in zip(short, long, strict=True)]


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """How many times slower theirs is: the median of the ratios formed turn by turn."""
    return statistics.median(b / a for a, b in zip(ours, theirs, strict=True))


def _seconds(contender: Contender, rounds: int) -> float:
    start = time.perf_counter()
    contender.digest = contender.fit(rounds)
    return time.perf_counter() - start
