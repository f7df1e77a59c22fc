"""What a shard is asked, and what it answers: arrays of integers that do not grow with the rows.

Values are named by their keys, integers that sort as the values do (`arrays.order_keys`). A
question about a part of a feature is a range of keys, cut into cells: equally wide ones, or one for
each value if the range holds few samples. The cells follow from the keys alone, so the same cell of
all shards can be added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from gpustump.engines.cluster.samples import Samples
from gpustump.engines.contract import Step
from gpustump.engines.cpu.histogram.estimates import Move
from gpustump.engines.cpu.table.cuts import Cuts
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import Partition

BY_VALUE = -1
"""For `Ranges.shift`: each value is a cell."""

NO_KEYS = int(np.iinfo(np.int64).max), int(np.iinfo(np.int64).min)
"""The smallest and the largest key of a slot or cell that holds none."""


class Ranges(NamedTuple):
    """Ranges of keys, in order of features and keys; arrays (n_ranges,) of int64.

    Attributes
    ----------
    feature : ndarray
    bin : ndarray
        The bin in which a range lies: its number among the shards' bins of the feature.
    low, high : ndarray
        The smallest and the largest key of a range.
    shift : ndarray
        Keys with the same `(key - low) >> shift` form a cell; or `BY_VALUE`.
    size : ndarray
        How many samples all shards hold there.
    """

    feature: np.ndarray
    bin: np.ndarray
    low: np.ndarray
    high: np.ndarray
    shift: np.ndarray
    size: np.ndarray


class Cells(NamedTuple):
    """The cells that hold samples, of several ranges: range by range, by increasing number.

    Attributes
    ----------
    range : ndarray (n_cells,) of int64
        The index of the range in which a cell lies.
    number : ndarray (n_cells,) of int64
        The cell's number in its range, the bits of an unsigned integer: `(key - low) >> shift`, or
        `key - low` for `BY_VALUE`.
    size : ndarray (n_cells,) of int64
        How many samples it holds.
    low, high : ndarray (n_cells,) of int64
        The smallest and the largest key of its samples.
    sums : ndarray (n_planes, n_cells) of int64
        The sums of its samples' integers, in the planes of `planes_of`.
    """

    range: np.ndarray
    number: np.ndarray
    size: np.ndarray
    low: np.ndarray
    high: np.ndarray
    sums: np.ndarray


Looked = tuple[np.ndarray, Cells | None]
"""Sums over bins, (n_planes, n) of int64, and cells; None if no ranges were asked about."""


class Coded(NamedTuple):
    """What a shard knows of bins and categories after it has coded its rows; arrays of int64.

    A feature has a slot for each bin and one for its missing values. All values of a categorical
    feature count as missing.

    Attributes
    ----------
    size : ndarray (n_slots,)
        How many samples are in a slot.
    low, high : ndarray (n_slots,)
        The smallest and the largest key of a bin; `NO_KEYS` for an empty bin, and for the slot of
        missing values.
    categories : ndarray (n_categorical, n_numbers), or None
        How many samples are in each category, see `CategoryColumns.counts`; None if there are none.
    follows_steps : bool
        Whether the shard can tell what a step changes, which takes less than all sums.
    """

    size: np.ndarray
    low: np.ndarray
    high: np.ndarray
    categories: np.ndarray | None
    follows_steps: bool


class Changes(NamedTuple):
    """What a step adds to the sums over bins beside what it would do to the majority.

    They are rounded, so that four bytes are enough. The sums are estimates in any case.

    Attributes
    ----------
    numbers : ndarray (n_planes, n_slots) of int32
        In units of 2**shift.
    shift : ndarray (n_planes, n_features) of uint8
    """

    numbers: np.ndarray
    shift: np.ndarray


class Tally(NamedTuple):
    """The sums over a shard's samples in a round.

    Attributes
    ----------
    numbers : ndarray (2 * n_outputs + 1,) of int64
        For each output the sums of the gradients and of the Hessians; then the sum of the first
        round's weights of the samples that the scores get wrong.
    bins : ndarray (n_planes, n_slots) of int64, or Changes
        The sums over the bins, in the planes of `bin_planes_of`; or how they have changed.
    categories : ndarray (n_categorical, n_outputs, 2, n_numbers) of int64, or None
        The sums over categories, see `category_table.SummingState`; None if there are none.
    """

    numbers: np.ndarray
    bins: np.ndarray | Changes
    categories: np.ndarray | None


@dataclass(frozen=True)
class Run:
    """What a shard must know of a run of boosting.

    Attributes
    ----------
    objective : Objective
    positive : int
        With one output, the class whose label is +1; the others have -1.
    exponent : int
        The integers are sample weights times 2**exponent, rounded up.
    """

    objective: Objective
    positive: int
    exponent: int


def planes_of(objective: Objective) -> int:
    """How many sums a cell has.

    For each output, in this order: the sum of the positive gradients, the sum of the absolute
    values of the negative ones and, for Newton votes only, the sum of the Hessians.
    """
    return objective.n_outputs * (3 if objective.has_hessians else 2)


def bin_planes_of(objective: Objective) -> int:
    """How many sums a bin has.

    The same, but that under Newton votes of one output the Hessians of positive and of
    negative samples are told apart: what a step does to gradients follows from them.
    """
    return 4 if objective.loss == "logistic" else planes_of(objective)


def narrowed(changes: np.ndarray, first: np.ndarray) -> Changes:
    """Changes (n_planes, n_slots) of int64 in four bytes; features begin at slots `first`."""
    most = np.maximum.reduceat(np.abs(changes), first, axis=1)
    _, n_bits = np.frexp(most.astype(np.float64))
    shift = np.maximum(n_bits - 30, 0)
    by_slot = np.repeat(shift, np.diff(first, append=changes.shape[1]), axis=1).astype(np.int64)
    rounded = (changes + ((1 << by_slot) >> 1)) >> by_slot
    return Changes(rounded.astype(np.int32), shift.astype(np.uint8))


def unfolded(planes: np.ndarray, objective: Objective) -> np.ndarray:
    """The planes as the CPU engine's search takes them (`slices`), from those of shards.

    For Newton votes the search takes separate sums of Hessians for samples labelled +1 and
    -1, and adds both. Here the first one holds the sum of both, and the second one is 0.
    """
    if not objective.has_hessians or len(planes) == 4 * objective.n_outputs:
        return planes
    n_outputs, n = objective.n_outputs, planes.shape[1]
    found = np.zeros((n_outputs, 4, n), dtype=np.int64)
    found[:, :3] = planes.reshape(n_outputs, 3, n)
    return found.reshape(4 * n_outputs, n)


class Shard(Protocol):
    """Some rows of a table.

    A shard is given its rows, codes them, and then follows any number of runs, one after the other.
    """

    samples: Samples

    def code(self, cuts: list[Cuts], categorical: Sequence[int] = ()) -> Coded:
        """Code all rows.

        Parameters
        ----------
        cuts : list of Cuts
            Of each feature.
        categorical : sequence of int
            As for `contract.Task`.
        """

    def begin(self, run: Run) -> Tally:
        """Begin a run."""

    def advance(self, step: Step, move: Move | None = None) -> Tally:
        """Follow a step of the run; by what it does to the majority, tell changes and not sums."""

    def cells(self, ranges: Ranges) -> Cells:
        """The sums over the cells of ranges."""

    def look(self, features: np.ndarray, ranges: Ranges) -> Looked:
        """The sums over the bins of some features, and over parts of bins.

        Two questions in one message. Only shards that follow steps are asked.
        """

    def region_sums(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """The sums over the regions of each of several hypotheses, at least one.

        (n, n_regions, n_outputs, 2) of int64; see `contract.State.region_sums`.
        """

    def smallest_weight(self) -> int:
        """The smallest Hessian."""

    def weights(self) -> np.ndarray:
        """See `contract.State.weights`."""
