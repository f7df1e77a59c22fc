"""Edits of a finished model: terms that are switched off, and ranges over which they are flat.

An edit changes the terms of a model themselves, so whatever is made of the model follows: scores,
shape functions, bags, exports. Without a term, its stumps are gone. To flatten a term over a range,
each threshold inside moves to one end of it: so every value in the range gets what one value there,
`like`, gets. Votes do not change, and each bag becomes flat at its own level.

What was edited is kept beside the model, with the digest of the model as it was trained.
"""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpustump.data.readable import listed, shown
from gpustump.learners.hypothesis import FIRST, SECOND
from gpustump.learners.interval import Interval
from gpustump.learners.kinds import OfCategories
from gpustump.learners.pair_table import PairTable
from gpustump.learners.stump import Stump
from gpustump.model.additive import is_constant
from gpustump.model.bags import Bags, order_of_turns, turns
from gpustump.model.members import AnyMember, Member, RegionMember
from gpustump.model.rows import as_text

FORMAT = "gpustump edits"
"""What a file of edits says it is."""

WITHOUT, FLATTEN = "without", "flatten"


@dataclass(frozen=True)
class Edit:
    """One edit of one term.

    Attributes
    ----------
    features : tuple of int
        One feature, or the two of a pair.
    like : float or None
        The value whose level all values of the range get; None if the term is switched off.
    above, upto : float
        The range: above < x <= upto. They may be infinite; a range without a lower end holds -inf.

    Raises
    ------
    ValueError
        If `like` is not in the range, or a pair is to be flattened.
    """

    features: tuple[int, ...]
    like: float | None = None
    above: float = -math.inf
    upto: float = math.inf

    def __post_init__(self) -> None:
        if self.like is None:
            return
        if len(self.features) != 1:
            raise ValueError("a pair of features cannot be flattened; switch it off, or leave it.")
        if not (self.above < self.like <= self.upto and math.isfinite(self.like)):
            raise ValueError(
                f"an edit needs above < like <= upto, and like finite; got above {self.above!r}, "
                f"like {self.like!r} and upto {self.upto!r}."
            )

    def as_part(self, names: Sequence[str]) -> dict[str, Any]:
        """The edit in JSON's types; `names` are those of all features, for readers."""
        found: dict[str, Any] = {"term": list(map(int, self.features))}
        found["name"] = " x ".join(names[feature] for feature in self.features)
        if self.like is None:
            return found | {"edit": WITHOUT}
        ends = {"above": as_text(float(self.above)), "upto": as_text(float(self.upto))}
        return found | {"edit": FLATTEN, **ends, "like": float(self.like)}

    def in_words(self, names: Sequence[str]) -> str:
        """The edit as a person reads it."""
        name = " x ".join(names[feature] for feature in self.features)
        if self.like is None:
            return f"{name} switched off"
        return f"{name} flat for {self.above:g} < x <= {self.upto:g}, as for {self.like:g}"

    def moved(self, threshold: float) -> float:
        """Where a threshold is after the edit."""
        assert self.like is not None
        is_inside = self.above < threshold or self.lies_above(threshold)
        if not (is_inside and threshold < self.upto):
            return threshold
        return self.upto if self.like <= threshold else self.above

    def lies_above(self, threshold: float) -> bool:
        """Whether the range has no lower end, and a threshold is as low: no value is left of it."""
        return threshold == self.above == -math.inf


class Edits(NamedTuple):
    """What was edited in a model.

    Attributes
    ----------
    of : str
        The digest of the model as it was trained.
    made : tuple of Edit
        In the order in which they were made.
    """

    of: str
    made: tuple[Edit, ...]


def listed_edits(given: Any, digests: Sequence[str]) -> list[Any]:
    """The edits in a list, or in what a page saves: a file, or its content.

    `digests` are those of the model: such a file must be of one of them.

    Raises
    ------
    ValueError, TypeError
        If it is neither, or of another model.
    OSError
        If a file cannot be read.
    """
    is_file = isinstance(given, str | PathLike)
    if is_file:
        if Path(given).is_dir():
            raise ValueError(f"edits must be a file of edits; {shown(str(given))} is a folder.")
        try:
            given = json.loads(Path(given).read_text("utf-8"))
        except ValueError as error:
            raise ValueError(f"edits: {given} is not JSON text: {error}.") from error
    if is_file or (isinstance(given, Mapping) and "term" not in given):
        is_right = isinstance(given, Mapping) and given.get("format") == FORMAT
        if not is_right or not isinstance(given.get("edits"), list):
            raise ValueError(f"edits must be a file that says '{FORMAT}'; got {shown(given)}.")
        if given.get("model") not in digests:
            raise ValueError(
                f"these edits are of the model {shown(given.get('model'))}; this one is "
                f"{digests[0]}. Edit the model that they were made for."
            )
        return list(given["edits"])
    if isinstance(given, Mapping | Edit):
        return [given]
    if not isinstance(given, Iterable):
        raise TypeError(
            f"edits must be an edit, several of them, or what a page saves; got {shown(given)}."
        )
    return list(given)


def edit_of(given: Any, features: tuple[int, ...]) -> Edit:
    """An edit in JSON's types, whose term is known, as a value.

    Raises
    ------
    ValueError
        If it is not as `Edit.as_part` writes it.
    """
    kind = given.get("edit")
    allowed = {WITHOUT: set[str](), FLATTEN: {"above", "upto", "like"}}
    if kind not in allowed or not set(given) - {"term", "name", "edit"} <= allowed[kind]:
        raise ValueError(
            f'an edit must be of term and edit "{WITHOUT}", or of term, edit "{FLATTEN}", above, '
            f"upto and like; got {shown(dict(given))}."
        )
    if kind == WITHOUT:
        return Edit(features)
    ends = {"above": -math.inf, "like": None, "upto": math.inf}
    return Edit(
        features, **{name: _number(given.get(name, own), name) for name, own in ends.items()}
    )


