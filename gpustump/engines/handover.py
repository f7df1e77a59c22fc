"""A run that begins on one engine and goes on with another one as soon as that is ready.

A run's state follows from its samples and its steps, on every engine. So the second engine starts a
state of its own, takes the steps so far, and the run goes on with the same integers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from gpustump.arrays import Array
from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.category_table import SummingState
from gpustump.engines.contract import (
    Beginning,
    Cut,
    QuantileState,
    State,
    Step,
    Totals,
    Trainer,
    WrappedTable,
)
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import Partition

_SECONDS_BETWEEN = 0.05
"""Seconds between two questions whether the second engine is ready."""

Successor = Callable[[], Trainer | None]
"""Prepares the table on the second engine; returns None as long as that is not ready."""


def handing_over(first: Trainer, successor: Successor) -> Trainer:
    """A trainer whose runs begin on one engine and go on with another."""
    return Trainer(HandoverTable(first, successor), _started)


class HandoverTable(WrappedTable):
    """A table on the engine of the moment.

    Parameters
    ----------
    first : Trainer
    successor : callable
        See `Successor`.

    Attributes
    ----------
    trainer : Trainer
        That of the moment.
    """

    def __init__(self, first: Trainer, successor: Successor) -> None:
        super().__init__(first.table)
        self.trainer = first
        self._successor: Successor | None = successor
        self._lock, self._ask_again = threading.Lock(), 0.0

    def is_handed_over(self) -> bool:
        """Whether the second engine has the table; now and then it is asked if it can take it."""
        is_due = self._successor is not None and time.monotonic() >= self._ask_again
        if is_due and self._lock.acquire(blocking=False):
            self._ask_again = time.monotonic() + _SECONDS_BETWEEN
            try:
                found = None if self._successor is None else self._successor()
                if found is not None:
                    self.trainer, self.inner, self._successor = found, found.table, None
            finally:
                self._lock.release()
        return self._successor is None


def _started(
    table: HandoverTable,
    labels: Array,
    sample_weight: Array,
    objective: Objective,
    beginning: Beginning | None,
) -> State:
    if table.is_handed_over():
        return table.trainer.start(labels, sample_weight, objective, beginning)
    return HandoverState(table, (labels, sample_weight, objective, beginning))


class HandoverState:
    """A run on the engine of the moment; see `contract.State`.

    Parameters
    ----------
    table : HandoverTable
    start : tuple
        The arguments of `Trainer.start`.
    """

    def __init__(self, table: HandoverTable, start: tuple[Any, ...]) -> None:
        self._table, self._start = table, start
        self._state = cast(SummingState, table.trainer.start(*start))
        self._steps: list[Step] | None = []  # until the state is handed over

    @property
    def totals(self) -> Totals:
        return self._state.totals

    @property
    def weights(self) -> Array:
        return self._state.weights

    def smallest_weight(self) -> int:
        return self._state.smallest_weight()

    def best_cut(self) -> Cut:
        """The largest cut; the second engine finds it if it is ready."""
        self._hand_over()
        return self._state.best_cut()

    def region_sums(self, hypothesis: Partition) -> np.ndarray:
        return self._state.region_sums(hypothesis)

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        return self._state.sums_over_each(hypotheses)

    def category_sums(self, columns: CategoryColumns) -> np.ndarray:
        return self._state.category_sums(columns)

    def region_quantiles(self, hypothesis: Partition | None, ranks: Sequence[int]) -> list[float]:
        return cast(QuantileState, self._state).region_quantiles(hypothesis, ranks)

    def advance(self, step: Step) -> None:
        self._state.advance(step)
        if self._steps is not None:
            self._steps.append(replace(step, cut=None, is_known=True))

    @property
    def batch_maker(self) -> Any:
        """Begins batches (see `engines.batched_rounds`); None where nothing can."""
        self._hand_over()
        return getattr(self._state, "batch_maker", None)

    def _hand_over(self) -> None:
        if self._steps is None or not self._table.is_handed_over():
            return
        state = self._table.trainer.start(*self._start)
        for step in self._steps:
            state.advance(step)
        self._state, self._steps, self._start = cast(SummingState, state), None, ()
