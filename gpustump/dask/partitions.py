"""Dask collections as partitions of rows; a partition, checked; and what all have in common.

X may be an array or a frame, y and the weights an array, a series or a frame of one column. Their
partitions must hold the same rows. Arrays of known chunks are cut as X is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.dask.categories import Asked, ToldColumn, numbered
from gpustump.data.frames import columns_of
from gpustump.data.labels import check_domain, check_labels, check_targets
from gpustump.data.parameters import QuantityLoss, Scoring
from gpustump.data.readable import listed
from gpustump.data.tables import check_table, is_sparse_matrix
from gpustump.data.weights import SMALLEST, check_weights
from gpustump.estimators.held_out import refuse_absent_classes
from gpustump.estimators.targets import NO_OFFSET, Offset, Quantity


class Reading(NamedTuple):
    """How the partitions of a table are read.

    Attributes
    ----------
    n_features : int
    categorical : tuple of int or "from_dtype", or None
        Which columns of a frame are categorical; None for a table of numbers.
    loss : str or None
        That of a quantity; None for classes.
    """

    n_features: int
    categorical: Asked | None = None
    loss: QuantityLoss | None = None


class Summary(NamedTuple):
    """What the leading process is told of a partition that has been checked.

    Attributes
    ----------
    n_rows : int
    n_samples : int
        Rows of positive weight.
    dtype : str or None
        In which its values are compared; None without rows.
    labels : ndarray (n,)
        The distinct labels of its samples; none of a quantity.
    counted : tuple of ndarray (n_all,), ndarray (n_all,) of int64
        The distinct labels of all rows, and how many rows have each; none of a quantity.
    columns : tuple of ToldColumn
        Of a frame that may have categorical columns; otherwise none.
    worker : str
        The address of the worker that keeps it.
    """

    n_rows: int
    n_samples: int
    dtype: str | None
    labels: np.ndarray
    counted: tuple[np.ndarray, np.ndarray]
    columns: tuple[ToldColumn, ...] = ()
    worker: str = ""

    @classmethod
    def of(cls, rows: Rows | None) -> Summary:
        """Of a partition; None for one without rows."""
        if rows is None:
            nothing = np.empty(0, dtype=np.int64)
            return cls(0, 0, None, nothing, (nothing, nothing))
        known = rows.all_labels[:0] if rows.is_quantity else rows.all_labels
        counted = np.unique(known, return_counts=True)
        labels = counted[0]
        if rows.rows is not None and not rows.is_quantity:
            labels = np.unique(rows.labels)
        dtype = arrays.working_dtype(arrays.dtype_name(rows.values))
        n_rows, n_samples = len(rows.values), len(rows.labels)
        return cls(n_rows, n_samples, dtype, labels, counted, rows.columns)


@dataclass
class Rows:
    """A partition's rows, checked, and the samples among them: the rows of positive weight.

    Attributes
    ----------
    values : ndarray (n_rows, n_features)
        Those of all rows.
    labels : ndarray (n_samples,)
        Labels, and later the numbers of classes; of a quantity the targets, float64.
    weights : ndarray (n_samples,) of float64
    rows : ndarray (n_samples,) of int64, or None
        None if all rows are samples.
    all_labels : ndarray (n_rows,)
        Those of all rows.
    is_quantity : bool
    columns : tuple of ToldColumn
        Of a frame that may have categorical columns; otherwise none.
    categories : dict of int to ndarray of str
        By feature the categories that the values of a frame are numbers of, while these are the
        partition's own.
    """

    values: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    rows: np.ndarray | None
    all_labels: np.ndarray
    is_quantity: bool
    columns: tuple[ToldColumn, ...] = ()
    categories: dict[int, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(
        cls, X: Any, y: Any, sample_weight: Any, reading: Reading, offset: Offset = NO_OFFSET
    ) -> Rows | None:
        """Check a partition; None if it has no rows.

        Raises
        ------
        ValueError, TypeError
            As for a fit on this table alone, except that one class is enough.
        """
        if is_sparse_matrix(X):
            raise TypeError(
                "this partition is sparse, and Dask does not know it of the table X. Say so where "
                "it is made, with meta=scipy.sparse.csr_matrix((0, 0)); or, if only rows to watch "
                "are sparse, make these dense."
            )
        if not n_rows_of(X, y, sample_weight, offset):
            return None
        columns: tuple[ToldColumn, ...] = ()
        categories: dict[int, np.ndarray] = {}
        table = None if reading.categorical is None else columns_of(X)
        if table is not None and reading.categorical:
            X, columns, categories = numbered(table, reading.categorical)
        values = arrays.to_host(check_table(X))
        if values.shape[1] != reading.n_features:
            raise ValueError(
                f"this partition has {values.shape[1]} features instead of {reading.n_features}."
            )
        own = targets_of(values, y, sample_weight, reading.loss, offset)
        return cls(values, *own, reading.loss is not None, columns, categories)


def targets_of(
    like: np.ndarray,
    y: Any,
    sample_weight: Any,
    loss: QuantityLoss | None,
    offset: Offset = NO_OFFSET,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]:
    """The labels or targets, weights and rows of a partition's samples, and the labels of all rows.

    Unlike a whole table a partition may have weights of zero only.

    Parameters
    ----------
    like : ndarray (n_rows, ...)
    y, sample_weight : object
        As they were given.
    loss : str or None
        See `Reading`.
    offset : Offset
        Of a quantity; its targets and weights are returned without it.

    Raises
    ------
    ValueError, TypeError
    """
    if loss is None:
        labels = arrays.to_host(check_labels(_column_of(y), like))
    else:
        labels = arrays.to_host(check_targets(_column_of(y), like))
        check_domain(labels, loss)
    sample_weight = _column_of(sample_weight)
    if sample_weight is not None and _is_zero(np.asarray(sample_weight)):
        return labels[:0], np.empty(0), np.empty(0, dtype=np.int64), labels
    given = weights, rows = check_weights(sample_weight, like)
    taken = slice(None) if rows is None else rows
    if loss is not None and offset.given:
        quantity = Quantity.of(labels, given, like, loss, plain(offset))
        labels, weights = labels.copy(), np.asarray(quantity.weights)
        labels[taken] = quantity.targets
    return labels[taken], weights, rows, labels


def _is_zero(weights: np.ndarray) -> bool:
    """Whether all of some weights count as zero."""
    smallest = SMALLEST.get(weights.dtype.name, SMALLEST["float64"])
    return weights.dtype.kind in "biuf" and bool((np.abs(weights) < smallest).all())


def n_rows_of(X: Any, y: Any, sample_weight: Any, offset: Offset = NO_OFFSET) -> int:
    """The number of a partition's rows, which its labels and weights must have, too."""
    n_rows: int = X.shape[0]  # sparse matrices have no length
    for name, own in {"y": y, "sample_weight": sample_weight, **offset.given}.items():
        if own is not None and len(own) != n_rows:
            raise ValueError(
                f"this partition of X has {n_rows} rows and that of {name} has {len(own)}. "
                f"Partition {name} as X."
            )
    return n_rows


