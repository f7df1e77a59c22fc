"""The caller's table as a device sees it: on the device, or in the host's memory or a file.

It is never copied whole. On the device it is read where it lies; from the host, some columns at a
time are brought over, so it may be larger than the device's memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpustump import arrays
from gpustump.arrays.libraries import Array
from gpustump.engines.cuda.device import CudaDevice
from gpustump.engines.cuda.layout import TABLE
from gpustump.engines.threads import Team, ranges, threads_of

_STAGED_BYTES = 2**26
"""Of page-locked memory, through which a host table's columns go."""


@dataclass(frozen=True)
class SourceTable:
    """A feature table and the rows of it that take part.

    Attributes
    ----------
    device : CudaDevice
    X : array (n_samples_given, n_features)
        The caller's own.
    rows : array (n_samples,) of int, or None
        None if all take part.
    there : array or None
        X as an array of the device's library, in the same memory; None if X is on the host.
    rows_there : array (n_samples,) of int64, or None
        The rows on the device.
    team : Team
        Threads that gather columns on the host.
    """

    device: CudaDevice
    X: Array
    rows: Array | None
    there: Array | None
    rows_there: Array | None
    team: Team

    @classmethod
    def of(
        cls, X: Array, rows: Array | None, device: CudaDevice, n_jobs: int | None = None
    ) -> SourceTable:
        """The table for a device; `rows` are brought there."""
        there = device.array(X) if device.takes(X) else None
        rows_there = None if rows is None else device.array(rows).astype(np.int64)
        return cls(device, X, rows, there, rows_there, Team(threads_of(n_jobs)))

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
        """One feature's values (n_samples,), in X's library, as they are compared."""
        return arrays.picked(arrays.as_working(self.X[:, feature]), self.rows)

    def columns(self, features: Sequence[int], staged_bytes: int = 0) -> Iterator[Array]:
        """Neighbouring features' values on the device, in turn, as they are compared.

        From the host, as many columns come at a time as there are bytes for, but one at least.
        """
        if self.there is not None:
            for feature in features:
                yield arrays.as_working(arrays.picked(self.there[:, feature], self.rows_there))
            return
        at_once = max(1, staged_bytes // (self.n_samples * self.X.dtype.itemsize))
        for start in range(0, len(features), at_once):
            some = features[start : start + at_once]
            block = self._brought(some[0], some[-1] + 1)
            for place in range(len(some)):
                yield arrays.as_working(block[:, place])

    def _brought(self, low: int, high: int) -> Array:
        """Some columns of a host table on the device, (n_samples, high - low).

        Rows are gathered into page-locked memory by several threads, and sent from there, so that
        nothing is turned around on the host.
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
            self.device.sent(block[:1, :1])()  # it is there: the page-locked memory is free again
        return block

    def host_values(self, feature: int, samples: np.ndarray) -> np.ndarray:
        """Some samples' values of a feature, on the host, in X's own dtype."""
        rows = [int(s) if self.rows is None else int(self.rows[int(s)]) for s in samples]
        return np.concatenate([arrays.to_host(self.X[row : row + 1, feature]) for row in rows])

    def description(self) -> np.ndarray:
        """The `Table` of `search.cu`."""
        if self.there is None:
            return np.zeros(TABLE, dtype=np.int64)
        rows = 0 if self.rows_there is None else self.device.address(self.rows_there)
        address, size = self.device.address(self.there), self.there.dtype.itemsize
        return np.asarray([address, *self.there.strides, size, rows])
