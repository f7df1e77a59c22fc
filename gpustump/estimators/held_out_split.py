"""Which samples early stopping holds out, and whether a warm start may watch them again.

A warm start must not watch samples that it was trained on. So a split notes the share, the seed and
a fingerprint of the samples that it was drawn from. Of rows that the caller passes (see
`validation_data`) only the score is noted: nobody can check whether they were trained on.
"""

from __future__ import annotations

import functools
import hashlib
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from sklearn.utils import check_random_state

from gpustump import arrays
from gpustump.arrays.moving import moved_to_device_of
from gpustump.boosting.training import Run, Samples
from gpustump.data.callers import caller_level
from gpustump.data.parameters import Scoring
from gpustump.data.readable import listed
from gpustump.engines.contract import Search
from gpustump.estimators.stratified import Strata
from gpustump.estimators.target_domain import TargetDomain

OF_BOTH_CLASSES = ("roc_auc", "balanced_accuracy")
"""Scores that are not defined for samples of one class only."""


class Watching(NamedTuple):
    """What early stopping asks for: the share to hold out, how to draw it, and its score.

    A `seed`, which an earlier fit has drawn, takes the place of one that `random_state` draws.
    """

    fraction: float
    random_state: Any
    scoring: Scoring
    seed: int | None = None


class Split(NamedTuple):
    """Which samples are held out (a share, drawn with a seed, of samples with a fingerprint), and
    which score of them is watched."""

    fraction: float
    seed: int
    fingerprint: str
    scoring: Scoring


class Provided(NamedTuple):
    """That the watched samples are rows that the caller passed to `fit`; with their score that is
    watched and, for a bag, the share that it is not trained on."""

    scoring: Scoring
    share: Split | None = None


class Earlier(NamedTuple):
    """What a warm start goes on from."""

    runs: tuple[Run, ...]
    target: TargetDomain
    split: Split | Provided | None
    search: Search


def split_samples(samples: Samples, drawn: Drawn) -> tuple[Samples, Samples]:
    """Samples to train on and to watch."""
    with arrays.computing_on(samples.classes):
        train_on, watch = (
            samples.taken(moved_to_device_of(part, samples.classes))
            for part in (drawn.kept, drawn.watched)
        )
    return train_on, watch


class Drawn(NamedTuple):
    """Samples to train on and samples to watch: their numbers, increasing, and how they were drawn.

    Attributes
    ----------
    kept, watched : ndarray of int64
    split : Split
    """

    kept: np.ndarray
    watched: np.ndarray
    split: Split


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

    @classmethod
    def of(cls, samples: Samples, names: np.ndarray) -> Population:
        """From samples on any device, and the labels of the classes."""
        rows = None if samples.rows is None else arrays.to_host(samples.rows)
        return cls(arrays.to_host(samples.classes), rows, names)

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

    def draw(self, watching: Watching, earlier: Earlier | None) -> Drawn:
        """Samples to train on and to watch, stratified, the same on every device.

        Raises
        ------
        ValueError
            If there are too few samples, or if a warm start would watch samples that it was trained
            on, or another score than before.
        """
        fraction, n_samples = watching.fraction, len(self.classes)
        split = Split(
            float(fraction), _seed_of(watching, earlier), self.fingerprint, watching.scoring
        )
        if earlier is not None and split != earlier.split:
            _refuse_to_watch(split, earlier.split)
        try:
            kept, watched = self._strata.drawn(fraction, split.seed)
        except ValueError as error:
            raise ValueError(
                f"validation_fraction={fraction!r} of {n_samples} samples cannot be held out: "
                f"{error} Put rare classes together (cut a quantity into classes), take another "
                "validation_fraction, or set n_iter_no_change=None and n_bags=1, which hold "
                "nothing out."
            ) from error
        if watching.scoring in OF_BOTH_CLASSES:
            self._refuse_absent_classes(watching, watched)
        return Drawn(kept, watched, split)

    def _refuse_absent_classes(self, watching: Watching, watched: np.ndarray) -> None:
        absent = np.setdiff1d(np.arange(len(self.names)), self.classes[watched])
        if absent.size:
            raise ValueError(
                f"scoring={watching.scoring!r} needs held-out samples of every class, but "
                f"validation_fraction={watching.fraction!r} holds out {len(watched)} samples, and "
                f"none of class {self.names[absent].tolist()[0]!r}. Hold out more, or take "
                "scoring='loss'."
            )


def _seed_of(watching: Watching, earlier: Earlier | None) -> int:
    """The seed of a split: that of the earlier fit, or a new one."""
    if earlier is not None:
        return earlier.split.seed if isinstance(earlier.split, Split) else -1
    if watching.seed is not None:
        return watching.seed
    return int(check_random_state(watching.random_state).randint(2**31 - 1))


def _refuse_to_watch(split: Split, earlier: Split | Provided | None) -> NoReturn:
    """Say why a warm start cannot watch what the earlier fit watched."""
    if earlier is None:
        found = "the earlier fit held nothing out: n_iter_no_change was None"
    elif isinstance(earlier, Provided):
        found = "the earlier fit watched X_val and y_val, and trained on all of X"
    elif split.fraction != earlier.fraction:
        found = (
            f"validation_fraction is {split.fraction!r}, and it was {earlier.fraction!r} in the "
            "earlier fit"
        )
    else:
        found = "the samples of positive weight, or their labels, are not those of the earlier fit"
    if isinstance(earlier, Split) and split == earlier._replace(scoring=split.scoring):
        refuse_other_scoring(split.scoring, earlier.scoring)
    raise ValueError(
        f"warm_start=True with n_iter_no_change would watch samples that were trained on: {found}. "
        "Keep both as they were, or fit anew with warm_start=False."
    )


def refuse_other_scoring(scoring: Scoring, earlier: Scoring) -> None:
    """Refuse a warm start with another score than the earlier fit's."""
    if scoring != earlier:
        raise ValueError(
            f"warm_start=True goes on from the best round, but scoring is {scoring!r}, and it was "
            f"{earlier!r} in the earlier fit. Keep it as it was, or fit anew with "
            "warm_start=False."
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
