"""Dask collections as partitions of rows, and what a partition holds once it is computed.

X may be an array or a frame, y and the weights an array, a series or a frame of one column. Their
partitions must hold the same rows. Arrays of known chunks are cut as X is.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.dask.categories import Asked, Numbered, ToldColumn, numbered
from gpustump.data.frames import columns_of
from gpustump.data.labels import check_domain, check_labels, check_targets
from gpustump.data.parameters import QuantityLossName
from gpustump.data.readable import caller_level
from gpustump.data.tables import check_table
from gpustump.data.weights import check_weights


class Part(NamedTuple):
    """A partition's table, labels and weights, as they were given.

    Attributes
    ----------
    X, y, sample_weight : object
    categorical : tuple of int or "from_dtype", or None
        Which columns of a frame are categorical; None for a table of numbers.
    loss : str or None
        That of a quantity; None for classes.
    """

    X: Any
    y: Any
    sample_weight: Any
    categorical: Asked | None = None
    loss: QuantityLossName | None = None

    def n_rows(self) -> int:
        """The number of rows.

        Raises
        ------
        ValueError
            If labels or weights have another.
        """
        n_rows = len(self.X)
        for name, own in (("y", self.y), ("sample_weight", self.sample_weight)):
            if own is not None and len(own) != n_rows:
                raise ValueError(
                    f"this partition of X has {n_rows} rows and that of {name} has {len(own)}. "
                    f"Partition {name} as X."
                )
        return n_rows

    @property
    def weighs_nothing(self) -> bool:
        """Whether there are weights, all of them zero; only a whole table of zeros is refused."""
        return self.sample_weight is not None and not np.any(np.asarray(self.sample_weight))


class Summary(NamedTuple):
    """What is known of a partition that has been checked.

    Attributes
    ----------
    n_rows : int
    n_samples : int
        Rows of positive weight.
    n_features : int
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
    n_features: int
    dtype: str | None
    labels: np.ndarray
    counted: tuple[np.ndarray, np.ndarray]
    columns: tuple[ToldColumn, ...] = ()
    worker: str = ""

    @classmethod
    def of_nothing(cls) -> Summary:
        """Of a partition without rows."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(0, 0, 0, None, nothing, (nothing, nothing))


@dataclass(frozen=True)
class Rows:
    """A partition's samples, checked.

    Attributes
    ----------
    values : ndarray (n_rows, n_features)
        Those of all rows.
    labels : ndarray (n_samples,)
        Of a quantity the targets, float64.
    weights : ndarray (n_samples,) of float64
    rows : ndarray (n_samples,) of int64, or None
        The rows of positive weight; None for all.
    all_labels : ndarray (n_rows,)
        Those of all rows.
    counted : tuple of ndarray (n_all,), ndarray (n_all,) of int64
        The distinct labels of all rows, and how many rows have each; none of a quantity.
    frame : Numbered or None
        A frame that may have categorical columns.
    """

    values: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    rows: np.ndarray | None
    all_labels: np.ndarray
    counted: tuple[np.ndarray, np.ndarray]
    frame: Numbered | None

    @classmethod
    def of(cls, part: Part) -> Rows | None:
        """Check a partition; None if it has no rows.

        Raises
        ------
        ValueError, TypeError
            As for a fit on this table alone, except that one class is enough.
        """
        if part.n_rows() == 0:
            return None
        table = None if part.categorical is None else columns_of(part.X)
        frame = numbered(table, part.categorical) if table and part.categorical else None
        X = arrays.to_host(check_table(part.X if frame is None else frame.X))
        if part.loss is None:
            labels = arrays.to_host(check_labels(column_of(part.y), X))
            counted = np.unique(labels, return_counts=True)
        else:
            labels = arrays.to_host(check_targets(column_of(part.y), X))
            check_domain(labels, part.loss)
            counted = (labels[:0], np.empty(0, dtype=np.int64))
        if part.weighs_nothing:
            nothing = np.empty(0, dtype=np.int64)
            return cls(X, labels[:0], np.empty(0), nothing, labels, counted, frame)
        weights, rows = check_weights(column_of(part.sample_weight), X)
        own = labels if rows is None else labels[rows]
        return cls(X, own, weights, rows, labels, counted, frame)

    def summary(self) -> Summary:
        """The summary of this partition."""
        dtype = arrays.working_dtype(arrays.dtype_name(self.values))
        n_rows, n_features = self.values.shape
        labels = self.counted[0]
        if self.rows is not None and len(labels):
            labels = np.unique(self.labels)
        columns = () if self.frame is None else self.frame.columns
        n_samples = len(self.labels)
        return Summary(n_rows, n_samples, n_features, dtype, labels, self.counted, columns)


def column_of(values: Any) -> Any:
    """A frame of one column as that column."""
    is_frame = getattr(values, "ndim", 1) == 2 and hasattr(values, "iloc") and values.shape[1] == 1
    return values.iloc[:, 0] if is_frame else values


@dataclass(frozen=True)
class Collection:
    """Tables, labels and weights, partition by partition, none of them computed yet.

    Attributes
    ----------
    X, y : list of Delayed
    sample_weight : list of Delayed or of None
    example : object
        A table of one row or two that is like X, to learn its columns from.
    n_watched : int
        How many of the partitions, the last ones, are rows to watch.
    categorical : tuple of int or "from_dtype", or None
    loss : str or None
        See `Part`.
    """

    X: list[Any]
    y: list[Any]
    sample_weight: list[Any]
    example: Any
    n_watched: int = 0
    categorical: Asked | None = None
    loss: QuantityLossName | None = None

    @classmethod
    def of(
        cls, X: Any, y: Any, sample_weight: Any = None, *, may_be_text: bool = False
    ) -> Collection:
        """From Dask collections; for `may_be_text` see `example_of`.

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
        example = example_of(X, may_be_text=may_be_text)
        return cls(parts, y_parts, weight_parts, example)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def n_trained(self) -> int:
        """How many of the partitions, the first ones, are rows to train on."""
        return len(self) - self.n_watched

    def watching(self, other: Collection) -> Collection:
        """These partitions with those of rows to watch behind them."""
        return replace(
            self,
            X=self.X + other.X,
            y=self.y + other.y,
            sample_weight=self.sample_weight + other.sample_weight,
            n_watched=len(other),
        )

    def name_of(self, part: int) -> str:
        """What a partition is called in messages."""
        if part < self.n_trained:
            return f"partition {part} of the data"
        return f"partition {part - self.n_trained} of X_val and y_val"


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
    """X with all columns of a row in one chunk."""
    if getattr(X, "numblocks", None) is None:
        return X
    if X.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, (n_samples, n_features), but it has {X.ndim}."
        )
    if X.numblocks[1] > 1:
        warnings.warn(
            f"X has {X.numblocks[1]} chunks of columns, which are joined: a row has to be in one "
            "place. To do it once and for all: X.rechunk({1: -1}).",
            stacklevel=caller_level(),
        )
        X = X.rechunk({1: -1})
    return X


def is_frame(X: Any) -> bool:
    """Whether a Dask collection is a frame."""
    return hasattr(X, "_meta_nonempty")


def example_of(X: Any, *, may_be_text: bool = False) -> Any:
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