def plain(offset: Offset) -> Offset:
    """A partition's offset without frames of one column."""
    return Offset(_column_of(offset.init_score), _column_of(offset.exposure), offset.suffix)


def _column_of(values: Any) -> Any:
    """A frame of one column as that column."""
    is_column = getattr(values, "ndim", 1) == 2 and hasattr(values, "iloc") and values.shape[1] == 1
    return values.iloc[:, 0] if is_column else values


@dataclass(frozen=True)
class Collection:
    """Tables, labels and weights, partition by partition, none of them computed yet.

    Attributes
    ----------
    parts : list of tuple
        For each partition X, y, sample_weight (or None) and an `Offset`, as Delayed objects.
    n_watched : int
        How many of the partitions, the last ones, are rows to watch.
    """

    parts: list[tuple[Any, Any, Any, Offset]]
    n_watched: int = 0

    @classmethod
    def of(
        cls, X: Any, y: Any, sample_weight: Any = None, offset: Offset = NO_OFFSET
    ) -> Collection:
        """From Dask collections.

        Raises
        ------
        TypeError
            If one is no Dask collection.
        ValueError
            If their partitions do not match.
        """
        X = with_whole_rows(X)
        parts = blocks_of(X, "X")
        own = [("y", y), ("sample_weight", sample_weight)]
        y_parts, weight_parts = (_beside(X, other, name, len(parts)) for name, other in own)
        known = offset_parts(X, offset, len(parts))
        return cls(list(zip(parts, y_parts, weight_parts, known, strict=True)))

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def n_trained(self) -> int:
        """How many of the partitions, the first ones, are rows to train on."""
        return len(self) - self.n_watched

    def watching(self, other: Collection) -> Collection:
        """These partitions with those of rows to watch behind them."""
        return replace(self, parts=self.parts + other.parts, n_watched=len(other))

    def name_of(self, part: int) -> str:
        """What a partition is called in messages."""
        if part < self.n_trained:
            return f"partition {part} of the data"
        return f"partition {part - self.n_trained} of X_val and y_val"


class ByPart(dict[int, Any]):
    """Something for each of several partitions, by their numbers.

    As an argument of a message it differs by partition: a worker is sent what is for its own.
    """

    @classmethod
    def of(cls, values: np.ndarray, sizes: Mapping[int, int]) -> ByPart:
        """Something of all samples, of which each partition has so many."""
        ends = np.cumsum(list(sizes.values()))
        return cls(zip(sizes, np.split(values, ends[:-1]), strict=True))


