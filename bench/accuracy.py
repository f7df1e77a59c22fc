"""How good the votes are: every contender on the same folds of real tables.

The error and the log-loss are those of held-out samples. Probabilities below 1e-7 count as 1e-7 for
every contender: some libraries answer in float32, in which 1 minus a smaller number is 1. All
contenders run in this process, one after the other, fold by fold; `python -m bench peers` measures
speed with more care.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import asdict
from tqdm import tqdm

from bench.accuracy_contenders import CANDIDATES, Candidate, count_stumps
from bench.accuracy_data import TABLES, Table
from bench.accuracy_records import Fold, Outline, Result, TableResults
from bench.benchmarks import whole
from bench.machine import usable_cores

LEAST_PROBABILITY = 1e-7


class Job(NamedTuple):
    """The settings that all contenders share."""

    rounds: int
    folds: int
    threads: int


class Part(NamedTuple):
    """A table split in two: samples to train on, samples to predict."""

    train: Table
    test: Table


class FailedError(Exception):
    """A contender cannot do a table; the message says why."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen on the command line."""
    add = parser.add_argument
    about = f"tables (default: all), of: {', '.join(TABLES)}"
    add("--sets", nargs="+", choices=list(TABLES), default=list(TABLES), metavar="SET", help=about)
    names = [each.name for each in CANDIDATES]
    about = f"who takes part (default: all), of: {'; '.join(names)}"
    flags = ("--only", "--contenders")
    add(*flags, nargs="+", choices=names, default=names, metavar="NAME", help=about)
    about = "rounds of boosting (default: %(default)s)"
    add("--rounds", type=whole(1), default=200, metavar="N", help=about)
    about = "stratified folds, each held out once (default: %(default)s)"
    add("--folds", type=whole(2), default=5, metavar="N", help=about)
    about = "default: 2, or 1 where there is one core"
    add("--threads", type=whole(1), default=min(2, usable_cores()), metavar="N", help=about)


def measured(options: argparse.Namespace) -> Iterator[TableResults]:
    """Measure one table after the other.

    Raises
    ------
    MissingDataError
        Before the first, if one of the tables cannot be had here.
    """
    job = Job(options.rounds, options.folds, options.threads)
    candidates = [each for each in CANDIDATES if each.name in options.only]
    tables = {name: TABLES[name]() for name in dict.fromkeys(options.sets)}
    for name, table in announced(tables):
        yield on_table(name, about(name), table, candidates, job)


def announced(tables: Mapping[str, Table]) -> Iterator[tuple[str, Table]]:
    """Each table with its name; a bar, or a line for each table, shows the progress."""
    bar = tqdm(total=len(tables), leave=False, disable=None)
    for name, table in tables.items():
        bar.set_description(name)
        if not sys.stderr.isatty():  # no bar is drawn
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
        yield name, table
        bar.update()
    bar.close()


def about(name: str) -> str:
    """One line on a table."""
    return (TABLES[name].__doc__ or "").partition("\n")[0]


def on_table(
    name: str, about: str, table: Table, candidates: Sequence[Candidate], job: Job
) -> TableResults:
    """All contenders on one table: they take turns, fold by fold."""
    held_out = fold_of_each(table.y, job.folds)
    found = outline(name, about, table, held_out)
    n_classes = len(found.classes)
    taking_part = [each for each in candidates if each.takes_part(n_classes)]
    folds: dict[str, list[Fold]] = {each.name: [] for each in taking_part}
    reasons: dict[str, str] = {}
    for number in range(job.folds):
        part = part_of(table, held_out == number)
        for each in taking_part:
            if each.name not in reasons:
                try:
                    folds[each.name].append(on_fold(each, part, job, n_classes))
                except FailedError as failure:
                    reasons[each.name] = str(failure)
    return TableResults(
        **asdict(found),
        results=tuple(
            Result(
                contender=each.name,
                group=each.group,
                parameters=dict(each.contender.parameters),
                rounds=each.rounds(job.rounds, n_classes),
                folds=tuple(folds[each.name]),
                reason=reasons.get(each.name),
            )
            for each in taking_part
        ),
    )


