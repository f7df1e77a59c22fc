"""A member's stumps and votes as the rows of a file, and back, with every value checked.

A file may hold a million stumps. So a member is checked column by column, and its stumps are then
made without checking each once more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from gpustump.learners.category_split import CategoryStump
from gpustump.learners.interval import Interval
from gpustump.learners.kinds import AnyStump
from gpustump.learners.step_table import VOTES_LIMIT
from gpustump.learners.stump import Stump
from gpustump.model.row_rules import (
    THRESHOLD,
    VOTE,
    Row,
    Rule,
    as_text,
    columns_of,
    feature_rule,
    is_finite,
    refuse_others,
)

STUMP_FIELDS = ["feature", "threshold", "polarity", "missing", "error", "vote"]
"""The columns of a stump's row in a file, in a model without intervals (version 1)."""

INTERVAL_FIELDS = ["feature", "low", "threshold", "polarity", "missing", "error", "vote"]
"""The columns of a row in a model with intervals (version 2): an interval's `threshold` is its
`high`, and a stump has no `low`."""

Stumps = tuple[AnyStump, ...]
Votes = tuple[float, ...]


class Columns(NamedTuple):
    """The checked rows of a member, column by column: each (n_stumps,).

    In a model without intervals, `low` is None throughout.
    """

    feature: Sequence[int]
    low: Sequence[float | str | None]
    threshold: Sequence[float | str]
    polarity: Sequence[int]
    missing: Sequence[int]
    error: Sequence[float]
    vote: Sequence[float]


def rows_of(stumps: Iterable[AnyStump], votes: Votes, *, with_low: bool) -> list[Row]:
    """The rows of a file; an infinite threshold is text. `with_low` is for `INTERVAL_FIELDS`.

    Splits of categories have no threshold; see `category_rows`.
    """
    if with_low:
        return [
            [s.feature, *_cuts(s), s.polarity, s.missing, s.error, vote]
            for s, vote in zip(stumps, votes, strict=True)
        ]
    return [
        [s.feature, as_text(s.thresholds[0]), s.polarity, s.missing, s.error, vote]
        for s, vote in zip(stumps, votes, strict=True)
    ]


def checked_columns(rows: Any, fields: list[str], n_features: int) -> Columns:
    """The columns of a member's rows, after checking every value.

    Raises
    ------
    ValueError
        If a stump is wrong. The message names the first such one, counted from 0, and says why.
    """
    found = columns_of(rows, fields)
    for name, rule in _rules(n_features).items():
        refuse_others(name, found.get(name, ()), rule)
    found.setdefault("low", (None,) * len(rows))
    columns = Columns(**found)
    _check_intervals(columns)
    _check_sum(columns.vote)
    return columns


def stumps_of(columns: Columns) -> Stumps:
    """The hypotheses in checked rows."""
    *_, missing, error, _ = columns
    thresholds = map(float, columns.threshold)
    rest = (columns.polarity, missing, error)
    return tuple(
        _stump(feature, threshold, *votes)
        if low is None
        else _interval(feature, float(low), threshold, *votes)
        for feature, low, threshold, *votes in zip(
            columns.feature, columns.low, thresholds, *rest, strict=True
        )
    )


def _cuts(stump: AnyStump) -> tuple[float | str | None, float | str | None]:
    if isinstance(stump, CategoryStump):
        return None, None
    if isinstance(stump, Interval):
        return as_text(stump.low), stump.high
    return None, as_text(stump.threshold)


def _rules(n_features: int) -> dict[str, Rule]:
    """What each column's values must be; the types, too, are those that `rows_of` writes."""
    sign = Rule("1 or -1", lambda value: type(value) is int and value in (1, -1))
    return {
        "feature": feature_rule(n_features),
        "low": Rule(
            'null, a float or "-inf"',
            lambda value: value is None or is_finite(value) or value == "-inf",
        ),
        "threshold": THRESHOLD,
        "polarity": sign,
        "missing": sign,
        "error": Rule(
            "a float from 0.0 to 1.0", lambda value: type(value) is float and 0.0 <= value <= 1.0
        ),
        "vote": VOTE,
    }


def _check_intervals(columns: Columns) -> None:
    for place, (low, high) in enumerate(zip(columns.low, columns.threshold, strict=True)):
        if low is not None and not float(low) < float(high) < math.inf:
            raise ValueError(
                f"stump {place}: low must be below high, the threshold, and high finite; got "
                f"{low!r} and {high!r}."
            )


def _check_sum(votes: Sequence[float]) -> None:
    if math.fsum((*map(abs, votes), -VOTES_LIMIT)) > 0:  # a sum that is rounded once, at the end
        raise ValueError(
            f"the absolute votes must add up to {VOTES_LIMIT:.0f} at most, so that every score is "
            f"exact; their sum is {math.fsum(map(abs, votes)):.17g}."
        )


def _stump(feature: int, threshold: float, polarity: int, missing: int, error: float) -> Stump:
    """A stump of checked numbers, made as `copy` and `pickle` do, without `__post_init__`."""
    made = object.__new__(Stump)
    made.__dict__.update(
        feature=feature, threshold=threshold, polarity=polarity, missing=missing, error=error
    )
    return made


def _interval(
    feature: int, low: float, high: float, polarity: int, missing: int, error: float
) -> Interval:
    """An interval of checked numbers, as `_stump`."""
    made = object.__new__(Interval)
    made.__dict__.update(
        feature=feature, low=low, high=high, polarity=polarity, missing=missing, error=error
    )
    return made
