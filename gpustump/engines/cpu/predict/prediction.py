"""F(x) on the CPU: the sum of step functions, a tile of rows at a time on every thread.

A feature's values are compared as keys (see `arrays.order_keys`) in the table's own dtype. With few
steps, every threshold is compared with all rows of the tile, for many rows in one instruction; with
many steps, each row's step is found by bisection.

Reading a vote from its table takes longer than finding its place there. So features are grouped. A
group has one table of sums of votes, with a place for every combination of steps, so one look-up
serves several features. Sums of votes are exact in any order. A model whose votes are not multiples
of `VOTE_UNIT`, which was not trained here, is added up feature by feature, as the reference does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.engines.cpu.runtime.compiling import Integers, group, inner, kernel
from gpustump.engines.cpu.table.keys import KEYS, as_keys, count
from gpustump.engines.cpu.table.source_table import codable
from gpustump.engines.threads import Team, ranges, threads_of
from gpustump.learners.step_table import StepTable, StepTables
from gpustump.learners.thresholds import rounded_down

_TILE = 512
"""Rows whose values of all features stay in the cache while they are looked up."""

_PIECE = 16 * _TILE
"""Rows that a thread takes at a time."""

_COMBINATIONS = 1024
"""The most places in a group's table, unless one feature alone has more: it must fit into the
nearest cache."""


@group
class Layout(NamedTuple):
    """A model in the form that the kernel takes.

    Attributes
    ----------
    features : ndarray (n_used,) of int64
    starts : ndarray (n_used + 1,) of int64
        Where each feature's thresholds begin.
    thresholds : ndarray of int32 or int64
        Keys in the dtype of the rows.
    strides : ndarray (n_used,) of int64
        How many places of its group's table one step of the feature is.
    groups : ndarray (n_groups + 1,) of int64
        Where each group's features begin.
    tables : ndarray (n_outputs, n_places) of float64
        The groups' tables, one after the other.
    places : ndarray (n_groups + 1,) of int64
        Where each group's table begins.
    """

    features: Integers
    starts: Integers
    thresholds: Annotated[np.ndarray, "KEY[::1]"]
    strides: Integers
    groups: Integers
    tables: Annotated[np.ndarray, "float64[:, ::1]"]
    places: Integers


def scores(
    X: np.ndarray,
    constant: np.ndarray,
    tables: Sequence[StepTable],
    n_jobs: int | None,
    layouts: dict[str, Layout] | None = None,
    lacking: np.ndarray | None = None,
) -> np.ndarray:
    """The scores of each row of X (n_samples, n_features): float64 (n_samples, n_outputs).

    `layouts` keeps the model's layout for each dtype from one call to the next. `lacking`
    (n_tables,) of bool, if given, is set to true for tables whose feature is missing in some row.
    """
    found = np.repeat(constant[:, np.newaxis], X.shape[0], axis=1)
    if not tables:
        return found.T
    dtype = str(arrays.working_dtype(arrays.dtype_name(X)))
    layouts = {} if layouts is None else layouts
    layout = layouts.get(dtype)
    if layout is None:
        layout = layouts.setdefault(dtype, _layout(constant, StepTables.of(tables), dtype))
    lacking = np.zeros(len(tables), dtype=bool) if lacking is None else lacking
    look_up(X, n_jobs, layout, _add_votes, found, lacking)
    return found.T


def look_up(
    X: np.ndarray, n_jobs: int | None, layout: Any, kernel: Callable[..., None], *given: object
) -> None:
    """Call a kernel for the rows of X, a piece at a time, on every thread.

    It takes the bit patterns of the rows, the layout, what is given, and which rows they are.
    """
    as_it_is = X.dtype in (np.float32, np.float64) and X.flags.aligned
    used = layout if as_it_is else layout._replace(features=np.arange(len(layout.features)))

    def look_up_some(part: tuple[int, int]) -> None:
        rows = X[slice(*part)]
        if not as_it_is:  # only the columns in use
            rows = codable(rows[:, layout.features])
        kernel(rows.view(layout.thresholds.dtype), used, *given, *part)

    pieces = ranges(X.shape[0], _PIECE)
    Team(threads_of(n_jobs) if len(pieces) > 1 else 1).each(look_up_some, pieces)


def _layout(constant: np.ndarray, tables: StepTables, dtype: str) -> Layout:
    """Group the features; each table of a group holds the sums for all combinations of steps."""
    most = _COMBINATIONS if tables.add_up_exactly(constant) else 1
    nothing = np.zeros((1, len(constant)))
    groups, strides, sums = [0], [], [nothing]
    for f in range(len(tables)):
        own = tables.outcomes(f)  # the key of NaN leads to the place after the last step
        if f > groups[-1] and len(sums[-1]) * len(own) > most:
            groups.append(f)
            sums.append(nothing)
        strides.append(len(sums[-1]))
        sums[-1] = (own[:, np.newaxis] + sums[-1]).reshape(-1, len(constant))
    return Layout(
        features=tables.features,
        starts=tables.starts,
        thresholds=keys_of(rounded_down(tables.thresholds, dtype)),
        strides=np.asarray(strides),
        groups=np.asarray([*groups, len(tables)]),
        tables=np.ascontiguousarray(np.concatenate(sums).T),
        places=np.cumsum([0] + [len(s) for s in sums]),
    )


def keys_of(thresholds: np.ndarray) -> np.ndarray:
    """Thresholds as keys; those of float16 are converted to float32, which is exact."""
    keys: np.ndarray = arrays.order_keys(codable(thresholds))
    return keys


@inner("boolean(KEY[::1])", KEY=KEYS)
def _lacks_one(keys):  # type: ignore[no-untyped-def]
    """Whether a key is that of NaN, the highest of all."""
    most = keys[0]
    for i in range(len(keys)):
        most = max(most, keys[i])
    return most == (1 << (8 * keys.itemsize - 1)) - 1


@kernel(
    "void(Array(KEY, 2, 'A', readonly=True), Layout, float64[:, ::1], boolean[::1], int64, int64)",
    KEY=KEYS,
)
def _add_votes(bits, layout, scores, lacking, low, high):  # type: ignore[no-untyped-def]
    """Add a model's votes to the scores (n_outputs, n_samples) of the rows from `low` to `high`.

    `bits` are the bit patterns of these rows; `lacking` is set where a feature is missing in a row.
    """
    starts, strides, thresholds = layout.starts, layout.strides, layout.thresholds
    all_keys = np.empty(_TILE, dtype=thresholds.dtype)
    all_places = np.empty(_TILE, dtype=np.uint32)
    for start in range(low, high, _TILE):
        end = min(start + _TILE, high)
        rows = bits[start - low : end - low]
        keys, places = all_keys[: end - start], all_places[: end - start]
        for g in range(len(layout.groups) - 1):
            places[:] = 0
            for f in range(layout.groups[g], layout.groups[g + 1]):
                as_keys(rows[:, layout.features[f]], keys)
                if not lacking[f] and _lacks_one(keys):
                    lacking[f] = True
                count(keys, thresholds[starts[f] : starts[f + 1]], strides[f], places)
            for output in range(len(layout.tables)):
                votes = layout.tables[output, layout.places[g] : layout.places[g + 1]]
                own = scores[output, start:end]
                for i in range(len(own)):
                    own[i] += votes[places[i]]
