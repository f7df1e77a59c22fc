"""One of the engines that `engines.route` chooses from: a CUDA device and its kernels.

Importing this file does not import CuPy; `device_named` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.parameters import MOST_CATEGORIES
from gpustump.engines.contract import Beginning, PreparedTable, Resources, State, Task
from gpustump.engines.cuda import device_memory
from gpustump.engines.cuda.device import CudaDevice
from gpustump.engines.cuda.layout import NO_CODE
from gpustump.engines.objective import Objective

if TYPE_CHECKING:
    from gpustump.engines.cuda.table import CudaTable

MOST_SAMPLES = 2**31 - 1
"""The kernels store a sample's number in 31 bits."""


class CudaEngine:
    """The kernels on one device.

    Parameters
    ----------
    device : CudaDevice
    """

    name = "cuda"
    summary = "CUDA kernels, histograms"

    def __init__(self, device: CudaDevice) -> None:
        self.device = device

    @staticmethod
    def refusal(task: Task) -> str | None:
        """Why no device's kernels can train this; None if they can."""
        if arrays.is_sparse(task.X):
            return "sparse tables are trained on the host"
        if task.objective.loss == "quantile":
            return "they do not find quantiles"
        if task.n_samples > MOST_SAMPLES:
            return f"{task.n_samples} samples are too many for positions of 31 bits"
        if any(_is_beyond_codes(task.X[:, feature]) for feature in task.categorical):
            return f"a categorical feature has numbers above {NO_CODE - 1}, which no byte holds"
        return None

    def least_bytes(self, task: Task, resources: Resources) -> int:
        """The fewest bytes of the device's memory with which it can train this."""
        return device_memory.least_bytes(task.n_samples, task.n_features, task.objective)

    def prepare(self, task: Task, rows: Array | None, resources: Resources) -> PreparedTable:
        """Sort and code every feature. A table on the host stays there."""
        from gpustump.engines.cuda import table

        X = task.X if self.device.takes(task.X) else arrays.to_host(task.X)
        return table.prepare(X, rows, self.device, resources, task.objective, task.categorical)

    def start(
        self,
        table: CudaTable,
        labels: Array,
        sample_weight: Array,
        objective: Objective,
        beginning: Beginning | None = None,
    ) -> State:
        """Begin a run; see `engines.contract.Engine`."""
        from gpustump.engines.cuda.state import CudaState

        return CudaState(table, labels, sample_weight, objective, beginning)


def _is_beyond_codes(column: Array) -> bool:
    """Whether a column has numbers of categories for which there is no code."""
    with arrays.computing_on(column):
        has_none = (column >= NO_CODE) & (column < MOST_CATEGORIES)
        return bool(arrays.namespace_of(column).any(has_none))
