"""Rounds made ahead: many rounds in one call, where an engine can make them without the host.

On small tables the host takes longer over a round than the search does. So boosting tells an engine
the rule of its votes, and the engine makes rounds one after the other: the best cut, its votes, the
change of the samples, and what early stopping adds up over held-out samples. An engine makes
ordinary rounds only. It stops before a round that needs the host's care, such as a vote whose last
digit is in doubt; the host makes that one as ever.

A state that can do so has a method `looking_ahead(rule, watched)`. It returns an `Ahead`, or None
if this run cannot be made ahead, or if it would not pay. An engine's state is also told which
features are categorical, if any are: `looking_ahead(rule, watched, categories)`; see
`category_search.Categories`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

VOTE_DOUBT = 2.0**-50
"""More than the relative error of a Newton vote in float64, which is rounded five times."""


class NewtonRule(NamedTuple):
    """How a region's vote follows from its sums; see `boosting.newton_votes`.

    In units of `VOTE_UNIT` it is the whole number nearest to scale * first / (second + l2), where
    the quotient is bounded.

    Attributes
    ----------
    scale : float
    l2 : float
    largest_step : float
        Bound of the quotient.
    doubt : float
        How far, relatively, what is rounded may be off: nearer to a half, a vote is in doubt.
    """

    scale: float
    l2: float
    largest_step: float
    doubt: float = VOTE_DOUBT


class WatchedLoss(NamedTuple):
    """A loss of held-out samples, as `engines.held_out.HeldOutSums` takes it.

    Attributes
    ----------
    kind : str
        The name of the method there, "logistic" or "softmax".
    weights : ndarray (n_held_out,) of float64
    table : tuple
        An `engines.held_out.LossTable`.
    bits : int
    """

    kind: Literal["logistic", "softmax"]
    weights: np.ndarray
    table: tuple[np.ndarray, np.ndarray, int]
    bits: int


class WatchedSamples(NamedTuple):
    """Held-out samples, and what is added up over them after each round.

    Attributes
    ----------
    X : ndarray (n_samples_given, n_features)
    rows : ndarray (n_held_out,) of int, or None
        Which rows of X are meant; None for all.
    scores : ndarray (n_held_out, n_outputs) of float64
        Each round's votes are added to them.
    classes, units : ndarray (n_held_out,) of int64
        As for `engines.held_out.held_out_sums`.
    n_classes : int
    loss : WatchedLoss
    """

    X: np.ndarray
    rows: np.ndarray | None
    scores: np.ndarray
    classes: np.ndarray
    units: np.ndarray
    n_classes: int
    loss: WatchedLoss


NO_SIDES = np.zeros((0, 0, 0), dtype=np.uint8)
"""Regions of categories where no feature is categorical."""


class OfferedCuts(NamedTuple):
    """What the first of some rounds choose from.

    Attributes
    ----------
    features : ndarray (n_offering_rounds, k) of int64
        Increasing in each round.
    thresholds : ndarray (n_offering_rounds, k) of float64
        Infinite for the cut that parts missing values from all others; NaN for a set of categories.
    sides : ndarray (n_offering_rounds, k, N_NUMBERS) of uint8
        Of a set the region of each number of a category, that of missing values if there is no such
        category. Of any other shape if no feature is categorical.
    """

    features: np.ndarray
    thresholds: np.ndarray
    sides: np.ndarray = NO_SIDES


NO_CUTS = OfferedCuts(np.zeros((0, 0), dtype=np.int64), np.zeros((0, 0)))
"""Of no round at all."""


@dataclass(frozen=True)
class MadeRounds:
    """What each of some rounds did.

    Attributes
    ----------
    features : ndarray (n_rounds,) of int64
    thresholds : ndarray (n_rounds,) of float64
        Of the splits; NaN for a set of categories. There is no constant among them.
    votes : ndarray (n_rounds, n_regions, n_outputs) of float64
    scores : ndarray (n_rounds,) of float64
        What the cut was worth.
    misclassified : ndarray (n_rounds,) of int64
        See `contract.Totals`; behind the round.
    right : ndarray (n_rounds, n_classes) of int64
        For each class the integer weight of the held-out samples that are classified right, behind
        the round; (n_rounds, 0) if none are watched.
    losses : ndarray (n_rounds, n_sums) of int64
        The sums of their losses.
    sides : ndarray (n_rounds, N_NUMBERS) of uint8
        For sets of categories, as `OfferedCuts.sides`; (n_rounds, 0) if no feature is categorical.
    """

    features: np.ndarray
    thresholds: np.ndarray
    votes: np.ndarray
    scores: np.ndarray
    misclassified: np.ndarray
    right: np.ndarray
    losses: np.ndarray
    sides: np.ndarray


class Ahead(Protocol):
    """Makes rounds of one run ahead."""

    def make(self, n_rounds: int, offered: OfferedCuts = NO_CUTS) -> MadeRounds:
        """Make so many rounds, or fewer; the state is then behind the last one of them.

        Parameters
        ----------
        n_rounds : int
        offered : OfferedCuts
            For each of the first rounds to make: it takes the best of these cuts. A round without
            an offer is free to take any cut.
        """
