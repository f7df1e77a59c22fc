"""Measures what a benchmark has planned: stores the data, starts the workers, has them take turns.

Turns go A B C, A B C, ..., so a slow spell of the machine meets all contenders, and ratios can be
formed within a turn. Before the first turn all contenders warm up. What was measured so far is
handed on after every step, so that nothing is lost if the run is ended.
"""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol, TypeVar

from tqdm import tqdm

from bench.data import DataSet, Stored, store
from bench.records import Section, Turn
from bench.servant import WithdrawnError
from bench.speed import Probe
from bench.worker import Entry, Worker, timed


class Plan(NamedTuple):
    """Entries that take turns with each other, under a name."""

    name: str
    entries: tuple[Entry, ...]
    turns: int = 5


Took = TypeVar("Took")
Took_co = TypeVar("Took_co", covariant=True)

Taken = Sequence[tuple[Sequence[Took], str | None]]
"""For each player its turns, and the reason if it withdrew."""


def play(
    plans: Sequence[Plan],
    *,
    patience: float = math.inf,
    limit: float = 600.0,
    probes: Sequence[Probe] = (),
    found: Callable[[tuple[Section, ...]], None] = lambda sections: None,
) -> tuple[Section, ...]:
    """Measure every plan.

    Parameters
    ----------
    plans : sequence of Plan
    patience : float
        Seconds after which a contender that took longer for its first turn gets no other.
    limit : float
        Seconds that one fit or prediction may take; a contender that takes longer withdraws.
    probes : sequence of Probe
        Measured before every round of turns.
    found : callable
        Gets what was measured so far, after every step from the first turn on.
    """

    def measure_probes() -> None:
        for probe in probes:
            probe.measure()

    sections: tuple[Section, ...] = ()
    for plan in plans:
        _tell(f"measuring {plan.name}, {len(plan.entries)} entries ...")
        with contextlib.ExitStack() as ending:
            folder = ending.enter_context(
                TemporaryDirectory(prefix="gpustump-bench-", ignore_cleanup_errors=True)
            )
            workers = _workers(plan, Path(folder), limit)
            for worker in workers:
                ending.callback(worker.close)
            steps = (plan.turns + 1) * len(workers)
            bar = ending.enter_context(tqdm(total=steps, desc=plan.name, leave=False, disable=None))
            so_far = functools.partial(_section, plan, workers)

            def hand_on(taken: Taken[Turn], before: tuple[Section, ...] = sections) -> None:
                if any(turns for turns, _ in taken):
                    found((*before, so_far(taken)))  # noqa: B023

            taken = take_turns(
                workers,
                plan.turns,
                patience=patience,
                before_turn=measure_probes,
                after_step=hand_on,
                bar=bar,
            )
        sections = (*sections, so_far(taken))
    return sections


def _section(plan: Plan, workers: Sequence[Worker], taken: Taken[Turn]) -> Section:
    runs = (worker.run(*each) for worker, each in zip(workers, taken, strict=True))
    return Section(plan.name, tuple(runs))


def _workers(plan: Plan, folder: Path, limit: float) -> list[Worker]:
    """A worker for each entry; each data set is made and written once."""
    stored: dict[Callable[[], DataSet], Stored] = {}
    for entry in plan.entries:
        if entry.data not in stored:
            target, make = folder / str(len(stored)), entry.data
            seconds, stored[make] = timed(lambda: store(make(), target))  # noqa: B023
            _tell(f"  the data are ready, {seconds:.1f} s")
    return [Worker(entry, stored[entry.data], limit) for entry in plan.entries]


class Player(Protocol[Took_co]):
    """Someone who takes turns. Each method may raise `WithdrawnError`."""

    name: str

    def warm_up(self) -> None:
        """Do everything that only a first run needs, such as compiling."""

    def turn(self) -> Took_co:
        """One turn."""

    def judge(self) -> None:
        """Measure how good the model of the last turn is; called once, after the first turn."""


def take_turns(
    players: Sequence[Player[Took]],
    turns: int,
    *,
    patience: float = math.inf,
    before_turn: Callable[[], None] = lambda: None,
    after_step: Callable[[Taken[Took]], None] = lambda taken: None,
    bar: Any = None,
) -> Taken[Took]:
    """Let all players warm up, then take turns; see `play`. The bar moves on after each of both."""
    bar = tqdm(disable=True) if bar is None else bar
    taken: list[list[Took]] = [[] for _ in players]
    reasons: list[str | None] = [None for _ in players]
    slow: set[int] = set()

    def step(number: int, index: int, player: Player[Took]) -> str:
        if number == 0:
            seconds, _ = timed(player.warm_up)
            return f"ready, {seconds:.1f} s"
        seconds, turn = timed(player.turn)
        taken[index].append(turn)
        if number == 1:
            player.judge()
            if seconds > patience:
                slow.add(index)
        return f"turn {number}, {seconds:.1f} s"

    for number in range(turns + 1):
        if number > 0:
            before_turn()
        for index, player in enumerate(players):
            bar.set_postfix_str(player.name)
            if reasons[index] is None and index not in slow:
                try:
                    done = step(number, index, player)
                except WithdrawnError as withdrawal:
                    reasons[index] = done = str(withdrawal)
                _tell(f"  {player.name}: {done}")
                after_step(list(zip(taken, reasons, strict=True)))
            bar.update()
    return list(zip(taken, reasons, strict=True))


def _tell(words: str) -> None:
    """Print the progress, where no bar is drawn."""
    if not sys.stderr.isatty():
        print(words, file=sys.stderr)
