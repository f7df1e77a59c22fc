"""What pairs of features add to scores on the CPU, a tile of rows at a time on every thread.

The bins of all features are found first, as steps are in `prediction`; then each pair's value is
looked up in its table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.engines.cpu.predict.prediction import keys_of, look_up
from gpustump.engines.cpu.runtime.compiling import Bytes, Integers, group, inner, kernel
from gpustump.engines.cpu.table.keys import KEYS, as_keys, count
from gpustump.learners.pair_table import PairTable
from gpustump.learners.thresholds import rounded_down

_TILE = 512
"""Rows whose bins of all features stay in the cache."""


@group
class PairLayout(NamedTuple):
    """The pairs of a model in the form that the kernel takes.

    Attributes
    ----------
    features : ndarray (n_axes,) of int64
    starts : ndarray (n_axes + 1,) of int64
        Where each axis's thresholds begin.
    thresholds : ndarray of int32 or int64
        Keys in the dtype of the rows.
    bins : ndarray of uint8
        The bin of each step, that of NaN included: those of axis a begin at starts[a] + a.
    pairs : ndarray (n_pairs, 3) of int64
        Both axes, and how many bins the second one has.
    tables : ndarray (n_outputs, n_cells) of float64
        The values of all pairs, one after the other.
    places : ndarray (n_pairs,) of int64
        Where each pair's begin.
    """

    features: Integers
    starts: Integers
    thresholds: Annotated[np.ndarray, "KEY[::1]"]
    bins: Bytes
    pairs: Annotated[np.ndarray, "int64[:, ::1]"]
    tables: Annotated[np.ndarray, "float64[:, ::1]"]
    places: Integers


def layout_of(pairs: Sequence[PairTable], dtype: str) -> PairLayout:
    """The layout of pairs with values (k, m, n_outputs), for rows of a dtype."""
    axes = {axis.value: axis for pair in pairs for axis in pair.axes}
    numbers = {value: number for number, value in enumerate(axes)}
    steps = [axis.steps for axis in axes.values()]
    n_outputs = pairs[0].values.shape[2]
    cells = [pair.values.reshape(-1, n_outputs) for pair in pairs]
    sizes = np.cumsum([0, *map(len, cells)])
    return PairLayout(
        features=np.asarray([axis.feature for axis in axes.values()], dtype=np.int64),
        starts=np.cumsum([0, *(len(own.thresholds) for own in steps)]),
        thresholds=keys_of(rounded_down(np.concatenate([own.thresholds for own in steps]), dtype)),
        bins=np.concatenate([own.bins for own in steps]),
        pairs=np.asarray(
            [[*(numbers[axis.value] for axis in pair.axes), pair.axes[1].n_bins] for pair in pairs]
        ),
        tables=np.ascontiguousarray(np.concatenate(cells).T),
        places=sizes[:-1],
    )


def add_pairs(
    scores: np.ndarray,
    X: np.ndarray,
    pairs: Sequence[PairTable],
    n_jobs: int | None,
    layouts: dict[str, Any] | None = None,
) -> np.ndarray:
    """The scores (n_samples, n_outputs) of the rows of X, and what pairs add to them.

    `layouts` keeps the pairs' layout for each dtype from one call to the next.
    """
    dtype = str(arrays.working_dtype(arrays.dtype_name(X)))
    layouts = {} if layouts is None else layouts
    layout = layouts.get(f"pairs in {dtype}")
    if layout is None:
        layout = layouts.setdefault(f"pairs in {dtype}", layout_of(pairs, dtype))
    found = np.array(scores.T, order="C")
    look_up(X, n_jobs, layout, _add_pairs, found)
    return found.T


@inner("void(float64[::1], float64[::1], uint8[::1], uint8[::1], int64)")
def _look_up(values, scores, first, second, n_columns):  # type: ignore[no-untyped-def]
    for i in range(len(scores)):
        scores[i] += values[np.int64(first[i]) * n_columns + np.int64(second[i])]


@kernel(
    "void(Array(KEY, 2, 'A', readonly=True), PairLayout, float64[:, ::1], int64, int64)", KEY=KEYS
)
def _add_pairs(bits, layout, scores, low, high):  # type: ignore[no-untyped-def]
    """Add the pairs' values to the scores (n_outputs, n_samples) of the rows from `low` to `high`,
    whose bit patterns are `bits`."""
    keys = np.empty(_TILE, dtype=layout.thresholds.dtype)
    places = np.empty(_TILE, dtype=np.uint32)
    bins = np.empty((len(layout.features), _TILE), dtype=np.uint8)
    for start in range(low, high, _TILE):
        n = min(_TILE, high - start)
        rows = bits[start - low : start - low + n]
        for a in range(len(layout.features)):
            first, last = layout.starts[a], layout.starts[a + 1]
            as_keys(rows[:, layout.features[a]], keys[:n])
            places[:n] = 0
            count(keys[:n], layout.thresholds[first:last], 1, places[:n])
            own = layout.bins[first + a : last + a + 1]
            for i in range(n):
                bins[a, i] = own[places[i]]
        for pair in range(len(layout.pairs)):
            one, other = bins[layout.pairs[pair, 0], :n], bins[layout.pairs[pair, 1], :n]
            for output in range(len(layout.tables)):
                values = layout.tables[output, layout.places[pair] :]
                of_rows = scores[output, start : start + n]
                _look_up(values, of_rows, one, other, layout.pairs[pair, 2])
