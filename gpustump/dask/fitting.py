"""One fit on a cluster, from collections to rounds; however it ends, it leaves nothing behind.

bring       every partition to a worker, where it is checked and kept
learn       the classes and their weights, the dtype, how many samples there are
hold out    the samples that early stopping watches, drawn as on one machine, or passed to the fit
join, code  each worker's rows into a shard
rounds      see `ground`
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gpustump.boosting.run_logs import RunLog
from gpustump.boosting.smoothing import CutPlaces, sampled_rows
from gpustump.boosting.training import Run, Settings, Trained, run_all
from gpustump.dask.classes import check_watched_labels, classes_of, labels_of, union_of
from gpustump.dask.conversation import Conversation
from gpustump.dask.ground import ClusterGround, HeldOutUnits
from gpustump.dask.partitions import Collection, Summary
from gpustump.dask.shards import ByPart, ClusterLostError, DaskShards
from gpustump.data.class_weights import ClassWeight
from gpustump.data.fingerprint import Fingerprint, Leaves, joined
from gpustump.data.labels import plain_labels
from gpustump.data.readable import readable_bytes
from gpustump.engines.announcements import announce
from gpustump.engines.cluster.table import ClusterTable, ValueTypes
from gpustump.engines.contract import Search
from gpustump.engines.route import Route
from gpustump.estimators.checkpointing import TRAINED, WATCHED, FitCheckpoint, outline_of
from gpustump.estimators.held_out_split import Earlier, Population, Provided, Split, Watching
from gpustump.estimators.validation_data import Validation, noted, unjudged
from gpustump.model.ensemble import StumpEnsemble


class Kept(NamedTuple):
    """A checkpoint, and what it has to have in common with a fit.

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


class Request(NamedTuple):
    """What is asked for.

    Attributes
    ----------
    collection : Collection
    settings : Settings
    watching : Watching or None
        What early stopping draws.
    earlier : Earlier or None
        What a warm start goes on from.
    kind : str
        Of shards; see `engines.cluster.shards.shard_of`.
    class_weight : None, "balanced" or mapping
    validation : Validation or None
        Rows to watch that are passed to the fit. The collection holds them, too.
    observed : callable, optional
        From the settings and the classes to settings with an observer.
    kept : Kept or None
        The checkpoint.
    """

    collection: Collection
    settings: Settings
    watching: Watching | None
    earlier: Earlier | None
    kind: str = "auto"
    class_weight: ClassWeight = None
    validation: Validation | None = None
    observed: Callable[[Settings, np.ndarray], Settings] = lambda settings, _: settings
    kept: Kept | None = None


class Use(NamedTuple):
    """What a fit took of the cluster.

    Attributes
    ----------
    n_workers : int
        That hold rows.
    n_messages : int
        To all workers together.
    sent, received : int
        Bytes of messages, and of answers.
    round_bytes : float
        What a worker received and answered in a round, on average.
    n_lost : int
        How often a worker was lost and its rows were prepared again.
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
    trained : Trained
    classes : ndarray (n_classes,)
    split : Split, Provided or None
        Which samples were watched.
    use : Use
    fingerprint : mapping or None
        Of the rows that were trained on, if there is a checkpoint.
    """

    trained: Trained
    classes: np.ndarray
    split: Split | Provided | None
    use: Use
    fingerprint: Mapping[str, Any] | None = None


def fit(client: Any, request: Request) -> Fitted:
    """Train on a cluster.

    Parameters
    ----------
    client : distributed.Client
    request : Request

    Raises
    ------
    ValueError, TypeError
        If the data are not as a fit wants them.
    WorkerMemoryError
        If a worker's memory is too small for its share.
    ClusterLostError
        If workers or data are gone for good.
    """
    conversation = Conversation(client, f"gpustump-{uuid.uuid4().hex[:12]}")
    shards = DaskShards(conversation, request.collection, request.settings.resources.max_memory)
    try:
        with client.as_current():  # Dask's functions take the current client
            return _Job.prepared(conversation, shards, request).train()
    finally:
        if client.status == "running":
            with contextlib.suppress(OSError):  # a cluster that is gone holds nothing
                shards.close()


