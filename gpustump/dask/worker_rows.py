"""The rows that a worker holds: first as partitions, then joined, and shared out to bags.

Each bag is trained on its own share of the samples, of which a shard is made. The shards of all
bags read the values from one array.

Values are kept feature by feature. If they would take more than half of the worker's memory, they
go to a file in the worker's local directory, and only what is made of them stays in memory: codes
of two bytes, classes, weights. (A GPU has codes of its own, and a copy of the values.)
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays.devices import explained_errors
from gpustump.boosting.held_out.judging import LocalJudge
from gpustump.boosting.held_out.samples import HeldOut, HeldOutTargets
from gpustump.boosting.held_out.scores import scorer
from gpustump.dask.categories import PlainNumbers, renumber
from gpustump.dask.messages import NO_SAMPLES
from gpustump.dask.partitions import Rows
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
        For files. They have no names there: each is gone with its array, whatever happens.
    """

    def __init__(self, limit: int | None, folder: str) -> None:
        self.limit, self._folder = limit, folder
        self._in_memory = 0

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """An array of values."""
        n_bytes = int(np.prod(shape)) * dtype.itemsize
        if self.limit is None or self._in_memory + n_bytes <= _SHARE_OF_VALUES * self.limit:
            self._in_memory += n_bytes
            return np.empty(shape, dtype)
        with tempfile.TemporaryFile(prefix="gpustump-", dir=self._folder) as file:
            return np.memmap(file, dtype, "w+", shape=shape)

    def release(self, values: np.ndarray) -> None:
        """Count the memory of an array as free; the caller forgets it."""
        if not isinstance(values, np.memmap):
            self._in_memory -= values.nbytes


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
        self._is_settled = False
        self._trained: _Joined | None = None
        self._watched: _Joined | None = None
        self._device = "cpu"
        self._shard: Shard | None = None
        self._held_out: _Joined | None = None
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
        with explained_errors(self._device):
            if method in OWN:
                return getattr(self, method)(*arguments)
            if self._shard is None:
                return NO_SAMPLES
            return answer(self._shard, method, arguments)

    def replay(self, messages: Sequence[tuple[str, Sequence[Any]]]) -> None:
        """Repeat messages that were sent before these rows were brought here."""
        for method, arguments in messages:
            self.call(method, arguments)

    def keep(self, parts: Collection[int]) -> bool:
        """Keep only these partitions from now on. Returns whether all of them are here."""
        self._is_settled = True
        for number in set(self._parts) - set(parts):
            self._store.release(self._parts.pop(number).values)
        return self._brought >= set(parts)

    def number_categories(
        self, known: Mapping[int, Mapping[str, int]], n_trained: int, plain: Sequence[PlainNumbers]
    ) -> dict[int, dict[int, Unseen]]:
        """Replace the partitions' own numbers of categories by those of all partitions together.

        Parameters
        ----------
        known : mapping from features to mappings of str to int
            The numbers of categories.
        n_trained : int
        plain : sequence of PlainNumbers
            The features whose values are numbers of categories already, which is checked in the
            partitions below `n_trained`.

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
            renumbered = {
                feature: renumber(rows.values[feature], own, known.get(feature, {}))
                for feature, own in rows.categories.items()
            }
            found[number] = {j: own for j, own in renumbered.items() if own is not None}
            rows.categories = {}
            for feature, name in plain if number < n_trained else ():
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
        found = {}
        for number, (labels, first_row) in known.items():
            rows = self._parts[number]
            weights, numbers = rows.weights, rows.all_labels
            if rows.rows is not None:
                weights = np.zeros(len(rows.all_labels))
                weights[rows.rows] = rows.weights
            if labels is not None:
                numbers = np.searchsorted(labels, rows.all_labels)
            found[number] = leaves_of(rows.values.T, numbers, weights, first_row)
        return found

    def weigh_labels(
        self, n_trained: int, labels: np.ndarray, factors: np.ndarray
    ) -> list[np.ndarray]:
        """Multiply the weights in the partitions below `n_trained` by factors of sorted labels.

        Samples whose weight becomes zero take no part any more. Returns, for each partition, the
        distinct labels of those that are left.

        Raises
        ------
        ValueError
            If a product is infinite.
        """
        trained = [rows for number, rows in self._parts.items() if number < n_trained]
        for rows in trained:
            with np.errstate(over="ignore", under="ignore"):  # both are looked for below
                product = rows.weights * factors[np.searchsorted(labels, rows.labels)]
            if not product.any():
                nothing = np.empty(0, dtype=np.int64)  # only a whole table of zeros is refused
                rows.labels, rows.weights, rows.rows = rows.labels[:0], product[:0], nothing
                continue
            rows.weights, left = check_weights(product, product, PRODUCT)
            if left is not None:
                rows.labels = rows.labels[left]
                rows.rows = left if rows.rows is None else rows.rows[left]
        return [np.unique(rows.labels) for rows in trained]

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

    def samples_by_part(self, n_trained: int, name: str) -> dict[int, Any]:
        """An attribute of the `Rows` of each partition below `n_trained`."""
        own = self._parts.items()
        return {number: getattr(rows, name) for number, rows in own if number < n_trained}

    def join(
        self, n_trained: int, dtype: str, watched_dtype: str | None, n_features: int, device: str
    ) -> tuple[dict[int, int], bool]:
        """Join all partitions.

        Parameters
        ----------
        n_trained : int
            The numbers of the partitions to train on are below this.
        dtype, watched_dtype : str
            The dtypes in which to keep values, and those of the other partitions: "float32" or
            "float64". These are the rows to watch, in place of the samples that bags leave out;
            None if there are none.
        n_features : int
        device : str
            Where shards compute; see `shard_of`.

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
        self._device = device
        trained = sorted(number for number in self._parts if number < n_trained)
        n_samples = sum(len(self._parts[own].weights) for own in trained)
        needed, limit = n_samples * (n_features * _ELEMENT_BYTES + _SAMPLE_BYTES), self._store.limit
        if limit is not None and needed > limit:
            raise WorkerMemoryError(
                f"{n_samples} rows of {n_features} features need {readable_bytes(needed)} on one "
                f"worker, with the values in files, but its memory limit is "
                f"{readable_bytes(limit)}. Take more workers, or more memory for each."
            )
        if watched_dtype is not None:
            watched = sorted(set(self._parts) - set(trained))
            self._watched = self._joined(watched, watched_dtype, n_features)
        self._trained = self._joined(trained, dtype, n_features)
        self._parts.clear()
        return self._trained.sizes, isinstance(self._trained.samples.values, np.memmap)

    def take_share(self, left_out: Mapping[int, np.ndarray], categorical: Sequence[int]) -> None:
        """Begin a bag: make a shard of all samples but some.

        The samples that are left out are watched, unless there are other rows for that.

        Parameters
        ----------
        left_out : mapping from numbers of partitions to ndarray of bool
            Which of the partition's samples; those that are not named leave nothing out.
        categorical : sequence of int
            As for `contract.Task`.
        """
        trained = self._joined_rows
        self._shard = self._held_out = self._judge = None  # frees their memory
        is_left_out = trained.flags(left_out)
        watched = self._watched
        self._held_out = trained.taken(is_left_out) if watched is None else watched
        samples = trained.taken(~is_left_out).samples
        if len(samples):
            self._shard = shard_of(samples, self._device, self._n_threads, categorical)

    def rows(
        self, are_watched: bool, chosen: Mapping[int, np.ndarray] | None
    ) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Values (n, n_features), classes or targets, and weights of each partition's samples to
        train on, or to watch: of all, or of those that are flagged."""
        joined = self._watched if are_watched else self._joined_rows
        assert joined is not None
        if chosen is not None:
            joined = joined.taken(joined.flags(chosen))
        samples = joined.samples
        values = samples.values_of(slice(None))
        return {
            number: (
                np.ascontiguousarray(values[:, own].T), samples.classes[own], samples.weights[own]
            )
            for number, own in joined.places.items()
        }  # fmt: skip

    def of_held_out(self, method: str, *arguments: Any) -> Any:
        """The answer of a method of the samples to watch."""
        return getattr(self._watched_rows.samples, method)(*arguments)

    def held_out_samples(self, exponent: int) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Their classes, and their integer weights, int64, by partition."""
        samples = self._watched_rows.samples
        units = scaled(samples.weights, exponent).astype(np.int64)
        places = self._watched_rows.places.items()
        return {number: (samples.classes[own], units[own]) for number, own in places}

    def watch(self, about: Watch) -> list[int] | None:
        """Begin to watch a run. Returns the totals of the score; None for the ROC curve."""
        own = self._watched_rows.samples
        X, rows = own.values.T, own.rows
        if about.scoring == "roc_auc":
            self._judge = running_scores(X, about.constant, rows, n_jobs=self._n_threads)
            return None
        units = scaled(own.weights, about.exponent).astype(np.int64)
        weights = IntegerWeights(units, about.total)
        watched: HeldOut | HeldOutTargets
        if about.is_quantity:
            targets = own.classes.astype(np.float64)
            watched = HeldOutTargets(targets, weights, about.n_samples, about.level)
        else:
            given = about.positive, about.n_outputs, self._n_threads
            watched = HeldOut.of(own.classes, weights, *given)
        score = scorer(about.scoring, watched, about.link)
        self._judge = LocalJudge(X, rows, watched, score, about.constant, self._n_threads)
        return self._judge.totals

    def judge(self, terms: Sequence[tuple[Any, np.ndarray]]) -> Any:
        """Add terms to the model. Returns the parts of its score, or the scores of the samples by
        partition."""
        judge = self._judge
        assert judge is not None
        for hypothesis, votes in terms:
            judge.add(hypothesis, votes)
        if isinstance(judge, LocalJudge):
            return judge.parts()
        scores = judge.copy()
        return {number: scores[own] for number, own in self._watched_rows.places.items()}

    @property
    def _joined_rows(self) -> _Joined:
        assert self._trained is not None, "rows are joined first"
        return self._trained

    @property
    def _watched_rows(self) -> _Joined:
        assert self._held_out is not None, "a share is taken first"
        return self._held_out

    def _joined(self, numbers: Sequence[int], dtype: str, n_features: int) -> _Joined:
        """The samples of some partitions, whose own values are freed one after the other."""
        parts = [self._parts[number] for number in numbers]
        sizes = {number: len(self._parts[number].weights) for number in numbers}
        values = self._store.empty((n_features, sum(sizes.values())), np.dtype(dtype))
        for rows, own in zip(parts, _places(sizes).values(), strict=True):
            for to, given in zip(values[:, own], rows.values, strict=True):
                to[:] = given if rows.rows is None else given[rows.rows]
            self._store.release(rows.values)
            rows.values = np.empty((0, 0))
        nothing = (np.empty(0, dtype=np.int64), np.empty(0))
        columns = [(rows.labels, rows.weights) for rows in parts]
        classes, weights = map(np.concatenate, zip(*(columns or [nothing]), strict=True))
        return _Joined(Samples(values, classes, weights), sizes)


