"""The reference engine as `engines.route` sees it: it trains every task on every device."""

from __future__ import annotations

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.contract import Beginning, Resources, Task
from gpustump.engines.integer_weights import in_units
from gpustump.engines.objective import Objective
from gpustump.engines.reference.state import ArrayState
from gpustump.engines.reference.table import (
    ELEMENT_BYTES,
    HOST_BLOCK_BYTES,
    ArrayTable,
    prepare,
)
from gpustump.engines.sparse_order import SparseOrder, sorted_columns
from gpustump.engines.threads import Team

_SAMPLE_BYTES = 80
"""Peak bytes of a sample in vectors such as labels and weights, here and in the estimators."""

_OUTPUT_BYTES = 80
"""Bytes that a round takes for each sample and output, for votes other than classic ones."""

_PLACE_BYTES = 2
"""The most bytes that `Block.places` takes for an element of the table."""

_LISTED_BYTES = 100
"""Bytes of each value that a sparse table lists: its cell, its cut, and scores of cuts."""

_PREPARING_NS, _ROUND_NS, _ROUND_SECONDS = 60.0, 9.0, 0.0005
"""About how long NumPy takes: nanoseconds to sort an element, and to scan it in a round, and the
seconds that a round takes besides."""

_CATEGORIES_SECONDS = 3e-5
"""About how long a round takes for the sums over a feature's categories, for each output."""

_INTERVAL_FACTOR = 2.5
"""A round that searches intervals takes this many times as long."""

_OUTPUT_FACTOR = 3.0
"""A round of votes other than classic ones takes this many times as long for each output."""


class ReferenceEngine:
    """The scan on arrays."""

    name = "reference"
    summary = "the reference scan, on arrays"

    def refusal(self, task: Task) -> str | None:
        """None: it trains every task."""
        return None

    def least_bytes(self, task: Task, resources: Resources) -> int:
        """Bytes of the orders and cuts of all features, and of the temporaries of one feature."""
        if arrays.is_sparse(task.X):
            n_listed, n_outputs = int(task.X.n_listed), task.objective.n_outputs
            of_samples = _SAMPLE_BYTES + n_outputs * _OUTPUT_BYTES
            return task.n_samples * of_samples + n_listed * (_LISTED_BYTES + n_outputs * 40)
        position_bytes = 4 if task.n_samples < 2**31 else 8
        order_bytes = task.n_features * (position_bytes + 1)
        sample_bytes = order_bytes + _SAMPLE_BYTES + ELEMENT_BYTES
        if not task.objective.has_signs:
            sample_bytes += (
                task.objective.n_outputs * _OUTPUT_BYTES + task.n_features * _PLACE_BYTES
            )
        return task.n_samples * sample_bytes + task.category_bytes

    def prepare(
        self, task: Task, rows: Array | None, resources: Resources
    ) -> ArrayTable | SparseOrder:
        """Sort all features. On the host, and only there, max_memory bounds the temporaries."""
        if arrays.is_sparse(task.X):
            own = None if rows is None else arrays.to_host(rows)
            return sorted_columns(task.X, own, Team(1))
        block_bytes = resources.block_bytes
        if resources.max_memory is not None and arrays.on_host(task.X):
            one_feature = task.n_samples * ELEMENT_BYTES
            free = resources.max_memory - self.least_bytes(task, resources) + one_feature
            block_bytes = min(free, block_bytes or HOST_BLOCK_BYTES)
        return prepare(task.X, rows=rows, block_bytes=block_bytes, categorical=task.categorical)

    def start(
        self,
        table: ArrayTable | SparseOrder,
        labels: Array,
        sample_weight: Array,
        objective: Objective,
        beginning: Beginning | None = None,
    ) -> ArrayState:
        """Begin a run; see `engines.contract.Engine`."""
        units = in_units(sample_weight, objective.n_copies)
        return ArrayState(table, labels, units, objective, beginning)

    def seconds(self, task: Task) -> float:
        """About how long the training takes; the task's number of rounds must be known."""
        assert task.n_rounds is not None
        objective = task.objective
        factor = 1.0 if objective.has_signs else _OUTPUT_FACTOR * objective.n_outputs
        round_ns = _ROUND_NS * (_INTERVAL_FACTOR if objective.learner == "interval" else factor)
        nanoseconds = task.n_elements * (_PREPARING_NS + task.n_rounds * round_ns)
        of_categories = len(task.categorical) * objective.n_outputs * _CATEGORIES_SECONDS
        return nanoseconds * 1e-9 + task.n_rounds * (_ROUND_SECONDS + of_categories)


REFERENCE = ReferenceEngine()
