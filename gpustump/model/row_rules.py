"""What the values in the rows of a file must be, in words and as tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gpustump.data.readable import shown
from gpustump.learners.step_table import VOTE_UNIT, VOTES_LIMIT

Row = list[int | float | str | None]


class Rule(NamedTuple):
    """What a column's values must be, in words and as a test."""

    wanted: str
    is_right: Callable[[Any], bool]


def columns_of(rows: Any, fields: Sequence[str]) -> dict[str, Sequence[Any]]:
    """The columns of a member's rows by their names; the values are not checked.

    Raises
    ------
    ValueError
        If it is no list of rows with a value for each field.
    """
    if type(rows) is not list:
        raise ValueError(f"it must be a list with a row for each stump; got {shown(rows)}.")
    width = len(fields)
    refuse_others(
        "the row",
        rows,
        Rule(f"a list of {width} values", lambda row: type(row) is list and len(row) == width),
    )
    return dict(zip(fields, zip(*rows, strict=True) if rows else [()] * width, strict=True))


def refuse_others(name: str, values: Sequence[Any], rule: Rule) -> None:
    """Refuse the first value of a column that a rule does not allow."""
    if all(map(rule.is_right, values)):
        return
    place = next(at for at, value in enumerate(values) if not rule.is_right(value))
    raise ValueError(f"stump {place}: {name} must be {rule.wanted}; got {shown(values[place])}.")


def feature_rule(n_features: int) -> Rule:
    """A feature's number."""
    return Rule(
        f"a whole number from 0 to {n_features - 1}, as there are {n_features} features",
        lambda value: type(value) is int and 0 <= value < n_features,
    )


def is_finite(value: Any) -> bool:
    """Whether it is a float, neither infinite nor NaN."""
    return type(value) is float and math.isfinite(value)


def is_vote(value: Any) -> bool:
    """Whether it is a float that sums of votes hold exactly."""
    return type(value) is float and abs(value) <= VOTES_LIMIT and (value / VOTE_UNIT).is_integer()


THRESHOLD = Rule(
    'a float, "inf" or "-inf"',
    lambda value: is_finite(value) or value == "inf" or value == "-inf",
)

VOTE = Rule(
    "a float that is a whole multiple of 2**-36, as round(vote * 2**36) / 2**36 is, and at "
    f"most {VOTES_LIMIT:.0f}",
    is_vote,
)

UNSIGNED_ZERO_VOTE = Rule(
    f"{VOTE.wanted}; zero as 0.0",
    lambda value: is_vote(value) and (value != 0.0 or math.copysign(1.0, value) == 1.0),
)
"""A vote as `RegionMember` holds it: without -0.0, which would change the digest."""


UNSIGNED_ZERO_NUMBER = Rule(
    "a finite float; zero as 0.0",
    lambda value: is_finite(value) and (value != 0.0 or math.copysign(1.0, value) == 1.0),
)
"""A vote for a quantity, in its own unit. What sums of votes hold exactly is checked for all of
them together."""


def as_text(value: float) -> float | str:
    """A number as a file holds it: an infinite one is text."""
    return value if math.isfinite(value) else str(value)
