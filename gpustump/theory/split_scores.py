"""The score of a split for real and for Newton votes, as a function of its threshold.

Training takes the split of the largest score. The scores are computed here as in training, from the
same integers and by the same operations. So the largest one is, bit for bit, that of the split that
`fit_stump` returns for this column alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.votes.settings import VoteSettings
from gpustump.boosting.votes.splits import SplitVotes, together
from gpustump.data.parameters import VoteKind, check_real, check_vote_kind
from gpustump.data.weights import check_weighted_signs
from gpustump.engines.contract import RegionSums, Totals
from gpustump.engines.integer_weights import in_units
from gpustump.engines.reference.integers import second_of
from gpustump.engines.reference.state import loss_of
from gpustump.engines.worth import Sums, worth_of
from gpustump.theory.feature_cuts import Cuts, checked_column


class VotedCut(NamedTuple):
    """A split of one feature, its score, and what its regions vote.

    Attributes
    ----------
    threshold : float
        Infinite if it separates no two values.
    score : float
        As in `SplitScores.scores`.
    votes : (float, float, float)
        Of the left region, of the right one and of missing values.
    is_constant : bool
        Whether all samples are one region, also those without a value.
    """

    threshold: float
    score: float
    votes: tuple[float, float, float]
    is_constant: bool


@dataclass(frozen=True)
class SplitScores:
    """The scores of all splits of one feature with k distinct values.

    Attributes
    ----------
    values : ndarray (k,) of float64
        The distinct values, increasing. The score has a step at each.
    thresholds : ndarray (k + 1,) of float64
        As for `Losses`. The first and the last separate the values that are present from missing
        ones, and nothing else.
    scores : ndarray (k + 1,) of float64
        The score of each split; see `RegionRound.score`. Real votes: -Z/2. Newton votes: the sum
        over the regions of A**2 / (B + lambda).
    constant : float
        The score without any split.
    kind : "real" or "newton"
    best : VotedCut
        The split that training chooses on this feature.

    Examples
    --------
    >>> from gpustump.theory import split_scores
    >>> found = split_scores([1.0, 2.0, 4.0, 5.0], [1, 1, -1, 1], votes="newton")
    >>> found.thresholds.tolist()
    [-inf, 1.5, 3.0, 4.5, inf]
    >>> found.scores.round(4).tolist()
    [1.0, 1.3333, 2.0, 1.3333, 1.0]
    >>> found.best.threshold, round(found.best.score, 4)
    (3.0, 2.0)
    """

    values: np.ndarray
    thresholds: np.ndarray
    scores: np.ndarray
    constant: float
    kind: VoteKind
    best: VotedCut


def split_scores(
    x: Array,
    y: Array,
    sample_weight: Array | None = None,
    *,
    votes: VoteKind = "real",
    l2_regularization: float = 0.0,
) -> SplitScores:
    """The score of every split of one feature, in the first round of boosting from scores of 0.

    Parameters
    ----------
    x : array (n_samples,)
        The feature's values: booleans, integers or floats of any array library; NaN means missing.
    y : array (n_samples,)
        Labels -1 and +1, both present.
    sample_weight : array (n_samples,), optional
        As for `fit_stump`.
    votes : "real" or "newton"
        See `weighted_losses` for discrete votes.
    l2_regularization : float
        As for `fit_stump`; for Newton votes.

    Returns
    -------
    SplitScores
        On the host.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described; the message names it and what was found.

    Notes
    -----
    Real votes: Z is twice the sum over the regions of sqrt(P * N), where P and N are the shares of
    the weight that are in the region and have the label +1 or -1. It is the sum of the next weights
    if every region votes 1/2 ln(P / N) [Schapire and Singer 1999, section 4.1]. Newton votes: A is
    the region's sum of weight * y / 2 and B that of weight / 4; the score is twice the decrease of
    the loss ln(1 + exp(-2 * y * F)) in a Newton step, to second order [Friedman, Hastie and
    Tibshirani 2000, section 4.3].

    Examples
    --------
    >>> found = split_scores([1.0, 2.0, 4.0, 5.0], [1, 1, -1, 1])
    >>> [round(-2 * score, 4) for score in found.scores.tolist()]
    [0.866, 0.7071, 0.5, 0.7071, 0.866]
    >>> found.best.threshold, [round(vote, 4) for vote in found.best.votes]
    (3.0, [0.8047, 0.0, 0.0])
    """
    kind = check_vote_kind(votes, ("real", "newton"))
    l2 = check_real(l2_regularization, "l2_regularization", least=0.0)
    x = checked_column(x)
    with arrays.computing_on(x):
        y, weights, rows = check_weighted_signs(y, sample_weight, x)
        values = arrays.to_host(arrays.picked(arrays.as_working(x), rows))
    labels, weights = arrays.to_host(y), arrays.to_host(weights)
    found = VoteSettings(kind, l2_regularization=l2).votes(weights)
    assert isinstance(found, SplitVotes)
    search = found.rule.search
    units = in_units(weights, search.n_copies)
    (own,) = loss_of(labels, units, search).integers().outputs
    return _scores(Cuts.of(values), Sums(own.first, second_of(own)), found)


def _scores(cuts: Cuts, integers: Sums, votes: SplitVotes) -> SplitScores:
    """The scores of a feature's cuts, and the best of them, in the order of ties of training."""
    search = votes.rule.search
    left = Sums(*map(cuts.sums_left, integers))
    right = Sums(*(part[-1] - part for part in left))
    missing = Sums(*(part[cuts.missing].sum(keepdims=True) for part in integers))
    nothing = Sums(*np.zeros((2, 1), dtype=np.int64))
    total = Sums(*(part.sum(keepdims=True) for part in integers))
    worth = worth_of(search)
    scores = np.asarray(worth(left, right, missing))
    constant = float(worth(total, nothing, nothing)[0])
    at = _place_of_best(scores, constant, has_missing=len(cuts.missing) > 0)
    sums = _region_sums(left, right, missing, len(scores) - 1 if at is None else at)
    totals = Totals(int(total.first[0]), int(total.second[0]), 0, 1, len(integers.first))
    regions = votes.rule.votes_of(together(sums) if at is None else sums, totals)
    (first,), (second,), (of_missing,) = regions
    best = VotedCut(
        math.inf if at is None else float(cuts.thresholds[at]),
        votes.rule.recorded(constant if at is None else float(scores[at]), totals.weight),
        (first, first, first) if at is None else (first, second, of_missing),
        at is None,
    )
    return SplitScores(
        cuts.values.astype(np.float64),
        cuts.thresholds,
        np.asarray([votes.rule.recorded(score, totals.weight) for score in scores.tolist()]),
        votes.rule.recorded(constant, totals.weight),
        search.votes,
        best,
    )


def _place_of_best(scores: np.ndarray, constant: float, *, has_missing: bool) -> int | None:
    """The place of the cut that training takes; None for the constant.

    It is the lowest of the best cuts between two values, unless the constant is better. The last
    place separates present values from missing ones, if there are any of both; it is taken only if
    it is better than all others.
    """
    between = scores[1:-1]
    best = float(between.max()) if between.size else -math.inf
    if has_missing and len(scores) > 1 and scores[-1] > max(best, constant):
        return len(scores) - 1
    return None if constant > best else 1 + int(np.argmax(between))


def _region_sums(left: Sums, right: Sums, missing: Sums, at: int) -> RegionSums:
    """The sums over the three regions of a cut, as Python's integers."""
    regions = [(left, at), (right, at), (missing, 0)]
    return [[(int(sums.first[place]), int(sums.second[place]))] for sums, place in regions]