@dataclass
class _Job:
    """A fit whose rows are prepared; see `boosting.training.Job`."""

    settings: Settings
    n_classes: int
    earlier: Sequence[Run] | None
    ground: ClusterGround
    classes: np.ndarray
    split: Split | Provided | None
    votes: Any
    conversation: Conversation
    checkpoint: FitCheckpoint | None
    logs: Sequence[RunLog] | None = None

    @property
    def n_outputs(self) -> int:
        return self.settings.n_outputs(self.n_classes)

    @property
    def n_runs(self) -> int:
        return self.settings.n_runs(self.n_classes)

    @classmethod
    def prepared(cls, conversation: Conversation, shards: DaskShards, request: Request) -> _Job:
        """Bring, check, split, join and code all rows."""
        found = Summaries.of(shards.bring(), request.collection.n_trained)
        checkpoint = _checked(shards, found, request.kept)
        labels = labels_of(shards, found.trained, request.class_weight)
        classes = classes_of(labels, request.earlier)
        request.settings.refuse_constrained_classes(len(classes))
        shards.ask("number_classes", classes)
        split = _parted(shards, found.watched, classes, request)
        types, n_features = _types_of(found.trained), _n_features_of(found.trained)
        places = None
        if request.settings.smoothing is not None:
            places = _places_of(shards, np.dtype(types.compared), n_features)
        watched_type = types.coded
        if request.validation is not None:
            watched_type = _types_of(found.watched).coded
            _refuse_other_features(_n_features_of(found.watched), n_features)
        joined = shards.ask("join", types.coded, watched_type, n_features, request.kind)
        n_samples = shards.learn_sizes()
        n_classes = len(classes)
        limit = request.settings.n_rounds_of(n_classes)
        settings = replace(request.observed(request.settings, classes), n_rounds=limit)
        n_outputs = settings.n_outputs(n_classes)
        planned = Search("stump", settings.votes.kind, n_outputs)
        table = ClusterTable.prepared(None, shards, types, planned, n_samples)
        votes = settings.votes.votes_in_units(table.exponent, n_outputs)
        ground = ClusterGround(
            _route(shards, len(found.trained), any(on_disk for _, on_disk in joined)),
            table, shards, n_classes,
            None if split is None else HeldOutUnits.of(shards), places,
        )  # fmt: skip
        earlier = None if request.earlier is None else request.earlier.runs
        if request.validation is not None:
            earlier = unjudged(earlier)
        return cls(
            settings, n_classes, earlier, ground, classes, split, votes, conversation, checkpoint
        )

    def train(self) -> Fitted:
        """Make the rounds."""
        traffic, shards = self.conversation.traffic, self.ground.shards
        before = traffic.sent + traffic.received
        try:
            with self._keeping():
                runs = run_all(self.ground, self.votes, self)
        except ClusterLostError as error:
            error.model = self._model_so_far()
            raise
        said = traffic.sent + traffic.received - before
        n_rounds = sum(len(run.rounds) for run in runs)
        use = Use(
            len({home.worker for home in shards.homes}), traffic.n_messages, traffic.sent,
            traffic.received, said / max(1, n_rounds) / len(shards.homes), shards.n_lost,
        )  # fmt: skip
        if self.settings.show_progress:
            announce(f"trained on {use}")
        search = self.votes.search(self.settings.learner)
        trained = Trained(runs, search, self.ground.route, self.ground.table.n_missing)
        fingerprint = None if self.checkpoint is None else self.checkpoint.fingerprint
        return Fitted(trained, self.classes, self.split, use, fingerprint)

    @contextlib.contextmanager
    def _keeping(self) -> Iterator[None]:
        """Keep the rounds in the checkpoint, if there is one."""
        if self.checkpoint is None:
            yield
            return
        n_features = self.ground.table.n_features
        outline = outline_of(self.settings, self.n_classes, n_features, n_bags=1)
        with self.checkpoint.keeping([self.split], outline) as (bag,):
            self.logs = bag.runs
            yield

    def _model_so_far(self) -> StumpEnsemble | None:
        """The model of the rounds that were done; None if a class has none yet."""
        models = [boosting.model for boosting in self.ground.started]
        if len(models) < self.n_runs:
            return None
        return replace(
            models[0],
            members=tuple(model.members[0] for model in models),
            classes=plain_labels(self.classes),
        )


class Summaries(NamedTuple):
    """What the partitions are like: those to train on, and those to watch."""

    trained: dict[int, Summary]
    watched: dict[int, Summary]

    @classmethod
    def of(cls, summaries: Mapping[int, Summary], n_trained: int) -> Summaries:
        """Of all partitions, of which the first ones are to be trained on."""
        return cls(
            {part: own for part, own in summaries.items() if part < n_trained},
            {part: own for part, own in summaries.items() if part >= n_trained},
        )


