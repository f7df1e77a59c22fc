"""What the fields of a column of text are: numbers, booleans, dates, times, or words.

Fields are stripped of blanks. A column is of numbers if all its fields are numbers, except those
that stand for missing values. The same holds for booleans, dates and times. Numbers may have a sign
of a currency or of percent, the same one throughout, and marks between thousands.

A date such as 03/04/2019 begins with a day or a month, one such as 03-04-19 perhaps with a year. A
column is read in the first order in which all its values are dates: day first, month first, year
first. If they are in another order, too, the user is warned. With points, as in 31.12.2024, the day
comes first.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from gpustump.cli.errors import InputError
from gpustump.cli.options import CODE_WIDTH
from gpustump.data.parameters import DATE_ORDERS
from gpustump.data.readable import quoted

MISSING_WORDS = ("NA", "N/A", "NaN", "nan", "null", "NULL", "None")
"""Missing values in every column, beside empty fields."""

_MARKERS = (
    "? - -- --- . .. ... * na n/a n.a. nan -nan <na> #n/a #na #null! #div/0! #value! #ref! #num! "
    "1.#ind -1.#ind 1.#qnan -1.#qnan none null nil missing unknown undefined"
)
MARKERS = frozenset([*_MARKERS.split(), "#n/a n/a", "not available"])
"""Missing values in columns whose other fields are numbers, dates, ...; in lower case."""

_WRITTEN = (
    r"^([-+]?)\s*([$€£¥]?)\s*([-+]?)"
    r"((?:[0-9]+|[0-9]{1,3}(?:[BETWEEN][0-9]{3})+)?(?:MARK[0-9]*)?(?:[eE][-+]?[0-9]+)?|inf|Infinity)"
    r"\s*([$€£¥%]?)$"
)
"""A number as people write it: signs before and after that of a currency, digits, and a unit."""

_BLANKS = "'’\\s"
"""What may stand between thousands, beside the mark that is not the decimal one."""

_THOUSANDS = r"^[1-9][0-9]{0,2},[0-9]{3}$"

_DATE_OR_TIME = r"^(?:[0-9]{1,4}[-/.][0-9]{1,2}|[0-9]{1,2}:[0-9]{2})"
_LOOKED_AT = 100


class Rules(NamedTuple):
    """How fields are read.

    Attributes
    ----------
    decimals : str
        The decimal marks, ".", "," or both, but not both in one column; the likely one first.
    missing : tuple of str
        The user's words for missing values.
    date_order : str or None
        How dates begin, where that is known; see `written_dates`.
    """

    decimals: str = "."
    missing: tuple[str, ...] = ()
    date_order: str | None = None

    @property
    def missing_words(self) -> list[str]:
        """What is missing in every column."""
        return ["", *MISSING_WORDS, *self.missing]


class Numbers(NamedTuple):
    """A column as numbers.

    Attributes
    ----------
    values : polars.Series
        Integers if all are integers, else float64.
    is_written : bool
        Whether they have decimal commas, signs, or marks between thousands.
    doubt : str or None
        One of the values, if all commas were read as decimal ones, but may be between thousands.
    """

    values: Any
    is_written: bool = False
    doubt: str | None = None


def plain_numbers(frame: Any, rules: Rules, known: Collection[str]) -> dict[str, Numbers]:
    """The columns of a frame of text that hold numbers or nothing, without blanks and markers.

    All columns are tried together, which polars does in parallel. Those that are `known` to hold
    numbers are no codes.
    """
    import polars as pl

    n_null = _null_counts(frame)
    found = {
        name: Numbers(frame[name].cast(pl.Float64))
        for name, count in n_null.items()
        if count == len(frame)
    }
    if rules.decimals[0] != ".":
        return found
    others = frame.select([name for name in n_null if name not in found])
    likely = _cast(others.head(_LOOKED_AT), pl.Int64)  # saves a try with all rows of the others
    integers = _cast(others.select(list(likely)), pl.Int64)
    floats = _cast(others.drop(list(integers)), pl.Float64)
    numbers = floats | {
        name: values
        for name, values in integers.items()
        if name in known or not _are_codes(frame[name])
    }
    return found | {name: Numbers(values) for name, values in numbers.items()}


def _null_counts(frame: Any) -> dict[str, int]:
    return dict(zip(frame.columns, frame.null_count().row(0), strict=True)) if frame.width else {}


def _cast(frame: Any, dtype: Any) -> dict[str, Any]:
    """The columns that are of this type without any exception."""
    cast = frame.cast(dtype, strict=False)
    before, after = _null_counts(frame), _null_counts(cast)
    return {one.name: one for one in cast.get_columns() if before[one.name] == after[one.name]}


def other_numbers(text: Any, rules: Rules, *, is_known: bool = False) -> Numbers | None:
    """A series of text that `plain_numbers` does not find, as numbers; None if it holds others.

    `is_known` says that the column holds numbers, even if no field here is one.
    """
    import polars as pl

    words = _words(text, rules)
    marked = _null_where(words, _is_marker(words))
    if marked.null_count() == len(marked):
        has_markers = words.null_count() < len(words)
        return Numbers(marked.cast(pl.Float64)) if is_known or not has_markers else None
    if _are_codes(marked) and not is_known:
        return None
    for mark in rules.decimals:
        values = _as_numbers(marked) if mark == "." else None
        found = _written(marked, mark, rules.decimals) if values is None else Numbers(values)
        if found is not None:
            return found
    return None


def _as_numbers(plain: Any) -> Any | None:
    """Text in polars' own form as integers, or else floats; None if some of it is neither."""
    import polars as pl

    for dtype in (pl.Int64, pl.Float64):
        values = plain.cast(dtype, strict=False)
        if values.null_count() == plain.null_count():
            return values
    return None


