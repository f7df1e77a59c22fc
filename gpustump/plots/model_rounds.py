"""The panel of `overview` that shows a model's rounds.

A model of discrete votes stores each stump's error, from which the bound on the training error
follows. Where regions have votes of their own, a model stores the votes only; the records of a
classifier's rounds have the training error and, with AdaBoost's votes, the bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump.boosting.votes.votes import AnyRound
from gpustump.model.ensemble import StumpEnsemble
from gpustump.model.members import Member, RegionMember
from gpustump.plots import inputs, spread, style
from gpustump.plots.panels import DrawnScore
from gpustump.theory import training_bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Records = Sequence[Sequence[AnyRound]]
"""A classifier's `rounds_`."""

_FIRST = {"color": style.VERMILION, "linewidth": 1.0, "marker": "o"}
_SECOND = {"color": style.BLUE, "linewidth": 1.8, "marker": "s", "linestyle": style.DASHES[2]}
_SIZES = {"color": style.BLUE, "linewidth": 1.2, "marker": "o"}
_SIZE_NAME = "half the range of the round's votes"
_NEW_LINE = ",\n"  # the name is long: whose votes they are has a line of its own
_EMPTY = "no stump is better than chance"


def draw_rounds(
    ax: Axes, model: StumpEnsemble, scores: Sequence[DrawnScore], records: Records | None
) -> None:
    """Draw the rounds: one run in detail, or a line for each of several runs."""
    numbers = [0] if model.is_shared else [model.member_index(score.label) for score in scores]
    if model.n_bags > 1:
        _draw_bags(ax, model, dict(zip(numbers, scores, strict=False)), records)
        return
    members = [model.members[number] for number in numbers]
    if not any(map(len, members)):
        style.leave_empty(ax, _EMPTY)
        return
    runs = [None if records is None else records[number] for number in numbers]
    if len(members) > 1:
        _draw_each(ax, scores, members, runs)
        return
    (member,), (run,) = members, runs
    whose = _whose(model, numbers[0])
    if isinstance(member, Member):
        _draw_discrete(ax, member)
        ax.set_ylabel(f"error{whose}")
    elif run:
        _draw_records(ax, run)
        ax.set_ylabel(inputs.ERRORS.get(model.link) or f"training error{whose}")
    else:
        _draw_line(ax, member.term_importances, _SIZES, "size of the votes")
        ax.set_ylim(bottom=0)
        ax.set_ylabel(f"{_SIZE_NAME}{whose.replace(', ', _NEW_LINE, 1)}")
    if ax.get_legend_handles_labels()[0] and (run or isinstance(member, Member)):
        style.legend_above(ax, *ax.get_legend_handles_labels(), ncols=1)
    style.rounds_axis(ax, len(member))


def _whose(model: StumpEnsemble, number: int) -> str:
    """Whose error it is, for the label of the axis."""
    if model.has_one_score:
        return ""
    if model.is_shared:
        return f", all {len(model.classes)} classes"
    return f", {inputs.class_name(model.classes[number])} against rest"


def _draw_discrete(ax: Axes, member: Member) -> None:
    """Each stump's weighted error, and the bound on the training error, from a model alone."""
    style.chance_line(ax)
    errors = [stump.error for stump in member.stumps]
    _draw_line(ax, errors, _FIRST, "weighted error of the round's stump")
    bounds = _bounds(member)
    if bounds is not None:
        _draw_line(ax, bounds, _SECOND, "bound on the training error")
    ax.set_ylim(0, 1)


def _draw_records(ax: Axes, run: Sequence[AnyRound]) -> None:
    """The training error, and its bound if the votes have one."""
    errors = [one.training_error for one in run]
    _draw_line(ax, errors, _FIRST, "training error")
    bounds = [one.training_bound for one in run if one.training_bound is not None]
    if bounds:
        _draw_line(ax, bounds, _SECOND, "bound on the training error")
    ax.set_ylim(0, 1 if bounds else max(1.1 * max(errors), 0.01))


