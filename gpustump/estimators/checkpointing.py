"""A fit with a checkpoint: what it must have in common with the fit that wrote the file.

A fit may go on from a checkpoint if it has the same data and the same parameters. Parameters that
do not change the model may differ: where and how fast a fit trains, and what is shown or called
meanwhile. The data are compared by their fingerprints. If `random_state` is not a number (it is
None, or a generator that has been used since), the samples that a fit holds out are drawn again
with the seeds in the file.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, TypeVar

from gpustump import __version__, arrays
from gpustump.arrays import Array
from gpustump.boosting.checkpoints.file import (
    BagLogs,
    CheckpointError,
    Head,
    Outline,
    Stored,
    is_there,
    read,
)
from gpustump.boosting.checkpoints.writing import (
    Checkpoint,
    CheckpointWriter,
    check_checkpoint,
    ending_in_order,
)
from gpustump.boosting.rounds.bags import Share
from gpustump.boosting.rounds.logs import RunLog
from gpustump.boosting.rounds.training import Settings
from gpustump.data.fingerprint import Fingerprint, fingerprint_of
from gpustump.data.parameters import MONOTONE, Constraints
from gpustump.data.readable import counted, listed, shown
from gpustump.engines.announcements import announce
from gpustump.engines.contract import CONTRACT
from gpustump.estimators.categorical import Categories
from gpustump.estimators.held_out import Asked, Split, naming
from gpustump.estimators.recorded import deciding_parameters
from gpustump.estimators.targets import Offset, TargetDomain
from gpustump.model.model_file import as_read

CheckpointName = str | os.PathLike[str] | Checkpoint | None
"""The parameter `checkpoint` of an estimator."""

TRAINED, WATCHED = "X", "X_val"
"""The tables whose fingerprints a checkpoint holds."""

_NONE = "no parameter"


@dataclass(frozen=True)
class FitCheckpoint:
    """The checkpoint of a fit, and what its file holds when the fit begins.

    Attributes
    ----------
    checkpoint : Checkpoint
    stored : Stored or None
        None if there is no file.
    head : Head or None
        What a file of this fit says of it; None until `checked` is called.
    """

    checkpoint: Checkpoint
    stored: Stored | None
    head: Head | None = None

    @classmethod
    def of(cls, parameter: CheckpointName) -> FitCheckpoint | None:
        """The checkpoint of an estimator's parameter; its file is read, if it is there.

        Raises
        ------
        CheckpointError
            If it is no checkpoint.
        OSError
            If it cannot be read.
        """
        checkpoint = check_checkpoint(parameter)
        if checkpoint is None:
            return None
        return cls(checkpoint, read(checkpoint.path) if is_there(checkpoint.path) else None)

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """The fingerprint of the training table, in the form of a file."""
        assert self.head is not None
        own: Mapping[str, Any] = self.head.data[TRAINED]
        return own

    def asked(self, asked: Asked, random_state: Any) -> Asked:
        """What a fit watches, drawn with the seeds of the file if `random_state` is no number."""
        if self.stored is None or isinstance(random_state, Integral):
            return asked
        return asked.with_seeds(self.stored.seeds())

    def checked(
        self,
        settings: Mapping[str, Any],
        data: Mapping[str, Fingerprint],
        names: Sequence[str] | None = None,
    ) -> FitCheckpoint:
        """The checkpoint for a fit with these settings and data.

        Parameters
        ----------
        settings : mapping
            See `settings_of`.
        data : mapping from TRAINED and WATCHED to Fingerprint
        names : sequence of str, optional
            Of the features.

        Raises
        ------
        CheckpointError
            If the file is of another fit, or of a version whose models differ.
        """
        fingerprints = {name: own.as_details() for name, own in data.items()}
        head = Head(__version__, CONTRACT, as_read(dict(settings)), fingerprints)
        if self.stored is not None:
            _refuse_other_contract(self.stored)
            _refuse_other_settings(self.stored, head)
            _refuse_other_data(self.stored, data, names)
        return replace(self, head=head)


_Rows = TypeVar("_Rows")


@contextlib.contextmanager
def shares_kept(
    kept: FitCheckpoint | None,
    shares: list[Share[_Rows]],
    splits: Sequence[Split | None],
    outline: Outline,
) -> Iterator[list[Share[_Rows]]]:
    """The shares of all bags with logs, in a context that keeps these in the checkpoint's file;
    without a checkpoint the shares as they are.

    Parameters
    ----------
    kept : FitCheckpoint or None
    shares : list of Share
    splits : sequence of Split or None
        How the samples that each bag holds out were drawn.
    outline : Outline

    Raises
    ------
    CheckpointError
        If the rounds in the file are not those of such a fit.
    OSError
        If there is no file yet, and it cannot be written.
    """
    if kept is None:
        yield shares
        return
    assert kept.head is not None
    seeds = [None if split is None else split.seed for split in splits]
    stored = kept.stored
    if stored is None:
        new = ((RunLog() for _ in range(outline.n_runs)) for _ in seeds)
        bags = tuple(BagLogs(seed, tuple(runs)) for seed, runs in zip(seeds, new, strict=True))
    else:
        bags = stored.bags_of(outline)
        if [bag.seed for bag in bags] != seeds:
            what = "random_state draws other held-out samples than those of the checkpoint"
            raise _other(stored, what)
        if n_rounds := sum(bag.n_rounds for bag in bags):
            announce(f"goes on from {counted(n_rounds, 'round')} of {kept.checkpoint.name}")
    is_new = stored is None
    writer = CheckpointWriter(kept.checkpoint, kept.head, outline, bags, is_new=is_new)
    with ending_in_order(), writer:
        pairs = zip(shares, bags, strict=True)
        yield [share._replace(logs=bag.runs) for share, bag in pairs]


def outline_of(settings: Settings, n_classes: int, n_features: int, n_bags: int) -> Outline:
    """The form of the rounds in a fit's checkpoint."""
    return Outline(
        settings.objective(n_classes),
        n_features,
        n_bags,
        settings.n_runs(n_classes),
        settings.n_rounds_of(n_classes),
        is_watched=settings.stopping is not None,
    )


