"""`gpustump inspect`: show a model's stumps as rules, its features and pairs, and a picture."""

from __future__ import annotations

import argparse

import numpy as np

from gpustump.cli.columns.model import LoadedModel, load_model, read_features
from gpustump.cli.read.files import check_one_standard_input, shown_name
from gpustump.cli.summary.rules import Limit, decimals_for, rules, signed
from gpustump.cli.wording import aligned_lines, label_text, name_value_lines, percent
from gpustump.cli.write.pictures import default_matplotlib, picture, picture_file
from gpustump.data.readable import shortened, thousands
from gpustump.model.ensemble import StumpEnsemble
from gpustump.model.members import Member
from gpustump.model.pairs import shares_of_pairs
from gpustump.plots.terms import PREDICTIONS

_STARTS = 6
"""The number of classes for which the header shows what their scores start from."""


def run(arguments: argparse.Namespace) -> None:
    """Print the model, and draw it if --plot is given."""
    check_one_standard_input(arguments.model, arguments.data)
    plot = picture_file(arguments)
    loaded = load_model(arguments.model)
    X = None if arguments.data is None else read_features(arguments.data, loaded.encoding)
    if plot is not None:
        plot.write(_overview(loaded, X, plot.path))
    blocks = [
        name_value_lines(_header(loaded.model, arguments.model)),
        *rules(loaded, Limit(arguments.rounds)),
        *_terms(loaded, X),
    ]
    print("\n\n".join("\n".join(lines) for lines in blocks if lines))


def _overview(loaded: LoadedModel, X: np.ndarray | None, path: str) -> bytes:
    with default_matplotlib():
        from gpustump import plots

        return picture(plots.overview(loaded.named, X), path)


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
        *([("pairs", thousands(len(model.pairs)))] if model.pairs else []),
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


def _terms(loaded: LoadedModel, X: np.ndarray | None) -> list[list[str]]:
    """The features and the pairs; for a table also their shares of the contributions."""
    contributions = None if X is None else loaded.model.contribution_importances(X)
    return [_features(loaded, contributions), _pairs(loaded, contributions)]


def _features(loaded: LoadedModel, contributions: np.ndarray | None) -> list[str]:
    """A line for each feature with stumps: its share of the votes and, if any, of contributions."""
    model, names = loaded.model, loaded.encoding.shown_names
    votes = model.feature_importances()
    counts = [0] * model.n_features
    for term in model.in_rounds.terms:
        counts[term.partition.feature] += not term.is_constant
    shares = votes if contributions is None else contributions
    used = (j for j in range(model.n_features) if counts[j] or (model.pairs and shares[j]))
    order = sorted(used, key=lambda j: -shares[j])
    columns = [
        ["feature", *(shortened(names[j]) for j in order)],
        ["votes", *(percent(votes[j]) for j in order)],
        ["stumps", *(thousands(counts[j]) for j in order)],
    ]
    return _table(columns, order, contributions)


def _pairs(loaded: LoadedModel, contributions: np.ndarray | None) -> list[str]:
    """A line for each pair: its share of what pairs add, its cells and its contributions."""
    model, names = loaded.model, loaded.pair_names
    own, start = shares_of_pairs(model.pairs), model.n_features
    shares = own if contributions is None else contributions[start:]
    order = np.argsort(-shares, kind="stable").tolist()
    columns = [
        ["pair", *(shortened(names[k]) for k in order)],
        ["of pairs", *(percent(own[k]) for k in order)],
        ["cells", *(thousands(model.pairs[k].n_cells) for k in order)],
    ]
    return _table(columns, [start + k for k in order], contributions)


def _table(
    columns: list[list[str]], order: list[int], contributions: np.ndarray | None
) -> list[str]:
    """Columns as lines, with one more for the contributions of the terms in this order."""
    if not order:
        return []
    if contributions is not None:
        columns = [*columns, ["contributions", *(percent(contributions[k]) for k in order)]]
    return aligned_lines(list(zip(*columns, strict=True)), right=range(1, len(columns)))
