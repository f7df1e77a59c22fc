"""A model as one SELECT: for every row of a table its label, its scores and its probabilities; of a
quantity its prediction and its score.

Scores are sums of whole numbers, which CASE expressions choose, in BIGINT, so they are exact. The
columns are those of the user's own table, text and dates as they are.

DuckDB and PostgreSQL have NaN, which they sort above infinity; here it is missing, as NULL is.
SQLite has no NaN. Its columns may hold text where numbers are wanted, which its CAST turns into 0;
here such a value makes the scores of its row NULL. SQLite may read a decimal fraction wrong in the
last bit, so thresholds are written as quotients of whole numbers, which are exact.

SQLite takes expressions of 1000 levels at most, so CASE expressions and sums stay shallow.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from gpustump.data.readable import is_text, printable, quoted, shown
from gpustump.exports.tables import (
    Column,
    ExportTables,
    PairSteps,
    Steps,
    export_tables,
    header_lines,
)
from gpustump.model.classes import Label

_START = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_LARGEST_POWER = 2**53
"""Every database reads whole numbers up to it exactly."""

_MOST_SECONDS = 10**12
"""More seconds than 9999 years have. Far beyond, a float is the same for too many microseconds."""

TYPES_OF_TIME = {"date": "DATE", "datetime": "TIMESTAMP", "time": "TIME"}
"""The types of SQL for kinds of columns."""


NUMBER = "DOUBLE PRECISION"
"""The type of numbers. All three databases know it, and TEXT."""


@dataclass(frozen=True)
class Dialect:
    """The SQL of one database.

    Attributes
    ----------
    name : str
    bytewise : str
        Stands after text, to have it compared byte by byte.
    longest : int
        Names are cut after this number of bytes of UTF-8; 0 if they are not cut.
    """

    name: str
    bytewise: str = ""
    longest: int = 0

    def cut(self, name: str) -> str:
        """The name as the database has it, without the half of a character at its end."""
        return name.encode()[: self.longest or None].decode(errors="ignore")

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is SQLite, where a value need not have its column's type."""
        return self.name == "SQLite"


DIALECTS = {
    "sqlite": Dialect("SQLite", bytewise=" COLLATE BINARY"),
    "duckdb": Dialect("DuckDB"),
    "postgresql": Dialect("PostgreSQL", bytewise=' COLLATE "C"', longest=63),
}
"""The dialects by the names that users give."""


@dataclass(frozen=True)
class _Query:
    """What all parts of a query need: the model, the database's SQL, and the user's name."""

    tables: ExportTables
    dialect: Dialect
    name: str

    def output(self, kind: str, place: int | None = None) -> str:
        """The name of a column of the result."""
        return identifier(f"{self.name}_{kind}" + ("" if place is None else f"_{place}"))

    @property
    def scores(self) -> list[str]:
        """The names of the scores."""
        if self.tables.model.has_one_score:
            return [self.output("score")]
        return [self.output("score", place) for place in range(self.tables.model.n_outputs)]


