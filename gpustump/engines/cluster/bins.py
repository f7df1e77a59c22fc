"""The bins that all shards share: where their edges are, and how many samples they hold in all."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpustump.engines.category_columns import CategoryColumns, joined_sums
from gpustump.engines.cluster.questions import Coded, planes_of
from gpustump.engines.cluster.shards import Shards
from gpustump.engines.cpu.table.bin_layout import BinLayout
from gpustump.engines.cpu.table.codes import useful_cuts
from gpustump.engines.cpu.table.cuts import cuts_by_sample
from gpustump.engines.objective import Objective
from gpustump.engines.threads import Team

_DRAWN = 2**14
"""How many rows are drawn, whose values decide where the bins' edges are; 16 rows for each bin if
that is more."""

_FEATURE_BYTES = 12_000
"""The most bytes of a feature's sums over bins in a shard's answer, for each output. It bounds the
traffic of a round: 1.2 MB from each shard for 100 features and one output."""


@dataclass(frozen=True)
class CommonBins:
    """The bins of all features, and which of the shards' bins they are.

    A feature has a slot for each bin and one for its missing values. A bin in which no shard has a
    sample, which can only be the last one of a feature, has no slot here.

    Attributes
    ----------
    layout : BinLayout
    low, high : ndarray (n_slots,) of int64
        The smallest and the largest key of each bin.
    is_kept : list of ndarray (n_slots_of_feature,) of bool
        For each feature which of the shards' slots there are.
    n_samples : int
    n_missing : ndarray (n_features,) of int64
    categories : CategoryColumns or None
        The categorical features, without samples. In the bins all their values count as missing.
    follow_steps : bool
        Whether all shards can tell what a step changes.
    """

    layout: BinLayout
    low: np.ndarray
    high: np.ndarray
    is_kept: list[np.ndarray]
    n_samples: int
    n_missing: np.ndarray
    categories: CategoryColumns | None
    follow_steps: bool

    @functools.cached_property
    def kept(self) -> np.ndarray:
        """For each slot here its number among all slots of the shards."""
        return np.flatnonzero(np.concatenate(self.is_kept))

    def kept_of(self, features: np.ndarray) -> np.ndarray:
        """The same among the slots that shards have of some features alone."""
        return np.flatnonzero(np.concatenate([self.is_kept[j] for j in features.tolist()]))

    @classmethod
    def of(
        cls, coded: list[Coded], n_cuts: np.ndarray, categorical: Sequence[int] = ()
    ) -> CommonBins:
        """From the answers of all shards to `code`, with `n_cuts` (n_features,) edges each."""
        size = functools.reduce(np.add, (own.size for own in coded))
        low = functools.reduce(np.minimum, (own.low for own in coded))
        high = functools.reduce(np.maximum, (own.high for own in coded))
        ends = np.cumsum(n_cuts + 2)
        is_missing = np.zeros(len(size), dtype=bool)
        is_missing[ends - 1] = True
        is_kept = (size > 0) | is_missing
        feature = np.repeat(np.arange(len(n_cuts)), n_cuts + 2)[is_kept]
        layout = _layout(feature, size[is_kept], ((low < high) & ~is_missing)[is_kept])
        counts = [own.categories for own in coded if own.categories is not None]
        return cls(
            layout,
            low[is_kept],
            high[is_kept],
            np.split(is_kept, ends[:-1]),
            int(size[: ends[0]].sum()),
            size[is_missing],
            CategoryColumns.counted(categorical, joined_sums(counts)) if categorical else None,
            all(own.follows_steps for own in coded),
        )


def _layout(feature: np.ndarray, size: np.ndarray, is_open: np.ndarray) -> BinLayout:
    """The layout of the slots that hold samples, and of those for missing values."""
    n_slots = np.bincount(feature)
    first = np.cumsum(n_slots) - n_slots
    offset = np.cumsum(size) - size
    offset -= np.repeat(offset[first], n_slots)
    last = np.append(offset[1:], 0) - 1
    return BinLayout(first, n_slots - 1, offset, last, is_open.astype(np.uint8))


def code_all(
    shards: Shards,
    n_samples: int,
    objective: Objective,
    *,
    categorical: Sequence[int] = (),
    max_cuts: int | None = None,
) -> CommonBins:
    """Have all shards code their rows by the same cuts.

    Parameters
    ----------
    shards : Shards
    n_samples : int
        How many samples they hold together.
    objective : Objective
        The first search on the table: it decides how many sums a bin has.
    categorical : sequence of int
        As for `contract.Task`.
    max_cuts : int, optional
        The most cuts between bins that a feature may have.

    Returns
    -------
    CommonBins
    """
    by_traffic = _FEATURE_BYTES * objective.n_outputs // (8 * planes_of(objective)) - 2
    limit = min(useful_cuts(n_samples), by_traffic, max_cuts or by_traffic)
    share = min(1.0, max(_DRAWN, 16 * limit) / n_samples)
    drawn = shards.ask("drawn_keys", share, categorical)
    keys = np.concatenate([own for own in drawn if len(own)])
    cuts = cuts_by_sample(keys, limit, Team(1))
    coded = shards.ask("code", cuts, categorical)
    return CommonBins.of(coded, np.asarray([len(own.keys) for own in cuts]), categorical)
