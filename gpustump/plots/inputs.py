"""The inputs of pictures: models, tables, weights and features, and their names in a picture.

A model is an estimator or a `StumpEnsemble`; a table is an array of any library or, for estimators,
a frame. Pictures are drawn on the host, and copy one column of an array at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.input_arrays import as_array
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.model.ensemble import Label, StumpEnsemble
from gpustump.plots.style import NAME, words
from gpustump.theory.arguments import weights_of as weights_of

PREDICTIONS = {"identity": "prediction", "log": "log of the prediction"}
"""What the score of a quantity is called, by the model's link."""

ERRORS = {"identity": "mean squared error", "log": "mean deviance"}
"""What its training error is called."""


class Samples(NamedTuple):
    """A table, and the weights of its samples.

    Attributes
    ----------
    X : array (n_samples, n_features)
    sample_weight : array (n_samples,) or None
        As the caller gave it.
    weights : IntegerWeights
        The same on the host.
    """

    X: Array
    sample_weight: Any
    weights: IntegerWeights


def samples_of(model: Any, X: Any, sample_weight: Any) -> Samples | None:
    """The samples to draw beside a model; None if no table is given.

    Raises
    ------
    ValueError, TypeError
        If there are weights without samples, or one of them is not valid.
    """
    if X is None:
        check_no_weights(sample_weight)
        return None
    X = table_of(model, X)
    return Samples(X, sample_weight, weights_of(sample_weight, X))


def check_no_weights(sample_weight: Any) -> None:
    """Refuse weights that are given without samples."""
    if sample_weight is not None:
        raise ValueError("sample_weight is given without X; give both, or neither.")


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


def alone(model: StumpEnsemble, output: int) -> StumpEnsemble:
    """A model of one output, for two classes or a quantity, without its bags."""
    if model.is_regression:
        return replace(model, bags=None)
    members = (model.output_member(output),)
    pairs = tuple(
        replace(own, values=own.values[..., output : output + 1], bags=None) for own in model.pairs
    )
    if model.is_shared:
        moved = tuple(own.of_output(output) for own in model.moved)
    else:
        moved = model.moved[output : output + 1]
    of_one: dict[str, Any] = {"members": members, "pairs": pairs, "moved": moved}
    return replace(model, **of_one, classes=(-1, 1), link="logistic", bags=None)


def several(given: Any) -> list[Any]:
    """A list of what is given: of its items, or of one number or name."""
    is_one = isinstance(given, str) or not isinstance(given, Iterable)
    return [given] if is_one else list(given)


def feature_pair(features: Iterable[int | str], index: Callable[[Any], int]) -> tuple[int, int]:
    """The indices of two features; `index` gives the index of one.

    Raises
    ------
    ValueError, TypeError
        If they are not two different features.
    """
    if not isinstance(features, Iterable):
        raise TypeError(f"features must be two, such as (0, 1); got {features!r}.")
    given = several(features)
    if len(given) != 2:
        raise ValueError(f"features must be two; got {given!r}.")
    first, second = map(index, given)
    if first == second:
        raise ValueError(f"features must be two different ones; got {given!r}.")
    return first, second


def host_row(values: Any, name: str, length: int) -> np.ndarray:
    """Real numbers, NaN for missing, float64 (length,) on the host."""
    row = as_array(values, name)
    if arrays.working_dtype(arrays.dtype_name(row)) is None or tuple(row.shape) != (length,):
        raise ValueError(
            f"{name} must hold {length} numbers, one for each feature; got "
            f"{arrays.dtype_name(row)} of shape {tuple(row.shape)}."
        )
    return arrays.to_host(row).astype(np.float64)


def feature_name(model: StumpEnsemble, feature: int, limit: int = NAME) -> str:
    """A feature's name in a picture; with its index if the shortened name is not unique."""
    if model.feature_names is None:
        return f"feature {feature}"
    name = model.feature_names[feature]
    short = words(name, limit)
    if short != name and short in _repeated(tuple(model.feature_names), limit):
        return words(f"{feature}: {name}", limit)
    return short


@lru_cache(maxsize=4)
def _repeated(names: tuple[str, ...], limit: int) -> frozenset[str]:
    """The shortened names that several features have. Of thousands, all are shortened once only."""
    counts = Counter(words(name, limit) for name in names)
    return frozenset(short for short, count in counts.items() if count > 1)


def kind_of(model: StumpEnsemble, feature: int) -> str:
    """The kind of the column that a feature comes from, such as "date"; "number" if unknown."""
    return model.encoding.origin(feature).column.kind


def learnt_missing(model: StumpEnsemble, feature: int) -> bool:
    """Whether the vote for a feature's missing values was learnt from some; true if unknown."""
    return model.missing_learnt is None or model.missing_learnt[feature]


def class_name(label: Label) -> str:
    """A class's name in a sentence."""
    return words(label, 20) if isinstance(label, str) else f"class {label}".replace("-", "−")


def score_name(model: StumpEnsemble, label: Label | None) -> str:
    """The class that a member's score is for: the second of two, or the one with this label.

    Raises
    ------
    TypeError
        If the model predicts a quantity.
    """
    model.refuse_quantity()
    return class_name(model.classes[1 if model.is_binary else model.output_index(label)])
