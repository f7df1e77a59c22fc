"""A member's hypotheses and votes as the rows of a file, and back.

A row begins with the feature and the threshold. In a stump's row follow its signs, its error and
its vote; in a split's the votes of its regions, each for all outputs. Models with intervals have a
column `low` besides: an interval's `threshold` is its `high`, and a stump has no `low`. Models with
categorical features have two more columns, the sets of categories left and right. A set is text,
its numbers in increasing order with a blank between two. A row has either a threshold or sets:
`null` stands for what it does not have. An infinite threshold is text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from gpustump.data.readable import shown
from gpustump.learners.category_split import CategorySplit, CategoryStump
from gpustump.learners.hypothesis import FIRST, N_REGIONS, SECOND
from gpustump.learners.interval import Interval
from gpustump.learners.kinds import OfCategories
from gpustump.learners.split import Split
from gpustump.learners.step_table import MOST_UNITS, VOTE_UNIT, VOTES_LIMIT, unit_of
from gpustump.learners.stump import Stump
from gpustump.model.members import AnyMember, Member, RegionMember

Row = list[int | float | str | None]

WRONG = (AttributeError, LookupError, OverflowError, TypeError, ValueError)
"""What is raised where something is made of a value of another kind."""

_REGIONS = ["left", "right", "missing"]
_SETS = ["categories", "other categories"]


def as_text(value: float) -> float | str:
    """A number as a file holds it: an infinite one is text."""
    return str(value) if math.isinf(value) else value


def reason_of(error: Exception) -> str:
    """What an error of `WRONG` says."""
    return f"it lacks {error}" if isinstance(error, KeyError) else str(error)


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
    hypotheses: Sequence[Any] = member.hypotheses
    found = []
    for one, votes in zip(hypotheses, rest, strict=True):
        row: Row = [one.feature]
        is_interval, is_of_sets = isinstance(one, Interval), isinstance(one, OfCategories)
        if "low" in fields:
            row.append(as_text(one.low) if is_interval else None)
        row.append(None if is_of_sets else one.high if is_interval else as_text(one.threshold))
        row += votes
        if _SETS[0] in fields:
            sets = (one.left, one.right) if is_of_sets else ()
            row += [" ".join(map(str, own)) for own in sets] or [None, None]
        found.append(row)
    return found


def member_of_rows(rows: Any, constant: Any, fields: Any) -> AnyMember:
    """The member in a file's rows.

    It is made as constructors make it, which take 1.0 or "1" for 1. So a file is as it was written
    only if the rows of the member are those of the file.

    Parameters
    ----------
    rows, constant, fields
        As the file holds them; the constant is None for stumps with signs.

    Raises
    ------
    ValueError
        If a row is no stump or split. The message names the first such row, counted from 0.
    AttributeError, LookupError, OverflowError, TypeError
        If the parts are of other types than those of a member.
    """
    has_signs = constant is None
    others = ("feature", "threshold", *_SETS)
    names = ["vote"] if has_signs else [name for name in fields if name not in others]
    hypotheses: list[Any] = []
    votes = []
    for place, row in enumerate(rows):
        try:
            values = dict(zip(fields, row, strict=True))
            hypotheses.append(_hypothesis(values, has_signs=has_signs))
            votes.append([float(values[name]) for name in names])
        except WRONG as error:
            raise ValueError(
                f"row {place} must be a list of {len(fields)} values, as the fields say; got "
                f"{shown(row)}: {reason_of(error)}"
            ) from error
    if has_signs:
        return Member(tuple(hypotheses), tuple(vote for (vote,) in votes))
    shape = (len(votes), N_REGIONS, len(names) // N_REGIONS)
    start = [float(value) for value in constant]
    return RegionMember(tuple(hypotheses), np.reshape(votes, shape), np.asarray(start))


def _hypothesis(values: Mapping[str, Any], *, has_signs: bool) -> Any:
    """The hypothesis of a row, by the names of its columns."""
    feature, left, low = values["feature"], values.get(_SETS[0]), values.get("low")
    signs = (values["polarity"], values["missing"], values["error"]) if has_signs else ()
    if left is not None:
        left, right = (tuple(map(int, text.split())) for text in (left, values[_SETS[1]]))
        if has_signs:
            return CategoryStump(feature, left, right, *signs)
        return CategorySplit(feature, left, right)
    threshold = float(values["threshold"])
    if low is not None:
        return Interval(feature, float(low), threshold, *signs)
    return (Stump if has_signs else Split)(feature, threshold, *signs)


def check_votes(name: str, votes: Any) -> None:
    """Refuse votes that sums of votes do not hold exactly; those of a quantity have another unit.

    Raises
    ------
    ValueError
        The message names the first such vote by its place.
    """
    found = np.asarray(votes, dtype=np.float64)
    with np.errstate(invalid="ignore"):  # an infinite one is too large
        wrong = (np.abs(found) > VOTES_LIMIT) | (np.fmod(found, VOTE_UNIT) != 0.0)
    if wrong.any():
        place = np.argwhere(wrong)[0].tolist()
        raise ValueError(
            f"{name}{place} must be a whole multiple of 2**-36, as round(vote * 2**36) / 2**36 is, "
            f"and at most {VOTES_LIMIT:.0f}; got {found[tuple(place)].item()!r}."
        )


def check_member(member: AnyMember, *, is_quantity: bool = False) -> None:
    """Refuse errors that are no shares, and votes whose sums could be rounded.

    A score adds one region's vote of each split. A step table starts from the votes on the right
    and adds the differences between left and right, threshold by threshold. With categories it also
    adds differences to the votes for missing values. Take the largest of these numbers for each
    split: if they and the constant add up to the limit at most, float64 holds every such sum
    exactly, in any order. The limit is 2**53 units. The unit of a quantity, where `is_quantity`, is
    the largest power of two of which all votes and the constant are whole multiples.

    Raises
    ------
    ValueError
        If something is wrong; the message names it.
    """
    if isinstance(member, Member):
        for place, stump in enumerate(member.stumps):
            if not 0.0 <= stump.error <= 1.0:
                raise ValueError(
                    f"row {place}: error must be from 0.0 to 1.0; got {stump.error!r}."
                )
    if not is_quantity:
        check_votes("votes", member.votes)
        check_votes("constant", member.constant)
    votes, constant = member.region_votes, member.constant
    unit = unit_of(np.append(votes, constant)) if is_quantity else VOTE_UNIT
    units, start = _units(votes, unit), np.abs(_units(constant, unit))
    largest = np.abs(units).max(axis=1)
    if isinstance(member, RegionMember):
        largest = np.maximum(largest, np.abs(units[:, FIRST] - units[:, SECOND]))
        of_categories = [isinstance(split, OfCategories) for split in member.splits]
        largest[of_categories] = np.maximum(largest, np.ptp(units, axis=1))[of_categories]
    limit = unit * MOST_UNITS
    for output, own in enumerate(np.vstack([start, largest]).T.tolist()):
        total = sum(own) * Fraction(unit)
        if total > limit:
            raise ValueError(
                f"the votes of output {output} must add up to {limit:.17g} at most, with the "
                f"constant, so that every score is exact; their sum is {float(total):.17g}."
            )


def _units(votes: np.ndarray, unit: float) -> np.ndarray:
    """Checked votes as whole numbers of units, int64: float64 may round their differences.

    More than 2**53 units of a quantity count as one more than that.
    """
    with np.errstate(over="ignore"):
        return np.clip(votes / unit, -MOST_UNITS - 2, MOST_UNITS + 2).astype(np.int64)
