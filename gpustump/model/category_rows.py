"""Rows of models with categorical features, version 4 of the file, and back.

A row is that of version 2 (stumps with signs) or 3 (splits whose regions have votes of their own),
followed by two sets of categories: those on the left, and those on the right. A set is text, its
numbers in increasing order with a blank between two. A row has either a threshold or sets: `null`
stands for what it does not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpustump.data.parameters import MOST_CATEGORIES
from gpustump.data.readable import shown
from gpustump.learners.category_split import (
    CategorySplit,
    CategoryStump,
    is_set,
)
from gpustump.learners.kinds import AnySplit, AnyStump, OfCategories
from gpustump.model import region_rows, stump_rows
from gpustump.model.members import AnyMember, Member, RegionMember
from gpustump.model.row_rules import UNSIGNED_ZERO_VOTE, Row, Rule, columns_of, refuse_others

SET_FIELDS = ["categories", "other categories"]
"""The columns that version 4 has besides those of versions 2 and 3: the sets left and right."""

_Sets = list[tuple[tuple[int, ...], tuple[int, ...]] | None]
"""For each row the categories left and right; None where it has a threshold."""


def has_categories(members: Sequence[AnyMember]) -> bool:
    """Whether a model has a split of categories."""
    return any(isinstance(one, OfCategories) for member in members for one in member.hypotheses)


def with_sets(rows: Sequence[Row], hypotheses: Sequence[AnyStump | AnySplit]) -> list[Row]:
    """The rows of version 4, from those of versions 2 or 3."""
    return [
        [*row, *(_sets_of(one) if isinstance(one, OfCategories) else (None, None))]
        for row, one in zip(rows, hypotheses, strict=True)
    ]


def checked_member(rows: Any, fields: list[str], n_features: int) -> Member:
    """The member with discrete votes in rows with these fields; see `stump_rows`.

    Raises
    ------
    ValueError
        If a stump is wrong. The message names the first such one, counted from 0, and says why.
    """
    base, sets = _parted(rows, fields)
    columns = stump_rows.checked_columns(base, fields[: -len(SET_FIELDS)], n_features)
    stumps = list(stump_rows.stumps_of(columns))
    for place, own in enumerate(sets):
        if own is not None:
            if columns.low[place] is not None:
                raise ValueError(f"stump {place}: low must be null where there are categories.")
            made = stumps[place]
            stumps[place] = CategoryStump(
                made.feature, *own, polarity=made.polarity, missing=made.missing, error=made.error
            )
    return Member(tuple(stumps), tuple(columns.vote))


def checked_region_member(
    rows: Any, constant: Any, n_outputs: int, n_features: int, vote: Rule = UNSIGNED_ZERO_VOTE
) -> RegionMember:
    """The member in rows whose regions have votes of their own; see `region_rows`, also errors."""
    base, sets = _parted(rows, [*region_rows.fields_of(n_outputs), *SET_FIELDS])
    member = region_rows.checked_member(base, constant, n_outputs, n_features, vote)
    splits = [
        split if own is None else CategorySplit(split.feature, *own)
        for split, own in zip(member.splits, sets, strict=True)
    ]
    member = replace(member, splits=tuple(splits))
    region_rows.check_sums(member, vote)
    return member


def _sets_of(split: CategorySplit | CategoryStump) -> tuple[str, str]:
    left, right = (" ".join(map(str, own)) for own in (split.left, split.right))
    return left, right


def _parted(rows: Any, fields: list[str]) -> tuple[list[Row], _Sets]:
    """The rows of version 2 or 3, with a threshold where there are sets, and the sets."""
    columns = columns_of(rows, fields)
    left, right = (columns[name] for name in SET_FIELDS)
    for name, values, is_needed in zip(SET_FIELDS, (left, right), (True, False), strict=True):
        refuse_others(name, values, _rule(is_needed=is_needed))
    thresholds = columns["threshold"]
    sets: _Sets = []
    for place, (own, other, threshold) in enumerate(zip(left, right, thresholds, strict=True)):
        if len({own is None, other is None, threshold is not None}) > 1:
            raise ValueError(
                f"stump {place}: either threshold or both {' and '.join(SET_FIELDS)} must be null; "
                f"got {shown(threshold)}, {shown(own)} and {shown(other)}."
            )
        both = None if own is None else (_numbers(own), _numbers(other))
        if both is not None and {*both[0]} & {*both[1]}:
            raise ValueError(
                f"stump {place}: no category may be in both sets; got {shown(own)} and "
                f"{shown(other)}."
            )
        sets.append(both)
    at, n_sets = fields.index("threshold"), len(SET_FIELDS)
    base = [
        row[:-n_sets] if own is None else [*row[:at], 0.0, *row[at + 1 : -n_sets]]
        for row, own in zip(rows, sets, strict=True)
    ]
    return base, sets


def _rule(*, is_needed: bool) -> Rule:
    """What a set must be in a file; the one on the left holds a category at least."""
    return Rule(
        f"null or increasing whole numbers from 0 to {MOST_CATEGORIES - 1} with a blank between "
        f"two{', one at least' if is_needed else ''}",
        lambda value: value is None or _is_text_of_set(value, is_needed=is_needed),
    )


def _is_text_of_set(value: Any, *, is_needed: bool) -> bool:
    if type(value) is not str or not set(value) <= {*"0123456789 "} or len(value) > 1024:
        return False
    if not value:
        return not is_needed
    parts = value.split(" ")
    return all(parts) and is_set(_numbers(value)) and " ".join(map(str, _numbers(value))) == value


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))
