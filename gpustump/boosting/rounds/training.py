"""From class numbers to rounds: one run for two classes; for more, one per class or one for all.

All runs share one prepared table. This is the whole of training as the estimators and the command
line see it; what a round does is in `boosting`.

A callback of `Settings` gets the record of each round. An observer is told more: when runs and
rounds begin and end, and, if it asks, the model so far.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol
from warnings import warn

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.devices import DeviceError, explained_errors
from gpustump.arrays.moving import moved_to_device_of
from gpustump.boosting.held_out.judging import LocalJudge
from gpustump.boosting.held_out.samples import HeldOut, HeldOutTargets
from gpustump.boosting.held_out.scores import scorer
from gpustump.boosting.rounds.batches import Batch, Rounds, member_of
from gpustump.boosting.rounds.boosting import Boosting, Callback
from gpustump.boosting.rounds.known_scores import reweighted
from gpustump.boosting.rounds.logs import LoggedRound, RunLog
from gpustump.boosting.rounds.progress import Bar
from gpustump.boosting.rounds.smoothing import Candidates, CutPlaces, Smoothing, sampled_values
from gpustump.boosting.rounds.stopping import EarlyStopping, Stopping
from gpustump.boosting.votes.settings import Votes, VoteSettings
from gpustump.data.parameters import ROUNDS_OF_AN_OUTPUT, Learner, MultiClass
from gpustump.data.readable import caller_level
from gpustump.engines.announcements import announce
from gpustump.engines.category_table import CategoryTable
from gpustump.engines.contract import PreparedTable, Resources, Task, Trainer
from gpustump.engines.held_out import validation_table
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.engines.objective import Objective
from gpustump.engines.route import Route, device_of_route, prepared

SoFar = Callable[[], "Trained"]
"""What training would return if it stopped now."""


TaskName = Literal["bags", "bag", "class", "round"]


class Observer:
    """An object that is told of each task of training when it begins and when it ends.

    Here nothing is done about that. Tasks lie in each other: all bags, if there are several; the
    training of one bag; a run, if each class has one; and a round. If a device fails before the
    first round of a training, its tasks begin once more, on another device. A round that has begun
    may turn out to be none; then it ends with its run.
    """

    def begin(self, task: TaskName, n_tasks: int = 0, so_far: SoFar | None = None) -> None:
        """A task begins, in which there may be so many others."""

    def end(self, task: TaskName, so_far: SoFar | None = None) -> bool:
        """A task is over, if it has begun. After a round, returns whether to end its run."""
        return False


@dataclass(frozen=True)
class Samples:
    """Which rows of a table take part, with their classes and weights.

    Attributes
    ----------
    rows : array (n_samples,) of int, or None
        None for all rows.
    classes : array (n_samples,) of int64
        Each sample's class, from 0. Of a quantity each sample's target, float64, as boosting
        learns it; see `learners.target_scale`.
    weights : array (n_samples,) of float64
        Positive.
    offset : array (n_samples,) or (n_samples, n_classes) of float64, or None
        Scores that are known beforehand, whole multiples of `VOTE_UNIT`: of each class if there are
        more than two. None for none, and for a quantity, whose targets and weights hold them.
    """

    rows: Array | None
    classes: Array
    weights: Array
    offset: Array | None = None

    def beside(self, X: Array) -> Samples:
        """The same samples in the library and on the device of a table."""
        return self.changed(lambda own: moved_to_device_of(own, X))

    def changed(self, change: Callable[[Array], Array]) -> Samples:
        """The same with every array changed."""
        parts = (self.rows, self.classes, self.weights, self.offset)
        changed: list[Any] = [None if own is None else change(own) for own in parts]
        return Samples(*changed)

    def taken(self, index: Array) -> Samples:
        """Some of the samples."""
        xp = arrays.namespace_of(index)
        taken = self.changed(lambda own: xp.take(own, index, axis=0))
        return taken if self.rows is not None else replace(taken, rows=index)

    @property
    def mean_weight(self) -> tuple[float, int]:
        """The mean of the weights, and the number of samples."""
        n_samples = int(self.weights.shape[0])
        with arrays.computing_on(self.weights):  # their sum may be beyond float64
            return float(arrays.namespace_of(self.weights).sum(self.weights / n_samples)), n_samples

    def signs(self, positive: int) -> Array:
        """float64 labels: 1.0 for one class, -1.0 for the rest."""
        xp = arrays.namespace_of(self.classes)
        return 2.0 * xp.astype(self.classes == positive, xp.float64) - 1.0


@dataclass(frozen=True)
class Settings:
    """How to boost.

    Attributes
    ----------
    n_rounds : int or None
        The largest number of rounds of each run, with those of earlier fits; None for
        `ROUNDS_OF_AN_OUTPUT` times the outputs of a run.
    votes : VoteSettings
    multi_class : str
        With more than two classes: "one_vs_rest", a run for each class, or "shared", one run whose
        stumps vote for all of them.
    learner : str
        "stump" or "interval".
    stopping : Stopping or None
        When held-out samples end a run; None to hold nothing out.
    callback : callable or None
        Called with each round.
    heed : callable or None
        Called with the number of rounds that have just been made, one or more. An exception that
        it raises ends the training.
    observer : Observer or None
        Told of runs and rounds.
    resources : Resources
    show_progress : bool
    announces_route : bool
        Say where and by which engine the rounds are made, and why.
    categorical : tuple of int
        The features whose values are numbers of categories.
    smoothing : Smoothing or None
        The smoothing rounds of each run; None for none.
    """

    n_rounds: int | None
    votes: VoteSettings = field(default_factory=VoteSettings)
    multi_class: MultiClass = "one_vs_rest"
    learner: Learner = "stump"
    stopping: Stopping | None = None
    callback: Callback | None = None
    heed: Callable[[int], None] | None = None
    observer: Observer | None = None
    resources: Resources = field(default_factory=Resources)
    show_progress: bool = False
    announces_route: bool = False
    categorical: tuple[int, ...] = ()
    smoothing: Smoothing | None = None

    def n_outputs(self, n_classes: int) -> int:
        """How many outputs a run has; a quantity, which has 0 classes, has one."""
        return n_classes if n_classes > 2 and self.multi_class == "shared" else 1

    def n_runs(self, n_classes: int) -> int:
        """One for each class against the rest; otherwise one."""
        return 1 if n_classes <= 2 or self.n_outputs(n_classes) > 1 else n_classes

    def objective(self, n_classes: int) -> Objective:
        """What the rounds of a run look for, as far as it follows from the parameters alone."""
        votes = self.votes
        n_outputs = self.n_outputs(n_classes)
        given = votes.kind, n_outputs, votes.quantity
        return Objective.of(*given, learner=self.learner, level=votes.level)

    def n_rounds_of(self, n_classes: int) -> int:
        """The largest number of rounds of each run; of one class there is nothing to learn."""
        if n_classes == 1:
            return 0
        if self.n_rounds is None:
            return ROUNDS_OF_AN_OUTPUT * self.n_outputs(n_classes)
        return self.n_rounds


@dataclass(frozen=True)
class Run:
    """The outcome of one boosting run.

    Attributes
    ----------
    rounds : Rounds
        Those that the model keeps: up to the best one if samples were held out.
    stop_reason : str
        See `Boosting`; "early" if the held-out score stopped rising.
    constant : tuple of float
        The scores from which it started, one for each output; empty if nothing was trained yet.
    held_out_scores, held_out_errors : tuple of float
        The score and the error after each round that was made; empty if nothing was held out.
    """

    rounds: Rounds = field(default_factory=Rounds)
    stop_reason: str = ""
    constant: tuple[float, ...] = ()
    held_out_scores: tuple[float, ...] = ()
    held_out_errors: tuple[float, ...] = ()


class HeldOutRows(NamedTuple):
    """Samples to watch.

    Attributes
    ----------
    samples : Samples
    X : array (n_samples_given, n_features) or None
        The table whose rows they are, of any library; None for the table that is trained on.
    """

    samples: Samples
    X: Array | None = None

    def beside(self, X: Array) -> HeldOutRows:
        """The same samples with their table on the device of the table that is trained on."""
        own = X if self.X is None else self.X
        if arrays.device_name(own) != arrays.device_name(X):
            own = moved_to_device_of(own, X)
        own = validation_table(own)
        return HeldOutRows(self.samples.beside(own), own)


class Trained(NamedTuple):
    """What training returns.

    Attributes
    ----------
    runs : tuple of Run
        One for two classes or if all classes share the stumps, otherwise one for each class.
    objective : Objective
        What the rounds of each run looked for.
    route : Route
        Where and by which engine they were made.
    n_missing : ndarray (n_features,) of int64
        For each feature how many of the samples trained on have no value.
    """

    runs: tuple[Run, ...]
    objective: Objective
    route: Route
    n_missing: np.ndarray

    @property
    def members(self) -> tuple[Any, ...]:
        """The members of the model that was learnt, a `Member` or a `RegionMember` for each run."""
        return tuple(member_of(run.rounds.terms, run.constant, self.objective) for run in self.runs)


def train(
    X: Array,
    samples: Samples,
    n_classes: int,
    settings: Settings,
    *,
    device: str = "auto",
    held_out: HeldOutRows | None = None,
    earlier: Sequence[Run] | None = None,
    logs: Sequence[RunLog] | None = None,
) -> Trained:
    """Boost on a table: one run, or one for each of more than two classes.

    Parameters
    ----------
    X : array (n_samples_given, n_features)
        The whole table; `samples` says which rows are trained on.
    samples : Samples
    n_classes : int
        0 for a quantity.
    settings : Settings
    device : str
        As `devices.check_device` allows. With "auto" training moves to the CPU, with a warning, if
        a GPU does not work or is too small, unless a round has been made there.
    held_out : HeldOutRows, optional
        Samples to watch, if settings.stopping is given.
    earlier : sequence of Run, optional
        Runs on the same data to go on from. Those without held-out scores are judged again, round
        by round, if samples are watched.
    logs : sequence of RunLog, optional
        One for each run, in which its rounds are noted. The rounds that a log holds are taken over
        without a search: callbacks and observers are not told of them.

    Returns
    -------
    Trained

    Raises
    ------
    DeviceError
        If training failed on every device that may be tried.
    """
    settings = replace(settings, n_rounds=settings.n_rounds_of(n_classes))

    def trained_on(device: str, settings: Settings, gpu_problem: str | None = None) -> Trained:
        n_samples, n_outputs = int(samples.classes.shape[0]), settings.n_outputs(n_classes)
        votes = settings.votes.votes(samples.weights, n_outputs)  # the same for all runs
        objective = votes.objective(settings.learner)
        n_rounds = settings.n_rounds_of(n_classes) * settings.n_runs(n_classes)
        task = Task(X, n_samples, objective, n_rounds, settings.categorical)
        given = task, samples.rows, settings.resources, device
        route, trainer = prepared(*given, gpu_problem=gpu_problem)
        table = trainer.table
        here = samples.beside(table.X)
        with explained_errors(route.place):
            validation = None if held_out is None else held_out.beside(table.X)
            ground = LocalGround(route, trainer, here, validation)
            runs = run_all(ground, votes, settings, n_classes, earlier, logs)
        return Trained(runs, objective, route, table.n_missing)

    if device != "auto" or arrays.device_name(X) != "cpu":
        return trained_on(device, settings)
    has_begun = False

    def noting(n_rounds: int) -> None:
        nonlocal has_begun
        has_begun = True
        if settings.heed is not None:
            settings.heed(n_rounds)

    try:
        return trained_on("auto", replace(settings, heed=noting))
    except DeviceError as error:
        if has_begun:
            raise
        problem = str(error)
    warn(
        f"device='auto' goes on to the CPU, since the GPU failed: {problem}",
        stacklevel=caller_level(),
    )
    return trained_on("auto", settings, problem)


class Target(NamedTuple):
    """What a run learns, and how it votes: a class against the rest, all classes, or a quantity.

    Attributes
    ----------
    positive : int
        The class whose label is 1, with one output.
    n_outputs : int
    votes : Votes
    is_quantity : bool
    """

    positive: int
    n_outputs: int
    votes: Votes
    is_quantity: bool = False

    def labels(self, samples: Samples) -> Array:
        """The labels as `Engine.start` takes them."""
        if self.is_quantity or self.n_outputs > 1:
            return samples.classes
        return samples.signs(self.positive)

    def offset(self, samples: Samples) -> Array | None:
        """The known scores of this run's outputs."""
        found = samples.offset
        if found is None or found.ndim == 1 or self.n_outputs > 1:
            return found
        return found[:, self.positive]

    def validation(self, samples: Samples, n_jobs: int | None) -> HeldOut | HeldOutTargets:
        """Held-out samples in the form that the scores take."""
        given = samples.classes, IntegerWeights.of(samples.weights)
        if self.is_quantity:
            return HeldOutTargets(*given, level=self.votes.objective("stump").level)
        return HeldOut.of(*given, self.positive, self.n_outputs, n_jobs)