def to_sql(
    model: Any,
    dialect: str = "sqlite",
    *,
    table: str = "data",
    name: str = "gpustump",
    probabilities: bool | None = None,
) -> str:
    """The model as one SELECT, which gives every row of a table with its label and scores.

    The result has all columns of the table, then `NAME_score` (two classes) or `NAME_score_0`,
    `NAME_score_1`, ..., `NAME_label`, and `NAME_probability_0`, ...; of a quantity `NAME_score` and
    `NAME_prediction`. If the table already has a column of one of these names, running the query is
    an error. Scores are BIGINT, whole numbers of 2**-36 (of a quantity, of a power of two that the
    first lines name), and exact. NULL counts as missing, and so does NaN where the database has it.

    Parameters
    ----------
    model : StumpEnsemble, or a fitted estimator
    dialect : "sqlite", "duckdb" or "postgresql"
    table : str
        The name of the table.
    name : str
        How the names of the new columns begin.
    probabilities : bool, optional
        Whether to compute them and, for counts and costs, predictions, which are exponentials, too.
        By default they are computed except for SQLite, which may lack the function exp.

    Returns
    -------
    str

    Raises
    ------
    TypeError
        If model is neither a StumpEnsemble nor a fitted estimator, or a name is not text.
    ValueError
        If the dialect is none of the three, the database cannot hold a name, a label or a text of
        the model, or the model has votes or labels that a model file cannot hold.

    Examples
    --------
    >>> import sqlite3
    >>> from gpustump import AdaBoostClassifier
    >>> from gpustump.exports import to_sql
    >>> clf = AdaBoostClassifier().fit([[1], [2], [3]], ["no", "yes", "yes"])
    >>> base = sqlite3.connect(":memory:")
    >>> _ = base.execute("CREATE TABLE data (x0 REAL)")
    >>> _ = base.execute("INSERT INTO data VALUES (1.2), (2.9)")
    >>> [(x, label) for x, score, label in base.execute(to_sql(clf))]
    [(1.2, 'no'), (2.9, 'yes')]
    >>> base.close()
    """
    if not is_text(dialect) or dialect not in DIALECTS:
        raise ValueError(f"dialect must be {', '.join(DIALECTS)}; got {shown(dialect)}.")
    spelling = DIALECTS[dialect]
    for parameter, given in (("table", table), ("name", name)):
        if not isinstance(given, str):
            raise TypeError(f"{parameter} must be a str; got {shown(given)}.")
    query = _Query(export_tables(model), spelling, name)
    _check_names(query, table)
    with_probabilities = not spelling.is_sqlite if probabilities is None else probabilities
    lines = header_lines(query.tables, f"SQL of {spelling.name}", printable)
    answers = _answers(query, with_exponentials=with_probabilities)
    usage = _usage(query, [*answers][:1])
    comment = "".join(f"-- {line}".rstrip() + "\n" for line in [*lines, "", *usage])
    outer = ["scored.*", *(f"{own} AS {name}" for name, own in answers.items())]
    inner = [f"{_score(query, output)} AS {own}" for output, own in enumerate(query.scores)]
    separated = ",\n  "
    return (
        f"{comment}\nSELECT {separated.join(outer)}\nFROM (\n  SELECT given.*,\n    "
        f"{f'{separated}  '.join(inner)}\n  FROM {identifier(table)} AS given\n"
        f"{_refusal([*query.scores, *answers])}) AS scored\n"
    )


def _check_names(query: _Query, table: str) -> None:
    """Refuse names that the database cannot tell apart, or cannot have."""
    identifier(table)
    longest = f"{query.name}_probability_{len(query.tables.classes)}"
    identifier(longest)
    if query.dialect.cut(longest) != longest:
        raise ValueError(
            f"name is too long: {query.dialect.name} cuts names after {query.dialect.longest} "
            "bytes, so it would take the new columns for one."
        )
    known: dict[str, str] = {}
    for column in query.tables.used:
        identifier(column.name)
        own = _folded(column.name, query.dialect)
        if own in known:
            raise ValueError(
                f"{query.dialect.name} takes {quoted(known[own])} and {quoted(column.name)} for "
                "one column; rename one of them and train again."
            )
        known[own] = column.name
        if own.startswith(_folded(query.name, query.dialect) + "_"):
            raise ValueError(
                f"name must not begin the name of a column; {query.name!r} begins "
                f"{quoted(column.name)}."
            )


def _folded(name: str, dialect: Dialect) -> str:
    """A form that is the same for all names that the database takes for this one."""
    return dialect.cut(name) if dialect.longest else name.lower()


def _score(query: _Query, output: int) -> str:
    """The sum of what all columns add to a score."""
    start = query.tables.constant[output]
    terms = []
    for steps in query.tables.steps:
        own = steps.of_output(output)
        if own.is_constant:
            start += int(own.units[0, 0])
        else:
            votes = list(map(str, own.units[:, 0].tolist()))
            terms.append(f"CAST({_chosen(query, own, votes)} AS BIGINT)")
    terms += [_cell(query, pair, output) for pair in query.tables.pairs]
    return added([f"CAST({start} AS BIGINT)", *terms], "\n     ")


def _cell(query: _Query, pair: PairSteps, output: int) -> str:
    """What a pair of columns adds to a score.

    The numbers in a row of its table, all of one width, are one text, from which the number in the
    column is cut. A CASE with a branch for each cell would be many times as long, and slow to read.
    """
    units = [list(map(str, row)) for row in pair.units[..., output].tolist()]
    width = 1 + max(len(unit) for row in units for unit in row)
    rows = [f"'{''.join(unit.rjust(width) for unit in row)}'" for row in units]
    starts = [str(1 + width * place) for place in range(len(units[0]))]
    row = _chosen(query, pair.first, [rows[place] for place in pair.first.units[:, 0]])
    start = _chosen(query, pair.second, [starts[place] for place in pair.second.units[:, 0]])
    return f"CAST(substr({row},\n      {start}, {width}) AS BIGINT)"