def _checked(shards: DaskShards, found: Summaries, kept: Kept | None) -> FitCheckpoint | None:
    """The checkpoint of a fit on these rows, if there is one."""
    if kept is None or not any(own.n_rows for own in found.trained.values()):
        return None  # a fit without rows is refused in any case
    _n_features_of(found.trained)
    data = {TRAINED: _fingerprint(shards, found.trained)}
    if found.watched:
        data[WATCHED] = _fingerprint(shards, found.watched)
    settings = kept.settings(_types_of(found.trained).compared)
    return kept.checkpoint.checked(settings, data, kept.names)


def _fingerprint(shards: DaskShards, summaries: dict[int, Summary]) -> Fingerprint:
    """The fingerprint of the rows of some partitions."""
    parts = sorted(number for number, own in summaries.items() if own.n_rows)
    classes = union_of([summaries[number].counted[0] for number in parts])
    ends = np.cumsum([0, *(summaries[number].n_rows for number in parts)]).tolist()
    known = {number: (classes, row) for number, row in zip(parts, ends[:-1], strict=True)}
    leaves: dict[int, Leaves] = {}
    for answer in shards.ask("leaves", ByPart(known)):
        leaves |= answer
    return joined([leaves[number] for number in parts], plain_labels(classes))


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


def _parted(
    shards: DaskShards, watched: dict[int, Summary], classes: np.ndarray, request: Request
) -> Split | Provided | None:
    """Set the samples aside that are watched, if any are."""
    validation, earlier = request.validation, request.earlier
    if request.watching is not None:
        return _hold_out(shards, classes, request.watching, earlier)
    if validation is None:
        return None
    note = noted(validation, earlier)
    check_watched_labels(watched, classes, validation.scoring)
    shards.ask("hold_out", ByPart(dict.fromkeys(watched)))
    return note


def _hold_out(
    shards: DaskShards, classes: np.ndarray, watching: Watching, earlier: Earlier | None
) -> Split:
    """Draw the samples that are watched, as on one machine, and set them aside."""
    parts = {part: own for answer in shards.ask("samples_by_part") for part, own in answer.items()}
    numbers = sorted(parts)
    sizes = [len(parts[part][0]) for part in numbers]
    has_all = all(parts[part][1] is None for part in numbers)
    first_row = np.cumsum([0, *(parts[part][2] for part in numbers)])
    rows = [
        start + (np.arange(size) if parts[part][1] is None else parts[part][1])
        for part, size, start in zip(numbers, sizes, first_row, strict=False)
    ]
    drawn = Population(
        np.concatenate([parts[part][0] for part in numbers]),
        None if has_all else np.concatenate(rows).astype(np.int64),
        classes,
    ).draw(watching, earlier)
    first = np.cumsum([0, *sizes])
    ends = np.searchsorted(drawn.watched, first)
    watched = ByPart(
        {part: drawn.watched[ends[n] : ends[n + 1]] - first[n] for n, part in enumerate(numbers)}
    )
    shards.ask("hold_out", watched)
    return drawn.split


def _places_of(shards: DaskShards, dtype: np.dtype, n_features: int) -> CutPlaces:
    """Where smoothing rounds may cut: between the values of the rows that one machine samples."""
    sizes = {part: own for answer in shards.ask("kept_by_part") for part, own in answer.items()}
    parts = sorted(sizes)
    first = np.cumsum([0, *(sizes[part] for part in parts)])
    rows = sampled_rows(int(first[-1]), n_features)
    ends = np.searchsorted(rows, first)
    chosen = ByPart({part: rows[ends[n] : ends[n + 1]] - first[n] for n, part in enumerate(parts)})
    found = {
        part: own for answer in shards.ask("values_of", chosen) for part, own in answer.items()
    }
    return CutPlaces.of(np.concatenate([found[part].astype(dtype) for part in sorted(found)]))


def _route(shards: DaskShards, n_parts: int, is_on_disk: bool) -> Route:
    """Where the rounds are made, in words."""
    homes = shards.homes
    n_workers = len({home.worker for home in homes})
    summary = f"{n_workers} workers" if n_workers > 1 else "one worker"
    reason = f"the data are in {n_parts} partitions there"
    if is_on_disk:
        reason += ", too large for memory: their values are in files"
    return Route("dask", "cluster", summary, reason)
