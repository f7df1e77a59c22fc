"""A model's stumps as rules in words, with the names, categories and units of the table."""

from __future__ import annotations

import datetime
import math
from typing import NamedTuple

from gpustump.cli.input.model_input import LoadedModel
from gpustump.cli.output.text_layout import aligned_lines
from gpustump.cli.wording import label_text, number_text
from gpustump.data.readable import counted, shortened
from gpustump.learners.conditions import condition
from gpustump.learners.interval import Interval
from gpustump.learners.stump import Stump
from gpustump.model.encoding import Encoding
from gpustump.model.ensemble import StumpEnsemble


class Limit(NamedTuple):
    """How many rules to show for each member, and the option that shows more."""

    n_rules: int
    option: str = "--rounds"


def rules(loaded: LoadedModel, limit: Limit) -> list[list[str]]:
    """For each member of the model its first stumps, one in each line."""
    return [_member_rules(loaded, number, limit) for number in range(len(loaded.model.members))]


def _member_rules(loaded: LoadedModel, number: int, limit: Limit) -> list[str]:
    model, encoding = loaded
    member = model.discrete_members[number]
    if model.is_binary:
        labels = {-1: label_text(model.classes[0]), 1: label_text(model.classes[1])}
        title = []
    else:
        label = label_text(model.classes[number])
        labels = {-1: f"not {label}", 1: label}
        title = [f"{label} against the rest"]
    if not len(member):
        return [*title, "no stump is better than chance"]
    if not limit.n_rules:
        return []
    rows = [("", "rule", "missing", "vote", "error")]
    for k, (stump, vote) in enumerate(
        zip(member.stumps[: limit.n_rules], member.votes, strict=False)
    ):
        rule, missing = _rule(stump, encoding, labels), _missing(model, stump, labels)
        rows.append((f"{k + 1}.", rule, missing, f"{vote:.3f}", f"{stump.error:.3f}"))
    n_more = len(member) - limit.n_rules
    more = [f"and {counted(n_more, 'rule')} more: {limit.option} {len(member)}"]
    return [*title, *aligned_lines(rows, right=(0, 3, 4)), *(more if n_more > 0 else [])]


def _missing(model: StumpEnsemble, stump: Stump | Interval, labels: dict[int, str]) -> str:
    """What a stump votes where the value is missing; a dash if no training sample lacked one."""
    learnt = model.missing_learnt
    is_learnt = stump.is_constant or learnt is None or learnt[stump.feature]
    return labels[stump.missing] if is_learnt else "-"


def _rule(stump: Stump | Interval, encoding: Encoding, labels: dict[int, str]) -> str:
    column, value = encoding.origin(stump.feature)
    name = shortened(column.name if encoding.named else f"column {column.name}")
    if_true, if_false = labels[stump.polarity], labels[-stump.polarity]
    if stump.is_constant:
        return f"always {if_true}"
    separates_0_from_1 = len(stump.thresholds) == 1 and 0.0 <= stump.thresholds[0] < 1.0
    if separates_0_from_1 and value is not None:
        when = f"{name} is not {label_text(value)}"
    elif separates_0_from_1 and column.kind == "boolean":
        when = f"{name} is false"
    else:
        when = condition(stump, name, number=lambda at: _threshold(at, column.kind))
    if stump.thresholds[-1] == math.inf:
        return f"{when} -> {if_true}"
    return f"{when} -> {if_true}, else {if_false}"


def _threshold(threshold: float, kind: str) -> str:
    """A threshold as a value of the column's own kind."""
    try:
        start = datetime.datetime(1970, 1, 1)
        if kind == "date":  # the last day that is not above the threshold
            return (start + datetime.timedelta(days=math.floor(threshold))).date().isoformat()
        if kind == "datetime":
            return (start + datetime.timedelta(seconds=threshold)).isoformat(" ", "seconds")
        if kind == "time":
            return (start + datetime.timedelta(seconds=threshold)).time().isoformat("seconds")
        if kind == "duration":
            return str(datetime.timedelta(seconds=threshold))
    except (OverflowError, ValueError):  # a number beyond all dates
        pass
    return number_text(threshold)
