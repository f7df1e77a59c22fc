"""A fingerprint of a table, its labels and its weights: what tells whether data are the same.

It depends on the values alone: not on the file they came from, the array library, the dtype, the
order of the bytes or the number of partitions. Each column has a fingerprint of its own, so that
the columns in which two tables differ can be named.

Every column is cut into leaves of `LEAF_ROWS` rows, counted from the table's first row. A leaf's
digest is the SHA-256 of its values as little-endian float64, with one bit pattern for NaN and one
for zero. A column's digest is the SHA-256 of its leaves' digests, and the table's is that of the
number of rows and all columns' digests. A partition of rows digests its whole leaves and passes on
the rows at its ends, so rows on many machines have the same fingerprint as one table. Labels count
as the numbers of their classes; their digest ends with the sorted classes as JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array, SparseTable
from gpustump.data.labels import check_labels, check_targets, plain_labels
from gpustump.data.readable import listed, shown
from gpustump.data.tables import check_table
from gpustump.data.weights import check_weights

LEAF_ROWS = 4096
"""Few enough that the ends of a partition are a short message, and enough that hashing a leaf costs
many times what calling the hash does."""

_DIGEST_BYTES = 32
_COLUMN_DIGITS = 16
"""Hexadecimal digits that are kept of each feature's digest: enough to tell columns apart."""


@dataclass(frozen=True)
class Fingerprint:
    """What two tables have in common if and only if their values are the same.

    Attributes
    ----------
    n_rows : int
    digest : str
        The digest of the whole table: 64 hexadecimal digits.
    columns : tuple of str
        The first 16 hexadecimal digits of the digest of each feature.
    target : str
        The same for the labels.
    weights : str
        The same for the sample weights, and for what is known of samples beforehand. None and a
        weight of 1 for every row are the same.
    """

    n_rows: int
    digest: str
    columns: tuple[str, ...]
    target: str
    weights: str

    def as_details(self) -> dict[str, Any]:
        """What a file holds, for `from_details`."""
        return {
            "rows": self.n_rows,
            "digest": self.digest,
            "columns": list(self.columns),
            "target": self.target,
            "weights": self.weights,
        }

    @classmethod
    def from_details(cls, found: Any) -> Fingerprint:
        """The fingerprint that a file holds.

        Raises
        ------
        ValueError
            If it does not have the parts that `as_details` returns. Digests that no table has are
            no error, but differ from every table's.
        """
        wanted = {"rows": int, "digest": str, "columns": list, "target": str, "weights": str}
        if type(found) is not dict or {name: type(own) for name, own in found.items()} != wanted:
            raise ValueError(
                f"a fingerprint must be an object of {', '.join(wanted)}, each of its type; got "
                f"{shown(found)}."
            )
        columns = tuple(map(str, found["columns"]))
        return cls(found["rows"], found["digest"], columns, found["target"], found["weights"])

    def differences(self, other: Fingerprint, names: Sequence[str] | None = None) -> list[str]:
        """How another table differs from this one, in words; empty if it does not differ.

        Parameters
        ----------
        other : Fingerprint
        names : sequence of str, optional
            What the features of this table are called; by default by their numbers.
        """
        if self.digest == other.digest:
            return []
        if self.n_rows != other.n_rows:
            return [f"the table has {other.n_rows} rows instead of {self.n_rows}"]
        if len(self.columns) != len(other.columns):
            n_other, n_own = len(other.columns), len(self.columns)
            return [f"the table has {n_other} features instead of {n_own}"]
        pairs = zip(self.columns, other.columns, strict=True)
        changed = [number for number, (own, its) in enumerate(pairs) if own != its]
        found = []
        if changed:
            called = [names[n] if names else n for n in changed]
            noun = "feature" if len(changed) == 1 else "features"
            found.append(f"the values of {noun} {listed(called)} differ")
        if self.target != other.target:
            found.append("the target differs")
        if self.weights != other.weights:
            found.append("the sample weights differ, or the initial scores")
        return found or ["the values differ"]


