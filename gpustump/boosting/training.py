"""From coded labels to rounds: one boosting run for two classes, one per class for more.

All runs share one prepared table. This is the whole of training as the estimators and the command
line see it; what a round does is in `rounds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from warnings import warn

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.devices import DeviceError, explained_errors
from gpustump.arrays.moving import moved_to_device_of
from gpustump.boosting.discrete_votes import DiscreteVotes
from gpustump.boosting.early_stopping import EarlyStopping, Stopping
from gpustump.boosting.progress import Bar
from gpustump.boosting.rounds import Boosting, Callback
from gpustump.boosting.votes import Round
from gpustump.data.parameters import Learner
from gpustump.engines.announcements import announce
from gpustump.engines.contract import PreparedTable, Resources, Task
from gpustump.engines.route import Route, prepared
from gpustump.model.ensemble import Member


@dataclass(frozen=True)
class Samples:
    """Which rows of a table take part, with their classes and weights.

    Attributes
    ----------
    rows : array (n_samples,) of int, or None
        None for all rows.
    classes : array (n_samples,) of int64
        Each sample's class, from 0.
    weights : array (n_samples,) of float64
        Positive.
    """

    rows: Array | None
    classes: Array
    weights: Array

    def beside(self, X: Array) -> Samples:
        """The same samples in the library and on the device of a table."""
        rows = None if self.rows is None else moved_to_device_of(self.rows, X)
        return Samples(
            rows, moved_to_device_of(self.classes, X), moved_to_device_of(self.weights, X)
        )

    def taken(self, index: Array) -> Samples:
        """Some of the samples."""
        xp = arrays.namespace_of(index)
        rows = index if self.rows is None else xp.take(self.rows, index, axis=0)
        classes = xp.take(self.classes, index, axis=0)
        return Samples(rows, classes, xp.take(self.weights, index, axis=0))

    def signs(self, positive: int) -> Array:
        """float64 labels: 1.0 for one class, -1.0 for the rest."""
        xp = arrays.namespace_of(self.classes)
        return 2.0 * xp.astype(self.classes == positive, xp.float64) - 1.0


@dataclass(frozen=True)
class Settings:
    """How to boost.

    Attributes
    ----------
    n_rounds : int
        The most rounds for each member, those of earlier runs included.
    learning_rate : float
    learner : str
        "stump" or "interval".
    stopping : Stopping or None
        When held-out samples end a member's rounds; None to hold nothing out.
    callback : callable or None
    resources : Resources
    show_progress : bool
    announces_route : bool
        Say where and by which engine the rounds are made, and why.
    """

    n_rounds: int
    learning_rate: float = 1.0
    learner: Learner = "stump"
    stopping: Stopping | None = None
    callback: Callback | None = None
    resources: Resources = field(default_factory=Resources)
    show_progress: bool = False
    announces_route: bool = False


@dataclass(frozen=True)
class Run:
    """The outcome of one boosting run.

    Attributes
    ----------
    rounds : tuple of Round
        Those that the model keeps: up to the best one if samples were held out.
    stop_reason : str
        See `Boosting`; "early" if the held-out score stopped rising.
    held_out_scores, held_out_errors : tuple of float
        After each round that was made; empty if nothing was held out.
    """

    rounds: tuple[Round, ...] = ()
    stop_reason: str = ""
    held_out_scores: tuple[float, ...] = ()
    held_out_errors: tuple[float, ...] = ()


class Trained(NamedTuple):
    """What training returns.

    Attributes
    ----------
    runs : tuple of Run
        One for two classes, one for each of more.
    route : Route
        Where and by which engine they were made.
    n_missing : ndarray (n_features,) of int64
        For each feature how many of the samples trained on have no value.
    """

    runs: tuple[Run, ...]
    route: Route
    n_missing: np.ndarray


def train(
    X: Array,
    samples: Samples,
    n_classes: int,
    settings: Settings,
    *,
    device: str = "auto",
    held_out: Samples | None = None,
    earlier: Sequence[Run] | None = None,
) -> Trained:
    """Boost one member for two classes, or one for each of more.

    Parameters
    ----------
    X : array (n_samples_given, n_features)
        The whole table; `samples` says which rows are trained on.
    samples : Samples
    n_classes : int
    settings : Settings
    device : str
        As `devices.check_device` allows. "auto" goes on to the CPU, with a warning, if a GPU turns
        out not to work or to be too small, unless a round has been made there.
    held_out : Samples, optional
        Samples to watch, if settings.stopping is given.
    earlier : sequence of Run, optional
        Runs on the same data to go on from.

    Returns
    -------
    Trained

    Raises
    ------
    DeviceError
        If no device that may be tried could do it.
    """
    n_members = 1 if n_classes == 2 else n_classes
    job = _Job(X, samples, n_members, settings, held_out, earlier)
    if device != "auto" or arrays.device_name(X) != "cpu":
        return _train_on(device, job)
    has_begun = False

    def noting(record: Round) -> bool | None:
        nonlocal has_begun
        has_begun = True
        return settings.callback(record) if settings.callback else None

    try:
        return _train_on("auto", replace(job, settings=replace(settings, callback=noting)))
    except DeviceError as error:
        if has_begun:
            raise
        problem = str(error)
    warn(f"device='auto' goes on to the CPU, since the GPU failed: {problem}", stacklevel=4)
    return _train_on("auto", job, gpu_problem=problem)


def member_of(run: Run) -> Member:
    """A run's rounds as a part of the finished model."""
    return Member(tuple(r.stump for r in run.rounds), tuple(r.vote for r in run.rounds))


