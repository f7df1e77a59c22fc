"""Plays what a benchmark has planned: stores its data, starts its workers, has them take turns.

A benchmark is a plan, a list of sections; this is the only place that carries plans out, so all of
them are measured alike.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.data import DataSet, Stored, store
from bench.plan import Plan
from bench.records import Section
from bench.speed import Probe
from bench.timing import Player, take_turns
from bench.worker import Worker


def play(
    plans: Sequence[Plan],
    turns: int,
    *,
    patience: float = math.inf,
    limit: float = 600.0,
    probes: Sequence[Probe] = (),
) -> tuple[Section, ...]:
    """Measure every plan.

    Parameters
    ----------
    plans : sequence of Plan
    turns : int
    patience : float
        Seconds after which a contender that took longer for its first turn gets no other.
    limit : float
        Seconds that one fit or prediction may take; whoever takes longer withdraws.
    probes : sequence of Probe
        Measured before every round of turns.
    """
    steps = (turns + 1) * sum(len(plan.entries) for plan in plans)
    with _bar(steps) as bar:
        return tuple(_played(plan, turns, patience, limit, probes, bar) for plan in plans)


def _played(
    plan: Plan, turns: int, patience: float, limit: float, probes: Sequence[Probe], bar: Any
) -> Section:
    def measure_probes() -> None:
        for probe in probes:
            probe.measure()

    @contextlib.contextmanager
    def step(player: Player) -> Iterator[None]:
        assert isinstance(player, Worker)
        bar.set_description(f"{plan.name}, {player.contender.name}")
        yield
        bar.update()

    if not sys.stderr.isatty():  # where no bar is seen, a line tells how far it is
        print(f"measuring {plan.name}, {len(plan.entries)} entries ...", file=sys.stderr)
    with TemporaryDirectory(prefix="gpustump-bench-", ignore_cleanup_errors=True) as folder:
        workers = _enlisted(plan, Path(folder), limit)
        with contextlib.ExitStack() as ending:
            for worker in workers:
                ending.callback(worker.close)
            taken = take_turns(
                workers, turns, patience=patience, before_turn=measure_probes, step=step
            )
            runs = tuple(worker.run(*each) for worker, each in zip(workers, taken, strict=True))
    return Section(plan.name, runs)


def _enlisted(plan: Plan, folder: Path, limit: float) -> list[Worker]:
    """A worker for each entry; each data set is made and written once."""
    stored: dict[Callable[[], DataSet], Stored] = {}
    for entry in plan.entries:
        if entry.data not in stored:
            stored[entry.data] = store(entry.data(), folder / str(len(stored)))
    return [
        Worker(
            entry.contender,
            stored[entry.data],
            entry.rounds,
            entry.threads,
            whole=entry.whole,
            limit=limit,
        )
        for entry in plan.entries
    ]


class _NoBar:
    """Stands in for a bar where tqdm is not installed."""

    def __enter__(self) -> _NoBar:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def set_description(self, _: str) -> None:
        pass

    def update(self) -> None:
        pass


def _bar(total: int) -> Any:
    """A progress bar on stderr, drawn by tqdm where that is a terminal."""
    try:
        from tqdm import tqdm
    except ImportError:
        return _NoBar()
    return tqdm(total=total, unit="step", leave=False, dynamic_ncols=True, disable=None)
