"""`gpustump inspect`: show a model's stumps as rules, the features that it uses, and a picture."""

from __future__ import annotations

import argparse

import numpy as np

from gpustump.cli.errors import system_errors_at
from gpustump.cli.input.model_input import LoadedModel, load_model, read_features
from gpustump.cli.input.standard_input import check_one_standard_input, shown_name
from gpustump.cli.output.drawn_model import DrawnModel
from gpustump.cli.output.output_paths import (
    OutputFile,
    check_ending,
    check_output,
    check_replaced_file,
    kind_with_mark,
)
from gpustump.cli.output.pictures import as_bytes, check_matplotlib, default_matplotlib
from gpustump.cli.output.rules import Limit, rules
from gpustump.cli.output.text_layout import aligned_lines, name_value_lines
from gpustump.cli.wording import label_text, percent
from gpustump.data.readable import shortened, thousands
from gpustump.model.ensemble import StumpEnsemble
from gpustump.model.whole_file import whole_file

PICTURES = {".png": b"\x89PNG", ".svg": b"<svg", ".pdf": b"%PDF"}
"""The formats, and what files of them begin with."""

_DPI = 150


def run(arguments: argparse.Namespace) -> None:
    """Print the model, and draw it if --plot is given."""
    check_one_standard_input(arguments.model, arguments.data)
    if arguments.plot is not None:
        _check_plot(arguments)
    loaded = load_model(arguments.model)
    X = None if arguments.data is None else read_features(arguments.data, loaded.encoding)
    if arguments.plot is not None:
        picture = _picture(loaded, X, _ending(arguments.plot))
        with system_errors_at(f"--plot {arguments.plot}"), whole_file(arguments.plot) as file:
            file.write(picture)
    blocks = [
        name_value_lines(_header(loaded.model, arguments.model)),
        *rules(loaded, Limit(arguments.rounds)),
        _features(loaded, X),
    ]
    print("\n\n".join("\n".join(lines) for lines in blocks if lines))


def _check_plot(arguments: argparse.Namespace) -> None:
    output = OutputFile("--plot", arguments.plot)
    check_ending(output, tuple(PICTURES))
    check_output(output, inputs=(arguments.model, arguments.data))
    ending = _ending(arguments.plot)
    kind = kind_with_mark(f"{ending.removeprefix('.')} picture", PICTURES[ending])
    check_replaced_file(output, kind, force=arguments.force)
    check_matplotlib("--plot")


def _ending(path: str) -> str:
    return path.lower()[path.rindex(".") :]


def _picture(loaded: LoadedModel, X: np.ndarray | None, ending: str) -> bytes:
    with default_matplotlib():
        from matplotlib import pyplot

        from gpustump import plots

        drawn = DrawnModel.of(*loaded)
        figure = plots.overview(drawn.model, X, groups=drawn.groups)
        pyplot.close(figure)  # it is for a file, not for a screen
        return as_bytes(figure, ending.removeprefix("."), _DPI)


def _header(model: StumpEnsemble, path: str) -> list[tuple[str, str]]:
    rounds = " + ".join(thousands(len(member)) for member in model.members)
    target = model.details.get("target")
    rows = [("model", shortened(shown_name(path)))]
    if isinstance(target, str):
        rows.append(("target", shortened(target)))
    return [
        *rows,
        ("classes", ", ".join(label_text(label) for label in model.classes)),
        ("features", f"{thousands(model.n_features)}, {len(model.used_features)} of them used"),
        ("rounds", rounds),
        ("digest", model.digest()),
    ]


def _features(loaded: LoadedModel, X: np.ndarray | None) -> list[str]:
    """A line for each used feature: its share of the votes and, for a table, of contributions."""
    model, names = loaded.model, loaded.encoding.shown_names
    votes = model.feature_importances()
    contributions = None if X is None else model.contribution_importances(X)
    counts = [0] * model.n_features
    for term in model.additive.terms:
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
