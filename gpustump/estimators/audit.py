"""Auditing a model: is it the one that its training data give?

Boosting is exact here, and so is everything that depends on it: the same data and parameters give
the same model on every machine, byte for byte. So anyone who has the data can check a model: the
rounds are made again and compared (`boosting.auditing`). This file decides what to compare with
what: which samples each bag was trained on, which classes there are, what a file records.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.devices import check_device
from gpustump.boosting.auditing import AuditedRuns, Depth, Training, audit_runs
from gpustump.boosting.claims import claims_of
from gpustump.boosting.finished import link_of
from gpustump.boosting.training import Settings, Trained
from gpustump.data.class_weights import check_class_weight
from gpustump.data.fingerprint import Fingerprint, fingerprint_of
from gpustump.data.frames import with_columns
from gpustump.data.labels import plain_labels
from gpustump.data.parameters import check_count
from gpustump.estimators.audit_result import Audit, HeadDifference
from gpustump.estimators.fitted import Data, DeviceName, Prepared, StumpEstimator, model_of
from gpustump.estimators.recorded import FINGERPRINT, Recorded, of_estimator, recorded
from gpustump.estimators.validation_data import NOTHING, Asked, Validation
from gpustump.model import model_file
from gpustump.model.ensemble import StumpEnsemble
from gpustump.model.members import Member

_MOST_ROUNDS = 10**9
"""No run makes more rounds. A file may hold any number."""


class Means(NamedTuple):
    """How to make an audit. Only `rounds` changes how much is checked; see `audit`.

    Attributes
    ----------
    rounds : int or None
    device : str
    n_jobs : int or None
    max_memory : int, str or None
    verbose : int
    """

    rounds: int | None = None
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
    """

    X: Any
    y: Any
    sample_weight: Any = None
    validation: Validation | None = None
    kept: np.ndarray | None = None

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
    estimator: Any = None,
    rounds: int | None = None,
    X_val: Array | None = None,
    y_val: Array | None = None,
    sample_weight_val: Array | None = None,
    device: DeviceName = "auto",
    n_jobs: int | None = None,
    max_memory: int | str | None = None,
    verbose: int = 0,
) -> Audit:
    """Derive a model again from its training data, and compare it round by round.

    Parameters
    ----------
    model : StumpEnsemble, str or path
        The model, or its file.
    X : array or frame (n_samples, n_features)
        The table that it was trained on, of any library and on any device.
    y : array (n_samples,)
    sample_weight : array (n_samples,), optional
        As they were given to `fit`, without `class_weight`.
    estimator : classifier of this package, optional
        With the parameters of the fit. By default they come from the model, as models of this
        version hold a record of their estimator. `random_state` must be a number if `fit` drew
        samples, unless the model holds the seeds.
    rounds : int, optional
        Search only so many rounds of each run: evenly spread, with the first and the last (1 means
        the last). In the others, the model's own hypothesis is taken, and its thresholds, signs,
        error and votes are derived. Smoothing rounds are always searched, which is quick. By
        default all rounds are searched.
    X_val, y_val, sample_weight_val : array, optional
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
    An audit takes as long as the fit. With `rounds` it takes a part of that time, and does not
    derive where early stopping ends a run.

    The votes of each round follow from the weights after the earlier ones. So with `rounds`, a
    changed round is found unless all rounds after it were made anew to fit it. Only an audit that
    searches all rounds proves that the model follows from the data.

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
    validation = Validation.of(X_val, y_val, sample_weight_val)
    if validation is not None and estimator is None and not known.passed:
        raise ValueError(
            "X_val is given, but the model's record says that its fit was given no X_val. Leave it "
            "out, or pass estimator=..."
        )
    means = Means(rounds, device, n_jobs, max_memory, verbose)
    given = Given(X, y, sample_weight, validation)
    return audit_with(model, known, given, means)


def recorded_fit(model: StumpEnsemble, estimator: Any = None) -> Recorded:
    """What is known of a model's fit, from its details or from an estimator.

    Raises
    ------
    ValueError, TypeError
        If nothing is known, or nothing that can be used.
    """
    if model.is_regression:
        raise ValueError(
            "the model predicts a quantity, and such models cannot be audited yet. Fits are "
            "deterministic: fit the estimator again, and compare both models' digest()."
        )
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
    if means.rounds is not None:
        check_count(means.rounds, "rounds")
        if means.rounds >= _longest_run(model):
            means = means._replace(rounds=None)
    before = _fingerprint(model)
    ready, is_rounded = _in_dtype(_prepared(model, known, given, means), known.dtype)
    differences = None
    if before is not None:
        own = fingerprint_of(ready.X, given.y, given.sample_weight)
        differences = tuple(before.differences(own, model.feature_names))
    why_no_end = _why_no_end(known, given, means, ready.settings)
    notes = _notes(known, why_no_end, is_rounded)
    depth = Depth(means.rounds, why_no_end is None)
    found = _Found(model, known.estimator, ready, depth, differences, notes)
    head = _other_head(model, ready)
    if head is not None:
        return found.audit(head)
    return _compared(found, means.device)


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
    if settings.n_rounds is not None:
        settings = replace(settings, n_rounds=min(settings.n_rounds, _MOST_ROUNDS))
    weighting = check_class_weight(getattr(estimator, "class_weight", None))
    names = model.feature_names
    X = given.X if names is None else with_columns(given.X, names)
    data = Data(X, given.y, given.weights, means.device, asked, None, weighting)
    prepared: Prepared = estimator._prepared(data, settings)
    return prepared


def _longest_run(model: StumpEnsemble) -> int:
    return max(len(run) for runs in claims_of(model) for run in runs)


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


class _Found(NamedTuple):
    """What is known before the rounds are compared."""

    model: StumpEnsemble
    estimator: StumpEstimator
    ready: Prepared
    depth: Depth
    data_differences: tuple[str, ...] | None
    notes: tuple[str, ...]

    def audit(self, difference: Any, n_searched: int = 0, notes: Sequence[str] = ()) -> Audit:
        """The outcome."""
        return Audit(
            self.model,
            self.estimator,
            difference,
            n_searched=n_searched,
            end_derived=self.depth.with_end,
            data_differences=self.data_differences,
            notes=(*self.notes, *notes),
        )


def _compared(found: _Found, device: str) -> Audit:
    """Make the rounds of all bags, up to the first that differs."""
    model, ready = found.model, found.ready
    audited: list[AuditedRuns] = []
    for bag, (share, claimed) in enumerate(zip(ready.shares, claims_of(model), strict=True)):
        n_classes = ready.target.n_classes
        training = Training(
            ready.X, share.samples, n_classes, ready.settings, check_device(device), share.held_out
        )
        audited.append(audit_runs(training, claimed, found.depth, bag))
        if audited[-1].difference is not None:
            break
    n_searched = sum(own.n_searched for own in audited)
    difference: Any = audited[-1].difference
    if difference is not None:
        return found.audit(difference, n_searched)
    derived = _derived_model([own.trained for own in audited], ready)
    if derived.digest() != model.digest():
        difference = HeadDifference("digest", model.digest(), derived.digest())
    notes = []
    if model.missing_learnt not in (None, derived.missing_learnt):
        notes.append(
            "The file and these data disagree on which features had missing values in training. "
            "The model's warnings of missing values depend on that."
        )
    return found.audit(difference, n_searched, notes)


def _derived_model(trained: Sequence[Trained], ready: Prepared) -> StumpEnsemble:
    """The model that the data give."""
    return model_of(trained, ready.target, vars(ready.learner))


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


def _why_no_end(known: Recorded, given: Given, means: Means, settings: Settings) -> str | None:
    """Why the audit does not derive where the runs end; None if it does."""
    stops = settings.stopping is not None and settings.stopping.patience is not None
    if known.by_callback:
        return "a callback decided it"
    if stops and known.passed and given.validation is None:
        return "that needs X_val and y_val as they were given to the fit"
    if means.rounds is None or not stops:
        return None  # without early stopping, one more search tells why a run has no more rounds
    return "not all rounds were searched"


def _notes(known: Recorded, why_no_end: str | None, is_rounded: bool) -> tuple[str, ...]:
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
    return tuple(notes)


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