def fingerprint_of(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    of_quantity: bool = False,
    offset: np.ndarray | None = None,
) -> Fingerprint:
    """The fingerprint of a table with its labels, or targets, and weights.

    Parameters
    ----------
    X : array or frame (n_samples, n_features)
    y : array (n_samples,)
    sample_weight : array (n_samples,), optional
    of_quantity : bool
        Whether y holds a quantity, and not labels of classes.
    offset : ndarray (n_samples,) or (n_samples, n_classes), optional
        What is known of samples beforehand.

    Returns
    -------
    Fingerprint

    Raises
    ------
    ValueError, TypeError
        If the data are not what `fit` accepts.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.asarray([[0.0, 1.0], [2.0, 3.0]])
    >>> found = fingerprint_of(X, ["no", "yes"])
    >>> found == fingerprint_of(X.astype(np.float32), ["no", "yes"], [1, 1])
    True
    >>> found.differences(fingerprint_of(X * [1, 2], ["no", "yes"]), ["length", "width"])
    ["the values of feature 'width' differ"]
    """
    X = check_table(X)
    with arrays.computing_on(X):
        weights = all_weights(sample_weight, X)
        numbers = arrays.to_host(check_targets(y, X) if of_quantity else check_labels(y, X))
    classes: Sequence[Any] = ()
    if not of_quantity:
        labels, numbers = np.unique(numbers, return_inverse=True)
        classes = plain_labels(labels)
    if arrays.is_sparse(X):
        return _fingerprint(_sparse_leaves(X, numbers, weights), classes, offset)
    return joined([leaves_of(X, numbers, weights)], classes, offset)


def all_weights(sample_weight: Any, X: Array) -> np.ndarray:
    """The weight of every row, (n_rows,) of float64: 0 for the rows that take no part."""
    found, rows = check_weights(sample_weight, X)
    found = arrays.to_host(found)
    if rows is None:
        return found
    weights = np.zeros(X.shape[0])
    weights[arrays.to_host(rows)] = found
    return weights


class Leaves(NamedTuple):
    """Consecutive rows of a table: their whole leaves as digests, and the rows at both ends.

    The columns are the features, the number of each row's class, and its weight.

    Attributes
    ----------
    head : ndarray (n_head, n_columns) of float64
        The rows before the first row of the table that begins a leaf.
    digests : bytes
        The digests of the whole leaves: leaf by leaf, and within a leaf column by column.
    tail : ndarray (n_tail, n_columns) of float64
        The other rows: fewer than a leaf has.
    """

    head: np.ndarray
    digests: bytes
    tail: np.ndarray


def leaves_of(X: Array, numbers: np.ndarray, weights: np.ndarray, first_row: int = 0) -> Leaves:
    """The leaves of consecutive rows.

    Parameters
    ----------
    X : array (n_rows, n_features)
        As `check_table` returns it.
    numbers : ndarray (n_rows,)
        The number of each row's class, among the classes of the whole table; or its target.
    weights : ndarray (n_rows,) of float64
    first_row : int
        The number of the first row in the whole table.
    """
    n_rows = X.shape[0]
    begin = min(-first_row % LEAF_ROWS, n_rows)
    end = begin + (n_rows - begin) // LEAF_ROWS * LEAF_ROWS

    def rows(start: int, stop: int) -> np.ndarray:
        own = arrays.to_host(X[start:stop, :])
        found = np.empty((X.shape[1] + 2, stop - start), dtype="<f8")
        found[:-2], found[-2], found[-1] = own.T, numbers[start:stop], weights[start:stop]
        return _canonical(found)

    starts = range(begin, end, LEAF_ROWS)
    digests = b"".join(_digests(rows(start, start + LEAF_ROWS)) for start in starts)
    return Leaves(rows(0, begin).T, digests, rows(end, n_rows).T)


def joined(
    parts: Iterable[Leaves], classes: Sequence[Any], offset: np.ndarray | None = None
) -> Fingerprint:
    """The fingerprint of a table from the leaves of all its rows, in order.

    Parameters
    ----------
    parts : iterable of Leaves
    classes : sequence
        The labels of the classes that the numbers stand for, sorted, as a model holds them.
    offset : ndarray (n_rows, ...), optional
        What is known of samples beforehand.
    """
    return _fingerprint(_all_leaves(parts), classes, offset)


