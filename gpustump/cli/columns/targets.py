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
from gpustump.data.columns import LARGEST_WHOLE, Column
from gpustump.data.parameters import MOST_CODES
from gpustump.data.readable import counted, quoted, shown
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
        If the values are not finite numbers.
    """
    where = _where(column, source)
    if column.kind not in _OF_QUANTITY:
        raise InputError(
            f"{where} holds {_plural(column.kind)}; a quantity, which options ask for, is numbers."
        )
    numbers = np.asarray(column.numbers()).astype(np.float64)
    is_wrong = ~np.isfinite(numbers)
    if is_wrong.any():
        raise InputError(
            f"{where} must be finite; it is not in "
            f"{counted(int(np.count_nonzero(is_wrong)), 'row')}, such as "
            f"{numbers[np.argmax(is_wrong)]}."
        )
    return numbers


def target_labels(column: Column, source: str) -> np.ndarray:
    """The labels (n_rows,) of the rows that have one: text, bool or int64.

    Whole floats become integers, so that a model does not depend on how a file writes its labels.

    Raises
    ------
    InputError
        If the values cannot be labels, or are all the same.
    """
    where = _where(column, source)
    if column.kind not in ("text", "boolean", "number"):
        raise InputError(
            f"{where} holds {_plural(column.kind)}; labels are text, booleans or whole numbers."
        )
    with as_input_error(f"{source}: "):
        labels = column.labels()
    if column.kind == "number":
        labels = _whole_numbers(labels, where)
    distinct = np.unique(labels)
    if len(distinct) < 2:
        raise InputError(
            f"{where} is {quoted(distinct[0].item())} in every row that has one; two classes or "
            "more are needed. `gpustump help text` says what counts as missing."
        )
    if len(distinct) > max(2, len(labels) / 2):
        advice = " If it is a quantity, choose --loss squared_error."
        raise InputError(
            f"{where} has {len(distinct)} distinct values in {len(labels)} rows; is it a column of "
            f"labels?{advice if column.kind == 'number' else ''}"
        )
    return labels


def _where(column: Column, source: str) -> str:
    return f"{source}: the target {quoted(column.name)}"


def _plural(kind: str) -> str:
    return "dates or times" if kind in ("date", "datetime", "time") else kind


def _whole_numbers(values: np.ndarray, where: str) -> np.ndarray:
    kind = values.dtype.kind
    if kind == "i" or (kind == "u" and np.max(values) < 2**63):
        return values.astype(np.int64)
    values = values.astype(np.float64)  # float16 has no numbers as large as the bound
    with np.errstate(invalid="ignore"):
        whole = (np.abs(values) <= LARGEST_WHOLE) & (np.trunc(values) == values)
    if not whole.all():
        example = values[np.argmin(whole)].item()
        is_large = abs(example) > LARGEST_WHOLE and np.isfinite(example)
        are = "too large to be told apart" if is_large else "not all whole"
        raise InputError(
            f"{where} holds {len(np.unique(values))} distinct numbers that are {are}, such "
            f"as {example}. To predict a quantity, choose --loss squared_error. If they stand for "
            "classes, write whole numbers or text in their place (--categorical makes text of a "
            "table's column)."
        )
    return values.astype(np.int64)


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
            If an option is not for this model, or a name in the details is not text.
        """
        found: dict[str, str | None] = {}
        for name in cls._fields:
            if name not in arguments:
                continue
            given, held = getattr(arguments, name), model.details.get(name)
            if given is not None:
                _refuse_for_others(name, model)
            elif held is not None and not isinstance(held, str):
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
        where = f"{table.source}: the weights {quoted(column.name)}"
        if column.kind not in ("number", "boolean"):
            raise InputError(f"{where} are not numbers, but of type {column.kind}.")
        weights = column.numbers().astype(np.float64)
        bad = ~(np.isfinite(weights) & (weights >= 0))
        if bad.any():
            raise InputError(
                f"{where} must be finite and not negative; they are not in "
                f"{counted(int(np.count_nonzero(bad)), 'row')}, such as {weights[np.argmax(bad)]}."
            )
        if not weights.any():
            raise InputError(f"{where} are zero in every row; at least one must be positive.")
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
                if column.kind not in ("number", "boolean", "empty"):
                    raise InputError(
                        f"{table.source}: {_option(name)} names {quoted(own)}, which is not "
                        f"numbers, but of type {column.kind}."
                    )
                found[name] = np.asarray(column.numbers()).astype(np.float64)
        return Offsets(**found)


def _refuse_for_others(name: str, model: StumpEnsemble) -> None:
    """Refuse an option that is not for a model."""
    if name == "exposure" and not model.is_regression:
        raise InputError("--exposure is for models of counts; this one predicts classes.")
    if name == "exposure" and model.link != "log":
        raise InputError("--exposure is for models of counts; this one has squared loss.")
    if name == "init_score":
        refuse_for_classes(len(model.classes))


def refuse_for_classes(n_classes: int) -> None:
    """Refuse --init-score for more than two classes, which have a score each."""
    if n_classes > 2:
        raise InputError(
            f"--init-score is one column, for two classes or a quantity; here are {n_classes} "
            "classes. In Python, fit(X, y, init_score=...) takes a column for each of them."
        )


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