def settings_of(
    estimator: Any,
    categories: Categories,
    dtype: str,
    constraints: Constraints | None,
) -> dict[str, Any]:
    """What decides the model of a fit, except for the values of its data.

    Parameters
    ----------
    estimator : BoostedClassifier
        As it is before the fit.
    categories : Categories
        Those of the table.
    dtype : str
        Of the table's values: thresholds are numbers of this type.
    constraints : tuple (n_features,) of int, or None
        By feature. (The parameter may hold names instead, and named columns may change places.)
    """
    encoding = categories.encoding
    return deciding_parameters(estimator) | {
        MONOTONE: constraints,
        "dtype of X": arrays.working_dtype(dtype),
        "categories": None if encoding is None else encoding.as_details(),
        "categorical features": list(categories.features),
        "model of the earlier fit": estimator.model_.digest() if estimator._goes_on else None,
    }


def fingerprints_of(
    X: Any, data: Any, watched: Callable[[], Array], target: TargetDomain
) -> dict[str, Fingerprint]:
    """The fingerprints of the rows that a fit is given.

    Parameters
    ----------
    X : array (n_samples, n_features)
        The table, checked.
    data : Data
        What `fit` is given.
    watched : callable
        Returns the table to watch, if there is one, as an array with the features of X.
    target : TargetDomain
    """
    found = {TRAINED: fingerprint_with(X, data.y, data.sample_weight, data.offset, target)}
    own = data.asked.validation
    if own is not None:
        with naming("X_val and y_val"):
            rest = own.sample_weight, own.offset, target
            found[WATCHED] = fingerprint_with(watched(), own.y, *rest)
    return found


def fingerprint_with(
    X: Any, y: Any, sample_weight: Any, offset: Offset, target: TargetDomain
) -> Fingerprint:
    """The fingerprint of a checked table with what is known of its samples beforehand."""
    with arrays.computing_on(X):
        known = target.known(X, offset)
    known = None if known is None else arrays.to_host(known)
    is_quantity = target.n_classes == 0
    return fingerprint_of(X, y, sample_weight, of_quantity=is_quantity, offset=known)


def _other(stored: Stored, what: str) -> CheckpointError:
    return CheckpointError(
        f"checkpoint: this fit cannot go on from {stored.path}: {what}. Make data and parameters "
        "what they were, give another name, or remove the file to start anew."
    )


def _refuse_other_contract(stored: Stored) -> None:
    if stored.head.contract != CONTRACT:
        raise CheckpointError(
            f"checkpoint: {stored.path} was written by gpustump {stored.head.gpustump}, whose "
            f"models differ from those of this version, {__version__}: the version of its contract "
            f"is {stored.head.contract}, and here it is {CONTRACT}. Go on with that version, or "
            "remove the file to start anew."
        )


def _refuse_other_settings(stored: Stored, head: Head) -> None:
    before, now, found = stored.head.settings, head.settings, []
    for name in sorted(before.keys() | now.keys()):
        if before.get(name, _NONE) != now.get(name, _NONE):
            old, new = (shown(own[name]) if name in own else _NONE for own in (before, now))
            is_told = old != new  # both are shortened, and may differ in what is left out
            what = f"was {old}, and is {new} now" if is_told else "is another one now"
            found.append(f"{name} {what}")
    if found:
        raise _other(stored, "; ".join(found))


def _refuse_other_data(
    stored: Stored, data: Mapping[str, Fingerprint], names: Sequence[str] | None
) -> None:
    if set(stored.head.data) != set(data):
        raise _other(
            stored, f"that fit was given {listed(sorted(stored.head.data))}, and this one "
            f"{listed(sorted(data))}",
        )  # fmt: skip
    for name, own in data.items():
        try:
            before = Fingerprint.from_details(stored.head.data[name])
        except ValueError as error:
            raise _other(stored, f"its data's fingerprint cannot be read: {error}") from error
        differences = before.differences(own, names)
        if differences:
            where = "" if name == TRAINED else f"in {name}, "
            raise _other(stored, f"the data differ: {where}{'; '.join(differences)}")
