"""Held-out samples on the device: one launch a round adds its votes, and adds up what is judged.

The samples' values are kept as order keys, feature by feature, so the table may lie on the host.
What early stopping needs after a round comes back by one copy of three numbers. All of that is
queued beside the search, so neither waits for the other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpustump import arrays
from gpustump.engines.batched_rounds import ValidationSamples
from gpustump.engines.cuda import layout
from gpustump.engines.cuda.device import THREADS, CudaDevice, blocks_for
from gpustump.engines.cuda.layout import LOSSES, record
from gpustump.engines.cuda.source_table import SourceTable
from gpustump.learners.hypothesis import MISSING, Partition
from gpustump.learners.thresholds import rounded_down

_N_SUMS = 3
"""The weight that is classified right, and two sums of losses."""

JUDGED_BYTES = 8 * _N_SUMS
"""Bytes of shared memory for each thread."""

_MOST_STAGED = 2**28
"""Bytes of a host table's columns that are on the device at a time."""


class DeviceJudge:
    """Held-out samples on a device, and their scores so far.

    Parameters
    ----------
    device : CudaDevice
    samples : ValidationSamples
        Arrays of any library, wherever they are.
    n_jobs : int, optional
        Threads that gather the columns of a host table.
    """

    def __init__(
        self, device: CudaDevice, samples: ValidationSamples, n_jobs: int | None = None
    ) -> None:
        # It comes first, so that it is forgotten first: it waits for the device, which may still
        # read the arrays.
        self._wait: Callable[[], None] = lambda: None
        self._device, loss, xp = device, samples.loss, device.xp
        n_samples, n_outputs = samples.scores.shape
        nodes, drops, node_bits = loss.table
        with device.active():
            X = samples.X if device.takes(samples.X) else arrays.to_host(samples.X)
            source = SourceTable.of(X, samples.rows, device, n_jobs)
            is_wide = arrays.working_dtype(source.dtype) == "float64"
            self._dtype, width = ("float64", np.int64) if is_wide else ("float32", np.int32)
            keys = xp.empty((source.n_features, n_samples), dtype=width)
            for j, column in enumerate(source.columns(range(source.n_features), _MOST_STAGED)):
                keys[j] = arrays.order_keys(column.astype(self._dtype, copy=False))
            given = {
                "classes": samples.classes,
                "units": samples.units,
                "weights": loss.weights,
                "targets": loss.targets,
                "nodes": nodes,
                "drops": drops,
                "exponentials": loss.exponentials,
            }
            self._arrays = {
                name: xp.ascontiguousarray(device.array(own)) for name, own in given.items()
            }
            self._arrays["keys"] = keys
            self._arrays["scores"] = xp.array(device.array(samples.scores).T, order="C")
            device.waiter()()  # rounds are queued elsewhere
        self._held_out = record(
            layout.HELD_OUT,
            **{name: device.address(own) for name, own in self._arrays.items()},
            most=loss.most,
            n_samples=n_samples,
            n_outputs=n_outputs,
            n_nodes=int(nodes.shape[0]),
            node_bits=node_bits,
            bits=loss.bits,
            loss=LOSSES.index(loss.kind),
        )
        self._kernel, self._n_samples = f"judge_{np.dtype(width).name}", n_samples
        self._n_zeros = n_outputs - 1 if loss.kind == "logistic" else 0
        self._is_of_classes = loss.kind in ("logistic", "softmax")
        self._make_room(64)

    def add(self, partition: Partition, votes: np.ndarray) -> None:
        """Queue a hypothesis that is added to the model.

        Parameters
        ----------
        partition : Partition
        votes : ndarray (n_regions, n_outputs) of float64
        """
        ends = arrays.order_keys(rounded_down(np.asarray(partition.thresholds), self._dtype))
        by_slice = np.ascontiguousarray(votes[[*partition.slices, MISSING]], dtype=np.float64)
        given = np.concatenate([ends.astype(np.int64), by_slice.view(np.int64).ravel()])
        self._wait()
        if _N_SUMS + len(given) > len(self._words):
            self._make_room(2 * len(given))
        self._words[:_N_SUMS] = 0
        self._words[_N_SUMS : _N_SUMS + len(given)] = given
        device = self._device
        at = device.address(self._on_device) + 8 * _N_SUMS
        with device.active(), device.beside():
            device.upload(self._words, self._on_device)
            device.launch(
                self._kernel, blocks_for(self._n_samples, device), THREADS, self._held_out,
                int(partition.feature), len(ends),
                record(layout.VOTES, ends=at, votes=at + 8 * len(ends)), self._on_device,
                shared=JUDGED_BYTES * THREADS,
            )  # fmt: skip
            device.download(self._on_device[:_N_SUMS], self._sums)
            self._wait = device.waiter()

    def sums(self) -> tuple[int, list[int]]:
        """After the last hypothesis the integer weight that is classified right, and the sums of
        the losses, as `boosting.held_out` has them; those of several outputs are added up in the
        first one."""
        self._wait()
        right, upper, lower = self._sums.tolist()
        if self._is_of_classes:
            return right, [(upper << 32) + lower] + [0] * self._n_zeros
        return right, [upper, lower]

    def _make_room(self, n_words: int) -> None:
        device, size = self._device, _N_SUMS + n_words
        self._words = device.pinned(8 * size).view(np.int64)
        self._words[:] = 0
        self._sums = device.pinned(8 * _N_SUMS).view(np.int64)
        self._sums[:] = 0
        with device.active():
            self._on_device = device.xp.zeros(size, dtype=np.int64)
            device.waiter()()