class Ground(Protocol):
    """Where the samples of a training are: in one place, or in many."""

    @property
    def route(self) -> Route: ...

    @property
    def table(self) -> PreparedTable: ...

    def boosting(self, target: Target, settings: Settings, before: Run) -> Boosting:
        """A run, at its start."""

    def watch(self, boosting: Boosting, target: Target, settings: Settings) -> EarlyStopping | None:
        """The early stopping of a run; None if no samples are held out."""


@dataclass(frozen=True)
class LocalGround:
    """Samples in one place; see `Ground`.

    Attributes
    ----------
    route : Route
    trainer : Trainer
    samples : Samples
        Those that are trained on, beside the table.
    held_out : HeldOutRows or None
        Those that are watched, beside their table.
    """

    route: Route
    trainer: Trainer
    samples: Samples
    held_out: HeldOutRows | None

    @property
    def table(self) -> PreparedTable:
        return self.trainer.table

    def boosting(self, target: Target, settings: Settings, before: Run) -> Boosting:
        """A run, at its start."""
        with arrays.computing_on(self.table.X):
            labels, weights = target.labels(self.samples), self.samples.weights
            offset = target.offset(self.samples)
            places = None if settings.smoothing is None else self._places
            if offset is not None and settings.votes.kind != "newton":
                weights, offset = reweighted(weights, labels, offset), None
            return Boosting(
                self.trainer,
                labels,
                weights,
                offset=offset,
                votes=target.votes,
                n_rounds=settings.n_rounds,
                learner=settings.learner,
                callback=settings.callback,
                constant=before.constant or None,
                candidates=Candidates.of(settings.smoothing, places, target.positive),
            )

    @functools.cached_property
    def _places(self) -> CutPlaces:
        """The places where smoothing rounds may cut."""
        table, rows = self.table, self.samples.rows
        groups = table.groups if isinstance(table, CategoryTable) else {}
        return CutPlaces.of(sampled_values(table.X, rows, table.n_samples), groups)

    def watch(self, boosting: Boosting, target: Target, settings: Settings) -> EarlyStopping | None:
        """The early stopping of a run; None if no samples are held out."""
        if self.held_out is None or settings.stopping is None:
            return None
        samples, X = self.held_out
        n_jobs, keeps_values = settings.resources.n_jobs, settings.resources.max_memory is None
        with arrays.computing_on(X):
            validation = target.validation(samples, n_jobs)
            score = scorer(settings.stopping.scoring, validation, boosting.link)
            start: Any = boosting.constant
            offset = target.offset(samples)
            if offset is not None:
                xp = arrays.namespace_of(offset)
                columns = xp.reshape(offset, (offset.shape[0], -1))
                start = columns + xp.asarray(
                    start, dtype=xp.float64, device=arrays.device_of(offset)
                )
            device = device_of_route(self.route, X) if keeps_values else None
            judge = LocalJudge(
                X, samples.rows, validation, score, start, n_jobs,
                keeps_values=keeps_values, device=device,
            )  # fmt: skip
            return EarlyStopping(judge, settings.stopping)


