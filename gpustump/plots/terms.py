"""What pictures are given, and what adds to a score.

A model is an estimator or a `StumpEnsemble`; a table is an array of any library or, for estimators,
a frame. Pictures are drawn on the host, and copy one column of an array at a time.

What adds to a score is a term: a column, or a pair of features. A column of text, whose values are
features, is one column here: one panel, one bar, one share.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.model.columns import CATEGORY, Column, columns_of
from gpustump.model.ensemble import Label, StumpEnsemble
from gpustump.model.explanation import step_table_of
from gpustump.plots import style
from gpustump.theory.arguments import weights_of

PREDICTIONS = {"identity": "prediction", "log": "log of the prediction"}
"""What the score of a quantity is called, by the model's link."""

ERRORS = {"identity": "mean error", "log": "mean deviance"}
"""What its training error is called: under the quantile loss it is no square."""

_PAIR = 30
"""The most characters of both names of a pair, if they can be shortened."""


class Samples(NamedTuple):
    """A table, the weights of its samples as the caller gave them, and the same on the host."""

    X: Array
    sample_weight: Any
    weights: IntegerWeights


@dataclass(frozen=True)
class Pair:
    """A pair of features.

    Attributes
    ----------
    number : int
        In `StumpEnsemble.pairs`.
    place : int
        Of its column in `StumpEnsemble.explain`, behind those of all features.
    features : (int, int)
    """

    number: int
    place: int
    features: tuple[int, int]


Term = Column | Pair


def samples_of(model: Any, X: Any, sample_weight: Any) -> Samples | None:
    """The samples to draw beside a model; None if no table is given.

    Raises
    ------
    ValueError, TypeError
        If there are weights without samples, or one of them is not valid.
    """
    if X is None:
        if sample_weight is not None:
            raise ValueError("sample_weight is given without X; give both, or neither.")
        return None
    X = table_of(model, X)
    return Samples(X, sample_weight, weights_of(sample_weight, X))


def table_of(model: Any, X: Any) -> Array:
    """A table with the model's features, as an array; estimators accept frames."""
    if isinstance(model, StumpEnsemble):
        return model.checked(X)
    table: Array = model._table(X, reset=False)
    return table


def column_of(X: Array, feature: int) -> np.ndarray:
    """One column of a table on the host, float64 (n_samples,)."""
    with arrays.computing_on(X):
        column = arrays.to_host(arrays.as_working(X[:, feature]))
    return column.astype(np.float64)


def several(given: Any) -> list[Any]:
    """A list of what is given: of its items, or of one number or name."""
    is_one = isinstance(given, str) or not isinstance(given, Iterable)
    return [given] if is_one else list(given)


def two_features(features: Any, index: Callable[[Any], int]) -> tuple[int, int]:
    """The indices of two different features; `index` gives the index of one."""
    given = [index(feature) for feature in several(features)]
    if len(set(given)) != 2 or len(given) != 2:
        raise ValueError(f"features must be two different ones, such as (0, 1); got {features!r}.")
    return given[0], given[1]


def class_names(model: StumpEnsemble) -> list[str]:
    """The classes' names in a sentence."""
    if isinstance(model.classes[0], str):
        return style.different_words([*map(str, model.classes)], 20)
    return [f"class {label}".replace("-", "−") for label in model.classes]


def score_name(model: StumpEnsemble, label: Label | None) -> str:
    """What a score is called: that of a quantity, or its class, the second of two."""
    if model.is_regression:
        return PREDICTIONS[model.link]
    return class_names(model)[1 if model.is_binary else model.output_index(label)]


def pairs_of(model: StumpEnsemble) -> list[Pair]:
    """All pairs of features of a model."""
    return [Pair(k, model.n_features + k, own.features) for k, own in enumerate(model.pairs)]


def terms_of(model: StumpEnsemble) -> list[Term]:
    """All columns, then all pairs of features."""
    return [*columns_of(model), *pairs_of(model)]


def shares_of(shares: np.ndarray, terms: Sequence[Term]) -> np.ndarray:
    """The shares of terms (..., n_terms), from those of all features and pairs."""
    places = [(term.place,) if isinstance(term, Pair) else term.features for term in terms]
    starts = np.cumsum([0, *map(len, places[:-1])])
    return np.add.reduceat(shares[..., [*itertools.chain(*places)]], starts, axis=-1)


def votes_of_terms(model: StumpEnsemble) -> np.ndarray:
    """The `feature_importances`, and 0 for each pair, as pairs have no stumps."""
    return np.append(model.feature_importances(), np.zeros(len(model.pairs)))


def feature_name(model: StumpEnsemble, feature: int, limit: int = style.NAME) -> str:
    """A feature's name in a picture; with its index if the shortened name is not unique."""
    names = model.feature_names
    if names is None:
        return f"feature {feature}"
    short = style.words(names[feature], limit)
    if short != names[feature] and sum(style.words(name, limit) == short for name in names) > 1:
        return style.words(f"{feature}: {names[feature]}", limit)
    return short


def name_of(model: StumpEnsemble, term: Term) -> str:
    """The name of a term in a picture; of a pair's long names each has half of the room."""
    if isinstance(term, Pair):
        names = [feature_name(model, feature) for feature in term.features]
        if sum(map(len, names)) > _PAIR:
            names = [feature_name(model, feature, _PAIR // 2) for feature in term.features]
        return " x ".join(names)
    if term.kind == CATEGORY:
        return style.words(term.name)
    return feature_name(model, term.features[0])


def counted_terms(terms: Sequence[Term]) -> str:
    """What several terms are called: "features and pairs", "pairs" or, of one, "feature"."""
    n_pairs = sum(isinstance(term, Pair) for term in terms)
    if 0 < n_pairs < len(terms):
        return "features and pairs"
    return f"{'pair' if n_pairs else 'feature'}{'s' * (len(terms) != 1)}"


def votes_by_category(model: StumpEnsemble, column: Column, label: Label | None) -> np.ndarray:
    """What a column with categories adds to the score of a class: in a row with each category, with
    another one and, last, without one; below that the same of each bag, (1 + n_bags, n_values + 2).

    Votes are whole multiples of a power of two, so sums of them are exact in any order: these are
    those of `StumpEnsemble.explain`, to the last bit.
    """
    found: Any = 0.0
    for feature, values in zip(column.features, column.probe(np.empty(0)).T, strict=True):
        table = step_table_of(model, feature, label)
        outcomes = [table.outcomes, *([] if table.bags is None else table.bags)]
        found = found + np.stack(outcomes)[:, table.steps_of(values)]
    return np.asarray(found)


def shares_by_category(samples: Samples, column: Column) -> np.ndarray:
    """The shares of the weight of the samples with each category of a column, with another one and,
    last, without one, (n_values + 2,)."""
    own = np.stack([column_of(samples.X, feature) for feature in column.features], axis=1)
    steps = column.steps(column.codes(own), np.empty(0))
    n_steps = len(column.values or ()) + 2
    return np.asarray([samples.weights.share(steps == step) for step in range(n_steps)])
