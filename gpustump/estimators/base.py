"""What all estimators share: how a table becomes an array, how a fit ends, what a model predicts.

Predictions are in the array library of the table. scikit-learn's array API dispatch need not be
switched on for that.
"""

from __future__ import annotations

import copy
import functools
import importlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.devices import check_device
from gpustump.boosting.pairs.learning import LearntPairs, learn_pairs
from gpustump.boosting.rounds.bags import Share, train_bags
from gpustump.boosting.rounds.batches import members_of
from gpustump.boosting.rounds.training import Run, Samples, Settings, Trained
from gpustump.data.columns import ColumnTable
from gpustump.data.frames import columns_of, number_categories, numbers_of
from gpustump.data.labels import plain_labels
from gpustump.data.parameters import Interactions, check_interactions
from gpustump.data.readable import caller_level, listed
from gpustump.data.tables import check_table, is_sparse_matrix
from gpustump.engines.contract import Task
from gpustump.engines.objective import Objective
from gpustump.engines.pair_runs import have_compiled
from gpustump.engines.route import Route
from gpustump.estimators import recorded
from gpustump.estimators.callbacks import FitTasks
from gpustump.estimators.categorical import (
    Categories,
    categories_of_frame,
    category_numbers,
    chosen,
    refuse_constrained_categories,
    refuse_other_categories,
    refuse_sparse_categories,
    warn_of_unseen_numbers,
)
from gpustump.estimators.checkpointing import (
    CheckpointName,
    FitCheckpoint,
    fingerprints_of,
    outline_of,
    settings_of,
    shares_kept,
)
from gpustump.estimators.held_out import NOTHING, Asked, Earlier, Split, shares_of
from gpustump.estimators.recorded import record_of
from gpustump.estimators.targets import NO_OFFSET, Offset, TargetDomain
from gpustump.learners.step_table import CategoryTable, StepTable
from gpustump.model.encoding import features_of, plain_encoding, told_features_of
from gpustump.model.ensemble import StumpEnsemble

_OF_CLUSTER = "cluster_"
"""The attribute that a fit on a cluster adds (`gpustump.dask.fit`), untrue of any later fit."""

_LEARNT_FROM_TABLE = ("n_features_in_", "feature_names_in_", "is_categorical_", "_categories")
"""What scikit-learn's validation learns from a table, and what is learnt of categorical
features."""


DeviceName: TypeAlias = Literal["auto", "cpu", "cuda"] | str
"""Where to train; "cuda:1" and so on are names of devices, too."""


class Data(NamedTuple):
    """What `fit` is given, unchecked: a table, labels and weights; and what it is to watch.

    `asked.seeds` and `earlier` have an entry for each bag; one entry if there are no bags.
    """

    X: Any
    y: Any
    sample_weight: Any
    asked: Asked = NOTHING
    earlier: Sequence[Earlier] | None = None
    offset: Offset = NO_OFFSET


