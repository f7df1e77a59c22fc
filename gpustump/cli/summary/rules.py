"""A model's stumps as rules in words, with the names, categories and units of the table.

Stumps of discrete votes say which class they vote for. Where regions vote numbers of their own, a
rule says what each of them votes; for stumps that several classes share, it takes a line for each
of the classes that it separates best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gpustump.cli.wording import aligned_lines, label_text, number_text
from gpustump.data.readable import counted, shortened, temporal_text
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND, Partition
from gpustump.learners.kinds import AnySplit, AnyStump, OfCategories, condition, has_one_side
from gpustump.model.additive import is_constant
from gpustump.model.encoding import Encoding, InputColumn
from gpustump.model.ensemble import StumpEnsemble
from gpustump.model.members import Member, RegionMember

CLASSES_SHOWN = 3
"""How many classes a rule of shared stumps shows; all of them if there is only one more."""

_MOST_DECIMALS, _WIDE = 15, 1e12


def rules(model: StumpEnsemble, n_rules: int) -> list[list[str]]:
    """For each member of the model its first stumps, one in each line."""
    return [_member_rules(model, number, n_rules) for number in range(len(model.members))]


def _member_rules(model: StumpEnsemble, number: int, n_rules: int) -> list[str]:
    member = model.members[number]
    is_shared, title = model.n_outputs > 1 and model.is_shared, []
    if model.n_outputs > 1 and not is_shared:
        title = [f"{label_text(model.classes[number])} against the rest"]
    if not len(member):
        alike = (
            "follows from pairs of features alone" if model.pairs else "is the same for every row"
        )
        return [*title, f"no stumps: the score {alike}"]
    if not n_rules:
        return []
    shown = member.truncated(n_rules)
    if isinstance(shown, Member):
        lines = _discrete_rules(model, shown, _labels(model, number))
    elif is_shared:
        lines = _shared_rules(model, shown)
    else:
        lines = _region_rules(model, shown, _labels(model, number))
    n_more = len(member) - n_rules
    if n_more > 0:
        lines.append(f"and {counted(n_more, 'rule')} more: --rounds {len(member)}")
    return [*title, *lines]


def _labels(model: StumpEnsemble, number: int) -> dict[int, str]:
    """What the signs of an output's votes stand for; empty for a quantity."""
    if model.is_regression:
        return {}
    if model.is_binary:
        return {-1: label_text(model.classes[0]), 1: label_text(model.classes[1])}
    label = label_text(model.classes[number])
    return {-1: f"not {label}", 1: label}


def _discrete_rules(model: StumpEnsemble, member: Member, labels: dict[int, str]) -> list[str]:
    rows = [("", "rule", "missing", "vote", "error")]
    for k, (stump, vote) in enumerate(zip(member.stumps, member.votes, strict=True)):
        words = labels[stump.polarity], labels[-stump.polarity], labels[stump.missing]
        rule, missing = _in_words(model, stump, words, is_constant=stump.is_constant)
        rows.append((f"{k + 1}.", rule, missing, f"{vote:.3f}", f"{stump.error:.3f}"))
    return aligned_lines(rows, right=(0, 3, 4))


def _region_rules(model: StumpEnsemble, member: RegionMember, labels: dict[int, str]) -> list[str]:
    """The stumps of one output, one in each line.

    Parameters
    ----------
    model : StumpEnsemble
    member : RegionMember
        With one output.
    labels : dict of int to str
        What positive (1) and negative (-1) votes are for; empty for a quantity.
    """
    rows, decimals = [("", "rule", "missing")], decimals_for(member.votes)
    for k, (split, own) in enumerate(zip(member.splits, member.votes, strict=True)):
        words = [
            f"{labels[1 if vote > 0 else -1]} {signed(abs(vote), decimals)}"
            if vote and labels
            else signed(vote, decimals)
            for vote in own[:, 0].tolist()
        ]
        rule, missing = _in_words(model, split, words, is_constant=is_constant(split, own))
        rows.append((f"{k + 1}.", rule, missing))
    return aligned_lines(rows, right=(0,))


