"""A model's stumps as rules in words, with the names, categories and units of the table."""

from __future__ import annotations

from typing import NamedTuple

from gpustump.cli.columns.model import LoadedModel
from gpustump.cli.summary.layout import aligned_lines
from gpustump.cli.summary.region_rules import region_rules, shared_rules
from gpustump.cli.summary.rule_conditions import condition_in_words
from gpustump.cli.wording import label_text
from gpustump.data.readable import counted
from gpustump.learners.kinds import AnyStump, has_one_side
from gpustump.model.encoding import Encoding
from gpustump.model.ensemble import StumpEnsemble
from gpustump.model.members import Member, RegionMember


class Limit(NamedTuple):
    """How many rules to show for each member, and the option that shows more."""

    n_rules: int
    option: str = "--rounds"


def rules(loaded: LoadedModel, limit: Limit) -> list[list[str]]:
    """For each member of the model its first stumps, one in each line.

    Where regions vote numbers of their own, a rule says what each of them votes; for stumps that
    several classes share, it takes a line for each of the classes that it separates best.
    """
    return [_member_rules(loaded, number, limit) for number in range(len(loaded.model.members))]


def _member_rules(loaded: LoadedModel, number: int, limit: Limit) -> list[str]:
    member = loaded.model.members[number]
    title = _title(loaded.model, number)
    if not len(member):
        return [*title, _without_stumps(loaded.model, member)]
    if not limit.n_rules:
        return []
    n_more = len(member) - limit.n_rules
    more = [f"and {counted(n_more, 'rule')} more: {limit.option} {len(member)}"]
    lines = _lines(loaded, number, limit.n_rules)
    return [*title, *lines, *(more if n_more > 0 else [])]


def _title(model: StumpEnsemble, number: int) -> list[str]:
    if model.n_outputs == 1 or model.is_shared:
        return []
    return [f"{label_text(model.classes[number])} against the rest"]


def _without_stumps(model: StumpEnsemble, member: Member | RegionMember) -> str:
    if isinstance(member, Member):
        return "no stump is better than chance"
    if model.pairs:
        return "no stumps: the score follows from pairs of features alone"
    return "no stumps: the score is the same for every row"


def _lines(loaded: LoadedModel, number: int, n_rules: int) -> list[str]:
    member = loaded.model.members[number]
    if isinstance(member, Member):
        return _discrete_rules(loaded, number, member.truncated(n_rules))
    if loaded.model.n_outputs > 1 and loaded.model.is_shared:
        return shared_rules(loaded, member.truncated(n_rules))
    return region_rules(loaded, member.truncated(n_rules), _labels(loaded.model, number))


def _labels(model: StumpEnsemble, number: int) -> dict[int, str]:
    """What the signs of an output's votes stand for; empty for a quantity."""
    if model.is_regression:
        return {}
    if model.is_binary:
        return {-1: label_text(model.classes[0]), 1: label_text(model.classes[1])}
    label = label_text(model.classes[number])
    return {-1: f"not {label}", 1: label}


def _discrete_rules(loaded: LoadedModel, number: int, member: Member) -> list[str]:
    model, encoding = loaded
    labels = _labels(model, number)
    rows = [("", "rule", "missing", "vote", "error")]
    for k, (stump, vote) in enumerate(zip(member.stumps, member.votes, strict=True)):
        rule, missing = _rule(stump, encoding, labels), _missing(model, stump, labels)
        rows.append((f"{k + 1}.", rule, missing, f"{vote:.3f}", f"{stump.error:.3f}"))
    return aligned_lines(rows, right=(0, 3, 4))


def _missing(model: StumpEnsemble, stump: AnyStump, labels: dict[int, str]) -> str:
    """What a stump votes where the value is missing; a dash if no training sample lacked one."""
    learnt = model.missing_learnt
    is_learnt = stump.is_constant or learnt is None or learnt[stump.feature]
    return labels[stump.missing] if is_learnt else "-"


def _rule(stump: AnyStump, encoding: Encoding, labels: dict[int, str]) -> str:
    if_true, if_false = labels[stump.polarity], labels[-stump.polarity]
    if stump.is_constant:
        return f"always {if_true}"
    when = condition_in_words(stump, encoding)
    if has_one_side(stump):
        return f"{when} -> {if_true}"
    return f"{when} -> {if_true}, else {if_false}"
