"""One fit on a cluster, from collections to a model; however it ends, it leaves nothing behind.

bring       every partition to a worker, where it is checked and kept
learn       the categories, the classes or the unit of the targets, the dtype
share out   the samples that each bag leaves out or early stopping watches, drawn as on one machine
join        each worker's partitions
train       on each share, one after the other: a worker's part of it becomes a shard; see `rounds`
pairs       of features are learnt here, of all rows
"""

from __future__ import annotations

import contextlib
import copy
import functools
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gpustump.boosting.pairs.learning import LearntPairs, learn_pairs
from gpustump.boosting.rounds.bags import Share, train_each
from gpustump.boosting.rounds.batches import members_of
from gpustump.boosting.rounds.smoothing import sampled_rows
from gpustump.boosting.rounds.training import HeldOutRows, Samples, Settings, Trained, run_all
from gpustump.dask.categories import (
    Asked,
    learnt,
    numbers_by_feature,
    plain_numbers,
    refuse_other_kinds,
    warn_of_unseen,
)
from gpustump.dask.messages import Messages
from gpustump.dask.partitions import (
    ByPart,
    Collection,
    Reading,
    Summary,
    check_rows,
    check_watched_labels,
    example_of,
    is_frame,
    union_of,
    with_whole_rows,
)
from gpustump.dask.prediction import check_estimator, may_be_text
from gpustump.dask.rounds import ClusterSamples, HeldOutUnits
from gpustump.dask.shards import ClusterLostError, DaskShards
from gpustump.dask.sparse import fit_on_one_worker, holds_sparse
from gpustump.data.fingerprint import Fingerprint, Leaves, joined
from gpustump.data.labels import plain_labels
from gpustump.data.parameters import Interactions, check_interactions
from gpustump.data.readable import readable_bytes
from gpustump.data.weights import PRODUCT, check_class_weight, class_factors
from gpustump.engines.announcements import announce
from gpustump.engines.cluster.bins import code_all
from gpustump.engines.cluster.shards import MOST_CUTS
from gpustump.engines.cluster.table import ClusterTable, ValueTypes
from gpustump.engines.contract import Resources
from gpustump.engines.cpu.runtime.host_memory import has_room
from gpustump.engines.route import Route
from gpustump.estimators.base import Data, Learnt
from gpustump.estimators.boosters import BoostedEstimator
from gpustump.estimators.callbacks import with_callbacks
from gpustump.estimators.categorical import (
    Categories,
    is_by_type,
    refuse_constrained_categories,
    refuse_other_categories,
)
from gpustump.estimators.checkpointing import (
    TRAINED,
    WATCHED,
    FitCheckpoint,
    outline_of,
    settings_of,
    shares_kept,
)
from gpustump.estimators.held_out import (
    Earlier,
    Population,
    Split,
    Validation,
    drawn_shares,
    naming,
    refuse_other_classes,
)
from gpustump.estimators.regressors import StumpBoostingRegressor
from gpustump.estimators.targets import Offset, Quantity, TargetDomain
from gpustump.model.ensemble import StumpEnsemble

_SAMPLE_BYTES, _VALUE_BYTES = 64, 6
"""About how many bytes a sample takes here while pairs are learnt, and each of its values besides
its own bytes."""

_Estimator = TypeVar("_Estimator", bound=BoostedEstimator)

_Share = Share[np.ndarray | None]
"""Which of all samples a bag leaves out, a flag for each; None for nothing."""


