"""`gpustump inspect`: show a model's stumps as rules, the features that it uses, and a picture."""

from __future__ import annotations

import argparse

import numpy as np

from gpustump.cli.input.model_input import LoadedModel, load_model, read_features
from gpustump.cli.input.standard_input import check_one_standard_input, shown_name
from gpustump.cli.output.drawn_model import DrawnModel
from gpustump.cli.output.output_paths import OutputFile
from gpustump.cli.output.pictures import (
    check_picture,
    default_matplotlib,
    picture,
    write_picture,
)
from gpustump.cli.output.region_rules import decimals_for, signed
from gpustump.cli.output.rules import Limit, rules
from gpustump.cli.output.text_layout import aligned_lines, name_value_lines
from gpustump.cli.wording import label_text, percent
from gpustump.data.readable import shortened, thousands
from gpustump.model.ensemble import StumpEnsemble
from gpustump.model.members import Member
from gpustump.plots.inputs import PREDICTIONS

_STARTS = 6
"""The number of classes for which the header shows what their scores start from."""


def run(arguments: argparse.Namespace) -> None:
    """Print the model, and draw it if --plot is given."""
    check_one_standard_input(arguments.model, arguments.data)
    plot = None if arguments.plot is None else OutputFile("--plot", arguments.plot)
    if plot is not None:
        inputs = arguments.model, arguments.data
        check_picture(plot, inputs=inputs, force=arguments.force)
    loaded = load_model(arguments.model)
    X = None if arguments.data is None else read_features(arguments.data, loaded.encoding)
    if plot is not None:
        write_picture(plot, _overview(loaded, X, plot.path))
    blocks = [
        name_value_lines(_header(loaded.model, arguments.model)),
        *rules(loaded, Limit(arguments.rounds)),
        _features(loaded, X),
    ]
    print("\n\n".join("\n".join(lines) for lines in blocks if lines))


def _overview(loaded: LoadedModel, X: np.ndarray | None, path: str) -> bytes:
    with default_matplotlib():
        from gpustump import plots

        drawn = DrawnModel.of(*loaded)
        return picture(plots.overview(drawn.model, X, groups=drawn.groups), path)


def _header(model: StumpEnsemble, path: str) -> list[tuple[str, str]]:
    rounds = " + ".join(thousands(len(member)) for member in model.members)
    if model.n_outputs > 1 and model.is_shared:
        rounds += f", shared by all {len(model.classes)} classes"
    target = model.details.get("target")
    rows = [("model", shortened(shown_name(path)))]
    if isinstance(target, str):
        rows.append(("target", shortened(target)))
    return [
        *rows,
        _predicted(model),
        ("features", f"{thousands(model.n_features)}, {len(model.used_features)} of them used"),
        ("rounds", rounds),
        *([("bags", f"{model.n_bags}, their rounds in turns")] if model.n_bags > 1 else []),
        *_scores(model),
        ("digest", model.digest()),
    ]


def _predicted(model: StumpEnsemble) -> tuple[str, str]:
    if model.is_regression:
        return "predicts", "a quantity"
    return "classes", ", ".join(label_text(label) for label in model.classes)


def _scores(model: StumpEnsemble) -> list[tuple[str, str]]:
    """What scores mean and start from, for models whose regions vote numbers of their own."""
    if isinstance(model.members[0], Member):
        return []
    if model.is_regression:
        text = PREDICTIONS[model.link]
    elif model.link == "softmax":
        text = "half the log-odds of the classes, up to a constant that is common to all of them"
    elif model.is_binary:
        text = f"half the log-odds of {label_text(model.classes[1])}"
    else:
        text = "half the log-odds of each class against the rest"
    return [("scores", text), *_start(model)]


def _start(model: StumpEnsemble) -> list[tuple[str, str]]:
    """What the scores are before any stump votes; nothing if that is 0."""
    starts = [value for member in model.members for value in member.constant.tolist()]
    if not any(starts):
        return []
    if model.n_outputs == 1:
        return [("start from", signed(starts[0], decimals_for(np.asarray(starts))))]
    texts = [
        f"{label_text(label)}: {signed(start)}"
        for label, start in zip(model.classes, starts, strict=True)
    ]
    more = [f"and {len(texts) - _STARTS} more"] if len(texts) > _STARTS else []
    return [("start from", " ".join([", ".join(texts[:_STARTS]), *more]))]


def _features(loaded: LoadedModel, X: np.ndarray | None) -> list[str]:
    """A line for each used feature: its share of the votes and, for a table, of contributions."""
    model, names = loaded.model, loaded.encoding.shown_names
    votes = model.feature_importances()
    contributions = None if X is None else model.contribution_importances(X)
    counts = [0] * model.n_features
    for term in model.in_rounds.terms:
        counts[term.partition.feature] += not term.is_constant
    shares = votes if contributions is None else contributions
    order = sorted((j for j in range(model.n_features) if counts[j]), key=lambda j: -shares[j])
    if not order:
        return []
    columns = [
        ["feature", *(shortened(names[j]) for j in order)],
        ["votes", *(percent(votes[j]) for j in order)],
        ["stumps", *(thousands(counts[j]) for j in order)],
    ]
    if contributions is not None:
        columns.append(["contributions", *(percent(contributions[j]) for j in order)])
    return aligned_lines(list(zip(*columns, strict=True)), right=range(1, len(columns)))
