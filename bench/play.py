"""Measures what a benchmark has planned: stores the data, starts the workers, has them take turns.

Turns go A B C, A B C, ..., so a slow spell of the machine meets all contenders, and ratios can be
formed within a turn. Before the first turn everyone warms up.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

from tqdm import tqdm

from bench.data import DataSet, Stored, store
from bench.records import Section, Turn
from bench.speed import Probe
from bench.worker import Entry, WithdrawnError, Worker, timed


class Plan(NamedTuple):
    """Entries that take turns with each other, under a name."""

    name: str
    entries: tuple[Entry, ...]
    turns: int = 5


def play(
    plans: Sequence[Plan],
    *,
    patience: float = math.inf,
    limit: float = 600.0,
    probes: Sequence[Probe] = (),
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
    """

    def measure_probes() -> None:
        for probe in probes:
            probe.measure()

    sections = []
    for plan in plans:
        if not sys.stderr.isatty():  # no bar is drawn, so a line tells how far it is
            print(f"measuring {plan.name}, {len(plan.entries)} entries ...", file=sys.stderr)
        with contextlib.ExitStack() as ending:
            folder = ending.enter_context(
                TemporaryDirectory(prefix="gpustump-bench-", ignore_cleanup_errors=True)
            )
            workers = _workers(plan, Path(folder), limit)
            for worker in workers:
                ending.callback(worker.close)
            steps = (plan.turns + 1) * len(workers)
            bar = ending.enter_context(tqdm(total=steps, desc=plan.name, leave=False, disable=None))
            taken = take_turns(
                workers, plan.turns, patience=patience, before_turn=measure_probes, bar=bar
            )
            runs = tuple(worker.run(*each) for worker, each in zip(workers, taken, strict=True))
        sections.append(Section(plan.name, runs))
    return tuple(sections)


def _workers(plan: Plan, folder: Path, limit: float) -> list[Worker]:
    """A worker for each entry; each data set is made and written once."""
    stored: dict[Callable[[], DataSet], Stored] = {}
    for entry in plan.entries:
        if entry.data not in stored:
            stored[entry.data] = store(entry.data(), folder / str(len(stored)))
    return [Worker(entry, stored[entry.data], limit) for entry in plan.entries]


class Player(Protocol):
    """Someone who takes turns. Each method may raise `WithdrawnError`."""

    name: str

    def warm_up(self) -> None:
        """Everything that only a first run pays."""

    def turn(self) -> Turn:
        """One turn."""


def take_turns(
    players: Sequence[Player],
    turns: int,
    *,
    patience: float = math.inf,
    before_turn: Callable[[], None] = lambda: None,
    bar: Any = None,
) -> list[tuple[list[Turn], str | None]]:
    """Let all players warm up, then take turns; see `play`. The bar moves on after each of both.

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
