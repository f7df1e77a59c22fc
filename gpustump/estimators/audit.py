"""Auditing a model: is it the one that its training data give?

Boosting is exact here: the same data and parameters give the same model on every machine, byte for
byte. So an audit fits the model's estimator again, and compares the two models. A model's file says
how it was trained (`recorded`).
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array
from sklearn.base import clone

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.sparse import from_scipy
from gpustump.boosting.rounds.training import Settings
from gpustump.data.fingerprint import Fingerprint
from gpustump.data.frames import with_columns
from gpustump.data.parameters import Interactions
from gpustump.data.readable import counted, printable, quoted, shortened
from gpustump.estimators.base import Data, DeviceName, Prepared, StumpEstimator
from gpustump.estimators.checkpointing import fingerprint_with
from gpustump.estimators.held_out import NOTHING, Asked, Validation
from gpustump.estimators.recorded import FINGERPRINT, Recorded, of_estimator, recorded
from gpustump.estimators.targets import Offset
from gpustump.learners.kinds import AnySplit, condition
from gpustump.model import model_file
from gpustump.model.ensemble import StumpEnsemble, model_of
from gpustump.model.members import AnyMember, Member


class Difference(NamedTuple):
    """The first difference of a model from the one that the data give, in words.

    Attributes
    ----------
    what : str
        What differs: "round 37 of class 'a' in bag 2, another stump".
    file, data : str
        What the model says, and what the data say, numbers with all their digits; empty if `what`
        says it all.
    """

    what: str
    file: str = ""
    data: str = ""


@dataclass(frozen=True, repr=False)
class Audit:
    """The outcome of an audit; printed, it says all of it in words.

    Attributes
    ----------
    model, derived : StumpEnsemble
        The model, and the one that the data give.
    estimator : classifier or regressor
        Unfitted, with the parameters that `derived` was trained with.
    difference : Difference or None
        The first one; None if there is none.
    data_differences : tuple of str, or None
        How the data differ from those that the model was trained on, by their fingerprint. None if
        the model holds no fingerprint.
    notes : tuple of str
        What was not compared, and what may explain a difference.

    Examples
    --------
    >>> from gpustump import AdaBoostClassifier, audit
    >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
    >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y).model_
    >>> audit(model, X, y).same
    True
    >>> found = audit(model, X, [0, 0, 1, 1, 1])
    >>> found.difference.what
    'round 1, another stump'
    >>> print(found.difference.file.split(", ")[0])
    column 0 <= 2.5: -0.6931471805582987
    """

    model: StumpEnsemble
    derived: StumpEnsemble
    estimator: Any
    difference: Difference | None
    data_differences: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether the model is the one that the data give, as far as `notes` do not restrict it."""
        return self.difference is None

    def __repr__(self) -> str:
        return f"<Audit: {self._result}>"

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:{width}}  {printable(value)}".rstrip() for name, value in rows)

    @property
    def _result(self) -> str:
        if self.difference is not None:
            return f"differs: {self.difference.what}"
        rounds = counted(sum(map(len, self.model.members)), "round")
        return f"the same, {rounds}, digest {self.model.digest()}"

    def rows(self) -> list[tuple[str, str]]:
        """Names and values in words; an empty name continues the value above."""
        rows = [("result", self._result)]
        if self.difference is not None and self.difference.file:
            rows += [("the file says", self.difference.file)]
            rows += [("the data say", self.difference.data)]
        if self.data_differences is None:
            texts = ["not compared with those of the fit: the model holds no fingerprint"]
        else:
            texts = [f"not those of the fit: {text}" for text in self.data_differences]
        texts = texts or ["those of the fit, by their fingerprint"]
        rows += [("" if number else "data", text) for number, text in enumerate(texts)]
        rows += [("derived by", " ".join(repr(self.estimator).split()))]
        return rows + [("note", note) for note in self.notes]


