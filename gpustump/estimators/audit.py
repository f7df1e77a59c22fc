"""Auditing a model: is it the one that its training data give?

Boosting is exact here, and so is everything that depends on it: the same data and parameters give
the same model on every machine, byte for byte. So anyone who has the data can check a model: it is
trained again, and both models are compared, round by round. A model's file says how it was trained
(`recorded`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.devices import check_device
from gpustump.boosting.bags import train_bags
from gpustump.boosting.finished import link_of
from gpustump.boosting.pairs.learning import learn_pairs
from gpustump.boosting.training import Settings, Trained
from gpustump.boosting.votes import Round, Vote
from gpustump.data.class_weights import check_class_weight
from gpustump.data.fingerprint import Fingerprint
from gpustump.data.frames import with_columns
from gpustump.data.labels import plain_labels
from gpustump.estimators.audit_result import Audit, HeadDifference, RoundDifference, Side, What
from gpustump.estimators.checkpointing import fingerprint_with
from gpustump.estimators.fitted import Data, DeviceName, Prepared, StumpEstimator, model_of
from gpustump.estimators.recorded import FINGERPRINT, Recorded, of_estimator, recorded
from gpustump.estimators.target_domain import NO_OFFSET, Offset
from gpustump.estimators.validation_data import NOTHING, Asked, Validation
from gpustump.learners.kinds import AnySplit, AnyStump
from gpustump.learners.pair_table import PairTable
from gpustump.model import model_file
from gpustump.model.bags import turns
from gpustump.model.ensemble import StumpEnsemble
from gpustump.model.members import Member


class Means(NamedTuple):
    """How to make an audit; see `audit`.

    Attributes
    ----------
    device : str
    n_jobs : int or None
    max_memory : int, str or None
    verbose : int
    """

    device: str = "auto"
    n_jobs: int | None = None
    max_memory: int | str | None = None
    verbose: int = 0


class Given(NamedTuple):
    """The data that a model is audited with, unchecked; see `audit`.

    Attributes
    ----------
    X, y, sample_weight
        The table, of which the model may hold a fingerprint.
    validation : Validation or None
        The rows that were passed to the fit, to be watched.
    kept : ndarray (n_samples,) of bool, or None
        The rows that were given to the fit; None for all. The others get weight 0.
    offset : Offset
    """

    X: Any
    y: Any
    sample_weight: Any = None
    validation: Validation | None = None
    kept: np.ndarray | None = None
    offset: Offset = NO_OFFSET

    @property
    def weights(self) -> Any:
        """The weights of the fit."""
        if self.kept is None:
            return self.sample_weight
        return self.kept * (1.0 if self.sample_weight is None else self.sample_weight)


def audit(
    model: StumpEnsemble | str | PathLike[str],
    X: Array,
    y: Array,
    sample_weight: Array | None = None,
    *,
    init_score: Array | None = None,
    exposure: Array | None = None,
    estimator: Any = None,
    X_val: Array | None = None,
    y_val: Array | None = None,
    sample_weight_val: Array | None = None,
    init_score_val: Array | None = None,
    exposure_val: Array | None = None,
    device: DeviceName = "auto",
    n_jobs: int | None = None,
    max_memory: int | str | None = None,
    verbose: int = 0,
) -> Audit:
    """Train a model again on its training data, and compare both round by round.

    Parameters
    ----------
    model : StumpEnsemble, str or path
        The model, or its file.
    X : array or frame (n_samples, n_features)
        The table that it was trained on, of any library and on any device.
    y : array (n_samples,)
    sample_weight : array (n_samples,), optional
        As they were given to `fit`, without `class_weight`.
    init_score, exposure : array (n_samples,), optional
        As they were given to `fit`.
    estimator : classifier or regressor of this package, optional
        With the parameters of the fit. By default they come from the model, as models of this
        version hold a record of their estimator. `random_state` must be a number if `fit` drew
        samples, unless the model holds the seeds.
    X_val, y_val, sample_weight_val, init_score_val, exposure_val : array, optional
        Those that were given to `fit`. Without them, the audit does not derive where a run that
        watched them stops early.
    device : str
        As for `AdaBoostClassifier`; it need not be the device of the fit.
    n_jobs, max_memory, verbose
        As for `AdaBoostClassifier`.

    Returns
    -------
    Audit
        `same`, the first `difference` if there is one, and what was not derived. Printed, it says
        all of it in words.

    Raises
    ------
    ModelFileError
        If the file is not an intact model.
    ValueError, TypeError
        If data or an argument is not as described, or if neither the model nor `estimator` says how
        it was trained; the message says what is missing.
    DeviceError
        If `device` asks for a GPU that cannot be used.

    Notes
    -----
    An audit takes as long as the fit. The votes of each round follow from the weights after the
    earlier ones, so all rounds after the first different one may differ, too.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpustump import AdaBoostClassifier, audit
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AdaBoostClassifier(n_estimators=20, device="cpu").fit(X, y).model_
    >>> audit(model, X, y).same
    True
    >>> X[7, 20] = 14.9
    >>> found = audit(model, X, y)
    >>> found.same, found.difference.number
    (False, 1)
    """
    if not isinstance(model, StumpEnsemble):
        model = StumpEnsemble.load(os.fspath(model))
    known = recorded_fit(model, estimator)
    watched = Offset(init_score_val, exposure_val, "_val")
    validation = Validation.of(X_val, y_val, sample_weight_val, watched)
    if validation is not None and estimator is None and not known.passed:
        raise ValueError(
            "X_val is given, but the model's record says that its fit was given no X_val. Leave it "
            "out, or pass estimator=..."
        )
    means = Means(device, n_jobs, max_memory, verbose)
    given = Given(X, y, sample_weight, validation, offset=Offset(init_score, exposure))
    return audit_with(model, known, given, means)


def recorded_fit(model: StumpEnsemble, estimator: Any = None) -> Recorded:
    """What is known of a model's fit, from its details or from an estimator.

    Raises
    ------
    ValueError, TypeError
        If nothing is known, or nothing that can be used.
    """
    if estimator is not None:
        return _from_estimator(estimator, model)
    known = recorded(model.details)
    if known is not None:
        return known
    if "training" in model.details:
        raise ValueError(
            "this model was trained by `gpustump train`, on a share of the rows of a file. Audit "
            "it with `gpustump audit MODEL DATA`; or pass the rows that it was trained on, and "
            "estimator=... with the parameters of the fit."
        )
    raise ValueError(
        "the model does not say how it was trained: it holds no record of its estimator, as "
        "models of earlier versions do not. Pass the estimator with the parameters of the fit: "
        "audit(..., estimator=AdaBoostClassifier(n_estimators=100))."
    )


def audit_with(model: StumpEnsemble, known: Recorded, given: Given, means: Means) -> Audit:
    """Audit a model whose fit is known; see `audit`.

    Parameters
    ----------
    model : StumpEnsemble
    known : Recorded
    given : Given
    means : Means
    """
    before = _fingerprint(model)
    ready, is_rounded = _in_dtype(_prepared(model, known, given, means), known.dtype)
    differences = None
    if before is not None:
        own = fingerprint_with(ready.X, given.y, given.sample_weight, given.offset, ready.target)
        differences = tuple(before.differences(own, model.feature_names))
    why_no_end = _why_no_end(known, given, ready.settings)
    difference: Any = _other_head(model, ready)
    notes = _notes(known, why_no_end, is_rounded)
    if difference is None:
        n_classes, device = ready.target.n_classes, check_device(means.device)
        settings = _limited(ready.settings, model, n_classes, with_end=why_no_end is None)
        trained = train_bags(ready.X, ready.shares, n_classes, settings, device=device)
        pairs = None
        if why_no_end is None:
            rest = (trained, n_classes, ready.settings, ready.interactions)
            pairs = learn_pairs(ready.X, ready.shares, *rest)
        derived = model_of(trained, ready.target, vars(ready.learner), pairs)
        compared = _Compared(model, derived, trained, ready, with_end=why_no_end is None)
        difference = compared.difference()
        if difference is None and model.missing_learnt not in (None, derived.missing_learnt):
            notes.append(
                "The file and these data disagree on which features had missing values in "
                "training. The model's warnings of missing values depend on that."
            )
    return Audit(
        model,
        known.estimator,
        difference,
        end_derived=why_no_end is None,
        data_differences=differences,
        notes=tuple(notes),
    )


def _prepared(model: StumpEnsemble, known: Recorded, given: Given, means: Means) -> Prepared:
    """What the fit was given: the table as an array, the samples of each bag, the settings."""
    estimator = clone(known.estimator).set_params(
        device=means.device, n_jobs=means.n_jobs, max_memory=means.max_memory
    )
    if hasattr(estimator, "n_bags"):
        estimator.set_params(verbose=means.verbose)
        if estimator.n_bags is None:
            estimator.set_params(n_bags=model.n_bags)
    settings, asked = _asked(estimator, known, given.validation, model)
    weighting = check_class_weight(getattr(estimator, "class_weight", None))
    names = model.feature_names
    X = given.X if names is None else with_columns(given.X, names)
    data = Data(X, given.y, given.weights, means.device, asked, None, weighting, given.offset)
    prepared: Prepared = estimator._prepared(data, settings)
    return prepared


def _fingerprint(model: StumpEnsemble) -> Fingerprint | None:
    """The fingerprint that a model holds of the table of its fit.

    Raises
    ------
    ValueError
        If it holds something else in its place.
    """
    if FINGERPRINT not in model.details:
        return None
    found: Fingerprint = Fingerprint.from_details(model.details[FINGERPRINT])
    return found


class _Run(NamedTuple):
    """One run as a model holds it; see `model.bags` for the average of several bags.

    Attributes
    ----------
    hypotheses : list of stumps or splits of any kind
    votes : list of float, or of tuples as `RegionRound.votes`
    constant : tuple of float
        The scores from which it starts.
    """

    hypotheses: list[AnyStump | AnySplit]
    votes: list[Vote]
    constant: tuple[float, ...]


def _run_of(model: StumpEnsemble, number: int, bag: int) -> _Run:
    member, bags = model.members[number], model.bags
    if bags is None:
        own, constant = list(range(len(member))), tuple(member.constant.tolist())
    else:
        own = np.flatnonzero(turns(bags.sizes[number]) == bag).tolist()
        constant = bags.constants[number][bag]
    votes: list[Any] = list(member.votes)
    if not isinstance(member, Member):
        votes = [tuple(map(tuple, regions)) for regions in member.votes.tolist()]
    return _Run([member.hypotheses[k] for k in own], [votes[k] for k in own], constant)


class _Compared(NamedTuple):
    """A model, and the one that the data give.

    Attributes
    ----------
    model, derived : StumpEnsemble
    trained : sequence of Trained
        The fit of each bag, from which `derived` was made.
    ready : Prepared
        What it was fitted to.
    with_end : bool
        Whether runs must end in the same round.
    """

    model: StumpEnsemble
    derived: StumpEnsemble
    trained: Sequence[Trained]
    ready: Prepared
    with_end: bool

    def difference(self) -> RoundDifference | HeadDifference | None:
        """The first difference; None if there is none."""
        found = next(self._in_rounds(), None)
        same = self.derived.digest() == self.model.digest() or not self.with_end
        if found is not None or same:
            return found
        file, data = (own.term_names[own.n_features :] for own in (self.model, self.derived))
        if file != data:
            return HeadDifference("pairs", file or ("none",), data or ("none",))
        for name, one, other in zip(file, self.model.pairs, self.derived.pairs, strict=True):
            if one != other:
                return HeadDifference(
                    "pair", *(f"{name}, {_described(own)}" for own in (one, other))
                )
        return HeadDifference("digest", self.model.digest(), self.derived.digest())

    def _in_rounds(self) -> Iterator[RoundDifference]:
        """The first difference of each run, bag by bag."""
        for bag in range(self.model.n_bags):
            for number in range(len(self.model.members)):
                file, data = (_run_of(own, number, bag) for own in (self.model, self.derived))
                if file.constant != data.constant:
                    constants = file.constant, data.constant
                    yield RoundDifference("constant", bag, number, 0, *constants)
                    continue
                yield from self._in_run(file, data, (bag, number))

    def _in_run(self, file: _Run, data: _Run, place: tuple[int, int]) -> Iterator[RoundDifference]:
        n_file, n_data = len(file.hypotheses), len(data.hypotheses)
        for k in range(min(n_file, n_data)):
            what = _what_differs(file, data, k)
            if what is not None:
                sides = _side(file, k, None), _side(data, k, self._worth(place, k))
                yield RoundDifference(what, *place, k + 1, *sides)
                return
        if n_file > n_data:
            reason = self.trained[place[0]].runs[place[1]].stop_reason
            side = _side(file, n_data, None)
            yield RoundDifference("end", *place, n_data + 1, side, None, reason)
        elif n_data > n_file and self.with_end:
            side = _side(data, n_file, self._worth(place, n_file))
            yield RoundDifference("end", *place, n_file + 1, None, side)

    def _worth(self, place: tuple[int, int], k: int) -> float:
        """What a round of the data is worth: its edge, or its score in the unit of the targets."""
        record = self.trained[place[0]].runs[place[1]].rounds[k]
        if isinstance(record, Round):
            return record.edge
        scale = self.ready.target.scale
        return record.score * (1.0 if scale is None else scale.of_errors)


def _described(pair: PairTable) -> str:
    """A pair's bins and values in words, as far as that tells two apart."""
    k, m = (axis.n_bins for axis in pair.axes)
    bins = hashlib.sha256(repr([axis.value for axis in pair.axes]).encode()).hexdigest()
    values = hashlib.sha256((pair.values + 0.0).tobytes()).hexdigest()
    return f"{k} x {m} bins {bins[:12]}, values {values[:12]}"


