"""Rules of stumps whose regions vote numbers of their own, for one output or for all classes.

The regions are the values for which a rule's condition holds, the other values, and missing ones.
"""

from __future__ import annotations

import math

import numpy as np

from gpustump.cli.columns.model import LoadedModel
from gpustump.cli.summary.layout import aligned_lines
from gpustump.cli.summary.rule_conditions import condition_in_words
from gpustump.cli.wording import label_text
from gpustump.data.readable import counted
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND
from gpustump.learners.kinds import AnySplit, has_one_side
from gpustump.model.additive import is_constant
from gpustump.model.ensemble import StumpEnsemble
from gpustump.model.members import RegionMember

CLASSES_SHOWN = 3
"""How many classes a rule of shared stumps shows; all of them if there is only one more."""

_MOST_DECIMALS, _WIDE = 15, 1e12

NOT_LEARNT = "-"
"""Shown instead of a vote for missing values if no training sample lacked the value."""


def region_rules(loaded: LoadedModel, member: RegionMember, labels: dict[int, str]) -> list[str]:
    """The stumps of one output, one in each line.

    Parameters
    ----------
    loaded : LoadedModel
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
        if is_constant(split, own):
            rows.append((f"{k + 1}.", f"always {words[FIRST]}", words[MISSING]))
            continue
        rule = f"{condition_in_words(split, loaded.encoding)} -> {words[FIRST]}"
        if not has_one_side(split):
            rule += f", else {words[SECOND]}"
        missing = words[MISSING] if _is_learnt(loaded.model, split) else NOT_LEARNT
        rows.append((f"{k + 1}.", rule, missing))
    return aligned_lines(rows, right=(0,))


def shared_rules(loaded: LoadedModel, member: RegionMember) -> list[str]:
    """The stumps that all classes share: a line for each of the classes that differ most."""
    rows, decimals = [("", "rule", "class", "then", "else", "missing")], decimals_for(member.votes)
    for k, (split, votes) in enumerate(zip(member.splits, member.votes, strict=True)):
        rows += _of_classes(loaded, f"{k + 1}.", (split, votes), decimals)
    return aligned_lines(rows, right=(0, 3, 4, 5))


def signed(vote: float, decimals: int = 3) -> str:
    """A vote with its sign; a very large or small one of a quantity has an exponent."""
    if not vote:
        return "0"
    has_exponent = decimals > _MOST_DECIMALS or abs(vote) >= _WIDE
    return f"{vote:+.4g}" if has_exponent else f"{vote:+.{decimals}f}"


def _of_classes(
    loaded: LoadedModel, number: str, term: tuple[AnySplit, np.ndarray], decimals: int
) -> list[tuple[str, str, str, str, str, str]]:
    """The lines of a shared stump and its votes (n_regions, n_classes)."""
    split, votes = term
    model, encoding = loaded
    always, ends = is_constant(split, votes), has_one_side(split)
    rule = "always" if always else condition_in_words(split, encoding)
    shown = _telling_classes(split, votes)
    rows = []
    for at in shown:
        then, other, missing = (signed(vote, decimals) for vote in votes[:, at].tolist())
        if not always and not _is_learnt(model, split):
            missing = NOT_LEARNT
        label = label_text(model.classes[at])
        rows.append(("", "", label, then, "" if ends else other, missing))
    n_more = votes.shape[1] - len(shown)
    if n_more:
        rows.append(("", "", f"and {counted(n_more, 'class', 'classes')} with less", "", "", ""))
    return [(number, rule, *rows[0][2:]), *rows[1:]]


def _telling_classes(split: AnySplit, votes: np.ndarray) -> list[int]:
    """The numbers of the classes between whose votes the differences are largest, in order."""
    n_classes = votes.shape[1]
    if n_classes <= CLASSES_SHOWN + 1:
        return list(range(n_classes))
    reached = votes[[FIRST, MISSING]] if has_one_side(split) else votes
    spread = reached.max(axis=0) - reached.min(axis=0)
    spread = spread if spread.any() else np.abs(votes[FIRST])
    return sorted(np.argsort(-spread, kind="stable")[:CLASSES_SHOWN].tolist())


def _is_learnt(model: StumpEnsemble, split: AnySplit) -> bool:
    learnt = model.missing_learnt
    return learnt is None or learnt[split.feature]


def decimals_for(votes: np.ndarray) -> int:
    """The number of decimals of votes: at least three, and three digits of the largest vote."""
    largest = float(np.abs(votes).max(initial=0.0))
    return 3 if largest == 0.0 else max(3, 2 - math.floor(math.log10(largest)))
