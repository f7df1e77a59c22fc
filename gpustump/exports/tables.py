"""What all exports are made of: the columns that a model reads, and what each value adds.

A score is a constant, plus one step function of each column, plus what pairs of columns add: a cell
of a table for each pair. All numbers are whole multiples of a power of two, so they are kept as
integers here, and sums of them are exact in any language. For classes that is `VOTE_UNIT`, 2**-36;
a quantity has a unit of its own.

A column of text becomes a step function, too: of the code of its value. The model's values have the
codes 0, 1, ... in their order, any other text has the code -1, and NaN is the code of missing text.

The second part makes the lines at the top of every export: what it is, of which model, and what its
columns hold. Names and labels come from a model file, so they may hold anything; they are made
printable, on one line, and each language puts its own comment marks before the lines.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gpustump.data.columns import UNITS, numbers_of
from gpustump.data.readable import counted, listed, shown, thousands
from gpustump.learners.pair_table import PairAxis
from gpustump.learners.step_table import MOST_UNITS, VOTE_UNIT, unit_of
from gpustump.model.classes import Label, check_classes
from gpustump.model.encoding import NUMBERED, Encoding, InputColumn
from gpustump.model.ensemble import StumpEnsemble, model_of


@dataclass(frozen=True)
class Column:
    """A column that an export reads.

    Attributes
    ----------
    name : str
        "x0", "x1", ... by their places if the model knows no names.
    kind : str
        "number", "boolean", "date", "datetime", "time", "duration" or "text".
    values : tuple of str
        Of a text column: the values that the model knows, all different, by their codes.
    words : tuple of str
        Of a text column: values that stand for missing ones.
    """

    name: str
    kind: str
    values: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def is_text(self) -> bool:
        """Whether its values are text, with codes."""
        return self.kind == "text"

    @property
    def codes(self) -> dict[str, float]:
        """The code of every known text; NaN for the words that stand for missing values."""
        known = {value: float(code) for code, value in enumerate(self.values)}
        return known | dict.fromkeys(self.words, math.nan)


class Steps(NamedTuple):
    """What a column adds to the scores, as a step function.

    Attributes
    ----------
    column : int
        Its place among the columns of the export.
    thresholds : ndarray (k,) of float64
        Increasing; the last is infinite. Step i holds the values x with
        thresholds[i - 1] < x <= thresholds[i].
    units : ndarray (k + 1, n_outputs) of int64
        What each step adds and, last, what a missing value adds.
    """

    column: int
    thresholds: np.ndarray
    units: np.ndarray

    def of_output(self, output: int) -> Steps:
        """What it adds to one score, (k + 1, 1), with neighbouring steps of one height as one."""
        own = self.units[:-1, output]
        ends = np.append(own[1:] != own[:-1], True)
        units = np.append(own[ends], self.units[-1, output])
        return Steps(self.column, self.thresholds[ends], units[:, np.newaxis])

    @property
    def is_constant(self) -> bool:
        """Whether every value, and a missing one, adds the same."""
        return bool((self.units == self.units[0]).all())


class PairSteps(NamedTuple):
    """What a pair of columns adds to the scores, as a table over the bins of both.

    Attributes
    ----------
    first, second : Steps
        Of both columns, which may be one and the same. Their units, (k + 1, 1), are numbers of
        bins.
    units : ndarray (n_bins of first, n_bins of second, n_outputs) of int64
        What each cell adds.
    """

    first: Steps
    second: Steps
    units: np.ndarray


@dataclass(frozen=True)
class ExportTables:
    """A model as sums of integers.

    Attributes
    ----------
    columns : tuple of Column
        All columns that the model was given, in its order.
    steps : tuple of Steps
        Of the columns that matter, in their order.
    pairs : tuple of PairSteps
    constant : tuple of int
        What each score starts from.
    classes : tuple of bool, int, float or str
        As `predict` has them: of 1 and 2.5 the first is 1.0. Empty for a quantity.
    exponent : int
        Scores are whole numbers of 2**exponent.
    model : StumpEnsemble
    digest : str
        The model's.
    """

    columns: tuple[Column, ...]
    steps: tuple[Steps, ...]
    pairs: tuple[PairSteps, ...]
    constant: tuple[int, ...]
    classes: tuple[Label, ...]
    exponent: int
    model: StumpEnsemble
    digest: str

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns of the steps and of the pairs, in their order."""
        places = {own.column for own in (*self.steps, *self.axes)}
        return tuple(self.columns[place] for place in sorted(places))

    @property
    def axes(self) -> tuple[Steps, ...]:
        """Both columns of each pair: what a value adds to the number of the cell in `cells`."""
        found: list[Steps] = []
        start = 0
        for first, second, units in self.pairs:
            n_rows, n_columns, _ = units.shape
            found += [first._replace(units=start + first.units * n_columns), second]
            start += n_rows * n_columns
        return tuple(found)

    @property
    def cells(self) -> np.ndarray:
        """What the cells of all pairs add, (n_cells, n_outputs) of int64."""
        found = [own.units.reshape(-1, self.model.n_outputs) for own in self.pairs]
        return np.concatenate([np.empty((0, self.model.n_outputs), dtype=np.int64), *found])


