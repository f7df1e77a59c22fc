"""A member's hypotheses and votes as the rows of a file, and back, with every value checked.

A row begins with the feature and the threshold. In a stump's row follow its signs, its error and
its vote; in a split's the votes of its regions, each for all outputs. Models with intervals have a
column `low` besides: an interval's `threshold` is its `high`, and a stump has no `low`. Models with
categorical features have two more columns, the sets of categories left and right. A set is text,
its numbers in increasing order with a blank between two. A row has either a threshold or sets:
`null` stands for what it does not have. An infinite threshold is text.

A file may hold a million rows, so they are checked column by column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from gpustump.data.parameters import MOST_CATEGORIES
from gpustump.data.readable import shown
from gpustump.learners.category_split import CategorySplit, CategoryStump, is_set
from gpustump.learners.hypothesis import FIRST, N_REGIONS, SECOND
from gpustump.learners.interval import Interval
from gpustump.learners.kinds import AnySplit, AnyStump, OfCategories
from gpustump.learners.split import Split
from gpustump.learners.step_table import MOST_UNITS, VOTE_UNIT, VOTES_LIMIT, unit_of
from gpustump.learners.stump import Stump
from gpustump.model.members import AnyMember, Member, RegionMember

Row = list[int | float | str | None]

_REGIONS = ["left", "right", "missing"]
_SETS = ["categories", "other categories"]


class ValueRule(NamedTuple):
    """What the values of a column must be, in words and as a test."""

    wanted: str
    is_right: Callable[[Any], bool]


def is_finite(value: Any) -> bool:
    """Whether it is a float, neither infinite nor NaN."""
    return type(value) is float and math.isfinite(value)


def as_text(value: float) -> float | str:
    """A number as a file holds it: an infinite one is text."""
    return value if math.isfinite(value) else str(value)


def _is_vote(value: Any) -> bool:
    """Whether it is a float that sums of votes hold exactly."""
    return type(value) is float and abs(value) <= VOTES_LIMIT and (value / VOTE_UNIT).is_integer()


def _is_unsigned(value: float) -> bool:
    """Whether it is not -0.0, which `RegionMember` does not hold: it would change the digest."""
    return value != 0.0 or math.copysign(1.0, value) == 1.0


_STUMP_VOTE = ValueRule(
    "a float that is a whole multiple of 2**-36, as round(vote * 2**36) / 2**36 is, and at "
    f"most {VOTES_LIMIT:.0f}",
    _is_vote,
)

VOTE = ValueRule(f"{_STUMP_VOTE.wanted}; zero as 0.0", lambda v: _is_vote(v) and _is_unsigned(v))
"""A vote of a region, or a constant."""

QUANTITY = ValueRule("a finite float; zero as 0.0", lambda v: is_finite(v) and _is_unsigned(v))
"""The same for a quantity, in its own unit. What sums of votes hold exactly is checked for all of
them together."""

_SIGN = ValueRule("1 or -1", lambda value: type(value) is int and value in (1, -1))
_ERROR = ValueRule("a float from 0.0 to 1.0", lambda v: type(v) is float and 0.0 <= v <= 1.0)
_LOW = ValueRule('null, a float or "-inf"', lambda v: v is None or is_finite(v) or v == "-inf")


def fields_of(n_outputs: int | None, *, low: bool = False, sets: bool = False) -> list[str]:
    """The columns of a row.

    Parameters
    ----------
    n_outputs : int or None
        For how many outputs the regions vote; None for stumps with signs.
    low, sets : bool
        Whether there may be intervals, and sets of categories.
    """
    if n_outputs is None:
        found = ["threshold", "polarity", "missing", "error", "vote"]
    elif n_outputs == 1:
        found = ["threshold", *_REGIONS]
    else:
        votes = [f"{region} {output}" for region in _REGIONS for output in range(n_outputs)]
        found = ["threshold", *votes]
    return ["feature", *["low"] * low, *found, *_SETS * sets]


def rows_of(member: AnyMember, fields: Sequence[str]) -> list[Row]:
    """The rows of a member, with the columns that `fields_of` lists."""
    if isinstance(member, Member):
        pairs = zip(member.stumps, member.votes, strict=True)
        rest: list[Row] = [[s.polarity, s.missing, s.error, vote] for s, vote in pairs]
    else:
        width = N_REGIONS * member.n_outputs
        rest = member.region_votes.reshape(len(member), width).tolist()
    low, sets = "low" in fields, _SETS[0] in fields
    return [
        [one.feature, *_ends(one, low), *own, *(_texts(one) if sets else ())]
        for one, own in zip(member.hypotheses, rest, strict=True)
    ]


def _ends(one: Any, low: bool) -> Row:
    """The columns `low`, if it is wanted, and `threshold`."""
    ends: Row = [None, None]
    if isinstance(one, Interval):
        ends = [as_text(one.low), one.high]
    elif not isinstance(one, OfCategories):
        ends[1] = as_text(one.threshold)
    return ends if low else ends[1:]


def _texts(one: Any) -> Row:
    """The columns of the sets."""
    if not isinstance(one, OfCategories):
        return [None, None]
    return [" ".join(map(str, own)) for own in (one.left, one.right)]


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
        ValueRule(f"a list of {width} values", lambda row: type(row) is list and len(row) == width),
    )
    return dict(zip(fields, zip(*rows, strict=True) if rows else [()] * width, strict=True))


def refuse_others(name: str, values: Sequence[Any], rule: ValueRule) -> None:
    """Refuse the first value of a column that a rule does not allow."""
    if all(map(rule.is_right, values)):
        return
    place = next(at for at, value in enumerate(values) if not rule.is_right(value))
    raise ValueError(f"stump {place}: {name} must be {rule.wanted}; got {shown(values[place])}.")


def checked_member(rows: Any, fields: Sequence[str], n_features: int) -> Member:
    """The member of stumps with signs in a file's rows, after checking every value.

    Raises
    ------
    ValueError
        If a stump is wrong. The message names the first such one, counted from 0, and says why.
    """
    columns = columns_of(rows, fields)
    rules = {"polarity": _SIGN, "missing": _SIGN, "error": _ERROR, "vote": _STUMP_VOTE}
    sets = _checked_columns(columns, rules, n_features)
    lows = columns.get("low", (None,) * len(rows))
    for place, (low, high, own) in enumerate(zip(lows, columns["threshold"], sets, strict=True)):
        if low is not None and own is not None:
            raise ValueError(f"stump {place}: low must be null where there are categories.")
        if low is not None and not float(low) < float(high) < math.inf:
            raise ValueError(
                f"stump {place}: low must be below high, the threshold, and high finite; got "
                f"{low!r} and {high!r}."
            )
    votes = columns["vote"]
    if math.fsum((*map(abs, votes), -VOTES_LIMIT)) > 0:  # a sum that is rounded once, at the end
        raise ValueError(
            f"the absolute votes must add up to {VOTES_LIMIT:.0f} at most, so that every score is "
            f"exact; their sum is {math.fsum(map(abs, votes)):.17g}."
        )
    of_stumps = (columns[name] for name in ("feature", "threshold", *list(rules)[:3]))
    return Member(tuple(map(_stump, sets, lows, *of_stumps)), tuple(votes))


def _stump(sets: Any, low: Any, feature: int, threshold: Any, *signs: Any) -> AnyStump:
    """The hypothesis of a checked row."""
    if sets is not None:
        return CategoryStump(feature, *sets, *signs)
    if low is not None:
        return Interval(feature, float(low), threshold, *signs)
    return Stump(feature, float(threshold), *signs)


def checked_region_member(
    rows: Any, constant: Any, fields: Sequence[str], n_features: int, vote: ValueRule = VOTE
) -> RegionMember:
    """The member of splits in a file's rows, after checking every value.

    Parameters
    ----------
    rows, constant
        As the file holds them.
    fields : sequence of str
        The columns of a row.
    n_features : int
    vote : ValueRule
        What votes and constants must be: `VOTE`, or `QUANTITY`.

    Raises
    ------
    ValueError
        If a stump or the constant is wrong. The message names the first such stump, counted from 0,
        and says what is wrong.
    """
    names = [name for name in fields if name not in ("feature", "threshold", *_SETS)]
    n_outputs = len(names) // N_REGIONS
    _check_constant(constant, n_outputs, vote)
    columns = columns_of(rows, fields)
    sets = _checked_columns(columns, dict.fromkeys(names, vote), n_features)
    votes = np.asarray([columns[name] for name in names], dtype=np.float64)
    splits = map(_split, sets, columns["feature"], columns["threshold"])
    member = RegionMember(
        tuple(splits), votes.T.reshape(len(rows), N_REGIONS, n_outputs), np.asarray(constant)
    )
    _check_sums(member, vote)
    return member


def _split(sets: Any, feature: int, threshold: Any) -> AnySplit:
    """The hypothesis of a checked row."""
    return Split(feature, float(threshold)) if sets is None else CategorySplit(feature, *sets)


def _checked_columns(
    columns: Mapping[str, Sequence[Any]], rules: Mapping[str, ValueRule], n_features: int
) -> list[tuple[tuple[int, ...], tuple[int, ...]] | None]:
    """Check the values of all columns; return the sets of each row, None where it has none."""
    thresholds = columns["threshold"]
    lefts, rights = (columns.get(name, (None,) * len(thresholds)) for name in _SETS)
    refuse_others(_SETS[0], lefts, _set_rule(is_needed=True))
    refuse_others(_SETS[1], rights, _set_rule(is_needed=False))
    sets: list[tuple[tuple[int, ...], tuple[int, ...]] | None] = []
    for place, (left, right, threshold) in enumerate(zip(lefts, rights, thresholds, strict=True)):
        if _SETS[0] in columns and len({left is None, right is None, threshold is not None}) > 1:
            raise ValueError(
                f"stump {place}: either threshold or both {' and '.join(_SETS)} must be null; got "
                f"{shown(threshold)}, {shown(left)} and {shown(right)}."
            )
        both = None if left is None else (_numbers(left), _numbers(right))
        if both is not None and {*both[0]} & {*both[1]}:
            raise ValueError(
                f"stump {place}: no category may be in both sets; got {shown(left)} and "
                f"{shown(right)}."
            )
        sets.append(both)
    feature = ValueRule(
        f"a whole number from 0 to {n_features - 1}, as there are {n_features} features",
        lambda value: type(value) is int and 0 <= value < n_features,
    )
    has_sets = _SETS[0] in columns
    threshold_rule = ValueRule(
        'a float, "inf" or "-inf"',
        lambda v: is_finite(v) or v in ("inf", "-inf") or (v is None and has_sets),
    )
    known = {"feature": feature, "low": _LOW, "threshold": threshold_rule, **rules}
    for name, values in columns.items():
        if name in known:
            refuse_others(name, values, known[name])
    return sets


def _set_rule(*, is_needed: bool) -> ValueRule:
    """What a set must be in a file; the one on the left holds a category at least."""
    return ValueRule(
        f"null or increasing whole numbers from 0 to {MOST_CATEGORIES - 1} with a blank between "
        f"two{', one at least' if is_needed else ''}",
        lambda value: value is None or _is_text_of_set(value, is_needed=is_needed),
    )


def _is_text_of_set(value: Any, *, is_needed: bool) -> bool:
    longest = 4 * MOST_CATEGORIES
    if type(value) is not str or not set(value) <= {*"0123456789 "} or len(value) > longest:
        return False
    if not value:
        return not is_needed
    numbers = _numbers(value)
    return is_set(numbers) and " ".join(map(str, numbers)) == value


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


def _check_constant(constant: Any, n_outputs: int, vote: ValueRule) -> None:
    if type(constant) is not list or len(constant) != n_outputs:
        found = f"{len(constant)} values" if type(constant) is list else shown(constant)
        raise ValueError(f"its constant must be a list of {n_outputs} numbers; got {found}.")
    for place, value in enumerate(constant):
        if not vote.is_right(value):
            raise ValueError(f"its constant {place} must be {vote.wanted}; got {shown(value)}.")


def _check_sums(member: RegionMember, vote: ValueRule) -> None:
    """Refuse votes whose sums could be rounded.

    A score adds one region's vote of each split. A step table starts from the votes on the right
    and adds the differences between left and right, threshold by threshold. With categories it also
    adds differences to the votes for missing values. Take the largest of these numbers for each
    split: if they and the constant add up to the limit at most, float64 holds every such sum
    exactly, in any order. The limit is 2**53 units; the unit of a quantity is the largest power of
    two of which all votes and the constant are whole multiples.
    """
    of_member = np.concatenate([member.votes.ravel(), member.constant])
    unit = VOTE_UNIT if vote is VOTE else unit_of(of_member)
    votes, constant = _units(member.votes, unit), _units(member.constant, unit)
    largest = np.maximum(np.abs(votes).max(axis=1), np.abs(votes[:, FIRST] - votes[:, SECOND]))
    of_categories = [isinstance(split, OfCategories) for split in member.splits]
    largest[of_categories] = np.maximum(largest, np.ptp(votes, axis=1))[of_categories]
    limit = unit * MOST_UNITS
    for output, (start, own) in enumerate(zip(constant.tolist(), largest.T.tolist(), strict=True)):
        total = (abs(start) + sum(own)) * Fraction(unit)
        if total > limit:
            raise ValueError(
                f"the votes of output {output} must add up to {limit:.17g} at most, so that "
                "every score is exact: the absolute constant, and for each stump the largest "
                "absolute vote or the difference between two regions; their sum is "
                f"{float(total):.17g}."
            )


def _units(votes: np.ndarray, unit: float) -> np.ndarray:
    """Checked votes as whole numbers of units, int64: float64 may round their differences.

    More than 2**53 units of a quantity count as one more than that.
    """
    return np.clip(votes / unit, -MOST_UNITS - 2, MOST_UNITS + 2).astype(np.int64)
