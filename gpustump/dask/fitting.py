"""One fit on a cluster, from collections to rounds; however it ends, it leaves nothing behind.

bring       every partition to a worker, where it is checked and kept
learn       the classes and their weights, the dtype, how many samples there are
share out   the samples that each bag leaves out or early stopping watches, drawn as on one machine
join        each worker's partitions
train       on each share, one after the other: a worker's part of it becomes a shard; see `ground`
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from gpustump.boosting.pairs.learning import LearntPairs
from gpustump.boosting.rounds.bags import Share, train_each
from gpustump.boosting.rounds.batches import in_unit_of_target
from gpustump.boosting.rounds.logs import RunLog
from gpustump.boosting.rounds.smoothing import sampled_rows
from gpustump.boosting.rounds.training import Run, Samples, Settings, Trained, run_all
from gpustump.dask.categories import (
    KnownColumns,
    learnt,
    numbers_by_feature,
    plain_numbers,
    refuse_other_kinds,
    warn_of_unseen,
)
from gpustump.dask.classes import (
    check_watched_labels,
    check_watched_rows,
    classes_of,
    labels_of,
    union_of,
)
from gpustump.dask.conversation import Conversation
from gpustump.dask.ground import ClusterGround, HeldOutUnits
from gpustump.dask.pairs import learnt_here, refuse_large
from gpustump.dask.partitions import Collection, Summary
from gpustump.dask.shards import ByPart, ClusterLostError, DaskShards
from gpustump.data.fingerprint import Fingerprint, Leaves, joined
from gpustump.data.labels import plain_labels, warn_of_odd_classes
from gpustump.data.parameters import Interactions
from gpustump.data.readable import readable_bytes
from gpustump.data.weights import ClassWeight
from gpustump.engines.announcements import announce
from gpustump.engines.cluster.table import ClusterTable, ValueTypes
from gpustump.engines.route import Route
from gpustump.estimators.categorical import Categories
from gpustump.estimators.checkpointing import (
    TRAINED,
    WATCHED,
    FitCheckpoint,
    kept_shares,
    outline_of,
)
from gpustump.estimators.held_out import (
    Asked,
    Earlier,
    Note,
    Population,
    Split,
    Watching,
    drawn_shares,
)
from gpustump.estimators.targets import Quantity, TargetDomain
from gpustump.model.bags import averaged
from gpustump.model.ensemble import StumpEnsemble


class Kept(NamedTuple):
    """A checkpoint, and what it must have in common with a fit.

    Attributes
    ----------
    checkpoint : FitCheckpoint
    settings : callable
        From the dtype of the table's values to the settings that decide the model.
    names : sequence of str, or None
        Of the features.
    """

    checkpoint: FitCheckpoint
    settings: Callable[[str], dict[str, Any]]
    names: Sequence[str] | None


class OfQuantity(NamedTuple):
    """How the targets of a quantity are learnt.

    Attributes
    ----------
    learnt : callable
        From a `Quantity` to the samples as boosting learns them, and the scale of the targets.
    settings : callable
        From settings, these samples and their scale to settings that depend on them.
    """

    learnt: Callable[[Quantity], tuple[Samples, TargetDomain]]
    settings: Callable[[Settings, Samples, TargetDomain], Settings]


class Request(NamedTuple):
    """What a cluster is asked to do.

    Attributes
    ----------
    collection : Collection
    settings : Settings
    asked : Asked
        What each bag leaves out, and rows to watch that are passed to the fit: the collection holds
        them, too.
    earlier : sequence of Earlier, or None
        What a warm start of each bag goes on from.
    kind : str
        Of shards; see `engines.cluster.shards.shard_of`.
    class_weight : None, "balanced" or mapping
    observed : callable, optional
        From the settings and the target to settings with an observer.
    quantity : OfQuantity or None
        How the targets of a quantity are learnt; None for classes.
    kept : Kept or None
        The checkpoint.
    columns : KnownColumns
    decided : callable
        From settings and the categorical features to settings that hold them.
    interactions : Interactions
        Which pairs of features are learnt.
    """

    collection: Collection
    settings: Settings
    asked: Asked
    earlier: Sequence[Earlier] | None
    kind: str = "auto"
    class_weight: ClassWeight = None
    observed: Callable[[Settings, TargetDomain], Settings] = lambda settings, _: settings
    quantity: OfQuantity | None = None
    kept: Kept | None = None
    columns: KnownColumns = KnownColumns()
    decided: Callable[[Settings, Categories], Settings] = lambda settings, _: settings
    interactions: Interactions = Interactions(0)


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


class Fitted(NamedTuple):
    """What a fit returns.

    Attributes
    ----------
    trained : list of Trained
        Of each bag.
    target : TargetDomain
    splits : tuple of Split, Provided or None
        How the share of each bag was drawn.
    use : Use
    fingerprint : mapping or None
        Of the rows that were trained on, if there is a checkpoint.
    pairs : LearntPairs or None
    """

    trained: list[Trained]
    target: TargetDomain
    splits: tuple[Note, ...]
    use: Use
    fingerprint: Mapping[str, Any] | None = None
    pairs: LearntPairs | None = None


def trained_on(client: Any, request: Request) -> Fitted:
    """Train on a cluster.

    Parameters
    ----------
    client : distributed.Client
    request : Request

    Raises
    ------
    ValueError, TypeError
        If the data are not as `estimators.fit` describes.
    WorkerMemoryError
        If a worker's memory is too small for its share.
    ClusterLostError
        If workers or data are gone for good.
    """
    conversation = Conversation(client, f"gpustump-{uuid.uuid4().hex[:12]}")
    shards = DaskShards(conversation, request.collection, request.settings.resources.max_memory)
    try:
        with client.as_current():  # Dask's functions take the current client
            return _Fit.prepared(conversation, shards, request).train()
    finally:
        if client.status == "running":
            with contextlib.suppress(OSError):  # a cluster that is gone holds nothing
                shards.close()


@dataclass(frozen=True)
class _Job:
    """What is to be trained on a share; see `boosting.rounds.training.Job`."""

    settings: Settings
    n_classes: int
    earlier: Sequence[Run] | None
    logs: Sequence[RunLog] | None

    @property
    def n_outputs(self) -> int:
        return self.settings.n_outputs(self.n_classes)

    @property
    def n_runs(self) -> int:
        return self.settings.n_runs(self.n_classes)


@dataclass
class _Fit:
    """A fit whose rows have been brought to the workers that train on them.

    Attributes
    ----------
    settings : Settings
    target : TargetDomain
    shards : DaskShards
    types : ValueTypes
    n_features : int
    shares : list of Share
        For each bag what it leaves out.
    splits : tuple of Split, Provided or None
    route : Route
    conversation : Conversation
    checkpoint : FitCheckpoint or None
    categories : Categories
    quantity : _Quantities or None
        What is learnt of each partition, if it is a quantity.
    interactions : Interactions
    grounds : list of ClusterGround
        Those of the bags that have begun.
    said : int
        Bytes of messages and answers in all rounds.
    """

    settings: Settings
    target: TargetDomain
    shards: DaskShards
    types: ValueTypes
    n_features: int
    shares: list[Share[ByPart]]
    splits: tuple[Note, ...]
    route: Route
    conversation: Conversation
    checkpoint: FitCheckpoint | None
    categories: Categories
    quantity: _Quantities | None
    interactions: Interactions
    grounds: list[ClusterGround] = field(default_factory=list)
    said: int = 0

    @classmethod
    def prepared(cls, conversation: Conversation, shards: DaskShards, request: Request) -> _Fit:
        """Bring, check, share out and join all rows."""
        found = Summaries.of(shards.bring(), request.collection.n_trained)
        categories = _numbered(shards, found, request.columns)
        settings = request.decided(request.settings, categories)
        if not any(own.n_rows for own in found.trained.values()):
            raise ValueError("X has 0 sample(s) while a minimum of 1 is required.")
        checkpoint = _checked(shards, found, request)
        quantity = None
        if request.quantity is None:
            target = _classes(shards, found, request)
            settings.refuse_constrained_classes(target.n_classes)
        else:
            target, quantity = _Quantities.of(shards, found, request.quantity)
            settings = request.quantity.settings(settings, quantity.samples, target)
        types, n_features = _types_of(found.trained), _n_features_of(found.trained)
        watched_type, validation = types.coded, request.asked.validation
        if validation is not None:
            check_watched_rows(found.watched)
            if quantity is None:
                check_watched_labels(found.watched, target.classes, validation.scoring)
            watched_type = _types_of(found.watched).coded
            _refuse_other_features(_n_features_of(found.watched), n_features)
            shards.ask("set_aside", ByPart(dict.fromkeys(found.watched)))
        shares, splits = _shares_of(shards, target, request)
        joined = shards.ask("join", types.coded, watched_type, n_features, request.kind)
        route = _route(shards, len(found.trained), any(on_disk for _, on_disk in joined))
        limit = settings.n_rounds_of(target.n_classes)
        settings = replace(request.observed(settings, target), n_rounds=limit)
        return cls(
            settings, target, shards, types, n_features, shares, splits, route, conversation,
            checkpoint, categories, quantity, request.interactions,
        )  # fmt: skip

    def train(self) -> Fitted:
        """Train on the share of each bag."""
        shards, n_classes = self.shards, self.target.n_classes
        outline = outline_of(self.settings, n_classes, self.n_features, len(self.shares))
        if self.interactions.number:
            n_samples = sum(shards.ask("n_joined"))
            refuse_large(n_samples, self.n_features, np.dtype(self.types.compared).itemsize)
        try:
            with kept_shares(self.checkpoint, self.shares, self.splits, outline) as shares:
                trained = train_each(self._trained_on, shares, n_classes, self.settings)
            pairs = learnt_here(
                shards, self.shares, trained, n_classes, self.settings, self.interactions,
                self.types.compared,
            )  # fmt: skip
        except ClusterLostError as error:
            error.model = self._model_so_far()
            raise
        traffic = self.conversation.traffic
        n_rounds = sum(len(run.rounds) for bag in trained for run in bag.runs)
        use = Use(
            len({home.worker for home in shards.homes}), traffic.n_messages, traffic.sent,
            traffic.received, self.said / max(1, n_rounds) / len(shards.homes), shards.n_lost,
        )  # fmt: skip
        if self.settings.show_progress:
            announce(f"trained on {use}")
        fingerprint = None if self.checkpoint is None else self.checkpoint.fingerprint
        return Fitted(trained, self.target, self.splits, use, fingerprint, pairs)

    def _trained_on(self, share: Share[ByPart], settings: Settings) -> Trained:
        """Make the rounds of a bag."""
        ground = self._begun(share, settings)
        self.grounds.append(ground)
        job = _Job(settings, self.target.n_classes, share.earlier, share.logs)
        if settings.votes.kind == "newton" and len(self.grounds) == 1:
            settings.votes.warn_of_small_weights(*ground.mean_weight, job.n_outputs)
        n_copies = settings.search(job.n_classes).n_copies if ground.learnt is not None else 1
        exponent = functools.partial(ground.cluster.exponent, n_copies)
        votes = settings.votes.votes_in_units(exponent, job.n_outputs)
        traffic = self.conversation.traffic
        before = traffic.sent + traffic.received
        runs = run_all(ground, votes, job)
        self.said += traffic.sent + traffic.received - before
        return Trained(runs, votes.search(settings.learner), self.route, ground.table.n_missing)

    def _begun(self, share: Share[ByPart], settings: Settings) -> ClusterGround:
        """Have the workers make shards of a bag's share."""
        shards, types, n_classes = self.shards, self.types, self.target.n_classes
        shards.ask("take_share", share.samples)
        n_samples = shards.learn_sizes()
        sampled = None
        if settings.smoothing is not None:
            sampled = _sampled_values(shards, np.dtype(types.compared), self.n_features)
        planned = replace(settings.search(n_classes), learner="stump")
        table = ClusterTable.prepared(
            None, shards, types, planned, n_samples, categorical=settings.categorical
        )
        held_out = None if settings.stopping is None else HeldOutUnits.of(shards)
        learnt = None if self.quantity is None else self.quantity.without(share.samples)
        return ClusterGround(self.route, table, shards, n_classes, held_out, sampled, learnt)

    def _model_so_far(self) -> StumpEnsemble | None:
        """The model of the rounds that were done, the average if several bags have some; None if
        no bag has rounds for all classes."""
        n_runs, scale = self.settings.n_runs(self.target.n_classes), self.target.scale
        models = [[run.model for run in ground.started] for ground in self.grounds]
        whole = [own for own in models if len(own) == n_runs]
        if not whole:
            return None
        found: list[Any] = [tuple(model.members[0] for model in own) for own in whole]
        members: Any
        members, bags = averaged(found) if len(found) > 1 else (found[0], None)
        if scale is not None:
            members, bags = in_unit_of_target(members, bags, scale)
        encoding = self.categories.encoding
        return replace(
            whole[0][0],
            members=members,
            classes=plain_labels(self.target.classes),
            bags=bags,
            details={} if encoding is None else {"encoding": encoding.as_details()},
        )