def audit(
    model: Any,
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
    model : StumpEnsemble, fitted estimator, str or path
        The model, or its file.
    X : array or frame (n_samples, n_features)
        The table that it was trained on, of any library and on any device.
    y : array (n_samples,)
    sample_weight, init_score, exposure : array (n_samples,), optional
        As they were given to `fit`.
    estimator : classifier or regressor of this package, optional
        With the parameters of the fit. By default they come from the model, which holds a record of
        its estimator. `random_state` must be a number if `fit` drew samples, unless the model holds
        the seeds.
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
    >>> model = AdaBoostClassifier(n_estimators=20, device="cpu").fit(X, y)
    >>> audit(model, X, y).same
    True
    >>> X[7, 20] = 14.9
    >>> audit(model, X, y)
    <Audit: differs: round 1, another error of the same stump>
    """
    if isinstance(model, (str, os.PathLike)):
        model = StumpEnsemble.load(os.fspath(model))
    model = model_of(model)
    known = recorded_fit(model, estimator)
    watched = Offset(init_score_val, exposure_val, "_val")
    offset = Offset(init_score, exposure)
    validation = Validation.of(X_val, y_val, sample_weight_val, watched, offset)
    if validation is not None and estimator is None and not known.passed:
        raise ValueError(
            "X_val is given, but the model's record says that its fit was given no X_val. Leave it "
            "out, or pass estimator=..."
        )
    means = {"device": device, "n_jobs": n_jobs, "max_memory": max_memory, "verbose": verbose}
    data = Data(X, y, sample_weight, offset=offset)
    return audit_with(model, known, data, validation, means=means)


def recorded_fit(model: StumpEnsemble, estimator: Any = None) -> Recorded:
    """What is known of a model's fit, from its details or from an estimator.

    Raises
    ------
    ValueError, TypeError
        If nothing is known, or nothing that can be used.
    """
    known = recorded(model.details)
    if estimator is not None:
        held, own = known or Recorded(None), of_estimator(estimator)
        state = estimator.random_state
        if state is None:
            return Recorded(own, held.seeds, dtype=held.dtype)
        return Recorded(own.set_params(random_state=state), dtype=held.dtype)
    if "training" in model.details:
        raise ValueError(
            "this model was trained by `gpustump train`, on a share of the rows of a file. Audit "
            "it with `gpustump audit MODEL DATA`; or pass the rows that it was trained on, and "
            "estimator=... with the parameters of the fit."
        )
    if known is not None:
        return known
    raise ValueError(
        "the model does not say how it was trained: it holds no record of its estimator. Pass the "
        "estimator with the parameters of the fit: "
        "audit(..., estimator=AdaBoostClassifier(n_estimators=100))."
    )


def audit_with(
    model: StumpEnsemble,
    known: Recorded,
    data: Data,
    validation: Validation | None = None,
    *,
    kept: np.ndarray | None = None,
    means: Mapping[str, Any],
) -> Audit:
    """Audit a model whose fit is known; see `audit`.

    Parameters
    ----------
    model : StumpEnsemble
    known : Recorded
    data : Data
        The table of which the model may hold a fingerprint.
    validation : Validation, optional
        The rows that were passed to the fit, to be watched.
    kept : ndarray (n_samples,) of bool, optional
        The rows that were given to the fit; by default all. The others get weight 0.
    means : mapping
        Parameters of the estimator that do not decide the model.
    """
    if model.edits is not None:
        raise ValueError(
            "the model was edited after training, so no data give it. Audit the model as it was "
            f"trained, {model.edits.of}; then edited(...) with the same edits must give "
            f"{model.digest()}."
        )
    held = model.details.get(FINGERPRINT)
    before = None if FINGERPRINT not in model.details else Fingerprint.from_details(held)
    own = known.estimator.get_params()
    estimator = clone(known.estimator).set_params(**{n: means[n] for n in means if n in own})
    settings, asked = _asked(estimator, known, validation, model)
    why_no_end = _why_no_end(known, validation, settings)
    settings = _limited(settings, model, with_end=why_no_end is None)
    weights, names = data.sample_weight, model.feature_names
    fit = data._replace(
        X=data.X if names is None else with_columns(data.X, names),
        sample_weight=weights if kept is None else kept * (1.0 if weights is None else weights),
        asked=asked,
    )
    ready, is_rounded = _in_dtype(estimator._prepared(fit, settings), known.dtype)
    if why_no_end is not None:
        ready = ready._replace(interactions=Interactions(0))
    with warnings.catch_warnings():  # the fit warned of its end, of odd classes and small weights
        warnings.simplefilter("ignore")
        estimator._train(ready, fit)
    derived, differences = estimator.model_, None
    if before is not None:
        now = fingerprint_with(ready.X, data.y, weights, data.offset, ready.target)
        differences = tuple(before.differences(now, names))
    reasons = [run.stop_reason for run in estimator._runs]
    found = _differences(model, derived, reasons, with_end=why_no_end is None)
    notes = {
        f"The values were rounded to {known.dtype}, the dtype of the fit.": is_rounded,
        f"The audit did not derive where the runs end: {why_no_end}.": why_no_end is not None,
        "The fit went on from an earlier one (warm_start=True). Earlier rounds may have had other "
        "parameters or other data, which the record does not hold.": known.went_on,
        "The file and these data disagree on which features had missing values in training. The "
        "model's warnings of missing values depend on that.":
            model.missing_learnt not in (None, derived.missing_learnt),
    }  # fmt: skip
    told = tuple(note for note, is_so in notes.items() if is_so)
    return Audit(model, derived, known.estimator, next(found, None), differences, told)


def _asked(
    estimator: StumpEstimator, known: Recorded, validation: Validation | None, model: StumpEnsemble
) -> tuple[Settings, Asked]:
    """The settings of the fit, and what it held out, drawn again with its seeds."""
    if not hasattr(estimator, "n_bags"):  # a single stump
        return estimator._settings(), NOTHING
    if estimator.n_bags not in (None, model.n_bags):
        raise ValueError(
            f"the model holds {model.n_bags} bags, but its estimator makes {estimator.n_bags}. "
            "Pass the estimator of the fit: audit(..., estimator=...)."
        )
    settings, asked, _ = estimator._asked_for(validation)
    if known.passed and validation is None and model.n_bags == 1:
        return settings, NOTHING
    if asked.fraction is None:
        return settings, asked
    if known.seeds is not None:
        if len(known.seeds) != model.n_bags:
            raise ValueError(
                f"the model's record of its training holds {len(known.seeds)} seeds for "
                f"{model.n_bags} bags. Pass the estimator of the fit: audit(..., estimator=...)."
            )
        return settings, asked.with_seeds(known.seeds)
    if estimator.random_state is None:
        raise ValueError(
            "the fit drew samples at random, and the model does not hold the seeds. Pass the "
            "estimator with the random_state of the fit, a number: audit(..., estimator=...)."
        )
    return settings, asked


def _why_no_end(known: Recorded, validation: Validation | None, settings: Settings) -> str | None:
    """Why the audit does not derive where the runs end; None if it does."""
    stops = settings.stopping is not None and settings.stopping.patience is not None
    if known.by_callback:
        return "a callback decided it"
    if stops and known.passed and validation is None:
        return "that needs X_val and y_val as they were given to the fit"
    return None


def _limited(settings: Settings, model: StumpEnsemble, *, with_end: bool) -> Settings:
    """Settings for no more rounds than a comparison needs, whatever number a file asks for.

    That is one more than the model's longest run has, and as many more as early stopping waits. If
    the end of the runs is not derived, it is as many as the model has.
    """
    longest = max(len(run.member) for run in _runs(model))
    if not with_end:
        return replace(settings, stopping=None, n_rounds=max(longest, 1))
    patience = 0 if settings.stopping is None else settings.stopping.patience or 0
    if patience and settings.smoothing is not None:
        longest = max(longest, settings.smoothing.n_rounds)
    n_asked = settings.n_rounds_of(len(model.classes))
    return replace(settings, n_rounds=min(n_asked, longest + patience + 1))


def _in_dtype(ready: Prepared, dtype: str | None) -> tuple[Prepared, bool]:
    """The table in the dtype of the fit, and whether values were rounded for it.

    The midpoint between two values is rounded in their own dtype, and files of other formats may
    hold the same values in another one. A text file may hold float32 values with the digits that
    tell them apart from other float32 values; rounding brings them back.
    """
    X, is_sparse = ready.X, arrays.is_sparse(ready.X)
    if dtype in (None, arrays.working_dtype(arrays.dtype_name(X))):
        return ready, False
    with arrays.computing_on(X):
        own = X.values if is_sparse else arrays.as_working(X)
        xp = arrays.namespace_of(own)
        wanted = getattr(xp, str(dtype), None)
        if wanted is None or (is_sparse and dtype == "float16"):  # where there is no float16
            return ready, False
        found = xp.astype(own, wanted)
        is_same = (xp.astype(found, own.dtype) == own) | xp.isnan(own)
        if is_sparse:
            found = from_scipy(csc_array((found, X.rows, X.starts), shape=X.shape))
        return ready._replace(X=found), not bool(xp.all(is_same))


class _Run(NamedTuple):
    """One run as a model holds it.

    Attributes
    ----------
    of : str
        Of which class and bag it is, if there are several.
    member : Member or RegionMember
        Of the bag's own model.
    """

    of: str
    member: AnyMember

    def words(self, model: StumpEnsemble, number: int, output: int) -> str:
        """A round in words, and what its regions vote for one output; numbers with all digits."""
        if number == len(self.member):
            return "no further round"
        hypothesis, encoding = self.member.hypotheses[number], model.encoding
        names = encoding.categories(hypothesis.feature) or ()
        when = condition(
            hypothesis,
            shortened(encoding.shown_names[hypothesis.feature]),
            number=repr,
            category=lambda own: quoted(names[own]) if own < len(names) else str(own),
        )
        left, right, missing = self.member.region_votes[number, :, output].tolist()
        of = f" for {quoted(model.classes[output])}" if self.member.n_outputs > 1 else ""
        error = "" if isinstance(hypothesis, AnySplit) else f", error {hypothesis.error!r}"
        return f"{when}: {left!r}{of}, else {right!r}, missing {missing!r}{error}"


def _runs(model: StumpEnsemble) -> Iterator[_Run]:
    """The runs of a model, bag by bag."""
    bags = model.bag_models or (model,)
    for (bag, own), number in itertools.product(enumerate(bags), range(len(model.members))):
        of_class = f"class {quoted(model.classes[number])}" if len(model.members) > 1 else ""
        of_bag = f"bag {bag + 1}" if model.n_bags > 1 else ""
        of = " in ".join(filter(None, (of_class, of_bag)))
        yield _Run(f" of {of}" if of else "", own.members[number])


def _differences(
    model: StumpEnsemble, derived: StumpEnsemble, reasons: list[str], *, with_end: bool
) -> Iterator[Difference]:
    """The first difference of each part of two models, in the order of importance."""
    for what, (file, data) in _heads(model, derived).items():
        if file != data:
            yield Difference(what, str(file), str(data))
            return
    for file, data, reason in zip(_runs(model), _runs(derived), reasons, strict=True):
        yield from _in_run(model, file, data, reason if with_end else None)
    if not with_end or model.digest() == derived.digest():
        return
    names, others = (own.term_names[own.n_features :] for own in (model, derived))
    if names != others:
        yield Difference(
            "the pairs of features", *(", ".join(own) or "none" for own in (names, others))
        )
        return
    for name, one, other in zip(names, model.pairs, derived.pairs, strict=True):
        if one != other:
            yield Difference(f"the table of the pair {name}")
    yield Difference(
        "the digest, although all rounds are the same", model.digest(), derived.digest()
    )


def _heads(model: StumpEnsemble, derived: StumpEnsemble) -> dict[str, tuple[Any, Any]]:
    """What has to be the same before rounds can be compared."""
    labels, kinds = [], []
    for own in (model, derived):
        labels.append(model_file.canonical(list(own.classes)).decode())  # tells 1 from True
        first = own.members[0]
        votes = "signs" if isinstance(first, Member) else "region votes"
        kinds.append((votes, own.link, len(own.members), first.n_outputs))
    found: dict[str, tuple[Any, Any]] = {
        "the number of features": (model.n_features, derived.n_features),
        "the number of bags": (model.n_bags, derived.n_bags),
        "the classes": (labels[0], labels[1]),
        "the kind of votes": (kinds[0], kinds[1]),
    }
    if None not in (names := (model.feature_names, derived.feature_names)):
        found["the names of the features"] = names
    if "encoding" in derived.details:
        encodings = model.encoding.as_details(), derived.encoding.as_details()
        found["the categories of a column, or their numbers"] = encodings
    return found


def _in_run(
    model: StumpEnsemble, file: _Run, data: _Run, reason: str | None
) -> Iterator[Difference]:
    """The first difference of two runs.

    `reason` says why the run of the data ended; None if it does not count where that is.
    """
    constants = [own.member.constant.tolist() for own in (file, data)]
    if constants[0] != constants[1]:
        texts = (", ".join(map(repr, own)) for own in constants)
        yield Difference(f"the scores from which it starts{file.of}", *texts)
        return
    n_file, n_data = len(file.member), len(data.member)
    votes = [own.member.region_votes for own in (file, data)]
    pairs: Any = zip(file.member.hypotheses, data.member.hypotheses, strict=False)
    for k, (one, other) in enumerate(pairs):
        votes_differ = (votes[0][k] != votes[1][k]).any(axis=0)
        if repr(one) != repr(other):  # `repr` tells 0.0 from -0.0, as the digest does
            what = "another stump"
            if not isinstance(one, AnySplit) and replace(one, error=other.error) == other:
                what = "another error of the same stump"
        elif votes_differ.any():
            what = "other votes of the same stump"
        else:
            continue
        sides = [own.words(model, k, int(votes_differ.argmax())) for own in (file, data)]
        if sides[0] == sides[1]:  # such as sets that differ in a category that no sample has
            sides = [repr(one), repr(other)]
        yield Difference(f"round {k + 1}{file.of}, {what}", *sides)
        return
    k = min(n_file, n_data)
    sides = [own.words(model, k, 0) for own in (file, data)]
    if n_file > k:
        what = f"which the data do not give: the run ends, its stop_reason is {reason!r}"
        yield Difference(f"round {k + 1}{file.of}, {what}", *sides)
    elif n_data > k and reason is not None:
        yield Difference(f"round {k + 1}{file.of}, which the file does not have", *sides)