def outline(name: str, about: str, table: Table, held_out: np.ndarray) -> Outline:
    """What is recorded of a table itself; `held_out` is the fold of each sample."""
    content = hashlib.sha256(table.X.data)
    content.update(table.y.data)
    content.update(held_out.data)
    return Outline(
        name=name,
        about=about,
        samples=len(table.X),
        features=table.X.shape[1],
        classes=tuple(np.bincount(table.y).tolist()),
        missing=float(np.isnan(table.X).mean()),
        sha256=content.hexdigest(),
    )


def fold_of_each(y: np.ndarray, folds: int, shuffle: int = 0) -> np.ndarray:
    """The number of the fold in which each sample is held out: int64 (n_samples,).

    Stratified and shuffled; the number of the shuffle is the seed, so it is the same in every run.
    """
    from sklearn.model_selection import StratifiedKFold

    numbers = np.empty(len(y), dtype=np.int64)
    splitter = StratifiedKFold(folds, shuffle=True, random_state=shuffle)
    for number, (_, test) in enumerate(splitter.split(y[:, None], y)):
        numbers[test] = number
    return numbers


def on_fold(candidate: Candidate, part: Part, job: Job, n_classes: int) -> Fold:
    """One contender on one fold.

    Raises
    ------
    FailedError
        If its library is not installed, or raises anything.
    """
    absent = candidate.contender.absent()
    if absent is not None:
        raise FailedError(absent)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they concern data and settings, the same for all
        try:
            return _fitted(candidate, part, job, n_classes)
        except Exception as failure:
            first_line = str(failure).partition("\n")[0]
            raise FailedError(f"{type(failure).__name__}: {first_line}") from failure


def _fitted(candidate: Candidate, part: Part, job: Job, n_classes: int) -> Fold:
    train, test = part
    candidate.make(1, job.threads).fit(*train)  # loads and compiles what a first fit needs
    model = candidate.make(candidate.rounds(job.rounds, n_classes), job.threads)
    seconds = _seconds(lambda: model.fit(*train))
    error, log_loss = scored(model, test, n_classes)
    return Fold(error=error, log_loss=log_loss, stumps=count_stumps(model), seconds=seconds)


def scored(model: Any, test: Table, n_classes: int) -> tuple[float, float]:
    """The error and the log-loss of a fitted model."""
    predicted = np.asarray(model.predict(test.X)).reshape(-1)
    given = probabilities(model, test.X, n_classes)
    return float(np.mean(predicted != test.y)), log_loss(given, test.y)


def probabilities(model: Any, X: np.ndarray, n_classes: int) -> np.ndarray:
    """A fitted model's probabilities: float64 (n_samples, n_classes), rows that add up to 1.

    Raises
    ------
    ValueError
        If what the model returns has another shape, or is not all finite.
    """
    given = np.asarray(model.predict_proba(X), dtype=np.float64)
    if given.shape != (len(X), n_classes) or not np.isfinite(given).all():
        raise ValueError(f"probabilities of shape {given.shape} for {n_classes} classes, or NaN")
    shares: np.ndarray = given / given.sum(axis=1, keepdims=True)
    return shares


def log_loss(given: np.ndarray, y: np.ndarray) -> float:
    """The mean of minus the logarithm of the probability of the right class."""
    of_the_right = given[np.arange(len(y)), y]
    losses = -np.log(np.clip(of_the_right, LEAST_PROBABILITY, 1.0))
    return float(losses.mean()) + 0.0  # no -0.0


def part_of(table: Table, held_out: np.ndarray) -> Part:
    """The samples to train on, and those that are held out: a mask (n_samples,)."""
    return Part(
        Table(table.X[~held_out], table.y[~held_out]), Table(table.X[held_out], table.y[held_out])
    )


def _seconds(work: Callable[[], Any]) -> float:
    clock = time.perf_counter()
    work()
    return time.perf_counter() - clock
