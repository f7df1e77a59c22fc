"""The losses that boosting lowers: of a cut, by its threshold, and of a model, by round.

The curves of a cut are computed as in training, from the same integers and by the same operations.
So the least error is, bit for bit, that of the stump that training finds, and the largest score
that of the split that `fit_stump` returns for this column alone.

AdaBoost lowers the exponential loss by rounds, LogitBoost the log-loss; neither lowers the error
directly. The mean exponential loss on the training samples is the product of the normalisers Z, so
it also gives the bound on the training error where only a model and its training samples are known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.rounds.one_hypothesis import VotedSplit
from gpustump.boosting.votes.settings import VoteSettings
from gpustump.boosting.votes.splits import SplitVotes
from gpustump.data.input_arrays import as_array
from gpustump.data.labels import class_numbers
from gpustump.data.parameters import VoteKind, check_real, check_vote_kind
from gpustump.data.tables import check_table
from gpustump.data.weights import check_weighted_signs
from gpustump.engines.contract import sign_of
from gpustump.engines.gain import Sums, gain_of
from gpustump.engines.integer_weights import IntegerWeights, in_units
from gpustump.engines.reference import table as reference
from gpustump.engines.reference.integers import hessian_of
from gpustump.engines.reference.state import ArrayState
from gpustump.learners.split import Split
from gpustump.learners.thresholds import midpoints
from gpustump.model.classes import class_indices, log_probabilities
from gpustump.model.ensemble import Label, StumpEnsemble, model_of
from gpustump.model.members import added_up
from gpustump.theory.arguments import weights_of


@dataclass(frozen=True)
class Losses:
    """The weighted errors of all stumps on one feature with k distinct values.

    Attributes
    ----------
    values : ndarray (k,) of float64
        The distinct values, increasing. The loss has a step at each.
    thresholds : ndarray (k + 1,) of float64
        The candidates: -inf for a threshold below every value, the midpoints, and +inf. The loss is
        constant on [values[i - 1], values[i]), where thresholds[i] lies. (If a value is -inf, the
        first candidate still stands for a threshold below it.)
    wrong, opposite_wrong : ndarray (k + 1,) of int64
        The integer weight that the stump with this threshold gets wrong: with polarity +1, which
        predicts +1 where x <= threshold, and with polarity -1.
    total_weight : int
        The integer weight of all samples.
    heavier : int
        The label of larger total weight, +1 or -1; +1 if both have the same.

    Examples
    --------
    >>> from gpustump.theory import weighted_losses
    >>> found = weighted_losses([1.0, 2.0, 4.0, 5.0], [1, 1, -1, 1])
    >>> found.values.tolist()
    [1.0, 2.0, 4.0, 5.0]
    >>> found.errors.tolist()
    [0.75, 0.5, 0.25, 0.5, 0.25]
    >>> found.opposite_errors.tolist()
    [0.25, 0.5, 0.75, 0.5, 0.75]
    """

    values: np.ndarray
    thresholds: np.ndarray
    wrong: np.ndarray
    opposite_wrong: np.ndarray
    total_weight: int
    heavier: int

    @property
    def errors(self) -> np.ndarray:
        """The loss with polarity +1, (k + 1,) of float64."""
        return _shares(self.wrong, self.total_weight)

    @property
    def opposite_errors(self) -> np.ndarray:
        """The loss with polarity -1, (k + 1,): 1 - errors, unless values are missing."""
        return _shares(self.opposite_wrong, self.total_weight)

    def least(self) -> tuple[float, int, float]:
        """Threshold, polarity and error of the stump that training chooses.

        Among equally good stumps it is the one with the lowest threshold. A stump with all values
        on one side is chosen only if it is strictly better than every threshold between two values.
        If both of its polarities are equally good, it predicts the label of larger total weight.

        Examples
        --------
        >>> from gpustump.theory import weighted_losses
        >>> weighted_losses([1.0, 2.0, 4.0, 5.0], [1, 1, -1, 1]).least()
        (3.0, 1, 0.25)
        """
        wrong = np.stack([self.wrong, self.opposite_wrong], axis=1)
        inside, above_all = wrong[1:-1], wrong[-1]  # wrong[0] holds the same two numbers
        if inside.size and inside.min() <= above_all.min():
            at, side = divmod(int(np.argmin(inside)), 2)
            threshold, polarity = float(self.thresholds[at + 1]), 1 - 2 * side
            return threshold, polarity, int(inside.min()) / self.total_weight
        polarity = self.heavier
        if above_all[0] != above_all[1]:
            polarity = 1 - 2 * int(np.argmin(above_all))
        return math.inf, polarity, int(above_all.min()) / self.total_weight


def weighted_losses(x: Array, y: Array, sample_weight: Array | None = None) -> Losses:
    """The weighted error of every stump on one feature.

    Parameters
    ----------
    x : array (n_samples,)
        The feature's values: booleans, integers or floats of any array library; NaN means missing.
    y : array (n_samples,)
        Labels -1 and +1, both present.
    sample_weight : array (n_samples,), optional
        As for `fit_stump`.

    Returns
    -------
    Losses
        On the host.

    Notes
    -----
    With polarity +1 the error is F_j(b), the sum of the weights D_i over the i with
    y_i != sign(b - x_ij) [Shalev-Shwartz and Ben-David 2014, Understanding Machine Learning,
    10.1.1]; with polarity -1 it is 1 - F_j(b). In the order of x, F_j changes by y_i * D_i from one
    sample to the next, so one cumulative sum gives all values.

    Samples without a value are predicted to have the label of larger total weight among them, as in
    training. They add the smaller of their two total weights to every loss.

    Examples
    --------
    >>> found = weighted_losses([1.0, 2.0, 4.0, 5.0], [1, 1, -1, 1])
    >>> found.thresholds.tolist()
    [-inf, 1.5, 3.0, 4.5, inf]
    >>> found.errors.tolist()
    [0.75, 0.5, 0.25, 0.5, 0.25]
    >>> found.least()
    (3.0, 1, 0.25)
    """
    values, labels, weights = _samples_of(x, y, sample_weight)
    signed, cuts = (in_units(weights) * labels).astype(np.int64), Cuts.of(values)
    sum_left = cuts.sums_left(signed)
    agreement = 2 * sum_left - sum_left[-1]  # of polarity +1, over the present samples
    missing = signed[cuts.missing]
    weight_missing = int(np.abs(missing).sum())
    wrong_missing = (weight_missing - abs(int(missing.sum()))) // 2
    total_weight = int(np.abs(signed).sum())
    weight_present = total_weight - weight_missing
    return Losses(
        cuts.values.astype(np.float64),
        cuts.thresholds,
        (weight_present - agreement) // 2 + wrong_missing,
        (weight_present + agreement) // 2 + wrong_missing,
        total_weight,
        sign_of(int(signed.sum())),
    )


def _samples_of(x: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The values of one feature, the labels and the weights of the samples that count, on the host.

    Values keep a dtype in which they may be compared; errors are those of `fit_stump`.
    """
    x = as_array(x, "x")
    if x.ndim != 1:
        raise ValueError(
            f"x must have one dimension, (n_samples,), but its shape is {tuple(x.shape)}; pass one "
            "column, X[:, j], at a time."
        )
    x = check_table(x[:, None], name="x")[:, 0]
    with arrays.computing_on(x):
        labels, weights, rows = check_weighted_signs(y, sample_weight, x)
        values = arrays.picked(arrays.as_working(x), rows)
    return arrays.to_host(values), arrays.to_host(labels), arrays.to_host(weights)


