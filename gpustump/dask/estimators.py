"""The estimators for Dask: those of `gpustump`, whose tables are spread over the workers."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpustump.boosting.rounds import Callback
from gpustump.boosting.training import Settings
from gpustump.dask.categories import KnownColumns
from gpustump.dask.fitting import Kept, Request, Use, fit
from gpustump.dask.partitions import Collection, example_of, is_frame, with_whole_rows
from gpustump.dask.prediction import accuracy, applied, is_lazy
from gpustump.data.class_weights import check_class_weight
from gpustump.data.parameters import ClassScoring, Learner, MultiClass, VoteKind
from gpustump.estimators.adaboost import AdaBoostClassifier
from gpustump.estimators.boosted import BoostedClassifier
from gpustump.estimators.callbacks import with_callbacks
from gpustump.estimators.categorical import (
    Categories,
    is_by_type,
    refuse_constrained_categories,
    refuse_other_categories,
)
from gpustump.estimators.checkpointing import CheckpointName, FitCheckpoint, settings_of
from gpustump.estimators.fitted import Data, Learnt
from gpustump.estimators.logitboost import LogitBoostClassifier
from gpustump.estimators.target_domain import TargetDomain
from gpustump.estimators.validation_data import Validation, naming

_KINDS = {"auto": "auto", "cpu": "auto", "cuda": "cupy"}
"""The kind of shards for each device; see `engines.cluster.shards.shard_of`."""


class DaskClassifier(BoostedClassifier):
    """What the estimators for Dask share."""

    client: Any
    cluster_: Use
    _local: ClassVar[type[BoostedClassifier]]

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Train on a table that is spread over the workers of a cluster.

        Rows stay where they are: a partition that a worker holds is coded there. Partitions that
        are not computed yet are computed by the workers, one after the other, and only what the fit
        makes of them is kept.

        Parameters
        ----------
        X : dask array (n_samples, n_features) or dask frame
            Cut into partitions of rows in any way. NaN means missing.
        y : dask array, series or frame of one column (n_samples,)
            Partitioned as X. Two classes or more; a partition may lack some.
        sample_weight : dask array, series or frame of one column (n_samples,), optional
            Finite, not negative, not all zero.
        X_val, y_val, sample_weight_val : dask collections, optional
            Rows to watch, as in `AdaBoostClassifier.fit`, with partitions of their own.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data or a parameter is not as described; the message names it and what was found. A
            `CheckpointError`, if the file of `checkpoint` is not of such a fit, is a ValueError.
        WorkerMemoryError
            If a worker's memory is too small for its share of the table.
        ClusterLostError
            If there is no worker left, or if data are lost that Dask cannot compute again; its
            `model` holds the rounds that were done.

        Examples
        --------
        >>> import dask.array as da
        >>> from gpustump import AdaBoostClassifier
        >>> from gpustump.dask import DaskAdaBoostClassifier
        >>> X = da.from_array([[1], [2], [3], [4], [5]], chunks=(3, 1))
        >>> y = da.from_array([0, 0, 1, 0, 1], chunks=3)
        >>> clf = DaskAdaBoostClassifier(n_estimators=3).fit(X, y)  # doctest: +SKIP
        >>> local = AdaBoostClassifier(n_estimators=3).fit(X.compute(), y.compute())
        >>> clf.model_.digest() == local.model_.digest()  # doctest: +SKIP
        True
        """
        validation = Validation.of(X_val, y_val, sample_weight_val)
        settings, asked, earlier = self._asked_for(validation)
        checkpoint = self._checkpoint()
        if checkpoint is not None:
            asked = checkpoint.asked(asked, self.random_state)
        if settings.learner != "stump":
            raise ValueError(
                "weak_learner='interval' is not for clusters, which boost stumps. Take "
                f"weak_learner='stump', or {self._local.__name__} on one machine."
            )
        if self.device not in _KINDS:
            raise ValueError(f"device must be 'auto', 'cpu' or 'cuda'; got {self.device!r}.")
        learner = copy.copy(self)
        collection = learner._collected(X, y, sample_weight, reset=earlier is None)
        if validation is not None:
            with naming("X_val and y_val"):
                watched = learner._collected(*validation[:3], reset=False)
            collection = collection.watching(watched)
        settings = learner._constrained(settings, earlier)
        columns = KnownColumns(
            self.categorical_features,
            vars(learner).get("feature_names_in_"),
            None if earlier is None and is_frame(X) else learner._categories,
        )
        given = Data(X, y, sample_weight, self.device)
        request = Request(
            collection, settings, asked, earlier, _KINDS[self.device],
            check_class_weight(self.class_weight),
            lambda own, classes: self._observed(learner, given, own, TargetDomain(classes)),
            None if checkpoint is None else self._kept(checkpoint, learner, settings),
            columns, learner._decided,
        )  # fmt: skip
        found = fit(self.client_, request)
        learnt = Learnt(found.trained, TargetDomain(found.classes), found.splits, found.fingerprint)
        self._take_over(learner, learnt, settings)
        self.cluster_ = found.use
        return self

    def _kept(self, checkpoint: FitCheckpoint, learner: DaskClassifier, settings: Settings) -> Kept:
        """A checkpoint, and what it must have in common with this fit."""
        names = vars(learner).get("feature_names_in_")
        constraints = settings.votes.monotone

        def deciding(dtype: str) -> dict[str, Any]:
            return settings_of(self, learner._categories, dtype, constraints)

        return Kept(checkpoint, deciding, names)

    @property
    def client_(self) -> Any:
        """The Dask client: `client`, or the current one.

        Raises
        ------
        ValueError
            If there is none, or if it is closed or asynchronous.
        """
        from distributed import get_client

        try:
            client = get_client() if self.client is None else self.client
        except ValueError as error:
            raise ValueError(
                "there is no Dask client: make one first, client = distributed.Client(...), or "
                "pass client=..."
            ) from error
        if client.status != "running":
            raise ValueError(
                f"the Dask client is {client.status}; make a new one with distributed.Client(...)."
            )
        if client.asynchronous:
            raise ValueError(
                "the Dask client is asynchronous, and fit is not. Call it in a thread of its own, "
                "with a client of its own: await asyncio.to_thread(fit)."
            )
        return client

    def decision_function(self, X: Any) -> Any:
        """The score of each sample: lazily, with the partitions of X, if X is Dask's.

        Examples
        --------
        >>> import dask.array as da
        >>> from gpustump.dask import DaskAdaBoostClassifier
        >>> X = da.from_array([[1], [2], [3], [4], [5]], chunks=(3, 1))
        >>> y = da.from_array([0, 0, 1, 0, 1], chunks=3)
        >>> clf = DaskAdaBoostClassifier(n_estimators=3).fit(X, y)  # doctest: +SKIP
        >>> clf.decision_function(X).compute().round(3).tolist()  # doctest: +SKIP
        [-1.016, -1.016, 0.37, -0.929, 1.016]
        """
        if not is_lazy(X):
            return super().decision_function(X)
        n_classes = len(self._fitted().classes_)
        return self._applied(
            "decision_function", X, np.empty((0,) if n_classes == 2 else (0, n_classes))
        )

    def predict(self, X: Any) -> Any:
        """The label of each sample: lazily, with the partitions of X, if X is Dask's.

        Examples
        --------
        >>> import dask.array as da
        >>> from gpustump.dask import DaskAdaBoostClassifier
        >>> X = da.from_array([[1], [2], [3], [4], [5]], chunks=(3, 1))
        >>> y = da.from_array([0, 0, 1, 0, 1], chunks=3)
        >>> clf = DaskAdaBoostClassifier(n_estimators=3).fit(X, y)  # doctest: +SKIP
        >>> clf.predict(X).compute().tolist()  # doctest: +SKIP
        [0, 0, 1, 0, 1]
        """
        if not is_lazy(X):
            return super().predict(X)
        return self._applied("predict", X, self._fitted().classes_[:0])

    def predict_proba(self, X: Any) -> Any:
        """Class probabilities: lazily, with the partitions of X, if X is Dask's.

        Examples
        --------
        >>> import dask.array as da
        >>> from gpustump.dask import DaskLogitBoostClassifier
        >>> X = da.from_array([[1], [2], [3], [4], [5]], chunks=(3, 1))
        >>> y = da.from_array([0, 0, 1, 0, 1], chunks=3)
        >>> clf = DaskLogitBoostClassifier(n_estimators=10).fit(X, y)  # doctest: +SKIP
        >>> clf.predict_proba(X[:2]).compute().round(3).tolist()  # doctest: +SKIP
        [[0.693, 0.307], [0.693, 0.307]]
        """
        if not is_lazy(X):
            return super().predict_proba(X)
        return self._applied("predict_proba", X, np.empty((0, len(self._fitted().classes_))))

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of `predict_proba`.

        Examples
        --------
        >>> import dask.array as da
        >>> from gpustump.dask import DaskLogitBoostClassifier
        >>> X = da.from_array([[1], [2], [3], [4], [5]], chunks=(3, 1))
        >>> y = da.from_array([0, 0, 1, 0, 1], chunks=3)
        >>> clf = DaskLogitBoostClassifier(n_estimators=10).fit(X, y)  # doctest: +SKIP
        >>> clf.predict_log_proba(X[:2]).compute().round(3).tolist()  # doctest: +SKIP
        [[-0.366, -1.182], [-0.366, -1.182]]
        """
        if not is_lazy(X):
            return super().predict_log_proba(X)
        return self._applied("predict_log_proba", X, np.empty((0, len(self._fitted().classes_))))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The (weighted) share of samples that `predict` gets right, computed at once.

        Labels and weights are cut as X is, and checked, as in `fit`.

        Examples
        --------
        >>> import dask.array as da
        >>> from gpustump.dask import DaskAdaBoostClassifier
        >>> X = da.from_array([[1], [2], [3], [4], [5]], chunks=(3, 1))
        >>> y = da.from_array([0, 0, 1, 0, 1], chunks=3)
        >>> clf = DaskAdaBoostClassifier(n_estimators=3).fit(X, y)  # doctest: +SKIP
        >>> clf.score(X, y)  # doctest: +SKIP
        1.0
        """
        if not is_lazy(X):
            return super().score(X, y, sample_weight)
        rows = Collection.of(X, y, sample_weight, may_be_text=self._may_be_text)
        self._table(rows.example, reset=False)
        return accuracy(self.to_local(), rows)

    def to_local(self) -> Any:
        """The same fitted estimator without Dask; the model is shared.

        Examples
        --------
        >>> import dask.array as da
        >>> from gpustump.dask import DaskAdaBoostClassifier
        >>> X = da.from_array([[1], [2], [3], [4], [5]], chunks=(3, 1))
        >>> y = da.from_array([0, 0, 1, 0, 1], chunks=3)
        >>> clf = DaskAdaBoostClassifier(n_estimators=3).fit(X, y)  # doctest: +SKIP
        >>> clf.to_local()  # doctest: +SKIP
        AdaBoostClassifier(n_estimators=3)
        """
        fitted = self._fitted()
        local = self._local()
        known = vars(local)
        local.set_params(
            **{name: vars(fitted)[name] for name in local.get_params() if name in known}
        )
        left_out = {*known, "client", "cluster_"}
        for name, value in vars(fitted).items():
            if name not in left_out:
                setattr(local, name, value)
        return local

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return state | {"client": None}  # a connection cannot be pickled

    def __sklearn_clone__(self) -> Self:
        copied = type(self)(**self.get_params(deep=False))  # with the same client
        if hasattr(self, "_skl_callbacks"):  # as scikit-learn copies them
            copied._skl_callbacks = self._skl_callbacks
        return copied

    def _fitted(self) -> Self:
        check_is_fitted(self)
        return self

    def _applied(self, method: str, X: Any, like: np.ndarray) -> Any:
        self._table(example_of(X, may_be_text=self._may_be_text), reset=False)
        return applied(self.to_local(), method, X, like)

    @property
    def _may_be_text(self) -> bool:
        """Whether columns of frames may hold text."""
        return self.categorical_features is not None

    def _collected(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Collection:
        """The partitions; number and names of their features are learnt (`reset`) or compared."""
        if not reset:
            refuse_other_categories(self.categorical_features, self._categories)
            self._table(example_of(with_whole_rows(X), may_be_text=self._may_be_text))
            if is_frame(X) and "feature_names_in_" in vars(self):
                X = X[list(self.feature_names_in_)]
        found = Collection.of(X, y, sample_weight, may_be_text=self._may_be_text)
        self._table(found.example, reset=reset)
        if not self._may_be_text:
            return found
        by_type = is_by_type(self.categorical_features)
        return replace(found, categorical="from_dtype" if by_type else self._categories.features)

    def _decided(self, settings: Settings, categories: Categories) -> Settings:
        """Note the categorical features, and return the settings with them."""
        self._note_categories(categories, self.n_features_in_)
        settings = replace(settings, categorical=categories.features)
        refuse_constrained_categories(settings)
        return settings


class DaskAdaBoostClassifier(DaskClassifier, AdaBoostClassifier):
    """`gpustump.AdaBoostClassifier` on a Dask cluster: the same model for any number of workers.

    The model is that of a fit on one machine with the same rows in the same order, byte for byte,
    whatever the workers compute with, and even if some of them are lost meanwhile.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the current one.
    n_estimators, learning_rate, votes, multi_class, class_weight, random_state, n_iter_no_change
        As for `AdaBoostClassifier`.
    n_bags : int or None
        As for `AdaBoostClassifier`. One bag is trained after the other, on all workers.
    validation_fraction, tol, warm_start, verbose, callback, monotonic_cst
        As for `AdaBoostClassifier`. The callback is called in the process that calls `fit`.
    scoring : str
        As for `AdaBoostClassifier`. With "roc_auc", which compares pairs of samples, the scores of
        all held-out samples are sent in every round.
    weak_learner : "stump"
        Intervals cannot be trained on clusters.
    categorical_features : None, "from_dtype" or array-like
        As for `AdaBoostClassifier`. The categories of all partitions are numbered together.
    max_memory : int, str or None
        What a fit may take on each worker: 2_000_000_000, "500 MB". By default the worker's own
        memory limit. Values that do not fit go to files in the worker's local directory.
    device : "auto", "cpu" or "cuda"
        What shards compute with: the CPU's kernels with a worker's threads ("auto" and "cpu"), or
        the array API on CuPy, on a worker's GPU.
    checkpoint : None, str, path-like or Checkpoint
        As for `AdaBoostClassifier`: a file of the process that calls `fit`. A fit may go on from
        the file of another cluster, or of one machine.

    Attributes
    ----------
    client_ : distributed.Client
    cluster_ : Use
        How many workers held rows, the messages and bytes that were sent, how many bytes that was
        for each worker and round, and how often a worker was lost.
    model_, classes_, rounds_, stop_reasons_, n_iter_, held_out_scores_, feature_importances_
        As for `AdaBoostClassifier`, and so are all others. `to_local()` gives the plain estimator.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from gpustump.dask import DaskAdaBoostClassifier
    >>> client = Client(n_workers=2, threads_per_worker=1)  # doctest: +SKIP
    >>> X = da.random.default_rng(0).normal(size=(100_000, 10), chunks=(10_000, -1))
    >>> y = X[:, 0] > 0
    >>> clf = DaskAdaBoostClassifier(n_estimators=10).fit(X, y)  # doctest: +SKIP
    >>> clf.score(X, y)  # doctest: +SKIP
    1.0
    >>> clf.cluster_.n_workers  # doctest: +SKIP
    2
    """

    _local = AdaBoostClassifier

    def __init__(
        self,
        *,
        client: Any = None,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        votes: VoteKind = "discrete",
        multi_class: MultiClass = "one_vs_rest",
        weak_learner: Learner = "stump",
        categorical_features: Any = None,
        class_weight: Any = None,
        n_bags: int | None = 1,
        random_state: Any = None,
        n_iter_no_change: int | None = None,
        validation_fraction: float = 0.1,
        scoring: ClassScoring = "loss",
        tol: float = 0.0,
        warm_start: bool = False,
        verbose: int = 0,
        callback: Callback | None = None,
        monotonic_cst: Any = None,
        max_memory: int | str | None = None,
        device: str = "auto",
        checkpoint: CheckpointName = None,
    ) -> None:
        super().__init__(
            n_estimators=n_estimators,
            learning_rate=learning_rate,
            votes=votes,
            multi_class=multi_class,
            weak_learner=weak_learner,
            categorical_features=categorical_features,
            class_weight=class_weight,
            n_bags=n_bags,
            random_state=random_state,
            n_iter_no_change=n_iter_no_change,
            validation_fraction=validation_fraction,
            scoring=scoring,
            tol=tol,
            warm_start=warm_start,
            verbose=verbose,
            callback=callback,
            monotonic_cst=monotonic_cst,
            max_memory=max_memory,
            device=device,
            checkpoint=checkpoint,
        )
        self.client = client


class DaskLogitBoostClassifier(DaskClassifier, LogitBoostClassifier):
    """`gpustump.LogitBoostClassifier` on a Dask cluster: the same model for any number of workers.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the current one.
    n_estimators, learning_rate, l2_regularization, multi_class, class_weight, n_bags, random_state
        As for `LogitBoostClassifier`.
    n_iter_no_change, validation_fraction, tol, warm_start, verbose, callback, monotonic_cst
        As for `LogitBoostClassifier`.
    smoothing_rounds : int
        As for `LogitBoostClassifier`.
    categorical_features, scoring, max_memory, device, checkpoint
        As for `DaskAdaBoostClassifier`.

    Attributes
    ----------
    client_, cluster_
        As for `DaskAdaBoostClassifier`.
    model_, classes_, rounds_, stop_reasons_, n_iter_, held_out_scores_, feature_importances_
        As for `LogitBoostClassifier`, and so are all others. `to_local()` gives the plain one.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from gpustump.dask import DaskLogitBoostClassifier
    >>> client = Client(n_workers=2, threads_per_worker=1)  # doctest: +SKIP
    >>> X = da.from_array([[1], [2], [3], [4], [5]], chunks=(3, 1))
    >>> y = da.from_array([0, 0, 1, 0, 1], chunks=3)
    >>> clf = DaskLogitBoostClassifier(n_estimators=10).fit(X, y)  # doctest: +SKIP
    >>> clf.predict_proba(X[:2]).compute().round(3).tolist()  # doctest: +SKIP
    [[0.693, 0.307], [0.693, 0.307]]
    """

    _local = LogitBoostClassifier

    def __init__(
        self,
        *,
        client: Any = None,
        n_estimators: int | None = None,
        learning_rate: float = 0.2,
        l2_regularization: float | None = 3.0,
        smoothing_rounds: int = 0,
        multi_class: MultiClass = "shared",
        categorical_features: Any = None,
        class_weight: Any = None,
        n_bags: int | None = 1,
        random_state: Any = None,
        n_iter_no_change: int | None = None,
        validation_fraction: float = 0.1,
        scoring: ClassScoring = "neg_log_loss",
        tol: float = 0.0,
        warm_start: bool = False,
        verbose: int = 0,
        callback: Callback | None = None,
        monotonic_cst: Any = None,
        max_memory: int | str | None = None,
        device: str = "auto",
        checkpoint: CheckpointName = None,
    ) -> None:
        super().__init__(
            n_estimators=n_estimators,
            learning_rate=learning_rate,
            l2_regularization=l2_regularization,
            smoothing_rounds=smoothing_rounds,
            multi_class=multi_class,
            categorical_features=categorical_features,
            class_weight=class_weight,
            n_bags=n_bags,
            random_state=random_state,
            n_iter_no_change=n_iter_no_change,
            validation_fraction=validation_fraction,
            scoring=scoring,
            tol=tol,
            warm_start=warm_start,
            verbose=verbose,
            callback=callback,
            monotonic_cst=monotonic_cst,
            max_memory=max_memory,
            device=device,
            checkpoint=checkpoint,
        )
        self.client = client
