"""One fit on a cluster, from collections to rounds; however it ends, it leaves nothing behind.

bring       every partition to a worker, where it is checked and kept
learn       the classes, the dtype, how many samples there are
hold out    the samples that early stopping watches, drawn as on one machine
join, code  each worker's rows into a shard
rounds      see `ground`
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gpustump.boosting.training import Run, Settings, Trained, run_all
from gpustump.dask.conversation import Conversation
from gpustump.dask.ground import ClusterGround, HeldOutUnits
from gpustump.dask.partitions import Collection, Summary
from gpustump.dask.shards import ByPart, ClusterLostError, DaskShards
from gpustump.data.labels import encode, plain_labels
from gpustump.data.readable import readable_bytes
from gpustump.engines.announcements import announce
from gpustump.engines.cluster.table import ClusterTable, ValueTypes
from gpustump.engines.contract import Search
from gpustump.engines.route import Route
from gpustump.estimators.held_out_split import Earlier, Split, Watching, draw
from gpustump.model.ensemble import StumpEnsemble


class Request(NamedTuple):
    """What is asked for.

    Attributes
    ----------
    collection : Collection
    settings : Settings
    watching : Watching or None
        What early stopping asks for.
    earlier : Earlier or None
        What a warm start goes on from.
    kind : str
        Of shards; see `engines.cluster.shards.shard_of`.
    """

    collection: Collection
    settings: Settings
    watching: Watching | None
    earlier: Earlier | None
    kind: str = "auto"


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
    split : Split or None
        Which samples were held out.
    use : Use
    """

    trained: Trained
    classes: np.ndarray
    split: Split | None
    use: Use


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
    split: Split | None
    votes: Any
    conversation: Conversation

    @property
    def n_outputs(self) -> int:
        return self.settings.n_outputs(self.n_classes)

    @property
    def n_runs(self) -> int:
        return 1 if self.n_classes == 2 or self.n_outputs > 1 else self.n_classes

    @classmethod
    def prepared(cls, conversation: Conversation, shards: DaskShards, request: Request) -> _Job:
        """Bring, check, split, join and code all rows."""
        summaries = shards.bring()
        classes = _classes_of(summaries, request.earlier)
        request.settings.refuse_constrained_classes(len(classes))
        shards.ask("number_classes", classes)
        split = None
        if request.watching is not None:
            split = _hold_out(shards, classes, request.watching, request.earlier)
        types = _types_of(summaries)
        joined = shards.ask("join", types.coded, _n_features_of(summaries), request.kind)
        n_samples = shards.learn_sizes()
        n_classes = len(classes)
        limit = request.settings.n_rounds_of(n_classes)
        settings = replace(request.settings, n_rounds=limit)
        n_outputs = settings.n_outputs(n_classes)
        planned = Search("stump", settings.votes.kind, n_outputs)
        table = ClusterTable.prepared(None, shards, types, planned, n_samples)
        votes = settings.votes.votes_in_units(table.exponent, n_outputs)
        ground = ClusterGround(
            _route(shards, any(on_disk for _, on_disk in joined)), table, shards, n_classes,
            None if split is None else HeldOutUnits.of(shards),
        )  # fmt: skip
        earlier = None if request.earlier is None else request.earlier.runs
        return cls(settings, n_classes, earlier, ground, classes, split, votes, conversation)

    def train(self) -> Fitted:
        """Make the rounds."""
        traffic, shards = self.conversation.traffic, self.ground.shards
        before = traffic.sent + traffic.received
        try:
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
        return Fitted(trained, self.classes, self.split, use)

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


def _classes_of(summaries: dict[int, Summary], earlier: Earlier | None) -> np.ndarray:
    """All classes, whichever partitions they are in."""
    labels = [own.labels for own in summaries.values() if own.n_rows]
    if not labels:
        raise ValueError("X has 0 sample(s) while a minimum of 1 is required.")
    kinds = {"text" if own.dtype.kind in "UO" else "numbers" for own in labels if len(own)}
    if not kinds:
        raise ValueError("sample_weight is zero for every sample; at least one must be positive.")
    if len(kinds) > 1:
        raise TypeError("y holds text in some partitions and numbers in others; choose one.")
    union = np.unique(np.concatenate([own for own in labels if len(own)]))
    classes, _ = encode(union, union)
    if earlier is not None and not np.array_equal(classes, earlier.classes):
        raise ValueError(
            f"y holds the classes {classes.tolist()}, but with warm_start=True it must hold those "
            f"of the earlier fit, {earlier.classes.tolist()}."
        )
    return classes


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
    drawn = draw(
        np.concatenate([parts[part][0] for part in numbers]),
        None if has_all else np.concatenate(rows).astype(np.int64),
        classes, watching, earlier,
    )  # fmt: skip
    first = np.cumsum([0, *sizes])
    ends = np.searchsorted(drawn.watched, first)
    watched = ByPart(
        {part: drawn.watched[ends[n] : ends[n + 1]] - first[n] for n, part in enumerate(numbers)}
    )
    shards.ask("hold_out", watched)
    return drawn.split


def _route(shards: DaskShards, is_on_disk: bool) -> Route:
    """Where the rounds are made, in words."""
    homes = shards.homes
    n_workers = len({home.worker for home in homes})
    summary = f"{n_workers} workers" if n_workers > 1 else "one worker"
    reason = f"the data are in {len(shards)} partitions there"
    if is_on_disk:
        reason += ", too large for memory: their values are in files"
    return Route("dask", "cluster", summary, reason)