class Cuts(NamedTuple):
    """The cuts of a feature with k distinct values, from below all of them to above all.

    Attributes
    ----------
    values : ndarray (k,)
        The distinct values, increasing, in the column's dtype.
    thresholds : ndarray (k + 1,) of float64
        -inf, the midpoints, and +inf; +inf alone if all values are missing.
    present, missing : ndarray of int64
        Indices of the samples with a value, in increasing order of it, and of those without.
    is_last : ndarray (n_present,) of bool
        Whether a sample is the last one of its value, in the order of `present`.
    """

    values: np.ndarray
    thresholds: np.ndarray
    present: np.ndarray
    missing: np.ndarray
    is_last: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray) -> Cuts:
        """The cuts of a column (n_samples,) of floats on the host; NaN means missing."""
        with np.errstate(all="ignore"):
            keys = arrays.order_keys(x)
        order = np.argsort(keys, kind="stable")
        is_there = keys[order] != arrays.missing_key(arrays.dtype_name(x))
        present = order[is_there]
        is_last = np.append(keys[present][1:] != keys[present][:-1], True)[: len(present)]
        values = x[present][is_last]
        ends = np.concatenate([[-math.inf], midpoints(values), [math.inf]])
        thresholds = ends if len(values) else ends[-1:]
        return cls(values, thresholds, present, order[~is_there], is_last)

    def sums_left(self, integers: np.ndarray) -> np.ndarray:
        """The sums over the samples on the left of each cut, from 0 to all present: (k + 1,)."""
        running = np.cumsum(integers[self.present])
        return np.append(np.zeros(1, dtype=np.int64), running[self.is_last])


