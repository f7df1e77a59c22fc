"""Estimators of `gpustump` on Dask collections: `fit` on a cluster, and lazy predictions."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpustump.boosting.rounds.training import Samples, Settings
from gpustump.dask.categories import KnownColumns
from gpustump.dask.fitting import Kept, OfQuantity, Request, trained_on
from gpustump.dask.partitions import Collection, blocks_of, example_of, is_frame, with_whole_rows
from gpustump.dask.prediction import accuracy, applied, r2
from gpustump.data.parameters import check_quantity_loss
from gpustump.data.weights import check_class_weight
from gpustump.estimators.base import Data, Learnt
from gpustump.estimators.boosters import BoostedClassifier, BoostedEstimator
from gpustump.estimators.callbacks import with_callbacks
from gpustump.estimators.categorical import (
    Categories,
    is_by_type,
    refuse_constrained_categories,
    refuse_other_categories,
)
from gpustump.estimators.checkpointing import FitCheckpoint, settings_of
from gpustump.estimators.held_out import Validation, naming
from gpustump.estimators.regressors import StumpBoostingRegressor
from gpustump.estimators.targets import Quantity, TargetDomain

_KINDS = {"auto": "auto", "cpu": "auto", "cuda": "cupy"}
"""The kind of shards for each device; see `engines.cluster.shards.shard_of`."""

_Estimator = TypeVar("_Estimator", bound=BoostedEstimator)


@with_callbacks
def fit(
    estimator: _Estimator,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    X_val: Any = None,
    y_val: Any = None,
    sample_weight_val: Any = None,
    client: Any = None,
) -> _Estimator:
    """Fit an estimator to a table that is spread over the workers of a cluster.

    The model is that of a fit on one machine with the same rows in the same order, byte for byte,
    for any number of workers, and even if some of them are lost meanwhile.

    Rows stay where they are: a partition that a worker holds is coded there. Partitions that are
    not computed yet are computed by the workers, one after the other, and only what the fit makes
    of them is kept.

    Parameters
    ----------
    estimator : AdaBoostClassifier, LogitBoostClassifier, StumpBoostingRegressor or a glass box
        Its parameters mean what they do on one machine, with these exceptions. `weak_learner` must
        be "stump". `device` says what workers compute with: the CPU's kernels with a worker's
        threads ("auto" and "cpu"), or the array API on CuPy, on a worker's GPU ("cuda").
        `max_memory` is what a fit may take on each worker, by default the worker's own limit;
        values that do not fit go to files in its local directory. `n_jobs` has no effect. With
        `scoring="roc_auc"`, which compares pairs of samples, the scores of all held-out samples are
        sent in every round. `callback` and `checkpoint` belong to the process that calls `fit`.
        With `interactions`, which the glass boxes have by default, pairs of features are learnt in
        that process: all values, classes and weights are sent there after the last round. If its
        memory is too small for them, take `interactions=0`.
    X : dask array (n_samples, n_features) or dask frame
        Cut into partitions of rows in any way. NaN means missing.
    y : dask array, series or frame of one column (n_samples,)
        Partitioned as X. Classes, of which a partition may lack some, or a quantity. Targets and
        weights of a quantity, 16 bytes a sample, are sent to the process that calls `fit`. For
        counts with an exposure pass counts / exposure, and weights times exposure: the model is
        that of `fit(X, counts, weights, exposure=exposure)`.
    sample_weight : dask array, series or frame of one column (n_samples,), optional
        Finite, not negative, not all zero.
    X_val, y_val, sample_weight_val : dask collections, optional
        Rows to watch, as in `AdaBoostClassifier.fit`, with partitions of their own.
    client : distributed.Client, optional
        By default the current one.

    Returns
    -------
    estimator
        The same, fitted. Its attribute `cluster_` says how the cluster was used, as a `Use`.

    Raises
    ------
    ValueError, TypeError
        If data or a parameter is not as described; the message names it and what was found. A
        `CheckpointError`, if the file of `checkpoint` is not of such a fit, is a ValueError.
    WorkerMemoryError
        If a worker's memory is too small for its share of the table.
    ClusterLostError
        If there is no worker left, or if data are lost that Dask cannot compute again; its `model`
        holds the rounds that were done.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> import gpustump.dask
    >>> from gpustump import AdaBoostClassifier
    >>> client = Client(n_workers=2, threads_per_worker=1)  # doctest: +SKIP
    >>> X = da.from_array([[1], [2], [3], [4], [5]], chunks=(3, 1))
    >>> y = da.from_array([0, 0, 1, 0, 1], chunks=3)
    >>> there = AdaBoostClassifier(n_estimators=3)
    >>> gpustump.dask.fit(there, X, y).cluster_.n_workers  # doctest: +SKIP
    2
    >>> here = AdaBoostClassifier(n_estimators=3).fit(X.compute(), y.compute())
    >>> there.model_.digest() == here.model_.digest()  # doctest: +SKIP
    True
    """
    _check_estimator(estimator)
    validation = Validation.of(X_val, y_val, sample_weight_val)
    settings, asked, earlier = estimator._asked_for(validation)
    checkpoint = estimator._checkpoint()
    if checkpoint is not None:
        asked = checkpoint.asked(asked, estimator.random_state)
    if settings.learner != "stump":
        raise ValueError(
            "weak_learner='interval' is not for clusters, which boost stumps. Take "
            "weak_learner='stump', or fit on one machine."
        )
    if estimator.device not in _KINDS:
        raise ValueError(f"device must be 'auto', 'cpu' or 'cuda'; got {estimator.device!r}.")
    learner = copy.copy(estimator)
    collection = _collected(learner, X, y, sample_weight, reset=earlier is None)
    if validation is not None:
        with naming("X_val and y_val"):
            watched = _collected(learner, *validation[:3], reset=False)
        collection = collection.watching(watched)
    settings = learner._constrained(settings, earlier)
    columns = KnownColumns(
        estimator._asked_categories(),
        vars(learner).get("feature_names_in_"),
        None if earlier is None and is_frame(X) else learner._categories,
    )
    given = Data(X, y, sample_weight, estimator.device)

    def decided(settings: Settings, categories: Categories) -> Settings:
        learner._note_categories(categories, learner.n_features_in_)
        settings = replace(settings, categorical=categories.features)
        refuse_constrained_categories(settings)
        return settings

    request = Request(
        collection, settings, asked, earlier, _KINDS[estimator.device],
        check_class_weight(getattr(estimator, "class_weight", None)),
        lambda own, target: estimator._observed(learner, given, own, target),
        _of_quantity(estimator, earlier),
        None if checkpoint is None else _kept(checkpoint, estimator, learner, settings),
        columns, decided,
        learner._interactions(learner.n_features_in_, vars(learner).get("feature_names_in_")),
    )  # fmt: skip
    found = trained_on(_running(client), request)
    learnt = Learnt(found.trained, found.target, found.splits, found.fingerprint, found.pairs)
    estimator._take_over(learner, learnt, settings)
    estimator.cluster_ = found.use
    return estimator


def decision_function(estimator: Any, X: Any) -> Any:
    """The score of each sample of a Dask collection: lazily, with its partitions.

    Parameters
    ----------
    estimator : classifier of gpustump
        Fitted, on a cluster or on one machine.
    X : dask array (n_samples, n_features) or dask frame

    Returns
    -------
    dask array (n_samples,) or (n_samples, n_classes) of float64

    Examples
    --------
    >>> import dask.array as da
    >>> import gpustump.dask
    >>> from gpustump import AdaBoostClassifier
    >>> clf = AdaBoostClassifier(n_estimators=3).fit([[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1])
    >>> X = da.from_array([[1], [2], [3]], chunks=(2, 1))
    >>> gpustump.dask.decision_function(clf, X).compute().round(3).tolist()
    [-1.016, -1.016, 0.37]
    """
    n_classes = len(_of_classes(estimator).classes_)
    like = np.empty((0,) if n_classes == 2 else (0, n_classes))
    return _applied(estimator, "decision_function", X, like)


def predict(estimator: Any, X: Any) -> Any:
    """The label, or the quantity, of each sample of a Dask collection: lazily, with its partitions.

    Parameters are those of `decision_function`.

    Examples
    --------
    >>> import dask.array as da
    >>> import gpustump.dask
    >>> from gpustump import AdaBoostClassifier
    >>> clf = AdaBoostClassifier(n_estimators=3).fit([[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1])
    >>> gpustump.dask.predict(clf, da.from_array([[1], [2], [3]], chunks=(2, 1))).compute().tolist()
    [0, 0, 1]
    """
    like = getattr(_fitted(estimator), "classes_", np.empty(0))[:0]
    return _applied(estimator, "predict", X, like)


def predict_proba(estimator: Any, X: Any) -> Any:
    """Class probabilities of a Dask collection's samples: lazily, with its partitions.

    Parameters are those of `decision_function`.

    Examples
    --------
    >>> import dask.array as da
    >>> import gpustump.dask
    >>> from gpustump import LogitBoostClassifier
    >>> clf = LogitBoostClassifier(n_estimators=10).fit([[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1])
    >>> X = da.from_array([[1], [2], [3]], chunks=(2, 1))
    >>> gpustump.dask.predict_proba(clf, X).compute()[:1].round(3).tolist()
    [[0.693, 0.307]]
    """
    n_classes = len(_of_classes(estimator).classes_)
    return _applied(estimator, "predict_proba", X, np.empty((0, n_classes)))


def score(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """The (weighted) share of a Dask collection's samples that are predicted right, at once.

    Of a quantity it is R2, for which targets and predictions of all samples are gathered. Targets
    and weights are cut as X is, and checked, as in `fit`.

    Examples
    --------
    >>> import dask.array as da
    >>> import gpustump.dask
    >>> from gpustump import AdaBoostClassifier
    >>> X = da.from_array([[1], [2], [3], [4], [5]], chunks=(3, 1))
    >>> y = da.from_array([0, 0, 1, 0, 1], chunks=3)
    >>> clf = AdaBoostClassifier(n_estimators=3).fit(X.compute(), y.compute())
    >>> gpustump.dask.score(clf, X, y)
    1.0
    """
    own = _fitted(estimator)
    rows = Collection.of(X, y, sample_weight, may_be_text=_may_be_text(own))
    own._table(rows.example, reset=False)
    return (accuracy if isinstance(own, BoostedClassifier) else r2)(_light(own), rows)


def _check_estimator(estimator: Any) -> None:
    if not isinstance(estimator, BoostedEstimator):
        raise TypeError(
            "estimator must be an AdaBoostClassifier, a LogitBoostClassifier, a "
            "StumpBoostingRegressor or a glass box; got "
            f"{type(estimator).__name__}, which is fitted on one machine."
        )


def _of_quantity(estimator: Any, earlier: Any) -> OfQuantity | None:
    """How the targets of a regressor are learnt; None for a classifier."""
    if not isinstance(estimator, StumpBoostingRegressor):
        return None

    def learnt(quantity: Quantity) -> tuple[Samples, TargetDomain]:
        return estimator._learnt(quantity, quantity.targets, earlier)

    return OfQuantity(learnt, estimator._of_target)


def _fitted(estimator: Any) -> Any:
    _check_estimator(estimator)
    check_is_fitted(estimator)
    return estimator


def _of_classes(estimator: Any) -> Any:
    if not isinstance(_fitted(estimator), BoostedClassifier):
        raise TypeError(
            f"this {type(estimator).__name__} predicts a quantity: take gpustump.dask.predict."
        )
    return estimator


def _applied(estimator: Any, method: str, X: Any, like: np.ndarray) -> Any:
    blocks_of(X, "X")  # refuses what is not Dask's
    estimator._table(example_of(X, may_be_text=_may_be_text(estimator)), reset=False)
    return applied(_light(estimator), method, X, like)


def _light(estimator: Any) -> Any:
    """A copy for workers, which need the model only: no callback, no checkpoint."""
    found = copy.copy(estimator)
    found.callback = found.checkpoint = None
    vars(found).pop("_skl_callbacks", None)
    return found


def _may_be_text(estimator: Any) -> bool:
    """Whether columns of frames may hold text."""
    return estimator._asked_categories() is not None


def _collected(learner: Any, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Collection:
    """The partitions; number and names of their features are learnt (`reset`) or compared."""
    may_be_text = _may_be_text(learner)
    if not reset:
        refuse_other_categories(learner._asked_categories(), learner._categories)
        learner._table(example_of(with_whole_rows(X), may_be_text=may_be_text))
        if is_frame(X) and "feature_names_in_" in vars(learner):
            X = X[list(learner.feature_names_in_)]
    found = Collection.of(X, y, sample_weight, may_be_text=may_be_text)
    learner._table(found.example, reset=reset)
    if isinstance(learner, StumpBoostingRegressor):
        found = replace(found, loss=check_quantity_loss(learner.loss))
    if not may_be_text:
        return found
    by_type = is_by_type(learner._asked_categories())
    return replace(found, categorical="from_dtype" if by_type else learner._categories.features)


def _kept(checkpoint: FitCheckpoint, estimator: Any, learner: Any, settings: Settings) -> Kept:
    """A checkpoint, and what it must have in common with this fit."""
    names = vars(learner).get("feature_names_in_")
    constraints = settings.votes.monotone

    def deciding(dtype: str) -> dict[str, Any]:
        return settings_of(estimator, learner._categories, dtype, constraints)

    return Kept(checkpoint, deciding, names)


def _running(client: Any) -> Any:
    """The Dask client that is given, or the current one.

    Raises
    ------
    ValueError
        If there is none, or if it is closed or asynchronous.
    """
    from distributed import get_client

    try:
        client = get_client() if client is None else client
    except ValueError as error:
        raise ValueError(
            "there is no Dask client: make one first, client = distributed.Client(...), or pass "
            "client=..."
        ) from error
    if client.status != "running":
        raise ValueError(
            f"the Dask client is {client.status}; make a new one with distributed.Client(...)."
        )
    if client.asynchronous:
        raise ValueError(
            "the Dask client is asynchronous, and fit is not. Call it in a thread of its own, with "
            "a client of its own: await asyncio.to_thread(fit)."
        )
    return client
