"""The rows that a worker holds: first as partitions, then joined, and shared out to bags.

Each bag is trained on its own share of the samples, of which a shard is made. The shards of all
bags read the values from one array.

Values are kept feature by feature. If they would take more than half of the worker's memory, they
go to a file in the worker's local directory, and only what is made of them stays in memory: codes
of two bytes, classes, weights.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays.devices import DeviceError
from gpustump.boosting.held_out.judging import LocalJudge
from gpustump.boosting.held_out.samples import HeldOut, HeldOutTargets
from gpustump.boosting.held_out.scores import additive_scorer, quantity_scorer
from gpustump.dask.categories import Numbered, PlainNumbers, named, renumber
from gpustump.dask.partitions import Part, Rows, Summary
from gpustump.data.columns import NUMERIC
from gpustump.data.fingerprint import Leaves, leaves_of
from gpustump.data.parameters import Link, Scoring
from gpustump.data.readable import readable_bytes
from gpustump.data.weights import PRODUCT, check_weights
from gpustump.engines.category_columns import numbers_of
from gpustump.engines.cluster.questions import Shard
from gpustump.engines.cluster.samples import Samples
from gpustump.engines.cluster.shards import answer, shard_of
from gpustump.engines.contract import Search
from gpustump.engines.cpu.table.cuts import codable
from gpustump.engines.held_out import held_out_sums
from gpustump.engines.integer_weights import IntegerWeights, scaled
from gpustump.engines.running_scores import RunningScores, running_scores
from gpustump.estimators.targets import Scale
from gpustump.model.encoding import Unseen

_SHARE_OF_VALUES = 0.5
"""The share of the memory limit that values may take. Others go to files."""

_ELEMENT_BYTES, _SAMPLE_BYTES = 2, 184
"""Bytes of memory for each value if all values are in files, and for each sample besides."""


class WorkerMemoryError(MemoryError):
    """A worker's memory is too small for its share of the table.

    Examples
    --------
    A limit that is too small even for five rows (X and y are those of `gpustump.dask.fit`):

    >>> import gpustump.dask
    >>> from gpustump import AdaBoostClassifier
    >>> from gpustump.dask import WorkerMemoryError
    >>> try:  # doctest: +SKIP
    ...     gpustump.dask.fit(AdaBoostClassifier(max_memory="100 B"), X, y)
    ... except WorkerMemoryError as error:
    ...     print(str(error).rpartition("100 bytes. ")[2])
    Take more workers, or more memory for each.
    """


class Store:
    """Where arrays go: into memory, or into files.

    Parameters
    ----------
    limit : int or None
        Bytes of memory that may be taken; None for any number.
    folder : str
        For files.
    """

    def __init__(self, limit: int | None, folder: str) -> None:
        self.limit, self._folder = limit, folder
        self._in_memory = 0
        self._files: list[str] = []

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """An array of values."""
        n_bytes = int(np.prod(shape)) * dtype.itemsize
        if self.limit is None or self._in_memory + n_bytes <= _SHARE_OF_VALUES * self.limit:
            self._in_memory += n_bytes
            return np.empty(shape, dtype)
        handle, path = tempfile.mkstemp(prefix="gpustump-", suffix=".values", dir=self._folder)
        os.close(handle)
        self._files.append(path)
        return np.memmap(path, dtype, "w+", shape=shape)

    def release(self, values: np.ndarray) -> None:
        """Free the memory, or remove the file, of an array."""
        if isinstance(values, np.memmap):
            path = str(values.filename)
            self._files.remove(path)
            os.unlink(path)
        else:
            self._in_memory -= values.nbytes

    @property
    def is_on_disk(self) -> bool:
        """Whether there are files."""
        return bool(self._files)

    def close(self) -> None:
        """Remove all files."""
        for path in self._files:
            os.unlink(path)
        self._files.clear()


@dataclass
class _Block:
    """A partition's samples: all rows' values, feature by feature, and the samples among them.

    Categories have the partition's own numbers, their places in `categories`, until those of all
    partitions are known. For a frame, `kinds` holds the kind of each column.
    """

    values: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    rows: np.ndarray | None
    all_labels: np.ndarray
    categories: dict[int, np.ndarray]
    kinds: tuple[str, ...]
    classes: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))


class Holding:
    """The rows that a worker holds for one shard.

    Parameters
    ----------
    store : Store
    n_threads : int
    """

    def __init__(self, store: Store, n_threads: int) -> None:
        self._store, self._n_threads = store, n_threads
        self._blocks: dict[int, _Block] = {}
        self._brought: set[int] = set()
        self._set_aside, self._watches_rest = set[int](), True
        self._is_settled = False
        self._samples: _Joined | None = None
        self._watched: _Joined | None = None
        self._kind = "auto"
        self._shard: Shard | None = None
        self._held_out: Samples | None = None
        self._judge: LocalJudge | None = None
        self._running: RunningScores | None = None
        self._n_features = 0

    def add(self, number: int, part: Part) -> Summary:
        """Keep a partition.

        Raises
        ------
        RuntimeError
            If `keep` has been called: this task comes late, as the scheduler took it for lost and
            another worker has its rows by now.
        """
        if self._is_settled:
            raise RuntimeError("this partition came too late: another worker has its rows by now")
        rows = Rows.of(part)
        self._brought.add(number)
        if number in self._blocks:  # brought once more
            self._store.release(self._blocks.pop(number).values)
        if rows is None:
            return Summary.of_nothing()
        given = codable(rows.values)
        values = self._store.empty(given.shape[::-1], given.dtype)
        values[:] = given.T
        frame = rows.frame or Numbered(values, (), {})
        self._blocks[number] = _Block(
            values, rows.labels, rows.weights, rows.rows, rows.all_labels, frame.categories,
            tuple(column.kind for column in frame.columns),
        )  # fmt: skip
        return rows.summary()

    def call(self, method: str, arguments: Sequence[Any]) -> Any:
        """Answer a message: one for the shard, or one of the methods below."""
        if method in OWN:
            return getattr(self, method)(*arguments)
        if self._shard is None:
            raise RuntimeError(f"the shard was asked for {method!r} before its rows were joined")
        return answer(self._shard, method, arguments)

    def replay(self, messages: Sequence[tuple[str, Sequence[Any]]]) -> None:
        """Repeat messages that were sent before this holding was made."""
        for method, arguments in messages:
            if method in OWN or self._shard is not None:  # a shard without samples has no rounds
                self.call(method, arguments)

    def keep(self, parts: Sequence[int]) -> bool:
        """Keep only these partitions from now on. Returns whether all of them are here."""
        self._is_settled = True
        for number in set(self._blocks) - set(parts):
            self._store.release(self._blocks.pop(number).values)
        return self._brought >= set(parts)

    def number_categories(
        self, known: Mapping[int, Mapping[str, int]], plain: Mapping[int, Sequence[PlainNumbers]]
    ) -> dict[int, dict[int, Unseen]]:
        """Replace the partitions' own numbers of categories by those of all partitions together.

        Parameters
        ----------
        known : mapping from features to mappings of str to int
            The numbers of categories.
        plain : mapping from numbers of partitions to sequences of PlainNumbers
            The features whose values are numbers of categories already, which is checked.

        Returns
        -------
        dict of int to dict of int to Unseen
            For each partition the features with categories that have no number.

        Raises
        ------
        ValueError
            If a value is no number of a category.
        """
        found: dict[int, dict[int, Unseen]] = {}
        for number, block in self._blocks.items():
            for feature in known:  # numbers where other partitions have categories
                if block.kinds and block.kinds[feature] in NUMERIC:
                    kind = block.kinds[feature]
                    block.categories[feature] = named(block.values[feature], kind)
            renumbered = {
                feature: renumber(block.values[feature], own, known.get(feature, {}))
                for feature, own in block.categories.items()
            }
            found[number] = {j: own for j, own in renumbered.items() if own is not None}
            block.categories = {}
            for feature, name in plain.get(number, ()):
                numbers_of(block.values.T, None, feature, name)
        return found

    def weigh_labels(self, factors: Mapping[int, tuple[np.ndarray, np.ndarray]]) -> list[Any]:
        """Multiply the weights of labels: for each partition sorted labels, and the factor of each.

        Samples whose weight becomes zero take no part any more. Returns, for each partition, the
        distinct labels of those that are left.
        """
        found = []
        for number, (labels, own) in factors.items():
            block = self._blocks.get(number)
            if block is not None and len(block.weights):
                _weigh(block, own[np.searchsorted(labels, block.labels)])
                found.append(np.unique(block.labels))
        return found

    def number_classes(self, classes: np.ndarray) -> None:
        """Turn labels into numbers of classes, sorted as given."""
        for block in self._blocks.values():
            block.classes = np.searchsorted(classes, block.labels).astype(np.int64)
            block.labels = block.all_labels = block.labels[:0]

    def targets_by_part(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """For each partition the targets and the weights of its samples; of a quantity."""
        return {number: (own.labels, own.weights) for number, own in self._blocks.items()}

    def scale_targets(self, scale: Scale) -> None:
        """Turn targets of a quantity into what boosting learns."""
        for block in self._blocks.values():
            block.classes = arrays.to_host(scale.scaled(block.labels))
            block.labels = block.all_labels = block.labels[:0]

    def leaves(self, known: Mapping[int, tuple[np.ndarray | None, int]]) -> dict[int, Leaves]:
        """What the fingerprint of the whole table needs to know of each partition.

        It needs the weights as they were given, so it must come before `weigh_labels`.

        Parameters
        ----------
        known : mapping from numbers of partitions to tuple
            The distinct labels of all partitions, sorted (None for a quantity), and the number of
            the first row.
        """
        return {
            number: _leaves(self._blocks[number], classes, first_row)
            for number, (classes, first_row) in known.items()
            if number in self._blocks
        }

    def set_aside(self, parts: Mapping[int, None]) -> None:
        """Make partitions the rows to watch, in place of the samples that bags leave out."""
        self._watches_rest = False  # though all of these may be on other workers
        self._set_aside = set(parts) & set(self._blocks)

    def samples_by_part(self) -> dict[int, tuple[np.ndarray, np.ndarray | None, int]]:
        """For each partition that is not set aside: its samples' classes, or targets as boosting
        learns them, and rows (None for all), and the number of all its rows."""
        return {
            number: (block.classes, block.rows, block.values.shape[1])
            for number, block in self._blocks.items()
            if number not in self._set_aside
        }

    def join(self, dtype: str, watched_dtype: str, n_features: int, kind: str) -> tuple[int, bool]:
        """Join all partitions. Returns their number of samples, and whether values are in files.

        Parameters
        ----------
        dtype, watched_dtype : str
            The dtypes in which to keep values, and those of the partitions that are set aside:
            "float32" or "float64".
        n_features : int
        kind : str
            Of shards; see `shard_of`.

        Raises
        ------
        WorkerMemoryError
            If the worker's memory cannot hold what has to be in it.
        """
        self._n_features, self._kind = n_features, kind  # partitions without rows have none
        numbers = sorted(self._blocks)
        own = [number for number in numbers if number not in self._set_aside]
        self._check_memory(sum(len(self._blocks[number].weights) for number in own))
        if self._set_aside:
            self._watched = self._joined(sorted(self._set_aside), watched_dtype)
        self._samples = self._joined(own, dtype)
        self._blocks.clear()
        return len(self._samples.samples), self._store.is_on_disk

    def take_share(self, left_out: Mapping[int, np.ndarray]) -> None:
        """Begin a bag: make a shard of all samples but some.

        The samples that are left out are watched, unless partitions are set aside for that.

        Parameters
        ----------
        left_out : mapping from numbers of partitions to ndarray of int64
            Numbers among the partition's samples.
        """
        joined = self._samples
        assert joined is not None
        self._shard = self._held_out = self._judge = self._running = None  # frees their memory
        joined.take_share(left_out)
        self._held_out = None if self._watched is None else self._watched.samples
        if self._watches_rest:
            self._held_out = joined.samples.taken(np.flatnonzero(~joined.is_kept))
        samples = joined.samples.taken(np.flatnonzero(joined.is_kept))
        try:
            self._shard = shard_of(samples, self._kind, self._n_threads) if len(samples) else None
        except ImportError as error:
            raise DeviceError(f"device='cuda' needs CuPy on every worker: {error}") from error

    def kept_by_part(self) -> dict[int, int]:
        """For each partition how many of its samples the bag is trained on."""
        joined = self._samples
        assert joined is not None
        return {number: len(joined.kept(number)) for number in joined.places}

    def values_of(self, chosen: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        """Values (n, n_features) of some of the samples that the bag is trained on, by partition.

        Parameters
        ----------
        chosen : mapping from numbers of partitions to ndarray (n,) of int64
            Their numbers among the partition's samples that the bag is trained on.
        """
        joined = self._samples
        assert joined is not None
        return {
            number: np.ascontiguousarray(joined.samples.values[:, joined.kept(number)[own]].T)
            for number, own in chosen.items()
            if number in joined.places and len(own)
        }

    def n_joined(self) -> int:
        """How many samples there are for all bags."""
        return 0 if self._samples is None else len(self._samples.samples)

    def rows_by_part(self) -> list[dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]]:
        """Values, classes or targets, and weights of all samples of each partition: of those that
        are trained on, and of those that are set aside."""
        return [{} if own is None else own.by_part() for own in (self._samples, self._watched)]

    def size(self) -> int:
        """How many samples are trained on."""
        return 0 if self._shard is None else len(self._shard.samples)

    def held_out_weights(self) -> tuple[float, int]:
        """The largest weight of the samples that are set aside, and how many they are."""
        if self._held_out is None:
            return 0.0, 0
        return self._held_out.largest_weight(), len(self._held_out)

    def held_out_total(self, exponent: int) -> int:
        """The sum of their weights, in units of 2**-exponent."""
        return 0 if self._held_out is None else self._held_out.scaled_total(exponent)

    def held_out_samples(self, exponent: int) -> tuple[np.ndarray, np.ndarray]:
        """Their classes and integer weights, both int64."""
        own = self._held_out
        if own is None:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        return own.classes, scaled(own.weights, exponent).astype(np.int64)

    def watch(self, about: Watch) -> list[int] | None:
        """Begin to watch a run. Returns the totals of the score; None for the ROC curve."""
        self._judge = self._running = None
        own = self._held_out
        if own is None:
            own = Samples(np.empty((self._n_features, 0)), *self.held_out_samples(0))
        X, rows, units = own.values.T, own.rows, self.held_out_samples(about.exponent)[1]
        if about.scoring == "roc_auc":
            self._running = running_scores(X, about.constant, rows, n_jobs=self._n_threads)
            return None
        watched = _watched(own, IntegerWeights(units, about.total), about, self._n_threads)
        scorer: Any = (
            quantity_scorer(about.scoring, watched)
            if isinstance(watched, HeldOutTargets)
            else additive_scorer(about.scoring, watched, about.link)
        )
        self._judge = LocalJudge(X, rows, watched, scorer, about.constant, self._n_threads)
        return self._judge.totals

    def judge(self, terms: Sequence[tuple[Any, np.ndarray]]) -> Any:
        """Add terms to the model. Returns the parts of its score, or the scores of the samples."""
        judge = self._judge or self._running
        assert judge is not None
        for hypothesis, votes in terms:
            judge.add(hypothesis, votes)
        return judge.parts() if isinstance(judge, LocalJudge) else judge.copy()

    def close(self) -> None:
        """Free all memory, and remove all files."""
        self._blocks.clear()
        self._samples = self._watched = None
        self._shard = self._held_out = self._judge = self._running = None
        self._store.close()

    def _check_memory(self, n_samples: int) -> None:
        limit, n_features = self._store.limit, self._n_features
        needed = n_samples * (n_features * _ELEMENT_BYTES + _SAMPLE_BYTES)
        if limit is not None and needed > limit:
            raise WorkerMemoryError(
                f"{n_samples} rows of {n_features} features need {readable_bytes(needed)} on one "
                f"worker, with the values in files, but its memory limit is "
                f"{readable_bytes(limit)}. Take more workers, or more memory for each."
            )

    def _joined(self, numbers: Sequence[int], dtype: str) -> _Joined:
        """The samples of some partitions, whose own values are freed one after the other."""
        blocks = [self._blocks[number] for number in numbers]
        ends = np.cumsum([0, *(len(block.weights) for block in blocks)]).tolist()
        places = list(itertools.pairwise(ends))
        values = self._store.empty((self._n_features, ends[-1]), np.dtype(dtype))
        for block, (start, end) in zip(blocks, places, strict=True):
            for to, given in zip(values[:, start:end], block.values, strict=True):
                to[:] = given if block.rows is None else given[block.rows]
            self._store.release(block.values)
            block.values = block.values[:, :0]
        nothing = (np.empty(0, dtype=np.int64), np.empty(0))
        parts = [(block.classes, block.weights) for block in blocks]
        classes, weights = map(np.concatenate, zip(nothing, *parts, strict=True))
        samples = Samples(values, classes, weights)
        is_kept = np.ones(len(samples), dtype=bool)
        return _Joined(samples, dict(zip(numbers, places, strict=True)), is_kept)


@dataclass
class _Joined:
    """The samples of several partitions, and what a bag takes of them.

    Attributes
    ----------
    samples : Samples
    places : dict of int to (int, int)
        For each partition its first sample, and the one behind its last.
    is_kept : ndarray (n_samples,) of bool
        Whether the bag is trained on them.
    """

    samples: Samples
    places: dict[int, tuple[int, int]]
    is_kept: np.ndarray

    def take_share(self, left_out: Mapping[int, np.ndarray]) -> None:
        """Begin a bag, for which some samples of each partition are left out."""
        self.is_kept[:] = True
        for number, own in left_out.items():
            if number in self.places:
                self.is_kept[self.places[number][0] + own] = False

    def by_part(self) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For each partition the values (n, n_features), classes and weights of its samples."""
        own = self.samples
        return {
            number: (
                np.ascontiguousarray(own.values[:, low:high].T),
                own.classes[low:high],
                own.weights[low:high],
            )
            for number, (low, high) in self.places.items()
        }

    def kept(self, number: int) -> np.ndarray:
        """The samples of a partition that the bag is trained on."""
        start, end = self.places[number]
        found: np.ndarray = start + np.flatnonzero(self.is_kept[start:end])
        return found


