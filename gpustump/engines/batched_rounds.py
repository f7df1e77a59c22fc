"""Rounds in batches: many rounds in one call, where an engine can make them without the host.

On small tables a round takes longer on the host than in the search. So boosting tells an engine
the rule of its votes, and the engine makes rounds one after the other: the best cut, its votes, the
update of the samples, and the sums over held-out samples for early stopping. It stops before a
round that only the host can decide, for example because the last digit of a vote is in doubt. The
host then makes that round in the ordinary way.

A state that can do so has a method `batch_maker(rule, validation)`. It returns a `BatchMaker`, or
None if this run cannot be made in batches, or if that would save no time. If features are
categorical, the state of an engine is told so: `batch_maker(rule, validation, categories)`, where
the last argument is of the class `category_search.Categories`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

from gpustump.data.parameters import QuantityLoss

DISCRETE, REAL, NEWTON = range(3)
"""Kinds of votes, as kernels take them."""

CLASSES, SQUARED, QUANTILE, POISSON, GAMMA = range(5)
"""What Newton votes learn, as kernels take it: classes, or a quantity by one of its losses."""

NEWTON_DOUBT = 2.0**-50
"""More than the relative error of a Newton vote in float64, which is rounded five times."""

LOG_DOUBT = 2.0**-48
"""More than the error of ln(x / y) in float64, as a share of 1 + abs(ln(x / y)).

