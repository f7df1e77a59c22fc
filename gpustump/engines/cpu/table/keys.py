"""The keys of values (see `arrays.order_keys`), and how many thresholds are below each.

With few thresholds, every one is compared with all keys, for many keys in one instruction; with
many, each key's place is found by bisection.
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.cpu.runtime.compiling import inner

KEYS = ("int32", "int64")
"""The types of the keys of values."""

_FEW = 24
"""Up to this number, thresholds are compared one by one."""


@inner("void(KEY[::1], KEY, int64, uint32[::1])", KEY=KEYS)
def _count_one(keys, step, stride, places):  # type: ignore[no-untyped-def]
    """Add a stride to the places of the rows above a threshold."""
    stride = np.uint32(stride)
    for i in range(len(places)):
        places[i] += stride * np.uint32(step < keys[i])


@inner("void(KEY[::1], KEY[::1], int64, uint32[::1])", KEY=KEYS)
def _count_four(keys, steps, stride, places):  # type: ignore[no-untyped-def]
    """Four thresholds at once: the places are read and written less often."""
    stride = np.uint32(stride)
    s, t, u, v = steps[0], steps[1], steps[2], steps[3]
    for i in range(len(places)):
        key = keys[i]
        above = np.uint32(s < key) + np.uint32(t < key) + np.uint32(u < key) + np.uint32(v < key)
        places[i] += stride * above


@inner("void(KEY[::1], KEY[::1], int64, uint32[::1])", KEY=KEYS)
def _count_many(keys, steps, stride, places):  # type: ignore[no-untyped-def]
    """Any number of sorted thresholds, by bisection: each step is made for all rows."""
    below = np.zeros(len(places), dtype=np.uint32)
    length = len(steps)
    while length > 0:
        half = np.uint32((length + 1) // 2)
        for i in range(len(places)):
            below[i] += half * np.uint32(steps[below[i] + half - np.uint32(1)] < keys[i])
        length -= half
    for i in range(len(places)):
        places[i] += np.uint32(stride) * below[i]


@inner("void(KEY[::1], KEY[::1], int64, uint32[::1])", KEY=KEYS)
def count(keys, steps, stride, places):  # type: ignore[no-untyped-def]
    """Add a stride to each row's place for every threshold below it."""
    done = 0
    if len(steps) > _FEW:
        _count_many(keys, steps, stride, places)
        done = len(steps)
    while done + 4 <= len(steps):
        _count_four(keys, steps[done : done + 4], stride, places)
        done += 4
    while done < len(steps):
        _count_one(keys, steps[done], stride, places)
        done += 1


@inner("void(Array(KEY, 1, 'A', readonly=True), KEY[::1])", KEY=KEYS)
def as_keys(bits, keys):  # type: ignore[no-untyped-def]
    """`arrays.order_keys` of floats' bit patterns: NaN above all, one key for both zeros."""
    for i in range(len(keys)):  # a loop of its own, as the values are far apart in memory
        keys[i] = bits[i]
    highest = (1 << (8 * bits.itemsize - 1)) - 1
    infinity = 0x7F800000 if bits.itemsize == 4 else 0x7FF0000000000000
    for i in range(len(keys)):
        bit = keys[i]
        key = bit if bit >= 0 else -highest - 1 - bit
        keys[i] = highest if key > infinity or key < -infinity else key
