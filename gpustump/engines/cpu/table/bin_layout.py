"""Where the bins of each feature are in arrays that hold the bins of all features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump.engines.cpu.runtime.compiling import Bytes, Integers, group


@group
class BinLayout(NamedTuple):
    """The bins of all features, one feature after the other, each bin in a slot.

    The slots of feature j are `first[j]`, `first[j] + 1`, ..., `n_bins[j]` of them, in order of the
    bins' values. Then comes one slot for the feature's missing values. Only the bins of a shard may
    be empty; see `codes.prepare_by_cuts`.

    Attributes
    ----------
    first, n_bins : ndarray (n_features,) of int64
    offset : ndarray (n_slots,) of int64
        Sorted position of a slot's first sample.
    last : ndarray (n_slots,) of int64
        Sorted position of a bin's last sample; meaningless for the slot of missing values.
    has_inner_split : ndarray (n_slots,) of uint8
        Whether a bin holds more than one value, so that there are cuts inside it.
    """

    first: Integers
    n_bins: Integers
    offset: Integers
    last: Integers
    has_inner_split: Bytes

    def slots(self, feature: int) -> slice:
        """The slots of a feature's bins, without that for missing values."""
        first = int(self.first[feature])
        return slice(first, first + int(self.n_bins[feature]))

    def all_slots(self, feature: int) -> slice:
        """The slots of a feature, that for missing values included."""
        own = self.slots(feature)
        return slice(own.start, own.stop + 1)

    def bin_at(self, feature: int, position: int) -> int:
        """The bin of a feature that holds a sorted position."""
        offsets = self.offset[self.slots(feature)]
        return int(np.searchsorted(offsets, position, side="right")) - 1

    def feature_of(self, slots: np.ndarray) -> np.ndarray:
        """The features that some slots belong to."""
        found: np.ndarray = np.searchsorted(self.first, slots, side="right") - 1
        return found

    def counts(self, n_missing: np.ndarray) -> np.ndarray:
        """How many samples each slot holds, (n_slots,), given how many lack each feature."""
        found = np.diff(self.offset, append=0)
        found[self.first + self.n_bins] = n_missing
        return found

    def n_inside(self, slots: np.ndarray) -> np.ndarray:
        """How many samples the bins in some slots hold."""
        counts: np.ndarray = self.offset[slots + 1] - self.offset[slots]
        return counts