def _shares(weights: np.ndarray, total_weight: int) -> np.ndarray:
    """Each integer weight as a share of the total, rounded once."""
    return np.asarray([weight / total_weight for weight in weights.tolist()])


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
    best : VotedSplit
        The split that training chooses on this feature, as `fit_stump` returns it.

    Examples
    --------
    >>> from gpustump.theory import split_scores
    >>> found = split_scores([1.0, 2.0, 4.0, 5.0], [1, 1, -1, 1], votes="newton")
    >>> found.thresholds.tolist()
    [-inf, 1.5, 3.0, 4.5, inf]
    >>> found.scores.round(4).tolist()
    [1.0, 1.3333, 2.0, 1.3333, 1.0]
    >>> found.best.split, round(found.best.score, 4)
    (Split(feature=0, threshold=3.0), 2.0)
    """

    values: np.ndarray
    thresholds: np.ndarray
    scores: np.ndarray
    constant: float
    best: VotedSplit


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
    >>> found.best.split.threshold, [round(vote, 4) for vote in found.best.votes]
    (3.0, [0.8047, 0.0, 0.0])
    """
    kind = check_vote_kind(votes, ("real", "newton"))
    l2 = check_real(l2_regularization, "l2_regularization", least=0.0)
    values, labels, weights = _samples_of(x, y, sample_weight)
    run = VoteSettings(kind, l2_regularization=l2).votes(weights)
    assert isinstance(run, SplitVotes)
    objective = run.objective()
    table = reference.prepare(values[:, np.newaxis])
    state = ArrayState(table, labels, in_units(weights, objective.n_copies), objective)
    weight, best = state.totals.weight, run.best(table, state)
    (own,) = state.integers().outputs
    integers, cuts = Sums(own.gradient, hessian_of(own)), Cuts.of(values)
    left = Sums(*map(cuts.sums_left, integers))
    right = Sums(*(part[-1] - part for part in left))
    missing = Sums(*(part[cuts.missing].sum(keepdims=True) for part in integers))
    nothing = Sums(*np.zeros((2, 1), dtype=np.int64))
    total = Sums(*(part.sum(keepdims=True) for part in integers))
    gain = gain_of(objective)
    scores, constant = gain(left, right, missing), float(gain(total, nothing, nothing)[0])
    assert best.cut is not None
    assert isinstance(best.hypothesis, Split)
    (first,), (second,), (of_missing,) = best.region_votes
    return SplitScores(
        cuts.values.astype(np.float64),
        cuts.thresholds,
        np.asarray([run.recorded(score, weight) for score in scores.tolist()]),
        run.recorded(constant, weight),
        VotedSplit(
            best.hypothesis,
            (first, second, of_missing),
            run.recorded(best.cut.score, weight),
        ),
    )


@dataclass(frozen=True)
class RoundLosses:
    """Losses after each round.

    Attributes
    ----------
    errors : ndarray (n_rounds,) of float64
        The share of the weight that is misclassified: a ratio of two integers, rounded once.
    log_losses : ndarray (n_rounds,) of float64
        The mean of -ln P, where P is the probability of the sample's own class.
    exponential_losses : ndarray (n_rounds,) of float64
        The mean over samples and outputs of exp(-y * F), y = +1 for the output's class and -1 for
        others; infinite where it overflows.
    n_outputs : int
        1 for two classes.

    Examples
    --------
    >>> from gpustump import AdaBoostClassifier
    >>> from gpustump.theory import losses_by_round
    >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
    >>> clf = AdaBoostClassifier(n_estimators=3).fit(X, y)
    >>> found = losses_by_round(clf, X, y)
    >>> found.errors.tolist()
    [0.2, 0.2, 0.0]
    >>> found.log_losses.round(3).tolist()
    [0.5, 0.314, 0.181]
    >>> found.bounds.round(3).tolist()
    [0.8, 0.529, 0.434]
    """

    errors: np.ndarray
    log_losses: np.ndarray
    exponential_losses: np.ndarray
    n_outputs: int

    @property
    def bounds(self) -> np.ndarray:
        """A bound on each error, (n_rounds,): the exponential loss, times K/2 for K > 2 outputs.

        It holds for any scores and samples. On the samples that AdaBoost was trained on, it is the
        bound by the product of the normalisers, `Round.training_bound`, up to the rounding of
        weights.

        Notes
        -----
        With one output, a misclassified sample has exp(-y * F) of at least 1 [Schapire and Singer
        1999, theorem 1]. With more, one whose class k does not have the largest score has F_k <=
        F_l for another class l, so exp(-F_k) + exp(F_l) >= 2 * exp((F_l - F_k) / 2) >= 2.
        """
        factor = 1.0 if self.n_outputs == 1 else self.n_outputs / 2
        return factor * self.exponential_losses