def _side(run: _Run, k: int, worth: float | None) -> Side:
    return Side(run.hypotheses[k], run.votes[k], worth)


def _what_differs(file: _Run, data: _Run, k: int) -> What | None:
    """What differs between two rounds; None if nothing does."""
    one, other = file.hypotheses[k], data.hypotheses[k]
    if repr(one) != repr(other):  # which tells 0.0 from -0.0, as the digest does
        return "error" if _without_error(one) == _without_error(other) else "stump"
    return None if np.array_equal(file.votes[k], data.votes[k]) else "votes"


def _without_error(hypothesis: AnyStump | AnySplit) -> AnyStump | AnySplit:
    return hypothesis if isinstance(hypothesis, AnySplit) else replace(hypothesis, error=0.0)


def _limited(
    settings: Settings, model: StumpEnsemble, n_classes: int, *, with_end: bool
) -> Settings:
    """Settings for no more rounds than a comparison needs, whatever number a file asks for.

    That is one more than the model's longest run has; with early stopping, as many more as it waits
    for a better score. If the end of the runs is not derived, it is as many as the model has.
    """
    longest = max(
        len(_run_of(model, number, bag).hypotheses)
        for bag in range(model.n_bags)
        for number in range(len(model.members))
    )
    if not with_end:
        return replace(settings, stopping=None, n_rounds=max(longest, 1))
    n_needed = longest + 1
    if settings.stopping is not None and settings.stopping.patience is not None:
        n_smoothing = 0 if settings.smoothing is None else settings.smoothing.n_rounds
        n_needed = max(longest, n_smoothing) + settings.stopping.patience + 1
    return replace(settings, n_rounds=min(settings.n_rounds_of(n_classes), n_needed))


