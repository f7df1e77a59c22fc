"""The caller's table: on the device, in the host's memory, or in a file.

It is never copied as a whole. On the device it is read where it is. From the host, some columns at
a time are copied to the device, so the table may be larger than the device's memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpustump import arrays
from gpustump.arrays.libraries import Array
from gpustump.engines.cuda.device import CudaDevice
from gpustump.engines.cuda.layout import SOURCE_TABLE, record
from gpustump.engines.threads import Team, ranges, threads_of

_STAGED_BYTES = 2**26
"""Bytes of page-locked memory through which a host table's columns are copied."""


@dataclass(frozen=True)
class SourceTable:
    """A feature table and the rows of it that take part.

    Attributes
    ----------
    device : CudaDevice
    X : array (n_samples_given, n_features)
        As the caller gave it.
    rows : array (n_samples,) of int, or None
        The rows that take part; None for all.
    on_device : array or None
        X as an array of the device's library, in the same memory; None if X is on the host.
    rows_on_device : array (n_samples,) of int64, or None
    team : Team
        Threads that gather columns on the host.
    categorical : frozenset of int
        The features whose values are numbers of categories.
    """

    device: CudaDevice
    X: Array
    rows: Array | None
    on_device: Array | None
    rows_on_device: Array | None
    team: Team
    categorical: frozenset[int]

    @classmethod
    def of(
        cls,
        X: Array,
        rows: Array | None,
        device: CudaDevice,
        n_jobs: int | None = None,
        categorical: Sequence[int] = (),
    ) -> SourceTable:
        """The table for a device; `rows` are copied to it."""
        on_device = device.array(X) if device.takes(X) else None
        rows_on_device = None if rows is None else device.array(rows).astype(np.int64)
        team = Team(threads_of(n_jobs))
        return cls(device, X, rows, on_device, rows_on_device, team, frozenset(categorical))

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0] if self.rows is None else self.rows.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def dtype(self) -> str:
        """The name of the values' dtype."""
        return arrays.dtype_name(self.X)

    def values(self, feature: int) -> Array:
        """One feature's values (n_samples,) in X's library, as floats that can be compared."""
        return arrays.picked(arrays.as_working(self.X[:, feature]), self.rows)

    def columns(self, features: Sequence[int], staged_bytes: int = 0) -> Iterator[Array]:
        """The values of neighbouring features on the device, one feature after the other.

        They have the dtype in which they are compared. From the host, as many columns are copied at
        a time as fit into `staged_bytes`, but at least one.
        """
        if self.on_device is not None:
            for feature in features:
                column = arrays.picked(self.on_device[:, feature], self.rows_on_device)
                yield arrays.as_working(column)
            return
        at_once = max(1, staged_bytes // (self.n_samples * self.X.dtype.itemsize))
        for start in range(0, len(features), at_once):
            some = features[start : start + at_once]
            block = self._copied(some[0], some[-1] + 1)
            for place in range(len(some)):
                yield arrays.as_working(block[:, place])

    def _copied(self, low: int, high: int) -> Array:
        """Some columns of a host table on the device, (n_samples, high - low).

        Several threads gather rows in page-locked memory, and the device copies them from there.
        They are not transposed on the host.
        """
        dtype = self.X.dtype.newbyteorder("=")
        width = high - low
        size = max(1, _STAGED_BYTES // (width * dtype.itemsize))
        staged = self.device.pinned(min(size, self.n_samples) * width * dtype.itemsize)
        block = self.device.xp.empty((self.n_samples, width), dtype=dtype)
        rows = None if self.rows is None else np.asarray(arrays.to_host(self.rows))
        for start, end in ranges(self.n_samples, size):
            here = staged[: (end - start) * width * dtype.itemsize].view(dtype).reshape(-1, width)

            def gather(part: tuple[int, int], start: int = start, here: np.ndarray = here) -> None:
                some = slice(start + part[0], start + part[1])
                taken = some if rows is None else rows[some]
                np.copyto(here[slice(*part)], self.X[taken, low:high])

            self.team.each(gather, ranges(end - start, -(-(end - start) // self.team.size)))
            self.device.upload(here, block[start:end])
            self.device.sent(block[:1, :1])()  # waits: then the page-locked memory is free again
        return block

    def host_values(self, feature: int, samples: np.ndarray) -> np.ndarray:
        """Some samples' values of a feature, on the host, in X's own dtype."""
        if self.on_device is None:
            index = samples if self.rows is None else np.asarray(arrays.to_host(self.rows))[samples]
            return np.asarray(self.X[index, feature])
        with self.device.active():
            index = self.device.array(samples.astype(np.int64))
            if self.rows_on_device is not None:
                index = self.rows_on_device[index]
            values: np.ndarray = arrays.to_host(self.on_device[index, feature])
            return values

    def record(self) -> np.ndarray:
        """The `SourceTable` of `search.cu`."""
        if self.on_device is None:
            return np.zeros(1, dtype=SOURCE_TABLE)
        rows, (row_stride, column_stride) = self.rows_on_device, self.on_device.strides
        return record(
            SOURCE_TABLE,
            values=self.device.address(self.on_device),
            row_stride=row_stride,
            column_stride=column_stride,
            item_size=self.on_device.dtype.itemsize,
            rows=0 if rows is None else self.device.address(rows),
        )