class Summaries(NamedTuple):
    """The summaries of partitions by number: of those to train on, and of those to watch."""

    trained: dict[int, Summary]
    watched: dict[int, Summary]

    @classmethod
    def of(cls, summaries: Mapping[int, Summary], n_trained: int) -> Summaries:
        """From those of all partitions, of which the first `n_trained` are to be trained on."""
        return cls(
            {part: own for part, own in summaries.items() if part < n_trained},
            {part: own for part, own in summaries.items() if part >= n_trained},
        )


def _numbered(shards: DaskShards, found: Summaries, columns: KnownColumns) -> Categories:
    """Have all categories numbered as on one machine. Returns the categorical features."""
    told = [own.columns for own in found.trained.values() if own.columns]
    categories = columns.categories
    if categories is None and told:
        _n_features_of(found.trained)
        categories = learnt(columns.asked, told, named=columns.names is not None)
    if categories is None:
        return Categories(columns.asked)
    tables = (("X", found.trained), ("X_val", found.watched))
    for name, summaries in tables:
        for own in summaries.values():
            refuse_other_kinds(categories, own.columns, name)
    if not categories.features:
        return categories
    plain = ByPart(dict.fromkeys(found.trained, plain_numbers(categories, columns.names)))
    answers = shards.ask("number_categories", numbers_by_feature(categories), plain)
    unseen = {part: own for answer in answers for part, own in answer.items()}
    for _, summaries in tables:
        warn_of_unseen(categories, [unseen.get(part, {}) for part in sorted(summaries)])
    return categories


