"""What a run minimises: its loss, what a cut gains, and how many outputs there are.

The three are separate. The loss decides which integers a sample has, and what a step does to them
(`engines.reference` has a file for each). The gain decides what a cut is worth, given the sums of
these integers (`engines.gain`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gpustump.data.parameters import Learner, Link, QuantityLoss, VoteKind

LossName = Literal["exponential", "logistic", "softmax"] | QuantityLoss

_ROOM = {"squared_error": 2**3, "quantile": 2**3, "poisson": 2**10, "gamma": 2**10}
"""For each loss of a quantity how many times the sum of the weights other sums may be: under the
first two that of the absolute residuals, under the others those of amounts and of losses."""

_LINKS: dict[LossName, Link] = {
    "exponential": "logistic",
    "logistic": "logistic",
    "softmax": "softmax",
    "squared_error": "identity",
    "quantile": "identity",
    "poisson": "log",
    "gamma": "log",
}


@dataclass(frozen=True)
class Objective:
    """What the rounds of a run look for.

    Attributes
    ----------
    loss : str
    gain : str
        "discrete", "real" or "newton"; see `engines.gain`.
    n_outputs : int
        1 for two classes and for quantities. Otherwise the number of classes that every cut votes
        for.
    l2 : float
        For Newton gains: lambda, in units of the integers.
    monotone : tuple (n_features,) of int, or None
        Each feature's constraint, 1, -1 or 0, for stumps and one output; see `monotone`. None if
        there is none.
    learner : str
        "stump" or "interval". Intervals make discrete votes for one output only.
    level : float
        For the quantile loss: which quantile; see `quantiles`.

    Raises
    ------
    ValueError
        If there are constraints for intervals, or for several outputs.
    """

    loss: LossName = "exponential"
    gain: VoteKind = "discrete"
    n_outputs: int = 1
    l2: float = 0.0
    monotone: tuple[int, ...] | None = None
    learner: Learner = "stump"
    level: float = 0.5

    def __post_init__(self) -> None:
        if self.monotone is not None and (self.learner != "stump" or self.n_outputs != 1):
            raise ValueError(
                "monotone constraints are for stumps with one output; got "
                f"learner={self.learner!r} and n_outputs={self.n_outputs}."
            )

    @classmethod
    def of(
        cls,
        votes: VoteKind = "discrete",
        n_outputs: int = 1,
        quantity: QuantityLoss | None = None,
        **others: Any,
    ) -> Objective:
        """The objective that votes have: the only place where they decide the loss.

        Parameters
        ----------
        votes : "discrete", "real" or "newton"
            Newton votes for a quantity.
        n_outputs : int
        quantity : str or None
            The loss of a target that is a quantity; None for classes.
        **others
            The other attributes.
        """
        of_classes: LossName = "exponential"
        if votes == "newton":
            of_classes = "logistic" if n_outputs == 1 else "softmax"
        return cls(quantity or of_classes, votes, n_outputs, **others)

    @property
    def directions(self) -> np.ndarray:
        """All constraints as kernels take them: (n_features,) of int64, or empty."""
        return np.asarray(self.monotone or (), dtype=np.int64)

    @property
    def has_signs(self) -> bool:
        """Whether a cut's regions vote with signs that the search finds: the classic stumps."""
        return self.gain == "discrete" and self.n_outputs == 1

    @property
    def is_of_quantity(self) -> bool:
        """Whether the target is a quantity."""
        return self.loss in _ROOM

    @property
    def link(self) -> Link:
        """How scores become predictions."""
        return _LINKS[self.loss]

    @property
    def has_hessians(self) -> bool:
        """Whether Hessians are numbers of their own, not the gradients without their signs.

        Under the exponential loss both have the same sizes.
        """
        return self.loss != "exponential"

    @property
    def n_copies(self) -> int:
        """How many times each weight counts in the first round's sum; see `in_units`.

        Gradients of a quantity are weights times residuals or ratios, whose mean absolute value is
        about 1 or less where boosting starts and ends, and may be larger between two known rounds.
        """
        if self.is_of_quantity:
            return _ROOM[self.loss]
        return 1 if self.has_hessians else self.n_outputs

    @property
    def n_layers(self) -> int:
        """How many integers an engine adds up for each sample: one or two for each output."""
        return self.n_outputs * (2 if self.has_hessians else 1)