_TEXT_OF_TIME = {
    "date": "date({})",
    "datetime": "strftime('%Y-%m-%d %H:%M:%f', {}) || '000'",
    "time": "strftime('%H:%M:%f', {}) || '000'",
}
"""How SQLite, which has no types for times, writes them as text that sorts as they do."""


def _chosen(query: _Query, steps: Steps, results: Sequence[str]) -> str:
    """The one of the results, of each step and of missing values, that a column's value has."""
    column, dialect = query.tables.columns[steps.column], query.dialect
    given = f"given.{identifier(column.name)}"
    *of_steps, missing = results
    if column.is_text:
        return _chosen_by_text(column, steps, results, dialect)
    is_missing, refused = f"{given} IS NULL", ""
    if column.kind in TYPES_OF_TIME:
        # Dates and times are compared as such: a threshold becomes the last one not after it.
        ends = [moment(end, column, dialect) for end in steps.thresholds[:-1].tolist()]
        value = f"CAST({given} AS {TYPES_OF_TIME[column.kind]})"
        if dialect.is_sqlite:
            value = _TEXT_OF_TIME[column.kind].format(given)
            refused = f"typeof({given}) <> 'text' OR {value} IS NULL"
    else:
        ends = [number(end, dialect) for end in steps.thresholds.tolist()]
        value = f"CAST({given} AS {NUMBER})"
        if dialect.name == "PostgreSQL" and column.kind == "boolean":
            value = f"CAST(CAST({given} AS INTEGER) AS {NUMBER})"
        if dialect.is_sqlite:
            refused = f"typeof({given}) IN ('text', 'blob')"
        else:
            is_missing += f" OR {value} = CAST('NaN' AS {NUMBER})"
    found = stairs(lambda step: f"{value} <= {ends[step]}", of_steps)
    others = [f"WHEN {refused} THEN NULL"] if refused else []
    return case(f"WHEN {is_missing} THEN {missing}", *others, f"ELSE {found}")


def _chosen_by_text(column: Column, steps: Steps, results: Sequence[str], dialect: Dialect) -> str:
    """One branch for each value that has another result than an unknown value."""
    given = f"given.{identifier(column.name)}"
    value = f"CAST({given} AS TEXT){dialect.bytewise}"
    codes = np.arange(-1.0, len(column.values))
    unknown, *of_values = (results[step] for step in np.searchsorted(steps.thresholds, codes))
    gone = [f"{value} = {text(word, dialect)}" for word in column.words]
    is_missing = " OR ".join([f"{given} IS NULL", *gone])
    branches = [
        f"WHEN {value} = {text(known, dialect)} THEN {result}"
        for known, result in zip(column.values, of_values, strict=True)
        if result != unknown
    ]
    return case(f"WHEN {is_missing} THEN {results[-1]}", *branches, f"ELSE {unknown}")


def _answers(query: _Query, *, with_exponentials: bool) -> dict[str, str]:
    """What follows from the scores, by the names of the columns."""
    if not query.tables.model.is_regression:
        shares = _probabilities(query) if with_exponentials else []
        of_shares = {query.output("probability", place): own for place, own in enumerate(shares)}
        return {query.output("label"): _label(query)} | of_shares
    unit = number(math.ldexp(1.0, query.tables.exponent), query.dialect)
    prediction = f"CAST(scored.{query.scores[0]} AS {NUMBER}) * {unit}"
    if query.tables.model.link == "log":
        if not with_exponentials:
            return {}
        prediction = _exponential(query, prediction)
    return {query.output("prediction"): prediction}


def _label(query: _Query) -> str:
    """The label of the first of the largest scores."""
    labels = [_literal(label, query.dialect) for label in query.tables.classes]
    scores = [f"scored.{score}" for score in query.scores]
    if query.tables.model.is_binary:
        # The score is named once, as SQLite copies it to wherever it is named.
        no, yes = (boolean(value, query.dialect) for value in (False, True))
        return f"CASE {scores[0]} > 0 WHEN {yes} THEN {labels[1]} WHEN {no} THEN {labels[0]} END"
    branches = [f" WHEN {own} THEN {label}" for own, label in zip(scores, labels, strict=True)]
    return f"CASE {largest(scores, query.dialect)}{''.join(branches)} END"


