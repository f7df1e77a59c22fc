"""F(x) on the device: a thread takes a row and looks its features up in the step tables.

Tables and rows are compared as keys in the rows' own dtype, as everywhere. What is made of a
model's tables for a device and a dtype is kept with the model: predicting again is one launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays.libraries import Array
from gpustump.engines.cuda.device import THREADS, CudaDevice, blocks_for
from gpustump.learners.step_table import StepTable
from gpustump.learners.thresholds import rounded_down


@dataclass(frozen=True)
class DevicePlan:
    """A model's tables in the device's memory, one behind the other.

    Attributes
    ----------
    features : ndarray (n_tables,) of int64
        On the host.
    starts : array (n_tables + 1,) of int64
    thresholds : array of int32 or int64
        Keys in the dtype of the rows; of float16 too, widened.
    values : array of float64
        Each table's, and behind them that of what is missing.
    """

    features: np.ndarray
    starts: Array
    thresholds: Array
    values: Array


def scores(
    X: Array,
    constant: np.ndarray,
    tables: Sequence[StepTable],
    device: CudaDevice,
    layouts: dict[str, Any] | None = None,
) -> Array:
    """The scores of each row of X (n_samples, n_features), which is on the device.

    float64 (n_samples, n_outputs), an array of the device's library. `layouts` keeps the model's
    tables for each dtype and device from one call to the next.
    """
    layouts = {} if layouts is None else layouts
    found = [
        _scores(X, float(one), [table.output(k) for table in tables], device, layouts, k)
        for k, one in enumerate(constant)
    ]
    with device.active():
        return device.xp.stack(found, axis=1)


def _scores(
    X: Array,
    constant: float,
    tables: Sequence[StepTable],
    device: CudaDevice,
    layouts: dict[str, Any],
    output: int,
) -> Array:
    with device.active():
        X = device.array(X)
        found = device.xp.full(X.shape[0], constant, dtype=np.float64)
        if not tables:
            return found
        dtype = arrays.dtype_name(X)
        key = f"{dtype} on {device.name}, output {output}"
        layout = layouts.get(key) or layouts.setdefault(key, _plan(tables, dtype, device))
        row_stride, column_stride = X.strides
        device.launch(
            f"predict_{dtype}", blocks_for(X.shape[0], device), THREADS, X, row_stride,
            device.array(layout.features * column_stride), layout.starts, layout.thresholds,
            layout.values, len(tables), X.shape[0], found,
        )  # fmt: skip
    return found


def _plan(tables: Sequence[StepTable], dtype: str, device: CudaDevice) -> DevicePlan:
    working = arrays.working_dtype(dtype)
    assert working is not None
    keys = [arrays.order_keys(rounded_down(table.thresholds, working)) for table in tables]
    widened = np.concatenate(keys)
    widened = widened.astype(np.int32) if widened.dtype == np.int16 else widened
    plan = DevicePlan(
        features=np.asarray([table.feature for table in tables], dtype=np.int64),
        starts=device.array(np.cumsum([0] + [len(own) for own in keys])),
        thresholds=device.array(widened),
        values=device.array(
            np.concatenate([np.append(table.values, table.missing) for table in tables])
        ),
    )
    device.sent(plan.values)()  # all is there: the next call may come from another stream
    return plan
