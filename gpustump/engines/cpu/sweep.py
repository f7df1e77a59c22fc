"""A round's one pass over the samples: votes, weights, training error, and the change in each bin.

A stump multiplies the weights of the samples that it gets wrong against the others'; those it gets
right keep their integers, but for a power of two now and then. So what is added to the histograms
is the change of the wrong ones. Integers make that exact: the sums are the ones that adding up
everything anew would give, however many rounds have gone by.

Chunks of samples are small enough for what one step leaves to be in the cache when the next one
takes it up. Positive and negative samples go to histograms of their own, so that adding needs no
look at the label, and four columns are filled at a time, so that four additions overlap.
"""

from __future__ import annotations

import math

import numpy as np

from gpustump.engines.cpu.compiling import kernel
from gpustump.engines.integer_weights import FLOOR

CHUNK = 8192
"""Samples that are taken through all steps at once."""


@kernel(
    "void(float64[::1], int8[::1], float64, float64, int64, int64[::1], uint8[::1], int64[::1])"
)
def _reweight(signed, votes, grow, keep, anew, change, counts, sums):  # type: ignore[no-untyped-def]
    """The next weights of a chunk, and by how much each integer grew.

    `counts` says whose change matters: 2 for positive samples, 1 for negative ones, 0 for neither.
    Written so that the compiler takes eight samples at a time: no branch, no index but the loop's.
    """
    total, mass = 0, 0
    still_counted = 1 - anew
    for k in range(len(signed)):
        before = signed[k]
        weight = abs(before)
        positive = before > 0.0
        wrong = (votes[k] > 0) != positive
        after = weight * (grow if wrong else keep)
        after = after if after > FLOOR else FLOOR
        signed[k] = math.copysign(after, before)
        units = np.int64(np.ceil(after))
        mass += units
        total += units if positive else -units
        change[k] = units - np.int64(np.ceil(weight)) * still_counted
        counts[k] = (np.uint8(wrong) | np.uint8(anew)) << np.uint8(positive)
    sums[0] += total
    sums[1] += mass


@kernel("void(float64[::1], float64[::1], int8[::1], float64, int64[::1], int64[::1])")
def _score(signed, scores, votes, vote, masses, sums):  # type: ignore[no-untyped-def]
    """The next scores of a chunk, and the first round's mass of those that are wrong."""
    mistaken = 0
    if len(masses) == 1:
        for i in range(len(scores)):
            score = scores[i] + votes[i] * vote
            scores[i] = score
            mistaken += np.int64((score > 0.0) != (signed[i] > 0.0))
        mistaken *= masses[0]
    else:
        for i in range(len(scores)):
            score = scores[i] + votes[i] * vote
            scores[i] = score
            mistaken += masses[i] if (score > 0.0) != (signed[i] > 0.0) else 0
    sums[2] += mistaken


@kernel("void(uint8[::1], int64[::1], int64, uint32[::1], int64[::1], int64[::1])")
def _pick(counts, change, n_samples, index, picked, lengths):  # type: ignore[no-untyped-def]
    """Gather what matters: positive samples from the front, negative ones from the back."""
    front, back = np.uint64(0), np.uint64(n_samples - 1)
    for k in range(n_samples):
        label, by = counts[k], change[k]
        index[front] = k
        picked[front] = by
        index[back] = k
        picked[back] = by
        front += np.uint64(label >> np.uint8(1))
        back -= np.uint64(label & np.uint8(1))
    lengths[0] = front
    lengths[1] = np.uint64(n_samples - 1) - back


@kernel(
    "void(float64[::1], float64[::1], int64[::1], int8[::1], float64, float64, float64, int64,"
    " int64, int64, uint32[::1], int64[::1], int64[::1], int64[::1], uint8[::1], int64[::1])"
)
def _advance(  # type: ignore[no-untyped-def]
    signed, scores, masses, votes, vote, grow, keep, anew, start, end, index, picked, lengths,
    change, counts, sums,
):  # fmt: skip
    """Take the samples of one chunk a round further.

    `signed` weights (weight times label) and `scores` are replaced. `index` and `picked` tell
    whose integers changed and by how much, counted from the chunk's start, `lengths` of them at
    the front and at the back. With `anew`, they hold all samples and their whole integers. `sums`
    grows by the new integers, signed and not, and by the first round's of all samples that the
    ensemble gets wrong.
    """
    _reweight(signed[start:end], votes[start:end], grow, keep, anew, change, counts, sums)
    masses = masses if len(masses) == 1 else masses[start:end]
    _score(signed[start:end], scores[start:end], votes[start:end], vote, masses, sums)
    _pick(counts, change, end - start, index, picked, lengths)


@kernel(
    "void(uint8[::1], uint8[::1], uint8[::1], uint8[::1], int64[::1], int64[::1], int64[::1],"
    " int64[::1], uint32[::1], int64[::1], int64, int64)"
)
def _add_four(c0, c1, c2, c3, h0, h1, h2, h3, index, picked, first, last):  # type: ignore[no-untyped-def]
    """Add changes to the histograms of four columns; unsigned indices are not looked at twice."""
    for t in range(np.uint64(first), np.uint64(last)):
        i, by = index[t], picked[t]
        h0[c0[i]] += by
        h1[c1[i]] += by
        h2[c2[i]] += by
        h3[c3[i]] += by