def _classes(shards: DaskShards, found: Summaries, request: Request) -> TargetDomain:
    """The classes of all partitions, whose labels become their numbers."""
    labels = labels_of(shards, found.trained, request.class_weight)
    classes = classes_of(labels, None if request.earlier is None else request.earlier[0])
    warn_of_odd_classes(classes, sum(own.n_rows for own in found.trained.values()))
    shards.ask("number_classes", classes)
    return TargetDomain(classes)


class _Quantities(NamedTuple):
    """Targets and weights of all samples of a quantity, which the leading process knows, too.

    The unit of the targets, their mean and its error follow from all of them, as on one machine.

    Attributes
    ----------
    samples : Samples
        As boosting learns them, partition by partition.
    places : dict of int to (int, int)
        For each partition its first sample, and the one behind its last.
    """

    samples: Samples
    places: dict[int, tuple[int, int]]

    @classmethod
    def of(
        cls, shards: DaskShards, found: Summaries, how: OfQuantity
    ) -> tuple[TargetDomain, _Quantities]:
        """Ask the workers for them, and have targets turned into what boosting learns."""
        answers = shards.ask("targets_by_part")
        by_part = {part: own for answer in answers for part, own in answer.items()}
        parts = sorted(part for part in by_part if part in found.trained)
        ends = np.cumsum([0, *(len(by_part[part][0]) for part in parts)]).tolist()
        if not ends[-1]:
            raise ValueError(
                "sample_weight is zero for every sample; at least one must be positive."
            )
        targets, weights = (
            np.concatenate([by_part[part][which] for part in parts]) for which in (0, 1)
        )
        samples, target = how.learnt(Quantity(targets, weights))
        shards.ask("scale_targets", target.scale)
        return target, cls(samples, dict(zip(parts, itertools.pairwise(ends), strict=True)))

    def without(self, left_out: ByPart) -> Samples:
        """All samples but some of each partition."""
        is_kept = np.ones(len(self.samples.weights), dtype=bool)
        for part, own in left_out.items():
            is_kept[self.places[part][0] + own] = False
        return self.samples.taken(np.flatnonzero(is_kept))


