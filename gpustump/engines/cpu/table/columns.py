"""The codes of all features as columns: two bytes for each value of features with many, else one.

A *wide* column, of two bytes, belongs to one feature. Its codes say in which of up to 1023 bins a
value lies (the upper ten bits) and in which of 64 parts of that bin (the lower six), both in the
order of the values. A *narrow* column, of one byte, belongs to a feature of few values, to a bundle
of such features (see `bundles`), or to any feature if memory or samples are too few for two bytes.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from gpustump.engines.cpu.runtime.compiling import Integers, group

WIDE_BINS, NARROW_BINS = 1024, 256
"""How many bins the codes of a column can tell apart, that of missing values included."""

PART_BITS = 6
"""How many lower bits of a code of two bytes tell the part of the bin."""


_LINE = 64
"""Bytes of a line of the cache."""


def aligned(n_integers: int) -> np.ndarray:
    """Zeros (n_integers,) of int64 that begin at a line of the cache."""
    room = np.zeros(n_integers + _LINE // 8, dtype=np.int64)
    skipped = -room.ctypes.data % _LINE // 8
    return room[skipped : skipped + n_integers]


@group
class Columns(NamedTuple):
    """The codes of a table. Where all columns are numbered together, the wide ones come first.

    Attributes
    ----------
    wide : ndarray (n_wide, n_samples) of uint16
    narrow : ndarray (n_narrow, n_samples) of uint8
    """

    wide: Annotated[np.ndarray, "uint16[:, ::1]"]
    narrow: Annotated[np.ndarray, "uint8[:, ::1]"]

    @property
    def n_columns(self) -> int:
        return len(self.wide) + len(self.narrow)

    @property
    def n_samples(self) -> int:
        return int(self.wide.shape[1])


@group
class Uncoded(NamedTuple):
    """Rows for the codes of each feature by itself, before features are bundled.

    Attributes
    ----------
    wide : ndarray (n_wide, n_samples) of uint16
    narrow : ndarray (n_narrow, n_samples) of uint8
    is_wide : ndarray (n_features,) of bool
    row : ndarray (n_features,) of int64
        The feature's row in one of the two arrays.
    n_cuts : ndarray (n_features,) of int64
    """

    wide: Annotated[np.ndarray, "uint16[:, ::1]"]
    narrow: Annotated[np.ndarray, "uint8[:, ::1]"]
    is_wide: Annotated[np.ndarray, "boolean[::1]"]
    row: Integers
    n_cuts: Integers


@group
class Histograms(NamedTuple):
    """Sums over the samples of every bin of every column, in planes: one for each kind of samples.

    If two integers are added up for each sample (width 2), their sums are neighbours, so that both
    are in the cache when one is.

    Attributes
    ----------
    wide : ndarray (n_planes, n_wide, 1024 * width) of int64
    narrow : ndarray (n_planes, n_narrow, 256 * width) of int64
    """

    wide: Annotated[np.ndarray, "int64[:, :, ::1]"]
    narrow: Annotated[np.ndarray, "int64[:, :, ::1]"]

    @classmethod
    def empty(cls, n_planes: int, width: int, columns: Columns) -> Histograms:
        n_wide, n_narrow = len(columns.wide), len(columns.narrow)
        wide, narrow = (
            (n_planes, n_wide, WIDE_BINS * width),
            (n_planes, n_narrow, NARROW_BINS * width),
        )
        return cls(
            aligned(math.prod(wide)).reshape(wide), aligned(math.prod(narrow)).reshape(narrow)
        )
