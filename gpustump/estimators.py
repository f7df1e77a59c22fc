"""scikit-learn's conventions around the model, and nothing else.

The estimators add to `boosting.training` and `model.StumpEnsemble`: parameters that are checked in
`fit`, labels of any kind, frames with feature names, attributes with the names that users of
`sklearn.ensemble.AdaBoostClassifier` know, and arrays of other libraries, answered in the same
library without switching on anything in scikit-learn.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import train_test_split
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.devices import check_device
from gpustump.arrays.moving import moved_to_device_of
from gpustump.boosting.early_stopping import Stopping
from gpustump.boosting.rounds import Callback, checked_resources
from gpustump.boosting.training import Run, Samples, Settings, Trained, member_of, train
from gpustump.boosting.votes import Round
from gpustump.data.frames import columns_of, number_categories, numbers_of
from gpustump.data.labels import check_labels, encode, plain_labels
from gpustump.data.parameters import (
    Learner,
    Scoring,
    check_count,
    check_learner,
    check_real,
    check_scoring,
)
from gpustump.data.readable import listed
from gpustump.data.sample_weights import check_weights
from gpustump.data.tables import check_table
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.engines.route import Route
from gpustump.learners.interval import Interval
from gpustump.learners.step_table import StepTable
from gpustump.learners.stump import Stump
from gpustump.model.ensemble import StumpEnsemble, labels_at

_LEARNT_FROM_TABLE = ("n_features_in_", "feature_names_in_")
"""What scikit-learn's validation notes of a table."""

DeviceName: TypeAlias = Literal["auto", "cpu", "cuda"] | str
"""Where to train; "cuda:1" and so on are names of devices, too."""

_OF_BOTH_CLASSES = ("roc_auc", "balanced_accuracy")
"""Scores that are not defined for samples of one class only."""


class _Watching(NamedTuple):
    """What early stopping asks for: the share to hold out, how to draw it, and what to watch."""

    fraction: float
    random_state: Any
    scoring: Scoring


class _Split(NamedTuple):
    """Which samples are held out: a share, drawn with a seed, of samples with a fingerprint; and
    which score of them is watched."""

    fraction: float
    seed: int
    fingerprint: str
    scoring: Scoring


class _Earlier(NamedTuple):
    """What a warm start goes on from."""

    runs: tuple[Run, ...]
    classes: np.ndarray
    split: _Split | None


class _Data(NamedTuple):
    """What `fit` is given: a table, labels and weights, unchecked, and how to use them."""

    X: Any
    y: Any
    sample_weight: Any
    device: str
    watching: _Watching | None = None
    earlier: _Earlier | None = None


