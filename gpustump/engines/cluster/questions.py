"""What a shard is asked, and what it answers: arrays of integers, as long for any number of rows.

Values are spoken of by their keys (`arrays.order_keys`). A question about part of a feature is a
range of keys, cut into units: equally wide ones, or one for each value where the range holds few
samples. Which units there are follows from the keys alone, so the shards' units can be put
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from gpustump.engines.category_columns import N_NUMBERS, CategoryColumns
from gpustump.engines.cluster.samples import Samples
from gpustump.engines.contract import Search, Step
from gpustump.learners.hypothesis import Partition

BY_VALUE = -1
"""For `Ranges.shift`: each sample is a unit, to be put together with the others of its value."""

NO_KEYS = int(np.iinfo(np.int64).max), int(np.iinfo(np.int64).min)
"""For `Coded`: the smallest and the largest key where there are none."""


class Ranges(NamedTuple):
    """Ranges of keys, in order of features and keys; arrays (n_ranges,) of int64.

    Attributes
    ----------
    feature : ndarray
    bin : ndarray
        The bin, counted among the bins that all shards share, in which a range lies.
    low, high : ndarray
        The smallest and the largest key.
    shift : ndarray
        Keys with the same `(key - low) >> shift` are a unit; or `BY_VALUE`.
    """

    feature: np.ndarray
    bin: np.ndarray
    low: np.ndarray
    high: np.ndarray
    shift: np.ndarray


class Units(NamedTuple):
    """The units of some ranges that hold samples, range by range.

    Attributes
    ----------
    range : ndarray (n_units,) of int64
        Which of the ranges a unit is in.
    number : ndarray (n_units,) of int64
        Which unit of it: `(key - low) >> shift`, or `key - low`.
    size : ndarray (n_units,) of int64
        How many samples it holds.
    low, high : ndarray (n_units,) of int64
        Their smallest and their largest key.
    sums : ndarray (n_planes, n_units) of int64
        The sums of their integers, in the planes of `planes_of`.
    """

    range: np.ndarray
    number: np.ndarray
    size: np.ndarray
    low: np.ndarray
    high: np.ndarray
    sums: np.ndarray


class Coded(NamedTuple):
    """What is known of bins and categories once a shard has coded its rows; arrays of int64.

    A feature has a slot for each bin and one for what is missing. All values of a categorical one
    count as missing.

    Attributes
    ----------
    size : ndarray (n_slots,)
        How many samples are in a slot.
    low, high : ndarray (n_slots,)
        The smallest and the largest key of a bin; `NO_KEYS` where it is empty, and of what is
        missing.
    categories : ndarray (n_categorical, N_NUMBERS)
        How many samples are in each category; see `CategoryColumns.counts`.
    """

    size: np.ndarray
    low: np.ndarray
    high: np.ndarray
    categories: np.ndarray


class Tally(NamedTuple):
    """The sums over a shard's samples in a round.

    Attributes
    ----------
    numbers : ndarray (2 * n_outputs + 1,) of int64
        For each output the sums of the first and of the second integers; then the sum of the first
        round's weights of the samples that the scores get wrong.
    bins : ndarray (n_planes, n_slots) of int64
        The sums over the bins, in the planes of `planes_of`.
    categories : ndarray (n_categorical, n_outputs, 2, N_NUMBERS) of int64
        The sums over categories; see `category_table.SummingState`.
    """

    numbers: np.ndarray
    bins: np.ndarray
    categories: np.ndarray


@dataclass(frozen=True)
class Run:
    """What a run of boosting is about.

    Attributes
    ----------
    search : Search
    positive : int
        With one output the class whose label is +1; the others have -1.
    exponent : int
        The integers are sample weights times 2**exponent, rounded up.
    """

    search: Search
    positive: int
    exponent: int


def planes_of(search: Search) -> int:
    """How many sums a bin has.

    For each output the sum of the positive first integers and that of the sizes of the negative
    ones; then, for Newton votes, the sum of the second integers.
    """
    return search.n_outputs * (3 if search.votes == "newton" else 2)


def no_sums_by_category(search: Search) -> np.ndarray:
    """`Tally.categories` without categorical features."""
    return np.empty((0, search.n_outputs, 2, N_NUMBERS), dtype=np.int64)


def counts_of(columns: CategoryColumns | None) -> np.ndarray:
    """`Coded.categories` of a shard's categorical features, None without any."""
    return np.empty((0, N_NUMBERS), dtype=np.int64) if columns is None else columns.counts


def unfolded(planes: np.ndarray, search: Search) -> np.ndarray:
    """The planes as the CPU engine's search takes them (`cpu.slices`), from those of `planes_of`.

    It knows the second integers of positive and of negative samples apart, and adds them up.
    """
    if search.votes != "newton":
        return planes
    n_outputs, n = search.n_outputs, planes.shape[1]
    found = np.zeros((n_outputs, 4, n), dtype=np.int64)
    found[:, :3] = planes.reshape(n_outputs, 3, n)
    return found.reshape(4 * n_outputs, n)


class Shard(Protocol):
    """Some rows of a table.

    A shard is given its rows, codes them, and then follows any number of runs, one after the other.
    """

    samples: Samples

    def code(
        self, cuts: list[np.ndarray], is_crowded: list[bool], categorical: Sequence[int] = ()
    ) -> Coded:
        """Code all rows, by the keys of each feature's cuts and the numbers of categories."""

    def begin(self, run: Run) -> Tally:
        """Begin a run."""

    def advance(self, step: Step) -> Tally:
        """Follow a step of the run."""

    def units(self, ranges: Ranges) -> Units:
        """The sums over parts of bins."""

    def region_sums(self, hypothesis: Partition) -> np.ndarray:
        """The sums over the regions of a hypothesis, (n_regions, n_outputs, 2) of int64."""

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """The same for each of several hypotheses, (n, n_regions, n_outputs, 2)."""

    def smallest_weight(self) -> int:
        """The smallest second integer."""

    def weights(self) -> np.ndarray:
        """See `contract.State.weights`."""
