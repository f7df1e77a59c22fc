"""Bags: several trainings on shares of one table, whose average is the model.

Each bag is a training of its own, on the rows of its share only: its model is the one that a fit of
these rows alone gives, bit for bit. So the average depends only on the shares, not on the number of
threads or the order in which bags finish. (The columns could be coded once for all bags, with
weight zero for the rows that a bag leaves out. But every round would pass over all rows, and
thresholds would lie between values of rows that the bag was not trained on.)

On a table of medium size a round is too short for two threads to share, so the bags are trained
side by side, one thread for each. On a small table most of a round is Python code, whose lock lets
one thread run at a time; but where rounds are made many at a time, without Python
(`engines.batched_rounds`), bags gain on smaller tables, too. On a large table threads that share a
bag wait for each other, so bags are trained side by side if there is a bag for each thread and the
tables that are coded at the same time are not too large. On a GPU the bags are trained one after
the other. `bench/NOTES.md` has the figures.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic, NamedTuple, TypeVar

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.rounds.logs import RunLog
from gpustump.boosting.rounds.progress import Bar
from gpustump.boosting.rounds.training import (
    HeldOutRows,
    Observer,
    Run,
    Samples,
    Settings,
    Trained,
    train,
)
from gpustump.boosting.votes.votes import AnyRound
from gpustump.engines.contract import Task
from gpustump.engines.route import asked_for, kernels_will_train, why_not_on_gpu
from gpustump.engines.threads import Team, threads_of

_SMALL, _MEDIUM, _LARGE = 10_000, 500_000, 2_000_000
"""Numbers of elements of a table. From the first one on, bags are trained side by side if their
rounds are made in batches; from the second one on, all are; from the third one on, only if there is
a bag for each thread."""

_MOST_AT_ONCE = 100_000_000
"""The most elements of tables that are coded at the same time."""


_Rows = TypeVar("_Rows")


class Share(NamedTuple, Generic[_Rows]):
    """What one bag is trained on.

    Attributes
    ----------
    samples : Samples
        If they are elsewhere, what identifies them.
    held_out : HeldOutRows or None
        The samples that are watched, if settings.stopping is given.
    earlier : tuple of Run, or None
        Runs on the same samples, from which to go on.
    logs : tuple of RunLog, or None
        In which the rounds of each run are noted; see `train`.
    """

    samples: _Rows
    held_out: HeldOutRows | None
    earlier: tuple[Run, ...] | None
    logs: tuple[RunLog, ...] | None = None


def train_bags(
    X: Array,
    shares: Sequence[Share[Samples]],
    n_classes: int,
    settings: Settings,
    *,
    device: str = "auto",
) -> list[Trained]:
    """Train on each of several shares of a table; see `train` and `train_each`.

    Parameters
    ----------
    X : array (n_samples_given, n_features)
    shares : sequence of Share
    n_classes : int
    settings : Settings
    device : str

    Returns
    -------
    list of Trained
        One for each share.
    """

    def trained_on(share: Share[Samples], settings: Settings) -> Trained:
        rows, held_out, earlier, logs = share
        return train(
            X, rows, n_classes, settings,
            device=device, held_out=held_out, earlier=earlier, logs=logs,
        )  # fmt: skip

    n_threads = min(threads_of(settings.resources.n_jobs), len(shares))
    if n_threads > 1 and not _go_side_by_side(X, n_classes, settings, device, len(shares)):
        n_threads = 1
    return train_each(trained_on, shares, n_classes, settings, n_threads)


def train_each(
    trained_on: Callable[[Share[_Rows], Settings], Trained],
    shares: Sequence[Share[_Rows]],
    n_classes: int,
    settings: Settings,
    n_threads: int = 1,
) -> list[Trained]:
    """Train on each of several shares, wherever their samples are.

    Parameters
    ----------
    trained_on : callable
        Trains on one of them, with settings of its own.
    shares : sequence of Share
    n_classes : int
    settings : Settings
        With a callback or an observer, n_threads must be 1.
    n_threads : int
        How many are trained side by side, each in one thread.

    Returns
    -------
    list of Trained
        One for each share.
    """
    if len(shares) == 1:
        return [trained_on(shares[0], settings)]
    most = settings.n_rounds_of(n_classes) * settings.n_runs(n_classes)
    to_come = [most - sum(len(run.rounds) for run in share.earlier or ()) for share in shares]
    done = [sum(len(log.rounds) for log in share.logs or ()) for share in shares]
    is_over, numbers = threading.Event(), range(len(shares))
    resources = settings.resources if n_threads == 1 else replace(settings.resources, n_jobs=1)
    observer = settings.observer or Observer()
    observer.begin("bags", len(shares))
    note, shown = f"{len(shares)} bags", settings.show_progress
    with Bar(sum(to_come), shown=shown, note=note, done=sum(done)) as bar:

        def told(record: AnyRound) -> bool | None:
            bar.advance(record)
            return settings.callback(record) if settings.callback else None

        def one(number: int) -> Trained:
            made = done[number]

            def heed(n_rounds: int) -> None:
                nonlocal made
                made += n_rounds
                if is_over.is_set():
                    raise _AbandonedError

            smoothing = settings.smoothing
            own = replace(
                settings,
                smoothing=None if smoothing is None else replace(smoothing, bag=number),
                callback=told if bar.is_shown else settings.callback,
                heed=heed,
                resources=resources,
                show_progress=False,
                announces_route=settings.announces_route and number == 0,
            )
            trained = trained_on(shares[number], own)
            bar.skip(to_come[number] - made)
            return trained

        if n_threads > 1:
            found = _side_by_side(one, numbers, n_threads, is_over)
        else:
            found = [one(number) for number in numbers]
    observer.end("bags")
    return found


def _go_side_by_side(
    X: Array, n_classes: int, settings: Settings, device: str, n_bags: int
) -> bool:
    """Whether to train bags at the same time: NumPy tables, without callbacks or memory limit."""
    nobody_looks = settings.callback is None and settings.observer is None
    is_free = nobody_looks and settings.resources.max_memory is None
    is_plain = arrays.is_sparse(X) or arrays.library_name(X) == "numpy"
    if not (is_free and is_plain and asked_for() != "cuda"):
        return False
    n_rounds = settings.n_rounds_of(n_classes)
    task = Task(X, X.shape[0], settings.objective(n_classes), n_rounds, settings.categorical)
    n_elements = task.n_elements
    if n_elements < (_SMALL if _are_in_batches(task) else _MEDIUM):
        return False
    n_threads = threads_of(settings.resources.n_jobs)
    is_too_large = n_threads > n_bags or n_elements * n_threads > _MOST_AT_ONCE
    if n_elements >= _LARGE and is_too_large:
        return False
    return device == "cpu" or (device == "auto" and why_not_on_gpu(task) is not None)


def _are_in_batches(task: Task) -> bool:
    """Whether the rounds of a small table are made in batches, with little Python."""
    is_possible = task.objective.gain == "newton" or not task.categorical
    is_possible &= task.objective.learner == "stump" and asked_for() != "coded"
    is_possible &= not arrays.is_sparse(task.X)
    return is_possible and kernels_will_train(task)


class _AbandonedError(Exception):
    """A bag is not needed any more."""


def _side_by_side(
    one: Callable[[int], Trained], numbers: Sequence[int], n_threads: int, is_over: threading.Event
) -> list[Trained]:
    """Train all bags, each in one thread; an error or an interruption ends all of them.

    `is_over` is set when they are not needed any more.
    """
    found, under_way = dict[int, Trained](), set[int]()

    def train_one(number: int) -> None:
        under_way.add(number)
        try:
            if not is_over.is_set():
                found[number] = one(number)
        except _AbandonedError:  # what ended the other bags is raised instead
            pass
        except BaseException:
            is_over.set()
            raise
        finally:
            under_way.discard(number)

    try:
        Team(n_threads).each(train_one, numbers)
    finally:
        is_over.set()
        while under_way:  # they end after the present round; checkpoints may keep it
            time.sleep(0.001)
    return [found[number] for number in numbers]
