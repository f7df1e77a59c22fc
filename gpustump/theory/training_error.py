"""Bounds on the training error, from the rounds' errors and votes, or from their records.

`RoundLosses.bounds` computes the same from a model and its training samples.

A bound above 1 is returned as it is: it is true, and holds no information.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpustump.arrays import Array
from gpustump.boosting.votes.discrete import odds_and_normaliser
from gpustump.boosting.votes.votes import AnyRound, RegionRound
from gpustump.learners.step_table import VOTES_LIMIT
from gpustump.theory.arguments import host_vector
from gpustump.theory.round_losses import bound_of


def training_bounds(
    errors: Sequence[float] | Array, votes: Sequence[float] | Array | None = None
) -> np.ndarray:
    """The bound on the training error after each round: the product of the normalisers so far.

    Parameters
    ----------
    errors : array (n_rounds,)
        e_t, the weighted error of each round's stump, in [0, 1).
    votes : array (n_rounds,), optional
        alpha_t. Needed if they are not AdaBoost's own ln((1 - e_t) / e_t) / 2, as with a learning
        rate other than 1, or after a stump without error.

    Returns
    -------
    array (n_rounds,) of float64

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described, or the two are not equally long.

    Notes
    -----
    Without votes, Z_t = 2 * sqrt(e_t * (1 - e_t)) [Freund and Schapire 1997, theorem 6; COS 511,
    lecture 11]. With votes, Z_t = e_t * exp(alpha_t) + (1 - e_t) * exp(-alpha_t), and the product
    bounds the training error for any votes [Schapire and Singer 1999, theorem 1]. This holds in
    exact arithmetic; rounding changes each factor by a few parts in 10**16.

    Examples
    --------
    >>> training_bounds([0.2, 0.2]).tolist()
    [0.8, 0.6400000000000001]
    """
    errors = _checked_errors(errors)
    if votes is None:
        return np.cumprod(2.0 * np.sqrt(errors * (1.0 - errors)))
    votes = host_vector(votes, "votes")
    if votes.shape != errors.shape:
        raise ValueError(
            f"errors and votes must have the same length; got {len(errors)} and {len(votes)}."
        )
    _refuse(votes, "votes", ~(np.abs(votes) <= VOTES_LIMIT), f"within +-{VOTES_LIMIT:g}")
    pairs = zip(errors.tolist(), votes.tolist(), strict=True)
    with np.errstate(all="ignore"):
        bounds = np.cumprod([_normaliser(error, vote) for error, vote in pairs], dtype=np.float64)
    return np.where(np.isnan(bounds), np.inf, bounds)  # NaN is 0 * inf, for votes in the hundreds


def bounds_of_rounds(rounds: Sequence[AnyRound]) -> np.ndarray:
    """The bound on the training error after each round, from the records of a run with any votes.

    Parameters
    ----------
    rounds : sequence of Round or of RegionRound
        All rounds of one run from the first on, as `boost` yields them, or an item of a
        classifier's `rounds_`.

    Returns
    -------
    array (n_rounds,) of float64

    Raises
    ------
    ValueError
        If a round has no normaliser: with Newton votes, no product bounds the training error.
    TypeError
        If rounds holds anything but such records.

    Notes
    -----
    The product of the normalisers Z so far [Schapire and Singer 1999, theorem 1]. Z_t is the sum
    over samples of D_t(i) * exp(-y_i * v), where v is the vote of the sample's region; with K > 2
    outputs it is summed over samples and outputs. Then a sample whose class does not have the
    largest score adds 2 to its K exponential losses or more, and the bound is K/2 times the
    product.

    Examples
    --------
    >>> from gpustump import boost
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, 1, -1, -1]
    >>> rounds = list(boost(X, y, votes="real", n_rounds=2))
    >>> [round(bound, 4) for bound in bounds_of_rounds(rounds).tolist()]
    [0.7236, 0.6018]
    """
    if isinstance(rounds, AnyRound) or not all(isinstance(one, AnyRound) for one in rounds):
        raise TypeError("rounds must be the records of one run, such as classifier.rounds_[0].")
    if any(one.normaliser is None for one in rounds):
        raise ValueError(
            "rounds must come from AdaBoost: with Newton votes, no product of normalisers bounds "
            "the training error. See losses_by_round for the log-loss."
        )
    first = rounds[0] if len(rounds) else None
    n_outputs = len(first.votes[0]) if isinstance(first, RegionRound) else 1
    normalisers = [one.normaliser for one in rounds]
    return bound_of(np.cumprod(np.asarray(normalisers, dtype=np.float64)), n_outputs)


def edge_bounds(errors: Sequence[float] | Array) -> np.ndarray:
    """The bound on the training error after each round that depends on the edges only.

    Parameters
    ----------
    errors : array (n_rounds,)
        As for `training_bounds`, whose bounds without votes are never above these, except by
        rounding.

    Returns
    -------
    array (n_rounds,) of float64

    Raises
    ------
    ValueError, TypeError
        If errors are not numbers in [0, 1), in one dimension.

    Notes
    -----
    exp(-2 * (g_1**2 + ... + g_t**2)) with the edges g_t = 1/2 - e_t, since sqrt(1 - 4 * g**2) <=
    exp(-2 * g**2) [Freund and Schapire 1997, after theorem 6; COS 511, lecture 11].

    Examples
    --------
    >>> edge_bounds([0.5, 0.5]).tolist()
    [1.0, 1.0]
    """
    return np.exp(-2.0 * np.cumsum((0.5 - _checked_errors(errors)) ** 2))


def _checked_errors(errors: Any) -> np.ndarray:
    found = host_vector(errors, "errors")
    _refuse(found, "errors", ~((found >= 0) & (found < 1)), "in [0, 1)")
    return found


def _refuse(values: np.ndarray, name: str, where: np.ndarray, wanted: str) -> None:
    if where.any():
        at = int(np.argmax(where))
        raise ValueError(f"{name} must be {wanted}; got {values[at]:g} at index {at}.")


def _normaliser(error: float, vote: float) -> float:
    """Z_t, computed as in boosting: in decimal arithmetic, the same on every machine."""
    return odds_and_normaliser(*error.as_integer_ratio(), vote)[1]
