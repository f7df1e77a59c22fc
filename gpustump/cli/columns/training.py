"""The data that `gpustump train` learns from: features, labels and weights, split into two parts;
and the monotone constraints of columns.

Everything that can be wrong with the data is found here, before training begins.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from gpustump.cli.columns.encoding import Forced, find_index, learn_encoding
from gpustump.cli.columns.targets import (
    Offsets,
    OtherColumns,
    is_quantity,
    target_labels,
    target_numbers,
)
from gpustump.cli.errors import InputError, as_input_error
from gpustump.cli.method import asks_for_quantity
from gpustump.cli.read.files import holds_values, read_table, shown_name, text_file
from gpustump.cli.read.svmlight import TARGET, read_names
from gpustump.cli.read.table import (
    NUMBER,
    TEXT,
    InputTable,
    Request,
    Wanted,
    everything,
    table_of,
)
from gpustump.cli.wording import tell
from gpustump.data.columns import NUMERIC, ArrayColumn, AsText, Column, WithoutWords, without_words
from gpustump.data.parameters import check_count, check_real
from gpustump.data.readable import (
    counted,
    listed,
    quoted,
    shortened,
    shown,
    suggestion,
    thousands,
)
from gpustump.model.encoding import NUMBERED, Encoding, InputColumn, encode

NO_OFFSETS = Offsets()


@dataclass(frozen=True)
class TrainingData:
    """What is to be learned.

    Attributes
    ----------
    source, target : str
    X : ndarray (n_rows, n_features)
    y : ndarray (n_rows,)
        Labels, or a quantity.
    weights : ndarray (n_rows,) or None
    encoding : Encoding
    n_without_target : int
        Number of rows left out because their target is missing.
    notes : tuple of str
        What the reader found out about the file that a user may want to know.
    is_quantity : bool
        Whether y is a quantity.
    offsets : Offsets
        What is known of the rows beforehand.
    """

    source: str
    target: str
    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    encoding: Encoding
    n_without_target: int
    notes: tuple[str, ...] = ()
    is_quantity: bool = False
    offsets: Offsets = NO_OFFSETS


def read_training_data(arguments: argparse.Namespace) -> TrainingData:
    """The table that the options name, as features, targets and weights.

    Raises
    ------
    InputError
        If a model cannot be trained on it as the options say.
    """
    table, target = _table_and_target(arguments)
    choice = choice_of(table, target, arguments)
    left_out, told = find_index(table, choice.candidates)
    n_rows, (table, missing) = table.n_rows, with_target(table, target_of(table, choice))
    column = target_of(table, choice)
    asked = asks_for_quantity(arguments)
    of_quantity = is_quantity(column, table.source) if asked is None else asked
    values = (target_numbers if of_quantity else target_labels)(column, table.source)
    n_missing = int(np.count_nonzero(missing))
    if n_missing and not arguments.drop_missing_target:  # last: no option mends the rest
        raise InputError(
            f"{table.source}: the target is missing in {counted(n_missing, 'row')} of "
            f"{thousands(n_rows)}, first in row {thousands(int(np.argmax(missing)) + 1)}. "
            "Leave them out with --drop-missing-target; `gpustump help text` says what counts as "
            "missing, such as NA and None."
        )
    weights = choice.columns.weights(table)
    if not arguments.quiet:
        for warning in (*told, *(f"{table.source}: {own}" for own in table.warnings)):
            tell(warning)
    positions = [j for j in choice.candidates if j not in left_out]
    if not positions:
        raise InputError(f"{table.source}: no column is left to learn from.")
    learnt = learn_encoding(table, positions, choice.forced)
    encoding = replace(
        learnt,
        columns=tuple(
            replace(own, date_order=table.date_orders.get(own.position)) for own in learnt.columns
        ),
        missing=choice.missing,
        text_encoding=arguments.encoding,
        decimals=arguments.decimal or table.decimals,
        first_index=table.first_index,
    )
    with as_input_error():
        X, _ = encode(encoding, table)
    return TrainingData(
        *(table.source, column.name, X, values, weights, encoding, n_missing, table.notes),
        is_quantity=of_quantity,
        offsets=choice.columns.offsets(table),
    )


def _table_and_target(arguments: argparse.Namespace) -> tuple[InputTable, str]:
    """The table, in which the user's words for missing values are missing, and its target."""
    if arguments.data is None:
        for option in ("target", "weight", "exposure", "init_score", "feature_names"):
            if getattr(arguments, option) is not None:
                raise InputError(
                    f"--{option.replace('_', '-')} needs DATA, the name of a file. (Without DATA "
                    "the breast-cancer data is used, whose target is known.)"
                )
        return breast_cancer()
    table = _file_of(arguments)
    return table, arguments.target if table.first_index is None else TARGET


