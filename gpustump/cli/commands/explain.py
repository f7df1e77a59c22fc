"""`gpustump explain`: what each feature and pair adds to the score of each row of a table.

Numbers are written in full: a row's contributions and the intercept add up to its score to the last
bit, in whatever order, in any program that adds float64 numbers. With --row, single rows are
explained on standard output, in words and bars, and as a picture.
"""

from __future__ import annotations

import argparse
import contextlib
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import numpy as np

from gpustump.arrays import Array, is_sparse
from gpustump.cli.columns.model import (
    at_least_one_row,
    load_model,
    read_features,
    read_table_to_predict,
    with_shown_names,
)
from gpustump.cli.columns.targets import Offsets
from gpustump.cli.errors import InputError, as_input_error
from gpustump.cli.options import TOP
from gpustump.cli.read.files import check_one_standard_input, shown_name
from gpustump.cli.read.svmlight import is_svmlight
from gpustump.cli.summary.row import row_lines
from gpustump.cli.wording import told_apart
from gpustump.cli.write.files import STANDARD_OUTPUT
from gpustump.cli.write.pictures import default_matplotlib, picture, picture_file
from gpustump.cli.write.results import Layout, Result, result_file, result_of, write_result
from gpustump.data.readable import counted, listed, quoted, shortened, suggestion, thousands
from gpustump.model.ensemble import INTERCEPT, Label, StumpEnsemble
from gpustump.plots.one_row import RowScore, known_score, row_score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCORE = "(score)"
"""In parentheses, as it is not a feature."""


def run(arguments: argparse.Namespace) -> None:
    """Explain as the options say."""
    check_one_standard_input(arguments.model, arguments.data)
    if not arguments.row:
        for name in ("label", "top", "plot", "exposure", "init_score"):
            if getattr(arguments, name) is not None:
                option = "class" if name == "label" else name.replace("_", "-")
                raise InputError(f"--{option} is for one row; add --row N.")
        _explain_table(arguments)
        return
    if arguments.output != STANDARD_OUTPUT:
        raise InputError(
            "--output writes the contributions for all rows, --row prints text on standard output; "
            "leave one of them out."
        )
    if arguments.plot is not None and len(arguments.row) > 1:
        raise InputError(f"--plot draws one row, but --row is given {len(arguments.row)} times.")
    _explain_rows(arguments)


def _explain_table(arguments: argparse.Namespace) -> None:
    output = result_file(arguments)
    model = load_model(arguments.model)
    terms = None
    if is_svmlight(arguments.data) or model.encoding.first_index is not None:
        # Of a sparse table only what is not 0 everywhere: features, pairs, and the intercept.
        voting = [table.feature for table in model.additive.tables[1]]
        terms = [*voting, *range(model.n_features, model.n_features + len(model.pairs) + 1)]
    layout = _layout(model, terms)
    output.check_replaced(result_of(layout, output.path), force=arguments.force)
    X = read_features(arguments.data, model, may_be_empty=True)
    with as_input_error(f"{shown_name(arguments.data)}: "):  # before anything is written
        rows = at_least_one_row(X)
        model.checked(rows)
        with _told_of_unseen():
            model.explain(rows[:1])
    write_result(output, _result(layout, model, X, terms))


def _contributions(model: StumpEnsemble, X: Array, terms: list[int] | None) -> np.ndarray:
    """The contributions of some terms, or all, (n_rows, n_terms) or (n_rows, n_classes, n_terms).

    Those of a sparse table are dense, as those of a dense table are, not against a row of zeros as
    `explain` has them.
    """
    parts = model.explain(X)
    terms = [*range(len(model.term_names) + 1)] if terms is None else terms
    if not is_sparse(X):
        return np.asarray(parts[..., terms])
    by_class = [parts] if model.has_one_score else parts
    of_zeros = np.asarray(model.explain(np.zeros((1, model.n_features))))[..., terms]
    found = np.stack([own[:, terms].toarray() for own in by_class], axis=1)
    found = np.reshape(found, (len(X), *of_zeros.shape[1:])) + of_zeros
    is_intercept = np.asarray(terms) == len(model.term_names)
    found[..., is_intercept] = of_zeros[..., is_intercept]
    return np.asarray(found)


def _names_of(model: StumpEnsemble, terms: list[int] | None) -> list[str]:
    names = [*with_shown_names(model).term_names, INTERCEPT]
    return names if terms is None else [names[term] for term in terms]


def _layout(model: StumpEnsemble, terms: list[int] | None) -> Layout:
    parts = [*_names_of(model, terms), SCORE]
    if model.n_outputs > 1:
        parts = [f"{label}: {part}" for label in model.classes for part in parts]
    arrays = ["contributions", "score", "features"]
    if not model.is_regression:
        arrays.append("classes")
    return Layout(told_apart(parts, "{} ({})"), arrays)


def _result(layout: Layout, model: StumpEnsemble, X: np.ndarray, terms: list[int] | None) -> Result:
    """The result; each part is computed when it is written."""

    def parts(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        table = at_least_one_row(X[rows])
        with _told_of_unseen():
            contributions = _contributions(model, table, terms)
            scores = model.decision_function(table)
        n_rows = len(X[rows])
        return contributions[:n_rows], scores[:n_rows]

    def block(rows: slice) -> list[np.ndarray]:
        contributions, scores = parts(rows)
        by_class = np.concatenate([contributions, scores[..., np.newaxis]], axis=-1)
        return list(by_class.reshape(len(by_class), len(layout.names)).T)

    def arrays() -> list[np.ndarray]:
        features = np.asarray(_names_of(model, terms))
        of_classes = [] if model.is_regression else [model.class_array]
        return [*parts(slice(None)), features, *of_classes]

    return Result(len(X), layout, block, arrays)


@contextlib.contextmanager
def _told_of_unseen() -> Iterator[None]:
    """No more warnings of unseen categories: one has counted those of all rows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* has values that were not in training")
        yield


def _explain_rows(arguments: argparse.Namespace) -> None:
    """Print the rows that are asked for, and draw one if --plot is given."""
    plot = picture_file(arguments)
    model = load_model(arguments.model)
    label = _label(model, arguments.label)
    source = shown_name(arguments.data)
    X, offsets, _ = read_table_to_predict(arguments, model)
    for number in arguments.row:
        if number > len(X):
            raise InputError(
                f"--row {number}: {source} has {counted(len(X), 'row')}; they are counted from 1, "
                "without the line of names."
            )
    with as_input_error(f"{source}: "):
        rows = [_explained(model, X, offsets, number - 1, label) for number in arguments.row]
    limit = arguments.top or TOP
    if plot is not None:
        plot.write(_drawn(rows[0], limit, plot.path))
    texts = []
    for number, row in zip(arguments.row, rows, strict=True):
        place = f"{thousands(number)} of {thousands(len(X))} in {shortened(source)}"
        texts.append("\n".join(row_lines(row, place, limit)))
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
    return None if model.is_binary else model.classes[names.index(text)]


def _explained(
    model: StumpEnsemble, X: Array, offsets: Offsets, at: int, label: Label | None
) -> RowScore:
    """How the score of a row comes about; a text column counts as one feature."""
    known = known_score(model, *offsets.in_rows(np.asarray([at])))
    row = X[at : at + 1]
    return row_score(with_shown_names(model), row.dense() if is_sparse(row) else row, label, known)


def _drawn(row: RowScore, limit: int, path: str) -> bytes:
    with default_matplotlib():
        from gpustump.plots.one_row import draw_row

        figure = draw_row(row, limit, None).figure
        return picture(cast("Figure", figure), path)  # never a SubFigure: no axes were given
