"""The interface of observers, which are told of runs and rounds as they begin and end.

A callback of `Settings` gets the record of each round. An observer is told more: when runs and
rounds begin and end, and, if it asks, the model so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gpustump.boosting.rounds.training import Trained

SoFar = Callable[[], "Trained"]
"""What training would return if it stopped now."""


class Observer(Protocol):
    """An object that is told of each task of training when it begins and when it ends.

    With several bags there is a training for each of them, one after the other. If a device fails
    before the first round of a training, that training begins once more on another device.
    """

    def bags_begin(self, n_bags: int) -> None:
        """There will be `n_bags` trainings. Not called for a single training."""

    def bags_end(self) -> None:
        """All trainings are done."""

    def training_begins(self, n_rounds: Sequence[int]) -> None:
        """A training begins; `n_rounds` says for each run how many rounds there may be."""

    def run_begins(self, number: int) -> None:
        """A run begins; runs are numbered from 0."""

    def round_begins(self, so_far: SoFar) -> None:
        """A round is about to begin. It may turn out that the run has no more rounds."""

    def round_ends(self, so_far: SoFar) -> bool:
        """A round is done. Returns whether to end its run."""

    def run_ends(self, so_far: SoFar) -> None:
        """There are no more rounds of this run."""

    def training_ends(self, so_far: SoFar) -> None:
        """All runs are done."""


class Unobserved:
    """An observer that does nothing."""

    def bags_begin(self, n_bags: int) -> None: ...

    def bags_end(self) -> None: ...

    def training_begins(self, n_rounds: Sequence[int]) -> None: ...

    def run_begins(self, number: int) -> None: ...

    def round_begins(self, so_far: SoFar) -> None: ...

    def round_ends(self, so_far: SoFar) -> bool:
        return False

    def run_ends(self, so_far: SoFar) -> None: ...

    def training_ends(self, so_far: SoFar) -> None: ...