class StumpEstimator(BaseEstimator):
    """The base class of all estimators: what a model says, and how a table becomes an array.

    The estimators are dataclasses, whose fields are their parameters.
    """

    model_: StumpEnsemble
    is_categorical_: np.ndarray
    _categories: Categories = Categories()
    _dtype: str | None = None
    device: DeviceName
    device_: str
    route_: Route
    n_estimators_: int
    n_jobs: int | None
    categorical_features: Any = None  # these where they are no parameters
    class_weight: Any = None
    random_state: Any = None
    warm_start: bool = False
    interactions: Any = 0
    checkpoint: CheckpointName = None
    _runs: tuple[Run, ...]
    _objective: Objective
    _target: TargetDomain
    _splits: tuple[Split | None, ...]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        # tags.array_api_support stays False. It would promise that arrays of another library than
        # in fit are refused, and that arrays on two devices are brought together. Here a model
        # predicts in any library, and moves no array between devices by itself.
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    @property
    def _goes_on(self) -> bool:
        """Whether a fit goes on from an earlier one."""
        return self.warm_start and hasattr(self, "model_")

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
        chosen = getattr(self, "_sklearn_output_config", {}).get("transform")
        output = _checked_output(chosen or get_config()["transform_output"])
        if output == "default":
            return parts
        flat, names = parts.reshape(len(parts), -1), list(self.model_.contribution_names)
        if output == "polars":
            return importlib.import_module("polars").DataFrame(flat, schema=names)
        pandas, index = importlib.import_module("pandas"), getattr(X, "index", None)
        is_index = isinstance(index, pandas.Index)  # that of a list is a method
        return pandas.DataFrame(flat, columns=names, index=index if is_index else None)

    def set_output(self, *, transform: str | None = None) -> StumpEstimator:
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

    def to_html(
        self,
        path: str | PathLike[str] | None = None,
        X: Any = None,
        y: Any = None,
        *,
        init_score: Any = None,
        exposure: Any = None,
    ) -> str:
        """A page on which people explore the model.

        Parameters, result and errors are those of `StumpEnsemble.to_html`; X may be a frame like
        the training table, and what is known of its rows is given as to `predict`.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> LogitBoostClassifier(n_estimators=10).fit(X, y).to_html(X=X, y=y)[:15]
        '<!doctype html>'
        """
        check_is_fitted(self)
        offset = Offset(init_score, exposure)
        if X is None and offset.given:
            (name, *_) = offset.given
            raise ValueError(f"{name} is given without X; give both, or X alone.")
        table = None if X is None else self._table(X)
        known = None if X is None else offset.of_scores(table, self.model_)
        return self.model_.to_html(path, table, y, known_scores=known)

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

    def _table(self, X: Any, *, reset: bool = False, name: str = "X") -> Array:
        """X as an array with the features that were learnt, which it is given (`reset`) or has to
        match. `name` is what warnings call it.

        Frames with names are matched by name. scikit-learn compares all else: the number of
        features, and whether both sides have names.
        """
        is_plain = is_sparse_matrix(X) or (arrays.is_array(X) and arrays.dtype_name(X) != "object")
        frame = None if is_plain else columns_of(X)
        if frame is not None:
            are_named = frame.named and "feature_names_in_" in vars(self)
            if reset or not are_named:
                validate_data(self, X, reset=reset, skip_check_array=True)
            found = self._numbered(frame) if reset else self._features_of(frame, name)
        elif is_plain:
            found = check_table(X)
            validate_data(self, X, reset=reset, skip_check_array=True)
        else:
            try:
                X = validate_data(self, X, reset=reset, dtype="numeric", ensure_all_finite=False)
            except ValueError as error:
                if "string" not in str(error):
                    raise
                raise ValueError(
                    f"{str(error).rstrip('.')}. Text is read in frames of pandas, polars or "
                    "pyarrow only; one row of a pandas frame is frame.iloc[[0]]."
                ) from error
            found = check_table(X)
        if reset:
            self._learn_categories(found, frame)
        return found

    def _features_of(self, frame: ColumnTable, name: str) -> Array:
        """A frame as an array with the features of the training table."""
        encoding = self._categories.encoding
        if encoding is None:
            names = vars(self).get("feature_names_in_")
            own = None if names is None else tuple(names.tolist())
            encoding = plain_encoding(self.n_features_in_, own)
        return check_table(told_features_of(encoding, frame, name))

    def _numbered(self, frame: ColumnTable) -> Array:
        """A training frame as an array, its categories as their numbers."""
        self._categories = categories_of_frame(self.categorical_features, frame)
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
            if not (has_text and "categorical_features" in vars(self)):
                raise
            way = "Or pass categorical_features='from_dtype' to take text as categories."
            raise ValueError(f"{error} {way}") from error

    def _learn_categories(self, X: Array, frame: ColumnTable | None) -> None:
        """Note which features of a training table are categorical; of a frame that is known."""
        categories = self._categories
        if frame is None:
            asked, names = self.categorical_features, vars(self).get("feature_names_in_")
            categories = Categories(asked, chosen(asked, X.shape[1], names))
            refuse_sparse_categories(X, categories, names)
        self._note_categories(categories, X.shape[1])

    def _note_categories(self, categories: Categories, n_features: int) -> None:
        """Note which features are categorical."""
        self._categories = categories
        if "categorical_features" in vars(self):
            self.is_categorical_ = np.zeros(n_features, dtype=bool)
            self.is_categorical_[list(categories.features)] = True

    def _fit(self, data: Data, settings: Settings) -> None:
        """Train, and set all learnt attributes in one assignment.

        An error or an interruption leaves the estimator as it was, with its earlier model whole.
        """
        self._train(self._prepared(data, settings, FitCheckpoint.of(self.checkpoint)), data)

    def _train(self, ready: Prepared, data: Data) -> None:
        """Train on what is prepared; see `_fit`."""
        learner, X, target = ready.learner, ready.X, ready.target
        n_classes = target.n_classes
        self._warn_of_targets(target, int(X.shape[0]))
        settings = self._observed(learner, data, ready.settings, target)
        outline = outline_of(settings, n_classes, X.shape[1], len(ready.shares))
        device = check_device(self.device)
        if settings.votes.kind == "newton":
            first, n_outputs = ready.shares[0].samples, settings.n_outputs(n_classes)
            settings.votes.warn_of_small_weights(*first.mean_weight, n_outputs)
        if ready.interactions.number != 0:
            task = Task(X, int(X.shape[0]), settings.objective(n_classes))
            have_compiled(task)  # pairs come after main effects
        with shares_kept(ready.kept, ready.shares, ready.splits, outline) as shares:
            trained = train_bags(X, shares, n_classes, settings, device=device)
        given = n_classes, settings, ready.interactions, target.scale
        pairs = learn_pairs(X, shares, trained, *given)
        fingerprint = None if ready.kept is None else ready.kept.fingerprint
        learnt = Learnt(trained, target, ready.splits, fingerprint, pairs)
        self._take_over(learner, learnt, settings)

    def _prepared(
        self, data: Data, settings: Settings, kept: FitCheckpoint | None = None
    ) -> Prepared:
        """What to train on, checked; the estimator itself is not changed."""
        learner = copy.copy(self)  # scikit-learn's validation writes into it
        if data.earlier is not None:
            refuse_other_categories(self.categorical_features, self._categories)
        X = learner._table(data.X, reset=data.earlier is None)
        names = vars(learner).get("feature_names_in_")
        numbers = category_numbers(X, learner._categories, names)
        learner._dtype = arrays.working_dtype(arrays.dtype_name(X))
        settings = learner._constrained(settings, data.earlier)
        settings = replace(settings, categorical=learner._categories.features)
        refuse_constrained_categories(settings)
        samples, target = self._samples_of(X, data)
        settings = self._of_target(settings, samples, target)
        asked = data.asked

        @functools.cache  # a checkpoint compares it, and then it is watched
        def watched() -> Array:
            assert asked.validation is not None
            rows = learner._table(asked.validation.X, name="X_val")
            warn_of_unseen_numbers(rows, numbers, names)
            return rows

        if kept is not None:
            dtype, monotone = arrays.dtype_name(X), settings.votes.monotone
            deciding = settings_of(self, learner._categories, dtype, monotone)
            of_data = fingerprints_of(X, data, watched, target)
            kept = kept.checked(deciding, of_data, names)
            asked = kept.asked(asked, self.random_state)
        shares, splits = shares_of(X, target, samples, watched, asked, data.earlier)
        given = self.interactions, int(X.shape[1]), names, settings.votes.monotone
        interactions = check_interactions(*given, quantity=settings.votes.quantity)
        return Prepared(learner, X, target, settings, shares, splits, interactions, kept)

    def _samples_of(self, X: Array, data: Data) -> tuple[Samples, TargetDomain]:
        """The samples of a checked table that have a weight, and what their targets may be.

        Raises
        ------
        ValueError, TypeError
            If targets or weights are not as described.
        """
        raise NotImplementedError

    def _warn_of_targets(self, target: TargetDomain, n_samples: int) -> None:
        """Warn of targets that are probably not meant."""

    def _of_target(self, settings: Settings, samples: Samples, target: TargetDomain) -> Settings:
        """The settings with what depends on the targets."""
        return settings

    def _constrained(self, settings: Settings, earlier: Sequence[Earlier] | None) -> Settings:
        """The settings with what depends on the features, which are known by now."""
        return settings

    def _take_over(self, learner: StumpEstimator, learnt: Learnt, settings: Settings) -> None:
        """Take over what was learnt; `learner` knows what was learnt from the table's columns."""
        found = _attributes(learner, learnt, settings)
        gone = (*_LEARNT_FROM_TABLE, _OF_CLUSTER)
        kept = {n: v for n, v in vars(self).items() if n not in gone}
        self.__dict__ = kept | found  # in one step, which no interruption can leave half done

    def _observed(
        self, learner: StumpEstimator, data: Data, settings: Settings, target: TargetDomain
    ) -> Settings:
        """The same settings, with an observer if the estimator has callbacks of scikit-learn's."""

        if not hasattr(self, "_skl_callbacks"):
            return settings

        def attributes(trained: Sequence[Trained]) -> dict[str, Any]:
            unknown = (None,) * len(trained)
            return _attributes(learner, Learnt(trained, target, unknown), settings)

        return replace(settings, observer=FitTasks(self, data, attributes))