class _StumpClassifier(ClassifierMixin, BaseEstimator):
    """What a fitted model answers, and how a table becomes an array."""

    model_: StumpEnsemble
    classes_: np.ndarray
    device_: str
    route_: Route
    n_jobs: int | None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        # tags.array_api_support stays False. It would promise that arrays of another library than
        # in fit are refused, and that arrays on two devices are moved together unasked. Here a
        # model answers in any library, and nothing is moved unasked.
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def decision_function(self, X: Array) -> Array:
        """The score of each sample, the sum of the votes; see `StumpEnsemble.decision_function`.

        Parameters
        ----------
        X : array or frame (n_samples, n_features)

        Returns
        -------
        array of float64, (n_samples,) for two classes, otherwise (n_samples, n_classes)
            In the library and on the device of X; for frames and lists a NumPy array.

        Raises
        ------
        ValueError, TypeError
            If X is not a table of numbers with the features seen in `fit`.
        """
        check_is_fitted(self)
        return self.model_.decision_function(self._table(X), n_jobs=self.n_jobs)

    def predict(self, X: Array) -> Array:
        """The label of each sample, (n_samples,), in X's library; text labels in NumPy."""
        return self._labels(self.decision_function(X))

    def predict_proba(self, X: Array) -> Array:
        """Class probabilities (n_samples, n_classes); see `StumpEnsemble.probabilities_of`.

        After many rounds they are too close to 0 and 1; the notes of `AdaBoostClassifier` say how
        to mend that.
        """
        scores = self.decision_function(X)
        return self.model_.probabilities_of(scores)

    def predict_log_proba(self, X: Array) -> Array:
        """Logarithms of `predict_proba`."""
        scores = self.decision_function(X)
        return self.model_.log_probabilities_of(scores)

    def staged_decision_function(self, X: Array) -> Iterator[Array]:
        """`decision_function` after 1, 2, ... rounds."""
        check_is_fitted(self)
        yield from self.model_.staged_decision_function(self._table(X))

    def staged_predict(self, X: Array) -> Iterator[Array]:
        """`predict` after 1, 2, ... rounds."""
        yield from map(self._labels, self.staged_decision_function(X))

    def staged_predict_proba(self, X: Array) -> Iterator[Array]:
        """`predict_proba` after 1, 2, ... rounds."""
        for scores in self.staged_decision_function(X):
            yield self.model_.probabilities_of(scores)

    def score(self, X: Array, y: Array, sample_weight: Array | None = None) -> float:
        """The (weighted) share of samples that `predict` gets right."""
        return self._accuracy(self.predict(X), y, sample_weight)

    def staged_score(
        self, X: Array, y: Array, sample_weight: Array | None = None
    ) -> Iterator[float]:
        """`score` after 1, 2, ... rounds."""
        for predicted in self.staged_predict(X):
            yield self._accuracy(predicted, y, sample_weight)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Each feature's share of the votes, (n_features,); see also `contribution_importances`."""
        check_is_fitted(self)
        return self.model_.feature_importances()

    def explain(self, X: Array) -> Array:
        """What each feature contributes to the score of each sample.

        Parameters
        ----------
        X : array or frame (n_samples, n_features)

        Returns
        -------
        array of float64, (n_samples, n_features + 1) or (n_samples, n_classes, n_features + 1)
            As `StumpEnsemble.explain` gives it; for frames and lists a NumPy array. If `set_output`
            asks for frames, those and NumPy arrays give a frame with the columns
            `model_.contribution_names`, (n_samples, n_columns), and the index of X.

        Raises
        ------
        ValueError, TypeError
            If X is not a table of numbers with the features seen in `fit`.
        """
        check_is_fitted(self)
        table = self._table(X)
        parts = self.model_.explain(table)
        if arrays.library_name(table) != "numpy":
            return parts
        return self._as_set(parts.reshape(len(parts), -1), parts, getattr(X, "index", None))

    def set_output(self, *, transform: str | None = None) -> _StumpClassifier:
        """Choose whether `explain` gives arrays or frames.

        As for scikit-learn's transformers; it holds for frames and NumPy arrays. Without this
        choice, `sklearn.set_config(transform_output=...)` decides.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            "default" stands for arrays; None changes nothing.

        Raises
        ------
        ValueError
            If it is something else.
        """
        if transform is not None:
            self._sklearn_output_config = {
                "transform": _checked_output(transform)
            }  # `clone` keeps it
        return self

    def _as_set(self, flat: np.ndarray, parts: np.ndarray, index: Any) -> Any:
        """Contributions (n_samples, n_columns) as a frame, if one is asked for; else `parts`."""
        chosen = getattr(self, "_sklearn_output_config", {}).get("transform")
        output = _checked_output(chosen or get_config()["transform_output"])
        names = list(self.model_.contribution_names)
        if output == "pandas":
            pandas = importlib.import_module("pandas")
            is_index = isinstance(index, pandas.Index)
            return pandas.DataFrame(flat, columns=names, index=index if is_index else None)
        if output == "polars":
            return importlib.import_module("polars").DataFrame(flat, schema=names)
        return parts

    def shape_function(self, feature: int | str, *, label: Any = None) -> StepTable:
        """What a feature adds to the score, as a step function of its value.

        Parameters, result and errors are those of `StumpEnsemble.shape_function`.
        """
        check_is_fitted(self)
        return self.model_.shape_function(feature, label=label)

    def contribution_importances(self, X: Array, sample_weight: Array | None = None) -> np.ndarray:
        """Each feature's share of the spread of the scores, (n_features,).

        Parameters, result and errors are those of `StumpEnsemble.contribution_importances`; X may
        be a frame.
        """
        check_is_fitted(self)
        return self.model_.contribution_importances(self._table(X), sample_weight)

    def _labels(self, scores: Array) -> Array:
        return labels_at(self.classes_, self.model_.class_indices(scores))

    def _accuracy(self, predicted: Array, y: Array, sample_weight: Array | None) -> float:
        with arrays.computing_on(predicted):
            y = check_labels(y, predicted)
            if arrays.library_name(predicted) != arrays.library_name(y):  # text, or a list
                predicted, y = arrays.to_host(predicted), arrays.to_host(y)
                if arrays.is_array(sample_weight):
                    sample_weight = arrays.to_host(sample_weight)
            weights, rows = check_weights(sample_weight, y)
            return IntegerWeights.of(weights).share(arrays.picked(predicted == y, rows))

    def _table(self, X: Any, *, reset: bool = False) -> Array:
        """X as an array; its number and names of features are learnt (`reset`) or compared."""
        if arrays.is_array(X) and arrays.dtype_name(X) != "object":
            X = check_table(X)
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        frame = columns_of(X)
        if frame is None:
            table = validate_data(self, X, reset=reset, dtype="numeric", ensure_all_finite=False)
            return check_table(table)
        validate_data(self, X, reset=reset, skip_check_array=True)
        if reset and (names := number_categories(frame)):
            warnings.warn(
                f"X: the categories of {listed(names)} are numbers and are taken as numbers, in "
                "their order. If they only are names, encode them, for example with "
                "sklearn.preprocessing.OneHotEncoder.",
                stacklevel=4,
            )
        return check_table(numbers_of(frame))

    def _fit(self, data: _Data, settings: Settings) -> None:
        """Train, and take over all that was learnt in one assignment.

        An error or an interruption leaves the estimator as it was, with its earlier model whole.
        """
        learner = copy.copy(self)  # scikit-learn's validation writes into it
        X = learner._table(data.X, reset=data.earlier is None)
        samples, classes = _samples_of(X, data)
        held_out, split = None, None
        if data.watching is not None:
            samples, held_out, split = _split(samples, classes, data.watching, data.earlier)
        trained = train(
            X,
            samples,
            len(classes),
            settings,
            device=check_device(data.device),
            held_out=held_out,
            earlier=None if data.earlier is None else data.earlier.runs,
        )
        table = {n: v for n, v in vars(learner).items() if n in _LEARNT_FROM_TABLE}
        fitted = {
            "classes_": classes,
            "n_classes_": len(classes),
            "device_": trained.route.place,
            "route_": trained.route,
            "model_": _model_of(trained, classes, table),
            "_runs": trained.runs,
            "_split": split,
            "_n_rounds": settings.n_rounds,
        }
        kept = {n: v for n, v in vars(self).items() if n not in _LEARNT_FROM_TABLE}
        self.__dict__ = kept | table | fitted  # at once: nothing is ever half new