def _draw_each(
    ax: Axes,
    scores: Sequence[DrawnScore],
    members: Sequence[Member | RegionMember],
    runs: Sequence[Sequence[AnyRound] | None],
) -> None:
    """A line for each of several classes against the rest."""
    found = [_of_class(member, run) for member, run in zip(members, runs, strict=True)]
    ends = {}
    for score, (values, _, _) in zip(scores, found, strict=True):
        if len(values):
            _draw_line(ax, values, {"marker": "o", **score.look}, score.name)
            ends[score.name] = float(values[-1]), score.look["color"]
    _, name, top = next(one for one in found if len(one[0]))
    ax.set_ylim(0, top)
    style.name_ends(ax, ends)
    ax.set_ylabel(f"{name},\neach class against the rest")
    style.rounds_axis(ax, max(map(len, members)))


def _draw_bags(
    ax: Axes, model: StumpEnsemble, scores: Mapping[int, DrawnScore], records: Records | None
) -> None:
    """For each drawn member the median of the bags, and a band from the least to the largest.

    The average has no rounds of its own. Of bags of different lengths, those take part that have
    the round. `scores` is keyed by the member's number; `records` holds the runs of all bags, bag
    after bag.
    """
    what, top, n_rounds = "", None, 0
    ends: dict[str, tuple[float, str]] = {}
    for number, score in scores.items():
        found = []
        for bag, one in enumerate(model.bag_models):
            run = None if records is None else records[bag * len(model.members) + number]
            values, name, top = _of_class(one.members[number], run)
            if len(values):
                found.append(np.asarray(values, dtype=np.float64))
                what = inputs.ERRORS.get(model.link, name) if run else name
        if not found:
            continue
        longest = max(map(len, found))
        by_round = np.full((len(found), longest), np.nan)
        for row, own in zip(by_round, found, strict=True):
            row[: len(own)] = own
        rounds, middle = np.arange(1, longest + 1), np.nanmedian(by_round, axis=0)
        band = np.nanmin(by_round, axis=0), np.nanmax(by_round, axis=0)
        spread.fill_band(ax, rounds, band, score.look)
        look = {"marker": "o", **score.look} if len(scores) > 1 else {**_SIZES, "linewidth": 1.8}
        _draw_line(ax, middle, look, score.name)
        ends[score.name] = float(middle[-1]), score.look["color"]
        n_rounds = max(n_rounds, longest)
    if not what:
        style.leave_empty(ax, _EMPTY)
        return
    ax.set_ylim(0, top)
    (first, *others) = scores
    whose = ", each class against the rest" if others else _whose(model, first)
    bags = f"median and range of {model.n_bags} bags"
    ax.set_ylabel(f"{what}{whose.replace(', ', _NEW_LINE, 1)},\n{bags}")
    if others:
        style.name_ends(ax, ends)
    style.rounds_axis(ax, n_rounds)


def _of_class(
    member: Member | RegionMember, run: Sequence[AnyRound] | None
) -> tuple[Any, str, float | None]:
    """What is drawn of one class among several, its name, and the top of the axis."""
    if isinstance(member, Member):
        bounds = _bounds(member) if len(member) else None
        return (() if bounds is None else bounds), "bound on the training error", 1.0
    if not run:
        return member.term_importances, _SIZE_NAME, None
    bounds_known = [one.training_bound for one in run if one.training_bound is not None]
    if bounds_known:
        return bounds_known, "bound on the training error", 1.0
    return [one.training_error for one in run], "training error", None


def _bounds(member: Member) -> np.ndarray | None:
    """The bounds on the training error; None for a model made by hand in which an error is 1."""
    errors = [stump.error for stump in member.stumps]
    return training_bounds(errors, member.votes) if all(e < 1 for e in errors) else None


def _draw_line(ax: Axes, values: Any, look: dict[str, Any], name: str) -> None:
    """Values by round, with points if the rounds are few."""
    marker = look["marker"] if len(values) < style.LONG else ""
    numbers = np.arange(1, len(values) + 1)
    ax.plot(numbers, values, label=name, **look | {"marker": marker, "markersize": 3})
