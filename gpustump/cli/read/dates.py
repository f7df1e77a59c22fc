"""Dates that begin with a day or a month, such as 03/04/2019: which of both, and what day it is.

A value above 12 settles which it is. If a column has none, the day is taken to come first: with
points, as in 31.12.2024, it always does, and otherwise the reader is told to warn.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from gpustump.cli.errors import InputError
from gpustump.data.readable import quoted

FIRST = {"dmy": "day", "mdy": "month", "ymd": "year"}

_TIME = r"(?:[ T]+(\d{1,2}:\d{2}.*))?$"
_BY_ORDER: dict[str | None, str] = {
    "dmy": r"^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4}|\d{2})" + _TIME,
    "ymd": r"^(\d{4}|\d{2})[-/.](\d{1,2})[-/.](\d{1,2})" + _TIME,
}
_BY_ORDER["mdy"] = _BY_ORDER[None] = _BY_ORDER["dmy"]

_TIMES = ("%H:%M:%S%.f", "%H:%M", "%I:%M:%S %p", "%I:%M %p")


class DateOrder(NamedTuple):
    """How the dates of a column begin.

    Attributes
    ----------
    order : str
        One of `data.parameters.DATE_ORDERS`.
    is_sure : bool
        Whether the values, or the user, say so.
    example : str
        One of the values.
    """

    order: str
    is_sure: bool
    example: str


class OtherOrderError(Exception):
    """A value is no date in the order that is known."""

    def __init__(self, value: str, order: str) -> None:
        super().__init__(value, order)
        self.value, self.order = value, order


@contextlib.contextmanager
def naming_column(source: str, name: str) -> Iterator[None]:
    """Name the column and the file in which a value is no date in the order that is known."""
    try:
        yield
    except OtherOrderError as error:
        raise InputError(
            f"{source}: {quoted(error.value)} in column {quoted(name)} is no date that begins with "
            f"the {FIRST[error.order]}, as the option --date-order, or the training table, says."
        ) from error


def are_such_dates(words: Any, order: str | None) -> bool:
    """Whether all fields of a series of text, at least one, look like such dates.

    Parameters
    ----------
    words : polars.Series of String
        Null where there is no value.
    order : str or None
        How the dates begin, where that is known.
    """
    return bool(words.drop_nulls().str.contains(_BY_ORDER[order]).all())


def dates_in(words: Any, order: str | None) -> tuple[Any, DateOrder] | None:
    """Dates, or dates with times, and how they begin; None if some text is no date in any order.

    Parameters are those of `are_such_dates`, which is true.

    Raises
    ------
    OtherOrderError
        If a value is no date in the order that is known.
    """
    fields = words.str.extract_groups(_BY_ORDER[order]).struct.unnest()
    first, second = (fields[name].cast(int).max() for name in ("1", "2"))
    example = str(words.drop_nulls()[0])
    has_points = bool(words.drop_nulls().str.contains(r"^\d+\.").all())
    if order is not None:
        found = DateOrder(order, True, example)
    elif max(first, second) <= 12:
        found = DateOrder("dmy", has_points, example)
    else:
        found = DateOrder("dmy" if first > 12 else "mdy", True, example)
    values = _parsed(fields, found.order)
    if values.null_count() == words.null_count():
        return values.alias(words.name), found
    if order is not None:
        raise OtherOrderError(str(words.filter(values.is_null() & words.is_not_null())[0]), order)
    return None


def _parsed(fields: Any, order: str) -> Any:
    """The dates of a frame of three numbers and a time, all text; null where there is none."""
    import polars as pl

    year, month, day = (fields[str(order.index(part) + 1)] for part in "ymd")
    short = year.str.len_bytes() == 2
    century = pl.select(pl.when(year.cast(int) < 69).then(pl.lit("20")).otherwise(pl.lit("19")))
    whole = pl.select(pl.when(short).then(century.to_series() + year).otherwise(year)).to_series()
    text = whole + "-" + month.str.zfill(2) + "-" + day.str.zfill(2)
    times = fields["4"]
    if times.null_count() == len(times):
        return text.str.to_date("%Y-%m-%d", strict=False)
    text = text + " " + times.fill_null("00:00").str.to_uppercase()
    found = text.str.to_datetime(f"%Y-%m-%d {_TIMES[0]}", strict=False)
    for form in _TIMES[1:]:
        found = found.fill_null(text.str.to_datetime(f"%Y-%m-%d {form}", strict=False))
    return found
