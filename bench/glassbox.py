"""Glass boxes side by side: with pairs of features and without, interpret's EBM, and boosters.

Error, log-loss and Brier score are those of held-out samples, on the tables and folds of
`accuracy`. The seconds of a fit and of a prediction are measured on the same folds. All contenders
run in turn, fold by fold, with the same number of threads or processes. On a small table one draw
of held-out samples says little, so such a table is shuffled and cut into folds again, up to
--shuffles times. A table ends after the fold in which a contender's fits have taken longer than
--limit in all, but not before each sample was held out once: a single fold of a small table says
nothing. All contenders have the same folds. The file is written anew after each table; --resume
goes on with an unfinished file.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import asdict
from threadpoolctl import threadpool_limits

from bench import glassbox_records
from bench.accuracy import (
    FailedError,
    Part,
    about,
    announced,
    fold_of_each,
    log_loss,
    outline,
    part_of,
    probabilities,
)
from bench.accuracy_data import TABLES, Table
from bench.benchmarks import UsageError, whole
from bench.glassbox_contenders import CONTENDERS, GlassBox
from bench.glassbox_records import Glassbox, GlassFold, GlassResult, GlassTable
from bench.machine import usable_cores
from bench.records import Machine

PREDICTIONS = 5
"""Calls of which the median counts."""

WARMING = ("breast_cancer", "wine")
"""Tables of two classes and of more, as a first fit of either may have something to compile."""


_WARMING_FEATURES = 3
"""So many of their features are enough: the EBM takes minutes for the pairs of all."""


class Job(NamedTuple):
    """The settings that all contenders share."""

    folds: int
    threads: int
    limit: float
    shuffles: int = 1
    first: int | None = None


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen on the command line."""
    add = parser.add_argument
    about = f"tables (default: all), of: {', '.join(TABLES)}"
    add("--sets", nargs="+", choices=list(TABLES), default=list(TABLES), metavar="SET", help=about)
    names = [each.name for each in CONTENDERS]
    about = f"who takes part (default: all), of: {'; '.join(names)}"
    flags = ("--only", "--contenders")
    add(*flags, nargs="+", choices=names, default=names, metavar="NAME", help=about)
    about = "stratified folds, each held out once (default: %(default)s)"
    add("--folds", type=whole(2), default=5, metavar="N", help=about)
    about = (
        "times that a table is shuffled and cut into folds, if time allows (default: %(default)s)"
    )
    add("--shuffles", type=whole(1), default=3, metavar="N", help=about)
    about = (
        "seconds of a contender's fits after which a table ends, if each sample was held out once "
        "(default: %(default)s)"
    )
    add("--limit", type=whole(1), default=30, metavar="SECONDS", help=about)
    about = "measure only the first of the folds (default: all)"
    add("--first", type=whole(1), metavar="N", help=about)
    about = "default: 2, or 1 where there is one core"
    add("--threads", type=whole(1), default=min(2, usable_cores()), metavar="N", help=about)
    about = "keep the tables that the file of --output holds already"
    add("--resume", action="store_true", help=about)


def resumed(options: argparse.Namespace, machine: Machine) -> Glassbox | None:
    """The unfinished run that `--resume` goes on with, if its file is there.

    Raises
    ------
    UsageError
        If there is no --output, or if its file holds a run that cannot be gone on with.
    FormatError
        If its file does not hold a run at all.
    """
    if not options.resume:
        return None
    if options.output is None:
        raise UsageError("--resume needs the file to go on with: name it with --output")
    if not Path(options.output).exists():
        return None
    earlier = glassbox_records.read(options.output)
    parameters = {each.name: each.parameters for each in _chosen(options)}
    for what, found, wanted in (
        ("--folds", earlier.folds, options.folds),
        ("--shuffles", earlier.shuffles, options.shuffles),
        ("--limit", earlier.limit, options.limit),
        ("--threads", earlier.threads, options.threads),
        ("contenders", _contenders(earlier), parameters),
        ("sources", earlier.machine.source_sha256, machine.source_sha256),
        ("versions", earlier.machine.versions, machine.versions),
        ("processor", earlier.machine.processor, machine.processor),
    ):
        if found != wanted:
            raise UsageError(
                f"--resume: {options.output} was measured with other {what}; choose another file"
            )
    return earlier


def _contenders(found: Glassbox) -> dict[str, dict[str, Any]]:
    """Who took part in a run, with what parameters: all tables have the same."""
    return {result.contender: result.parameters for result in found.tables[0].results}


