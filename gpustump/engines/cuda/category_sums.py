"""The sums over categories, gathered on the device and copied to the host after a round's result.

A value's code is the number of its category, so a round adds up the categories like bins. A kernel
gathers the sums over the categories that occur in the table. The sets are found on the host, as
with every engine (`engines.category_search`).
"""

from __future__ import annotations

import numpy as np

from gpustump.arrays.libraries import Array
from gpustump.engines.cuda.device import THREADS, blocks_for
from gpustump.engines.cuda.histograms import Histograms
from gpustump.engines.cuda.layout import NO_CODE, SLOTS
from gpustump.engines.cuda.table import CudaTable


class SumsByCategory:
    """Gathers the sums over the categories of a run.

    Parameters
    ----------
    table : CudaTable
    histograms : Histograms
    n_outputs : int

    Attributes
    ----------
    n_words : int
        How many sums there are, (n_outputs, 2, n_places). A categorical feature has one place for
        each category number that a sample has, and one for `NO_CODE`.
    """

    def __init__(self, table: CudaTable, histograms: Histograms, n_outputs: int) -> None:
        self._device, self._histograms, self._n_outputs = table.device, histograms, n_outputs
        self._n_columns = len(table.categories)
        numbers = [
            np.append(np.flatnonzero(counts[:NO_CODE]), NO_CODE)
            for counts in table.categories.values()
        ]
        n_of_each = np.asarray([len(own) for own in numbers], dtype=np.int64)
        self._columns = np.repeat(np.arange(self._n_columns), n_of_each)
        self._numbers = np.concatenate([*numbers, np.empty(0, dtype=np.int64)])
        features = np.asarray([*table.categories], dtype=np.int64)
        self._places = table.device.array(features[self._columns] * SLOTS + self._numbers)
        self.n_words = n_outputs * 2 * len(self._numbers)

    def queue(self, target: Array) -> None:
        """Queue the kernel that writes the sums to `target`, (n_words,) of int64."""
        if self.n_words == 0:
            return
        layers = self._histograms.layers
        n_places = len(self._numbers)
        self._device.launch(
            "gather_categories", blocks_for(n_places, self._device), THREADS, layers, self._places,
            n_places, int(layers["n_layers"][0] > self._n_outputs), target,
        )  # fmt: skip

    def read(self, words: np.ndarray, n_numbers: int) -> np.ndarray:
        """What `engines.category_table.SummingState.category_sums` returns, from these words."""
        by_place = words.reshape(self._n_outputs, 2, len(self._numbers))
        found = np.zeros((self._n_columns, self._n_outputs, 2, n_numbers), dtype=np.int64)
        numbers = np.where(self._numbers == NO_CODE, n_numbers - 1, self._numbers)
        found[self._columns, :, :, numbers] = np.moveaxis(by_place, 2, 0)
        return found
