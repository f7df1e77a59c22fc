"""What all estimators share: how a table becomes an array, how a fit ends, what a model predicts.

Predictions are in the array library of the table. scikit-learn's array API dispatch need not be
switched on for that.
"""

from __future__ import annotations

import copy
import importlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.devices import check_device
from gpustump.arrays.moving import moved_to_device_of
from gpustump.boosting.bags import Share, train_bags
from gpustump.boosting.batches import terms_of
from gpustump.boosting.finished import link_of, member_of
from gpustump.boosting.training import Samples, Settings, Trained
from gpustump.data.callers import caller_level
from gpustump.data.class_weights import ClassWeight, Weights, weighted_by_class
from gpustump.data.columns import ColumnTable
from gpustump.data.frames import columns_of, number_categories, numbers_of
from gpustump.data.labels import check_labels, encode, plain_labels, warn_of_odd_classes
from gpustump.data.readable import listed
from gpustump.data.sample_weights import check_weights
from gpustump.data.tables import check_table
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.engines.route import Route
from gpustump.estimators import recorded
from gpustump.estimators.callbacks import TaskData, tasks_of
from gpustump.estimators.categorical import (
    Categories,
    categories_of_frame,
    category_numbers,
    chosen,
    refuse_constrained_categories,
    refuse_other_categories,
    warn_of_unseen_numbers,
)
from gpustump.estimators.checkpointing import (
    FitCheckpoint,
    fingerprints_of,
    kept_shares,
    outline_of,
    settings_of,
)
from gpustump.estimators.held_out_split import Earlier
from gpustump.estimators.recorded import record_of
from gpustump.estimators.validation_data import NOTHING, Asked, Note, TrainingTable, shares_of
from gpustump.learners.step_table import CategoryTable, StepTable
from gpustump.model.bags import averaged
from gpustump.model.class_scores import labels_at
from gpustump.model.encoding import features_of, plain_encoding, unseen_text
from gpustump.model.ensemble import StumpEnsemble

_LEARNT_FROM_TABLE = ("n_features_in_", "feature_names_in_", "is_categorical_", "_categories")
"""What scikit-learn's validation learns from a table, and what is learnt of categorical
features."""


DeviceName: TypeAlias = Literal["auto", "cpu", "cuda"] | str
"""Where to train; "cuda:1" and so on are names of devices, too."""


class Data(NamedTuple):
    """What `fit` is given: a table, labels and weights, unchecked, and how to use them.

    `asked.drawn` and `earlier` have an entry for each bag; one entry if there are no bags.
    """

    X: Any
    y: Any
    sample_weight: Any
    device: str
    asked: Asked = NOTHING
    earlier: Sequence[Earlier] | None = None
    class_weight: ClassWeight = None