class Use(NamedTuple):
    """How a fit used the cluster.

    Attributes
    ----------
    n_workers : int
        Workers that hold rows.
    n_messages : int
        To all workers together.
    sent, received : int
        Bytes of messages, and of answers.
    round_bytes : float
        Bytes that a worker received and sent in a round, on average.
    n_lost : int
        How often a worker was lost and its rows were prepared again.

    Examples
    --------
    >>> from gpustump.dask import Use
    >>> print(Use(2, 30, sent=46_788, received=1_619_460, round_bytes=93_115.0, n_lost=0))
    2 workers, 93.1 kB a worker and round
    """

    n_workers: int
    n_messages: int
    sent: int
    received: int
    round_bytes: float
    n_lost: int

    def __str__(self) -> str:
        workers = "one worker" if self.n_workers == 1 else f"{self.n_workers} workers"
        lost = f"; {self.n_lost} lost and replaced" if self.n_lost else ""
        return f"{workers}, {readable_bytes(round(self.round_bytes))} a worker and round{lost}"


@with_callbacks
def fit(
    estimator: _Estimator,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    init_score: Any = None,
    exposure: Any = None,
    X_val: Any = None,
    y_val: Any = None,
    sample_weight_val: Any = None,
    init_score_val: Any = None,
    exposure_val: Any = None,
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
        threads ("auto" and "cpu"), or the CUDA kernels on a worker's GPU ("cuda").
        `max_memory` is what a fit may take on each worker, by default the worker's own limit;
        values that do not fit go to files in its local directory. `n_jobs` has no effect. With
        `scoring="roc_auc"`, which compares pairs of samples, the scores of all held-out samples are
        sent in every round. `callback` and `checkpoint` belong to the process that calls `fit`.
        With `interactions`, which the glass boxes have by default, pairs of features are learnt in
        that process: all values, classes and weights are sent there after the last round. If its
        memory is too small for them, take `interactions=0`.
    X : dask array (n_samples, n_features) or dask frame
        Cut into partitions of rows in any way. NaN means missing. A sparse table, an
        array whose blocks are sparse matrices or arrays of SciPy or a frame of sparse columns, is
        put together on one worker, still sparse, with all that belongs to it. That worker trains
        with all of its threads; what it warns of is in its log. A `callback` or a `checkpoint` is
        refused.
    y : dask array, series or frame of one column (n_samples,)
        Partitioned as X. Classes, of which a partition may lack some, or a quantity. Targets and
        weights of a quantity, 16 bytes a sample, are sent to the process that calls `fit`.
    sample_weight : dask array, series or frame of one column (n_samples,), optional
        Finite, not negative, not all zero.
    init_score, exposure : dask array, series or frame of one column (n_samples,), optional
        Of quantities, as in `StumpBoostingRegressor.fit`; of classes only if X is sparse.
    X_val, y_val, sample_weight_val, init_score_val, exposure_val : dask collections, optional
        Rows to watch, as in `AdaBoostClassifier.fit`, with partitions of their own.
    client : distributed.Client, optional
        By default the current one.

    Returns
    -------
    estimator
        The same, fitted. Its attribute `cluster_` says how the cluster was used, as a `Use`; what
        Dask itself sends and repeats, as it does for a sparse table, is not counted.

    Raises
    ------
    ValueError, TypeError
        If data or a parameter is not as described; the message names it and what was found. A
        `CheckpointError`, if the file of `checkpoint` is not of such a fit, is a ValueError.
    WorkerMemoryError
        If a worker's memory is too small for its share of the table.
    DeviceError
        If a worker cannot use its GPU, or if that is too small.
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
    check_estimator(estimator)
    offset, other = Offset(init_score, exposure), Offset(init_score_val, exposure_val, "_val")
    watched = Validation.of(X_val, y_val, sample_weight_val, other, offset)
    given = Data(X, y, sample_weight, offset=offset)
    if holds_sparse(X):
        fit_on_one_worker(estimator, given, watched, _running(client))
        estimator.cluster_ = Use(1, 0, 0, 0, 0.0, 0)
        return estimator
    names = [*offset.given, *other.given]
    if names and not isinstance(estimator, StumpBoostingRegressor):
        raise ValueError(f"{names[0]} is for quantities here; of classes, for one machine.")
    own = _Fit(estimator, given, watched)
    client = _running(client)
    messages = Messages(client, f"gpustump-{uuid.uuid4().hex[:12]}")
    reading, max_memory = _reading(own.learner), own.settings.resources.max_memory
    shards = DaskShards(messages, own.collection, reading, max_memory)
    try:
        with client.as_current():  # Dask's functions take the current client
            own.prepare(shards)
            found = own.learn()
    finally:
        if client.status == "running":
            with contextlib.suppress(OSError):  # a cluster that is gone holds nothing
                shards.close()
    estimator._take_over(own.learner, found, own.settings)
    estimator.cluster_ = own.use()
    return estimator


class _Fit:
    """One fit: what it is given, and step by step what it has learnt of the table.

    Parameters
    ----------
    estimator : BoostedEstimator
    given : Data
        As `fit` was called with.
    watched : Validation or None
    """

    def __init__(self, estimator: Any, given: Data, watched: Validation | None) -> None:
        self.estimator, self.given = estimator, given
        self.is_quantity = isinstance(estimator, StumpBoostingRegressor)
        settings, asked, self.earlier = estimator._asked_for(watched)
        self.checkpoint = FitCheckpoint.of(estimator.checkpoint)
        if self.checkpoint is not None:
            asked = self.checkpoint.asked(asked, estimator.random_state)
        self.asked = asked
        if settings.learner != "stump":
            raise ValueError(
                "weak_learner='interval' is not for clusters, which boost stumps. Take "
                "weak_learner='stump', or fit on one machine."
            )
        if estimator.device not in ("auto", "cpu", "cuda"):
            raise ValueError(f"device must be 'auto', 'cpu' or 'cuda'; got {estimator.device!r}.")
        self.device = "cuda" if estimator.device == "cuda" else "cpu"
        if self.device == "cuda" and settings.votes.quantity == "quantile":
            raise ValueError("loss='quantile' is not for workers with GPUs: take device='cpu'.")
        self.class_weight = check_class_weight(estimator.class_weight)
        self.learner = copy.copy(estimator)  # it learns the table's columns
        is_new = self.earlier is None
        rows = (given.X, given.y, given.sample_weight, given.offset)
        collection = _collected(self.learner, *rows, reset=is_new)
        if watched is not None:
            with naming("X_val and y_val"):
                other = _collected(self.learner, *watched[:3], watched.offset, reset=False)
            collection = collection.watching(other)
        self.collection = collection
        self.settings: Settings = self.learner._constrained(settings, self.earlier)
        self.n_features: int = self.learner.n_features_in_
        self.names = vars(self.learner).get("feature_names_in_")
        self.interactions: Interactions = check_interactions(
            estimator.interactions, self.n_features, self.names, self.settings.votes.monotone,
            quantity=self.settings.votes.quantity,
        )  # fmt: skip
        self.begun: list[ClusterSamples] = []  # of the bags so far
        self.round_bytes = 0

    def prepare(self, shards: DaskShards) -> None:
        """Bring, check, share out and join all rows."""
        self.shards, n_trained = shards, self.collection.n_trained
        found = shards.bring()
        trained = {part: own for part, own in found.items() if part < n_trained}
        watched = {part: own for part, own in found.items() if part >= n_trained}
        categories = self._numbered(trained, watched)
        check_rows(trained)
        self.types = _types_of(trained)
        self.learner._note_categories(categories, self.n_features)
        settings = replace(self.settings, categorical=categories.features)
        refuse_constrained_categories(settings)
        self._check_checkpoint(settings, trained, watched)
        samples = self._quantities(trained) if self.is_quantity else self._classes(trained)
        self.estimator._warn_of_targets(self.target, sum(own.n_rows for own in trained.values()))
        settings = self.estimator._of_target(settings, samples, self.target)
        self.samples = samples if self.is_quantity else None
        watched_type = None
        if self.asked.validation is not None:
            check_rows(watched, "_val")
            if not self.is_quantity:
                check_watched_labels(watched, self.target.classes, self.asked.scoring)
            watched_type = _types_of(watched).coded
        self.n_watched = sum(own.n_samples for own in watched.values())
        self.shares, self.splits = self._shares(trained)
        answers = shards.ask(
            "join", n_trained, self.types.coded, watched_type, self.n_features, self.device
        )
        own = sorted((part, n) for sizes, _ in answers for part, n in sizes.items())
        self.sizes = dict(own)  # how many samples each partition has
        self.n_samples = sum(self.sizes.values())
        self.route = _route(shards, n_trained, is_on_disk=any(on_disk for _, on_disk in answers))
        settings = self.estimator._observed(self.learner, self.given, settings, self.target)
        self.settings = replace(settings, n_rounds=settings.n_rounds_of(self.target.n_classes))

    def learn(self) -> Learnt:
        """Train on the share of each bag, and learn pairs."""
        n_classes = self.target.n_classes
        outline = outline_of(self.settings, n_classes, self.n_features, len(self.shares))
        if self.interactions.number:
            self._refuse_large()
        try:
            with shares_kept(self.checkpoint, self.shares, self.splits, outline) as shares:
                trained = train_each(self._trained_on, shares, n_classes, self.settings)
            pairs = self._pairs(trained)
        except ClusterLostError as error:
            error.model = self._model_so_far()
            raise
        self.n_rounds = sum(len(run.rounds) for bag in trained for run in bag.runs)
        if self.settings.show_progress:
            announce(f"trained on {self.use()}")
        fingerprint = None if self.checkpoint is None else self.checkpoint.fingerprint
        return Learnt(trained, self.target, self.splits, fingerprint, pairs)

    def use(self) -> Use:
        """How the cluster was used."""
        traffic, homes = self.shards.traffic, self.shards.homes
        return Use(
            len({home.worker for home in homes}), traffic.n_messages, traffic.sent,
            traffic.received, self.round_bytes / max(1, self.n_rounds) / len(homes),
            self.shards.n_lost,
        )  # fmt: skip

    def _numbered(self, trained: dict[int, Summary], watched: dict[int, Summary]) -> Categories:
        """Have all categories numbered as on one machine. Returns the categorical features."""
        asked = self.estimator.categorical_features
        told = [own.columns for own in trained.values() if own.columns]
        categories: Categories = self.learner._categories
        if self.earlier is None and is_frame(self.given.X):  # its partitions decide
            if not told:
                return Categories(asked)
            categories = learnt(asked, told, named=self.names is not None)
        tables = (("X", trained), ("X_val", watched))
        for name, summaries in tables:
            for own in summaries.values():
                refuse_other_kinds(categories, own.columns, name)
        if not categories.features:
            return categories
        plain = self.collection.n_trained, plain_numbers(categories, self.names)
        known = numbers_by_feature(categories)
        unseen = self.shards.ask_by_part("number_categories", known, *plain)
        for name, summaries in tables:
            warn_of_unseen(name, categories, [unseen.get(part, {}) for part in sorted(summaries)])
        return categories

    def _check_checkpoint(
        self, settings: Settings, trained: dict[int, Summary], watched: dict[int, Summary]
    ) -> None:
        """Check that the checkpoint, if there is one, is of a fit on these rows."""
        if self.checkpoint is None:
            return
        data = {TRAINED: self._fingerprint(trained)}
        if watched:
            data[WATCHED] = self._fingerprint(watched)
        own, learner = self.types.compared, self.learner
        deciding = settings_of(self.estimator, learner._categories, own, settings.votes.monotone)
        self.checkpoint = self.checkpoint.checked(deciding, data, self.names)

    def _fingerprint(self, summaries: dict[int, Summary]) -> Fingerprint:
        """The fingerprint of the rows of some partitions."""
        parts = sorted(number for number, own in summaries.items() if own.n_rows)
        classes = None
        if not self.is_quantity:
            classes = union_of([summaries[number].counted[0] for number in parts])
        ends = np.cumsum([0, *(summaries[number].n_rows for number in parts)]).tolist()
        known = {number: (classes, row) for number, row in zip(parts, ends, strict=False)}
        leaves: dict[int, Leaves] = self.shards.ask_by_part("leaves", ByPart(known))
        names = () if classes is None else plain_labels(classes)
        return joined([leaves[number] for number in parts], names)

    def _classes(self, trained: dict[int, Summary]) -> Samples:
        """Learn the classes of all partitions, whose labels become their numbers."""
        labels = [own.labels for own in trained.values()]
        if self.class_weight is not None:
            labels = self._weighed(trained)
            if not any(map(len, labels)):
                raise ValueError(
                    f"{PRODUCT} is zero for every sample; at least one must be positive."
                )
        classes = union_of(labels)
        if self.earlier is not None:
            refuse_other_classes(classes, self.earlier[0])
        self.shards.ask("number_classes", classes)
        self.target = TargetDomain(classes)
        return Samples(None, np.empty(0, dtype=np.int64), np.empty(0))  # they are elsewhere

    def _weighed(self, trained: dict[int, Summary]) -> list[np.ndarray]:
        """Multiply the weights of classes with those of all samples. Returns the distinct labels
        that are left in each partition."""
        counted = [own.counted for own in trained.values() if own.n_rows]
        labels = union_of([known for known, _ in counted])
        counts = np.zeros(len(labels), dtype=np.int64)
        for known, n_rows in counted:
            counts[np.searchsorted(labels, known)] += n_rows
        factors = class_factors(self.class_weight, labels, counts.tolist())
        message = self.collection.n_trained, labels, factors
        return [own for answer in self.shards.ask("weigh_labels", *message) for own in answer]

    def _quantities(self, trained: dict[int, Summary]) -> Samples:
        """Learn the unit of the targets from all of them, and have them turned into what boosting
        learns. Returns all samples, which the leading process knows, too."""
        targets, weights = (
            np.concatenate(list(self._of_samples(name).values())) for name in ("labels", "weights")
        )
        quantity = Quantity(targets, weights)
        samples: Samples
        samples, self.target = self.estimator._learnt(quantity, targets, self.earlier)
        self.shards.ask("scale_targets", self.target.scale)
        return samples

    def _of_samples(self, name: str) -> dict[int, Any]:
        """An attribute of the `Rows` of each partition to train on."""
        return self.shards.ask_by_part("samples_by_part", self.collection.n_trained, name)

    def _shares(self, trained: dict[int, Summary]) -> tuple[list[_Share], tuple[Split | None, ...]]:
        """What each bag leaves out, drawn as on one machine: a flag for each sample; None for
        nothing."""
        asked, population = self.asked, None
        whole: _Share = Share(None, None, None)
        if asked.fraction is not None:
            targets = np.concatenate(list(self._of_samples("labels").values()))
            asked = asked.suiting(len(targets), self.target.n_classes)
            rows = _rows_of(self._of_samples("rows"), trained)
            population = Population(targets, rows, self.target.classes)

        def drawn(seed: int | None, earlier: Earlier | None) -> tuple[_Share, Split]:
            assert population is not None
            _, left_out, split = population.draw(asked, seed, earlier)
            is_left_out = np.zeros(len(population.targets), dtype=bool)
            is_left_out[left_out] = True
            return whole._replace(samples=is_left_out), split

        shares = drawn_shares(drawn, whole, asked, self.earlier)
        if population is not None:
            population.warn_of_lone_samples()
        return shares

    def _trained_on(self, share: _Share, settings: Settings) -> Trained:
        """Make the rounds of a bag."""
        own = self._begun(share.samples, settings)
        self.begun.append(own)
        n_classes = self.target.n_classes
        n_outputs = settings.n_outputs(n_classes)
        if settings.votes.kind == "newton" and len(self.begun) == 1:
            settings.votes.warn_of_small_weights(*own.mean_weight, n_outputs)
        n_copies = 1 if self.samples is None else settings.objective(n_classes).n_copies
        exponent = functools.partial(own.cluster.exponent, n_copies)
        votes = settings.votes.votes_in_units(exponent, n_outputs)
        before = self.shards.traffic.n_bytes
        runs = run_all(own, votes, settings, n_classes, share.earlier, share.logs)
        self.round_bytes += self.shards.traffic.n_bytes - before
        return Trained(runs, votes.objective(settings.learner), self.route, own.table.n_missing)

    def _begun(self, left_out: np.ndarray | None, settings: Settings) -> ClusterSamples:
        """Have the workers make shards of all samples but those that a bag leaves out."""
        shards, n_classes = self.shards, self.target.n_classes
        own = ByPart() if left_out is None else ByPart.of(left_out, self.sizes)
        shards.ask("take_share", own, settings.categorical)
        kept = None if left_out is None else np.flatnonzero(~left_out)
        n_samples = self.n_samples if kept is None else len(kept)
        sampled = None
        if settings.smoothing is not None:  # the rows that one machine would take
            rows = sampled_rows(n_samples, self.n_features)
            chosen = np.zeros(self.n_samples, dtype=bool)
            chosen[rows if kept is None else kept[rows]] = True
            sampled, _ = self._rows(ByPart.of(chosen, self.sizes))
        planned = replace(settings.objective(n_classes), learner="stump")
        most = MOST_CUTS[self.device]
        bins = code_all(shards, n_samples, planned, categorical=settings.categorical, max_cuts=most)
        table, held_out = ClusterTable(None, shards, bins, self.types), None
        if settings.stopping is not None:
            held_out = HeldOutUnits.of(shards, self.n_watched or self.n_samples - n_samples)
        samples = self.samples
        if samples is not None and kept is not None:
            samples = samples.taken(kept)
        return ClusterSamples(self.route, table, shards, n_classes, held_out, sampled, samples)

    def _refuse_large(self) -> None:
        """Refuse to learn pairs of more samples than this process has room for."""
        value_bytes = np.dtype(self.types.compared).itemsize + _VALUE_BYTES
        needed = self.n_samples * (self.n_features * value_bytes + _SAMPLE_BYTES)
        if not has_room(needed):
            raise ValueError(
                f"interactions need all rows in the process that calls fit, and its memory has no "
                f"room for {readable_bytes(needed)}. Take interactions=0, or call fit where there "
                "is more."
            )

    def _pairs(self, trained: Sequence[Trained]) -> LearntPairs | None:
        """Pairs of features, learnt by this process of all rows as one machine learns them.

        A turn of many pairs would take a message for each of them, so the samples come to where the
        turns are made: each value once, beside classes and weights.
        """
        if not self.interactions.number:
            return None
        settings, watched = self.settings, None
        X, samples = self._rows(None)
        if self.asked.validation is not None:
            other, rows = self._rows(None, are_watched=True)
            watched = HeldOutRows(replace(rows, rows=None), other)
        shares: list[Share[Samples]] = []
        for left_out, *_ in self.shares:
            own, held_out = samples, watched
            if left_out is not None:
                own = samples.taken(np.flatnonzero(~left_out))
                if held_out is None and settings.stopping is not None:
                    held_out = HeldOutRows(samples.taken(np.flatnonzero(left_out)))
            shares.append(Share(own, held_out, None))
        unlimited = replace(settings, resources=Resources())  # its limit is the workers'
        given = self.target.n_classes, unlimited, self.interactions, self.target.scale
        return learn_pairs(X, shares, trained, *given)

    def _rows(
        self, chosen: ByPart | None, *, are_watched: bool = False
    ) -> tuple[np.ndarray, Samples]:
        """The values of all partitions, one after the other, and all their samples; or those that
        are flagged."""
        by_part = self.shards.ask_by_part("rows", are_watched, chosen)
        values, classes, weights = map(np.concatenate, zip(*by_part.values(), strict=True))
        samples = Samples(np.arange(len(weights)), classes, weights)
        return values.astype(self.types.compared, copy=False), samples

    def _model_so_far(self) -> StumpEnsemble | None:
        """The model of the rounds that were done, the average if several bags have some; None if
        no bag has rounds for all classes."""
        n_runs, scale = self.settings.n_runs(self.target.n_classes), self.target.scale
        models = [[run.model for run in own.started] for own in self.begun]
        whole = [own for own in models if len(own) == n_runs]
        if not whole:
            return None
        found = [tuple(model.members[0] for model in own) for own in whole]
        members, bags = members_of(found, scale)
        encoding = self.learner._categories.encoding
        return replace(
            whole[0][0],
            members=members,
            classes=plain_labels(self.target.classes),
            bags=bags,
            details={} if encoding is None else {"encoding": encoding.as_details()},
        )


def _collected(
    learner: Any, X: Any, y: Any, sample_weight: Any, offset: Offset, *, reset: bool
) -> Collection:
    """The partitions; number and names of their features are learnt (`reset`) or compared."""
    if not reset:
        refuse_other_categories(learner.categorical_features, learner._categories)
    example = example_of(with_whole_rows(X), may_be_text=may_be_text(learner))
    learner._table(example, reset=reset)
    if is_frame(X) and "feature_names_in_" in vars(learner):
        X = X[list(learner.feature_names_in_)]
    return Collection.of(X, y, sample_weight, offset)


def _reading(learner: Any) -> Reading:
    """How partitions are read, once the columns are known."""
    categorical: Asked | None = None
    if may_be_text(learner):
        by_type = is_by_type(learner.categorical_features)
        categorical = "from_dtype" if by_type else learner._categories.features
    loss = learner.loss if isinstance(learner, StumpBoostingRegressor) else None
    return Reading(learner.n_features_in_, categorical, loss)


def _types_of(summaries: dict[int, Summary]) -> ValueTypes:
    """The dtypes that hold the values of all partitions."""
    compared = np.result_type(*{own.dtype for own in summaries.values() if own.dtype is not None})
    coded = "float32" if compared == np.float16 else str(compared)
    return ValueTypes(coded, str(compared))


def _rows_of(own: dict[int, np.ndarray | None], summaries: dict[int, Summary]) -> np.ndarray | None:
    """The row of each sample in the whole table; None if all rows are samples.

    Parameters
    ----------
    own : dict from numbers of partitions to ndarray of int64, or None
        The rows in the partition that are samples; None for all.
    summaries : dict
    """
    if all(rows is None for rows in own.values()):
        return None
    found, first = [], 0
    for part, rows in own.items():
        n_rows = summaries[part].n_rows
        found.append(first + (np.arange(n_rows) if rows is None else rows))
        first += n_rows
    return np.concatenate(found)


def _route(shards: DaskShards, n_parts: int, *, is_on_disk: bool) -> Route:
    """Where the rounds are made, in words."""
    n_workers = len({home.worker for home in shards.homes})
    summary = f"{n_workers} workers" if n_workers > 1 else "one worker"
    reason = f"the data are in {n_parts} partitions there"
    if is_on_disk:
        reason += ", too large for memory: their values are in files"
    return Route("dask", "cluster", summary, reason)


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
    if client.status != "running" or client.asynchronous:
        how = "asynchronous" if client.asynchronous else client.status
        raise ValueError(
            f"the Dask client is {how}; fit needs one that is running and not asynchronous. Make "
            "one with distributed.Client(...), in a thread of its own if need be."
        )
    return client