class AdaBoostClassifier(_StumpClassifier):
    """AdaBoost with exact decision stumps, for CPUs and GPUs, with the same model on all of them.

    It can replace `sklearn.ensemble.AdaBoostClassifier` wherever that boosts stumps, its default.
    For two classes the boosting is the same, but the stump of each round is the one of least
    weighted error; scikit-learn's trees minimise the Gini impurity of the leaves. Votes are Freund
    and Schapire's alpha = 1/2 ln((1-e)/e), half of what scikit-learn calls an estimator's weight,
    and the decision function is their plain sum. For more classes this one fits one binary model
    per class against the rest; scikit-learn's uses SAMME.

    Parameters
    ----------
    estimator : None
        For compatibility: None, a `DecisionStumpClassifier`, or scikit-learn's
        `DecisionTreeClassifier` with `max_depth=1` or `max_leaf_nodes=2`. Nothing else is boosted
        here, so a tree's other parameters must have no effect.
    n_estimators : int
        The most rounds of boosting, for each member.
    learning_rate : float
        Shrinks every vote; above 0.
    weak_learner : "stump" or "interval"
        What a round may choose from: "stump", or "interval" for stumps and intervals, which vote
        one way between two values of a feature and the other way elsewhere. A warm start may go on
        with the other one.
    random_state : int, RandomState or None
        Draws the samples that early stopping holds out; nothing else is random.
    device : str
        Where to train: "auto" (where the data lie; a large table on the host goes to a GPU if
        CuPy works and the kernels there can train on it), "cpu", "cuda", "cuda:1". The model does
        not depend on it.
    n_iter_no_change : int or None
        Early stopping: hold out a share of the samples and stop after this many rounds without a
        better score of them. The rounds after the best one are dropped.
    validation_fraction : float
        The share that is held out, stratified, if `n_iter_no_change` is given.
    scoring : str
        The score of the held-out samples. "loss" is minus the mean of ln(1 + exp(-y * F)), where F
        is the decision function and y is -1 or 1. "neg_log_loss" has twice the score in its place,
        as `predict_proba` does. Others are "accuracy", "balanced_accuracy" and "roc_auc". With more
        than two classes each member is watched by itself, as its class against the rest, so
        callables are refused. On 15 tables with 2% to 50% positive samples, stopping after 10
        rounds without a gain, the AUC on other samples was 0.88 on average with the loss, as it was
        after 500 rounds; 0.87 with the log-loss and the AUC; 0.86 with the exponential loss; 0.79
        with the balanced accuracy; and 0.78 with the accuracy, which is often best after a single
        round if a class is rare.
    tol : float
        By how much a held-out score must be higher to count; not negative.
    warm_start : bool
        Let the next `fit` go on from the rounds already made; on the same data, and without early
        stopping, it makes those that an uninterrupted run would have made. With early stopping it
        watches the samples that the earlier fit held out, and refuses to go on without them.
    verbose : int
        1 shows a bar with rounds, training error and rate on stderr, if that is a terminal or a
        notebook's; 2 says first where and by which engine it trains, and why.
    callback : callable or None
        Called with each `Round`; a true answer ends that member's boosting.
    n_jobs : int or None
        Threads on the CPU; None and -1 stand for all that this process may use. The model does not
        depend on it.
    max_memory : int, str or None
        How many bytes a fit may take beside X, of the host's memory or, where it trains on a GPU,
        of the GPU's: 2_000_000_000, "500 MB", "2 GiB". By default, most of what a GPU has free.
        What does not fit is computed or sent again when it is needed; the model does not depend on
        it. The reference scan keeps to it on the host only.
    block_bytes : int or None
        How many bytes of temporaries the reference scan may take at once; by default what suits
        the device.

    Attributes
    ----------
    model_ : StumpEnsemble
        The model itself, free of any array library: `digest()`, `save(path)`, `load(path)`.
    classes_ : ndarray (n_classes,)
    n_classes_ : int
    device_ : str
        Where it was trained.
    route_ : Route
        Where and by which engine, and why; `str(route_)` says it in words.
    rounds_ : tuple of tuple of Round
        For each member, the record of each of its rounds: error, edge, vote, bound.
    stop_reasons_ : tuple of str
        For each member why it ended; see `Boosting`, and "early".
    n_iter_ : int
        The rounds that the model keeps; with more than two classes the most of any member.
    held_out_scores_ : tuple of tuple of float
        With early stopping, for each member the score of the held-out samples after each round, as
        `scoring` asks. Greater is better; losses are negative.
    held_out_errors_ : tuple of tuple of float
        With early stopping, for each member the held-out error after each round.
    estimators_ : list
        The stumps and intervals in the order of the rounds; for more than two classes a list of
        such lists, one for each class. `len(classifier)`, indices and loops are those of this list.
    estimator_weights_ : ndarray (n_estimators,) or (n_classes, n_estimators)
        The votes; 0 after a member's last round.
    estimator_errors_ : ndarray, shaped as `estimator_weights_`
        The weighted errors of the stumps; 1 after a member's last round.
    feature_importances_ : ndarray (n_features,)
        Each feature's share of the votes.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X was a frame whose column names are all text.

    Notes
    -----
    The probabilities are too close to 0 and 1, as boosting goes on raising the scores of samples
    that are right already [Niculescu-Mizil and Caruana 2005]. After 300 rounds on scikit-learn's
    breast-cancer data, 99% of the held-out probabilities are below 0.001 or above 0.999, and their
    log-loss is 0.36. Where probabilities matter, calibrate them:
    `sklearn.calibration.CalibratedClassifierCV(classifier, cv=5)` brings this log-loss to 0.10. On
    average over seven tables it went from 0.37 to 0.28 that way, and to 0.30 with
    `n_iter_no_change=10`. A low `learning_rate` helps on some tables (0.10 on the breast-cancer
    data with 0.1), and needs more rounds on others.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpustump import AdaBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = AdaBoostClassifier(n_estimators=10, device="cpu").fit(X, y)
    >>> clf.model_.members[0].stumps[0].feature
    20
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        weak_learner: Learner = "stump",
        random_state: Any = None,
        device: DeviceName = "auto",
        n_iter_no_change: int | None = None,
        validation_fraction: float = 0.1,
        scoring: Scoring = "loss",
        tol: float = 0.0,
        warm_start: bool = False,
        verbose: int = 0,
        callback: Callback | None = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
        block_bytes: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.weak_learner = weak_learner
        self.random_state = random_state
        self.device = device
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.tol = tol
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback
        self.n_jobs = n_jobs
        self.max_memory = max_memory
        self.block_bytes = block_bytes

    _runs: tuple[Run, ...]
    _split: _Split | None
    _n_rounds: int

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> AdaBoostClassifier:
        """Train on a table.

        Parameters
        ----------
        X : array or frame (n_samples, n_features)
            Of any array library, or a pandas or polars frame. NaN means missing.
        y : array (n_samples,)
            Two classes or more: whole numbers, booleans or text.
        sample_weight : array (n_samples,), optional
            Finite, not negative, not all zero. Samples of weight zero take no part.

        Raises
        ------
        ValueError, TypeError
            If data or a parameter is not as described; the message names it and what was found.
        DeviceError
            If `device` asks for a GPU that cannot be had.
        """
        settings, earlier = self._settings(), self._earlier()
        watching = None
        if settings.stopping is not None:
            scoring = settings.stopping.scoring
            watching = _Watching(self.validation_fraction, self.random_state, scoring)
        if earlier is not None:
            n_done = max(len(run.rounds) for run in earlier.runs)
            if settings.n_rounds < n_done:
                raise ValueError(
                    f"n_estimators={self.n_estimators} is less than the {n_done} rounds already "
                    "made; with warm_start=True it can only grow."
                )
        self._fit(_Data(X, y, sample_weight, self.device, watching, earlier), settings)
        return self

    def _earlier(self) -> _Earlier | None:
        """What a warm start goes on from; None for a fit from the beginning."""
        if not self.warm_start or not hasattr(self, "model_"):
            return None
        return _Earlier(self._runs, self.classes_, self._split)

    def __bool__(self) -> bool:
        """True, fitted or not: an estimator without stumps is still an estimator."""
        return True

    def __len__(self) -> int:
        """The length of `estimators_`, which indexing and iterating go over, too."""
        return len(self.estimators_)

    def __getitem__(self, index: Any) -> Any:
        return self.estimators_[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.estimators_)

    @property
    def n_iter_(self) -> int:
        """The rounds that the model keeps; with more than two classes the most of any class."""
        check_is_fitted(self)
        return self.model_.n_rounds

    @property
    def rounds_(self) -> tuple[tuple[Round, ...], ...]:
        """For each member what its rounds did."""
        check_is_fitted(self)
        return tuple(run.rounds for run in self._runs)

    @property
    def stop_reasons_(self) -> tuple[str, ...]:
        """For each member why its boosting ended."""
        check_is_fitted(self)
        return tuple(run.stop_reason for run in self._runs)

    @property
    def held_out_scores_(self) -> tuple[tuple[float, ...], ...]:
        """For each member the score of the held-out samples after each round; see `scoring`."""
        check_is_fitted(self)
        return tuple(run.held_out_scores for run in self._runs)

    @property
    def held_out_errors_(self) -> tuple[tuple[float, ...], ...]:
        """For each member the held-out error after each round."""
        check_is_fitted(self)
        return tuple(run.held_out_errors for run in self._runs)

    @property
    def estimators_(self) -> list[Any]:
        """The stumps in order of rounds; for more than two classes a list of them per class."""
        check_is_fitted(self)
        lists: list[list[Stump | Interval]] = [
            list(member.stumps) for member in self.model_.members
        ]
        return lists[0] if self.model_.is_binary else lists

    @property
    def estimator_weights_(self) -> np.ndarray:
        """The votes, 0 after the last round: (n_estimators,), or (n_classes, n_estimators)."""
        return self._by_round("vote", 0.0)

    @property
    def estimator_errors_(self) -> np.ndarray:
        """The stumps' weighted errors, 1 after the last round; shaped as `estimator_weights_`."""
        return self._by_round("error", 1.0)

    def _by_round(self, name: str, fill: float) -> np.ndarray:
        check_is_fitted(self)
        length = max(self._n_rounds, self.model_.n_rounds)
        table = np.full((len(self._runs), length), fill)
        for row, run in zip(table, self._runs, strict=True):
            row[: len(run.rounds)] = [getattr(record, name) for record in run.rounds]
        return table[0] if self.model_.is_binary else table

    def _settings(self) -> Settings:
        """The parameters, checked."""
        _check_estimator(self.estimator)
        _check_random_state(self.random_state)
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback must be callable or None; got {self.callback!r}.")
        return Settings(
            n_rounds=check_count(self.n_estimators, "n_estimators"),
            learning_rate=check_real(self.learning_rate, "learning_rate", above=0.0),
            learner=check_learner(self.weak_learner),
            stopping=self._stopping(),
            callback=self.callback,
            resources=checked_resources(self.n_jobs, self.max_memory, self.block_bytes),
            show_progress=bool(self.verbose),
            announces_route=int(self.verbose) > 1,
        )

    def _stopping(self) -> Stopping | None:
        """When to stop early; the parameters are checked even where they are not used."""
        scoring = check_scoring(self.scoring)
        tol = check_real(self.tol, "tol", least=0.0)
        if self.n_iter_no_change is None:
            return None
        patience = check_count(self.n_iter_no_change, "n_iter_no_change")
        share = check_real(self.validation_fraction, "validation_fraction", above=0.0)
        if share >= 1.0:
            raise ValueError(f"validation_fraction must be above 0 and below 1; got {share!r}.")
        return Stopping(patience, tol, scoring)


