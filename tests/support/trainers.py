"""How runs start on a table that a test has had prepared by itself, whichever engine it is of."""

from __future__ import annotations

from typing import Any

from gpustump.engines.contract import Search, Trainer
from gpustump.engines.cpu.engine import CODED, SORTED
from gpustump.engines.cuda.engine import CudaEngine
from gpustump.engines.reference.engine import REFERENCE

_STARTS: dict[str, Any] = {
    "ArrayTable": REFERENCE.start,
    "SortedTable": SORTED.start,
    "CodedTable": CODED.start,
}


def trainer(table: Any) -> Trainer:
    """The trainer of a prepared table; a trainer is returned as it is."""
    if isinstance(table, Trainer):
        return table
    if hasattr(table, "start"):  # one of the tests' own
        return Trainer(table, type(table).start)
    kind = type(table).__name__
    return Trainer(table, CudaEngine(table.device).start if kind == "CudaTable" else _STARTS[kind])


def start(table: Any, labels: Any, sample_weight: Any, search: Search, *beginning: Any) -> Any:
    """Begin a run on a table."""
    return trainer(table).start(labels, sample_weight, search, *beginning)