def _written(marked: Any, mark: str, decimals: str) -> Numbers | None:
    """Numbers as people write them: 102,858.51 or 102.858,51, $5, 74.4%; None if some are not.

    If both marks may be decimal ones, none of them is between thousands: 1,234 could be either.
    """
    is_open = decimals == ".,"
    between = _BLANKS if is_open else _BLANKS + ".,".replace(mark, "")
    form = _WRITTEN.replace("BETWEEN", between).replace("MARK", f"[{mark}]")
    if not marked.drop_nulls().str.contains(form).all():
        return None
    parts = marked.str.extract_groups(form).struct.unnest()
    units = {*(parts["2"] + parts["5"]).drop_nulls()}
    signs = units - {""}
    if len(signs) > 1 or signs - {*"$€£¥%"} or units == {"", "%"}:
        return None
    digits = parts["4"].str.replace_all(f"[{between}]", "").str.replace(mark, ".", literal=True)
    plain = parts["1"] + parts["3"] + digits
    values = _as_numbers(plain)
    if values is None:
        return None
    with_commas = parts["4"].filter(parts["4"].str.contains(",", literal=True))
    is_doubtful = is_open and len(with_commas) and with_commas.str.contains(_THOUSANDS).all()
    is_written = bool((plain != marked).any())
    return Numbers(values, is_written, with_commas[0] if is_doubtful else None)


FIRST = {"dmy": "day", "mdy": "month", "ymd": "year"}

_TIME = r"(?:[ T]+([0-9]{1,2}:[0-9]{2}.*))?$"
_BY_ORDER = {
    "dmy": r"^([0-9]{1,2})[-/.]([0-9]{1,2})[-/.]([0-9]{4}|[0-9]{2})" + _TIME,
    "ymd": r"^([0-9]{4}|[0-9]{2})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})" + _TIME,
}
_BY_ORDER["mdy"] = _BY_ORDER["dmy"]
_OF_ANY_ORDER = (_BY_ORDER["dmy"], r"^([0-9]{2})[-/]([0-9]{1,2})[-/]([0-9]{1,2})" + _TIME)
"""What an order has to be found for; a year of four digits that comes first needs none. With
points, 10.4.1 is a version."""

_TIMES = ("%H:%M:%S%.f", "%H:%M", "%I:%M:%S %p", "%I:%M %p")


class Typed(NamedTuple):
    """A column as booleans, dates, times or text.

    Attributes
    ----------
    values : polars.Series
    date_order : str or None
        How its dates begin, as `data.parameters.DATE_ORDERS` has it, where that is a question.
    doubt : str or None
        One of the dates, if they may begin in another way, too.
    """

    values: Any
    date_order: str | None = None
    doubt: str | None = None


def typed(text: Any, rules: Rules, kind: str | None = None) -> Typed:
    """A whole column of text as booleans, dates or times if it holds them, but not as numbers.

    Parameters
    ----------
    text : polars.Series of String
    rules : Rules
    kind : str or None
        "text" to leave it as text, "number" if the column is known to hold numbers.

    Raises
    ------
    InputError
        If a value is no date in the order of the rules.
    """
    words = _words(text, rules)
    if kind == "text":
        return Typed(words)
    if (booleans := _booleans(words)) is not None:
        return Typed(booleans)
    if (times := times_in(words, rules.date_order)) is not None:
        return times
    return Typed(_null_where(words, _is_marker(words)) if kind == "number" else words)


def _words(text: Any, rules: Rules) -> Any:
    """The fields without blanks around them, null where missing in any column."""
    text = text.str.strip_chars()
    return _null_where(text, text.is_in(rules.missing_words))