def _shared_rules(model: StumpEnsemble, member: RegionMember) -> list[str]:
    """The stumps that all classes share: a line for each of the classes that differ most."""
    rows, decimals = [("", "rule", "class", "then", "else", "missing")], decimals_for(member.votes)
    for k, (split, votes) in enumerate(zip(member.splits, member.votes, strict=True)):
        rows += _of_classes(model, f"{k + 1}.", (split, votes), decimals)
    return aligned_lines(rows, right=(0, 3, 4, 5))


def _of_classes(
    model: StumpEnsemble, number: str, term: tuple[AnySplit, np.ndarray], decimals: int
) -> list[tuple[str, str, str, str, str, str]]:
    """The lines of a shared stump and its votes (n_regions, n_classes)."""
    split, votes = term
    always, ends = is_constant(split, votes), has_one_side(split)
    rule = "always" if always else condition_in_words(split, model.encoding)
    shown = list(range(votes.shape[1]))
    if len(shown) > CLASSES_SHOWN + 1:  # those that it tells apart
        shown = sorted(np.argsort(-np.ptp(votes, axis=0), kind="stable")[:CLASSES_SHOWN].tolist())
    rows = []
    for at in shown:
        then, other, missing = (signed(vote, decimals) for vote in votes[:, at].tolist())
        if not always:
            missing = _if_learnt(model, split, missing)
        label = label_text(model.classes[at])
        rows.append(("", "", label, then, "" if ends else other, missing))
    n_more = votes.shape[1] - len(shown)
    if n_more:
        rows.append(("", "", f"and {counted(n_more, 'class', 'classes')} with less", "", "", ""))
    return [(number, rule, *rows[0][2:]), *rows[1:]]


def _in_words(
    model: StumpEnsemble, partition: AnyStump | AnySplit, words: Sequence[str], *, is_constant: bool
) -> tuple[str, str]:
    """A rule, and what it votes where the value is missing, given the words for each region."""
    if is_constant:
        return f"always {words[FIRST]}", words[MISSING]
    rule = f"{condition_in_words(partition, model.encoding)} -> {words[FIRST]}"
    if not has_one_side(partition):
        rule += f", else {words[SECOND]}"
    return rule, _if_learnt(model, partition, words[MISSING])


def _if_learnt(model: StumpEnsemble, partition: Partition, missing: str) -> str:
    """What is voted where the value is missing; a dash if no training sample lacked one."""
    learnt = model.missing_learnt
    return missing if learnt is None or learnt[partition.feature] else "-"


def condition_in_words(partition: Partition, encoding: Encoding) -> str:
    """The condition of a partition's first region, such as "age <= 30" or "colour is not red"."""
    column, value = encoding.origin(partition.feature)
    name = shortened(column.name if encoding.named else f"column {column.name}")
    if isinstance(partition, OfCategories):
        return condition(partition, name, category=lambda number: _category(column, number))
    separates_0_from_1 = len(partition.thresholds) == 1 and 0.0 <= partition.thresholds[0] < 1.0
    if separates_0_from_1 and value is not None:
        return f"{name} is not {shortened(value)}"
    if separates_0_from_1 and column.kind == "boolean":
        return f"{name} is false"
    return condition(partition, name, number=lambda at: _threshold(at, column.kind))


def _category(column: InputColumn, number: int) -> str:
    """The name of a category; its number if it has no name."""
    return shortened(column.values[number]) if number < len(column.values) else str(number)


def _threshold(threshold: float, kind: str) -> str:
    """A threshold as a value of the column's own kind."""
    return temporal_text(threshold, kind) or number_text(threshold)


def signed(vote: float, decimals: int = 3) -> str:
    """A vote with its sign; a very large or small one of a quantity has an exponent."""
    if not vote:
        return "0"
    has_exponent = decimals > _MOST_DECIMALS or abs(vote) >= _WIDE
    return f"{vote:+.4g}" if has_exponent else f"{vote:+.{decimals}f}"


def decimals_for(votes: np.ndarray) -> int:
    """The number of decimals of votes: at least three, and three digits of the largest vote."""
    largest = float(np.abs(votes).max(initial=0.0))
    return 3 if largest == 0.0 else max(3, 2 - math.floor(math.log10(largest)))