class StumpClassifier(ClassifierMixin, BaseEstimator):
    """The base class of all estimators: predictions, and how a table becomes an array."""

    model_: StumpEnsemble
    is_categorical_: np.ndarray
    _categories: Categories = Categories()
    _dtype: str | None = None
    classes_: np.ndarray
    device_: str
    route_: Route
    n_jobs: int | None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        # tags.array_api_support stays False. It would promise that arrays of another library than
        # in fit are refused, and that arrays on two devices are brought together. Here a model
        # predicts in any library, and moves no array between devices by itself.
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
            If X is not a table of numbers with the features seen in `fit`, or lacks a column.

        Notes
        -----
        If X and the table seen in `fit` are frames with names, columns are found by name, in any
        order, and other columns are ignored. Otherwise they are matched by position.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> clf = AdaBoostClassifier(n_estimators=3).fit(X, y)
        >>> clf.decision_function(X).round(3).tolist()
        [-1.016, -1.016, 0.37, -0.929, 1.016]
        """
        check_is_fitted(self)
        return self.model_.decision_function(self._table(X), n_jobs=self.n_jobs)

    def predict(self, X: Array) -> Array:
        """The label of each sample, (n_samples,), in X's library; text labels in NumPy.

        If a value is missing in a feature that had no missing values in training, the sample still
        gets a label, perhaps with a large score. A warning says so.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], ["no", "no", "yes", "no", "yes"]
        >>> clf = AdaBoostClassifier(n_estimators=3).fit(X, y)
        >>> clf.predict([[1.5], [4.9]]).tolist()
        ['no', 'yes']
        """
        return self._labels(self.decision_function(X))

    def predict_proba(self, X: Array) -> Array:
        """Class probabilities (n_samples, n_classes); see `StumpEnsemble.probabilities_of`.

        After many rounds of AdaBoost they are too close to 0 and 1; the notes of
        `AdaBoostClassifier` say how to mend that. Those of `LogitBoostClassifier` are mostly good
        as they are.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], ["no", "no", "yes", "no", "yes"]
        >>> clf = LogitBoostClassifier(n_estimators=10).fit(X, y)
        >>> clf.classes_.tolist()
        ['no', 'yes']
        >>> clf.predict_proba([[1.5], [4.9]]).round(3).tolist()
        [[0.693, 0.307], [0.511, 0.489]]
        """
        scores = self.decision_function(X)
        return self.model_.probabilities_of(scores)

    def predict_log_proba(self, X: Array) -> Array:
        """Logarithms of `predict_proba`.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> clf = LogitBoostClassifier(n_estimators=10).fit(X, y)
        >>> clf.predict_log_proba([[1.5], [4.9]]).round(3).tolist()
        [[-0.366, -1.182], [-0.671, -0.716]]
        """
        scores = self.decision_function(X)
        return self.model_.log_probabilities_of(scores)

    def staged_decision_function(self, X: Array) -> Iterator[Array]:
        """`decision_function` after 1, 2, ... rounds.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> clf = AdaBoostClassifier(n_estimators=3).fit(X, y)
        >>> for scores in clf.staged_decision_function([[1], [3]]):
        ...     print(scores.round(3).tolist())
        [-0.693, 0.693]
        [-1.666, -0.28]
        [-1.016, 0.37]
        """
        check_is_fitted(self)
        yield from self.model_.staged_decision_function(self._table(X), n_jobs=self.n_jobs)

    def staged_predict(self, X: Array) -> Iterator[Array]:
        """`predict` after 1, 2, ... rounds.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> clf = AdaBoostClassifier(n_estimators=3).fit(X, y)
        >>> [labels.tolist() for labels in clf.staged_predict(X)]
        [[0, 0, 1, 1, 1], [0, 0, 0, 0, 1], [0, 0, 1, 0, 1]]
        """
        yield from map(self._labels, self.staged_decision_function(X))

    def staged_predict_proba(self, X: Array) -> Iterator[Array]:
        """`predict_proba` after 1, 2, ... rounds.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> clf = LogitBoostClassifier(n_estimators=3).fit(X, y)
        >>> for shares in clf.staged_predict_proba([[1]]):
        ...     print(shares.round(3).tolist())
        [[0.611, 0.389]]
        [[0.622, 0.378]]
        [[0.632, 0.368]]
        """
        for scores in self.staged_decision_function(X):
            yield self.model_.probabilities_of(scores)

    def score(self, X: Array, y: Array, sample_weight: Array | None = None) -> float:
        """The (weighted) share of samples that `predict` gets right.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> clf = AdaBoostClassifier(n_estimators=1).fit(X, y)
        >>> clf.score(X, y)
        0.8
        >>> clf.score(X, y, sample_weight=[1, 1, 1, 4, 1])
        0.5
        """
        return self._accuracy(self.predict(X), y, sample_weight)

    def staged_score(
        self, X: Array, y: Array, sample_weight: Array | None = None
    ) -> Iterator[float]:
        """`score` after 1, 2, ... rounds.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> clf = AdaBoostClassifier(n_estimators=3).fit(X, y)
        >>> list(clf.staged_score(X, y))
        [0.8, 0.8, 1.0]
        """
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
            As `StumpEnsemble.explain` returns it; for frames and lists a NumPy array. If
            `set_output` asks for frames, the result for frames, lists and NumPy arrays is a frame
            (n_samples, n_columns) with the columns `model_.contribution_names` and the index of X.

        Raises
        ------
        ValueError, TypeError
            If X is not a table of numbers with the features seen in `fit`.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X, y = [[1, 9], [2, 5], [3, 8], [4, 6], [5, 7]], [0, 0, 1, 0, 1]
        >>> clf = LogitBoostClassifier(n_estimators=10).fit(X, y)
        >>> clf.explain([[4.5, 5.5]]).round(3).tolist()
        [[0.096, -0.109, -0.203]]
        >>> clf.model_.contribution_names
        ('x0', 'x1', '(intercept)')
        """
        check_is_fitted(self)
        table = self._table(X)
        parts = self.model_.explain(table)
        if arrays.library_name(table) != "numpy":
            return parts
        return self._as_set(parts.reshape(len(parts), -1), parts, getattr(X, "index", None))

    def set_output(self, *, transform: str | None = None) -> StumpClassifier:
        """Choose whether `explain` gives arrays or frames.

        As for scikit-learn's transformers. The choice applies to frames, lists and NumPy arrays.
        Without it, `sklearn.set_config(transform_output=...)` decides.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            "default" means arrays; None changes nothing.

        Raises
        ------
        ValueError
            If `transform` is something else.

        Examples
        --------
        >>> import pandas as pd
        >>> from gpustump import LogitBoostClassifier
        >>> X = pd.DataFrame({"age": [31, 45, 52, 60], "income": [2.1, 3.9, 2.5, 4.4]})
        >>> clf = LogitBoostClassifier(n_estimators=5).fit(X, [0, 1, 0, 1])
        >>> clf.set_output(transform="pandas").explain(X).columns.tolist()
        ['age', 'income', '(intercept)']
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

    def shape_function(self, feature: int | str, *, label: Any = None) -> StepTable | CategoryTable:
        """What a feature adds to the score, as a step function of its value.

        Parameters, result and errors are those of `StumpEnsemble.shape_function`.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> clf = LogitBoostClassifier(n_estimators=10).fit(X, y)
        >>> table = clf.shape_function(0)
        >>> table.thresholds.tolist()
        [2.5, inf]
        >>> table.values.round(3).tolist()
        [-0.205, 0.18]
        """
        check_is_fitted(self)
        return self.model_.shape_function(feature, label=label)

    def contribution_importances(self, X: Array, sample_weight: Array | None = None) -> np.ndarray:
        """Each feature's share of the spread of the scores, (n_features,).

        Parameters, result and errors are those of `StumpEnsemble.contribution_importances`; X may
        be a frame.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X, y = [[1, 9], [2, 5], [3, 8], [4, 6], [5, 7]], [0, 0, 1, 0, 1]
        >>> clf = LogitBoostClassifier(n_estimators=10).fit(X, y)
        >>> clf.contribution_importances(X).round(3).tolist()
        [0.5, 0.5]
        """
        check_is_fitted(self)
        return self.model_.contribution_importances(self._table(X), sample_weight)

    def predict_proba_interval(self, X: Array, coverage: float = 0.9) -> tuple[Array, Array]:
        """For each class probability a range that holds the probabilities of most bags.

        Parameters, result and errors are those of `StumpEnsemble.predict_proba_interval`; X may be
        a frame.

        Examples
        --------
        >>> from gpustump import GlassBoxClassifier
        >>> X = [[value] for value in range(20)]
        >>> y = [0, 1] * 3 + [0] * 4 + [1] * 10
        >>> clf = GlassBoxClassifier(n_estimators=5, random_state=0).fit(X, y)
        >>> low, high = clf.predict_proba_interval([[3], [15]], coverage=1.0)
        >>> low.shape, bool((low <= high).all())
        ((2, 2), True)
        """
        check_is_fitted(self)
        return self.model_.predict_proba_interval(self._table(X), coverage)

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
        """X as an array with the features that were learnt, which it is given (`reset`) or has to
        match.

        Frames with names are matched by name. scikit-learn compares all else: the number of
        features, and whether both sides have names.
        """
        is_plain = arrays.is_array(X) and arrays.dtype_name(X) != "object"
        frame = None if is_plain else columns_of(X)
        if frame is None and not is_plain:
            X = validate_data(self, X, reset=reset, dtype="numeric", ensure_all_finite=False)
        found = None if frame is not None else check_table(X)
        if is_plain or (frame is not None and (reset or not self._has_names_of(frame))):
            validate_data(self, X, reset=reset, skip_check_array=True)
        if found is None:
            assert frame is not None
            found = self._numbered(frame) if reset else self._features_of(frame)
        if reset:
            self._learn_categories(found, frame)
        return found

    def _has_names_of(self, frame: ColumnTable) -> bool:
        """Whether both the features and a frame's columns have names."""
        return frame.named and "feature_names_in_" in vars(self)

    def _features_of(self, frame: ColumnTable) -> Array:
        """A frame as an array with the features of the training table."""
        encoding = self._categories.encoding
        if encoding is None:
            names = vars(self).get("feature_names_in_")
            own = None if names is None else tuple(names.tolist())
            encoding = plain_encoding(self.n_features_in_, own)
        X, unseen = features_of(encoding, frame)
        for name, values in unseen.items():
            warnings.warn(f"{frame.source}: {unseen_text(name, values)}", stacklevel=caller_level())
        return check_table(X)

    def _numbered(self, frame: ColumnTable) -> Array:
        """A training frame as an array, its categories as their numbers."""
        self._categories = categories_of_frame(self._asked_categories(), frame)
        if self._categories.encoding is not None:
            return check_table(features_of(self._categories.encoding, frame)[0])
        known = {frame.names[feature] for feature in self._categories.features}
        if names := [name for name in number_categories(frame) if name not in known]:
            warnings.warn(
                f"X: the categories of {listed(names)} are numbers and are taken as numbers, in "
                "their order. If they are only names, pass categorical_features='from_dtype', or "
                "encode them, for example with sklearn.preprocessing.OneHotEncoder.",
                stacklevel=caller_level(),
            )
        try:
            return check_table(numbers_of(frame))
        except ValueError as error:
            has_text = any(column.kind == "text" for column in frame.columns)
            if not (has_text and hasattr(self, "categorical_features")):
                raise
            way = "Or pass categorical_features='from_dtype' to take text as categories."
            raise ValueError(f"{error} {way}") from error

    def _asked_categories(self) -> Any:
        """`categorical_features`; None for an estimator without this parameter."""
        return getattr(self, "categorical_features", None)

    def _learn_categories(self, X: Array, frame: ColumnTable | None) -> None:
        """Note which features of a training table are categorical, and check their values."""
        names = vars(self).get("feature_names_in_")
        if frame is None:
            asked = self._asked_categories()
            self._categories = Categories(asked, chosen(asked, X.shape[1], names))
        self._note_categories(self._categories, X.shape[1])

    def _note_categories(self, categories: Categories, n_features: int) -> None:
        """Note which features are categorical."""
        self._categories = categories
        if hasattr(self, "categorical_features"):
            self.is_categorical_ = np.zeros(n_features, dtype=bool)
            self.is_categorical_[list(categories.features)] = True

    def _fit(self, data: Data, settings: Settings) -> None:
        """Train, and set all learnt attributes in one assignment.

        An error or an interruption leaves the estimator as it was, with its earlier model whole.
        """
        ready = self._prepared(data, settings, self._checkpoint())
        learner, X, classes = ready.learner, ready.X, ready.classes
        warn_of_odd_classes(classes, int(X.shape[0]))
        settings = self._observed(learner, data, ready.settings, classes)
        outline = outline_of(settings, len(classes), X.shape[1], len(ready.shares))
        device = check_device(data.device)
        if settings.votes.kind == "newton":
            first, n_outputs = ready.shares[0].samples, settings.n_outputs(len(classes))
            settings.votes.warn_of_small_weights(*first.mean_weight, n_outputs)
        with kept_shares(ready.kept, ready.shares, ready.splits, outline) as shares:
            trained = train_bags(X, shares, len(classes), settings, device=device)
        fingerprint = None if ready.kept is None else ready.kept.fingerprint
        self._take_over(learner, Learnt(trained, classes, ready.splits, fingerprint), settings)

    def _prepared(
        self, data: Data, settings: Settings, kept: FitCheckpoint | None = None
    ) -> Prepared:
        """What to train on, checked; the estimator itself is not changed."""
        learner = copy.copy(self)  # scikit-learn's validation writes into it
        if data.earlier is not None:
            refuse_other_categories(self._asked_categories(), self._categories)
        X = learner._table(data.X, reset=data.earlier is None)
        names = vars(learner).get("feature_names_in_")
        numbers = category_numbers(X, learner._categories, names)
        learner._dtype = arrays.working_dtype(arrays.dtype_name(X))
        settings = learner._constrained(settings, data.earlier)
        settings = replace(settings, categorical=learner._categories.features)
        refuse_constrained_categories(settings)
        samples, classes = _samples_of(X, data)
        asked = data.asked
        if kept is not None:
            kept, asked = self._checked(kept, learner, X, data, settings)

        def checked(given: Any) -> Array:
            rows = learner._table(given)
            warn_of_unseen_numbers(rows, numbers, names)
            return rows

        table = TrainingTable(X, classes, checked)
        shares, splits = shares_of(table, samples, asked, data.earlier)
        return Prepared(learner, X, classes, settings, shares, splits, kept)

    def _checkpoint(self) -> FitCheckpoint | None:
        """The checkpoint of a fit, and what its file holds already; None without a checkpoint."""
        return None

    def _checked(
        self,
        kept: FitCheckpoint,
        learner: StumpClassifier,
        X: Array,
        data: Data,
        settings: Settings,
    ) -> tuple[FitCheckpoint, Asked]:
        """The checkpoint, checked for this fit, and what to watch, by the checkpoint's seeds."""
        dtype = arrays.dtype_name(X)
        deciding = settings_of(self, learner._categories, dtype, settings.votes.monotone)
        names = vars(learner).get("feature_names_in_")
        kept = kept.checked(deciding, fingerprints_of(X, data, learner._table), names)
        return kept, kept.asked(data.asked, vars(self).get("random_state"))

    def _constrained(self, settings: Settings, earlier: Sequence[Earlier] | None) -> Settings:
        """The settings with what depends on the features, which are known by now."""
        return settings

    def _take_over(self, learner: StumpClassifier, learnt: Learnt, settings: Settings) -> None:
        """Take over what was learnt; `learner` knows what was learnt from the table's columns."""
        found = _attributes(learner, learnt, settings)
        kept = {n: v for n, v in vars(self).items() if n not in _LEARNT_FROM_TABLE}
        self.__dict__ = kept | found  # in one step, which no interruption can leave half done

    def _observed(
        self, learner: StumpClassifier, data: Data, settings: Settings, classes: np.ndarray
    ) -> Settings:
        """The same settings, with an observer if the estimator has callbacks of scikit-learn's."""

        def attributes(trained: Sequence[Trained]) -> dict[str, Any]:
            unknown = (None,) * len(trained)
            return _attributes(learner, Learnt(trained, classes, unknown), settings)

        tasks = tasks_of(self, TaskData(data.X, data.y, data.sample_weight), attributes)
        return settings if tasks is None else replace(settings, observer=tasks)


