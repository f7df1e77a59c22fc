"""Exponentials of votes in kernels: the nearest float64, or NaN if it is in doubt.

The factor of a vote is defined as the float64 nearest to exp(x), where x is a whole multiple of
`VOTE_UNIT`. `boosting.votes.newton.factors_of` computes it with Python's whole numbers; here it is
computed as the sum of two floats, so that batches need no Python. Each has the form that is
fast there: kernels have no integers of more than 64 bits, and to Python two floats are some sixty
operations (exp(x) and exp(-x): 6.8 microseconds, and 2.0 in whole numbers). Both leave the last
digits to 50 decimal digits if in doubt, so they give the same float64.

x is i + k/256 + t with t from 0 to 1/256. exp(i) and exp(k/256) come from tables. exp(t) is
1 + t + t**2 / 2, computed without loss, plus the rest of the series.
"""

from __future__ import annotations

import math

import numpy as np

from gpustump.engines.cpu.runtime.compiling import group, inner
from gpustump.engines.powers import LARGEST, Powers
from gpustump.learners.step_table import VOTE_UNIT

UNITS = round(1 / VOTE_UNIT)
_STEP_BITS = 28
"""1/256 is 2**28 units of votes."""

_REST = (1 << _STEP_BITS) - 1
_SPLITTER = float(2**27 + 1)
"""Multiplying a float by this number separates its upper half from the lower one [Dekker 1971]."""

group(Powers)


@inner("UniTuple(float64, 2)(float64)")
def _halves(x):  # type: ignore[no-untyped-def]
    """Two floats of about 26 bits each whose sum is x."""
    scaled = _SPLITTER * x
    upper = scaled - (scaled - x)
    return upper, x - upper


@inner("UniTuple(float64, 2)(float64, float64, float64, float64)")
def product(x, x_rest, y, y_rest):  # type: ignore[no-untyped-def]
    """(x + x_rest) * (y + y_rest) as the sum of two floats [Dekker 1971].

    The relative error is below 2**-102, also if a compiler fuses operations.
    """
    found = x * y
    x_upper, x_lower = _halves(x)
    y_upper, y_lower = _halves(y)
    lost = x_upper * y_upper - found
    lost = ((lost + x_upper * y_lower) + x_lower * y_upper) + x_lower * y_lower
    rest = lost + (x * y_rest + x_rest * y)
    nearest = found + rest
    return nearest, rest - (nearest - found)


@inner("UniTuple(float64, 2)(int64)")
def _of_rest(rest):  # type: ignore[no-untyped-def]
    """exp(t) for t = rest * VOTE_UNIT below 2**-8, as the sum of two floats; error below 2**-76.

    The square of `rest` has 56 bits. Its upper and its lower half are exact as floats, and so is
    1 + t. The terms from t**3 / 6 on are below 2**-26 and computed in float64, with an error below
    2**-77; the terms left out are below 2**-79. Two sums are rounded; they are below 2**-25, so
    each rounding changes them by at most 2**-79.
    """
    t = rest * VOTE_UNIT
    square = rest * rest
    upper = (square >> 28) << 28
    half_upper = upper * (VOTE_UNIT * VOTE_UNIT / 2)
    half_lower = (square - upper) * (VOTE_UNIT * VOTE_UNIT / 2)
    series = (t * t * t) * (1 / 6 + t * (1 / 24 + t * (1 / 120 + t * (1 / 720 + t / 5040))))
    first = 1.0 + t
    found = first + half_upper
    lost = half_upper - (found - first)  # exact: the first one is larger
    small = lost + (half_lower + series)
    nearest = found + small
    return nearest, small - (nearest - found)


@inner("UniTuple(float64, 2)(int64, Powers)")
def exponential_of(units, tables):  # type: ignore[no-untyped-def]
    """exp(units * VOTE_UNIT) as the sum of two floats, the first one the nearest to it.

    The relative error is below 2**-75: 2**-76 from the last factor, almost nothing from the others.
    """
    step = units >> _STEP_BITS
    whole, part = tables.whole[(step >> 8) + LARGEST], tables.parts[step & 255]
    first, first_rest = product(whole[0], whole[1], part[0], part[1])
    last, last_rest = _of_rest(units & _REST)
    return product(first, first_rest, last, last_rest)


@inner("float64(float64, float64, float64)")
def certain_sum(found, rest, doubt):  # type: ignore[no-untyped-def]
    """The float64 nearest to every number within found * doubt of found + rest; NaN if not all of
    them have the same."""
    by = found * doubt
    lowest, highest = found + (rest - by), found + (rest + by)
    return lowest if lowest == highest else math.nan


@inner("float64(float64, Powers)")
def certain_power(x, tables):  # type: ignore[no-untyped-def]
    """The float64 nearest to exp(x), or NaN if that is in doubt; x is a multiple of the unit."""
    if not -LARGEST <= x <= LARGEST:
        return math.nan
    found, rest = exponential_of(np.int64(x * UNITS), tables)
    return certain_sum(found, rest, tables.doubt)


@inner("UniTuple(float64, 2)(int64)")
def two_floats(whole):  # type: ignore[no-untyped-def]
    """A whole number of at most 62 bits as the sum of two floats."""
    nearest = float(whole)
    return nearest, float(whole - np.int64(nearest))


@inner("UniTuple(float64, 2)(float64, float64, float64, float64)")
def sum_of(x, x_rest, y, y_rest):  # type: ignore[no-untyped-def]
    """(x + x_rest) + (y + y_rest) as the sum of two floats; neither x nor y is negative.

    The relative error is below 2**-102 [Knuth 1969, the sum of two floats without loss].
    """
    found = x + y
    of_y = found - x
    lost = (x - (found - of_y)) + (y - of_y)
    rest = lost + (x_rest + y_rest)
    nearest = found + rest
    return nearest, rest - (nearest - found)


@inner("UniTuple(float64, 2)(float64, float64, int64)")
def quotient(x, x_rest, whole):  # type: ignore[no-untyped-def]
    """(x + x_rest) / whole as the sum of two floats, for numbers above 0; relative error below
    2**-100: what the first quotient leaves is divided once more."""
    y, y_rest = two_floats(whole)
    first = x / y
    back, back_rest = product(first, 0.0, y, y_rest)
    left = (x - back) + (x_rest - back_rest)  # the first difference is exact
    rest = left / y
    nearest = first + rest
    return nearest, rest - (nearest - first)
