"""Which cuts a monotone constraint allows: the definition of `gpustump.engines.monotone`, compiled.

Each operation is one of IEEE arithmetic, in the order that is defined there.
"""

from __future__ import annotations

from typing import NamedTuple

from gpustump.engines.cpu.runtime.compiling import Integers, group, kernel


@group
class Rules(NamedTuple):
    """What a search's scores and constraints depend on besides the sums.

    Attributes
    ----------
    l2 : float
        For Newton votes: lambda, in units of the integers.
    smoothing : float
        For real votes: the smoothing of their levels; see `monotone.smoothing_of`.
    directions : ndarray (n_features,) of int64
        The features' constraints; empty if there are none.
    """

    l2: float
    smoothing: float
    directions: Integers


@kernel("int64(Rules, int64)")
def direction_of(rules, feature):  # type: ignore[no-untyped-def]
    """A feature's constraint: 1, -1, or 0 for none."""
    return rules.directions[feature] if len(rules.directions) > 0 else 0


@kernel("float64(int64, int64, float64)")
def odds(positive, negative, smoothing):  # type: ignore[no-untyped-def]
    """The level of real votes: (P + s) / (N + s)."""
    return (float(positive) + smoothing) / (float(negative) + smoothing)


@kernel("float64(int64, int64, float64)")
def newton_step(first, second, l2):  # type: ignore[no-untyped-def]
    """The level of Newton votes: first / (second + l2)."""
    return float(first) / max(float(second) + l2, 1.0)


@kernel("boolean(int64, float64, float64)")
def are_in_order(direction, left, right):  # type: ignore[no-untyped-def]
    """Whether a constraint allows these levels on the left and on the right."""
    return left <= right if direction > 0 else (left >= right if direction < 0 else True)