class Prepared(NamedTuple):
    """What a fit is to train on.

    Attributes
    ----------
    learner : StumpClassifier
        A copy of the estimator that knows what was learnt from the table's columns.
    X : array (n_samples, n_features)
    classes : ndarray (n_classes,)
    settings : Settings
    shares : list of Share
        What each bag is trained on, and what it watches.
    splits : tuple of Split, Provided or None
        How the samples that each bag watches were chosen.
    kept : FitCheckpoint or None
        Its checkpoint.
    """

    learner: StumpClassifier
    X: Array
    classes: np.ndarray
    settings: Settings
    shares: list[Share[Samples]]
    splits: tuple[Note, ...]
    kept: FitCheckpoint | None = None


class Learnt(NamedTuple):
    """The outcome of training each bag, the classes, which samples each bag held out, and the
    fingerprint of the table in the form of a file, if it is known."""

    trained: Sequence[Trained]
    classes: np.ndarray
    splits: tuple[Note, ...]
    fingerprint: Mapping[str, Any] | None = None


def _attributes(learner: StumpClassifier, learnt: Learnt, settings: Settings) -> dict[str, Any]:
    """What a fitted estimator has; `learner` knows what was learnt from the table's columns."""
    trained, classes, splits, fingerprint = learnt
    table = {n: v for n, v in vars(learner).items() if n in _LEARNT_FROM_TABLE}
    reasons = [run.stop_reason for bag in trained for run in bag.runs]
    record = record_of(learner, splits, reasons)
    model = model_of(trained, classes, table)
    if record is not None:
        known = {} if fingerprint is None else {recorded.FINGERPRINT: fingerprint}
        model = replace(model, details={**model.details, recorded.KEY: record, **known})
    return table | {
        "classes_": classes,
        "n_classes_": len(classes),
        "device_": trained[0].route.place,
        "route_": trained[0].route,
        "model_": model,
        "_runs": tuple(run for bag in trained for run in bag.runs),
        "_search": trained[0].search,
        "_splits": splits,
        "n_estimators_": settings.n_rounds_of(len(classes)),
    }


