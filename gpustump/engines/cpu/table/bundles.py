"""Features of few values share a column of one byte if their values have at most 256 combinations.

Flags, and categories written as flags, are common, and a byte for each would waste memory: eight
independent flags fit into one byte, and so do up to 255 flags of which at most one is set. The time
of a round depends on the number of columns, not of features. The sums over a feature's bins follow
exactly from those over its column's codes, since they are integers.

[LightGBM bundles features that are rarely set together (Ke et al. 2017, section 4). Here only the
number of combinations counts, and no two combinations are merged.]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump.engines.cpu.runtime.compiling import Bytes, Integers, group, kernel
from gpustump.engines.cpu.table.bin_layout import BinLayout
from gpustump.engines.cpu.table.columns import NARROW_BINS, WIDE_BINS, Columns, Uncoded
from gpustump.engines.threads import Team, ranges

_MOST_SLOTS = 64
"""A column of more slots than this has too little room for another feature."""

_RUN = 64
"""How many neighbouring features one thread tries to bundle."""


@group
class Bundles(NamedTuple):
    """Where a feature's bins are found among the codes of its column.

    Attributes
    ----------
    column : ndarray (n_features,) of int64
        The feature's column, among the wide ones or among the narrow ones.
    is_wide : ndarray (n_features,) of uint8
        Whether its codes have two bytes.
    missing_code : ndarray (n_features,) of int64
        For a feature that has its column to itself, the code of missing values (in a wide column
        their bin); the other codes are its bins. -1 if it is bundled.
    default : ndarray (n_features,) of int64
        For a bundled feature, the slot that most codes mean; -1 if it is not bundled.
    entry : ndarray (n_features + 1,) of int64
        Where a bundled feature's list of the other codes begins.
    codes, slots : ndarray of uint8
        These lists: a code, and the slot that it means, counted from the feature's first bin.
    """

    column: Integers
    is_wide: Bytes
    missing_code: Integers
    default: Integers
    entry: Integers
    codes: Bytes
    slots: Bytes

    def by_code(self, feature: int, by_slot: np.ndarray) -> np.ndarray:
        """The numbers `by_slot` of a feature's slots, for each code of its column.

        For a wide column one for each bin, (1024,); otherwise one for each code, (256,).
        """
        if self.default[feature] < 0:
            n_codes = WIDE_BINS if self.is_wide[feature] else NARROW_BINS
            found = np.full(n_codes, by_slot[max(0, len(by_slot) - 2)], dtype=by_slot.dtype)
            found[: len(by_slot) - 1] = by_slot[:-1]
            found[self.missing_code[feature]] = by_slot[-1]
            return found
        found = np.full(NARROW_BINS, by_slot[self.default[feature]], dtype=by_slot.dtype)
        mine = slice(self.entry[feature], self.entry[feature + 1])
        found[self.codes[mine]] = by_slot[self.slots[mine]]
        return found


def join(
    codes: Uncoded, layout: BinLayout, n_missing: np.ndarray, team: Team
) -> tuple[Columns, Bundles]:
    """Bundle the features that fit together; the codes of one byte are rewritten in place."""
    row = codes.row.copy()
    missing_code = codes.n_cuts + 1
    small = _without_inner_splits(codes, layout)
    slots_by_code: dict[int, np.ndarray] = {}

    def bundle(run: tuple[int, int]) -> None:
        features = small[slice(*run)]
        for members, tables in _bundled(codes, features, missing_code, layout.n_bins, n_missing):
            row[members] = row[members[0]]
            slots_by_code.update(zip(members, tables, strict=True))

    team.each(bundle, ranges(len(small), _RUN))
    kept = np.unique(row[~codes.is_wide])
    column = np.where(codes.is_wide, row, np.searchsorted(kept, row))
    columns = Columns(codes.wide, _moved_up(codes.narrow, kept))
    return columns, _described(column, codes.is_wide, missing_code, slots_by_code)


def _without_inner_splits(codes: Uncoded, layout: BinLayout) -> np.ndarray:
    """The features that have few slots, and bins of one value each."""
    if not len(layout.first):
        return layout.first
    has_inner_split = np.logical_or.reduceat(layout.has_inner_split, layout.first)
    is_small = ~codes.is_wide & (layout.n_bins + 1 <= _MOST_SLOTS)
    return np.flatnonzero(~has_inner_split & is_small)


def _moved_up(codes: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """The columns that are kept, in no more memory than they need."""
    for row, source in enumerate(kept):  # rows only ever move up
        if row != source:
            codes[row] = codes[source]
    return codes[: len(kept)].copy() if 2 * len(kept) < len(codes) else codes[: len(kept)]


def _described(
    column: np.ndarray,
    is_wide: np.ndarray,
    missing_code: np.ndarray,
    slots_by_code: dict[int, np.ndarray],
) -> Bundles:
    """The bundles as arrays, given the slot of each code for every feature that is bundled."""
    n_features = len(column)
    missing_code, default = missing_code.copy(), np.full(n_features, -1)
    lengths = np.zeros(n_features + 1, dtype=np.int64)
    all_codes, all_slots = [np.zeros(0, np.uint8)], [np.zeros(0, np.uint8)]
    for j in sorted(slots_by_code):
        table = slots_by_code[j]
        default[j] = np.argmax(np.bincount(table))
        missing_code[j] = -1
        others = np.flatnonzero(table != default[j])
        lengths[j + 1] = len(others)
        all_codes.append(others.astype(np.uint8))
        all_slots.append(table[others])
    return Bundles(
        column,
        is_wide.astype(np.uint8),
        missing_code,
        default,
        entry=np.cumsum(lengths),
        codes=np.concatenate(all_codes),
        slots=np.concatenate(all_slots),
    )


def _bundled(
    codes: Uncoded,
    features: np.ndarray,
    missing_code: np.ndarray,
    n_bins: np.ndarray,
    n_missing: np.ndarray,
) -> list[tuple[list[int], list[np.ndarray]]]:
    """Bundles of two features or more: their members, and each member's slot for every code.

    A bundle takes features until one does not fit; its codes are in its first member's row.
    """
    found: list[tuple[list[int], list[np.ndarray]]] = []
    members: list[int] = []
    tables: list[np.ndarray] = []

    def row_of(feature: int) -> np.ndarray:
        own: np.ndarray = codes.narrow[codes.row[feature]]
        return own

    for j in map(int, features):
        n_slots = int(n_bins[j] + (n_missing[j] > 0))
        slot_of = np.zeros(256, dtype=np.uint8)
        slot_of[: n_bins[j]] = np.arange(n_bins[j])
        slot_of[missing_code[j]] = n_bins[j]
        if members:
            n_codes = len(tables[0])
            pairs = np.empty(n_codes * n_slots, dtype=np.int64)
            n_pairs = _pairs(row_of(members[0]), row_of(j), slot_of, n_slots, pairs)
            if n_pairs <= 256:
                occurring = np.flatnonzero(pairs >= 0)
                pairs[occurring] = np.arange(n_pairs)
                _rewrite(row_of(members[0]), row_of(j), slot_of, n_slots, pairs)
                old, slot = np.divmod(occurring, n_slots)
                tables = [table[old] for table in tables]
                tables.append(slot.astype(np.uint8))
                members.append(j)
                continue
        if len(members) > 1:
            found.append((members, tables))
        own = np.unique(slot_of[: n_bins[j]]) if n_slots else slot_of[:0]
        if n_missing[j] > 0:  # as a bundle of one, its codes are its slots
            _rewrite(row_of(j), row_of(j), slot_of, 0, np.arange(256))
            missing_code[j] = n_bins[j]
            own = np.append(own, np.uint8(n_bins[j]))
        members, tables = [j], [own]
    if len(members) > 1:
        found.append((members, tables))
    return found


@kernel("int64(uint8[::1], uint8[::1], uint8[::1], int64, int64[::1])")
def _pairs(codes, others, slot_of, n_slots, pairs):  # type: ignore[no-untyped-def]
    """Mark the pairs of a code and a slot that occur with 0, others with -1; stops after 257."""
    pairs[:] = -1
    n_pairs = 0
    for i in range(len(codes)):
        at = np.uint64(codes[i]) * np.uint64(n_slots) + np.uint64(slot_of[others[i]])
        if pairs[at] < 0:
            pairs[at] = 0
            n_pairs += 1
            if n_pairs > 256:
                break
    return n_pairs


@kernel("void(uint8[::1], uint8[::1], uint8[::1], int64, int64[::1])")
def _rewrite(codes, others, slot_of, n_slots, new):  # type: ignore[no-untyped-def]
    """Replace each code by the code of its pair."""
    for i in range(len(codes)):
        at = np.uint64(codes[i]) * np.uint64(n_slots) + np.uint64(slot_of[others[i]])
        codes[i] = new[at]