@kernel("void(uint8[::1], int64[::1], uint32[::1], int64[::1], int64, int64)")
def _add_one(c, h, index, picked, first, last):  # type: ignore[no-untyped-def]
    for t in range(np.uint64(first), np.uint64(last)):
        h[c[index[t]]] += picked[t]


@kernel(
    "void(uint8[:, ::1], int64[:, :, ::1], int64, int64, int64, int64, uint32[::1], int64[::1],"
    " int64[::1])"
)
def _add(codes, histograms, low, high, start, end, index, picked, lengths):  # type: ignore[no-untyped-def]
    """Add a chunk's changes to the histograms of some columns."""
    n_samples = end - start
    for sign in range(2):
        first = 0 if sign == 0 else n_samples - lengths[1]
        last = lengths[0] if sign == 0 else n_samples
        h = histograms[sign]
        c = low
        while c + 4 <= high:
            _add_four(
                codes[c, start:end],
                codes[c + 1, start:end],
                codes[c + 2, start:end],
                codes[c + 3, start:end],
                h[c],
                h[c + 1],
                h[c + 2],
                h[c + 3],
                index,
                picked,
                first,
                last,
            )
            c += 4
        while c < high:
            _add_one(codes[c, start:end], h[c], index, picked, first, last)
            c += 1


@kernel(
    "void(float64[::1], float64[::1], int64[::1], int8[::1], float64, float64, float64, int64,"
    " int64, int64, uint8[:, ::1], int64[:, :, ::1], int64[::1])"
)
def sweep(  # type: ignore[no-untyped-def]
    signed, scores, masses, votes, vote, grow, keep, anew, low, high, codes, histograms, sums
):
    """All steps for the samples from `low` to `high`, into `histograms` (2, n_columns, 256).

    See `_advance` for the rest. `histograms` and `sums` are one thread's own.
    """
    index = np.empty(CHUNK, dtype=np.uint32)
    picked = np.empty(CHUNK, dtype=np.int64)
    change = np.empty(CHUNK, dtype=np.int64)
    counts = np.empty(CHUNK, dtype=np.uint8)
    lengths = np.zeros(2, dtype=np.int64)
    for start in range(low, high, CHUNK):
        end = min(start + CHUNK, high)
        _advance(
            signed, scores, masses, votes, vote, grow, keep, anew, start, end, index, picked,
            lengths, change, counts, sums,
        )  # fmt: skip
        _add(codes, histograms, 0, len(codes), start, end, index, picked, lengths)


@kernel(
    "void(float64[::1], float64[::1], int64[::1], int8[::1], float64, float64, float64, int64,"
    " int64, int64, uint32[::1], int64[::1], int64[:, ::1], int64[::1])"
)
def advance(  # type: ignore[no-untyped-def]
    signed, scores, masses, votes, vote, grow, keep, anew, low, high, index, picked, lengths, sums
):
    """The first step alone, for whole chunks; what it leaves is kept for `add`.

    `index` and `picked` are as long as the samples, `lengths` (n_chunks, 2).
    """
    change = np.empty(CHUNK, dtype=np.int64)
    counts = np.empty(CHUNK, dtype=np.uint8)
    for start in range(low, high, CHUNK):
        end = min(start + CHUNK, high)
        _advance(
            signed, scores, masses, votes, vote, grow, keep, anew, start, end, index[start:end],
            picked[start:end], lengths[start // CHUNK], change, counts, sums,
        )  # fmt: skip


@kernel(
    "void(uint8[:, ::1], int64[:, :, ::1], int64, int64, uint32[::1], int64[::1], int64[:, ::1])"
)
def add(codes, histograms, low, high, index, picked, lengths):  # type: ignore[no-untyped-def]
    """The second step for the columns from `low` to `high`; others may do theirs meanwhile."""
    n_samples = codes.shape[1]
    for start in range(0, n_samples, CHUNK):
        end = min(start + CHUNK, n_samples)
        _add(
            codes, histograms, low, high, start, end, index[start:end], picked[start:end],
            lengths[start // CHUNK],
        )  # fmt: skip


@kernel("void(uint8[::1], int8[::1], int8[::1], int64, int64)")
def votes_by_code(codes, by_code, votes, low, high):  # type: ignore[no-untyped-def]
    """A stump's votes for samples from `low` to `high`, by their codes.

    Mostly one code parts two votes; comparing with that is done for many samples at once.
    """
    own, found = codes[low:high], votes[low:high]
    last = 0
    while last < 255 and by_code[last + 1] == by_code[0]:
        last += 1
    left, right = by_code[0], by_code[255]
    is_step = True
    for code in range(last + 1, 256):
        is_step &= by_code[code] == right
    if is_step:
        for i in range(len(own)):
            found[i] = left if own[i] <= last else right
    else:
        for i in range(len(own)):
            found[i] = by_code[own[i]]
