"""The scores of a run: a step's votes are added, and the weight of wrong samples is summed.

The kernels here take a chunk of samples. Their loops are written so that the compiler can process
several samples at a time: they have no branch, no index but the loop's, and few arrays, since the
compiler must check that an array that is written overlaps no other.
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.cpu.runtime.compiling import inner

CHUNK = 2048
"""How many samples go through all loops at once. What one loop writes is then still in a near cache
when the next one reads it."""


@inner("float64[::1](float64[::1])")
def repeated(units):  # type: ignore[no-untyped-def]
    """An array for the units of a chunk; it is filled if all samples have the same units."""
    room = np.empty(CHUNK)
    if len(units) == 1:
        room[:] = units[0]
    return room


@inner("float64[::1](float64[::1], float64[::1], int64, int64)")
def units_of_chunk(units, room, start, end):  # type: ignore[no-untyped-def]
    """Sample weights (end - start,); `room` is what `repeated` made of them."""
    return room[: end - start] if len(units) == 1 else units[start:end]


@inner("int64(float64[::1], int64[::1], uint8[::1], float64[:], float64[::1])")
def _add_and_count(scores, gradient, regions, votes, units):  # type: ignore[no-untyped-def]
    """Add the votes of one output; returns the sum of the units of misclassified samples.

    A positive score predicts the label +1.
    """
    on_first, on_second, on_missing = votes[0], votes[1], votes[2]
    misclassified = 0
    for i in range(len(scores)):
        region = regions[i]
        vote = on_first if region == 0 else (on_second if region == 1 else on_missing)
        score = scores[i] + vote
        scores[i] = score
        misclassified += np.int64(units[i]) if (score > 0.0) != (gradient[i] > 0) else 0
    return misclassified


@inner("void(float64[::1], uint8[::1], float64[:])")
def _add(scores, regions, votes):  # type: ignore[no-untyped-def]
    on_first, on_second, on_missing = votes[0], votes[1], votes[2]
    for i in range(len(scores)):
        region = regions[i]
        scores[i] += on_first if region == 0 else (on_second if region == 1 else on_missing)


@inner("void(float64[::1], int64[::1], float64[::1], uint8[::1])")
def _lead(scores, gradient, best, right):  # type: ignore[no-untyped-def]
    """Update the largest score of the classes so far, and whether its class is the sample's."""
    for i in range(len(scores)):
        leads = scores[i] > best[i]
        right[i] = np.uint8(gradient[i] > 0) if leads else right[i]
        best[i] = scores[i] if leads else best[i]


@inner("int64(uint8[::1], float64[::1])")
def _wrong(right, units):  # type: ignore[no-untyped-def]
    misclassified = 0
    for i in range(len(right)):
        misclassified += np.int64(units[i]) if right[i] == 0 else 0
    return misclassified


@inner(
    "int64(float64[:, ::1], int64[:, ::1], uint8[::1], float64[:, ::1], float64[::1], int64, int64)"
)
def add_votes(scores, gradient, regions, votes, units, start, end):  # type: ignore[no-untyped-def]
    """Add votes (n_regions, n_outputs) to the scores of samples `start` to `end`.

    Regions and units are those of these samples only. The sign of `gradient` tells the labels.
    Returns the sum of the units of the samples that are misclassified.
    """
    own = scores[0][start:end]
    positive = gradient[0][start:end]
    if len(scores) == 1:
        return _add_and_count(own, positive, regions, votes[:, 0], units)
    best = np.empty(end - start)
    right = np.empty(end - start, dtype=np.uint8)
    for i in range(end - start):
        best[i] = -np.inf
    for output in range(len(scores)):
        own = scores[output][start:end]
        _add(own, regions, votes[:, output])
        _lead(own, gradient[output][start:end], best, right)
    return _wrong(right, units)


@inner("void(float64[::1], uint32[::1], int64, float64[::1], uint8[::1])")
def _lead_of_class(scores, classes, output, best, right):  # type: ignore[no-untyped-def]
    """The same as `_lead`, from the classes themselves."""
    own = np.uint32(output)
    for i in range(len(scores)):
        leads = scores[i] > best[i]
        right[i] = np.uint8(classes[i] == own) if leads else right[i]
        best[i] = scores[i] if leads else best[i]


@inner(
    "int64(float64[:, ::1], uint32[::1], uint8[::1], float64[:, ::1], float64[::1], int64, int64)"
)
def add_votes_of_classes(scores, classes, regions, votes, units, start, end):  # type: ignore[no-untyped-def]
    """The same as `add_votes` for several outputs; `classes` are those of these samples."""
    best = np.empty(end - start)
    best[:] = -np.inf
    right = np.empty(end - start, dtype=np.uint8)
    for output in range(len(scores)):
        own = scores[output][start:end]
        _add(own, regions, votes[:, output])
        _lead_of_class(own, classes, output, best, right)
    return _wrong(right, units)
