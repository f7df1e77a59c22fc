"""The axis of a feature's values: its limits, its unit, its scale and its ticks."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpustump.data.readable import temporal_text
from gpustump.plots import style

if TYPE_CHECKING:
    from matplotlib.axis import Axis

DATES = ("date", "datetime", "time")
"""Kinds of columns that are drawn in days, as Matplotlib draws dates."""

_TAILS = 6.0
"""Tails are cut off if all values span more than this many times the width of the bulk."""

_FEW = 20
"""Of fewer values, such as the thresholds of a small model, each one counts."""

_LARGEST = 1e150
"""Larger values overflow in Matplotlib's own arithmetic; they are out of view."""

_SQUEEZED = 0.06
"""With half of the values in a smaller share of the axis at its left, it becomes logarithmic."""

_DURATIONS = {" (days)": 86400.0, " (hours)": 3600.0, " (minutes)": 60.0}


class View(NamedTuple):
    """The part of an axis that is shown, and whether its scale is logarithmic."""

    low: float
    high: float
    is_log: bool = False

    def shows(self, values: np.ndarray) -> np.ndarray:
        """Which values are in view."""
        return (values >= self.low) & (values <= self.high)


def unit_of(values: np.ndarray, kind: str) -> tuple[float, str]:
    """What values of a kind, as `data.columns` names it, are divided by, and its name for a label.

    Datetimes and times of the day are drawn in days; durations in the largest unit of which half
    of them have two or more.
    """
    if kind in ("datetime", "time"):
        return 86400.0, ""
    if kind != "duration":
        return 1.0, ""
    sizes = np.abs(_finite(values))
    usual = float(np.median(sizes)) if sizes.size else 0.0
    for text, seconds in _DURATIONS.items():
        if usual >= 2 * seconds:
            return seconds, text
    return 1.0, " (seconds)"


def span(values: np.ndarray, pad: float) -> View:
    """Limits that show all finite values, with room on both sides, a share of their span."""
    finite = _finite(values)
    if not finite.size:
        return View(-pad, 1.0 + pad)
    low, high = float(finite.min()), float(finite.max())
    if low == high:
        margin = abs(low) or 0.5
    else:
        # In a very narrow span the room must be at least a few neighbouring floats.
        margin = max((high - low) * pad, 8 * float(np.spacing(max(abs(low), abs(high)))))
    return View(low - margin, high + margin)


def bulk(values: np.ndarray, pad: float) -> View:
    """Limits that show all finite values, but cut off long tails: nine tenths of the values, or of
    those that are not the most frequent one, fill half of the axis or more."""
    whole, finite = span(values, pad), _finite(values)
    first, last = _quantiles(finite)
    if first == last:
        first, last = _quantiles(finite[finite != first])
    width = last - first
    if finite.size < _FEW or whole.high - whole.low <= _TAILS * width or not width:
        return whole
    usual = float(np.median(finite))
    low, high = min(first - width / 2, usual), max(last + width / 2, usual)
    ends = float(finite.min()), float(finite.max())
    # Where nothing is cut off, the room is a share of what is shown, not of the tails.
    room = pad * (min(high, ends[1]) - max(low, ends[0]))
    return View(max(ends[0] - room, low), min(ends[1] + room, high))


def readable(values: np.ndarray, pad: float, few: int) -> View:
    """Limits as those of `bulk`, on a logarithmic scale if that spreads the values.

    Skewed values stand in a corner of a linear axis, however it is cut: of a lognormal feature
    half are below the median, and its mean is many times that. With at most `few` distinct values
    the scale stays linear.
    """
    linear, distinct = bulk(values, pad), np.unique(_finite(values))
    shown = distinct[linear.shows(distinct)]
    if len(shown) <= few or distinct[0] <= 0.0:
        return linear
    if np.median(shown) - linear.low > _SQUEEZED * (linear.high - linear.low):
        return linear
    low, high, _ = bulk(np.log(_finite(values)), pad)
    return View(float(np.exp(low)), float(np.exp(high)), is_log=True)


def is_whole(values: np.ndarray, view: View) -> bool:
    """Whether the values in view, one at least, are whole numbers short enough for tick labels."""
    inside = values[view.shows(values)]
    is_short = max(abs(view.low), abs(view.high)) < 1e5
    return inside.size > 0 and is_short and bool((inside == np.floor(inside)).all())


def are_between_whole(thresholds: np.ndarray, view: View) -> bool:
    """Whether the thresholds in view may be midpoints of whole numbers, at least two apart."""
    twice = View(2 * view.low, 2 * view.high)
    return view.high - view.low >= 2 and is_whole(2 * thresholds, twice)


def set_ticks(axis: Axis, kind: str, most: int, *, is_whole: bool) -> str:
    """Set a few short tick labels, and return what they leave out, such as a year, for the label.

    Dates and times of the day, by the kind of the column, have ticks of their own. Whole numbers,
    such as years, have whole ticks, and are written in full below 100,000.
    """
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, ScalarFormatter

    low, high = axis.get_view_interval()
    if kind in DATES and None not in (temporal_text(low, "date"), temporal_text(high, "date")):
        return _set_dates(axis, most, kind)
    if axis.get_scale() == "log":
        subs = (1, 2, 5) if high < 100 * low else (1,)
        axis.set_major_locator(LogLocator(subs=subs, numticks=5))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
        return " (log scale)"
    formatter = ScalarFormatter(useMathText=True, useOffset=not is_whole)
    formatter.set_powerlimits((-2, 5 if is_whole else 4))
    axis.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 5, 10], integer=is_whole))
    axis.set_major_formatter(formatter)
    axis.offsetText.set_fontsize("x-small")
    return ""


def _set_dates(axis: Axis, most: int, kind: str) -> str:
    from matplotlib import dates

    untyped: Any = dates
    least = max(2, most // 2)  # its intervals leave gaps, so it needs room between the two
    locator = untyped.AutoDateLocator(tz=UTC, minticks=least, maxticks=2 * least + 1)
    formatter = untyped.ConciseDateFormatter(locator, UTC)
    if kind == "time":  # midnight is a time as well
        formatter.formats = ["", "", "", "%H:%M", "%H:%M", "%H:%M:%S"]
        formatter.zero_formats = ["", "", "", "%H:%M", "%H:%M", "%H:%M"]
    axis.set_major_locator(locator)
    axis.set_major_formatter(formatter)
    axis.offsetText.set_visible(False)  # it would touch the label
    formatter.format_ticks(axis.get_majorticklocs())
    rest = formatter.get_offset()
    return f" ({rest})" if rest and kind != "time" else ""


def value_text(value: float, kind: str) -> str:
    """A value in the unit of its axis as text: a date, a time of the day, or a number."""
    if kind == "time":
        return temporal_text(86400.0 * value, kind) or style.number_text(value)
    found = temporal_text(value, "date") if kind in DATES else None
    return found or style.number_text(value)


def _quantiles(finite: np.ndarray) -> tuple[float, float]:
    """The quantiles that enclose nine tenths of the values, which are values themselves."""
    if not finite.size:
        return 0.0, 0.0
    first = float(np.quantile(finite, 0.05, method="higher"))
    return first, float(np.quantile(finite, 0.95, method="lower"))


def _finite(values: np.ndarray) -> np.ndarray:
    finite: np.ndarray = values[np.abs(values) <= _LARGEST]
    return finite