class DecisionStumpClassifier(_StumpClassifier):
    """The one decision stump of least weighted error, as a classifier.

    For more than two classes, one stump for each class against the rest. See `fit_stump` for the
    stump as a plain value.

    Parameters
    ----------
    device : str
        As for `AdaBoostClassifier`.
    n_jobs : int or None
    max_memory : int, str or None
    block_bytes : int or None
        As for `AdaBoostClassifier`.

    Attributes
    ----------
    stump_ : Stump
        For two classes the stump; +1 stands for the second of `classes_`.
    model_ : StumpEnsemble
        One round of boosting; its vote gives `predict_proba`. Without a stump where none is better
        than chance.
    classes_, n_classes_, device_, route_, feature_importances_, n_features_in_, feature_names_in_
        As for `AdaBoostClassifier`.
    """

    def __init__(
        self,
        *,
        device: DeviceName = "auto",
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
        block_bytes: int | None = None,
    ) -> None:
        self.device = device
        self.n_jobs = n_jobs
        self.max_memory = max_memory
        self.block_bytes = block_bytes

    def fit(
        self, X: Array, y: Array, sample_weight: Array | None = None
    ) -> DecisionStumpClassifier:
        """Find the stump; X, y, sample_weight and errors as for `AdaBoostClassifier.fit`."""
        settings = Settings(
            n_rounds=1,
            resources=checked_resources(self.n_jobs, self.max_memory, self.block_bytes),
        )
        self._fit(_Data(X, y, sample_weight, self.device), settings)
        return self

    @property
    def stump_(self) -> Stump:
        """The stump of a binary model."""
        check_is_fitted(self)
        stumps = self.model_.members[0].stumps
        if not self.model_.is_binary or not stumps:
            raise AttributeError("there is no single stump: see model_.members")
        assert isinstance(stumps[0], Stump)
        return stumps[0]