_OF_TEXT = ("decimal", "date_order", "encoding")
_OF_COLUMNS = (
    "target", "weight", "exposure", "init_score", "drop", "categorical", "numeric", "missing",
)  # fmt: skip


def _file_of(arguments: argparse.Namespace) -> InputTable:
    """What the file holds, where the user's words for missing values are missing."""

    def choose(header: InputTable) -> Wanted:
        if header.first_index is not None:
            why = "each line of svmlight's format is a target and features, all of them numbers"
            _refuse(arguments, (*_OF_COLUMNS, *_OF_TEXT), why)
            return everything(header)
        if holds_values(header.source):
            _refuse(arguments, _OF_TEXT, "its format has numbers, times and text as they are")
        if arguments.feature_names is not None:
            raise InputError(
                "--feature-names is for files in svmlight's format, .svm; other tables hold the "
                "names of their columns themselves."
            )
        if arguments.target is None:
            raise InputError(_question_about_target(header))
        choice = choice_of(header, arguments.target, arguments)
        kinds = dict.fromkeys(choice.forced.text, TEXT)
        kinds |= dict.fromkeys(choice.forced.numbers, NUMBER)
        orders = dict.fromkeys(range(len(header.columns)), arguments.date_order)
        needed = {*choice.candidates, *choice.columns.places(header)}
        skipped = frozenset(range(len(header.columns))) - needed
        return Wanted(skipped, kinds, orders if arguments.date_order else {})

    words = _missing_words(arguments)
    names = None
    if arguments.feature_names is not None:
        with text_file(arguments.feature_names) as file:
            names = read_names(file)
    request = Request(
        choose, arguments.encoding, None, arguments.decimal, words, feature_names=names
    )
    return words_removed(read_table(arguments.data, request), words)


def _refuse(arguments: argparse.Namespace, options: Iterable[str], why: str) -> None:
    """Refuse options that mean nothing for the format of the table."""
    for name in options:
        if getattr(arguments, name):
            raise InputError(
                f"--{name.replace('_', '-')} is not for {shown_name(arguments.data)}: {why}. Leave "
                "it out."
            )


def _question_about_target(table: InputTable) -> str:
    names = table.vectors or (table.names if table.named else [])
    hint = "Columns count from 0; -1 is the last."
    if names:
        hint = f"{table.source} has {listed(names)}."
    return f"--target COLUMN is needed: which column is to be predicted? {hint}"


def words_removed(table: InputTable, words: tuple[str, ...]) -> InputTable:
    """The table with missing values in place of the user's words for them."""
    return cast(InputTable, without_words(table, words))


BREAST_CANCER_TARGET = "diagnosis"