def run_all(
    ground: Ground,
    votes: Votes,
    settings: Settings,
    n_classes: int,
    earlier: Sequence[Run] | None,
    logs: Sequence[RunLog] | None,
) -> tuple[Run, ...]:
    """Make the rounds of all runs, one run after the other; see `train`."""
    n_runs, n_outputs = settings.n_runs(n_classes), settings.n_outputs(n_classes)
    limit, route = settings.n_rounds_of(n_classes), ground.route
    if settings.announces_route:
        announce(f"trains on {route}")
    before = earlier or [Run()] * n_runs
    kept_logs = logs or [RunLog() for _ in before]
    n_done = [len(log.rounds) for log in kept_logs]
    n_rounds = [limit - len(run.rounds) for run in before]
    runs = list(before)

    def so_far() -> Trained:
        """The runs as they stand; those to come have scores of 0."""
        zeros = (0.0,) * n_outputs
        found = (
            replace(run, rounds=Rounds.of(run.rounds), constant=run.constant or zeros)
            for run in runs
        )
        objective = votes.objective(settings.learner)
        return Trained(tuple(found), objective, route, ground.table.n_missing)

    observer = settings.observer or Observer()
    to_come = [own - done for own, done in zip(n_rounds, n_done, strict=True)]
    observer.begin("bag", n_runs if n_runs > 1 else to_come[0])
    place, shown = f"{route.place}, {route.engine}", settings.show_progress
    with Bar(sum(n_rounds), shown=shown, note=place, done=sum(n_done)) as bar:
        for number, own in enumerate(before):
            positive = number if n_runs == n_classes else 1
            target = Target(positive, n_outputs, votes, is_quantity=n_classes == 0)
            boosting = ground.boosting(target, settings, own)
            watch = ground.watch(boosting, target, settings)
            if n_runs > 1:
                observer.begin("class", to_come[number])
            rounds = Rounds.of(own.rounds)
            runs[number] = Run(rounds, "", boosting.constant)
            told = _Told(bar, watch, observer, so_far, kept_logs[number], logs is not None)
            runs[number] = _run(boosting, own, rounds, told, settings)
            observer.end("round", so_far)
            observer.end("class", so_far)
            bar.skip(limit - boosting.n_done)
    observer.end("bag", so_far)
    return tuple(runs)