def _checked_output(name: str) -> str:
    if name not in ("default", "pandas", "polars"):
        raise ValueError(f"transform must be 'default', 'pandas' or 'polars'; got {name!r}.")
    return name


def _model_of(trained: Trained, classes: np.ndarray, table: Mapping[str, Any]) -> StumpEnsemble:
    """The model of a training, for what was learnt from the table."""
    names = table.get("feature_names_in_")
    return StumpEnsemble(
        members=tuple(map(member_of, trained.runs)),
        n_features=table["n_features_in_"],
        classes=plain_labels(classes),
        feature_names=None if names is None else tuple(map(str, names)),
        missing_learnt=tuple((trained.n_missing > 0).tolist()),
    )


def _samples_of(X: Array, data: _Data) -> tuple[Samples, np.ndarray]:
    """The samples of a checked table that have a weight, and the classes."""
    with arrays.computing_on(X):
        weights, rows = check_weights(data.sample_weight, X)
        y = check_labels(data.y, X)
        if rows is not None:
            y = arrays.picked(y, moved_to_device_of(rows, y))
        classes, index = encode(y, weights)
    earlier = data.earlier
    if earlier is not None and not np.array_equal(classes, earlier.classes):
        raise ValueError(
            f"y holds the classes {classes.tolist()}, but with warm_start=True it must hold those "
            f"of the earlier fit, {earlier.classes.tolist()}."
        )
    return Samples(rows, index, weights), classes


