"""F(x) on the device: a thread takes a row and looks its features up in the step tables.

The kernels compare rows and thresholds as integer keys in the rows' own dtype, as all engines do.
The device's form of a model's tables is kept with the model for each dtype and device, so the next
prediction is a single launch for any number of outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays.libraries import Array
from gpustump.engines.cuda.device import THREADS, CudaDevice, blocks_for
from gpustump.engines.cuda.layout import ROWS, STEP_TABLES, record
from gpustump.learners.step_table import StepTable
from gpustump.learners.thresholds import rounded_down


class DeviceLayout(NamedTuple):
    """A model's tables in the device's memory, one after the other.

    Attributes
    ----------
    record : ndarray (1,) of layout.STEP_TABLES
        The addresses of the arrays.
    arrays : dict
        features : array (n_tables,) of int64
        starts : array (n_tables + 1,) of int64
            Where each table's thresholds begin.
        thresholds : array of int32 or int64
            Keys in the dtype of the rows; those of float16 are widened to int32.
        values : array (n_thresholds + n_tables, n_outputs) of float64
            For each table the values of its steps, then the value for missing x.
        constant : array (n_outputs,) of float64
    """

    record: np.ndarray
    arrays: dict[str, Array]


def scores(
    X: Array,
    constant: np.ndarray,
    tables: Sequence[StepTable],
    device: CudaDevice,
    layouts: dict[str, Any] | None = None,
) -> Array:
    """The scores of each row of X.

    Parameters
    ----------
    X : array (n_samples, n_features)
        On the device.
    constant : ndarray (n_outputs,) of float64
    tables : sequence of StepTable
        With values (k, n_outputs).
    device : CudaDevice
    layouts : dict, optional
        Keeps the model's tables for each dtype and device from one call to the next.

    Returns
    -------
    array (n_samples, n_outputs) of float64
        An array of the device's library.
    """
    layouts = {} if layouts is None else layouts
    n_samples, n_outputs = X.shape[0], len(constant)
    with device.active():
        X = device.array(X)
        if not tables:
            return device.xp.tile(device.array(constant), (n_samples, 1))
        dtype = arrays.dtype_name(X)
        key = f"{dtype} on {device.name}"
        layout = layouts.get(key)
        if layout is None:
            layout = layouts.setdefault(key, _layout(constant, tables, dtype, device))
        row_stride, column_stride = X.strides
        rows = record(
            ROWS,
            values=device.address(X),
            row_stride=row_stride,
            column_stride=column_stride,
            n_rows=n_samples,
        )
        found = device.xp.empty((n_samples, n_outputs), dtype=np.float64)
        kernel = f"predict_{dtype}" if n_outputs == 1 else f"predict_outputs_{dtype}"
        n_blocks = blocks_for(n_samples, device)
        device.launch(kernel, n_blocks, THREADS, rows, layout.record, found)
    return found


def _layout(
    constant: np.ndarray, tables: Sequence[StepTable], dtype: str, device: CudaDevice
) -> DeviceLayout:
    working = arrays.working_dtype(dtype)
    assert working is not None
    keys = [arrays.order_keys(rounded_down(table.thresholds, working)) for table in tables]
    thresholds = np.concatenate(keys)
    if thresholds.dtype == np.int16:
        thresholds = thresholds.astype(np.int32)
    parts = {
        "features": np.asarray([table.feature for table in tables], dtype=np.int64),
        "starts": np.cumsum([0] + [len(own) for own in keys]),
        "thresholds": thresholds,
        "values": np.concatenate([table.outcomes for table in tables]),
        "constant": np.asarray(constant, dtype=np.float64),
    }
    there = {name: device.array(own) for name, own in parts.items()}
    # The next call may come from another stream: wait until everything is on the device.
    device.sent(there["values"])()
    addresses = {name: device.address(own) for name, own in there.items()}
    sizes = {"n_tables": len(tables), "n_outputs": len(constant)}
    return DeviceLayout(record(STEP_TABLES, **addresses, **sizes), there)
