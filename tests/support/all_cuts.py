"""All cuts after the samples of an order, and checks of the bounds that engines compute for them.

Planes hold the integers of samples: for each output the first ones of the samples labelled +1 and
of those labelled -1, then, for Newton votes, the second ones of both in the same way. Where a
feature is constrained, cuts that are not allowed are worth less than all others.
"""

from __future__ import annotations

import numpy as np
from rounds import signs

from gpustump.engines.contract import Totals
from gpustump.engines.gain import Sums, gain_of, score_of_outputs
from gpustump.engines.monotone import Limit, limit_of
from gpustump.engines.objective import Objective


def mirrored(
    random: np.random.Generator, n_samples: int, fineness: int
) -> tuple[np.ndarray, np.ndarray]:
    """X (n_samples, 4) and labels: features copy and mirror each other more or less."""
    x = random.normal(size=n_samples)
    shaken = x + random.normal(size=n_samples) * random.choice([0.0, 0.1, 1.0])
    last = random.normal(size=n_samples)
    X = np.stack([x, -shaken, np.round(fineness * shaken), last], axis=1)
    X[random.random(n_samples) < 0.1, 3] = np.nan
    y = signs(np.sin(7 * x) + x * random.choice([0.0, 0.5]), random, noise=0.7)
    return X.astype(np.float32), y


def limit_of_round(objective: Objective, totals: Totals) -> Limit | None:
    """What the constraints of a search with one output allow in a round, whatever the votes."""
    if objective.monotone is None or not objective.has_signs:
        return limit_of(objective, totals.weight, totals.n_samples)
    # The heavier side votes +1.
    return Limit(lambda sums: sums.gradient, np.asarray(objective.monotone))


def scores_of_cuts(
    planes: np.ndarray, outside: np.ndarray, objective: Objective, limit: Limit | None = None
) -> np.ndarray:
    """What the cuts behind all but the last sample of an order are worth.

    `outside` (n_planes, 3) are sums over what lies before the samples, behind them, and over what
    is missing. A limit is that of one feature.
    """
    total = planes.sum(axis=1)
    left = np.cumsum(planes, axis=1)[:, :-1]
    right = total[:, np.newaxis] - left + outside[:, 1:2]
    regions = (left + outside[:, :1], right, np.broadcast_to(outside[:, 2:], left.shape))
    each = [_sums(part, objective) for part in regions]
    scores = np.asarray(score_of_outputs(gain_of(objective), zip(*each, strict=True)))
    if limit is None:
        return scores
    (before,), (behind,) = each[:2]
    nothing = np.iinfo(np.int64).min if scores.dtype.kind == "i" else -np.inf
    return np.where(limit.allows(before, behind)[0], scores, nothing)


def _sums(planes: np.ndarray, objective: Objective) -> list[Sums]:
    if objective.gain == "newton":
        quads = range(0, len(planes), 4)
        return [Sums(planes[k] - planes[k + 1], planes[k + 2] + planes[k + 3]) for k in quads]
    pairs = range(0, len(planes), 2)
    return [Sums(planes[k] - planes[k + 1], planes[k] + planes[k + 1]) for k in pairs]


def cuts_of_feature(
    x: np.ndarray, planes: np.ndarray, objective: Objective, limit: Limit | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A feature's samples in their order, from its values.

    Returns the planes of the samples that have a value, (n_planes, n_present); for all but the last
    of them what the cut behind it is worth, and whether the next value is another one; and the sums
    over the samples whose value is missing.
    """
    order = np.argsort(x, kind="stable")[: np.count_nonzero(x == x)]
    own, x = planes[:, order], x[order]
    missing = planes.sum(axis=1) - own.sum(axis=1)
    nothing = np.zeros_like(missing)
    outside = np.stack([nothing, nothing, missing], axis=1)
    scores = scores_of_cuts(own, outside, objective, limit)
    return own, scores, x[1:] != x[:-1], missing


def check_shares(
    planes: np.ndarray, cuts: np.ndarray, ahead: np.ndarray, objective: Objective
) -> None:
    """At no cut is the share of the positive or negative sum further ahead than `ahead` allows.

    Planes are those of the samples of a bin, cuts lie behind some of these. `ahead` has two numbers
    for each output: how far the positive sum's share may be ahead, and the negative one's.
    """
    stride = 4 if objective.gain == "newton" else 2
    for k in range(objective.n_outputs):
        with np.errstate(invalid="ignore"):
            positive, negative = (
                np.cumsum(own)[cuts] / own.sum() for own in planes[stride * k : stride * k + 2]
            )
        for by, more in zip(ahead[2 * k : 2 * k + 2], (1, -1), strict=True):
            lead = np.nan_to_num(more * (positive - negative), nan=-1.0).max()
            assert lead <= by + 1e-11  # shares are rounded here, too