def _checked_output(name: str) -> str:
    if name not in ("default", "pandas", "polars"):
        raise ValueError(f"transform must be 'default', 'pandas' or 'polars'; got {name!r}.")
    return name


def model_of(
    trained: Sequence[Trained], classes: np.ndarray, table: Mapping[str, Any]
) -> StumpEnsemble:
    """The model of a training, or the average of several, for what was learnt from the table."""
    names = table.get("feature_names_in_")
    encoding = table.get("_categories", Categories()).encoding
    found: list[Any] = [
        tuple(member_of(terms_of(run.rounds), run.constant, bag.search) for run in bag.runs)
        for bag in trained
    ]
    members, bags = averaged(found) if len(found) > 1 else (found[0], None)
    n_missing = np.max([bag.n_missing for bag in trained], axis=0)
    return StumpEnsemble(
        members=members,
        n_features=table["n_features_in_"],
        classes=plain_labels(classes),
        feature_names=None if names is None else tuple(map(str, names)),
        missing_learnt=tuple((n_missing > 0).tolist()),
        link=link_of(trained[0].search),
        bags=bags,
        details={} if encoding is None else {"encoding": encoding.as_details()},
    )


def _samples_of(X: Array, data: Data) -> tuple[Samples, np.ndarray]:
    """The samples of a checked table that have a weight, and the classes."""
    with arrays.computing_on(X):
        given = Weights(*check_weights(data.sample_weight, X))
        y = check_labels(data.y, X)
        weights, rows = weighted_by_class(given, y, data.class_weight)
        if rows is not None:
            y = arrays.picked(y, moved_to_device_of(rows, y))
        classes, index = encode(y, weights)
    before = classes if data.earlier is None else data.earlier[0].classes
    if not np.array_equal(classes, before):
        raise ValueError(
            f"y holds the classes {listed(classes.tolist())}, but with warm_start=True it must "
            f"hold those of the earlier fit, {listed(before.tolist())}."
        )
    return Samples(rows, index, weights), classes
