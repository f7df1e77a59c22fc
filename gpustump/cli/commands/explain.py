"""`gpustump explain`: write each feature's contribution to the score of each row of a table.

Numbers are written in full: a row's contributions and the intercept add up to its score to the last
bit, in whatever order, in any program that adds float64 numbers.
"""

from __future__ import annotations

import argparse

import numpy as np

from gpustump.cli.errors import as_input_error
from gpustump.cli.input.model_input import LoadedModel, load_model, read_features
from gpustump.cli.output.result_file import Result, check_result_file, write_result
from gpustump.model.ensemble import StumpEnsemble

INTERCEPT, SCORE = "(intercept)", "(score)"
"""In parentheses, as they are not features."""


def run(arguments: argparse.Namespace) -> None:
    """Explain as the options say."""
    check_result_file(arguments.output, inputs=(arguments.model, arguments.data))
    loaded = load_model(arguments.model)
    X = read_features(arguments.data, loaded.encoding)
    with as_input_error(f"{arguments.data}: "):
        loaded.model.explain(X[:1])  # an error of the table is found before anything is written
    write_result(arguments.output, _result(loaded, X))


def _result(loaded: LoadedModel, X: np.ndarray) -> Result:
    model, features = loaded.model, loaded.encoding.shown_names
    parts = [*features, INTERCEPT, SCORE]
    if not model.is_binary:
        parts = [f"{label}: {part}" for label in model.classes for part in parts]
    return Result(
        n_rows=len(X),
        names=_made_different(parts),
        block=lambda rows: list(_contributions_and_scores(model, X[rows]).T),
        arrays=lambda: {
            "contributions": model.explain(X),
            "score": model.decision_function(X),
            "features": np.asarray([*features, INTERCEPT]),
            "classes": model.class_array,
        },
    )


def _contributions_and_scores(model: StumpEnsemble, X: np.ndarray) -> np.ndarray:
    """Contributions, intercept and score of the first class, then of the next: 2-D."""
    contributions, scores = model.explain(X), model.decision_function(X)
    both = np.concatenate([contributions, scores[..., np.newaxis]], axis=-1)
    return both.reshape(len(X), -1)


def _made_different(names: list[str]) -> list[str]:
    """The names; a repeated one gets the first number that makes it a new name."""
    given, made = set(names), dict[str, None]()
    for name in names:
        number, new = 1, name
        while new in made or (number > 1 and new in given):
            number += 1
            new = f"{name} ({number})"
        made[new] = None
    return list(made)