x and y are rounded up to four times each, their quotient once, and a C library's logarithm is right
within a few units in the last place."""


class VoteRule(NamedTuple):
    """How the votes of a round follow from the sums over its regions.

    In units of `VOTE_UNIT` a vote is the whole number nearest to

    - scale * gradient / (hessian + l2) for Newton votes, with the quotient limited to
      +-largest_step; see `boosting.votes.newton`;
    - scale times a region's quantile for the quantile loss; see `boosting.votes.quantile`;
    - scale * ln(x / y) for other votes. For real ones x and y are the weights of both labels in a
      region, for discrete ones the weights that the regions' signs get right and wrong; see
      `boosting.votes.exponential`.

    Attributes
    ----------
    kind : int
        `DISCRETE`, `REAL` or `NEWTON`.
    scale : float
    doubt : float
        Bound of the error before rounding: relative for Newton votes, as of `LOG_DOUBT` for others.
        A vote closer than that to a half, where rounding changes direction, is in doubt. The CPU's
        kernels then look at a Newton vote again; see `cpu.rounds.certain_votes`.
    l2 : float
    largest_step : float
        Bound of the quotient's absolute value.
    target : int
        What Newton votes learn: `CLASSES`, `SQUARED`, `QUANTILE`, `POISSON` or `GAMMA`.
    level : float
        Which quantile; see `engines.quantiles`.
    """

    kind: int
    scale: float
    doubt: float
    l2: float = 0.0
    largest_step: float = 0.0
    target: int = CLASSES
    level: float = 0.0


LARGEST_SQUARE, LOW_BITS = 2.0**20, 30
"""Under squared loss, larger squares of residuals count as the first number; targets that are
trained on lie between -1 and 1. So many bits of a weighted square are added up apart from the
others."""

LARGEST_SCORE, LARGEST_EXPONENT = 2.0**10, 64
"""Under Poisson and gamma loss, larger scores of held-out samples count as these numbers: in
products with amounts, and in exponentials."""

PLACE_BITS = 12
"""The 36 binary places of an exponent are looked up in three groups of 12."""

NO_TARGETS = np.zeros(0)
"""For held-out samples that have classes."""


class ValidationLoss(NamedTuple):
    """A loss of held-out samples, as `HeldOutSums` takes it.

    Attributes
    ----------
    kind : str
        The name of the method there, "logistic" or "softmax"; or the loss of a quantity.
    weights : ndarray (n_held_out,) of float64
        For Poisson and gamma loss the amounts that move.
    table : tuple
        An `engines.held_out.LossTable`; of a quantity it is not used.
    bits : int
    targets : ndarray (n_held_out,) of float64
        Of a quantity, otherwise empty. For Poisson and gamma loss the amounts that stay.
    exponentials : ndarray (n_places,) of float64
        For Poisson and gamma loss the table of `boosting.held_out.losses`; otherwise empty.
    most : float
        For these losses the bound of an amount.
    level : float
        For the quantile loss: which one; otherwise 0.
    """

    kind: Literal["logistic", "softmax"] | QuantityLoss
    weights: np.ndarray
    table: tuple[np.ndarray, np.ndarray, int]
    bits: int
    targets: np.ndarray = NO_TARGETS
    exponentials: np.ndarray = NO_TARGETS
    most: float = 0.0
    level: float = 0.0


class ValidationSamples(NamedTuple):
    """Held-out samples, and the loss that is added up over them after each round.

    Attributes
    ----------
    X : ndarray (n_samples_given, n_features)
    rows : ndarray (n_held_out,) of int, or None
        The rows of X that are held out; None for all.
    scores : ndarray (n_held_out, n_outputs) of float64
        Each round's votes are added to them.
    classes, units : ndarray (n_held_out,) of int64
        As for `engines.held_out.held_out_sums`; of a quantity empty.
    n_classes : int
        0 for a quantity.
    loss : ValidationLoss
    """

    X: np.ndarray
    rows: np.ndarray | None
    scores: np.ndarray
    classes: np.ndarray
    units: np.ndarray
    n_classes: int
    loss: ValidationLoss


NO_SIDES = np.zeros((0, 0, 0), dtype=np.uint8)
"""Regions of categories where no feature is categorical."""


class CandidateSplits(NamedTuple):
    """The cuts that the first rounds of a call choose from: k cuts for each of these rounds.

    Attributes
    ----------
    features : ndarray (n_rounds_with_candidates, k) of int64
        In increasing order in each round.
    thresholds : ndarray (n_rounds_with_candidates, k) of float64
        Infinite for the cut that separates missing values from all others; NaN for a set of
        categories.
    sides : ndarray (n_rounds_with_candidates, k, n_numbers) of uint8
        For sets of categories: the region of each number of a category, `MISSING` for a number that
        no sample has. Empty, of any shape, if no feature is categorical.
    """

    features: np.ndarray
    thresholds: np.ndarray
    sides: np.ndarray = NO_SIDES


NO_CANDIDATES = CandidateSplits(np.zeros((0, 0), dtype=np.int64), np.zeros((0, 0)))
"""No round has an offer."""


@dataclass(frozen=True)
class MadeRounds:
    """What each of some rounds did.

    Attributes
    ----------
    features : ndarray (n_rounds,) of int64
    thresholds : ndarray (n_rounds,) of float64
        Of the splits; NaN for a set of categories. Constants are not made in batches.
    votes : ndarray (n_rounds, n_regions, n_outputs) of float64
    scores : ndarray (n_rounds,) of float64
        What the cut was worth; int64 for discrete votes.
    error : ndarray (n_rounds,) of int64
        As in `contract.Totals`, after the round.
    right : ndarray (n_rounds, n_classes) of int64
        For each class the integer weight of the held-out samples that are classified right after
        the round; (n_rounds, 0) for a quantity, or if none are watched.
    losses : ndarray (n_rounds, n_sums) of int64
        The sums of the losses of the held-out samples after the round; (n_rounds, 0) if none are
        watched.
    sides : ndarray (n_rounds, n_numbers) of uint8
        For sets of categories, as `CandidateSplits.sides`; (n_rounds, 0) if no feature is
        categorical.
    weights : ndarray (n_rounds,) of int64
        The sum of the Hessians of all samples and outputs before the round.
    normalisers : ndarray (n_rounds,) of float64
        Z, as in `boosting.votes.votes.RegionRound`; 1 for Newton votes.
    """

    features: np.ndarray
    thresholds: np.ndarray
    votes: np.ndarray
    scores: np.ndarray
    error: np.ndarray
    right: np.ndarray
    losses: np.ndarray
    sides: np.ndarray
    weights: np.ndarray
    normalisers: np.ndarray


class BatchMaker(Protocol):
    """Makes rounds of one run in batches."""

    def make(self, n_rounds: int, candidates: CandidateSplits = NO_CANDIDATES) -> MadeRounds:
        """Make `n_rounds` rounds, or fewer; the state is then as after the last round made.

        Parameters
        ----------
        n_rounds : int
        candidates : CandidateSplits
            Each of the first rounds takes the best of the cuts that it is offered. A round without
            an offer takes the best of all cuts.
        """
