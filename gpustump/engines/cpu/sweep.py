"""A round's one pass over the samples: votes, weights, training error, and the change in each bin.

A stump multiplies the weights of the samples that it gets wrong against the others'; those it gets
right keep their integers, but for a power of two now and then. So what is added to the histograms
is the change of the wrong ones. Integers make that exact: the sums are the ones that adding up
everything anew would give, however many rounds have gone by.

Chunks of samples are small enough for what one step leaves to be in the cache when the next one
reads it. Positive and negative samples go to histograms of their own, so that adding needs no look
at the label, and four columns are filled at a time, so that four additions overlap.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from gpustump.engines.cpu.compiling import Bytes, Integers, group, kernel
from gpustump.engines.cpu.samples import Sums
from gpustump.engines.integer_weights import FLOOR

CHUNK = 8192
"""Samples that are taken through all steps at once."""


@group
class Changes(NamedTuple):
    """The samples whose integers change, gathered chunk by chunk.

    Each chunk has a place for each of its samples. Positive samples stand at the front and negative
    ones at the back.

    Attributes
    ----------
    sample : ndarray (n_samples,) of uint32
        The sample's index, counted from the chunk's start.
    amount : ndarray (n_samples,) of int64
        By how much its integer grows; the whole integer if all are added up anew.
    n_front, n_back : ndarray (n_chunks,) of int64
        How many stand at the front and at the back of each chunk.
    """

    sample: Annotated[np.ndarray, "uint32[::1]"]
    amount: Integers
    n_front: Integers
    n_back: Integers

    @classmethod
    def empty(cls, n_samples: int) -> Changes:
        n_chunks = -(-n_samples // CHUNK)
        sample = np.empty(n_samples, dtype=np.uint32)
        amount = np.empty(n_samples, dtype=np.int64)
        return cls(sample, amount, np.zeros(n_chunks, np.int64), np.zeros(n_chunks, np.int64))


@kernel("UniTuple(int64, 2)(float64[::1], int8[::1], Update, int64[::1], uint8[::1])")
def _reweight(signed, votes, update, change, counts):  # type: ignore[no-untyped-def]
    """The next weights of a chunk, and by how much each integer grew; returns the integers' sums.

    `counts` says whose change matters: 2 for positive samples, 1 for negative ones, 0 for neither.
    Written so that the compiler takes eight samples at a time: no branch, no index but the loop's.
    """
    grown, kept, anew = update.grown, update.kept, np.uint8(update.anew)
    still_counted = 1 - np.int64(anew)
    total, total_weight = 0, 0
    for k in range(len(signed)):
        before = signed[k]
        weight = abs(before)
        positive = before > 0.0
        wrong = (votes[k] > 0) != positive
        after = weight * (grown if wrong else kept)
        after = after if after > FLOOR else FLOOR
        signed[k] = math.copysign(after, before)
        units = np.int64(np.ceil(after))
        total_weight += units
        total += units if positive else -units
        change[k] = units - np.int64(np.ceil(weight)) * still_counted
        counts[k] = (np.uint8(wrong) | anew) << np.uint8(positive)
    return total, total_weight


@kernel("int64(float64[::1], float64[::1], int8[::1], float64, int64[::1])")
def _score(signed, scores, votes, vote, first_weights):  # type: ignore[no-untyped-def]
    """The next scores of a chunk; returns the first weight of the samples that they get wrong."""
    misclassified = 0
    if len(first_weights) == 1:
        for i in range(len(scores)):
            score = scores[i] + votes[i] * vote
            scores[i] = score
            misclassified += np.int64((score > 0.0) != (signed[i] > 0.0))
        misclassified *= first_weights[0]
    else:
        for i in range(len(scores)):
            score = scores[i] + votes[i] * vote
            scores[i] = score
            misclassified += first_weights[i] if (score > 0.0) != (signed[i] > 0.0) else 0
    return misclassified


@kernel("UniTuple(int64, 2)(uint8[::1], int64[::1], uint32[::1], int64[::1])")
def _gather(counts, change, index, amount):  # type: ignore[no-untyped-def]
    """Gather what matters, positive samples from the front and negative ones from the back.

    Returns how many stand at the front and at the back.
    """
    last = np.uint64(len(index) - 1)
    front, back = np.uint64(0), last
    for k in range(len(index)):
        label, by = counts[k], change[k]
        index[front] = k
        amount[front] = by
        index[back] = k
        amount[back] = by
        front += np.uint64(label >> np.uint8(1))
        back -= np.uint64(label & np.uint8(1))
    return np.int64(front), np.int64(last - back)


@group
class _Scratch(NamedTuple):
    """Room for a chunk: by how much each integer grows, and whose change matters."""

    change: Integers
    counts: Bytes


@kernel("Sums(Samples, Update, int64, int64, Changes, int64, _Scratch)")
def _advance_chunk(samples, update, start, end, changes, chunk, scratch):  # type: ignore[no-untyped-def]
    """Take the samples of one chunk a round further; their changes go to `chunk` of `changes`."""
    signed, votes = samples.signed[start:end], samples.votes[start:end]
    first_weights = samples.first_weights
    if len(first_weights) > 1:
        first_weights = first_weights[start:end]
    total, weight = _reweight(signed, votes, update, scratch.change, scratch.counts)
    scores = samples.scores[start:end]
    misclassified = _score(signed, scores, votes, update.vote, first_weights)
    here, there = chunk * CHUNK, chunk * CHUNK + end - start
    changes.n_front[chunk], changes.n_back[chunk] = _gather(
        scratch.counts, scratch.change, changes.sample[here:there], changes.amount[here:there]
    )
    return Sums(total, weight, misclassified)


@kernel("Sums(Samples, Update, int64, int64, Changes)")
def advance(samples, update, low, high, changes):  # type: ignore[no-untyped-def]
    """Take the samples from `low` to `high`, whole chunks, a round further.

    Weights and scores are replaced; what becomes of the integers is kept in `changes`.
    """
    scratch = _Scratch(np.empty(CHUNK, dtype=np.int64), np.empty(CHUNK, dtype=np.uint8))
    total, weight, misclassified = 0, 0, 0
    for start in range(low, high, CHUNK):
        end = min(start + CHUNK, high)
        here = _advance_chunk(samples, update, start, end, changes, start // CHUNK, scratch)
        total += here.signed
        weight += here.weight
        misclassified += here.misclassified
    return Sums(total, weight, misclassified)


@kernel("void(uint8[:, ::1], int64[:, ::1], int64, int64, uint32[::1], int64[::1])")
def _add_four(codes, histograms, column, start, index, amount):  # type: ignore[no-untyped-def]
    """Add changes, counted from sample `start`, to the histograms of four columns."""
    c0, c1 = codes[column, start:], codes[column + 1, start:]
    c2, c3 = codes[column + 2, start:], codes[column + 3, start:]
    h0, h1 = histograms[column], histograms[column + 1]
    h2, h3 = histograms[column + 2], histograms[column + 3]
    for t in range(len(index)):
        i, by = index[t], amount[t]
        h0[c0[i]] += by
        h1[c1[i]] += by
        h2[c2[i]] += by
        h3[c3[i]] += by


@kernel("void(uint8[::1], int64[::1], uint32[::1], int64[::1])")
def _add_one(codes, histogram, index, amount):  # type: ignore[no-untyped-def]
    for t in range(len(index)):
        histogram[codes[index[t]]] += amount[t]


@kernel("void(uint8[:, ::1], int64[:, :, ::1], int64, int64, int64, Changes, int64)")
def _add_chunk(codes, histograms, low, high, start, changes, chunk):  # type: ignore[no-untyped-def]
    """Add a chunk's changes to the histograms of the columns from `low` to `high`."""
    n_samples = min(CHUNK, codes.shape[1] - start)
    at, n_front, n_back = chunk * CHUNK, changes.n_front[chunk], changes.n_back[chunk]
    for sign in range(2):
        first = at if sign == 0 else at + n_samples - n_back
        last = at + n_front if sign == 0 else at + n_samples
        index, amount = changes.sample[first:last], changes.amount[first:last]
        column = low
        while column + 4 <= high:
            _add_four(codes, histograms[sign], column, start, index, amount)
            column += 4
        while column < high:
            _add_one(codes[column, start:], histograms[sign, column], index, amount)
            column += 1