class Prepared(NamedTuple):
    """What a fit is to train on.

    Attributes
    ----------
    learner : StumpEstimator
        A copy of the estimator that knows what was learnt from the table's columns.
    X : array (n_samples, n_features)
    target : TargetDomain
    settings : Settings
    shares : list of Share
        What each bag is trained on, and what it watches.
    splits : tuple of Split or None
        How the samples that each bag watches were chosen.
    interactions : Interactions
        Which pairs of features are learnt.
    kept : FitCheckpoint or None
        Its checkpoint.
    """

    learner: StumpEstimator
    X: Array
    target: TargetDomain
    settings: Settings
    shares: list[Share[Samples]]
    splits: tuple[Split | None, ...]
    interactions: Interactions
    kept: FitCheckpoint | None = None


class Learnt(NamedTuple):
    """The outcome of training each bag, what targets may be, which samples each bag held out, the
    fingerprint of the table in the form of a file, if it is known, and pairs of features."""

    trained: Sequence[Trained]
    target: TargetDomain
    splits: tuple[Split | None, ...]
    fingerprint: Mapping[str, Any] | None = None
    pairs: LearntPairs | None = None


def _attributes(learner: StumpEstimator, learnt: Learnt, settings: Settings) -> dict[str, Any]:
    """What a fitted estimator has; `learner` knows what was learnt from the table's columns."""
    trained, target, splits, fingerprint, pairs = learnt
    table = {n: v for n, v in vars(learner).items() if n in _LEARNT_FROM_TABLE}
    reasons = [run.stop_reason for bag in trained for run in bag.runs]
    record = record_of(learner, splits, reasons)
    before = learner.model_ if learner._goes_on else None
    model = _model_of(trained, target, table, pairs, before)
    if record is not None:
        known = {} if fingerprint is None else {recorded.FINGERPRINT: fingerprint}
        model = replace(model, details={**model.details, recorded.KEY: record, **known})
    classes = {"classes_": target.classes, "n_classes_": target.n_classes}
    return (
        table
        | (classes if target.n_classes else {})
        | {
            "device_": trained[0].route.place,
            "route_": trained[0].route,
            "model_": model,
            "_runs": tuple(run for bag in trained for run in bag.runs),
            "_objective": trained[0].objective,
            "_target": target,
            "_splits": splits,
            "n_estimators_": settings.n_rounds_of(target.n_classes),
        }
    )


