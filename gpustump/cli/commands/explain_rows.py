"""`gpustump explain --row`: how the scores of single rows come about, as text and as a picture."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from gpustump.cli.columns.model import LoadedModel, load_model, read_features_and_offsets
from gpustump.cli.errors import InputError, as_input_error
from gpustump.cli.options import TOP
from gpustump.cli.read.file_state import FileState, check_unchanged_if_mapped
from gpustump.cli.read.streams import shown_name
from gpustump.cli.summary.row import Place, row_lines
from gpustump.cli.summary.text_bars import BarStyle
from gpustump.cli.write.paths import STANDARD_OUTPUT, OutputFile
from gpustump.cli.write.pictures import (
    check_picture,
    default_matplotlib,
    picture,
    write_picture,
)
from gpustump.data.readable import counted, listed, quoted, suggestion
from gpustump.model.ensemble import Label, StumpEnsemble
from gpustump.plots.one_row import RowScore, known_score, row_score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ALONE = {
    "label": "--class",
    "top": "--top",
    "plot": "--plot",
    "exposure": "--exposure",
    "init_score": "--init-score",
}
"""Options that need --row."""


def is_about_rows(arguments: argparse.Namespace) -> bool:
    """Whether --row is given.

    Raises
    ------
    InputError
        If options are given that do not go together.
    """
    if not arguments.row:
        for name, option in _ALONE.items():
            if getattr(arguments, name) is not None:
                raise InputError(f"{option} is for one row; add --row N.")
        return False
    if arguments.output != STANDARD_OUTPUT:
        raise InputError(
            "--output writes the contributions for all rows, --row prints text on standard output; "
            "leave one of them out."
        )
    if arguments.plot is not None and len(arguments.row) > 1:
        raise InputError(f"--plot draws one row, but --row is given {len(arguments.row)} times.")
    return True


def explain_rows(arguments: argparse.Namespace) -> None:
    """Print the rows that are asked for, and draw one if --plot is given."""
    plot = None if arguments.plot is None else OutputFile("--plot", arguments.plot)
    if plot is not None:
        inputs = arguments.model, arguments.data
        check_picture(plot, inputs=inputs, force=arguments.force)
    loaded = load_model(arguments.model)
    label = _label(loaded.model, arguments.label)
    before, source = FileState.of(arguments.data), shown_name(arguments.data)
    X, offsets = read_features_and_offsets(arguments, loaded)
    _check_rows(arguments.row, len(X), source)
    with as_input_error(f"{source}: "):
        known = [
            known_score(loaded.model, *offsets.in_rows(np.asarray([number - 1])))
            for number in arguments.row
        ]
        rows = [
            _explained(loaded, X[number - 1 : number], label, own)
            for number, own in zip(arguments.row, known, strict=True)
        ]
    check_unchanged_if_mapped(before)
    limit = arguments.top or TOP
    if plot is not None:
        write_picture(plot, _drawn(rows[0], limit, plot.path))
    style = BarStyle.of(sys.stdout)
    texts = [
        "\n".join(row_lines(row, Place(number, len(X), source), limit, style))
        for number, row in zip(arguments.row, rows, strict=True)
    ]
    print("\n\n\n".join(texts))


def _label(model: StumpEnsemble, text: str | None) -> Label | None:
    """The class that --class names."""
    if text is None:
        return None
    if model.is_regression:
        raise InputError("--class is for classes; this model predicts a quantity.")
    names = [str(label) for label in model.classes]
    if text not in names:
        raise InputError(
            f"--class: {quoted(text)} is none of the model's classes: {listed(names)}."
            f"{suggestion(text, names)}"
        )
    if model.is_binary and text != names[1]:
        raise InputError(
            f"--class {text}: with two classes there is one score, that of {quoted(names[1])}; "
            f"below 0 it means {quoted(text)}. Leave --class out."
        )
    return None if model.is_binary else model.classes[names.index(text)]


def _check_rows(numbers: Sequence[int], n_rows: int, source: str) -> None:
    for number in numbers:
        if number > n_rows:
            raise InputError(
                f"--row {number}: {source} has {counted(n_rows, 'row')}; they are counted from 1, "
                "without the line of names."
            )


def _explained(
    loaded: LoadedModel, table: np.ndarray, label: Label | None, known: np.ndarray
) -> RowScore:
    """How the score of a table's only row comes about; a text column counts as one."""
    model, encoding = loaded
    named = replace(model, feature_names=encoding.shown_names)
    return row_score(named, table, label, known)


def _drawn(row: RowScore, limit: int, path: str) -> bytes:
    with default_matplotlib():
        from gpustump.plots.one_row import draw_row

        figure = draw_row(row, limit, None).figure
        return picture(cast("Figure", figure), path)  # never a SubFigure: no axes were given
