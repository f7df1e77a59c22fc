"""Margins of samples, and the share of samples below a margin.

They are measured, not bounded, and are the same numbers in every array library: elementwise
arithmetic and sums of integers only.
"""

from __future__ import annotations

import math
from typing import Any

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.moving import moved_to_device_of
from gpustump.data.input_arrays import as_array
from gpustump.data.labels import class_numbers
from gpustump.data.parameters import check_real
from gpustump.data.sample_weights import check_weights
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.model.ensemble import StumpEnsemble, model_of
from gpustump.theory.arguments import check_numbers


def normalised_margins(model: Any, X: Array, y: Array) -> Array:
    """The normalised margin of each sample: from -1, all votes wrong, to 1, all votes right.

    Parameters
    ----------
    model : StumpEnsemble or fitted classifier
    X : array or frame (n_samples, n_features)
        As for `StumpEnsemble.decision_function`: a frame's columns are found by name.
    y : array (n_samples,)
        Labels of the model's classes, on the same device as X. Lists and text may go with any X.

    Returns
    -------
    array of float64, in the library and on the device of X
        (n_samples,) for two classes. For more, (n_samples, n_classes): each member's margin for its
        own class against the rest. 0 if a member has no votes.

    Raises
    ------
    ValueError
        If y holds a label that is not one of the model's classes, X or y has another length, width,
        columns or device than expected, or the classifier is not fitted.
    TypeError
        If the model is neither of the two, X does not hold real numbers, or y holds something other
        than numbers, booleans or text.

    Notes
    -----
    y * F(x) / (|alpha_1| + ... + |alpha_T|), y = +1 for the second class [Schapire, Freund,
    Bartlett and Lee 1998, section 2]. The quotient of two exact sums is rounded once, so it is the
    same number on every device.

    Examples
    --------
    >>> from gpustump import Member, Stump, StumpEnsemble
    >>> stumps = Stump(0, 0.5, -1, 1, 0.1), Stump(0, 1.5, -1, 1, 0.2)
    >>> model = StumpEnsemble((Member(stumps, (3.0, 1.0)),), 1)
    >>> normalised_margins(model, [[0.0], [1.0], [2.0]], [-1, 1, -1]).tolist()
    [1.0, 0.5, -1.0]
    """
    model = model_of(model)
    X = model.checked(X)
    numbers = class_numbers(model.classes, y, X)
    scores = model.decision_function(X)
    xp, device = arrays.namespace_of(scores), arrays.device_of(scores)
    with arrays.computing_on(scores):
        numbers = moved_to_device_of(numbers, scores)
        if model.is_binary:
            own = numbers == 1
        else:
            own = numbers[:, None] == xp.arange(len(model.classes), dtype=xp.int64, device=device)
        # An array of totals: XLA would replace a division by a scalar with a multiplication by its
        # reciprocal, which rounds twice.
        totals = xp.asarray(_totals(model), dtype=xp.float64, device=device)
        return xp.where(own, scores, -scores) / xp.broadcast_to(totals, scores.shape)


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

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described, or a margin is NaN.

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
    margins, theta = _checked_margins(margins), check_real(theta, "theta")
    with arrays.computing_on(margins):
        below = margins <= theta
        weights, rows = check_weights(sample_weight, margins)
        return IntegerWeights.of(weights).share(arrays.picked(below, rows))


def _totals(model: StumpEnsemble) -> float | list[float]:
    """The sum of each member's absolute votes; 1 without votes, so that margins are 0."""
    totals = [math.fsum(map(abs, member.votes)) or 1.0 for member in model.discrete_members]
    return totals[0] if model.is_binary else totals


def _checked_margins(margins: Any) -> Array:
    margins = as_array(margins, "margins")
    check_numbers(margins, "margins", "pass one column, margins[:, k], at a time")
    if margins.shape[0] == 0:
        raise ValueError("margins is empty; at least one sample is needed.")
    xp = arrays.namespace_of(margins)
    with arrays.computing_on(margins):
        margins = xp.astype(margins, xp.float64)
        if bool(xp.any(xp.isnan(margins))):
            at = int(xp.argmax(xp.astype(xp.isnan(margins), xp.int8)))
            raise ValueError(f"margins contains NaN, the first at index {at}.")
    return margins