def _model_of(
    trained: Sequence[Trained],
    target: TargetDomain,
    table: Mapping[str, Any],
    pairs: LearntPairs | None,
    before: StumpEnsemble | None,
) -> StumpEnsemble:
    """The model of a training, or the average of several, for what was learnt from the table.

    `before` is the model that a warm start goes on from.
    """
    names = table.get("feature_names_in_")
    encoding = table.get("_categories", Categories()).encoding
    members, bags = members_of([bag.members for bag in trained], target.scale)
    missing_learnt = np.any([bag.n_missing for bag in trained], axis=0)
    if before is not None and before.missing_learnt is not None:
        missing_learnt |= np.asarray(before.missing_learnt)
    return StumpEnsemble(
        members=members,
        n_features=table["n_features_in_"],
        classes=plain_labels(target.classes),
        feature_names=None if names is None else tuple(map(str, names)),
        missing_learnt=tuple(missing_learnt.tolist()),
        link=trained[0].objective.link,
        bags=bags,
        pairs=() if pairs is None else pairs.tables,
        moved=() if pairs is None else pairs.moved,
        details={} if encoding is None else {"encoding": encoding.as_details()},
    )


def _checked_output(name: str) -> str:
    if name not in ("default", "pandas", "polars"):
        raise ValueError(f"transform must be 'default', 'pandas' or 'polars'; got {name!r}.")
    return name
