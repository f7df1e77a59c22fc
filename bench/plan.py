"""What a benchmark is going to measure, as plain values: who, on what data, for how many rounds."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.contenders import Contender
from bench.data import DataSet, load, require


@dataclass(frozen=True)
class Entry:
    """One contender's part in a section.

    Attributes
    ----------
    contender : Contender
    data : callable
        Makes the data set; entries that share this share the data.
    rounds : tuple of int
        Of the short and the long fit.
    threads : int
    whole : bool
        Whether predicting and memory are measured too.
    """

    contender: Contender
    data: Callable[[], DataSet]
    rounds: tuple[int, int]
    threads: int
    whole: bool = False


@dataclass(frozen=True)
class Plan:
    """Entries that take turns with each other, under a name."""

    name: str
    entries: tuple[Entry, ...]


def chosen(contenders: Sequence[Contender], only: Sequence[str] | None) -> list[Contender]:
    """Those asked for, in their own order; all if none were named."""
    return [contender for contender in contenders if not only or contender.name in only]


def plans_over_data(
    options: argparse.Namespace, contenders: Sequence[Contender], *, whole: bool
) -> list[Plan]:
    """A plan for each data set that was asked for, of everyone who was.

    Raises
    ------
    MissingDataError
        If one of the data sets cannot be had here.
    """
    plans = []
    for name in options.data:
        require(name)
        data = functools.partial(load, name, options.samples, options.features)
        entries = [
            Entry(contender, data, options.rounds, options.threads, whole)
            for contender in chosen(contenders, options.only)
        ]
        plans.append(Plan(name, tuple(entries)))
    return plans
