"""Margins of samples, and the share of samples below a margin.

Margins are measured on samples; `bounds` has the bounds that use them. They need only
elementwise arithmetic and sums of integers, so they are the same numbers in every array library.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.moving import moved_to_device_of
from gpustump.data.input_arrays import as_array, refuse_problems
from gpustump.data.labels import class_numbers
from gpustump.data.parameters import check_real
from gpustump.learners.pair_table import PairAxis
from gpustump.model.ensemble import StumpEnsemble, model_of
from gpustump.model.members import added_up
from gpustump.theory.arguments import check_numbers, weights_of


def normalised_margins(model: Any, X: Array, y: Array) -> Array:
    """The normalised margin of each sample: from -1, all votes wrong, to 1, all votes right.

    Parameters
    ----------
    model : StumpEnsemble or fitted classifier
        With any votes.
    X : array or frame (n_samples, n_features)
        As for `StumpEnsemble.decision_function`: a frame's columns are found by name.
    y : array (n_samples,)
        Labels of the model's classes, on the same device as X. Lists and text may go with any X.

    Returns
    -------
    array of float64, in the library and on the device of X
        (n_samples,) for two classes. For more, (n_samples, n_classes): each output's margin for its
        own class against the rest; see `class_margins` for one margin of all classes. 0 if an
        output has no votes.

    A model with the softmax as its link is refused: only differences of its scores mean something.

    Notes
    -----
    ``y * F(x) / (|alpha_1| + ... + |alpha_T|)``, y = +1 for the second class [Schapire, Freund,
    Bartlett and Lee 1998, section 2]. Where the regions of a split have votes of their own,
    ``|alpha_t|`` is the largest of their sizes, so that the hypothesis lies between -1 and 1
    [Schapire and Singer 1999, section 3]; the score from which boosting starts counts as one more
    vote. The votes of a split's regions, divided by the largest of their sizes, are a point of a
    cube. It is a convex combination of the corners, and each corner is a stump or a constant. So
    the model divided by its normaliser is a convex combination of stumps, and `margin_bound` holds
    for these margins with any votes.

    The table T of a pair of features is a sum of a constant, stumps of each feature, and products
    of two stumps. The vote of the product whose signs change before bins a and b is a quarter of
    ``T[a, b] - T[a-1, b] - T[a, b-1] + T[a-1, b-1]``. Steps of one feature at the same place, of
    all tables and of what was moved out of them, are one stump. The sizes of all of these votes
    count, so `margin_bound` holds with ``weak_learner="product"``.

    The quotient of two exact sums is rounded once, so it is the same number on every device.

    Examples
    --------
    >>> from gpustump import Member, Stump, StumpEnsemble
    >>> stumps = Stump(0, 0.5, -1, 1, 0.1), Stump(0, 1.5, -1, 1, 0.2)
    >>> model = StumpEnsemble((Member(stumps, (3.0, 1.0)),), 1)
    >>> normalised_margins(model, [[0.0], [1.0], [2.0]], [-1, 1, -1]).tolist()
    [1.0, 0.5, -1.0]
    """
    model = model_of(model)
    if model.link == "softmax":
        raise ValueError(
            "model must have scores of one class against the rest; with the softmax only their "
            "differences mean something. Use class_margins."
        )
    scores, numbers = _scored(model, X, y)
    xp, device = arrays.namespace_of(scores), arrays.device_of(scores)
    with arrays.computing_on(scores):
        if model.is_binary:
            own = numbers == 1
        else:
            own = numbers[:, None] == xp.arange(len(model.classes), dtype=xp.int64, device=device)
        return _divided(xp.where(own, scores, -scores), _totals(model))


def class_margins(model: Any, X: Array, y: Array) -> Array:
    """The margin of each sample among all classes: above 0 if its class has the largest score.

    Parameters
    ----------
    model, X, y
        As for `normalised_margins`; any link.

    Returns
    -------
    array (n_samples,) of float64, in the library and on the device of X
        From -1 to 1. For two classes it is `normalised_margins`. 0 if the model has no votes.

    Notes
    -----
    The score of the sample's class minus the largest score of another class, divided by a sum. Each
    round adds to this sum the largest difference between two classes' votes that it can make, and
    so does the table of each pair of features. The scores from which boosting starts add the
    largest difference between two of them. Where each round votes for a single class, the margin is
    the weight of the votes for the right class minus the largest weight of the votes for a wrong
    one, as a share of the weight of all votes [Schapire, Freund, Bartlett and Lee 1998, section 1].
    As with the softmax, nothing changes if a number is added to the votes of all classes.
    `margin_bound` is a theorem about two classes; it says nothing about these margins for more.

    The quotient of two exact sums is rounded once.

    Examples
    --------
    >>> from gpustump import RegionMember, Split, StumpEnsemble
    >>> votes = [[[1.0, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.0]]]
    >>> member = RegionMember((Split(0, 0.5),), votes, [0.0, 0.0, 0.0])
    >>> model = StumpEnsemble((member,), 1, (0, 1, 2))
    >>> class_margins(model, [[0.0], [1.0], [1.0]], [0, 1, 2]).tolist()
    [1.0, 0.5, -0.5]
    """
    model = model_of(model)
    if model.is_binary:
        return normalised_margins(model, X, y)
    scores, numbers = _scored(model, X, y)
    xp, device = arrays.namespace_of(scores), arrays.device_of(scores)
    with arrays.computing_on(scores):
        own = numbers[:, None] == xp.arange(len(model.classes), dtype=xp.int64, device=device)
        right = xp.max(xp.where(own, scores, -xp.inf), axis=1)
        wrong = xp.max(xp.where(own, -xp.inf, scores), axis=1)
        return _divided(right - wrong, _total_of_differences(model))


def share_below(margins: Array, theta: float = 0.0, sample_weight: Array | None = None) -> float:
    """The share of the samples, or of their weight, with a margin of theta or less.

    Parameters
    ----------
    margins : array (n_samples,)
        Of any array library; one column of `normalised_margins` if there are several.
    theta : float
    sample_weight : array (n_samples,), optional
        As for `fit_stump`, and rounded to the same integers.

    Returns
    -------
    float
        In [0, 1]; a ratio of two integers, rounded once.

    Notes
    -----
    P_S[y * f(x) <= theta] of Schapire, Freund, Bartlett and Lee (1998). At theta = 0 it equals the
    training error to the last bit, unless some samples have a score of 0. They count here, but are
    no errors if the model's first class, which it predicts for them, is the right one.

    Examples
    --------
    >>> share_below([-0.5, 0.0, 0.25, 1.0])
    0.5
    """
    margins, theta = as_array(margins, "margins"), check_real(theta, "theta")
    check_numbers(margins, "margins", "pass one column, margins[:, k], at a time")
    if margins.shape[0] == 0:
        raise ValueError("margins is empty; at least one sample is needed.")
    xp = arrays.namespace_of(margins)
    with arrays.computing_on(margins):
        margins = xp.astype(margins, xp.float64)
        refuse_problems({"NaN": xp.isnan(margins)}, "margins")
        below = arrays.to_host(margins <= theta)
    return weights_of(sample_weight, margins).share(below)


def _scored(model: StumpEnsemble, X: Array, y: Array) -> tuple[Array, Array]:
    """The scores of the samples and the numbers of their classes, (n_samples,), beside them."""
    model.refuse_quantity()
    X = model.checked(X)
    numbers = class_numbers(model.classes, y, X)
    scores = model.decision_function(X)
    with arrays.computing_on(scores):
        return scores, moved_to_device_of(numbers, scores)


def _divided(differences: Array, totals: float | list[float]) -> Array:
    """Margins: differences over totals, one for all or one for each column."""
    xp, device = arrays.namespace_of(differences), arrays.device_of(differences)
    # An array of totals: XLA would replace a division by a scalar with a multiplication by its
    # reciprocal, which rounds twice.
    divisors = xp.asarray(totals, dtype=xp.float64, device=device)
    return differences / xp.broadcast_to(divisors, differences.shape)


def _totals(model: StumpEnsemble) -> float | list[float]:
    """For each output the sum of the sizes of its votes; 1 without votes, so that margins are 0."""
    constant = np.concatenate([member.constant for member in model.members])
    sizes: list[list[float]] = []
    for member in model.members:
        sizes += np.abs(member.region_votes).max(axis=1).T.tolist()
    if model.pairs:
        more, votes = _votes_of_pairs(model)
        constant = constant + more
        sizes = [own + added for own, added in zip(sizes, np.abs(votes).T.tolist(), strict=True)]
    pairs = zip(np.abs(constant).tolist(), sizes, strict=True)
    found = [math.fsum([start, *own]) or 1.0 for start, own in pairs]
    return found[0] if model.is_binary else found


def _votes_of_pairs(model: StumpEnsemble) -> tuple[np.ndarray, np.ndarray]:
    """What pairs add as votes of stumps and of products, with what was moved from their tables.

    A table T (k, m) is u(a) + v(b) - c + a sum of products. u is the mean of the first and the last
    column, v that of the first and the last row, and c the mean of the four corners. A stump is -1
    below a bin and +1 from that bin on; a product is one of two such stumps.

    Returns
    -------
    ndarray (n_outputs,) of float64
        The constant part.
    ndarray (n_votes, n_outputs) of float64
    """
    constants, tables = added_up(model.moved).tables
    constant, ends = np.asarray(constants), [0, -1]
    axes = {own.feature: PairAxis(own.feature, own.thresholds) for own in tables}
    axes |= {axis.feature: axis for pair in model.pairs for axis in pair.axes}
    effects = {j: np.zeros((axis.n_bins, len(constant))) for j, axis in axes.items()}
    found = []
    for values, features in ((pair.values, pair.features) for pair in model.pairs):
        constant = constant - values[ends][:, ends].mean(axis=(0, 1))
        effects[features[0]] += values[:, ends].mean(axis=1)
        effects[features[1]] += values[ends].mean(axis=0)
        products = np.diff(np.diff(values, axis=0), axis=1) / 4
        found.append(products.reshape(-1, len(constant)))
    moved = {table.feature: table for table in tables}
    for feature, axis in axes.items():
        own = moved.get(feature)
        points: Any = list(itertools.chain.from_iterable(axis.groups))
        if not points:
            points = axis.thresholds if own is None else np.union1d(axis.thresholds, own.thresholds)
        points = np.append(np.asarray(points, dtype=np.float64), np.nan)  # missing values last
        effect = effects[feature][axis.bins_of(points)]
        effect = effect if own is None else effect + own.look_up(points)
        constant = constant + effect[ends].mean(axis=0)
        found.append(np.diff(effect, axis=0) / 2)
    return constant, np.concatenate(found)


def _total_of_differences(model: StumpEnsemble) -> float:
    """The sum over rounds of the largest difference between two classes' votes; 1 without votes.

    The table of a pair counts like a round, and so does what was moved from it. With one class
    against the rest, each class has a stump of its own in a round, and a sample may lie in any
    region of each. So any two votes of different classes may meet. Of the votes of a shared stump
    only those of the same region do.
    """
    constant = model.in_rounds.constant
    found = [max(constant) - min(constant)]
    found += [float(np.ptp(pair.values, axis=2).max()) for pair in model.pairs]
    moved = added_up(model.moved).rounds if model.moved else ()
    for terms in (*model.in_rounds.rounds, *moved):
        if model.is_shared:
            votes = terms[0].votes
            found.append(float((votes.max(axis=1) - votes.min(axis=1)).max()))
        else:
            votes = np.sum([term.votes for term in terms], axis=0)
            differences = votes.max(axis=0)[:, np.newaxis] - votes.min(axis=0)
            np.fill_diagonal(differences, 0.0)
            found.append(float(differences.max()))
    return math.fsum(found) or 1.0