def _from_estimator(estimator: Any, model: StumpEnsemble) -> Recorded:
    """What is known from a given estimator, with the model's seeds if it has no random_state."""
    own = of_estimator(estimator)
    held = recorded(model.details) or Recorded(None)
    state = getattr(estimator, "random_state", None)
    if state is None:
        return Recorded(own, held.seeds, dtype=held.dtype)
    return Recorded(own.set_params(random_state=state), dtype=held.dtype)


def _asked(
    estimator: StumpEstimator,
    known: Recorded,
    validation: Validation | None,
    model: StumpEnsemble,
) -> tuple[Settings, Asked]:
    """The settings of the fit, and what it held out."""
    n_bags = getattr(estimator, "n_bags", 1)
    if n_bags != model.n_bags:
        raise ValueError(
            f"the model holds {model.n_bags} bags, but its estimator makes {n_bags}. Pass the "
            "estimator of the fit: audit(..., estimator=...)."
        )
    if not hasattr(estimator, "_asked_for"):
        return estimator._settings(), NOTHING
    settings, asked, _ = estimator._asked_for(validation)
    if known.passed and validation is None and n_bags == 1:
        return settings, NOTHING
    if not any(asked.drawn):
        return settings, asked
    return settings, asked._replace(drawn=_drawn_again(asked, known, estimator))


