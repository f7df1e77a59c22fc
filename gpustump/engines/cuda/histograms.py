"""The integers that a round adds up, and their histograms, by `add` of `update_pass.cu`.

A *layer* has one integer for each sample, and the histograms of all features for it. There is one
layer for each output; with Newton votes there are two, since the Hessians are not the
absolute values of the gradients.
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.cuda.layout import LAYERS, adding_kernel, padded, record
from gpustump.engines.cuda.table import CudaTable


class Histograms:
    """The layers of one run.

    Parameters
    ----------
    table : CudaTable
    n_layers : int

    Attributes
    ----------
    terms : array (n_layers, n_padded) of int64
        The integer of each sample; the highest bit is set if its label is positive.
    sums : array (n_layers, n_features, 2, 256) of int64
        The sums for each code, over negative and over positive samples.
    layers : ndarray (1,) of layout.LAYERS
        The addresses of both.
    """

    def __init__(self, table: CudaTable, n_layers: int = 1) -> None:
        xp, n_padded = table.device.xp, padded(table.n_samples)
        self._table, self._n_layers = table, n_layers
        self.terms = xp.zeros((n_layers, n_padded), dtype=np.int64)
        self.sums = xp.zeros((n_layers, table.n_features, 2, 256), dtype=np.int64)
        self.layers = record(
            LAYERS,
            change=table.device.address(self.terms),
            histograms=table.device.address(self.sums),
            n_padded=n_padded,
            n_features=table.n_features,
            n_layers=n_layers,
        )

    def queue_adding(self) -> None:
        """Queue the kernels that add all terms to the sums."""
        device = self._table.device
        kernel, n_bytes = adding_kernel(device)
        for part in self._table.codes.parts():
            device.launch(
                kernel, part.grid * self._n_layers, device.most_threads, part.codes, part.groups,
                part.n_groups, self.layers, part.first, part.n, shared=n_bytes,
            )  # fmt: skip
