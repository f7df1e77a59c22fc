"""Where the edges of bins are: at values of a sample of the rows.

Each bin holds about as many values of the sample, so only the sample has to be sorted. A value that
is frequent enough to fill a bin gets one of its own. Towards both ends bins become smaller: each is
about as large as all bins beyond it. Where one side of a cut has little weight, the score depends
most on the few samples there, and late in a run many of the best cuts separate few samples from the
rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.engines.cpu.runtime.compiling import kernel
from gpustump.engines.cpu.table.source_table import Source, codable
from gpustump.engines.threads import Team

_SAMPLE = 2**14
"""How many rows are drawn to choose the cuts; 32 rows for each bin if that is more."""


_LEAST_FOR_ENDS = 100
"""With fewer cuts than this, bins do not become smaller towards the ends."""


_CUTS_OF_END = 8
"""How many cuts are reserved for the smaller bins at the upper end."""


class Cuts(NamedTuple):
    """The cuts between the bins of one feature.

    Attributes
    ----------
    keys : ndarray (n_cuts,) of int32 or int64
        The keys of the largest values left of each cut, increasing; see `arrays.order_keys`.
    is_crowded : bool
        Whether the sample has more distinct values than cuts are allowed.
    """

    keys: np.ndarray
    is_crowded: bool


def cuts_of(source: Source, features: slice, limit: int, team: Team) -> list[Cuts]:
    """Choose the cuts of some features, at most `limit` for each."""
    n_samples = source.n_samples
    n_drawn = max(_SAMPLE, 32 * limit)
    if n_samples <= n_drawn:
        sample = np.arange(n_samples)
    else:  # one row drawn from each of so many equal stretches: the same ones in every run
        stretch = n_samples / n_drawn
        drawn = np.random.default_rng(0).random(n_drawn)
        sample = ((np.arange(n_drawn) + drawn) * stretch).astype(np.int64)
    keys = arrays.order_keys(codable(source.picked(sample, features)))
    return cuts_by_sample(keys, limit, team)


def cuts_by_sample(keys: np.ndarray, limit: int, team: Team) -> list[Cuts]:
    """Choose cuts by the keys (n_drawn, n_features) of a sample, at most `limit` for each feature.

    The keys are those of `codable` values.
    """
    found = [Cuts(keys[:0, 0], False)] * keys.shape[1]

    def choose(j: int) -> None:
        column = np.sort(keys[:, j])
        column = column[: np.searchsorted(column, np.iinfo(column.dtype).max)]  # without NaN
        values, counts = np.unique(column, return_counts=True)
        is_crowded = len(values) > limit
        if is_crowded:
            chosen = np.empty(limit, dtype=np.int64)
            n_chosen = spread(counts[1:], limit - 1, chosen[1:]) if limit > 1 else 0
            # Only bins between two cuts have parts, so the lowest value is a cut.
            chosen[0] = 0 if limit > 1 else len(values) - 1
            chosen[1:] += 1
            values = values[chosen[: n_chosen + 1]]
        found[j] = Cuts(values, is_crowded)

    team.each(choose, range(len(found)))
    return found


@kernel("int64(int64[::1], int64, int64[::1])")
def spread(counts, limit, chosen):  # type: ignore[no-untyped-def]
    """Choose at most `limit` distinct values as cuts, with samples spread evenly between them.

    `counts` are the samples of each value. The indices of the cuts are written to `chosen`; returns
    how many there are. Bins become smaller towards the ends. A value that fills a bin alone is
    separated from the values below it, too.
    """
    has_ends = limit >= _LEAST_FOR_ENDS
    for_end = _CUTS_OF_END if has_ends else 0
    left = counts.sum()
    total = left
    n_chosen = 0
    pending = 0
    last = len(counts) - 1
    for k in range(last):
        free = limit - 1 - n_chosen  # the last value is always a cut
        if free < 1:
            break
        fair = max(1, left // max(1, free + 1 - for_end))
        if counts[k] >= 2 and counts[k] >= fair:
            if pending > 0 and free >= 2:
                chosen[n_chosen] = k - 1
                n_chosen += 1
            chosen[n_chosen] = k
            n_chosen += 1
            left -= pending + counts[k]
            pending = 0
        else:
            pending += counts[k]
            at_end = min(total - left, left // 2) if has_ends else fair
            if pending >= min(fair, max(1, at_end)):
                chosen[n_chosen] = k
                n_chosen += 1
                left -= pending
                pending = 0
    chosen[n_chosen] = last
    return n_chosen + 1
