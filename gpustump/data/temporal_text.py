"""Dates, times and durations as text, for people; tables hold them as numbers."""

from __future__ import annotations

import datetime
import math

_START = datetime.datetime(1970, 1, 1)


def temporal_text(number: float, kind: str) -> str | None:
    """A date, time or duration as text, such as "2024-12-31".

    Parameters
    ----------
    number : float
        Days or seconds, in the unit of the kind; see `columns.UNITS`.
    kind : str
        Of the column, such as "date".

    Returns
    -------
    str or None
        None if the kind is not temporal, or no date has this number. For the kind "date", it is the
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
