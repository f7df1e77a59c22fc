"""A round's one pass over the samples: votes, weights, training error, and the change in each bin.

A stump multiplies the weights of the samples that it gets wrong; the samples that it gets right
keep their integers, except in a few rounds, in which all weights are divided by a power of two. So
only the changes of the wrong samples are added to the histograms. Since they are integers, the sums
are exactly those of all samples added up anew, after any number of rounds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpustump.engines.cpu.histogram.histograms import CHUNK, Listed, add_chunk, gather
from gpustump.engines.cpu.loss.samples import Sums
from gpustump.engines.cpu.runtime.compiling import Bytes, Integers, group, kernel
from gpustump.engines.integer_weights import FLOOR


@kernel("UniTuple(int64, 2)(float64[::1], int8[::1], Update, int64[::1], uint8[::1])")
def _reweight(signed, votes, update, change, counts):  # type: ignore[no-untyped-def]
    """Compute the next weights of a chunk, and by how much each integer grew.

    `counts` is set to 2 for positive samples whose integers change, to 1 for negative ones, and to
    0 for others. Returns the sum of the signed integers and that of their absolute values. There is
    no branch, and no index but the loop's, so the compiler processes eight samples at a time.
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
    """Compute the next scores of a chunk; returns the first weight of misclassified samples."""
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


@group
class _Scratch(NamedTuple):
    """Arrays for a chunk: by how much each integer grows, and `counts` of `_reweight`."""

    change: Integers
    counts: Bytes


@kernel("Sums(Samples, Update, int64, int64, Listed, int64, _Scratch)")
def _advance_chunk(samples, update, start, end, changes, chunk, scratch):  # type: ignore[no-untyped-def]
    """Update the samples of one chunk by a round; list their changes at `chunk` of `changes`."""
    signed, votes = samples.signed[start:end], samples.votes[start:end]
    first_weights = samples.first_weights
    if len(first_weights) > 1:
        first_weights = first_weights[start:end]
    total, weight = _reweight(signed, votes, update, scratch.change, scratch.counts)
    scores = samples.scores[start:end]
    misclassified = _score(signed, scores, votes, update.vote, first_weights)
    here, there = chunk * CHUNK, chunk * CHUNK + end - start
    changes.n_front[chunk], changes.n_back[chunk] = gather(
        scratch.counts, scratch.change, changes.sample[here:there], changes.amount[here:there]
    )
    return Sums(total, weight, misclassified)


@kernel("UniTuple(int64, 3)(Samples, Update, int64, int64, Listed)")
def advance(samples, update, low, high, changes):  # type: ignore[no-untyped-def]
    """Update the samples from `low` to `high`, whole chunks, by a round.

    Weights and scores are replaced; the changes of the integers are listed in `changes`. Returns
    the fields of `samples.Sums`.
    """
    scratch = _Scratch(np.empty(CHUNK, dtype=np.int64), np.empty(CHUNK, dtype=np.uint8))
    total, weight, misclassified = 0, 0, 0
    for start in range(low, high, CHUNK):
        end = min(start + CHUNK, high)
        here = _advance_chunk(samples, update, start, end, changes, start // CHUNK, scratch)
        total += here.signed
        weight += here.weight
        misclassified += here.misclassified
    return total, weight, misclassified


@kernel("UniTuple(int64, 3)(Samples, Update, int64, int64, Columns, Histograms)")
def sweep(samples, update, low, high, columns, histograms):  # type: ignore[no-untyped-def]
    """Update the samples from `low` to `high`, and add their changes to `histograms`.

    Positive samples go to the first plane, negative ones to the second. Returns the fields of
    `samples.Sums`.
    """
    scratch = _Scratch(np.empty(CHUNK, dtype=np.int64), np.empty(CHUNK, dtype=np.uint8))
    sample, amount = np.empty(CHUNK, dtype=np.uint16), np.empty((CHUNK, 1), dtype=np.int64)
    n_front, n_back = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    changes = Listed(sample, amount, n_front, n_back)
    n_columns = len(columns.wide) + len(columns.narrow)
    total, weight, misclassified = 0, 0, 0
    for start in range(low, high, CHUNK):
        end = min(start + CHUNK, high)
        here = _advance_chunk(samples, update, start, end, changes, 0, scratch)
        total += here.signed
        weight += here.weight
        misclassified += here.misclassified
        add_chunk(columns, histograms, 0, 0, n_columns, start, changes, 0)
    return total, weight, misclassified
