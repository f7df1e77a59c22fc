"""Which votes a run makes: parameters as values, and the votes object of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from warnings import warn

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.votes.discrete import DiscreteVotes
from gpustump.boosting.votes.exponential import RealVotes, SharedDiscreteVotes
from gpustump.boosting.votes.newton import NewtonVotes, SquaredVotes, l2_in_units
from gpustump.boosting.votes.quantile import QuantileVotes
from gpustump.boosting.votes.ratio import RatioVotes
from gpustump.boosting.votes.splits import SplitVotes
from gpustump.data.parameters import (
    L2_OF_ONE_OUTPUT,
    L2_OF_SHARED_OUTPUTS,
    QuantityLoss,
    VoteKind,
    check_real,
    check_vote_kind,
)
from gpustump.data.readable import caller_level
from gpustump.engines.integer_weights import unit_exponent
from gpustump.engines.objective import Objective

Votes = DiscreteVotes | SplitVotes
"""What a cut is worth and what follows from it."""


@dataclass(frozen=True)
class VoteSettings:
    """What regions vote.

    Attributes
    ----------
    kind : str
        "discrete", "real" or "newton".
    learning_rate : float
        Shrinks every vote; above 0.
    l2_regularization : float or None
        For Newton votes: lambda, on the scale of the sample weights; not negative. None for a value
        that depends on the number of outputs.
    monotone : tuple (n_features,) of int, or None
        Each feature's constraint; see `Objective`.
    quantity : str or None
        The loss of a target that is a quantity, with Newton votes; None for classes.
    level : float
        Which quantile the quantile loss asks for.
    unit_of_counts : float
        The unit in which counts are learnt: lambda is divided by it. 1 for other targets.
    """

    kind: VoteKind = "discrete"
    learning_rate: float = 1.0
    l2_regularization: float | None = 0.0
    monotone: tuple[int, ...] | None = None
    quantity: QuantityLoss | None = None
    level: float = 0.5
    unit_of_counts: float = 1.0

    @classmethod
    def checked(
        cls, votes: Any, *, learning_rate: Any = 1.0, l2_regularization: Any = 0.0
    ) -> VoteSettings:
        """From parameters as users give them.

        Raises
        ------
        ValueError, TypeError
            If one is out of its range or of the wrong type, or if l2_regularization is not 0 and
            the votes are not Newton votes; the message names it.
        """
        kind = check_vote_kind(votes)
        rate = check_real(learning_rate, "learning_rate", above=0.0)
        l2 = check_real(l2_regularization, "l2_regularization", least=0.0)
        if l2 and kind != "newton":
            raise ValueError(
                f"l2_regularization is for votes='newton'; got l2_regularization={l2!r} and "
                f"votes={kind!r}. Leave it out, or take votes='newton'."
            )
        return cls(kind, rate, l2)

    def l2_of(self, n_outputs: int) -> float:
        """`l2_regularization`, or what None stands for."""
        if self.l2_regularization is not None:
            return self.l2_regularization
        return L2_OF_ONE_OUTPUT if n_outputs == 1 else L2_OF_SHARED_OUTPUTS

    def warn_of_small_weights(self, mean: float, n_samples: int, n_outputs: int) -> None:
        """Warn if lambda shrinks all Newton votes because the sample weights are small.

        A sample of weight w adds w/4 to B at most, so B is at most a quarter of all weights, for a
        region of all samples. (Of a quantity a sample adds w.) Lambda is large against the weights
        if it is more than a tenth of that. With few samples it is so whatever the weights are; they
        are the reason if their mean is below a tenth.

        Parameters
        ----------
        mean : float
            Of the sample weights.
        n_samples, n_outputs : int
        """
        l2, most = self.l2_of(n_outputs), mean * n_samples * (0.25 if self.quantity is None else 1)
        own = l2 / self.unit_of_counts
        if mean >= 0.1 or own <= most / 10:
            return
        share = most / (most + own)
        does = f"each vote is at most {share:.2g} of what it would be without it"
        if self.quantity == "quantile":
            does = "cuts are found as if nearly all samples agreed with the scores"
        warn(
            f"the sample weights are small against l2_regularization={l2:g}, which is on their "
            f"scale: their mean is {mean:.3g}, so {does}. Divide the weights by their mean, or "
            f"take l2_regularization={l2 * mean:.3g}.",
            stacklevel=caller_level(),
        )

    def votes(self, sample_weight: Array, n_outputs: int = 1) -> Votes:
        """The votes of a run on samples with these weights, (n_samples,) of float64."""

        def exponent() -> int:
            n_copies = Objective.of("newton", 1, self.quantity).n_copies
            with arrays.computing_on(sample_weight):
                return unit_exponent(sample_weight, n_copies)

        return self.votes_in_units(exponent, n_outputs)

    def votes_in_units(self, exponent: Callable[[], int], n_outputs: int = 1) -> Votes:
        """The same, given a function that returns `unit_exponent` of the weights; called only if
        needed."""
        rate, monotone = self.learning_rate, self.monotone
        if self.quantity is None and self.kind == "real":
            return RealVotes(rate, n_outputs, monotone=monotone)
        if self.quantity is None and self.kind == "discrete":
            if n_outputs > 1:
                return SharedDiscreteVotes(rate, n_outputs, monotone=monotone)
            return DiscreteVotes(rate, monotone)
        unit = exponent()
        l2 = l2_in_units(self.l2_of(n_outputs) / self.unit_of_counts, unit)
        if self.quantity is None:
            return NewtonVotes(rate, n_outputs, l2, unit, monotone=monotone)
        if self.quantity == "quantile":
            return QuantileVotes(rate, n_outputs, l2, unit, level=self.level)
        kind = SquaredVotes if self.quantity == "squared_error" else RatioVotes
        return kind(rate, n_outputs, l2, unit, self.quantity, monotone=monotone)
