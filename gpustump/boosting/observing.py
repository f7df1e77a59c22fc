"""Who is told of runs and rounds as they begin and end.

A callback of `Settings` gets the record of each round. An observer is told more: where training
stands, and the model so far, which is only put together if it asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gpustump.boosting.training import Trained

SoFar = Callable[[], "Trained"]
"""What training would return if it stopped now."""


class Observer(Protocol):
    """Is told of the tasks of training, each when it begins and when it ends.

    With several bags there is a training for each of them, one after the other. If a device fails
    before the first round of a training, that training begins once more on another device.
    """

    def bags_begin(self, n_bags: int) -> None:
        """There will be so many trainings; not told of a single one."""

    def bags_end(self) -> None:
        """All trainings are done."""

    def training_begins(self, n_rounds: Sequence[int]) -> None:
        """For each run how many rounds there may be."""

    def run_begins(self, number: int) -> None:
        """A run begins; its number, from 0."""

    def round_begins(self, so_far: SoFar) -> None:
        """A round is about to begin; it may turn out that there is none."""

    def round_ends(self, so_far: SoFar) -> bool:
        """A round is done; a true answer ends its run."""

    def run_ends(self, so_far: SoFar) -> None:
        """There are no more rounds of this run."""

    def training_ends(self, so_far: SoFar) -> None:
        """All runs are done."""


class Unobserved:
    """Nobody is told."""

    def bags_begin(self, n_bags: int) -> None: ...

    def bags_end(self) -> None: ...

    def training_begins(self, n_rounds: Sequence[int]) -> None: ...

    def run_begins(self, number: int) -> None: ...

    def round_begins(self, so_far: SoFar) -> None: ...

    def round_ends(self, so_far: SoFar) -> bool:
        return False

    def run_ends(self, so_far: SoFar) -> None: ...

    def training_ends(self, so_far: SoFar) -> None: ...