def _literal(label: Label, dialect: Dialect) -> str:
    if isinstance(label, bool):
        return boolean(label, dialect)
    if isinstance(label, str):
        return text(label, dialect)
    if isinstance(label, float):
        return number(label, dialect)
    if label >= 2**63:
        raise ValueError(f"the label {label} is no BIGINT of SQL; export to another language.")
    return f"CAST('{label}' AS BIGINT)"  # as text, since the digits of -2**63 alone are no BIGINT


def _probabilities(query: _Query) -> list[str]:
    """For two classes 1 / (1 + exp(2 F)) and 1 / (1 + exp(-2 F)); where exp is infinite, this is 0.

    For more 1 / the sum of the other classes' shares of the class's own.
    """
    scores = [f"scored.{score}" for score in query.scores]
    if query.tables.model.is_binary:
        twice = _scaled(query, scores[0])
        return [f"1e0 / (1e0 + {_exponential(query, sign + twice)})" for sign in ("", "-")]
    share = _softmax_share if query.tables.model.link == "softmax" else _logistic_share
    return [f"1e0 / ({added([share(query, other, own) for other in scores])})" for own in scores]


def _softmax_share(query: _Query, other: str, own: str) -> str:
    return "1e0" if other == own else _exponential(query, _scaled(query, f"({other} - {own})"))


def _logistic_share(query: _Query, other: str, own: str) -> str:
    """1 / (1 + exp(-2 F)) of another class, divided by that of this class."""
    if other == own:
        return "1e0"

    def tail(score: str) -> str:
        return f"(1e0 + {_exponential(query, f'-abs({_scaled(query, score)})')})"

    def below(score: str) -> str:
        return f"CASE WHEN {score} < 0 THEN {_scaled(query, score)} ELSE 0e0 END"

    return f"{_exponential(query, f'{below(other)} - {below(own)}')} * {tail(own)} / {tail(other)}"


def _scaled(query: _Query, score: str) -> str:
    """Twice a score as a number."""
    return f"CAST({score} AS {NUMBER}) / 34359738368e0"


def _exponential(query: _Query, exponent: str) -> str:
    """exp, kept from results that PostgreSQL refuses: too large, or too small."""
    if query.dialect.name == "PostgreSQL":
        exponent = f"greatest(-700e0, least(700e0, {exponent}))"
    return f"exp({exponent})"


def _refusal(names: list[str]) -> str:
    """A join with one row, which is an error if the table has a column of the result already.

    The names in its condition are ambiguous then. Without it, SQLite and DuckDB take the scores
    that the table holds, of an older model perhaps, for those of this one.
    """
    made = ", ".join(f"0 AS {name}" for name in names)
    return f"  JOIN (SELECT {made}) AS made\n    ON {added(names)} = 0\n"


def _usage(query: _Query, answers: list[str]) -> list[str]:
    names = [*query.scores[:3], *(["..."] if len(query.scores) > 3 else []), *answers]
    why = "Thresholds are quotients: SQLite may read a decimal fraction wrong in the last bit."
    return [
        f"The result has the table's columns, {printable(', '.join(names))}.",
        "NULL is missing. Add a WHERE at the end for some of the rows.",
        "If the table has a column of one of these names, the JOIN makes it ambiguous: an error.",
        *([why] if query.dialect.is_sqlite else []),
    ]


def identifier(name: str) -> str:
    """A name in double quotes.

    Raises
    ------
    ValueError
        If no database can have it.
    """
    if not is_text(name) or not name or "\0" in name:
        raise ValueError(f"no column or table in SQL can be called {shown(name)}; rename it.")
    return '"' + name.replace('"', '""') + '"'


def text(value: str, dialect: Dialect) -> str:
    """Text as a literal; characters that cannot be printed are given by their numbers.

    Raises
    ------
    ValueError
        If the database has no such text.
    """
    if "\0" in value and not dialect.is_sqlite:
        raise ValueError(f"{dialect.name} has no text with the character NUL; got {shown(value)}.")
    pieces: list[str] = []
    character_of = "char" if dialect.is_sqlite else "chr"
    for is_plain, run in itertools.groupby(value, str.isprintable):
        if is_plain:
            pieces.append("'" + "".join(run).replace("'", "''") + "'")
        else:
            pieces += [f"{character_of}({ord(character)})" for character in run]
    return f"({' || '.join(pieces)})" if len(pieces) > 1 else "".join(pieces) or "''"


def number(value: float, dialect: Dialect) -> str:
    """A float64 as a literal or an expression with exactly this value."""
    if not dialect.is_sqlite:
        return f"CAST('{value!r}' AS {NUMBER})"
    if math.isinf(value):
        return "9e999" if value > 0 else "-9e999"
    return _quotient(value)