def _in_dtype(ready: Prepared, dtype: str | None) -> tuple[Prepared, bool]:
    """The table in the dtype of the fit, and whether values were rounded for it.

    The midpoint between two values is rounded in their own dtype, and files of other formats may
    hold the same values in another one. A text file may hold float32 values with the digits that
    tell them apart from other float32 values; rounding brings them back.
    """
    X = ready.X
    if dtype in (None, arrays.working_dtype(arrays.dtype_name(X))):
        return ready, False
    with arrays.computing_on(X):
        xp, own = arrays.namespace_of(X), arrays.as_working(X)
        wanted = getattr(xp, str(dtype), None)
        if wanted is None:  # float16 of a library that has none
            return ready, False
        found = xp.astype(own, wanted)
        is_same = (xp.astype(found, own.dtype) == own) | xp.isnan(own)
        return ready._replace(X=found), not bool(xp.all(is_same))


def _drawn_again(asked: Asked, known: Recorded, estimator: Any) -> list[Any]:
    """How to draw each bag's samples with the seeds of the fit."""
    if known.seeds is None:
        if estimator.random_state is None:
            raise ValueError(
                "the fit drew samples at random, and the model does not hold the seeds. Pass the "
                "estimator with the random_state of the fit, a number: audit(..., estimator=...)."
            )
        return list(asked.drawn)
    if len(known.seeds) != len(asked.drawn):
        raise ValueError(
            f"the model's record of its training holds {len(known.seeds)} seeds for "
            f"{len(asked.drawn)} bags. Pass the estimator of the fit: audit(..., estimator=...)."
        )
    return [
        None if own is None else own._replace(seed=seed)
        for own, seed in zip(asked.drawn, known.seeds, strict=True)
    ]


