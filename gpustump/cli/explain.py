"""`gpustump explain`: a model and a table -> each feature's contribution to each row's score.

Written in full digits: a row's contributions and the intercept add up to its score to the last bit,
in whatever order they are added, by whatever program.
"""

from __future__ import annotations

import argparse

import numpy as np

from gpustump.cli.applied import Applied, applied, feature_names, loaded
from gpustump.cli.columns_file import Sheet, check_columns_file, write
from gpustump.cli.errors import input_errors

INTERCEPT, SCORE = "(intercept)", "(score)"
"""In parentheses, so as not to be taken for features."""


def run(arguments: argparse.Namespace) -> None:
    """Explain as the command line says."""
    check_columns_file(arguments.output, inputs=(arguments.model, arguments.data))
    what = applied(*loaded(arguments.model), arguments.data)
    with input_errors(f"{what.source}: "):
        what.model.explain(what.X[:1])  # what is wrong with the table is said before any output
    write(arguments.output, _sheet(what))


def _sheet(what: Applied) -> Sheet:
    model, X = what.model, what.X
    features = feature_names(model, what.encoding)
    parts = [*features, INTERCEPT, SCORE]
    if not model.is_binary:
        parts = [f"{label}: {part}" for label in model.classes for part in parts]
    return Sheet(
        n_rows=len(X),
        names=_distinct(parts),
        block=lambda rows: list(_with_scores(what, rows).T),
        arrays=lambda: {
            "contributions": model.explain(X),
            "score": model.decision_function(X),
            "features": np.asarray([*features, INTERCEPT]),
            "classes": model.class_array,
        },
    )


def _with_scores(what: Applied, rows: slice) -> np.ndarray:
    """Contributions, intercept and score, of each class after the other, (n_rows, n_columns)."""
    X = what.X[rows]
    contributions, scores = what.model.explain(X), what.model.decision_function(X)
    both = np.concatenate([contributions, scores[..., np.newaxis]], axis=-1)
    return both.reshape(len(X), -1)


def _distinct(names: list[str]) -> list[str]:
    """The names; one that was there before gets the first number that makes a new one."""
    given, made = set(names), dict[str, None]()
    for name in names:
        number, new = 1, name
        while new in made or (number > 1 and new in given):
            number += 1
            new = f"{name} ({number})"
        made[new] = None
    return list(made)
