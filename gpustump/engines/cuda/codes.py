"""A table's codes, a byte for each element: all on the device, or streamed to it from the host.

In both cases a round takes them part by part, and each part is on the device when it is taken.
`codes.cu` says how they are stored. They are written a group at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays.libraries import Array
from gpustump.engines.cuda.device import THREADS, CudaDevice, blocks_for
from gpustump.engines.cuda.layout import (
    NO_CODE,
    RUN,
    TILE_SAMPLES,
    Group,
    described,
    n_bytes,
)
from gpustump.engines.cuda.sorting import Cuts


class Part(NamedTuple):
    """Codes on the device, ready for the kernel `add`: some groups, some samples.

    Attributes
    ----------
    codes : array of uint8
    groups : array (n_groups + 1, words) of int64
        The records `layout.GROUP`.
    n_groups : int
    grid : int
        How many blocks work on them.
    first, n : int
        The first sample, and how many there are, padding included.
    """

    codes: Array
    groups: Array
    n_groups: int
    grid: int
    first: int
    n: int


class ResidentCodes:
    """All codes in the device's memory, in one part.

    Parameters
    ----------
    device : CudaDevice
    groups : tuple of Group
    n_samples : int
        Padded.

    Attributes
    ----------
    is_resident : bool
    """

    is_resident = True

    def __init__(self, device: CudaDevice, groups: tuple[Group, ...], n_samples: int) -> None:
        self._n, self._device = n_samples, device
        self._codes = device.xp.zeros(n_bytes(groups, n_samples), dtype=np.uint8)
        described_groups, grid = described(device, groups, n_samples)
        self._all = Part(self._codes, described_groups, len(groups), grid, 0, n_samples)

    def group(self, group: Group) -> Array:
        """The array into which a group's codes are to be written."""
        return self._codes[group.first_byte : group.first_byte + (self._n << group.width_bits)]

    def keep(self, group: Group, codes: Array) -> None:
        """Called when a group has been written. Nothing to do: it is in its place."""

    def parts(self) -> Iterator[Part]:
        """All parts; use each before taking the next."""
        yield self._all

    def parts_of(self, group: Group) -> Iterator[Part]:
        """The parts of one group; its codes begin at the first byte."""
        yield self._all._replace(codes=self.group(group))

    def spans(self) -> list[tuple[int, int]]:
        """The first sample of each part of a group, and how many there are."""
        return [(0, self._n)]

    def address_of(self, group: Group) -> int:
        """Where a part of a group begins, once it is on the device."""
        return self._device.address(self._codes) + group.first_byte


class StreamedCodes:
    """Codes in the host's memory, which are copied through a buffer on the device.

    There is one buffer, and copies and kernels take turns in one stream. With a second buffer they
    would overlap, but copies should take far longer than kernels, so little time would be saved.

    Parameters
    ----------
    device : CudaDevice
    groups : tuple of Group
    n_samples : int
        Padded.
    buffer_bytes : int

    Attributes
    ----------
    is_resident : bool
    """

    is_resident = False

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
        """The array into which a group's codes are to be written."""
        return self._device.xp.zeros(self._n << group.width_bits, dtype=np.uint8)

    def keep(self, group: Group, codes: Array) -> None:
        """Called when a group has been written: copy it to the host."""
        self._codes[group.first_byte : group.first_byte + codes.size] = arrays.to_host(codes)

    def parts(self) -> Iterator[Part]:
        """All parts; use each before taking the next."""
        for group in self._groups:
            yield from self.parts_of(group)

    def parts_of(self, group: Group) -> Iterator[Part]:
        """The parts of one group; its codes begin at the first byte."""
        for first, n in self.spans():
            begin = group.first_byte + (first << group.width_bits)
            target = self._buffer[: n << group.width_bits]
            self._device.upload(self._codes[begin : begin + target.size], target)
            if (group, n) not in self._descriptions:
                alone = group._replace(first_byte=0)
                self._descriptions[group, n] = described(self._device, (alone,), n)
            groups, grid = self._descriptions[group, n]
            yield Part(target, groups, 1, grid, first, n)

    def spans(self) -> list[tuple[int, int]]:
        """The first sample of each part of a group, and how many there are."""
        starts = range(0, self._n, self._size)
        return [(first, min(self._size, self._n - first)) for first in starts]

    def address_of(self, group: Group) -> int:
        """Where a part of a group begins, once it is on the device."""
        return self._device.address(self._buffer)


def write_feature(
    device: CudaDevice, order: Array, cuts: Cuts, group: Group, place: int, codes: Array
) -> None:
    """Write a feature's codes into those of its group, at its place there."""
    n_bins = len(cuts.low)
    offset = device.array(np.append(0, cuts.ends[:n_bins]).astype(np.int64))
    n_samples = order.shape[0]
    device.launch(
        "code_feature", blocks_for(n_samples, device), THREADS, order, offset, n_bins, n_samples,
        group.width_bits, place, codes,
    )  # fmt: skip


def write_numbers(numbers: Array, group: Group, place: int, codes: Array) -> None:
    """Write a feature's codes (n_samples,) of uint8, as they are, at its place in its group."""
    xp = arrays.namespace_of(numbers)
    whole = xp.zeros(codes.shape[0] >> group.width_bits, dtype=xp.uint8)
    whole[: numbers.shape[0]] = numbers
    by_run = codes.reshape(-1, 1 << group.width_bits, RUN)  # the tiles of `codes.cu`
    by_run[:, place] = whole.reshape(-1, RUN)


def category_numbers(column: Array) -> Array:
    """The category numbers of a column's values as codes, (n_samples,) of uint8.

    They are those of `engines.category_columns.numbers_of`, which checks the values, and `NO_CODE`
    where there is none.
    """
    xp = arrays.namespace_of(column)
    has_number = (column >= 0) & (column < NO_CODE)
    return xp.astype(xp.where(has_number, column, xp.full_like(column, NO_CODE)), xp.uint8)
