"""The region of each sample under a cut that a search has found, from the codes."""

from __future__ import annotations

import numpy as np

from gpustump.engines.contract import Cut
from gpustump.engines.cpu.runtime.compiling import kernel
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.cpu.table.columns import PART_BITS
from gpustump.engines.threads import ranges

_SAMPLES_AT_ONCE = 2**18


def give_by_cut(
    table: CodedTable, cut: Cut, numbers: tuple[int, int, int], found: np.ndarray
) -> None:
    """Write the number of each sample's region to `found`.

    Parameters
    ----------
    table : CodedTable
    cut : Cut
    numbers : tuple of int
        The numbers of the first, the second and the missing region.
    found : ndarray (n_samples,) of int8
    """
    first, second, missing = numbers
    feature = cut.feature
    n_bins = int(table.layout.n_bins[feature])
    by_bin = np.full(n_bins + 1, second, dtype=np.int8)
    if table.n_missing[feature]:
        by_bin[n_bins] = missing
    parted: list[tuple[np.ndarray, int]] = []  # samples left of a cut inside a bin
    if cut.position is None:
        by_bin[:n_bins] = first
    else:
        last, left = _upto(table, feature, cut.position)
        by_bin[:last] = first
        parted.append((left, first))
    if cut.after is not None:
        last, left = _upto(table, feature, cut.after)
        by_bin[:last] = second
        parted.append((left, second))
    codes, by_code = table.codes_of(feature), table.bundles.by_code(feature, by_bin)
    shift = PART_BITS if table.bundles.is_wide[feature] else 0
    table.team.each(
        lambda part: votes_by_code(codes, shift, by_code, found, *part),
        ranges(table.n_samples, _SAMPLES_AT_ONCE),
    )
    for samples, number in parted:
        found[samples] = number


def _upto(table: CodedTable, feature: int, position: int) -> tuple[int, np.ndarray]:
    """What lies left of a cut: the number of whole bins, and the samples of the next bin."""
    layout = table.layout
    bin_ = layout.bin_at(feature, position)
    slot = layout.first[feature] + bin_
    if position == layout.last[slot]:
        return bin_ + 1, np.empty(0, dtype=np.int64)
    n_left = position + 1 - int(layout.offset[slot])
    return bin_, table.first_of_bin(feature, bin_, n_left)


@kernel("void(CODE[::1], int64, int8[::1], int8[::1], int64, int64)", CODE=("uint8", "uint16"))
def votes_by_code(codes, shift, by_code, votes, low, high):  # type: ignore[no-untyped-def]
    """Set the votes of samples `low` to `high`, by their codes without the `shift` lowest bits.

    Usually there are two votes, one for codes up to some number and one for those above. Then a
    comparison is enough, which is made for many samples at once.
    """
    own, found = codes[low:high], votes[low:high]
    n_codes = len(by_code)
    last = 0
    while last < n_codes - 1 and by_code[last + 1] == by_code[0]:
        last += 1
    left, right = by_code[0], by_code[n_codes - 1]
    is_step = True
    for code in range(last + 1, n_codes):
        is_step &= by_code[code] == right
    if is_step:
        highest = np.uint16(((last + 1) << shift) - 1)
        for i in range(len(own)):
            found[i] = left if own[i] <= highest else right
    else:
        for i in range(len(own)):
            found[i] = by_code[own[i] >> shift]
