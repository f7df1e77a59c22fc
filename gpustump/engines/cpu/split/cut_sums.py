"""The sums left of each cut of a segment of sorted samples, in the order of the cuts.

The orders are those of `sorted_table`: the sign bit of a sample is set if there is no cut after it.
The sum after every sample is written; if there is no cut, the next one is written to the same
place. So no branch depends on the values. With unsigned indices Numba needs no check for negative
ones.
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.cpu.runtime.compiling import inner

_SAMPLE = np.uint32(2**31 - 1)
"""Masks the sign bit out."""

_SIGN = np.uint32(31)
"""Where the sign bit is."""


@inner("int64(int32[::1], int64, int64[::1], int64, int64[::1])")
def left_of_cuts(order, n, numbers, before, left):  # type: ignore[no-untyped-def]
    """Write the sums of the first `n` samples' numbers, with those `before`; returns how many."""
    reached, n_cuts = before, np.uint64(0)
    for k in range(n):
        marked = np.uint32(order[k])
        reached += numbers[marked & _SAMPLE]
        left[n_cuts] = reached
        n_cuts += np.uint64(~marked >> _SIGN)
    return np.int64(n_cuts)


@inner("int64(int32[::1], int64, int64[::1], int64, int64, int64[::1], int64[::1])")
def with_sizes_left_of_cuts(order, n, numbers, before, size_before, left, sizes):  # type: ignore[no-untyped-def]
    """The same, with the sums of the numbers' absolute values in `sizes`."""
    reached, size, n_cuts = before, size_before, np.uint64(0)
    for k in range(n):
        marked = np.uint32(order[k])
        own = numbers[marked & _SAMPLE]
        reached += own
        size += abs(own)
        left[n_cuts] = reached
        sizes[n_cuts] = size
        n_cuts += np.uint64(~marked >> _SIGN)
    return np.int64(n_cuts)


@inner("int64(int32[::1], int64, int64[::1], int64[::1], int64, int64, int64[::1], int64[::1])")
def both_left_of_cuts(order, n, gradient, hessian, before, hessian_before, left, left_hessian):  # type: ignore[no-untyped-def]
    """Write the sums of two numbers of each sample; returns how many cuts there are."""
    reached, reached_hessian, n_cuts = before, hessian_before, np.uint64(0)
    for k in range(n):
        marked = np.uint32(order[k])
        sample = marked & _SAMPLE
        reached += gradient[sample]
        reached_hessian += hessian[sample]
        left[n_cuts] = reached
        left_hessian[n_cuts] = reached_hessian
        n_cuts += np.uint64(~marked >> _SIGN)
    return np.int64(n_cuts)


@inner("UniTuple(int64, 2)(int32[::1], int64, int64[::1])")
def missing_sums(order, n_present, numbers):  # type: ignore[no-untyped-def]
    """The sum of the numbers of missing samples, and that of the absolute values."""
    reached, size = 0, 0
    for k in range(n_present, len(order)):
        own = numbers[np.uint32(order[k]) & _SAMPLE]
        reached += own
        size += abs(own)
    return reached, size


@inner("int64(int32[::1], int64)")
def position_of(order, number):  # type: ignore[no-untyped-def]
    """The place of a cut among sorted samples; cuts are numbered from 0."""
    position = 0
    while order[position] < 0:
        position += 1
    for _ in range(number):
        position += 1
        while order[position] < 0:
            position += 1
    return position
