"""Measures what a benchmark has planned: stores the data, starts the workers, has them take turns.

Plans are carried out here only, so all benchmarks measure alike.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tqdm import tqdm

from bench.data import DataSet, Stored, store
from bench.records import Section
from bench.speed import Probe
from bench.timing import take_turns
from bench.worker import Entry, Worker


class Plan(NamedTuple):
    """Entries that take turns with each other, under a name."""

    name: str
    entries: tuple[Entry, ...]


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
            steps = (turns + 1) * len(workers)
            bar = ending.enter_context(tqdm(total=steps, desc=plan.name, leave=False, disable=None))
            taken = take_turns(
                workers, turns, patience=patience, before_turn=measure_probes, bar=bar
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
