"""The losses of a model by round: error, log-loss and exponential loss after 1, 2, ... rounds.

AdaBoost lowers the exponential loss, LogitBoost the log-loss; neither lowers the error directly.
The mean exponential loss on the training samples is the product of the normalisers Z, so it also
gives the bound on the training error where only a model and its training samples are known.

Scores are added up round by round, as the model does, on the host. Each column is compared with the
thresholds once, whatever the number of rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.labels import class_numbers
from gpustump.data.parameters import Link
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.learners.hypothesis import regions
from gpustump.learners.step_table import StepTable
from gpustump.model.additive import AdditiveModel, Term
from gpustump.model.classes import class_indices, log_probabilities
from gpustump.model.ensemble import Label, StumpEnsemble, model_of
from gpustump.model.members import added_up
from gpustump.theory.arguments import weights_of


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
        bound by the product of the normalisers, `bounds_of_rounds`, up to the rounding of weights.

        Notes
        -----
        With one output, a misclassified sample has exp(-y * F) of at least 1 [Schapire and Singer
        1999, theorem 1]. With more, one whose class k does not have the largest score has F_k <=
        F_l for another class l, so exp(-F_k) + exp(F_l) >= 2 * exp((F_l - F_k) / 2) >= 2.
        """
        return bound_of(self.exponential_losses, self.n_outputs)


def bound_of(losses: np.ndarray, n_outputs: int) -> np.ndarray:
    """Bounds on errors from mean exponential losses, or from products of normalisers."""
    return losses if n_outputs == 1 else n_outputs / 2 * losses


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

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described; also if a label is given for a model whose stumps all
        classes share.

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
    number = run_number(ensemble, label)
    X = ensemble.checked(X)
    run = run_of(ensemble, number, X, y)
    return losses_of(run, X, weights_of(sample_weight, X))


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


class Run(NamedTuple):
    """What is judged: a whole model, or one class against the rest.

    Attributes
    ----------
    scores : AdditiveModel
    numbers : ndarray (n_samples,) of int64
        The class of each sample; 1 and 0 with one output.
    link : str
        How scores become probabilities.
    """

    scores: AdditiveModel
    numbers: np.ndarray
    link: Link


def run_of(model: StumpEnsemble, number: int | None, X: Array, y: Any) -> Run:
    """A whole model for None, else the member with this number, and the labels of samples."""
    numbers = arrays.to_host(class_numbers(model.classes, y, X))
    if number is None or model.is_binary or model.is_shared:
        return Run(model.in_rounds, numbers, model.link)
    own = (numbers == number).astype(np.int64)
    return Run(added_up((model.members[number],)), own, "logistic")


def errors_of(run: Run, X: Array, weights: IntegerWeights) -> np.ndarray:
    """The error after each round, (n_rounds,), without the other losses."""
    staged = map(_read, staged_scores(run.scores, X))
    return np.asarray([weights.share(class_indices(read) != run.numbers) for read in staged])


def losses_of(run: Run, X: Array, weights: IntegerWeights) -> RoundLosses:
    """The losses after each round; samples of weight 0 take no part."""
    counts = weights.values > 0
    numbers, shares = run.numbers[counts], weights.values[counts] / weights.total
    found = []
    for scores in staged_scores(run.scores, X):
        error = weights.share(class_indices(_read(scores)) != run.numbers)
        own = scores[:, counts]
        logs = log_probabilities(_read(own), run.link)[np.arange(len(numbers)), numbers]
        found.append((error, float(-(logs @ shares)), _exponential_loss(own, numbers, shares)))
    errors, log_losses, exponentials = np.asarray(found, dtype=np.float64).reshape(-1, 3).T
    return RoundLosses(errors, log_losses, exponentials, run.scores.n_outputs)


def staged_scores(model: AdditiveModel, X: Array) -> Iterator[np.ndarray]:
    """Scores after 1, 2, ... rounds, (n_outputs, n_samples); every item is the same array.

    They are added up term by term as in `AdditiveModel.staged_scores`, so they are the same to the
    last bit.
    """
    columns = _coded_columns(model.terms, X)
    scores = np.repeat(np.asarray(model.constant)[:, np.newaxis], X.shape[0], axis=1)
    for terms in model.rounds:
        for partition, votes in terms:
            column = columns[partition.feature]
            with np.errstate(all="ignore"):
                region = regions(partition, column.ends)
            for score, own in zip(scores, votes.T, strict=True):
                if own.any():
                    score += own[region][column.steps]
        yield scores


@dataclass(frozen=True)
class _Coded:
    """A feature's values as numbers of steps between a model's thresholds.

    Attributes
    ----------
    ends : ndarray (k + 1,) of float64
        The upper end of each step, and NaN for missing values.
    steps : ndarray (n_samples,) of the narrowest unsigned integers that hold k
        The step of each sample.
    """

    ends: np.ndarray
    steps: np.ndarray


def _coded_columns(terms: tuple[Term, ...], X: Array) -> dict[int, _Coded]:
    """Each feature in use as steps between the thresholds of all terms."""
    found = dict[int, list[float]]()
    for partition, _ in terms:
        found.setdefault(partition.feature, [np.inf]).extend(partition.thresholds)
    return {feature: _coded(X, feature, np.asarray(of)) for feature, of in found.items()}


def _coded(X: Array, feature: int, thresholds: np.ndarray) -> _Coded:
    ends = np.unique(thresholds)
    with arrays.computing_on(X), np.errstate(all="ignore"):
        steps = arrays.to_host(
            StepTable(feature, ends, np.zeros(len(ends)), 0.0).steps_of(X[:, feature])
        )
    return _Coded(np.append(ends, np.nan), steps.astype(np.min_scalar_type(len(ends))))


def _read(scores: np.ndarray) -> np.ndarray:
    """Scores (n_outputs, n_samples) as a model returns them: (n_samples,) for one output."""
    return scores[0] if len(scores) == 1 else scores.T


def _exponential_loss(scores: np.ndarray, numbers: np.ndarray, shares: np.ndarray) -> float:
    outputs = np.arange(len(scores))[:, np.newaxis] + (len(scores) == 1)
    with np.errstate(over="ignore"):
        exponentials = np.exp(np.where(numbers == outputs, -scores, scores))
    return float(np.mean(exponentials, axis=0) @ shares)
