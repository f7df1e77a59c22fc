"""`gpustump explain`: write what each feature and pair adds to the score of each row of a table.

With --row, single rows are explained on standard output, in words and bars; see `explain_rows`.

Numbers are written in full: a row's contributions and the intercept add up to its score to the last
bit, in whatever order, in any program that adds float64 numbers.
"""

from __future__ import annotations

import argparse
import contextlib
import warnings
from collections.abc import Iterator

import numpy as np

from gpustump.cli.columns.model import (
    LoadedModel,
    at_least_one_row,
    load_model,
    read_features,
)
from gpustump.cli.commands.explain_rows import explain_rows, is_about_rows
from gpustump.cli.errors import as_input_error
from gpustump.cli.read.file_state import FileState, check_unchanged_if_mapped
from gpustump.cli.read.streams import check_one_standard_input, shown_name
from gpustump.cli.write.results import (
    Layout,
    Result,
    check_replaced_result,
    check_result_file,
    write_result,
)
from gpustump.model.ensemble import INTERCEPT, StumpEnsemble

SCORE = "(score)"
"""In parentheses, as it is not a feature."""


def run(arguments: argparse.Namespace) -> None:
    """Explain as the options say."""
    check_one_standard_input(arguments.model, arguments.data)
    if is_about_rows(arguments):
        explain_rows(arguments)
        return
    check_result_file(arguments.output, inputs=(arguments.model, arguments.data))
    loaded = load_model(arguments.model)
    layout = _layout(loaded)
    check_replaced_result(arguments.output, layout, force=arguments.force)
    before = FileState.of(arguments.data)
    X = read_features(arguments.data, loaded.encoding, may_be_empty=True)
    with as_input_error(f"{shown_name(arguments.data)}: "):  # before anything is written
        rows = at_least_one_row(X)
        loaded.model.checked(rows)
        with _told_of_unseen():
            loaded.model.explain(rows[:1])
    write_result(arguments.output, _result(layout, loaded, X, before))


def _layout(loaded: LoadedModel) -> Layout:
    parts = [*loaded.term_names, INTERCEPT, SCORE]
    if loaded.model.n_outputs > 1:
        parts = [f"{label}: {part}" for label in loaded.model.classes for part in parts]
    arrays = ["contributions", "score", "features"]
    if not loaded.model.is_regression:
        arrays.append("classes")
    return Layout(_made_different(parts), arrays)


def _result(layout: Layout, loaded: LoadedModel, X: np.ndarray, before: FileState | None) -> Result:
    """The result; each part is computed, and the table checked, when it is written."""
    model = loaded.model

    def block(rows: slice) -> list[np.ndarray]:
        contributions, scores = _contributions_and_scores(model, X[rows])
        check_unchanged_if_mapped(before)
        by_class = np.concatenate([contributions, scores[..., np.newaxis]], axis=-1)
        return list(by_class.reshape(len(by_class), len(layout.names)).T)

    def arrays() -> list[np.ndarray]:
        contributions, scores = _contributions_and_scores(model, X)
        check_unchanged_if_mapped(before)
        features = np.asarray([*loaded.term_names, INTERCEPT])
        of_classes = [] if model.is_regression else [model.class_array]
        return [contributions, scores, features, *of_classes]

    return Result(len(X), layout, block, arrays)


def _contributions_and_scores(model: StumpEnsemble, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What `explain` and `decision_function` return; X may have no rows."""
    rows = at_least_one_row(X)
    with _told_of_unseen():
        return model.explain(rows)[: len(X)], model.decision_function(rows)[: len(X)]


@contextlib.contextmanager
def _told_of_unseen() -> Iterator[None]:
    """No more warnings of unseen categories: one has counted those of all rows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* has values that were not in training")
        yield


def _made_different(names: list[str]) -> list[str]:
    """The names; a repeated one gets the first number that makes it different."""
    given, made = set(names), dict[str, None]()
    for name in names:
        number, new = 1, name
        while new in made or (number > 1 and new in given):
            number += 1
            new = f"{name} ({number})"
        made[new] = None
    return list(made)