def _all_leaves(parts: Iterable[Leaves]) -> Iterator[tuple[bytes, int]]:
    """The digests of each leaf's columns, and its number of rows; the last one may have fewer."""
    rows: np.ndarray | None = None  # those of a leaf that has begun
    for part in parts:
        rows = part.head if rows is None else np.concatenate([rows, part.head])
        if len(rows) and (part.digests or len(rows) == LEAF_ROWS):
            yield _digests(rows.T), len(rows)
            rows = rows[:0]
        size = _DIGEST_BYTES * rows.shape[1]
        for at in range(0, len(part.digests), size):
            yield part.digests[at : at + size], LEAF_ROWS
        rows = np.concatenate([rows, part.tail])
    if rows is not None and len(rows):
        yield _digests(rows.T), len(rows)


def _sparse_leaves(
    X: SparseTable, numbers: np.ndarray, weights: np.ndarray
) -> Iterator[tuple[bytes, int]]:
    """As `_all_leaves`, of a sparse table. Leaves that list nothing have the digest of zeros."""
    n_features, begins = X.shape[1], range(0, len(X), LEAF_ROWS)
    lengths = [min(LEAF_ROWS, len(X) - begin) for begin in begins]
    digests = [bytearray(_digests(np.zeros((1, n))) * n_features) for n in lengths]
    for feature in range(n_features):
        rows, values = X.listed(feature)
        leaves, starts = np.unique(rows // LEAF_ROWS, return_index=True)
        ends = [*starts[1:].tolist(), len(rows)]
        for leaf, start, end in zip(leaves.tolist(), starts.tolist(), ends, strict=False):
            own, here = rows[start:end], values[start:end]
            column = np.zeros((1, lengths[leaf]))
            column[0, own - leaf * LEAF_ROWS] = here
            at = feature * _DIGEST_BYTES
            digests[leaf][at : at + _DIGEST_BYTES] = _digests(_canonical(column))
    for own_digests, begin, n in zip(digests, begins, lengths, strict=True):
        rest = slice(begin, begin + n)
        last = np.stack([numbers[rest], weights[rest]]).astype("<f8")
        yield bytes(own_digests) + _digests(_canonical(last)), n


def _fingerprint(
    leaves: Iterable[tuple[bytes, int]], classes: Sequence[Any], offset: np.ndarray | None
) -> Fingerprint:
    """`joined`, from the digests of each leaf's columns, and its number of rows."""
    hashes: list[Any] = []
    n_rows = 0
    for digests, n_of_leaf in leaves:
        columns = range(0, len(digests), _DIGEST_BYTES)
        if not hashes:
            hashes = [hashlib.sha256() for _ in columns]
        for own, at in zip(hashes, columns, strict=True):
            own.update(digests[at : at + _DIGEST_BYTES])
        n_rows += n_of_leaf
    hashes[-2].update(json.dumps(list(classes), ensure_ascii=True).encode())
    if offset is not None:
        hashes[-1].update(_canonical(np.array(offset, dtype="<f8")).tobytes())
    whole = hashlib.sha256(str(n_rows).encode())
    for own in hashes:
        whole.update(own.digest())
    *features, target, weights = (own.hexdigest()[:_COLUMN_DIGITS] for own in hashes)
    return Fingerprint(n_rows, whole.hexdigest(), tuple(features), target, weights)


def _canonical(values: np.ndarray) -> np.ndarray:
    """The same numbers, each in one bit pattern only; changed in place."""
    values += 0.0  # -0.0 becomes 0.0
    values[np.isnan(values)] = np.nan
    return values


def _digests(columns: np.ndarray) -> bytes:
    """The SHA-256 of each row of an array (n_columns, n_rows), one after the other."""
    rows = np.ascontiguousarray(columns, dtype="<f8")
    return b"".join(hashlib.sha256(own).digest() for own in rows)
