"""`gpustump inspect`: a model's stumps as rules, which features have the votes, and a picture."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace

import numpy as np

from gpustump.cli import report
from gpustump.cli.applied import applied, feature_names, loaded, names_in_pictures
from gpustump.cli.drawing import as_bytes, check_matplotlib, drawing
from gpustump.cli.encoding import Encoding, Input, from_details
from gpustump.cli.errors import counted, named_errors
from gpustump.cli.outputs import check_ending, check_output, check_replaced
from gpustump.learners.interval import Interval
from gpustump.learners.stump import Stump
from gpustump.model.ensemble import Member, StumpEnsemble
from gpustump.model.whole_file import whole_file

PICTURES = (".png", ".svg", ".pdf")
_MARKS = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF"}
"""What files of these kinds have at their beginning."""

_DPI = 150


def run(arguments: argparse.Namespace) -> None:
    """Print the model, and draw it."""
    if arguments.plot is not None:
        _check_plot(arguments)
    model, encoding = loaded(arguments.model)
    X = None if arguments.data is None else applied(model, encoding, arguments.data).X
    if arguments.plot is not None:
        named = replace(model, feature_names=names_in_pictures(model, encoding))
        picture = _drawn(named, X, arguments.plot.lower().rpartition(".")[2])
        with named_errors(f"--plot {arguments.plot}"), whole_file(arguments.plot) as file:
            file.write(picture)
    blocks = [
        report.pairs(_header(model, arguments.model)),
        *("\n".join(lines) for lines in rules(model, arguments.rounds)),
        "\n".join(_features(model, encoding, X)),
    ]
    print("\n\n".join(block for block in blocks if block))


def rules(model: StumpEnsemble, limit: int, command: str = "--rounds") -> list[list[str]]:
    """For each member the first of its stumps, a line each; `command` is what shows more."""
    encoding = from_details(model.details, model.n_features, model.feature_names)
    return [_rules(model, encoding, k, limit, command) for k in range(len(model.members))]


def _check_plot(arguments: argparse.Namespace) -> None:
    check_ending(arguments.plot, "--plot", PICTURES)
    check_output(arguments.plot, "--plot", inputs=(arguments.model, arguments.data))
    ending = arguments.plot.lower().rpartition(".")[2]
    check_replaced(arguments.plot, "--plot", _MARKS[ending], f"{ending} picture", force=False)
    check_matplotlib("--plot")


def _drawn(model: StumpEnsemble, X: np.ndarray | None, kind: str) -> bytes:
    with drawing():
        from matplotlib import pyplot

        from gpustump import plots

        figure = plots.overview(model, X)
        pyplot.close(figure)  # drawn for a file, not for a screen
        return as_bytes(figure, kind, _DPI)


def _header(model: StumpEnsemble, path: str) -> list[tuple[str, str]]:
    rounds = " + ".join(report.thousands(len(member)) for member in model.members)
    used = {s.feature for m in model.members for s in m.stumps if not s.is_constant}
    target = model.details.get("target")
    rows = [("model", report.shortened(path))]
    if isinstance(target, str):
        rows.append(("target", report.shortened(target)))
    return [
        *rows,
        ("classes", ", ".join(report.label(label) for label in model.classes)),
        ("features", f"{report.thousands(model.n_features)}, {len(used)} of them used"),
        ("rounds", rounds),
        ("digest", model.digest()),
    ]


def _rules(
    model: StumpEnsemble, encoding: Encoding, number: int, limit: int, command: str
) -> list[str]:
    """The stumps of one member, a line each."""
    member = model.members[number]
    if model.is_binary:
        sides = {-1: report.label(model.classes[0]), 1: report.label(model.classes[1])}
        title = []
    else:
        label = report.label(model.classes[number])
        sides = {-1: f"not {label}", 1: label}
        title = [f"{label} against the rest"]
    if not len(member):
        return [*title, "no stump is better than chance"]
    if not limit:
        return []
    rows = [("", "rule", "missing", "vote", "error")]
    for k, (stump, vote) in enumerate(zip(member.stumps[:limit], member.votes, strict=False)):
        rule, missing = _rule(stump, encoding, sides), sides[stump.missing]
        rows.append((f"{k + 1}.", rule, missing, f"{vote:.3f}", f"{stump.error:.3f}"))
    lines = report.grid(rows, right=(0, 3, 4))
    return [*title, *lines, *_left_out(member, limit, command)]


def _left_out(member: Member, limit: int, command: str) -> list[str]:
    more = len(member) - limit
    return [f"and {counted(more, 'rule')} more: {command} {len(member)}"] if more > 0 else []


def _rule(stump: Stump | Interval, encoding: Encoding, sides: dict[int, str]) -> str:
    wanted, value = encoding.input_of(stump.feature)
    name = report.shortened(wanted.name if encoding.named else f"column {wanted.name}")
    left, right = sides[stump.polarity], sides[-stump.polarity]
    if isinstance(stump, Interval):
        low, high = (_threshold(cut, wanted.kind) for cut in (stump.low, stump.high))
        return f"{low} < {name} <= {high} -> {left}, else {right}"
    if stump.threshold == math.inf:
        return f"always {left}" if stump.is_constant else f"{name} is there -> {left}"
    return f"{_condition(stump.threshold, wanted, name, value)} -> {left}, else {right}"


def _condition(threshold: float, wanted: Input, name: str, value: str | None) -> str:
    """What holds on the left side of a threshold."""
    is_flag = 0.0 <= threshold < 1.0
    if value is not None and is_flag:
        return f"{name} is not {report.label(value)}"
    if wanted.kind == "boolean" and is_flag:
        return f"{name} is false"
    return f"{name} <= {_threshold(threshold, wanted.kind)}"


def _threshold(threshold: float, kind: str) -> str:
    """A threshold in the units that the column was written in."""
    import datetime

    try:
        start = datetime.datetime(1970, 1, 1)
        if kind == "date":  # the last day that is on the left
            return (start + datetime.timedelta(days=math.floor(threshold))).date().isoformat()
        if kind == "datetime":
            return (start + datetime.timedelta(seconds=threshold)).isoformat(" ", "seconds")
        if kind == "time":
            return (start + datetime.timedelta(seconds=threshold)).time().isoformat("seconds")
        if kind == "duration":
            return str(datetime.timedelta(seconds=threshold))
    except (OverflowError, ValueError):
        pass
    return report.number(threshold)


def _features(model: StumpEnsemble, encoding: Encoding, X: np.ndarray | None) -> list[str]:
    """A line for each feature in use: its share of the votes, and over a table of contributions."""
    shares, names = model.feature_importances(), feature_names(model, encoding)
    contributions = None if X is None else model.contribution_importances(X)
    counts = [0] * model.n_features
    for member in model.members:
        for stump in member.stumps:
            counts[stump.feature] += not stump.is_constant
    by = shares if contributions is None else contributions
    order = sorted((j for j in range(model.n_features) if counts[j]), key=lambda j: -by[j])
    if not order:
        return []
    rows = [("feature", "votes", "stumps", *(["contributions"] if X is not None else []))]
    for j in order:
        row = (report.shortened(names[j]), report.percent(shares[j]), report.thousands(counts[j]))
        rows.append((*row, *([] if contributions is None else [report.percent(contributions[j])])))
    return report.grid(rows, right=(1, 2, 3)[: len(rows[0]) - 1])