def _number(value: Any, name: str) -> float:
    if value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or math.isnan(value):
        wanted = "a finite number" if name == "like" else "a number, and it may be inf"
        raise ValueError(f"an edit's {name} must be {wanted}; got {shown(value)}.")
    return float(value)


def edits_of(part: Any, n_features: int) -> Edits:
    """The edits in a model's document.

    Raises
    ------
    ValueError
        If one is not as `Edit.as_part` writes it, or is of no feature of the model.
    AttributeError, LookupError, TypeError
        If the part is of another type.
    """
    made = []
    for own in part["made"]:
        features = tuple(map(int, own["term"]))
        if len(features) not in (1, 2) or not all(0 <= j < n_features for j in features):
            raise ValueError(f"they must be of one or two features of the model; got {shown(own)}.")
        made.append(edit_of(own, features))
    return Edits(str(part["of"]), tuple(made))


def edited_parts(
    members: Sequence[AnyMember],
    moved: Sequence[AnyMember],
    pairs: Sequence[PairTable],
    bags: Bags | None,
    edit: Edit,
) -> dict[str, Any]:
    """The parts of a model after an edit, by the names that `StumpEnsemble` has for them.

    Raises
    ------
    ValueError
        If the model has no such term, or it has categories and shall be flattened.
    """
    _refuse_other_term(edit.features, [*members, *moved], pairs)
    if len(edit.features) == 2:
        return {"pairs": tuple(own for own in pairs if own.features != edit.features)}
    found: dict[str, Any] = {"moved": tuple(_edited(own, edit) for own in moved)}
    if edit.like is not None or bags is None:
        return found | {"members": tuple(_edited(own, edit) for own in members)}
    # The bags take turns in the terms that are left.
    own_members, own_sizes = [], []
    for member, sizes in zip(members, bags.sizes, strict=True):
        left = _others(member, edit)
        bag = turns(sizes)[left]
        counts = tuple(np.bincount(bag, minlength=bags.n_bags).tolist())
        order = np.argsort(bag, kind="stable")[order_of_turns(counts)]
        own_members.append(member.picked(left[order]))
        own_sizes.append(counts)
    return found | {"members": tuple(own_members), "bags": replace(bags, sizes=tuple(own_sizes))}


def _edited(member: AnyMember, edit: Edit) -> AnyMember:
    """A member after an edit of a single feature."""
    if edit.like is None:
        return member.picked(_others(member, edit))
    flat: list[Any] = list(member.hypotheses)
    own = [k for k, one in enumerate(flat) if one.feature in edit.features]
    if any(isinstance(flat[number], OfCategories) for number in own):
        raise ValueError(
            f"feature {edit.features[0]} has categories, which have no ranges to flatten; switch "
            "it off, or leave it."
        )
    if isinstance(member, Member):
        for number in own:
            flat[number] = _flat_stump(flat[number], edit)
        return replace(member, stumps=tuple(flat))
    votes = member.votes.copy()
    for number in own:
        threshold = edit.moved(flat[number].threshold)
        if edit.lies_above(threshold):  # no value is left of it, so all are on one side
            votes[number, FIRST] = votes[number, SECOND]
            threshold = math.inf
        flat[number] = replace(flat[number], threshold=threshold)
    return RegionMember(tuple(flat), votes, member.constant)


def _others(member: AnyMember, edit: Edit) -> np.ndarray:
    """The numbers of the terms that are not of the edit's feature, (n_terms,).

    Those that vote the same for every value are a part of the intercept, and stay.
    """
    terms = zip(member.hypotheses, member.region_votes, strict=True)
    is_left = (one.feature not in edit.features or is_constant(one, own) for one, own in terms)
    return np.flatnonzero([*is_left])


def _flat_stump(one: Stump | Interval, edit: Edit) -> Stump | Interval:
    """A stump or an interval with its thresholds moved."""
    if isinstance(one, Stump):
        return _stump(one, edit.moved(one.threshold), one.polarity, edit)
    low, high = edit.moved(one.low), edit.moved(one.high)
    if low == high:  # no value is inside any longer
        return Stump(one.feature, math.inf, -one.polarity, one.missing, one.error)
    if edit.lies_above(low):
        return _stump(one, high, one.polarity, edit)
    if high == math.inf:
        return _stump(one, low, -one.polarity, edit)
    return replace(one, low=low, high=high)


def _stump(one: Any, threshold: float, polarity: int, edit: Edit) -> Stump:
    """A stump of the same feature; one with all values on the right has them on the left."""
    if edit.lies_above(threshold):
        threshold, polarity = math.inf, -polarity
    return Stump(one.feature, threshold, polarity, one.missing, one.error)


def _refuse_other_term(
    features: tuple[int, ...], members: Sequence[AnyMember], pairs: Sequence[PairTable]
) -> None:
    """Refuse a pair that the model does not have, or a single feature that it does not use."""
    terms: list[tuple[int, ...]] = [pair.features for pair in pairs]
    if len(features) == 1:
        used = frozenset[int]().union(*(own.used_features for own in members))
        terms = [(feature,) for feature in sorted(used)]
    if features not in terms:
        kind = "pair" if len(features) == 2 else "term"
        known = listed(own if kind == "pair" else own[0] for own in terms)
        raise ValueError(
            f"the model has no {kind} of {' and '.join(map(str, features))}; "
            + (f"its {kind}s are of the features {known}." if terms else "it has none.")
        )
