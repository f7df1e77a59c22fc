"""The cuts of one feature, and the sums of integers on their left. Loss curves consist of both."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.input_arrays import as_array
from gpustump.data.tables import check_table
from gpustump.learners.thresholds import midpoints


class Cuts(NamedTuple):
    """The cuts of a feature with k distinct values, from below all of them to above all.

    Attributes
    ----------
    values : ndarray (k,)
        The distinct values, increasing, in the column's dtype.
    thresholds : ndarray (k + 1,) of float64
        -inf, the midpoints, and +inf; +inf alone if all values are missing.
    present, missing : ndarray of int64
        Indices of the samples with a value, in increasing order of it, and of those without.
    is_last : ndarray (n_present,) of bool
        Whether a sample is the last one of its value, in the order of `present`.
    """

    values: np.ndarray
    thresholds: np.ndarray
    present: np.ndarray
    missing: np.ndarray
    is_last: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray) -> Cuts:
        """The cuts of a column (n_samples,) of floats on the host; NaN means missing."""
        with np.errstate(all="ignore"):
            keys = arrays.order_keys(x)
        order = np.argsort(keys, kind="stable")
        is_there = keys[order] != arrays.missing_key(arrays.dtype_name(x))
        present = order[is_there]
        is_last = np.append(keys[present][1:] != keys[present][:-1], True)[: len(present)]
        values = x[present][is_last]
        ends = np.concatenate([[-math.inf], midpoints(values), [math.inf]])
        thresholds = ends if len(values) else ends[-1:]
        return cls(values, thresholds, present, order[~is_there], is_last)

    def sums_left(self, integers: np.ndarray) -> np.ndarray:
        """The sums over the samples on the left of each cut, from 0 to all present: (k + 1,)."""
        running = np.cumsum(integers[self.present])
        return np.append(np.zeros(1, dtype=np.int64), running[self.is_last])


def checked_column(x: Any) -> Array:
    """One feature's values, with the errors of `check_table`."""
    x = as_array(x, "x")
    if x.ndim != 1:
        raise ValueError(
            f"x must have one dimension, (n_samples,), but its shape is {tuple(x.shape)}; pass one "
            "column, X[:, j], at a time."
        )
    return check_table(x[:, None], name="x")[:, 0]