def losses_by_round(
    model: Any,
    X: Array,
    y: Array,
    sample_weight: Array | None = None,
    *,
    label: Label | None = None,
) -> RoundLosses:
    """The losses on samples after 1, 2, ... rounds.

    Parameters
    ----------
    model : StumpEnsemble or fitted classifier
        With any votes.
    X : array or frame (n_samples, n_features)
        As for `StumpEnsemble.decision_function`.
    y : array (n_samples,)
        Labels of the model's classes.
    sample_weight : array (n_samples,), optional
        As for `fit_stump`.
    label : bool, int, float or str, optional
        With one class against the rest: the class whose own losses, against the rest, are wanted.
        By default those of the whole model.

    Returns
    -------
    RoundLosses
        On the host. A run with fewer rounds than others stays as it is after its last one. Pairs of
        features are learnt after the last round and take no part in these losses.

    Examples
    --------
    >>> from gpustump import Member, Stump, StumpEnsemble
    >>> stumps = Stump(0, 0.5, -1, 1, 0.1), Stump(0, 1.5, -1, 1, 0.2)
    >>> model = StumpEnsemble((Member(stumps, (0.5, 0.25)),), 1)
    >>> found = losses_by_round(model, [[0], [1], [2]], [-1, 1, -1])
    >>> [round(loss, 4) for loss in found.errors.tolist()]
    [0.3333, 0.3333]
    >>> [round(loss, 4) for loss in found.log_losses.tolist()]
    [0.6466, 0.7923]
    """
    ensemble = model_of(model)
    ensemble.refuse_quantity()
    number = run_number(ensemble, label)
    X = ensemble.checked(X)
    return losses_of(ensemble, number, X, y, weights_of(sample_weight, X))


def run_number(model: StumpEnsemble, label: Label | None) -> int | None:
    """The member that a label stands for, whose class is judged against the rest; None for all.

    Raises
    ------
    ValueError
        If there is no such class, or all classes share the stumps.
    """
    if label is None:
        return None
    if model.is_shared:
        raise ValueError(
            "label must be left out, as all classes share the stumps of this model and its rounds "
            f"are rounds of all of them; got {label!r}."
        )
    return None if model.is_binary else model.member_index(label)


def losses_of(
    model: StumpEnsemble, number: int | None, X: Array, y: Any, weights: IntegerWeights
) -> RoundLosses:
    """The losses after each round of a whole model for None, else of the member with this number,
    whose class is judged against the rest; samples of weight 0 take no part."""
    numbers = arrays.to_host(class_numbers(model.classes, y, X))
    run, link = model.in_rounds, model.link
    if number is not None and not (model.is_binary or model.is_shared):
        numbers = (numbers == number).astype(np.int64)
        run, link = added_up((model.members[number],)), "logistic"
    counts = weights.values > 0
    numbers, own = numbers[counts], IntegerWeights(weights.values[counts], weights.total)
    shares, found = own.values / own.total, []
    for staged in run.staged_scores(X):
        by_output = arrays.to_host(staged)[counts]
        scores = by_output[:, 0] if run.n_outputs == 1 else by_output
        error = own.share(class_indices(scores) != numbers)
        logs = log_probabilities(scores, link)[np.arange(len(numbers)), numbers]
        # The class 1 has the only output of two classes.
        is_own = numbers[:, np.newaxis] == np.arange(run.n_outputs) + (run.n_outputs == 1)
        with np.errstate(over="ignore"):
            exponentials = np.exp(np.where(is_own, -by_output, by_output)).mean(axis=1)
        found.append((error, -_mean(logs, shares), _mean(exponentials, shares)))
    errors, log_losses, exponentials = np.asarray(found, dtype=np.float64).reshape(-1, 3).T
    return RoundLosses(errors, log_losses, exponentials, run.n_outputs)


def _mean(values: np.ndarray, shares: np.ndarray) -> float:
    """The weighted mean. BLAS would take threads, which wait for each other on a busy machine."""
    return float(np.sum(values * shares))
