"""From coded labels to rounds: one boosting run for two classes, one per class for more.

All runs share the same columns, sorted once. This is the whole of training as the estimators and
the command line see it; what a round is stays with `boosting`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting import Boosting, Callback, Round
from gpustump.early_stopping import EarlyStopping
from gpustump.engine import prepare, reader_of_host_tables
from gpustump.ensemble import Member
from gpustump.placement import DeviceError, brought_to, explained_errors, places_to_train
from gpustump.progress import Bar
from gpustump.validation import brought_beside

if TYPE_CHECKING:
    from gpustump.engine import AnyColumns


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
        rows = None if self.rows is None else brought_beside(self.rows, X)
        return Samples(rows, brought_beside(self.classes, X), brought_beside(self.weights, X))

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
        At most so many rounds for each member, those of earlier runs included.
    learning_rate : float
    weak_learner : str
        "stump" or "interval".
    patience : int or None
        Rounds without a better held-out error before stopping; None to hold nothing out.
    tol : float
    callback : callable or None
    block_bytes, n_jobs : int or None
    max_memory : int, str or None
    show_progress : bool
    """

    n_rounds: int
    learning_rate: float = 1.0
    weak_learner: str = "stump"
    patience: int | None = None
    tol: float = 0.0
    callback: Callback | None = None
    block_bytes: int | None = None
    n_jobs: int | None = None
    max_memory: int | str | None = None
    show_progress: bool = False


@dataclass(frozen=True)
class Run:
    """The outcome of one boosting run.

    Attributes
    ----------
    rounds : tuple of Round
        Those that the model keeps: up to the best one if samples were held out.
    held_out_errors : tuple of float
        After each round that was made; empty if nothing was held out.
    stop_reason : str
        See `Boosting`; "early" if the held-out error stopped falling.
    """

    rounds: tuple[Round, ...]
    held_out_errors: tuple[float, ...]
    stop_reason: str


def train(
    X: Array,
    samples: Samples,
    n_classes: int,
    settings: Settings,
    *,
    device: str = "auto",
    held_out: Samples | None = None,
    earlier: Sequence[Run] | None = None,
) -> tuple[tuple[Run, ...], str]:
    """Boost one member for two classes, or one for each of more.

    Parameters
    ----------
    X : array (n_samples_given, n_features)
        The whole table; `samples` says which rows are trained on.
    samples : Samples
    n_classes : int
    settings : Settings
    device : str
        As `placement.check_device` allows. "auto" goes on to the CPU if a GPU turns out not to
        work or to be too small, unless a round has been made there.
    held_out : Samples, optional
        Samples to watch, if settings.patience is given.
    earlier : sequence of Run, optional
        Runs on the same data to go on from.

    Returns
    -------
    tuple of Run
    str
        The device that made them.

    Raises
    ------
    DeviceError
        If no device that may be tried could do it.
    """
    *preferred, last = places_to_train(X, device)
    for place in preferred:
        has_begun = False

        def noting(record: Round) -> bool | None:
            nonlocal has_begun
            has_begun = True
            return settings.callback(record) if settings.callback else None

        try:
            noted = replace(settings, callback=noting)
            return _train_on(place, X, samples, n_classes, noted, held_out, earlier)
        except DeviceError:
            if has_begun:
                raise
    return _train_on(last, X, samples, n_classes, settings, held_out, earlier)


def member_of(run: Run) -> Member:
    """A run's rounds as a part of the finished model."""
    return Member(tuple(r.stump for r in run.rounds), tuple(r.vote for r in run.rounds))


def _train_on(
    place: str,
    X: Array,
    samples: Samples,
    n_classes: int,
    settings: Settings,
    held_out: Samples | None,
    earlier: Sequence[Run] | None,
) -> tuple[tuple[Run, ...], str]:
    with explained_errors(place):
        reader = reader_of_host_tables(X, place, settings.weak_learner)
        if reader is None:
            X = brought_to(X, place)
        with arrays.computing_on(X):
            samples = samples.beside(X)
            columns = prepare(
                X,
                samples.rows,
                place=reader,
                n_rounds=settings.n_rounds * (1 if n_classes == 2 else n_classes),
                weak_learner=settings.weak_learner,
                block_bytes=settings.block_bytes,
                n_jobs=settings.n_jobs,
                max_memory=settings.max_memory,
            )
        if held_out is not None:
            held_out = held_out.beside(X)
        positives = [1] if n_classes == 2 else list(range(n_classes))
        done = earlier or [Run((), (), "")] * len(positives)
        total = sum(settings.n_rounds - len(run.rounds) for run in done)
        runs = []
        with Bar(total, shown=settings.show_progress, note=columns.note) as bar:
            for positive, before in zip(positives, done, strict=True):
                boosting, watch = _boosting(columns, samples, held_out, positive, settings)
                runs.append(_run(boosting, watch, before, bar))
                bar.skip(settings.n_rounds - boosting.n_done)
        return tuple(runs), reader or arrays.device_name(X)


def _boosting(
    columns: AnyColumns,
    samples: Samples,
    held_out: Samples | None,
    positive: int,
    settings: Settings,
) -> tuple[Boosting, EarlyStopping | None]:
    """One class against the rest, and what watches it."""
    with arrays.computing_on(columns.X):
        boosting = Boosting(
            columns,
            samples.signs(positive),
            samples.weights,
            learning_rate=settings.learning_rate,
            n_rounds=settings.n_rounds,
            weak_learner=settings.weak_learner,
            callback=settings.callback,
        )
        if held_out is None or settings.patience is None:
            return boosting, None
        watch = EarlyStopping(
            columns.X,
            held_out.rows,
            held_out.signs(positive),
            held_out.weights,
            patience=settings.patience,
            tol=settings.tol,
        )
        return boosting, watch


def _run(boosting: Boosting, watch: EarlyStopping | None, before: Run, bar: Bar) -> Run:
    rounds = list(before.rounds)
    boosting.resume([r.stump for r in rounds], [r.vote for r in rounds])
    if watch is not None:
        for record in rounds:
            watch.add(record.stump, record.vote)
    for record in boosting:
        rounds.append(record)
        bar.advance(record)
        if watch is not None and watch(record):
            break
    if watch is None:
        return Run(tuple(rounds), (), boosting.stop_reason or "")
    errors = before.held_out_errors[: len(before.rounds)] + tuple(watch.errors)
    return Run(tuple(rounds[: watch.best_round]), errors, boosting.stop_reason or "early")