def _why_no_end(known: Recorded, given: Given, settings: Settings) -> str | None:
    """Why the audit does not derive where the runs end; None if it does."""
    stops = settings.stopping is not None and settings.stopping.patience is not None
    if known.by_callback:
        return "a callback decided it"
    if stops and known.passed and given.validation is None:
        return "that needs X_val and y_val as they were given to the fit"
    return None


def _notes(known: Recorded, why_no_end: str | None, is_rounded: bool) -> list[str]:
    """What was not derived, and what may explain a difference."""
    notes = []
    if is_rounded:
        notes.append(f"The values were rounded to {known.dtype}, the dtype of the fit.")
    if why_no_end is not None:
        notes.append(f"The audit did not derive where the runs end: {why_no_end}.")
    if known.went_on:
        notes.append(
            "The fit went on from an earlier one (warm_start=True). Earlier rounds may have had "
            "other parameters or other data, which the record does not hold."
        )
    return notes


def _other_head(model: StumpEnsemble, ready: Prepared) -> HeadDifference | None:
    """What differs before the first round: features, classes, categories, or the kind of votes."""
    n_features = int(ready.X.shape[1])
    if n_features != model.n_features:
        return HeadDifference("features", model.n_features, n_features)
    classes = plain_labels(ready.target.classes)
    if model_file.canonical(list(classes)) != model_file.canonical(list(model.classes)):
        return HeadDifference("classes", model.classes, classes)
    names = vars(ready.learner).get("feature_names_in_")
    if names is not None and model.feature_names not in (None, tuple(map(str, names))):
        return HeadDifference("names", model.feature_names, tuple(map(str, names)))
    encoding = ready.learner._categories.encoding
    if encoding is not None and encoding != model.encoding:
        return HeadDifference("categories", model.encoding, encoding)
    return _other_kind(model, ready.settings)


def _other_kind(model: StumpEnsemble, settings: Settings) -> HeadDifference | None:
    """Whether the model is of another kind than the parameters make."""
    n_classes = len(model.classes)
    n_outputs, n_runs = settings.n_outputs(n_classes), settings.n_runs(n_classes)
    search = settings.search(n_classes)
    wanted = (
        "signs" if search.has_signs else "region votes", n_runs, n_outputs, link_of(search),
    )  # fmt: skip
    member = model.members[0]
    kind = "signs" if isinstance(member, Member) else "region votes"
    found = (kind, len(model.members), member.n_outputs, model.link)
    return None if found == wanted else HeadDifference("kind", found, wanted)
