"""A region member's splits and votes as the rows of a file, and back, with every value checked."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from gpustump.data.readable import shown
from gpustump.learners.hypothesis import FIRST, N_REGIONS, SECOND
from gpustump.learners.kinds import OfCategories
from gpustump.learners.split import Split
from gpustump.learners.step_table import MOST_UNITS, VOTE_UNIT, unit_of
from gpustump.model.members import RegionMember
from gpustump.model.row_rules import (
    THRESHOLD,
    UNSIGNED_ZERO_VOTE,
    Row,
    Rule,
    as_text,
    columns_of,
    feature_rule,
    refuse_others,
)

_SPLIT_FIELDS = ["feature", "threshold"]
_REGIONS = ["left", "right", "missing"]


def fields_of(n_outputs: int) -> list[str]:
    """The columns of a row: the split, and the votes of its regions, each for all outputs."""
    if n_outputs == 1:
        return [*_SPLIT_FIELDS, *_REGIONS]
    votes = [f"{region} {output}" for region in _REGIONS for output in range(n_outputs)]
    return [*_SPLIT_FIELDS, *votes]


def rows_of(member: RegionMember) -> list[Row]:
    """The rows of a file; an infinite threshold is text.

    Splits of categories have no threshold; see `category_rows`.
    """
    votes = member.votes.reshape(len(member), N_REGIONS * member.n_outputs).tolist()
    return [
        [split.feature, as_text(split.threshold) if isinstance(split, Split) else None, *own]
        for split, own in zip(member.splits, votes, strict=True)
    ]


def checked_member(
    rows: Any, constant: Any, n_outputs: int, n_features: int, vote: Rule = UNSIGNED_ZERO_VOTE
) -> RegionMember:
    """The member in a file's rows, after checking every value.

    Parameters
    ----------
    rows, constant
        As the file holds them.
    n_outputs, n_features : int
    vote : Rule
        What votes and constants must be: `UNSIGNED_ZERO_VOTE`, or `UNSIGNED_ZERO_NUMBER` for a
        quantity.

    Raises
    ------
    ValueError
        If a stump or the constant is wrong. The message names the first such stump, counted from 0,
        and says what is wrong.
    """
    _check_constant(constant, n_outputs, vote)
    columns = columns_of(rows, fields_of(n_outputs))
    rules = {"feature": feature_rule(n_features), "threshold": THRESHOLD}
    for name, values in columns.items():
        refuse_others(name, values, rules.get(name, vote))
    features, thresholds, *votes = columns.values()
    table = np.asarray(votes, dtype=np.float64).T.reshape(len(rows), N_REGIONS, n_outputs)
    member = RegionMember(
        tuple(map(Split, features, map(float, thresholds))), table, np.asarray(constant)
    )
    check_sums(member, vote)
    return member


def _check_constant(constant: Any, n_outputs: int, vote: Rule) -> None:
    if type(constant) is not list or len(constant) != n_outputs:
        found = f"{len(constant)} values" if type(constant) is list else shown(constant)
        raise ValueError(f"its constant must be a list of {n_outputs} numbers; got {found}.")
    for place, value in enumerate(constant):
        if not vote.is_right(value):
            raise ValueError(f"its constant {place} must be {vote.wanted}; got {shown(value)}.")


def check_sums(member: RegionMember, vote: Rule = UNSIGNED_ZERO_VOTE) -> None:
    """Refuse votes whose sums could be rounded.

    A score adds one region's vote of each split. A step table starts from the votes on the right
    and adds the differences between left and right, threshold by threshold. With categories it also
    adds differences to the votes for missing values. Take the largest of these numbers for each
    split: if they and the constant add up to the limit at most, float64 holds every such sum
    exactly, in any order. The limit is 2**53 units; the unit of a quantity is the largest power of
    two of which all votes and the constant are whole multiples.
    """
    of_member = np.concatenate([member.votes.ravel(), member.constant])
    unit = VOTE_UNIT if vote is UNSIGNED_ZERO_VOTE else unit_of(of_member)
    votes, constant = _units(member.votes, unit), _units(member.constant, unit)
    largest = np.maximum(np.abs(votes).max(axis=1), np.abs(votes[:, FIRST] - votes[:, SECOND]))
    of_categories = [isinstance(split, OfCategories) for split in member.splits]
    largest[of_categories] = np.maximum(largest, np.ptp(votes, axis=1))[of_categories]
    for output, (start, own) in enumerate(zip(constant.tolist(), largest.T.tolist(), strict=True)):
        total = (abs(start) + sum(own)) * Fraction(unit)
        limit = unit * MOST_UNITS
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
