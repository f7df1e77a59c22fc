"""Tables cut into Dask partitions of any sizes, empty ones among them."""

from __future__ import annotations

from typing import Any, NamedTuple

import dask.array as da
import numpy as np


class Spread(NamedTuple):
    """The same rows as Dask arrays."""

    X: Any
    y: Any
    sample_weight: Any = None


def sizes_of(n_rows: int, rng: np.random.Generator, n_parts: int = 5) -> tuple[int, ...]:
    """Sizes of partitions: some empty, one of a single row, and all rows in order."""
    ends = np.sort(rng.integers(0, n_rows + 1, size=n_parts - 1))
    ends[:2] = ends[:1] + np.arange(2) if ends[0] < n_rows else ends[:2]
    return tuple(np.diff([0, *np.sort(ends), n_rows]).tolist())


def spread(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None, *, seed: int = 0
) -> Spread:
    """A table, its labels and weights, in partitions whose sizes are drawn."""
    sizes = sizes_of(len(X), np.random.default_rng(seed))
    own = None if weights is None else cut(weights, *sizes)
    return Spread(cut(X, *sizes), cut(y, *sizes), own)


def cut(values: np.ndarray, *sizes: int) -> Any:
    """An array in partitions of some sizes, each made by a task of its own on any worker."""
    chunks = (sizes, *((width,) for width in values.shape[1:]))
    return da.from_array(values, chunks=chunks, inline_array=True)