def _checked(shards: DaskShards, found: Summaries, request: Request) -> FitCheckpoint | None:
    """The checkpoint of a fit on these rows, if there is one."""
    kept, is_quantity = request.kept, request.quantity is not None
    if kept is None:
        return None
    _n_features_of(found.trained)
    data = {TRAINED: _fingerprint(shards, found.trained, is_quantity=is_quantity)}
    if found.watched:
        data[WATCHED] = _fingerprint(shards, found.watched, is_quantity=is_quantity)
    settings = kept.settings(_types_of(found.trained).compared)
    return kept.checkpoint.checked(settings, data, kept.names)


def _fingerprint(
    shards: DaskShards, summaries: dict[int, Summary], *, is_quantity: bool
) -> Fingerprint:
    """The fingerprint of the rows of some partitions."""
    parts = sorted(number for number, own in summaries.items() if own.n_rows)
    classes = None
    if not is_quantity:
        classes = union_of([summaries[number].counted[0] for number in parts])
    ends = np.cumsum([0, *(summaries[number].n_rows for number in parts)]).tolist()
    known = {number: (classes, row) for number, row in zip(parts, ends[:-1], strict=True)}
    leaves: dict[int, Leaves] = {}
    for answer in shards.ask("leaves", ByPart(known)):
        leaves |= answer
    names = () if classes is None else plain_labels(classes)
    return joined([leaves[number] for number in parts], names)


