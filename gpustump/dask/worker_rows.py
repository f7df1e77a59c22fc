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
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays.devices import DeviceError
from gpustump.boosting.held_out.judging import LocalJudge
from gpustump.boosting.held_out.samples import HeldOut, HeldOutTargets
from gpustump.boosting.held_out.scores import scorer
from gpustump.dask.categories import PlainNumbers, named, renumber
from gpustump.dask.partitions import Rows
from gpustump.data.columns import NUMERIC
from gpustump.data.fingerprint import Leaves, leaves_of
from gpustump.data.parameters import Link, Scoring
from gpustump.data.readable import readable_bytes
from gpustump.data.weights import PRODUCT, check_weights
from gpustump.engines.category_columns import numbers_of
from gpustump.engines.cluster.questions import Shard
from gpustump.engines.cluster.samples import Samples
from gpustump.engines.cluster.shards import answer, shard_of
from gpustump.engines.cpu.table.source_table import codable
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


class WorkerRows:
    """The rows that a worker holds for one shard; its public methods answer messages.

    Parameters
    ----------
    store : Store
    n_threads : int
    """

    def __init__(self, store: Store, n_threads: int) -> None:
        self._store, self._n_threads = store, n_threads
        self._parts: dict[int, Rows] = {}  # with values (n_features, n_rows)
        self._brought: set[int] = set()
        self._set_aside: set[int] | None = None
        self._is_settled = False
        self._trained: _Joined | None = None
        self._watched: _Joined | None = None
        self._kind = "kernels"
        self._shard: Shard | None = None
        self._held_out: Samples | None = None
        self._judge: LocalJudge | RunningScores | None = None

    def add(self, number: int, rows: Rows | None) -> None:
        """Keep a partition; None for one without rows.

        Raises
        ------
        RuntimeError
            If `keep` has been called: this task comes late, as the scheduler took it for lost and
            another worker has its rows by now.
        """
        if self._is_settled:
            raise RuntimeError("this partition came too late: another worker has its rows by now")
        self._brought.add(number)
        if number in self._parts:  # brought once more
            self._store.release(self._parts.pop(number).values)
        if rows is None:
            return
        given = codable(rows.values)
        values = self._store.empty(given.shape[::-1], given.dtype)
        values[:] = given.T
        rows.values = values
        self._parts[number] = rows

    def call(self, method: str, arguments: Sequence[Any]) -> Any:
        """Answer a message: one of the methods below, or one for the shard."""
        if method in OWN:
            return getattr(self, method)(*arguments)
        if self._shard is None:
            raise RuntimeError(f"the shard was asked for {method!r} before its rows were joined")
        return answer(self._shard, method, arguments)

    def close(self) -> None:
        """Free all memory, and remove all files."""
        self._parts.clear()
        self._trained = self._watched = None
        self._shard = self._held_out = self._judge = None
        self._store.close()

    def replay(self, messages: Sequence[tuple[str, Sequence[Any]]]) -> None:
        """Repeat messages that were sent before these rows were brought here."""
        for method, arguments in messages:
            if method in OWN or self._shard is not None:  # a shard without samples has no rounds
                self.call(method, arguments)

    def keep(self, parts: Collection[int]) -> bool:
        """Keep only these partitions from now on. Returns whether all of them are here."""
        self._is_settled = True
        for number in set(self._parts) - set(parts):
            self._store.release(self._parts.pop(number).values)
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
        for number, rows in self._parts.items():
            for feature in known:  # numbers where other partitions have categories
                if rows.columns and (kind := rows.columns[feature].kind) in NUMERIC:
                    rows.categories[feature] = named(rows.values[feature], kind)
            renumbered = {
                feature: renumber(rows.values[feature], own, known.get(feature, {}))
                for feature, own in rows.categories.items()
            }
            found[number] = {j: own for j, own in renumbered.items() if own is not None}
            rows.categories = {}
            for feature, name in plain.get(number, ()):
                numbers_of(rows.values.T, None, feature, name)
        return found

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
            number: _leaves(self._parts[number], *own)
            for number, own in known.items()
            if number in self._parts
        }

    def weigh_labels(self, factors: Mapping[int, tuple[np.ndarray, np.ndarray]]) -> list[Any]:
        """Multiply the weights of labels: for each partition sorted labels, and the factor of each.

        Samples whose weight becomes zero take no part any more. Returns, for each partition, the
        distinct labels of those that are left.
        """
        found = []
        for number, (labels, own) in factors.items():
            rows = self._parts.get(number)
            if rows is not None and len(rows.weights):
                _weigh(rows, own[np.searchsorted(labels, rows.labels)])
                found.append(np.unique(rows.labels))
        return found

    def number_classes(self, classes: np.ndarray) -> None:
        """Turn labels into numbers of classes, sorted as given."""
        for rows in self._parts.values():
            rows.labels = np.searchsorted(classes, rows.labels).astype(np.int64)
            rows.all_labels = rows.labels[:0]

    def scale_targets(self, scale: Scale) -> None:
        """Turn targets of a quantity into what boosting learns."""
        for rows in self._parts.values():
            rows.labels = arrays.to_host(scale.scaled(rows.labels))
            rows.all_labels = rows.labels[:0]

    def set_aside(self, parts: Mapping[int, None]) -> None:
        """Make partitions the rows to watch, in place of the samples that bags leave out."""
        self._set_aside = set(parts) & set(self._parts)  # all may be on other workers

    def samples_by_part(self, *names: str) -> dict[int, tuple[Any, ...]]:
        """Attributes of the `Rows` of each partition that is not set aside."""
        return {
            number: tuple(getattr(rows, name) for name in names)
            for number, rows in self._parts.items()
            if number not in (self._set_aside or ())
        }

    def join(
        self, dtype: str, watched_dtype: str, n_features: int, kind: str
    ) -> tuple[dict[int, int], bool]:
        """Join all partitions.

        Parameters
        ----------
        dtype, watched_dtype : str
            The dtypes in which to keep values, and those of the partitions that are set aside:
            "float32" or "float64".
        n_features : int
        kind : str
            Of shards; see `shard_of`.

        Returns
        -------
        dict of int to int
            The number of samples of each partition to train on.
        bool
            Whether values are in files.

        Raises
        ------
        WorkerMemoryError
            If the worker's memory cannot hold what has to be in it.
        """
        self._kind = kind
        own = sorted(set(self._parts) - (self._set_aside or set()))
        sizes = {number: len(self._parts[number].weights) for number in own}
        self._check_memory(sum(sizes.values()), n_features)
        if self._set_aside is not None:
            self._watched = self._joined(sorted(self._set_aside), watched_dtype, n_features)
        self._trained = self._joined(own, dtype, n_features)
        self._parts.clear()
        return sizes, self._store.is_on_disk

    def take_share(self, left_out: Mapping[int, np.ndarray]) -> None:
        """Begin a bag: make a shard of all samples but some.

        The samples that are left out are watched, unless partitions are set aside for that.

        Parameters
        ----------
        left_out : mapping from numbers of partitions to ndarray of int64
            Numbers among the partition's samples.
        """
        trained = self._joined_rows
        self._shard = self._held_out = self._judge = None  # frees their memory
        is_kept = np.ones(len(trained.samples), dtype=bool)
        for number, own in left_out.items():
            if number in trained.places:
                is_kept[trained.places[number][0] + own] = False
        if self._watched is not None:
            self._held_out = self._watched.samples
        else:
            self._held_out = trained.samples.taken(np.flatnonzero(~is_kept))
        samples = trained.samples.taken(np.flatnonzero(is_kept))
        try:
            self._shard = shard_of(samples, self._kind, self._n_threads) if len(samples) else None
        except ImportError as error:
            raise DeviceError(f"device='cuda' needs CuPy on every worker: {error}") from error

    def values_of(self, chosen: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        """Values (n, n_features) of some of each partition's samples, given by their numbers."""
        own = self._joined_rows
        return {
            number: np.ascontiguousarray(own.samples.values[:, own.places[number][0] + samples].T)
            for number, samples in chosen.items()
            if number in own.places
        }

    def all_rows(self, are_watched: bool) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Values (n, n_features), classes or targets, and weights of the samples of each partition:
        of those that are trained on, or of those that are set aside."""
        joined = self._watched if are_watched else self._joined_rows
        if joined is None:
            return {}
        return {
            number: (
                np.ascontiguousarray(joined.samples.values[:, low:high].T),
                joined.samples.classes[low:high],
                joined.samples.weights[low:high],
            )
            for number, (low, high) in joined.places.items()
        }

    def held_out_weights(self) -> tuple[float, int]:
        """The largest weight of the samples to watch, and how many they are."""
        own = self._watched_samples
        return own.largest_weight(), len(own)

    def held_out_total(self, exponent: int) -> int:
        """The sum of their weights, in units of 2**-exponent."""
        own = self._watched_samples
        return own.scaled_total(exponent)

    def held_out_samples(self, exponent: int) -> tuple[np.ndarray, np.ndarray]:
        """Their classes, and their integer weights, int64."""
        own = self._watched_samples
        return own.classes, scaled(own.weights, exponent).astype(np.int64)

    def watch(self, about: Watch) -> list[int] | None:
        """Begin to watch a run. Returns the totals of the score; None for the ROC curve."""
        own = self._watched_samples
        X, rows, units = own.values.T, own.rows, self.held_out_samples(about.exponent)[1]
        if about.scoring == "roc_auc":
            self._judge = running_scores(X, about.constant, rows, n_jobs=self._n_threads)
            return None
        weights = IntegerWeights(units, about.total)
        watched: HeldOut | HeldOutTargets
        if about.is_quantity:
            targets = own.classes.astype(np.float64)
            watched = HeldOutTargets(targets, weights, n_of_all_groups=about.n_samples)
        else:
            given = about.positive, about.n_outputs, self._n_threads
            watched = HeldOut.of(own.classes, weights, *given)
        score = scorer(about.scoring, watched, about.link)
        self._judge = LocalJudge(X, rows, watched, score, about.constant, self._n_threads)
        return self._judge.totals

    def judge(self, terms: Sequence[tuple[Any, np.ndarray]]) -> Any:
        """Add terms to the model. Returns the parts of its score, or the scores of the samples."""
        judge = self._judge
        assert judge is not None
        for hypothesis, votes in terms:
            judge.add(hypothesis, votes)
        return judge.parts() if isinstance(judge, LocalJudge) else judge.copy()

    @property
    def _joined_rows(self) -> _Joined:
        assert self._trained is not None, "rows are joined first"
        return self._trained

    @property
    def _watched_samples(self) -> Samples:
        assert self._held_out is not None, "a share is taken first"
        return self._held_out

    def _check_memory(self, n_samples: int, n_features: int) -> None:
        limit = self._store.limit
        needed = n_samples * (n_features * _ELEMENT_BYTES + _SAMPLE_BYTES)
        if limit is not None and needed > limit:
            raise WorkerMemoryError(
                f"{n_samples} rows of {n_features} features need {readable_bytes(needed)} on one "
                f"worker, with the values in files, but its memory limit is "
                f"{readable_bytes(limit)}. Take more workers, or more memory for each."
            )

    def _joined(self, numbers: Sequence[int], dtype: str, n_features: int) -> _Joined:
        """The samples of some partitions, whose own values are freed one after the other."""
        parts = [self._parts[number] for number in numbers]
        ends = itertools.accumulate((len(rows.weights) for rows in parts), initial=0)
        places = dict(zip(numbers, itertools.pairwise(ends), strict=True))
        n_samples = sum(len(rows.weights) for rows in parts)
        values = self._store.empty((n_features, n_samples), np.dtype(dtype))
        for rows, (start, end) in zip(parts, places.values(), strict=True):
            for to, given in zip(values[:, start:end], rows.values, strict=True):
                to[:] = given if rows.rows is None else given[rows.rows]
            self._store.release(rows.values)
            rows.values = rows.values[:, :0]
        nothing = (np.empty(0, dtype=np.int64), np.empty(0))
        own = [(rows.labels, rows.weights) for rows in parts]
        classes, weights = map(np.concatenate, zip(*(own or [nothing]), strict=True))
        return _Joined(Samples(values, classes, weights), places)


OWN = {name for name in vars(WorkerRows) if name[0] != "_"} - {"add", "call", "close"}
"""Messages that a worker's rows answer themselves."""


class _Joined(NamedTuple):
    """The samples of several partitions.

    Attributes
    ----------
    samples : Samples
    places : dict of int to (int, int)
        For each partition its first sample, and the one behind its last.
    """

    samples: Samples
    places: dict[int, tuple[int, int]]


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


def _weigh(rows: Rows, factors: np.ndarray) -> None:
    """Multiply the weights of a partition's samples; those that become zero are dropped.

    Raises
    ------
    ValueError
        If a product is infinite.
    """
    with np.errstate(over="ignore", under="ignore"):  # both are looked for below
        product = rows.weights * factors
    if not product.any():
        nothing = np.empty(0, dtype=np.int64)  # only a whole table of zeros is refused
        rows.labels, rows.weights, rows.rows = rows.labels[:0], product[:0], nothing
        return
    rows.weights, left = check_weights(product, product, PRODUCT)
    if left is not None:
        rows.labels = rows.labels[left]
        rows.rows = left if rows.rows is None else rows.rows[left]


def _leaves(rows: Rows, classes: np.ndarray | None, first_row: int) -> Leaves:
    weights = rows.weights
    if rows.rows is not None:
        weights = np.zeros(len(rows.all_labels))
        weights[rows.rows] = rows.weights
    numbers = rows.all_labels if classes is None else np.searchsorted(classes, rows.all_labels)
    return leaves_of(rows.values.T, numbers, weights, first_row)
