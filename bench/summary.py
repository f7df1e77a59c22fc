"""What follows from the timings: costs of a round, medians with their spread, ratios, exponents.

Everything is computed turn by turn first; medians are taken last.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from bench.contenders import is_ours
from bench.records import Report, Run, Section, Speed

AXES = {
    "samples": "samples",
    "features": "features",
    "rounds": "rounds",
    "distinct": "distinct values per feature",
    "threads": "threads",
}
"""The axes of `growth`, and what they are called."""

Quantity = Callable[[Run], list[float]]
"""One value a turn."""


class TwoFits(Protocol):
    """Seconds of a short fit and a long one."""

    @property
    def short(self) -> float: ...

    @property
    def long(self) -> float: ...


class Timed(Protocol):
    """A run, of this record or another, as far as these functions look at it."""

    @property
    def rounds(self) -> tuple[int, int]: ...

    @property
    def turns(self) -> Sequence[TwoFits]: ...


class Spread(NamedTuple):
    """A median, and the least and the greatest of the values."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """The spread of one value or more."""
    return Spread(statistics.median(values), min(values), max(values))


def per_round(run: Timed) -> list[float]:
    """Seconds that one more round costs: the slope between the short and the long fit."""
    short, long = run.rounds
    return [(turn.long - turn.short) / (long - short) for turn in run.turns]


def preparation(run: Timed) -> list[float]:
    """Seconds of a fit that do not grow with the rounds: where that line meets zero rounds."""
    each = zip(run.turns, per_round(run), strict=True)
    return [turn.short - run.rounds[0] * cost for turn, cost in each]


def whole_fit(run: Timed) -> list[float]:
    """Seconds of the long fit, from the arrays to the model."""
    return [turn.long for turn in run.turns]


def predicting(run: Run) -> list[float]:
    """Seconds to predict the training table with the long fit's model."""
    return [turn.predict for turn in run.turns if turn.predict is not None]


def first_fit_extra(run: Run) -> float | None:
    """Seconds that a process's first fit takes beyond a later one: what it compiles, mostly."""
    if run.first_fit is None or not run.turns:
        return None
    return run.first_fit - statistics.median(turn.short for turn in run.turns)


def ratios(of: Quantity, run: Run, base: Run) -> list[float]:
    """A run's values divided by the base's, in the turns that both took."""
    return [a / b for a, b in zip(of(run), of(base), strict=False) if b > 0]


def fastest_peer(of: Quantity, section: Section) -> Run | None:
    """The contender with the least median that is not gpustump, if there is one.

    A peer whose median noise made negative does not count, as no ratio could be formed.
    """
    peers = [run for run in measured(section) if not is_ours(run.contender)]
    medians = {statistics.median(of(run)): run for run in peers}
    return medians[min(found)] if (found := [m for m in medians if m > 0]) else None


def of_fastest_peer(of: Quantity, section: Section) -> dict[str, list[float]]:
    """Each contender's values divided by the fastest peer's, in the turns that both took."""
    peer = fastest_peer(of, section)
    return {run.contender: ratios(of, run, peer) for run in measured(section)} if peer else {}


def ours(report: Report) -> list[str]:
    """The names of gpustump's contenders in a report, in order."""
    runs = (run for section in report.sections for run in section.runs)
    return list(dict.fromkeys(run.contender for run in runs if is_ours(run.contender)))


def exponents(of: Quantity, sizes: Sequence[float], runs: Sequence[Run]) -> list[float]:
    """The exponent of a power law through the runs, in each turn that all took.

    A straight line is put through the logarithms by least squares. Turns in which noise made a
    time negative have none.
    """
    found = []
    x = [math.log(size) for size in sizes]
    for values in zip(*map(of, runs), strict=False):
        if len(set(sizes)) > 1 and min(values) > 0:
            y = [math.log(value) for value in values]
            found.append(statistics.linear_regression(x, y).slope)
    return found


def bytes_to_move(run: Run) -> int:
    """The bytes that a round moves if it reads all codes and all weights once.

    One byte is read for every element, its code; 8 bytes are read and written for every sample, its
    weight. It is a yardstick, not a lower bound: a scan that skips elements or packs codes could
    move less.
    """
    return run.samples * run.features + 2 * 8 * run.samples


def bandwidth(speed: Speed) -> list[float]:
    """Bytes a second, read and written, of a copy."""
    return [speed.copied / seconds for seconds in speed.copy]


def gather_rate(speed: Speed) -> list[float]:
    """Elements a second of a gather."""
    return [speed.gathered / seconds for seconds in speed.gather]


def yardsticks(report: Report, run: Run) -> list[list[float]]:
    """Seconds in each turn of moving `bytes_to_move`, and of one gather an element.

    Empty if the memory of the device on which the run computed was not measured.
    """
    for speed in report.speeds:
        if speed.device == (run.device or "cpu"):
            copied = [bytes_to_move(run) / rate for rate in bandwidth(speed)]
            gathered = [run.samples * run.features / rate for rate in gather_rate(speed)]
            return [copied, gathered]
    return []


def shares(yardstick: Sequence[float], run: Run) -> list[float]:
    """What part of a round a yardstick is, in each turn."""
    pairs = zip(yardstick, per_round(run), strict=False)
    return [seconds / cost for seconds, cost in pairs if cost > 0]


def size(axis: str, run: Run) -> tuple[float, str]:
    """Where a run lies on an axis, and the text for it.

    If all values are distinct, there are as many as samples.
    """
    if axis == "distinct" and run.distinct is None:
        return run.samples, "all"
    at = run.rounds[1] if axis == "rounds" else getattr(run, axis)
    return at, str(at)


def measured(section: Section) -> list[Run]:
    """The runs without those that could not be measured to the end."""
    return [run for run in section.runs if run.reason is None]


def by_contender(section: Section) -> dict[str, list[Run]]:
    """The measured runs of each contender, in order."""
    found: dict[str, list[Run]] = defaultdict(list)
    for run in measured(section):
        found[run.contender].append(run)
    return found


def disagreement(sections: Sequence[Section]) -> str | None:
    """A message if two runs of the same job gave different models; None if not."""
    found: dict[tuple[object, ...], set[tuple[str, str]]] = defaultdict(set)
    for run in (run for section in sections for run in section.runs if run.digest):
        votes = {name: value for name, value in run.parameters.items() if name != "device"}
        job = run.data_sha256, run.rounds[1], run.estimator, repr(votes)
        found[job].add((str(run.digest), run.contender))
    for models in found.values():
        if len({digest for digest, _ in models}) > 1:
            pairs = "; ".join(f"{who}: {digest[:12]}" for digest, who in sorted(models))
            return f"different models were trained on the same data: {pairs}"
    return None