@dataclass(frozen=True)
class Watch:
    """How to score a run on the held-out samples.

    Attributes
    ----------
    scoring : str
    link : str
    constant : tuple of float
    positive : int
        With one output the class whose label is +1.
    n_outputs : int
    exponent : int
        Of the integer weights of all held-out samples.
    total : int
        Their sum.
    n_samples : int
        How many they are.
    is_quantity : bool
    """

    scoring: Scoring
    link: Link
    constant: tuple[float, ...]
    positive: int
    n_outputs: int
    exponent: int
    total: int
    n_samples: int
    is_quantity: bool = False


OWN = (
    "replay", "keep", "number_categories", "weigh_labels", "number_classes", "targets_by_part",
    "scale_targets", "samples_by_part", "set_aside", "join", "take_share", "kept_by_part",
    "values_of", "n_joined", "rows_by_part", "leaves", "size", "held_out_weights", "held_out_total",
    "held_out_samples", "watch", "judge",
)  # fmt: skip
"""Messages that a holding answers itself."""


def _weigh(block: _Block, factors: np.ndarray) -> None:
    """Multiply the weights of a partition's samples; those that become zero are dropped.

    Raises
    ------
    ValueError
        If a product is infinite.
    """
    with np.errstate(over="ignore", under="ignore"):  # both are looked for below
        product = block.weights * factors
    if not product.any():
        nothing = np.empty(0, dtype=np.int64)  # only a whole table of zeros is refused
        block.labels, block.weights, block.rows = block.labels[:0], product[:0], nothing
        return
    values, rows = check_weights(product, product, PRODUCT)
    block.weights = values
    if rows is not None:
        block.labels = block.labels[rows]
        block.rows = rows if block.rows is None else block.rows[rows]


def _leaves(block: _Block, classes: np.ndarray | None, first_row: int) -> Leaves:
    weights = block.weights
    if block.rows is not None:
        weights = np.zeros(len(block.all_labels))
        weights[block.rows] = block.weights
    numbers = block.all_labels if classes is None else np.searchsorted(classes, block.all_labels)
    return leaves_of(block.values.T, numbers, weights, first_row)


def _watched(
    samples: Samples, weights: IntegerWeights, about: Watch, n_threads: int
) -> HeldOut | HeldOutTargets:
    """Held-out samples in the form that the scores take."""
    if about.is_quantity:
        targets = samples.classes.astype(np.float64)
        return HeldOutTargets(targets, weights, n_of_all_groups=about.n_samples)
    classes = samples.classes
    if about.n_outputs == 1:
        classes = (samples.labels(Search(), about.positive) > 0).astype(np.int64)
    sums = held_out_sums(classes, weights.values, max(2, about.n_outputs), n_threads)
    return HeldOut(classes, weights, about.n_outputs, sums)