@dataclass(frozen=True)
class _Job:
    """What `train` is asked for, but for the device."""

    X: Array
    samples: Samples
    n_members: int
    settings: Settings
    held_out: Samples | None
    earlier: Sequence[Run] | None


def _train_on(device: str, job: _Job, gpu_problem: str | None = None) -> Trained:
    settings = job.settings
    n_rounds = settings.n_rounds * job.n_members
    task = Task(job.X, int(job.samples.classes.shape[0]), settings.learner, n_rounds)
    route, table = prepared(
        task, job.samples.rows, settings.resources, device, gpu_problem=gpu_problem
    )
    if settings.announces_route:
        announce(f"trains on {route}")
    samples = job.samples.beside(table.X)
    held_out = None if job.held_out is None else job.held_out.beside(table.X)
    positives = [1] if job.n_members == 1 else list(range(job.n_members))
    done = job.earlier or [Run()] * len(positives)
    total = sum(settings.n_rounds - len(run.rounds) for run in done)
    runs = []
    with (
        explained_errors(route.place),
        Bar(total, shown=settings.show_progress, note=_note(route, table)) as bar,
    ):
        for positive, before in zip(positives, done, strict=True):
            boosting, watch = _boosting(table, samples, held_out, positive, settings)
            runs.append(_run(boosting, watch, before, bar))
            bar.skip(settings.n_rounds - boosting.n_done)
    return Trained(tuple(runs), route, table.n_missing)


def _note(route: Route, table: PreparedTable) -> str:
    """What stands before the progress bar: where the rounds are made, and how memory is used."""
    place = f"{route.place}, {route.engine}"
    return place if table.note is None else f"{place}, {table.note}"


def _boosting(
    table: PreparedTable,
    samples: Samples,
    held_out: Samples | None,
    positive: int,
    settings: Settings,
) -> tuple[Boosting, EarlyStopping | None]:
    """One class against the rest, and what watches it."""
    with arrays.computing_on(table.X):
        boosting = Boosting(
            table,
            samples.signs(positive),
            samples.weights,
            votes=DiscreteVotes(settings.learning_rate),
            n_rounds=settings.n_rounds,
            learner=settings.learner,
            callback=settings.callback,
        )
        if held_out is None or settings.stopping is None:
            return boosting, None
        y, weights = held_out.signs(positive), held_out.weights
        return boosting, EarlyStopping(table.X, held_out.rows, y, weights, settings.stopping)


def _run(boosting: Boosting, watch: EarlyStopping | None, before: Run, bar: Bar) -> Run:
    rounds = list(before.rounds)
    boosting.resume([r.stump for r in rounds], [r.vote for r in rounds])
    if watch is not None:
        watch.resume([r.stump for r in rounds], [r.vote for r in rounds])
    for record in boosting:
        rounds.append(record)
        bar.advance(record)
        if watch is not None and watch(record):
            break
    if watch is None:
        return Run(tuple(rounds), boosting.stop_reason or "")
    n_before = len(before.rounds)
    return Run(
        tuple(rounds[: watch.best_round]),
        boosting.stop_reason or "early",
        before.held_out_scores[:n_before] + tuple(watch.scores),
        before.held_out_errors[:n_before] + tuple(watch.errors),
    )