def blocks_of(collection: Any, name: str) -> list[Any]:
    """The partitions of a Dask collection of rows, as Delayed objects.

    Raises
    ------
    TypeError
        If it is something else.
    """
    if not hasattr(collection, "to_delayed") or not hasattr(collection, "dask"):
        raise TypeError(
            f"{name} must be a Dask array or frame; got {type(collection).__name__}. Use the "
            "estimators of `gpustump` for data in memory, or dask.array.from_array."
        )
    return list(np.ravel(collection.to_delayed()))


def with_whole_rows(X: Any) -> Any:
    """X, which must be a Dask collection, with all columns of a row in one chunk."""
    blocks_of(X, "X")
    if getattr(X, "numblocks", None) is None:
        return X
    if X.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, (n_samples, n_features), but it has {X.ndim}."
        )
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def is_frame(X: Any) -> bool:
    """Whether a Dask collection is a frame."""
    return hasattr(X, "_meta_nonempty")


def example_of(X: Any, *, may_be_text: bool) -> Any:
    """A table of one row or two that is like X.

    With `may_be_text` the values of a frame are missing: Dask does not know which text is in X, nor
    which categories there are.
    """
    if is_frame(X):
        return X._meta.reset_index(drop=True).reindex([0]) if may_be_text else X._meta_nonempty
    return np.zeros((1, X.shape[1]), dtype=X.dtype)


def _beside(X: Any, other: Any, name: str, n_parts: int) -> list[Any]:
    """The partitions of another collection, cut as X is where the sizes of its chunks are known."""
    if other is None:
        if name == "y":
            raise ValueError("This estimator requires y to be passed, but the target y is None.")
        return [None] * n_parts
    chunks, own = getattr(X, "chunks", None), getattr(other, "chunks", None)
    if chunks is not None and own is not None and chunks[0] != own[0]:
        if np.isnan(sum(chunks[0])) or np.isnan(sum(own[0])):
            pass  # whether they match is checked once they are computed
        elif sum(chunks[0]) != sum(own[0]):
            raise ValueError(
                f"X and {name} have inconsistent numbers of samples: {sum(chunks[0])} and "
                f"{sum(own[0])}."
            )
        else:
            other = other.rechunk({0: chunks[0]})
    parts = blocks_of(other, name)
    if len(parts) != n_parts:
        raise ValueError(
            f"X has {n_parts} partitions and {name} has {len(parts)}. Partition {name} as X."
        )
    return parts


def offset_parts(X: Any, offset: Offset, n_parts: int) -> list[Offset]:
    """The offset of each partition of X."""
    init_score, exposure, suffix = offset
    named = {f"init_score{suffix}": init_score, f"exposure{suffix}": exposure}
    columns = (_beside(X, own, name, n_parts) for name, own in named.items())
    return [Offset(first, second, suffix) for first, second in zip(*columns, strict=True)]


def check_watched_labels(
    summaries: Mapping[int, Summary], classes: np.ndarray, scoring: Scoring
) -> None:
    """Check that a model of these classes can be scored on the rows to watch.

    Parameters
    ----------
    summaries : mapping from numbers of partitions to Summary
        Those of the partitions to watch.
    classes : ndarray (n_classes,)
    scoring : str

    Raises
    ------
    ValueError
        If a label is no class, or if the score needs a class that has no row.
    """
    known = classes.tolist()
    found = {label for own in summaries.values() for label in own.labels.tolist()}
    if unknown := sorted(found - set(known), key=str):
        raise ValueError(
            f"y_val holds {listed(unknown)}, but the classes of y are {listed(known)}."
        )
    refuse_absent_classes(scoring, classes, np.asarray([known.index(label) for label in found]))


def check_rows(summaries: Mapping[int, Summary], suffix: str = "") -> None:
    """Refuse partitions that have no rows of positive weight; `suffix` ends the names in messages.

    Raises
    ------
    ValueError
    """
    if not any(own.n_rows for own in summaries.values()):
        raise ValueError(f"X{suffix} has 0 sample(s) while a minimum of 1 is required.")
    if not any(own.n_samples for own in summaries.values()):
        raise ValueError(
            f"sample_weight{suffix} is zero for every sample; at least one must be positive."
        )


def union_of(labels: Sequence[np.ndarray]) -> np.ndarray:
    """The distinct labels of all partitions, sorted."""
    kinds = {"text" if own.dtype.kind in "UO" else "numbers" for own in labels if len(own)}
    if len(kinds) > 1:
        raise TypeError(
            "y holds text in some partitions and numbers in others. Make all of one type."
        )
    return np.unique(np.concatenate([own for own in labels if len(own)]))