def boolean(value: bool, dialect: Dialect) -> str:
    """A truth value; SQLite would take the word TRUE for a column of that name."""
    return str(int(value)) if dialect.is_sqlite else str(value).upper()


def _quotient(value: float) -> str:
    """A float as whole numbers of 16 digits at most, multiplied or divided: each step is exact."""
    ratio = Fraction(value)
    top, bottom = ratio.numerator, ratio.denominator
    factors = ""
    twos = (top & -top).bit_length() - 1 if abs(top) >= _LARGEST_POWER else 0
    top >>= twos
    while twos:
        step = min(twos, _LARGEST_POWER.bit_length() - 1)
        factors += f" * {2**step}e0"
        twos -= step
    while bottom > 1:
        divisor = min(bottom, _LARGEST_POWER)
        factors += f" / {divisor}e0"
        bottom //= divisor
    return f"({top}e0{factors})" if factors else f"{top}e0"


def moment(value: float, column: Column, dialect: Dialect) -> str:
    """The last date, datetime or time of day that is not after a number of days or seconds.

    Raises
    ------
    ValueError
        If Python has none: the years are 1 to 9999.
    """
    kind = column.kind
    try:
        at = _START + _last_tick(value, kind) * _MICROSECOND
    except OverflowError:
        at = None
    if at is None or (kind == "time" and at.date() != _START.date()):
        raise ValueError(
            f"column {quoted(column.name)}: SQL has no {kind} for the threshold {value!r}; export "
            "to ONNX or C."
        )
    if kind == "date":
        found = f"'{at.date().isoformat()}'"
    elif kind == "time":
        found = f"'{at.time().isoformat('microseconds')}'"
    else:
        found = f"'{at.isoformat(' ', 'microseconds')}'"
    return found if dialect.is_sqlite else f"{TYPES_OF_TIME[kind]} {found}"


def _last_tick(value: float, kind: str) -> int:
    """The largest whole number of microseconds whose float is at most a number of days or seconds.

    Seconds are microseconds / 1e6, rounded; so the neighbours of the exact number are tried.
    """
    if kind == "date":
        return math.floor(value) * 86_400_000_000
    if abs(value) > _MOST_SECONDS:
        raise OverflowError
    ticks = math.floor(Fraction(value) * 10**6)
    while float(ticks + 1) / 1e6 <= value:
        ticks += 1
    while float(ticks) / 1e6 > value:
        ticks -= 1
    return ticks


_WIDTH = 16
"""The most branches in one CASE; more are nested, so that few comparisons are made for a value."""

_TERMS = 32
"""The most terms in one pair of parentheses."""


def nested(parts: Sequence[Any], width: int, join: Callable[[Any], Any], most: int = 1) -> Any:
    """Few parts from many: groups of neighbours are joined, then groups of these, and so on."""
    while len(parts) > most:
        parts = [join(parts[i : i + width]) for i in range(0, len(parts), width)]
    return parts


def stairs(below: Callable[[int], str], results: Sequence[str]) -> str:
    """A CASE for a value on one of several steps.

    Parameters
    ----------
    below : callable
        Makes the condition that the value lies on a step, given by its number, if it lies on none
        before.
    results : sequence of str
        The result of each step; that of the last step is for all other values.
    """

    def joined(group: Sequence[tuple[int, str]]) -> tuple[int, str]:
        *first, (number, last) = group
        branches = [f"WHEN {below(step)} THEN {result}" for step, result in first]
        return number, case(*branches, f"ELSE {last}") if first else last

    ((_, found),) = nested(list(enumerate(results)), _WIDTH, joined)
    return str(found)


_NEW_LINE = "\n        "


def case(*branches: str) -> str:
    """A CASE with a line for each branch."""
    return f"CASE\n        {_NEW_LINE.join(branches)} END"


def added(terms: Sequence[str], between: str = "") -> str:
    """A sum of terms, in parentheses within parentheses where there are many."""
    plus = f" +{between} "
    return plus.join(nested(terms, _TERMS, lambda group: f"({plus.join(group)})", most=_TERMS))


def largest(values: Sequence[str], dialect: Dialect) -> str:
    """The largest of two values or more; the calls are nested, with `_TERMS` values at most."""
    function = "max" if dialect.is_sqlite else "greatest"

    def joined(group: Sequence[str]) -> str:
        return f"{function}({', '.join(group)})" if len(group) > 1 else group[0]

    (found,) = nested(values, _TERMS, joined)
    return str(found)