def export_tables(model: Any) -> ExportTables:
    """The tables of a model or of a fitted estimator.

    Raises
    ------
    TypeError
        If it is neither.
    ValueError
        If the model was made by hand of votes that no file holds: not whole multiples of 2**-36, or
        too large; or of labels that no file holds.
    """
    found = model_of(model)
    constant, tables = found.additive.tables
    outcomes = {table.feature: table.outcomes for table in tables}
    every = [constant, *outcomes.values(), *(pair.values for pair in found.pairs)]
    of_regression = found.is_regression
    unit = unit_of(np.concatenate([own.ravel() for own in every])) if of_regression else VOTE_UNIT
    of_feature = {
        table.feature: Steps(table.feature, table.thresholds, _units(outcomes[table.feature], unit))
        for table in tables
    }
    encoding = found.encoding
    steps = tuple(_used_steps(encoding, of_feature))
    pairs = []
    for pair in found.pairs:
        first, second = (_bin_steps(encoding, axis) for axis in pair.axes)
        pairs.append(PairSteps(first, second, _units(pair.values, unit)))
    start = tuple(_units(constant, unit).tolist())
    _check_scores(start, [*(own.units for own in steps), *(own.units for own in pairs)], unit)
    columns = tuple(_column(own, encoding) for own in encoding.columns)
    exponent = math.frexp(unit)[1] - 1
    labels: tuple[Label, ...] = ()
    if not of_regression:
        check_classes(list(found.classes))
        labels = tuple(found.class_array.tolist())
    return ExportTables(
        columns, steps, tuple(pairs), start, labels, exponent, found, found.digest()
    )


def _units(votes: np.ndarray, unit: float) -> np.ndarray:
    """Sums of votes as whole numbers of units, int64."""
    units = votes / unit  # a power of two: exact, or infinite
    is_whole = (np.abs(units) <= MOST_UNITS) & (np.rint(units) == units)
    if not is_whole.all():
        wrong = votes[~is_whole][0].item()
        if unit != VOTE_UNIT:
            raise ValueError(_too_wide(abs(wrong), unit))
        raise ValueError(
            "votes must be whole multiples of 2**-36 that add up to 131072 at most, as those of "
            f"trained models are; got a sum of {shown(wrong)}. Round them: "
            "round(vote * 2**36) / 2**36."
        )
    return units.astype(np.int64)


def _check_scores(constant: Sequence[int], units: Sequence[np.ndarray], unit: float) -> None:
    """Refuse votes that could add up to more than float64 holds exactly."""
    for output, start in enumerate(constant):
        largest = [int(np.abs(own[..., output]).max()) for own in units]
        if abs(start) + sum(largest) > MOST_UNITS:
            raise ValueError(
                f"output {output}: {_too_wide((abs(start) + sum(largest)) * unit, unit)}"
            )


def _too_wide(reached: float, unit: float) -> str:
    return (
        f"scores may reach {reached:.17g}; the largest that every export holds exactly is "
        f"{MOST_UNITS * unit:.17g}, with votes that are whole multiples of {unit:.17g}. Scale the "
        "votes down, or round them."
    )


def _column(own: InputColumn, encoding: Encoding) -> Column:
    name = own.name if encoding.named else f"x{own.position}"
    if own.kind not in ("category", NUMBERED):
        return Column(name, own.kind)
    values = tuple(value for value in dict.fromkeys(own.values) if value not in encoding.missing)
    return Column(name, "text", values, encoding.missing)


def _used_steps(encoding: Encoding, of_feature: Mapping[int, Steps]) -> Iterator[Steps]:
    """The steps of the columns that change some score."""
    first = 0
    for place, own in enumerate(encoding.columns):
        found = [of_feature.get(first + k) for k in range(len(own.features))]
        first += len(own.features)
        if any(found):
            yield _column_steps(own, encoding, found)._replace(column=place)


def _bin_steps(encoding: Encoding, axis: PairAxis) -> Steps:
    """The number of the bin of each value of a column, as a step function."""
    ends, bins = axis.steps
    (found,) = _used_steps(
        encoding, {axis.feature: Steps(axis.feature, ends, bins.astype(np.int64)[:, np.newaxis])}
    )
    return found.of_output(0)


