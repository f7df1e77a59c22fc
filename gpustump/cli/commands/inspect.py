"""`gpustump inspect`: show a model's stumps as rules, its features and pairs, a picture and a page.

With --edits it is the edited model that is shown, and that --output writes.
"""

from __future__ import annotations

import argparse

import numpy as np

from gpustump.cli.columns.model import load_model, read_features, with_shown_names
from gpustump.cli.errors import InputError, as_input_error
from gpustump.cli.read.files import check_one_standard_input, shown_name, text_file
from gpustump.cli.summary.rules import decimals_for, rules, signed
from gpustump.cli.wording import aligned_lines, label_text, percent
from gpustump.cli.write.files import OutputFile, check_model_output, kind_with_mark, write_model
from gpustump.cli.write.pictures import default_matplotlib, picture, picture_file
from gpustump.data.readable import shortened, thousands
from gpustump.model.additive import is_constant
from gpustump.model.ensemble import StumpEnsemble
from gpustump.model.members import Member
from gpustump.model.pairs import shares_of_pairs
from gpustump.page import MARK
from gpustump.page import page as make_page
from gpustump.plots.terms import PREDICTIONS

_ROOM = 100
"""What scores of many classes start from is cut in its middle (characters)."""


def run(arguments: argparse.Namespace) -> None:
    """Print the model; draw it, and write its page and the edited model, if options say so."""
    check_one_standard_input(arguments.model, arguments.data)
    plot, page, output = picture_file(arguments), _page_file(arguments), _model_file(arguments)
    model = load_model(arguments.model)
    if arguments.edits is not None:
        with text_file(arguments.edits) as edits, as_input_error("--edits: "):
            model = model.edited(edits)
    X = None
    if page is not None:
        from gpustump.cli.commands.page_rows import page_rows  # it needs scikit-learn

        rows, found = page_rows(arguments.data, model)
        X = None if arguments.data is None else found
        with as_input_error(f"{shown_name(arguments.data or 'the rows')}: "):
            text = make_page(model, **rows._asdict()).html
        page.write(text.encode())
    elif arguments.data is not None:
        X = read_features(arguments.data, model)
    if plot is not None:
        plot.write(_overview(model, X, plot.path))
    if output is not None:
        write_model(model, output)
    contributions = None if X is None else model.contribution_importances(X)
    blocks = [
        aligned_lines(_header(model, arguments.model)),
        *rules(model, arguments.rounds),
        _features(model, contributions),
        _pairs(model, contributions),
    ]
    print("\n\n".join("\n".join(lines) for lines in blocks if lines))


def _page_file(arguments: argparse.Namespace) -> OutputFile | None:
    """The file of --page, None without the option; it can be written."""
    if arguments.page is None:
        return None
    output = OutputFile("--page", arguments.page)
    output.check_ending((".html", ".htm"))
    output.check(arguments.model, arguments.data, arguments.edits)
    output.check_replaced(kind_with_mark("page of gpustump", MARK.encode()), force=arguments.force)
    return output


def _model_file(arguments: argparse.Namespace) -> OutputFile | None:
    """The file of --output, None without the option; it can be written."""
    if arguments.output is None:
        return None
    if arguments.edits is None:
        raise InputError("--output is for the edited model; add --edits FILE.")
    output = OutputFile("--output", arguments.output)
    output.check(arguments.model, arguments.data, arguments.edits)
    check_model_output(output, force=arguments.force)
    return output


def _overview(model: StumpEnsemble, X: np.ndarray | None, path: str) -> bytes:
    with default_matplotlib():
        from gpustump import plots

        return picture(plots.overview(with_shown_names(model), X), path)


def _header(model: StumpEnsemble, path: str) -> list[tuple[str, str]]:
    rounds = " + ".join(thousands(len(member)) for member in model.members)
    if model.n_outputs > 1 and model.is_shared:
        rounds += f", shared by all {len(model.classes)} classes"
    rows = [("model", shortened(shown_name(path)))]
    for name in ("target", "exposure", "init_score"):
        column = model.details.get(name)
        if isinstance(column, str):
            rows.append((name.replace("_", " "), shortened(column)))
    predicted = ("predicts", "a quantity")
    if not model.is_regression:
        predicted = ("classes", ", ".join(map(label_text, model.classes)))
    return [
        *rows,
        predicted,
        ("features", f"{thousands(model.n_features)}, {len(model.used_features)} of them used"),
        *([("pairs", thousands(len(model.pairs)))] if model.pairs else []),
        ("rounds", rounds),
        *([("bags", f"{model.n_bags}, their rounds in turns")] if model.n_bags > 1 else []),
        *_scores(model),
        *_edited(model),
        ("digest", model.digest()),
    ]


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
    labels = map(label_text, model.classes)
    texts = [f"{label}: {signed(start)}" for label, start in zip(labels, starts, strict=True)]
    return [("start from", shortened(", ".join(texts), _ROOM))]


def _edited(model: StumpEnsemble) -> list[tuple[str, str]]:
    """What was edited after training."""
    if model.edits is None:
        return []
    names = model.encoding.shown_names
    texts = [shortened(edit.in_words(names)) for edit in model.edits.made]
    return [
        *(("" if number else "edited", text) for number, text in enumerate(texts)),
        ("before", model.edits.of),
    ]


def _features(model: StumpEnsemble, contributions: np.ndarray | None) -> list[str]:
    """A line for each feature with stumps: its share of the votes and, if any, of contributions."""
    names = model.encoding.shown_names
    votes = model.feature_importances()
    counts = [0] * model.n_features
    for member in model.members:
        for one, own in zip(member.hypotheses, member.region_votes, strict=True):
            counts[one.feature] += not is_constant(one, own)
    shares = votes if contributions is None else contributions
    used = (j for j in range(model.n_features) if counts[j] or (model.pairs and shares[j]))
    order = sorted(used, key=lambda j: -shares[j])
    columns = [
        ["feature", *(shortened(names[j]) for j in order)],
        ["votes", *(percent(votes[j]) for j in order)],
        ["stumps", *(thousands(counts[j]) for j in order)],
    ]
    return _table(columns, order, contributions)


def _pairs(model: StumpEnsemble, contributions: np.ndarray | None) -> list[str]:
    """A line for each pair: its share of what pairs add, its cells and its contributions."""
    names = with_shown_names(model).term_names[model.n_features :]
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
