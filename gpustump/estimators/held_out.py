"""Held-out samples of a fit: which are drawn or passed, and whether a warm start may watch them.

Early stopping and bags draw a stratified share of the samples. Rows that the caller passes as X_val
and y_val are watched by all bags; each bag is still trained on its own share. Passed rows may be of
another array library than X, and count with the weights that they come with: `class_weight` is for
training.

A warm start must not watch samples that it was trained on. So a split notes the share, the seed and
a fingerprint of the samples that it was drawn from. Of passed rows only the score is noted: nobody
can check whether they were trained on, and their scores after the earlier rounds are computed
again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.utils import check_random_state

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.moving import moved_to_device_of
from gpustump.boosting.rounds.bags import Share
from gpustump.boosting.rounds.training import HeldOutRows, Run, Samples
from gpustump.data.input_arrays import check_same_device
from gpustump.data.parameters import RATIO_LOSSES, Scoring, usual_bags
from gpustump.data.readable import caller_level, counted, listed
from gpustump.data.weights import check_weights
from gpustump.engines.objective import Objective
from gpustump.estimators.targets import NO_OFFSET, Offset, TargetDomain

_FAR = 1000.0
"""Targets as boosting learns them lie between -1 and 1. Errors of held-out ones that are larger
than this are counted as about so large; see `engines.batched_rounds.LARGEST_SQUARE`."""


class Split(NamedTuple):
    """Which score of held-out samples a bag watches, and which samples it is not trained on: a
    share, drawn with a seed, of samples with a fingerprint. None and "" if it is trained on all.
    `is_passed` says that other samples are watched: rows that the caller passed to `fit`."""

    scoring: Scoring
    fraction: float | None = None
    seed: int | None = None
    fingerprint: str = ""
    is_passed: bool = False


class Earlier(NamedTuple):
    """What a warm start goes on from."""

    runs: tuple[Run, ...]
    target: TargetDomain
    split: Split | None
    objective: Objective


class Validation(NamedTuple):
    """Rows to watch as the caller passes them, unchecked."""

    X: Any
    y: Any
    sample_weight: Any
    offset: Offset = NO_OFFSET

    @classmethod
    def of(
        cls, X_val: Any, y_val: Any, sample_weight_val: Any, offset: Offset, of_training: Offset
    ) -> Validation | None:
        """What `fit` is given; None for nothing. `of_training` is the offset of X's own rows.

        Raises
        ------
        ValueError
            If X_val or y_val is missing and one of the others is given, or if only X's own rows
            have an offset.
        """
        given = {"X_val": X_val, "y_val": y_val, "sample_weight_val": sample_weight_val}
        there = [name for name, value in given.items() if value is not None]
        there += offset.given
        for name in ("X_val", "y_val"):
            if there and name not in there:
                raise ValueError(
                    f"{there[0]} is given, but {name} is not. Give X_val and y_val, or neither."
                )
        if there and of_training.given and not offset.given:
            (name, *_) = of_training.given
            nothing = "ones" if name == "exposure" else "zeros"
            raise ValueError(
                f"{name} is given, but {name}{offset.suffix} is not, so the rows of X_val would be "
                f"judged as if nothing were known of them. Give {nothing} where nothing is."
            )
        return cls(X_val, y_val, sample_weight_val, offset) if there else None


class Asked(NamedTuple):
    """What a fit is to watch.

    Attributes
    ----------
    scoring : str
        The score of the samples that are watched.
    fraction : float or None
        The share of the samples that each bag, or the only training, is not trained on; None to
        train on all samples.
    random_state : RandomState or None
        Draws the seeds of these shares.
    seeds : sequence of int or None
        For each bag the seed of its share, where another fit has drawn it.
    validation : Validation or None
        Rows that all bags watch in place of these shares.
    is_usual : bool
        Whether only as many bags are trained as suit the table; see `suiting`.
    """

    scoring: Scoring = "loss"
    fraction: float | None = None
    random_state: Any = None
    seeds: Sequence[int | None] = (None,)
    validation: Validation | None = None
    is_usual: bool = False

    def suiting(self, n_samples: int, n_classes: int) -> Asked:
        """The same, with as many bags as n_bags=None stands for, if that was asked for."""
        if not self.is_usual:
            return self
        return self._replace(seeds=self.seeds[: usual_bags(n_samples, n_classes)], is_usual=False)

    def with_seeds(self, seeds: Sequence[int | None]) -> Asked:
        """The same, drawn with the seeds of another fit; as it is if that made other bags."""
        before = self.seeds[: len(seeds)] if self.is_usual else self.seeds
        return self._replace(seeds=seeds) if len(before) == len(seeds) else self


NOTHING = Asked()
"""Nothing is drawn and nothing is watched."""


_Rows = TypeVar("_Rows")


def shares_of(
    X: Array,
    target: TargetDomain,
    samples: Samples,
    watched: Callable[[], Array],
    asked: Asked,
    earlier: Sequence[Earlier] | None,
) -> tuple[list[Share[Samples]], tuple[Split | None, ...]]:
    """For each bag what it is trained on and what it watches.

    Parameters
    ----------
    X : array (n_samples, n_features)
    target : TargetDomain
    samples : Samples
    watched : callable
        Returns the table that the caller passes, if there is one, as an array with the features of
        X.
    asked : Asked
    earlier : sequence of Earlier, or None

    Raises
    ------
    ValueError, TypeError
        If rows to watch are not as described, or cannot be drawn; or if a warm start cannot watch
        them. The message names the argument.
    """
    asked = asked.suiting(int(samples.classes.shape[0]), target.n_classes)
    rows = _held_out_rows(X, target, watched, asked)
    population = None
    if asked.fraction is not None:
        places = None if samples.rows is None else arrays.to_host(samples.rows)
        population = Population(arrays.to_host(samples.classes), places, target.classes)

    def drawn(seed: int | None, own: Earlier | None) -> tuple[Share[Samples], Split]:
        assert population is not None
        *parts, split = population.draw(asked, seed, own)
        with arrays.computing_on(samples.classes):
            kept, watched = (
                samples.taken(moved_to_device_of(part, samples.classes)) for part in parts
            )
        return Share(kept, HeldOutRows(watched), None), split

    shares, splits = drawn_shares(drawn, Share(samples, None, None), asked, earlier)
    if population is not None:
        population.warn_of_lone_samples()
    if rows is not None:
        shares = [share._replace(held_out=rows) for share in shares]
    return shares, splits


def _held_out_rows(
    X: Array, target: TargetDomain, watched: Callable[[], Array], asked: Asked
) -> HeldOutRows | None:
    """Rows that the caller passes, checked; None if there are none."""
    validation = asked.validation
    if validation is None:
        return None
    with naming("X_val"):
        X_val = watched()
    if arrays.is_array(validation.X):
        check_same_device(X_val, "X_val", X)
    with arrays.computing_on(X_val):
        given = check_weights(validation.sample_weight, X_val, "sample_weight_val")
        with naming("y_val"):
            samples = target.samples_of(validation.y, given, X_val, validation.offset)
    numbers = arrays.to_host(samples.classes)
    if target.n_classes:
        refuse_absent_classes(asked.scoring, target.classes, numbers)
    elif target.loss not in RATIO_LOSSES and np.abs(numbers).max() > _FAR:
        warnings.warn(
            f"y_val has targets more than {_FAR:g} times as far from the middle of y as y itself. "
            "Their errors are counted as if they were about as far. Are both in the same unit?",
            stacklevel=caller_level(),
        )
    return HeldOutRows(samples, X_val)


def drawn_shares(
    drawn: Callable[[int | None, Earlier | None], tuple[Share[_Rows], Split]],
    whole: Share[_Rows],
    asked: Asked,
    earlier: Sequence[Earlier] | None,
) -> tuple[list[Share[_Rows]], tuple[Split | None, ...]]:
    """The share of each bag, with the runs that it goes on from.

    Parameters
    ----------
    drawn : callable
        Draws a share with a seed; for a warm start the share that the earlier fit has drawn.
    whole : Share
        The share of a training that leaves nothing out.
    asked : Asked
    earlier : sequence of Earlier, or None

    Raises
    ------
    ValueError
        If a warm start cannot watch what is asked for.
    """
    before: Sequence[Earlier | None] = earlier or (None,) * len(asked.seeds)
    found = []
    for seed, own in zip(asked.seeds, before, strict=True):
        share, runs = whole, None if own is None else own.runs
        split: Split | None = None
        if asked.fraction is not None:
            share, split = drawn(seed, own)
            if own is not None and own.split is not None and own.split.is_passed:
                runs = unjudged(runs)  # other rows were watched
        if asked.validation is not None:
            scoring = asked.scoring
            if own is not None and own.split is not None:
                refuse_other_scoring(scoring, own.split.scoring)
            runs, split = unjudged(runs), (split or Split(scoring))._replace(is_passed=True)
        found.append((share._replace(earlier=runs), split))
    shares, splits = zip(*found, strict=True)
    return list(shares), splits


def unjudged(runs: tuple[Run, ...] | None) -> tuple[Run, ...] | None:
    """Earlier runs without their held-out scores, which may be of other rows."""
    if runs is None:
        return None
    return tuple(replace(run, held_out_scores=(), held_out_errors=()) for run in runs)


@dataclass(frozen=True)
class Population:
    """The samples from which a fit draws what it watches; all bags draw from the same ones.

    Attributes
    ----------
    targets : ndarray (n_samples,)
        The number of each sample's class, int64; of a quantity the samples' targets.
    rows : ndarray (n_samples,) of int64, or None
        The row of the table that each sample is; None if they are all rows.
    names : ndarray (n_classes,)
        The labels of the classes; none for a quantity.
    """

    targets: np.ndarray
    rows: np.ndarray | None
    names: np.ndarray

    @functools.cached_property
    def classes(self) -> np.ndarray:
        """The number of each sample's class; a quantity is drawn as if all had one class."""
        return self.targets if len(self.names) else np.zeros(len(self.targets), dtype=np.int64)

    @functools.cached_property
    def fingerprint(self) -> str:
        """What distinguishes these samples from others."""
        digest = hashlib.sha256(np.ascontiguousarray(self.targets).tobytes())
        if self.rows is not None:
            digest.update(np.ascontiguousarray(self.rows).tobytes())
        return digest.hexdigest()

    @functools.cached_property
    def _strata(self) -> Strata:
        return Strata.of(self.classes)

    def warn_of_lone_samples(self) -> None:
        """Warn of classes with one sample, which is trained on and never watched."""
        if not len(self.names):
            return
        names = self.names[self.classes[self._strata.lone]].tolist()
        if names:
            is_one = len(names) == 1
            what = f"class {listed(names)} has" if is_one else f"the classes {listed(names)} have"
            warnings.warn(
                f"y: {what} one sample only, which is trained on and never held out. So no "
                "held-out score tells how well it is predicted.",
                stacklevel=caller_level(),
            )

    def draw(
        self, asked: Asked, seed: int | None, earlier: Earlier | None
    ) -> tuple[np.ndarray, np.ndarray, Split]:
        """Samples to train on and to watch, stratified, the same on every device.

        Parameters
        ----------
        asked : Asked
        seed : int or None
            That of another fit with the same split; None for one that `random_state` draws. A warm
            start takes that of the earlier fit.
        earlier : Earlier or None

        Raises
        ------
        ValueError
            If there are too few samples, or if a warm start would watch samples that it was trained
            on, or another score than before.
        """
        fraction, n_samples = asked.fraction, len(self.classes)
        assert fraction is not None
        split = Split(asked.scoring, fraction, seed, self.fingerprint)
        if earlier is not None:
            _refuse_to_watch(split, earlier.split)
            assert earlier.split is not None
            seed = earlier.split.seed
        if not len(self.names) and math.ceil(fraction * n_samples) >= n_samples:
            raise ValueError(
                f"validation_fraction={fraction!r} of {counted(n_samples, 'sample')} leaves none "
                "to train on. Hold out less, or nothing: n_iter_no_change=None and n_bags=1."
            )
        if seed is None:
            seed = int(check_random_state(asked.random_state).randint(2**31 - 1))
        split = split._replace(seed=seed)
        try:
            kept, watched = self._strata.drawn(fraction, seed)
        except ValueError as error:
            raise ValueError(
                f"validation_fraction={fraction!r} of {n_samples} samples cannot be held out: "
                f"{error} Put rare classes together (cut a quantity into classes), take another "
                "validation_fraction, or set n_iter_no_change=None and n_bags=1, which hold "
                "nothing out."
            ) from error
        where = f"the {len(watched)} samples that validation_fraction={fraction!r} holds out"
        refuse_absent_classes(asked.scoring, self.names, self.classes[watched], where)
        return kept, watched, split