def _chosen(options: argparse.Namespace) -> list[GlassBox]:
    return [each for each in CONTENDERS if each.name in options.only]


def measured(options: argparse.Namespace, done: Collection[str]) -> Iterator[GlassTable]:
    """Measure one table after the other, but for those that are done.

    Raises
    ------
    MissingDataError
        Before the first, if one of the tables cannot be had here.
    """
    job = Job(options.folds, options.threads, options.limit, options.shuffles, options.first)
    names = [name for name in dict.fromkeys(options.sets) if name not in done]
    tables = {name: TABLES[name]() for name in names}
    if tables:
        warm_up(_chosen(options), job)
    for name, table in announced(tables):
        yield on_table(name, table, _chosen(options), job)


def warm_up(contenders: Sequence[GlassBox], job: Job) -> None:
    """Load, compile and start what first fits need, by whole fits of small tables."""
    for name in WARMING:
        X, y = TABLES[name]()
        table = Table(X[:, :_WARMING_FEATURES], y)
        part = Part(table, table)
        for each in contenders:
            with suppress(FailedError):  # it fails again when it is measured, and is reported then
                on_fold(each, part, job)


def on_table(name: str, table: Table, contenders: Sequence[GlassBox], job: Job) -> GlassTable:
    """All contenders on one table: they take turns, fold by fold, until one has used its time.

    The first folds, which hold out each sample once, are completed.
    """
    shuffled = [fold_of_each(table.y, job.folds, shuffle) for shuffle in range(job.shuffles)]
    folds: dict[str, list[GlassFold]] = {each.name: [] for each in contenders}
    reasons: dict[str, str] = {}
    parts = itertools.product(range(job.shuffles), range(job.folds))
    for shuffle, number in itertools.islice(parts, job.first):
        part = part_of(table, shuffled[shuffle] == number)
        for each in contenders:
            if each.name not in reasons:
                try:
                    folds[each.name].append(on_fold(each, part, job))
                except FailedError as failure:
                    reasons[each.name] = str(failure)
        is_whole = shuffle > 0 or number + 1 == job.folds
        if is_whole and max(sum(own.fit for own in found) for found in folds.values()) > job.limit:
            break
    return GlassTable(
        **asdict(outline(name, about(name), table, shuffled[0])),
        results=tuple(
            GlassResult(
                contender=each.name,
                parameters=each.parameters,
                folds=tuple(folds[each.name]),
                reason=reasons.get(each.name),
            )
            for each in contenders
        ),
    )


def on_fold(contender: GlassBox, part: Part, job: Job) -> GlassFold:
    """One contender on one fold.

    Raises
    ------
    FailedError
        If its library is not installed, or raises anything.
    """
    absent = contender.contender.absent()
    if absent is not None:
        raise FailedError(absent)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they concern data and settings, the same for all
        try:
            with threadpool_limits(limits=job.threads):  # scikit-learn's has no parameter for it
                return _fitted(contender.make(job.threads), part)
        except Exception as failure:
            first_line = str(failure).partition("\n")[0]
            raise FailedError(f"{type(failure).__name__}: {first_line}") from failure


def _fitted(model: Any, part: Part) -> GlassFold:
    train, test = part
    n_classes = int(max(train.y.max(), test.y.max())) + 1
    fit = _seconds(lambda: model.fit(*train))
    given = probabilities(model, test.X, n_classes)
    predict = statistics.median(
        _seconds(lambda: model.predict_proba(test.X)) for _ in range(PREDICTIONS)
    )
    return GlassFold(
        error=float(np.mean(given.argmax(axis=1) != test.y)),
        log_loss=log_loss(given, test.y),
        brier=brier_score(given, test.y),
        fit=fit,
        predict=predict,
    )


def brier_score(given: np.ndarray, y: np.ndarray) -> float:
    """The mean of the squared distance between probabilities and answers: 0 to 2 [Brier 1950].

    Parameters
    ----------
    given : ndarray (n_samples, n_classes) of float64
    y : ndarray (n_samples,) of int64
        The classes' numbers.
    """
    right = np.arange(given.shape[1]) == y[:, None]
    return float(np.square(given - right).sum(axis=1).mean())


def _seconds(work: Callable[[], Any]) -> float:
    clock = time.perf_counter()
    work()
    return time.perf_counter() - clock