def _column_steps(
    own: InputColumn, encoding: Encoding, of_features: Sequence[Steps | None]
) -> Steps:
    if own.kind == "category":
        return _of_values(_column(own, encoding).values, own.values, of_features)
    (steps,) = (one for one in of_features if one is not None)
    if own.kind == NUMBERED:
        numbers = [own.values.index(value) for value in _column(own, encoding).values]
        return _by_code(_at(steps, [math.nan, *numbers, math.nan]))
    gone = numbers_of(encoding.missing) if own.kind == "number" else ()
    return _without_numbers(steps, gone) if gone else steps


def _of_values(
    values: Sequence[str], of_values: Sequence[str], of_features: Sequence[Steps | None]
) -> Steps:
    """The steps of a text column that became one feature, 0 or 1, for each of its values."""
    reached: dict[str, Any] = {}  # what 0, 1 and a missing value of each feature add
    for value, steps in zip(of_values, of_features, strict=True):
        if steps is not None:
            reached[value] = reached.get(value, 0) + _at(steps, [0.0, 1.0, math.nan])
    others, _, missing = np.sum([*reached.values()], axis=0)
    known = [
        others + reached[value][1] - reached[value][0] if value in reached else others
        for value in values
    ]
    return _by_code(np.asarray([others, *known, missing]))


def _by_code(units: np.ndarray) -> Steps:
    """Steps over codes: the units of -1, 0, 1, ... and, last, of missing text."""
    return Steps(0, np.append(np.arange(len(units) - 2) - 0.5, np.inf), units)


def _at(steps: Steps, values: ArrayLike) -> np.ndarray:
    """What some values add, (n_values, n_outputs); NaN lies behind all thresholds."""
    found: np.ndarray = steps.units[np.searchsorted(steps.thresholds, values)]
    return found


def _without_numbers(steps: Steps, numbers: Sequence[float]) -> Steps:
    """The same steps, but numbers that stand for missing values have steps of their own."""
    gone = np.asarray([own for own in numbers if not math.isnan(own)])
    ends = np.unique([*steps.thresholds, *gone, *np.nextafter(gone, -np.inf)])
    units = np.vstack([_at(steps, ends), steps.units[-1:]])
    units[:-1][np.isin(ends, gone)] = steps.units[-1]
    return Steps(steps.column, ends, units)


MARK = "gpustump export"
"""What the first line of every export begins with, after the comment mark."""

VERSION = str(importlib.import_module("gpustump").__version__)
"""Looked up at run time: the package's root imports from all rooms, so no room may import it."""


def header_lines(tables: ExportTables, kind: str, texts: Callable[[str], str]) -> list[str]:
    """The lines for one model: what the export is, its columns and its classes.

    Parameters
    ----------
    tables : ExportTables
    kind : str
        The language.
    texts : callable
        Makes text from a model harmless in a comment of that language.
    """
    n_steps = sum(len(own.thresholds) for own in tables.steps)
    pairs = f"{counted(len(tables.pairs), 'pair')}, " if tables.pairs else ""
    classes = counted(len(tables.classes), "class", "classes")
    return [
        f"{MARK}, {kind}, by gpustump {VERSION}",
        f"model {tables.digest}",
        f"{counted(len(tables.columns), 'column')}, {thousands(len(tables.used))} of them used, "
        f"{counted(n_steps, 'step')}, {pairs}"
        f"{'predicts a quantity' if tables.model.is_regression else classes}",
        "",
        *_exactness(tables),
        "",
        "columns:",
        *(_column_line(place, own, texts) for place, own in enumerate(tables.columns)),
        *(["classes:"] if tables.classes else []),
        *(f"  {i}: {texts(listed([label]))}" for i, label in enumerate(tables.classes)),
    ]


def _exactness(tables: ExportTables) -> list[str]:
    """What scores are, and what is exact."""
    unit = f"2**{tables.exponent}"
    if not tables.model.is_regression:
        return [
            f"Scores are whole numbers of {unit}: score * {unit} is the model's decision_function.",
            "Scores and labels are exact; probabilities may differ in the last bits.",
        ]
    if tables.model.link == "identity":
        return [
            f"Scores are whole numbers of {unit}: score * {unit} is the prediction.",
            "Scores and predictions are exact. An init_score is added to the prediction.",
        ]
    return [
        f"Scores are whole numbers of {unit}: exp(score * {unit}) is the prediction.",
        "Scores are exact; predictions may differ in the last bits.",
        "A prediction is multiplied by the exposure, or by the exponential of an init_score.",
    ]


def _column_line(place: int, column: Column, texts: Callable[[str], str]) -> str:
    holds = UNITS.get(column.kind, column.kind)
    if column.is_text:
        holds = f"text, {counted(len(column.values), 'value')}"
    if column.kind == "boolean":
        holds = "0 or 1"
    return f"  {place}: {texts(listed([column.name]))}, {holds}"