def _split(
    samples: Samples, names: np.ndarray, watching: _Watching, earlier: _Earlier | None
) -> tuple[Samples, Samples, _Split]:
    """Samples to train on and to watch, stratified, the same on every device.

    Raises
    ------
    ValueError
        If the samples cannot be split so, or if a warm start would watch samples that it has been
        trained on, or another score than before.
    """
    fraction = watching.fraction
    classes = arrays.to_host(samples.classes)
    digest = hashlib.sha256(np.ascontiguousarray(classes).tobytes())
    if samples.rows is not None:
        digest.update(np.ascontiguousarray(arrays.to_host(samples.rows)).tobytes())
    if earlier is None:
        seed = int(check_random_state(watching.random_state).randint(2**31 - 1))
    else:
        seed = -1 if earlier.split is None else earlier.split.seed
    split = _Split(float(fraction), seed, digest.hexdigest(), watching.scoring)
    if earlier is not None and split != earlier.split:
        raise ValueError(_why_not_watched(split, earlier.split))
    try:
        kept, watched = train_test_split(
            np.arange(len(classes)), test_size=fraction, stratify=classes, random_state=seed
        )
    except ValueError as error:
        raise ValueError(
            f"validation_fraction={fraction!r} of {len(classes)} samples cannot be held out: "
            f"{error}"
        ) from error
    absent = np.setdiff1d(np.arange(len(names)), classes[watched])
    if absent.size and watching.scoring in _OF_BOTH_CLASSES:
        raise ValueError(
            f"scoring={watching.scoring!r} needs held-out samples of every class, but "
            f"validation_fraction={fraction!r} holds out {len(watched)} samples, and none of "
            f"class {names[absent].tolist()[0]!r}. Hold out more, or take scoring='loss'."
        )
    with arrays.computing_on(samples.classes):
        train_on, watch = (
            samples.taken(moved_to_device_of(np.sort(part), samples.classes))
            for part in (kept, watched)
        )
    return train_on, watch, split


