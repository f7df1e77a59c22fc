"""Dates, times and durations as text. Tables hold them as numbers; people read their notation."""

from __future__ import annotations

import datetime
import math

_START = datetime.datetime(1970, 1, 1)


def temporal_text(number: float, kind: str) -> str | None:
    """A number of days or seconds, as `UNITS` has them, in the notation of its kind of column.

    Returns
    -------
    str or None
        None if the kind is not temporal, or the number is beyond all dates. Of a date it is the
        last day that is not after the number.
    """
    try:
        if kind == "date":
            return (_START + datetime.timedelta(days=math.floor(number))).date().isoformat()
        if kind == "datetime":
            return (_START + datetime.timedelta(seconds=number)).isoformat(" ", "seconds")
        if kind == "time":
            return (_START + datetime.timedelta(seconds=number)).time().isoformat("seconds")
        if kind == "duration":
            return str(datetime.timedelta(seconds=number))
    except (OverflowError, ValueError):
        return None
    return None