class _Told(NamedTuple):
    """The objects that are told of a run's rounds; `is_kept` says whether a checkpoint keeps the
    log."""

    bar: Bar
    watch: EarlyStopping | None
    observer: Observer
    so_far: SoFar
    log: RunLog
    is_kept: bool


def _run(boosting: Boosting, before: Run, rounds: Rounds, told: _Told, settings: Settings) -> Run:
    """Make the rounds of a run, and add them to those that it goes on from."""
    watch, log = told.watch, told.log
    is_judged = len(before.held_out_scores) >= len(rounds)
    known = [r.stump for r in rounds], [r.vote for r in rounds]
    boosting.resume(*known)
    if watch is not None:
        watch.resume(*known, judges_each=not is_judged)
    log.begin(boosting.constant)
    logged = [one.hypothesis for one in log.rounds], [one.vote for one in log.rounds]
    rounds.add(Batch.of(boosting.resume(*logged)))
    if watch is not None:
        for one in log.rounds:
            assert one.judged is not None, "the checkpoint of a fit that watches samples"
            watch.add(one.hypothesis, one.vote, one.judged)
    if settings.resources.max_memory is None and not log.stop_reason:
        boosting.make_batches(watch)
    reason = log.stop_reason or _made(boosting, rounds, told, settings)
    log.end = reason
    if watch is None:
        return Run(rounds, reason, boosting.constant)
    n_known = len(before.rounds) if is_judged else 0
    return Run(
        rounds.first(watch.n_kept),
        reason,
        boosting.constant,
        before.held_out_scores[:n_known] + tuple(watch.scores),
        before.held_out_errors[:n_known] + tuple(watch.errors),
    )


def _made(boosting: Boosting, rounds: Rounds, told: _Told, settings: Settings) -> str:
    """Make a run's rounds, and add them to the others. Returns why there are no more.

    If nothing is told of each round, they come in batches.
    """
    bar, watch, observer, so_far, log, is_kept = told
    is_told = is_kept or bar.is_shown or settings.observer is not None
    is_of_each = is_told or settings.callback is not None
    limit = settings.n_rounds or 0
    while True:
        if boosting.n_done < limit:
            observer.begin("round", so_far=so_far)
        made = boosting.take(1 if is_of_each else sys.maxsize)
        if made is None:
            return boosting.stop_reason or ""
        if settings.heed is not None:
            settings.heed(len(made))
        boosting.call_back(made)
        if watch is not None:
            made = boosting.keep(made, watch.judge(made))
        rounds.add(made)
        is_early = watch is not None and watch.is_over
        is_ended = observer.end("round", so_far)
        reason = boosting.stop_reason or ("early" if is_early else "callback" if is_ended else "")
        if is_of_each:
            (record,) = made.records
            bar.advance(record)
            if is_kept:
                judged = None if watch is None else watch.last
                log.note(LoggedRound(record.stump, record.vote, judged, reason))
        if is_early or is_ended:
            return reason