def _null_where(series: Any, hits: Any) -> Any:
    """The series with nulls where `hits` is true."""
    import polars as pl

    hits = hits.fill_null(False)
    if not hits.any():
        return series
    return pl.select(pl.when(~hits).then(series).otherwise(None)).to_series()


def _is_marker(words: Any) -> Any:
    return words.str.to_lowercase().is_in(list(MARKERS))


def _are_codes(text: Any) -> bool:
    """Whether whole numbers are codes of one width, some of which begin with 0."""
    widths = text.str.len_bytes()
    width = widths.max()
    if width is None or width < CODE_WIDTH or widths.min() != width:
        return False
    begins_with_0 = bool(text.str.starts_with("0").any())
    return begins_with_0 and bool(text.drop_nulls().str.contains(r"^[0-9]+$").all())


def _booleans(words: Any) -> Any | None:
    small = words.str.to_lowercase()
    is_boolean = small.is_in(["true", "false"])
    if not is_boolean.any():
        return None
    if (is_boolean | _is_marker(words)).all():
        return _null_where(small == "true", ~is_boolean)
    return None


def times_in(words: Any, date_order: str | None) -> Typed | None:
    """A series of text as the dates, times of day, or both, that it holds; None if it holds others.

    polars finds the format by the first value, and reads the others in it. But whether a date
    begins with the day or the month, all values say.

    Raises
    ------
    InputError
        If a value is no date in the order that is known.
    """
    import polars as pl

    values = words.drop_nulls()
    first = values.filter(~_is_marker(values)).head(_LOOKED_AT)
    if not len(first) or not first.str.contains(_DATE_OR_TIME).all():
        return None
    words = _null_where(words, _is_marker(words))
    forms = _OF_ANY_ORDER if date_order is None else (_BY_ORDER[date_order],)
    if any(words.drop_nulls().str.contains(form).all() for form in forms):
        return _dates_in(words, date_order)
    has_years = words.drop_nulls().str.contains("[0-9]{4}").all()  # 9.2.3 is a version
    for method in ("to_date", "to_time", "to_datetime") if has_years else ("to_time",):
        try:
            found = getattr(words.str, method)(strict=False)
        except pl.exceptions.ComputeError:  # no format fits the first value
            continue
        if found.null_count() == words.null_count():
            return Typed(found.alias(words.name))
    return None


def _dates_in(words: Any, order: str | None) -> Typed | None:
    """Text that looks like dates of an order as dates, with or without times, and how they begin;
    None if some of it is no date in any order.

    Parameters
    ----------
    words : polars.Series of String
        Null where there is no value.
    order : str or None
        How the dates begin, where that is known.

    Raises
    ------
    InputError
        If a value is no date in the order that is known.
    """
    found = dict[str, Any]()
    for own in DATE_ORDERS if order is None else (order,):
        if not _parsed(words.head(_LOOKED_AT), own)[0]:  # saves reading all of them
            continue
        are_all, values = _parsed(words, own)
        if are_all:
            found[own] = values
    example = str(words.drop_nulls()[0])
    if found:
        first = next(iter(found))
        has_points = bool(words.drop_nulls().str.contains(r"^[0-9]+\.").all())
        is_sure = order is not None or len(found) == 1 or (first == "dmy" and has_points)
        return Typed(found[first].alias(words.name), first, None if is_sure else example)
    if order is not None:
        values = _parsed(words, order)[1]
        odd = str(words.filter(values.is_null() & words.is_not_null())[0])
        raise InputError(
            f"{quoted(odd)} in column {quoted(words.name)} is no date that begins with the "
            f"{FIRST[order]}, as the option --date-order, or the training table, says."
        )
    return None


def _parsed(words: Any, order: str) -> tuple[bool, Any]:
    """Whether all of a series of text are dates of an order, and they; null where one is none."""
    import polars as pl

    fields = words.str.extract_groups(_BY_ORDER[order]).struct.unnest()
    year, month, day = (fields[str(order.index(part) + 1)] for part in "ymd")
    short = year.str.len_bytes() == 2
    century = pl.select(pl.when(year.cast(int) < 69).then(pl.lit("20")).otherwise(pl.lit("19")))
    whole = pl.select(pl.when(short).then(century.to_series() + year).otherwise(year)).to_series()
    text = whole + "-" + month.str.zfill(2) + "-" + day.str.zfill(2)
    times = fields["4"]
    if times.null_count() == len(times):
        found = text.str.to_date("%Y-%m-%d", strict=False)
    else:
        text = text + " " + times.fill_null("00:00").str.to_uppercase()
        found = text.str.to_datetime(f"%Y-%m-%d {_TIMES[0]}", strict=False)
        for form in _TIMES[1:]:
            found = found.fill_null(text.str.to_datetime(f"%Y-%m-%d {form}", strict=False))
    return found.null_count() == words.null_count(), found