def breast_cancer() -> tuple[InputTable, str]:
    """The table that is used without DATA, and its target."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    labels = ArrayColumn(
        BREAST_CANCER_TARGET, np.asarray(data.target_names)[data.target].astype(str)
    )
    names = [str(name) for name in data.feature_names]
    source = "breast cancer, from scikit-learn"
    return table_of(source, data.data, names, {labels.name: labels}), labels.name


@dataclass(frozen=True)
class Choice:
    """What the options say of a table's columns.

    Attributes
    ----------
    columns : OtherColumns
    candidates : tuple of int
        The positions of the other columns, which may become features, without those to drop.
    forced : Forced
    missing : tuple of str
        Words for missing values.
    """

    columns: OtherColumns
    candidates: tuple[int, ...]
    forced: Forced
    missing: tuple[str, ...]


def choice_of(table: InputTable, target: str, arguments: argparse.Namespace) -> Choice:
    """What the options say; refuses columns that do not exist, and options that disagree."""
    columns = OtherColumns.of_options(arguments)._replace(target=target)
    others = columns.places(table)
    column, target_at = columns.target_in(table)
    dropped = _positions(table, arguments.drop, "--drop")
    text = _positions(table, arguments.categorical, "--categorical")
    numbers = _positions(table, arguments.numeric, "--numeric")
    for option, positions in ("--drop", dropped), ("--numeric", numbers):
        if target_at in positions:
            raise InputError(
                f"{option} and --target both name {quoted(column.name)}; the target is never a "
                "feature."
            )
    for position in sorted(text & numbers):
        name = quoted(table.names[position])
        raise InputError(f"--categorical and --numeric both name {name}.")
    candidates = tuple(j for j in range(len(table.columns)) if j not in others | dropped)
    forced = Forced(text, numbers, arguments.categories == "sets")
    return Choice(columns, candidates, forced, _missing_words(arguments))


def _positions(table: InputTable, options: list[str], option: str) -> frozenset[int]:
    """The positions of all columns that an option names."""
    found = set()
    for text in options:
        is_one_name = table.named and text in table.names  # a name may hold a comma itself
        names = [text] if is_one_name else [own.strip() for own in text.split(",") if own.strip()]
        found |= {table.position(name, option) for name in names}
    return frozenset(found)


def _missing_words(arguments: argparse.Namespace) -> tuple[str, ...]:
    return tuple(sorted({word.strip() for word in arguments.missing} - {""}))


def target_of(table: InputTable, choice: Choice) -> Column:
    """The column or vector that holds the target."""
    column, at = choice.columns.target_in(table)
    return as_read(column, at, choice.missing, is_text=at in choice.forced.text)


def as_read(column: Column, place: int | None, words: tuple[str, ...], *, is_text: bool) -> Column:
    """The target, of which words were not removed if it is a vector, as text if it shall be."""
    if place is None and words:
        return WithoutWords(column, words)
    return AsText(column) if is_text and column.kind in NUMERIC and place is not None else column


def with_target(table: InputTable, target: Column) -> tuple[InputTable, np.ndarray]:
    """The rows whose target is known, and where it is missing, bool (n_rows,).

    Raises
    ------
    InputError
        If it is known of no row.
    """
    missing = target.missing()
    if missing.all():
        raise InputError(f"{table.source}: the target {quoted(target.name)} is empty.")
    return (table.with_rows(~missing) if missing.any() else table), missing


def split(data: TrainingData, share: float, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
    """The numbers of the rows to train on, and of a share that is held out, if it is not 0.

    Raises
    ------
    InputError
        If one of the parts would lack a class, or have no row.
    """
    rows, held_out = split_rows(data, share, seed)
    if held_out is not None and data.weights is not None and not data.is_quantity:
        counts = data.weights > 0.0
        lost = np.setdiff1d(data.y[held_out][counts[held_out]], data.y[rows][counts[rows]])
        if len(lost):
            raise InputError(
                f"the rows of the class {listed(lost.tolist())} that have a weight are all held "
                "out; choose another --seed, or --test-size 0."
            )
    return rows, held_out


def split_rows(data: TrainingData, share: float, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
    """The numbers of the rows of both parts, sorted; see `split`."""
    if share == 0.0:
        return np.arange(len(data.y)), None
    from sklearn.model_selection import train_test_split

    labels = None if data.is_quantity else data.y
    try:
        rows, held_out = train_test_split(
            np.arange(len(data.y)), test_size=share, random_state=seed, stratify=labels
        )
    except ValueError as error:
        raise InputError(
            f"the rows cannot be split by --test-size {share:g}: {shortened(str(error), 200)}. 0 "
            "holds out none."
        ) from error
    return np.sort(rows), np.sort(held_out)


def held_out_in_training(details: Mapping[str, Any]) -> tuple[float, int] | None:
    """The share of the rows that `train` held out, and the seed of the choice, as a model's details
    hold them; None if another program trained the model.

    Raises
    ------
    InputError
        If the details hold something that `train` does not write.
    """
    if "training" not in details:
        return None
    found = details["training"]
    if isinstance(found, Mapping):
        with contextlib.suppress(TypeError, ValueError):
            share = check_real(found.get("test_size"), "test_size", least=0.0)
            seed = check_count(found.get("seed"), "seed", least=0, most=2**32 - 1)
            if share < 1.0:
                return share, seed
    raise InputError(
        "the training in the model's details must have a test_size of at least 0 and below 1, and "
        f"a seed of at least 0 and below 2**32; got {shown(found)}."
    )


def weights_of(data: TrainingData, rows: np.ndarray) -> np.ndarray | None:
    """Weights with which a fit on all rows is a fit on some: 0 for the others.

    So the table is not copied.

    Returns
    -------
    ndarray (n_rows,) of float64, or None
        None if these are all rows, and there are no weights.
    """
    if len(rows) == len(data.y):
        return data.weights
    weights = np.zeros(len(data.y))
    weights[rows] = 1.0 if data.weights is None else data.weights[rows]
    return weights


_CONSTRAINTS = {"1": 1, "+1": 1, "-1": -1, "0": 0}


def constraints_of(data: TrainingData, options: Sequence[str]) -> dict[str, int]:
    """The constraints that options name, by column; without those that are 0.

    Raises
    ------
    InputError
        If an option is not of the form NAME=NUMBER, names a column that is not one of the features
        or names it twice, or if the target has more than two classes.
    """
    columns = {column.name: column for column in data.encoding.columns}
    found: dict[str, int] = {}
    for option in options:
        is_one = option.rpartition("=")[0] in columns  # a name may hold commas and equals signs
        for text in [option] if is_one else option.split(","):
            name, _, number = text.rpartition("=")
            if number.strip() not in _CONSTRAINTS:
                raise InputError(
                    f"--monotone {quoted(option)} is not of the form COL=1 or COL=-1, with commas "
                    "between several. 1: the score must not fall as the column rises; -1: it must "
                    "not rise."
                )
            name = name if name in columns else name.strip()
            _check_column(name, columns, data)
            if name in found:
                raise InputError(f"--monotone names {quoted(name)} twice.")
            found[name] = _CONSTRAINTS[number.strip()]
    constraints = {name: number for name, number in found.items() if number}
    n_classes = 0 if data.is_quantity else len(np.unique(data.y))
    if constraints and n_classes > 2:
        raise InputError(
            f"--monotone is for two classes; the target {quoted(data.target)} has {n_classes}."
        )
    return constraints


def _check_column(name: str, columns: Mapping[str, InputColumn], data: TrainingData) -> None:
    column = columns.get(name)
    if column is None:
        raise InputError(
            f"--monotone names {quoted(name)}, which is not a feature of {data.source}."
            f"{suggestion(name, [*columns])}"
        )
    if column.kind in ("category", NUMBERED):
        raise InputError(
            f"--monotone names {quoted(name)}, a column of text, whose values have no order. Take "
            "a column of numbers."
        )


def by_feature(encoding: Encoding, constraints: Mapping[str, int]) -> list[int] | None:
    """The constraint of each feature, as the estimators take them; None if there is none."""
    if not constraints:
        return None
    return [constraints.get(column.name, 0) for column in encoding.columns for _ in column.features]


def as_text(constraints: Mapping[str, int]) -> str:
    """Constraints as options name them, for the summary and the report."""
    return ", ".join(f"{shortened(name)}={number}" for name, number in constraints.items())
