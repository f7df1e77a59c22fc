"""What a fit, or each bag of it, trains on, and what it watches: rows that are drawn or passed.

Rows that are passed as X_val and y_val are watched by all bags. Each bag is still trained on its
own share of the samples; those that it leaves out are then neither trained on nor watched.

Rows that the caller passes may be of another array library than X. They are counted with the
weights that they come with: `class_weight` is for training. A warm start may watch other rows than
the earlier fit, since the caller sees to it that they were not trained on. So their scores after
the earlier rounds are computed again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.bags import Share
from gpustump.boosting.early_stopping import Stopping
from gpustump.boosting.training import HeldOutRows, Run, Samples, Settings
from gpustump.data.input_arrays import check_same_device
from gpustump.data.parameters import Scoring, usual_bags
from gpustump.data.sample_weights import check_weights
from gpustump.estimators.held_out_split import (
    OF_BOTH_CLASSES,
    Earlier,
    Population,
    Provided,
    Split,
    Watching,
    refuse_other_scoring,
    split_samples,
)
from gpustump.estimators.target_domain import NO_OFFSET, Offset, TargetDomain

_Rows = TypeVar("_Rows")


class Validation(NamedTuple):
    """Rows to watch as the caller passes them, unchecked, and which score of them is watched."""

    X: Any
    y: Any
    sample_weight: Any
    scoring: Scoring = "loss"
    offset: Offset = NO_OFFSET

    @classmethod
    def of(
        cls, X_val: Any, y_val: Any, sample_weight_val: Any, offset: Offset = NO_OFFSET
    ) -> Validation | None:
        """What `fit` is given; None for nothing.

        Raises
        ------
        ValueError
            If X_val or y_val is missing and one of the others is given.
        """
        given = {
            "X_val": X_val, "y_val": y_val, "sample_weight_val": sample_weight_val,
            "init_score_val": offset.init_score, "exposure_val": offset.exposure,
        }  # fmt: skip
        there = [name for name, value in given.items() if value is not None]
        for name in ("X_val", "y_val"):
            if there and name not in there:
                raise ValueError(
                    f"{there[0]} is given, but {name} is not. Give X_val and y_val, or neither."
                )
        return cls(X_val, y_val, sample_weight_val, offset=offset) if there else None


def watching_settings(settings: Settings, scoring: Scoring) -> Settings:
    """The same settings for a fit that watches rows even if it is not to stop early."""
    return replace(settings, stopping=settings.stopping or Stopping(None, scoring=scoring))


class Asked(NamedTuple):
    """What a fit is to watch.

    Attributes
    ----------
    drawn : sequence of Watching or None
        For each bag, or the only training, how to draw the share that it is not trained on; None to
        train on all samples.
    validation : Validation or None
        Rows that all bags watch in place of these shares.
    is_usual : bool
        Whether only as many bags are trained as suit the table; see `suiting`.
    """

    drawn: Sequence[Watching | None] = (None,)
    validation: Validation | None = None
    is_usual: bool = False

    def suiting(self, n_samples: int, n_classes: int) -> Asked:
        """The same, with as many bags as n_bags=None stands for, if that was asked for."""
        if not self.is_usual:
            return self
        return self._replace(drawn=self.drawn[: usual_bags(n_samples, n_classes)], is_usual=False)

    def with_seeds(self, seeds: Sequence[int | None]) -> Asked:
        """The same, drawn with the seeds of another fit; as it is if that made other bags."""
        drawn = self.drawn[: len(seeds)] if self.is_usual else self.drawn
        if len(drawn) != len(seeds):
            return self
        pairs = zip(drawn, seeds, strict=True)
        return self._replace(
            drawn=[None if own is None else own._replace(seed=seed) for own, seed in pairs]
        )


NOTHING = Asked()
"""Nothing is drawn and nothing is watched."""

Note = Split | Provided | None
"""How watched samples were chosen, for warm starts; None if none are watched."""


class TrainingTable(NamedTuple):
    """The table that a fit trains on, its targets, and how another table like it is checked.

    Attributes
    ----------
    X : array (n_samples, n_features)
    target : TargetDomain
    checked : callable
        From a table as the caller passes it to an array with the features of X.
    """

    X: Array
    target: TargetDomain
    checked: Callable[[Any], Array]


def shares_of(
    table: TrainingTable, samples: Samples, asked: Asked, earlier: Sequence[Earlier] | None
) -> tuple[list[Share[Samples]], tuple[Note, ...]]:
    """For each bag what it is trained on and what it watches.

    Raises
    ------
    ValueError, TypeError
        If rows to watch are not as described, or cannot be drawn; or if a warm start cannot watch
        them. The message names the argument.
    """
    asked = asked.suiting(int(samples.classes.shape[0]), table.target.n_classes)
    validation = asked.validation
    rows = None if validation is None else _held_out_rows(table, validation)
    population = Population.of(samples, table.target.classes) if any(asked.drawn) else None

    def drawn(watching: Watching, own: Earlier | None) -> tuple[Share[Samples], Split]:
        assert population is not None
        found = population.draw(watching, own)
        kept, watched = split_samples(samples, found)
        return Share(kept, HeldOutRows(watched), None), found.split

    shares, notes = drawn_shares(drawn, Share(samples, None, None), asked, earlier)
    if population is not None:
        population.warn_of_lone_samples()
    if rows is not None:
        shares = [share._replace(held_out=rows) for share in shares]
    return shares, notes


def drawn_shares(
    drawn: Callable[[Watching, Earlier | None], tuple[Share[_Rows], Split]],
    whole: Share[_Rows],
    asked: Asked,
    earlier: Sequence[Earlier] | None,
) -> tuple[list[Share[_Rows]], tuple[Note, ...]]:
    """The share of each bag, with the runs that it goes on from.

    Parameters
    ----------
    drawn : callable
        Draws a share; for a warm start the share that the earlier fit has drawn.
    whole : Share
        The share of a training that leaves nothing out.
    asked : Asked
    earlier : sequence of Earlier, or None

    Raises
    ------
    ValueError
        If a warm start cannot watch what is asked for.
    """
    before: Sequence[Earlier | None] = earlier or (None,) * len(asked.drawn)
    found = []
    for watching, own in zip(asked.drawn, before, strict=True):
        share, runs = whole, None if own is None else own.runs
        split: Split | None = None
        if watching is not None:
            share, split = drawn(watching, _share_before(own))
            if own is not None and isinstance(own.split, Provided):  # other rows were watched
                runs = unjudged(runs)
        note: Note = split
        if asked.validation is not None:
            runs, note = unjudged(runs), noted(asked.validation, own, split)
        found.append((share._replace(earlier=runs), note))
    shares, notes = zip(*found, strict=True)
    return list(shares), notes


def _share_before(earlier: Earlier | None) -> Earlier | None:
    """An earlier fit; if it watched rows that were passed, with the split of its share as
    `split`."""
    if earlier is None or not isinstance(earlier.split, Provided) or earlier.split.share is None:
        return earlier
    return earlier._replace(split=earlier.split.share)


def noted(validation: Validation, earlier: Earlier | None, share: Split | None = None) -> Provided:
    """What a later warm start has to know about rows that the caller passes.

    Raises
    ------
    ValueError
        If a warm start would watch another score than the earlier fit.
    """
    if earlier is not None and earlier.split is not None:
        refuse_other_scoring(validation.scoring, earlier.split.scoring)
    return Provided(validation.scoring, share)


def unjudged(runs: tuple[Run, ...] | None) -> tuple[Run, ...] | None:
    """Earlier runs without their held-out scores, which may be of other rows."""
    if runs is None:
        return None
    return tuple(replace(run, held_out_scores=(), held_out_errors=()) for run in runs)


def refuse_absent_classes(scoring: Scoring, classes: np.ndarray, numbers: np.ndarray) -> None:
    """Refuse a score that needs all classes if a class has no row to watch.

    Parameters
    ----------
    scoring : str
    classes : ndarray (n_classes,)
    numbers : ndarray of int64
        The numbers of the classes of the rows, each at least once.

    Raises
    ------
    ValueError
    """
    absent = np.setdiff1d(np.arange(len(classes)), numbers)
    if absent.size and scoring in OF_BOTH_CLASSES:
        raise ValueError(
            f"scoring={scoring!r} needs samples of every class in y_val, but y_val holds none of "
            f"class {classes[absent].tolist()[0]!r}. Add some, or take scoring='loss'."
        )


def _held_out_rows(table: TrainingTable, validation: Validation) -> HeldOutRows:
    """Rows that the caller passes, checked."""
    with naming("X_val"):
        X = table.checked(validation.X)
    if arrays.is_array(validation.X):
        check_same_device(X, "X_val", table.X)
    with arrays.computing_on(X):
        weights, rows = check_weights(validation.sample_weight, X, "sample_weight_val")
        with naming("y_val"):
            samples = table.target.samples_of(validation.y, weights, rows, X, validation.offset)
    if table.target.n_classes:
        numbers = arrays.to_host(samples.classes)
        refuse_absent_classes(validation.scoring, table.target.classes, numbers)
    return HeldOutRows(samples, X)


@contextlib.contextmanager
def naming(argument: str) -> Iterator[None]:
    """Say in messages about a table or labels which argument they are about."""
    try:
        yield
    except TypeError as error:
        raise TypeError(f"{argument}: {error}") from error
    except ValueError as error:
        raise ValueError(f"{argument}: {error}") from error