def _types_of(summaries: dict[int, Summary]) -> ValueTypes:
    """The dtypes that hold the values of all partitions."""
    compared = np.result_type(*{own.dtype for own in summaries.values() if own.dtype is not None})
    coded = "float32" if compared == np.float16 else str(compared)
    return ValueTypes(coded, str(compared))


def _n_features_of(summaries: dict[int, Summary]) -> int:
    """How many features all partitions have."""
    found = {own.n_features for own in summaries.values() if own.n_rows}
    if len(found) > 1:
        raise ValueError(f"the partitions of X differ in their number of features: {found}.")
    return found.pop()


def _refuse_other_features(n_watched: int, n_features: int) -> None:
    if n_watched != n_features:
        raise ValueError(f"X_val has {n_watched} features, and X has {n_features}.")


def _shares_of(
    shards: DaskShards, target: TargetDomain, request: Request
) -> tuple[list[Share[ByPart]], tuple[Note, ...]]:
    """What each bag leaves out, drawn as on one machine."""
    asked, whole = request.asked, Share[ByPart](ByPart(), None, None)
    if not any(asked.drawn):
        samples = population = None
    else:
        samples = _SamplesOfParts.of(shards)
        asked = asked.suiting(len(samples.classes), target.n_classes)
        population = Population(samples.classes, samples.rows, target.classes)

    def drawn(watching: Watching, earlier: Earlier | None) -> tuple[Share[ByPart], Split]:
        assert samples is not None
        assert population is not None
        _, watched, split = population.draw(watching, earlier)
        return whole._replace(samples=samples.by_part(watched)), split

    shares = drawn_shares(drawn, whole, asked, request.earlier)
    if population is not None:
        population.warn_of_lone_samples()
    return shares


class _SamplesOfParts(NamedTuple):
    """The samples of all partitions, in the order of one machine.

    Attributes
    ----------
    classes : ndarray (n_samples,) of int64
        Or targets as boosting learns them, float64.
    rows : ndarray (n_samples,) of int64, or None
        The row of each sample; None if all rows are samples.
    parts : list of int
        The numbers of the partitions that have rows.
    first : ndarray (n_parts + 1,) of int64
        The first sample of each, and how many there are.
    """

    classes: np.ndarray
    rows: np.ndarray | None
    parts: list[int]
    first: np.ndarray

    @classmethod
    def of(cls, shards: DaskShards) -> _SamplesOfParts:
        """Ask the workers."""
        found = {part: own for one in shards.ask("samples_by_part") for part, own in one.items()}
        parts = sorted(found)
        classes, own_rows, n_rows = zip(*(found[part] for part in parts), strict=True)
        rows = None
        if any(own is not None for own in own_rows):
            starts = np.cumsum([0, *n_rows[:-1]])
            numbered = zip(starts, classes, own_rows, strict=True)
            rows = np.concatenate(
                [
                    start + (np.arange(len(labels)) if own is None else own)
                    for start, labels, own in numbered
                ]
            ).astype(np.int64)
        return cls(np.concatenate(classes), rows, parts, np.cumsum([0, *map(len, classes)]))

    def by_part(self, samples: np.ndarray) -> ByPart:
        """For some of the samples, increasing, their numbers within each partition."""
        ends = np.searchsorted(samples, self.first)
        return ByPart(
            {
                part: samples[ends[n] : ends[n + 1]] - self.first[n]
                for n, part in enumerate(self.parts)
            }
        )


def _sampled_values(shards: DaskShards, dtype: np.dtype, n_features: int) -> np.ndarray:
    """The values between which smoothing rounds cut, of the rows that one machine would sample."""
    sizes = {part: own for answer in shards.ask("kept_by_part") for part, own in answer.items()}
    parts = sorted(sizes)
    first = np.cumsum([0, *(sizes[part] for part in parts)])
    rows = sampled_rows(int(first[-1]), n_features)
    ends = np.searchsorted(rows, first)
    chosen = ByPart({part: rows[ends[n] : ends[n + 1]] - first[n] for n, part in enumerate(parts)})
    found = {
        part: own for answer in shards.ask("values_of", chosen) for part, own in answer.items()
    }
    return np.concatenate([found[part].astype(dtype) for part in sorted(found)])


def _route(shards: DaskShards, n_parts: int, is_on_disk: bool) -> Route:
    """Where the rounds are made, in words."""
    homes = shards.homes
    n_workers = len({home.worker for home in homes})
    summary = f"{n_workers} workers" if n_workers > 1 else "one worker"
    reason = f"the data are in {n_parts} partitions there"
    if is_on_disk:
        reason += ", too large for memory: their values are in files"
    return Route("dask", "cluster", summary, reason)
