"""The codes of a table in memory: all on the device, or streamed to it from the host.

Either way a round asks for them part by part and finds them on the device. `layout` says how they
lie; they are written a group at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays.libraries import Array
from gpustump.engines.cuda.device import THREADS, CudaDevice, blocks_for
from gpustump.engines.cuda.layout import TILE_SAMPLES, Group, described, n_bytes
from gpustump.engines.cuda.sorting import Cuts


class Part(NamedTuple):
    """Codes on the device, ready to be added: some groups, and the samples from `first` on.

    `groups` describes them to the kernel, `grid` is how many blocks they are cut out for.
    """

    codes: Array
    groups: Array
    n_groups: int
    grid: int
    first: int
    n: int


class ResidentCodes:
    """All codes in the device's memory.

    Parameters
    ----------
    device : CudaDevice
    groups : tuple of Group
    n_samples : int
        Padded.
    """

    def __init__(self, device: CudaDevice, groups: tuple[Group, ...], n_samples: int) -> None:
        self._n = n_samples
        self._codes = device.xp.zeros(n_bytes(groups, n_samples), dtype=np.uint8)
        table, grid = described(device, groups, n_samples)
        self._all = Part(self._codes, device.array(table), len(groups), grid, 0, n_samples)

    def group(self, group: Group) -> Array:
        """Where a group's codes are written."""
        return self._codes[group.first_byte : group.first_byte + (self._n << group.width_bits)]

    def keep(self, group: Group, codes: Array) -> None:
        """A group has been written."""

    def parts(self) -> Iterator[Part]:
        """All of them, to be added before the next is asked for."""
        yield self._all

    def parts_of(self, group: Group) -> Iterator[Part]:
        """A group's codes, from its first byte on."""
        yield self._all._replace(codes=self.group(group))


class StreamedCodes:
    """Codes in the host's memory, which pass through a buffer on the device.

    There is one buffer: copies and kernels follow each other in one stream. A second would hide the
    kernels behind the copies, which should take far longer than they.

    Parameters
    ----------
    device : CudaDevice
    groups : tuple of Group
    n_samples : int
        Padded.
    buffer_bytes : int
    """

    def __init__(
        self, device: CudaDevice, groups: tuple[Group, ...], n_samples: int, buffer_bytes: int
    ) -> None:
        self._device, self._groups, self._n = device, groups, n_samples
        self._codes = device.pinned(n_bytes(groups, n_samples))
        widest = 1 << max(group.width_bits for group in groups)
        tiles = max(1, min(n_samples, buffer_bytes // widest) // TILE_SAMPLES)
        self._size = tiles * TILE_SAMPLES
        self._buffer = device.xp.zeros(self._size * widest, dtype=np.uint8)
        self._descriptions: dict[tuple[Group, int], tuple[Array, int]] = {}

    def group(self, group: Group) -> Array:
        """Where a group's codes are written."""
        return self._device.xp.zeros(self._n << group.width_bits, dtype=np.uint8)

    def keep(self, group: Group, codes: Array) -> None:
        """A group has been written."""
        self._codes[group.first_byte : group.first_byte + codes.size] = arrays.to_host(codes)

    def parts(self) -> Iterator[Part]:
        """All of them, to be added before the next is asked for."""
        for group in self._groups:
            yield from self.parts_of(group)

    def parts_of(self, group: Group) -> Iterator[Part]:
        """A group's codes, block by block."""
        for first in range(0, self._n, self._size):
            n = min(self._size, self._n - first)
            begin = group.first_byte + (first << group.width_bits)
            target = self._buffer[: n << group.width_bits]
            self._device.upload(self._codes[begin : begin + target.size], target)
            groups, grid = self._described(group, n)
            yield Part(target, groups, 1, grid, first, n)

    def _described(self, group: Group, n: int) -> tuple[Array, int]:
        if (group, n) not in self._descriptions:
            table, grid = described(self._device, (group._replace(first_byte=0),), n)
            self._descriptions[group, n] = self._device.array(table), grid
        return self._descriptions[group, n]


def write_feature(
    device: CudaDevice, order: Array, cuts: Cuts, group: Group, place: int, codes: Array
) -> None:
    """Write a feature's codes into its group's."""
    n_bins = len(cuts.low)
    offset = device.array(np.append(0, cuts.ends[:n_bins]).astype(np.int64))
    n_samples = order.shape[0]
    device.launch(
        "code_feature", blocks_for(n_samples, device), THREADS, order, offset, n_bins, n_samples,
        group.width_bits, place, codes,
    )  # fmt: skip