def _why_not_watched(split: _Split, earlier: _Split | None) -> str:
    """Why a warm start cannot watch the samples that the earlier fit held out as that fit did."""
    if earlier is None:
        found = "the earlier fit held nothing out: n_iter_no_change was None"
    elif split.fraction != earlier.fraction:
        found = (
            f"validation_fraction is {split.fraction!r}, and it was {earlier.fraction!r} in the "
            "earlier fit"
        )
    else:
        found = "the samples of positive weight, or their labels, are not those of the earlier fit"
    if earlier is not None and split == earlier._replace(scoring=split.scoring):
        return (
            f"warm_start=True goes on from the best round, but scoring is {split.scoring!r}, and "
            f"it was {earlier.scoring!r} in the earlier fit. Keep it as it was, or fit anew with "
            "warm_start=False."
        )
    return (
        f"warm_start=True with n_iter_no_change would watch samples that were trained on: {found}. "
        "Keep both as they were, or fit anew with warm_start=False."
    )


def _check_random_state(random_state: Any) -> None:
    """Refuse what draws no samples, whether or not any are to be drawn."""
    try:
        check_random_state(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "random_state must be None, a whole number from 0 to 2**32 - 1 or a "
            f"numpy.random.RandomState; got {random_state!r}."
        ) from error


