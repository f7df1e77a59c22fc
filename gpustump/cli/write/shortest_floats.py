"""Floats as text with the fewest digits that read back as the same float64, many at a time.

Python's repr finds them one number at a time. Here they are found for whole arrays, for numbers
that repr writes without an exponent; whatever cannot be decided for certain is left to repr.

Let 10^(k-1) <= |x| < 10^k and y = |x| 10^(17-k), so that y has 17 digits before its point. That
power of ten is a float64 without error, and the product of two floats is the sum of two others
without error (Dekker, 1971), so y is known exactly. Every number closer to y than h, half the
distance to the next float times the same power, reads back as x; h is between 0.55 and 11.2. So
the shortest text is

* the multiple of 100 within h, if there is one: there is at most one, and zeros at its end go;
* else the multiple of 10 that is closest to y, if it is within h;
* else the whole number that is closest to y, which is always within h.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SMALLEST, LARGEST = 1e-4, 1e15
"""The numbers that are handled here; repr writes them without an exponent."""

_DIGITS = 17
_POWERS = 10.0 ** np.arange(22)
_LEAST_EXPONENT, _MOST_EXPONENT = -3, 15
_LIMITS = np.asarray([float(f"1e{k}") for k in range(_LEAST_EXPONENT, _MOST_EXPONENT + 1)])
_DOUBT = 1e-6
"""Comparisons of numbers that are closer than this are left to repr."""

_WIDTH = 24
_TEXT = np.dtype(f"S{_WIDTH}")
_ZERO, _POINT, _MINUS = b"0.-"


class _Scaled(NamedTuple):
    """Exact products y = whole + part, and how far from y a number may be.

    Attributes
    ----------
    whole : ndarray (n,) of int64
    part : ndarray (n,)
        At least 0 and at most 1.
    half : ndarray (n,)
        The h of the first lines.
    """

    whole: np.ndarray
    part: np.ndarray
    half: np.ndarray


def shortest_texts(values: np.ndarray) -> list[bytes]:
    """What `repr` writes for each number.

    Parameters
    ----------
    values : ndarray (n,) of float64

    Returns
    -------
    list of bytes
    """
    size = np.abs(values)
    at = np.flatnonzero((size >= SMALLEST) & (size < LARGEST))
    exponents = np.searchsorted(_LIMITS, size[at], side="right") + _LEAST_EXPONENT  # the k above
    digits, certain = _shortest(size[at], exponents)
    at, exponents, digits = at[certain], exponents[certain], digits[certain]
    texts = np.zeros(len(values), dtype=_TEXT)
    texts[at] = _laid_out(_characters(digits), exponents, values[at] < 0)
    found: list[bytes] = texts.tolist()  # without zero bytes at the end
    others = np.ones(len(values), dtype=bool)
    others[at] = False
    for row in np.flatnonzero(others).tolist():
        found[row] = repr(float(values[row])).encode()
    return found


def _shortest(size: np.ndarray, exponents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The digits as whole numbers of 17 digits (n,), and where they are certain (n,)."""
    y = _scaled(size, _POWERS[_DIGITS - exponents])
    by_100, distance_100 = _nearest_multiple(y, 100)
    by_10, distance_10 = _nearest_multiple(y, 10)
    is_100, is_10 = distance_100 <= y.half, distance_10 <= y.half
    step = np.where(is_100, by_100, np.where(is_10, by_10, y.part >= 0.5))
    tie = np.where(is_10, np.abs(distance_10 - 5.0), np.abs(y.part - 0.5)) < _DOUBT
    unclear = (tie & ~is_100) | (np.abs(distance_100 - y.half) < _DOUBT)
    unclear |= np.abs(distance_10 - y.half) < _DOUBT
    unclear |= size.view(np.int64) << 12 == 0  # a power of two: the float below is closer
    digits = y.whole + step
    in_range = (digits >= 10 ** (_DIGITS - 1)) & (digits < 10**_DIGITS)
    return digits, in_range & ~unclear


def _scaled(size: np.ndarray, power: np.ndarray) -> _Scaled:
    product = size * power
    size_high, size_low = _halves(size)
    power_high, power_low = _halves(power)
    rest = size_high * power_high - product
    rest += size_high * power_low
    rest += size_low * power_high
    rest += size_low * power_low
    below = np.floor(rest)
    whole = product.astype(np.int64) + below.astype(np.int64)
    return _Scaled(whole, rest - below, 0.5 * np.spacing(size) * power)


def _halves(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two numbers of 26 bits each that add up to the value (Veltkamp)."""
    scaled = values * (2.0**27 + 1.0)
    high = scaled - (scaled - values)
    return high, values - high


def _nearest_multiple(y: _Scaled, base: int) -> tuple[np.ndarray, np.ndarray]:
    """What must be added to `y.whole` to get the nearest multiple, and its distance from y."""
    above = y.whole - y.whole // base * base  # much faster than %
    step = np.where(above + y.part < base / 2, 0, base) - above
    return step, np.abs(step - y.part)


def _characters(numbers: np.ndarray) -> np.ndarray:
    """The digits (n, 17) of whole numbers, as ASCII; zero bytes in place of zeros at the end."""
    characters = np.empty((_DIGITS, len(numbers)), dtype=np.uint8)
    high = numbers // 10**8
    low = numbers - high * 10**8
    for part, first, last in ((high, 0, 9), (low, 9, _DIGITS)):
        rest = part.astype(np.uint32)
        for place in range(last - 1, first - 1, -1):
            tenth = rest // 10
            characters[place] = rest - 10 * tenth
            rest = tenth
    characters += _ZERO
    ending = np.ones(len(numbers), dtype=bool)
    for place in range(_DIGITS - 1, 0, -1):
        ending &= characters[place] == _ZERO
        if not ending.any():
            break
        characters[place][ending] = 0
    return np.ascontiguousarray(characters.T)


def _laid_out(digits: np.ndarray, exponents: np.ndarray, negative: np.ndarray) -> np.ndarray:
    """Signs, points and zeros around digits (n, 17): texts (n,) that end with zero bytes."""
    texts = np.zeros(len(digits), dtype=_TEXT)
    kinds = 2 * exponents + negative
    for kind in range(2 * _LEAST_EXPONENT, 2 * _MOST_EXPONENT + 2):
        rows = np.flatnonzero(kinds == kind)
        if len(rows):
            layout = _one_layout(digits.take(rows, axis=0), kind // 2, bool(kind % 2))
            texts[rows] = layout.view(_TEXT)[:, 0]
    return texts


def _one_layout(digits: np.ndarray, exponent: int, negative: bool) -> np.ndarray:
    texts = np.zeros((len(digits), _WIDTH), dtype=np.uint8)
    start = int(negative)
    texts[:, :start] = _MINUS
    point = start + max(exponent, 1)
    if exponent > 0:
        before = digits[:, :exponent]
        texts[:, start:point] = np.where(before == 0, _ZERO, before)
        after = digits[:, exponent:]
        texts[:, point + 1 : point + 1 + after.shape[1]] = after
        texts[:, point + 1] = np.maximum(texts[:, point + 1], _ZERO)  # 5.0
    else:
        texts[:, start] = _ZERO
        first = point + 1 - exponent
        texts[:, point + 1 : first] = _ZERO
        texts[:, first : first + _DIGITS] = digits
    texts[:, point] = _POINT
    return texts