OWN = {name for name in vars(WorkerRows) if name[0] != "_"} - {"add", "call"}
"""Messages that a worker's rows answer themselves."""


class _Joined(NamedTuple):
    """The samples of several partitions.

    Attributes
    ----------
    samples : Samples
    sizes : dict of int to int
        How many are of each partition, in their order.
    """

    samples: Samples
    sizes: dict[int, int]

    @property
    def places(self) -> dict[int, slice]:
        """Where the samples of each partition are."""
        return _places(self.sizes)

    def flags(self, by_part: Mapping[int, np.ndarray]) -> np.ndarray:
        """A flag for each sample; False for those of partitions that are not named."""
        found = np.zeros(len(self.samples), dtype=bool)
        for number, own in self.places.items():
            found[own] = by_part.get(number, False)
        return found

    def taken(self, flags: np.ndarray) -> _Joined:
        """The samples that are flagged."""
        sizes = {number: int(flags[own].sum()) for number, own in self.places.items()}
        return _Joined(self.samples.taken(np.flatnonzero(flags)), sizes)


def _places(sizes: Mapping[int, int]) -> dict[int, slice]:
    ends = itertools.accumulate(sizes.values(), initial=0)
    return dict(zip(sizes, itertools.starmap(slice, itertools.pairwise(ends)), strict=True))


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
    level : float
        See `HeldOutTargets`.
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
    level: float = 0.5