class Strata(NamedTuple):
    """Samples by class.

    Attributes
    ----------
    members : list of ndarray of int64
        The samples of each class that has two or more, increasing.
    sizes : ndarray of int64
        How many they are.
    lone : ndarray of int64
        The samples whose class has no other, in the order of the classes.
    """

    members: list[np.ndarray]
    sizes: np.ndarray
    lone: np.ndarray

    @classmethod
    def of(cls, classes: np.ndarray) -> Strata:
        """From the class number of each sample."""
        sizes = np.bincount(classes)
        by_class = np.split(np.argsort(classes, kind="stable"), np.cumsum(sizes)[:-1])
        lone = [own for own in by_class if len(own) == 1]
        return cls(
            [own for own in by_class if len(own) > 1],
            sizes[sizes > 1],
            np.concatenate([np.empty(0, dtype=np.int64), *lone]),
        )

    def drawn(self, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the samples to keep and of a share to set aside, both increasing.

        In both parts each class of two samples or more has its share, to less than one sample.

        Parameters
        ----------
        share : float
            Above 0 and below 1.
        seed : int

        Raises
        ------
        ValueError
            If a part would lack one of these classes.
        """
        n_samples, n_classes = int(self.sizes.sum()), len(self.sizes)
        n_apart = math.ceil(share * n_samples)
        n_kept = n_samples - n_apart
        if not n_classes:
            raise ValueError("every class has one sample only.")
        if min(n_apart, n_kept) < n_classes:
            raise ValueError(
                f"of {counted(n_samples, 'sample')} in classes of two or more, {n_apart} would be "
                f"set aside and {n_kept} kept, but each part needs one of all {n_classes} classes."
            )
        generator = np.random.RandomState(seed)
        to_keep = _proportional(self.sizes, n_kept, generator)
        apart = _proportional(self.sizes - to_keep, n_apart, generator)
        drawn = [own[generator.permutation(len(own))] for own in self.members]
        parts = list(zip(drawn, to_keep.tolist(), apart.tolist(), strict=True))
        kept = np.concatenate([self.lone, *(own[:n_own] for own, n_own, _ in parts)])
        rest = np.concatenate([own[n_own : n_own + n_rest] for own, n_own, n_rest in parts])
        return np.sort(kept), np.sort(rest)


def _proportional(sizes: np.ndarray, n_drawn: int, generator: np.random.RandomState) -> np.ndarray:
    """How many samples of each class make `n_drawn` in all, in proportion to the classes' sizes.

    Numbers are rounded down first. The samples that are then lacking come from the classes that
    lost most by that; ties are drawn at random. As in scikit-learn, a draw is made even if all tied
    classes get one, so that the generator goes on from the same state.
    """
    wanted = sizes / sizes.sum() * n_drawn
    found = np.floor(wanted)
    lost = wanted - found
    n_left = int(n_drawn - found.sum())
    for largest in np.unique(lost)[::-1]:
        if n_left <= 0:
            break
        equal = np.flatnonzero(lost == largest)
        lucky = generator.choice(equal, size=min(len(equal), n_left), replace=False)
        found[lucky] += 1
        n_left -= len(lucky)
    numbers: np.ndarray = found.astype(np.int64)
    return numbers


def _refuse_to_watch(split: Split, earlier: Split | None) -> None:
    """Refuse a warm start that would hold out what the earlier fit was trained on."""
    if earlier is None:
        found = "the earlier fit held nothing out: n_iter_no_change was None"
    elif earlier.fraction is None:
        found = "the earlier fit watched X_val and y_val, and trained on all of X"
    elif split.fraction != earlier.fraction:
        found = (
            f"validation_fraction is {split.fraction!r}, and it was {earlier.fraction!r} in the "
            "earlier fit"
        )
    elif split.fingerprint == earlier.fingerprint:
        refuse_other_scoring(split.scoring, earlier.scoring)
        return
    else:
        found = "the samples of positive weight, or their labels, are not those of the earlier fit"
    raise ValueError(
        f"warm_start=True would hold out samples that were trained on: {found}. Keep that as it "
        "was, or fit anew with warm_start=False."
    )


def refuse_other_scoring(scoring: Scoring, earlier: Scoring) -> None:
    """Refuse a warm start with another score than the earlier fit's."""
    if scoring != earlier:
        raise ValueError(
            f"warm_start=True goes on from the best round, but scoring is {scoring!r}, and it was "
            f"{earlier!r} in the earlier fit. Keep it as it was, or fit anew with "
            "warm_start=False."
        )


def refuse_other_classes(classes: np.ndarray, earlier: Earlier) -> None:
    """Refuse a warm start with other classes than the earlier fit's."""
    before = earlier.target.classes
    if not np.array_equal(classes, before):
        raise ValueError(
            f"y holds the classes {listed(classes.tolist())}, but with warm_start=True it must "
            f"hold those of the earlier fit, {listed(before.tolist())}."
        )


def refuse_bad_random_state(random_state: Any) -> None:
    """Refuse a random_state that cannot draw samples, even if none are drawn."""
    try:
        check_random_state(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "random_state must be None, a whole number from 0 to 2**32 - 1 or a "
            f"numpy.random.RandomState; got {random_state!r}."
        ) from error


def refuse_absent_classes(
    scoring: Scoring, classes: np.ndarray, numbers: np.ndarray, where: str = "y_val"
) -> None:
    """Refuse a score that needs all classes if a class has no row to watch.

    Parameters
    ----------
    scoring : str
    classes : ndarray (n_classes,)
    numbers : ndarray of int64
        The numbers of the classes of the rows, each at least once.
    where : str
        What these rows are called in the message.

    Raises
    ------
    ValueError
    """
    if scoring not in ("roc_auc", "balanced_accuracy"):
        return
    absent = np.setdiff1d(np.arange(len(classes)), numbers)
    if absent.size:
        raise ValueError(
            f"scoring={scoring!r} needs samples of every class in {where}, but none is of class "
            f"{classes[absent].tolist()[0]!r}. Watch more samples, or take scoring='loss'."
        )


@contextlib.contextmanager
def naming(argument: str) -> Iterator[None]:
    """Say in messages about a table or labels which argument they are about."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{argument}: {error}") from error