@kernel("void(uint8[:, ::1], int64[:, :, ::1], int64, int64, Changes)")
def add(codes, histograms, low, high, changes):  # type: ignore[no-untyped-def]
    """Add all changes to the histograms of the columns from `low` to `high`."""
    for chunk in range(len(changes.n_front)):
        _add_chunk(codes, histograms, low, high, chunk * CHUNK, changes, chunk)


@kernel("Sums(Samples, Update, int64, int64, uint8[:, ::1], int64[:, :, ::1])")
def sweep(samples, update, low, high, codes, histograms):  # type: ignore[no-untyped-def]
    """Both steps for the samples from `low` to `high`, into `histograms` (2, n_columns, 256)."""
    scratch = _Scratch(np.empty(CHUNK, dtype=np.int64), np.empty(CHUNK, dtype=np.uint8))
    index, amount = np.empty(CHUNK, dtype=np.uint32), np.empty(CHUNK, dtype=np.int64)
    changes = Changes(index, amount, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    total, weight, misclassified = 0, 0, 0
    for start in range(low, high, CHUNK):
        end = min(start + CHUNK, high)
        here = _advance_chunk(samples, update, start, end, changes, 0, scratch)
        total += here.signed
        weight += here.weight
        misclassified += here.misclassified
        _add_chunk(codes, histograms, 0, len(codes), start, changes, 0)
    return Sums(total, weight, misclassified)


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
