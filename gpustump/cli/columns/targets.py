"""What the columns beside the features hold: target, weights, and what is known of each row.

A target holds labels of classes, or a quantity. What is known beforehand stands in the columns of
--init-score and --exposure. A model names the columns that it was trained with, so `predict` finds
them without options; a table that has none of them is predicted for scores from 0 and exposures
of 1.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np

from gpustump.cli.errors import InputError, as_input_error
from gpustump.cli.read.table import InputTable
from gpustump.data.columns import LARGEST_WHOLE, Column, values_of_kind
from gpustump.data.labels import check_labels
from gpustump.data.parameters import MOST_CODES
from gpustump.data.readable import quoted, shown
from gpustump.data.weights import check_weights
from gpustump.model.ensemble import StumpEnsemble

_OF_QUANTITY = ("number", "boolean", "duration")
"""The kinds of columns that can be a quantity; durations are seconds."""


def is_quantity(column: Column, source: str) -> bool:
    """Whether a target without missing values is a quantity, if no option says what it is.

    Numbers are, unless they are two whole ones. Text and booleans are labels.

    Raises
    ------
    InputError
        If it holds a few whole numbers, which may be either.
    """
    if column.kind not in ("number", "duration"):
        return False
    numbers = np.asarray(column.numbers())
    distinct = np.unique(numbers)
    if len(distinct) > MOST_CODES or (np.trunc(distinct) != distinct).any():
        return True
    if len(distinct) <= 2:
        return False
    low, high = (f"{end:.0f}" for end in (distinct[0], distinct[-1]))
    raise InputError(
        f"{_where(column, source)} holds {len(distinct)} distinct whole numbers, {low} to {high}. "
        "Say what they are: classes (--loss exponential or logistic), a quantity (--loss "
        "squared_error), or counts (--loss poisson)."
    )


def target_numbers(column: Column, source: str) -> np.ndarray:
    """The quantity (n_rows,) in a column without missing values, float64.

    Raises
    ------
    InputError
        If the values are not numbers.
    """
    if column.kind not in _OF_QUANTITY:
        raise InputError(
            f"{_where(column, source)} holds {values_of_kind(column.kind)}; a quantity, which "
            "options ask for, is numbers."
        )
    return np.asarray(column.numbers()).astype(np.float64)


def target_labels(column: Column, source: str) -> np.ndarray:
    """The labels (n_rows,) of the rows that have one: text, bool or numbers.

    Whole floats become integers, so that a model does not depend on how a file writes its labels.

    Raises
    ------
    InputError
        If the values cannot be labels, or are all the same.
    """
    where = _where(column, source)
    if column.kind not in ("text", "boolean", "number"):
        raise InputError(
            f"{where} holds {values_of_kind(column.kind)}; labels are text, booleans or whole "
            "numbers."
        )
    with as_input_error(f"{where}: "):
        labels = np.asarray(check_labels(column.labels(), column.labels()))
    if labels.dtype.kind == "f" and (np.abs(labels.astype(np.float64)) <= LARGEST_WHOLE).all():
        labels = labels.astype(np.int64)
    distinct = np.unique(labels)
    if len(distinct) < 2:
        raise InputError(
            f"{where} is {quoted(distinct[0].item())} in every row that has one; two classes or "
            "more are needed. `gpustump help text` says what counts as missing."
        )
    return labels


def _where(column: Column, source: str) -> str:
    return f"{source}: the target {quoted(column.name)}"


class Offsets(NamedTuple):
    """The values for each row, (n_rows,) of float64; None where there are none."""

    init_score: np.ndarray | None = None
    exposure: np.ndarray | None = None

    def in_rows(self, rows: np.ndarray) -> Offsets:
        """Those of some rows."""
        return Offsets(*(None if own is None else own[rows] for own in self))

    def added(self, scores: np.ndarray, model: StumpEnsemble) -> np.ndarray:
        """Scores of two classes with what is known of the rows; of a quantity as they are.

        Raises
        ------
        InputError
            If a value is not finite, or very large.
        """
        known = None if model.is_regression else self.of_rows(scores[:, np.newaxis], model)
        return scores if known is None else scores + known

    def applied(self, predictions: np.ndarray, model: StumpEnsemble) -> np.ndarray:
        """Predictions of a quantity with what is known of the rows.

        Raises
        ------
        InputError
            If a value is not finite, or an exposure is not above 0.
        """
        known = self.of_rows(predictions[:, np.newaxis], model)
        if known is not None:
            predictions = predictions * known if model.link == "log" else predictions + known
        return predictions

    def of_rows(
        self, X: np.ndarray, model: StumpEnsemble, *, of_scores: bool = False
    ) -> np.ndarray | None:
        """What is known of the rows of X; see `Offset.of_model` and `Offset.of_scores`."""
        if self.init_score is None and self.exposure is None:
            return None
        from gpustump.estimators.targets import Offset  # it needs scikit-learn

        with as_input_error():
            own = Offset(*self)
            found: np.ndarray | None = (own.of_scores if of_scores else own.of_model)(X, model)
        return found


class OtherColumns(NamedTuple):
    """The names of the columns that are no features; None where there are none."""

    target: str | None = None
    weight: str | None = None
    init_score: str | None = None
    exposure: str | None = None

    @classmethod
    def of_options(cls, arguments: argparse.Namespace) -> OtherColumns:
        """Those that options name."""
        return cls(**{name: getattr(arguments, name, None) for name in cls._fields})

    @classmethod
    def of_model(cls, model: StumpEnsemble, arguments: argparse.Namespace) -> OtherColumns:
        """Those that a command has options for: by the options, or else by the model's details.

        Raises
        ------
        InputError
            If a name in the details is not text.
        """
        found: dict[str, str | None] = {}
        for name in cls._fields:
            if name not in arguments:
                continue
            given, held = getattr(arguments, name), model.details.get(name)
            if given is None and not isinstance(held, str | None):
                raise InputError(
                    f"the model's details hold {shown(held)} as its {name}; it must be text."
                )
            found[name] = held if given is None else given
        return cls(**found)

    @property
    def given(self) -> dict[str, str]:
        """The names that there are, by their options."""
        return {_option(k): v for k, v in self._asdict().items() if v is not None}

    def those_in(self, table: InputTable, arguments: argparse.Namespace) -> OtherColumns:
        """Without the columns that only the model names, and the table lacks."""
        there = {*table.vectors, *(table.names if table.named else ())}
        lost = [
            name
            for name, own in self._asdict().items()
            if own not in there and getattr(arguments, name, None) is None
        ]
        return self._replace(**dict.fromkeys(lost))

    def places(self, table: InputTable) -> frozenset[int]:
        """Their positions; vectors beside the table have none.

        Raises
        ------
        InputError
            If there is no such column, or two options name one.
        """
        places, options = set[int](), dict[int, str]()
        for option, name in self.given.items():
            column, at = table.column_or_vector(name, option)
            if id(column) in options:
                raise InputError(
                    f"{option} and {options[id(column)]} both name {quoted(column.name)}."
                )
            options[id(column)] = option
            if at is not None:
                places.add(at)
        return frozenset(places)

    def target_in(self, table: InputTable) -> tuple[Column, int | None]:
        """The column or vector that is predicted, and its position; None for a vector."""
        assert self.target is not None
        return table.column_or_vector(self.target, "--target")

    def weights(self, table: InputTable) -> np.ndarray | None:
        """The weights (n_rows,) of float64; None if there are none.

        Raises
        ------
        InputError
            If they are no weights, or all zero.
        """
        if self.weight is None:
            return None
        column, _ = table.column_or_vector(self.weight, "--weight")
        _refuse_all_but_numbers(column, "--weight", table)
        weights = np.asarray(column.numbers()).astype(np.float64)
        with as_input_error(f"{table.source}: "):
            check_weights(weights, weights, f"the weight {quoted(column.name)}")
        return weights

    def offsets(self, table: InputTable) -> Offsets:
        """What is known of the rows.

        Raises
        ------
        InputError
            If a column does not hold numbers.
        """
        found: dict[str, np.ndarray] = {}
        for name in Offsets._fields:
            own = getattr(self, name)
            if own is not None:
                column, _ = table.column_or_vector(own, _option(name))
                _refuse_all_but_numbers(column, _option(name), table)
                found[name] = np.asarray(column.numbers()).astype(np.float64)
        return Offsets(**found)


def _refuse_all_but_numbers(column: Column, option: str, table: InputTable) -> None:
    if column.kind not in ("number", "boolean", "empty"):
        raise InputError(
            f"{table.source}: {option} names {quoted(column.name)}, which is not numbers, but of "
            f"type {column.kind}."
        )


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