def _check_estimator(estimator: Any) -> None:
    """Refuse a base estimator other than a stump."""
    if estimator is None or isinstance(estimator, DecisionStumpClassifier):
        return
    from sklearn.tree import DecisionTreeClassifier

    found = f"got {estimator!r}"
    if isinstance(estimator, DecisionTreeClassifier):
        problem = _why_no_stump(estimator.get_params(), DecisionTreeClassifier().get_params())
        if problem is None:
            return
        found += f", where {problem}"
    raise ValueError(
        "estimator must be None, DecisionStumpClassifier(), DecisionTreeClassifier(max_depth=1) or "
        "DecisionTreeClassifier(max_leaf_nodes=2), as only decision stumps are boosted here; "
        f"{found}."
    )


def _why_no_stump(tree: Mapping[str, Any], usual: Mapping[str, Any]) -> str | None:
    """What about a tree's parameters makes it other than a stump; None for nothing.

    A tree with two leaves has one split, whatever its depth, and one of depth 1 has two leaves.
    Every feature is looked at with max_features=None, and with a share of 1.0. The random state
    then decides between equally good splits only.
    """
    if tree["max_depth"] != 1 and tree["max_leaf_nodes"] != 2:
        return "neither max_depth is 1 nor max_leaf_nodes 2"
    harmless = {"max_depth", "max_leaf_nodes", "random_state"}
    if isinstance(tree["max_features"], float) and tree["max_features"] == 1.0:
        harmless.add("max_features")
    constraints = tree.get("monotonic_cst")
    if constraints is not None and not np.any(constraints):
        harmless.add("monotonic_cst")
    for name, value in tree.items():
        if name not in harmless and not np.array_equal(value, usual[name]):
            return f"{name}={value!r} has no counterpart here"
    return None
