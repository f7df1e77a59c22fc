"""Where the databases' SQL differs, and how values are made to compare as numbers in each.

DuckDB and PostgreSQL have NaN, which they sort above infinity; here it is missing, as NULL is.
SQLite has no NaN. Its columns may hold text where numbers are wanted, which its CAST turns into 0;
here such a value makes the scores of its row NULL. SQLite may read a decimal fraction wrong in the
last bit, so thresholds are written as quotients of whole numbers, which are exact.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from fractions import Fraction

from gpustump.data.readable import is_text, shown

_START = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_LARGEST_POWER = 2**53
"""Every database reads whole numbers up to it exactly."""

_MOST_SECONDS = 10**12
"""More seconds than 9999 years have. Far beyond, a float is the same for too many microseconds."""

TYPES_OF_TIME = {"date": "DATE", "datetime": "TIMESTAMP", "time": "TIME"}
"""The types of SQL for kinds of columns."""


@dataclass(frozen=True)
class Dialect:
    """The SQL of one database.

    Attributes
    ----------
    name : str
    number, text : str
        Its types: double precision, and text of any length.
    character : str
        The function that makes a character of its number.
    largest : str
        The function for the largest of several arguments.
    not_a_number : str
        A test whether {} is NaN; empty if there is no NaN.
    of_another_type : str
        A test whether {} is no number; empty if the types of columns rule that out.
    infinity : str
        Infinity; with "-" before it, minus infinity.
    bytewise : str
        Stands after text, to have it compared byte by byte.
    longest : int
        Names are cut after this number of bytes of UTF-8; 0 if they are not cut.
    """

    name: str
    number: str
    text: str
    character: str
    largest: str
    not_a_number: str
    of_another_type: str
    infinity: str
    bytewise: str
    longest: int = 0

    def cut(self, name: str) -> str:
        """The name as the database has it, without the half of a character at its end."""
        return name.encode()[: self.longest or None].decode(errors="ignore")

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is SQLite, where a value need not have its column's type."""
        return bool(self.of_another_type)


DIALECTS = {
    "sqlite": Dialect(
        name="SQLite",
        number="REAL",
        text="TEXT",
        character="char",
        largest="max",
        not_a_number="",
        of_another_type="typeof({}) IN ('text', 'blob')",
        infinity="9e999",
        bytewise=" COLLATE BINARY",
    ),
    "duckdb": Dialect(
        name="DuckDB",
        number="DOUBLE",
        text="VARCHAR",
        character="chr",
        largest="greatest",
        not_a_number="isnan({})",
        of_another_type="",
        infinity="CAST('inf' AS DOUBLE)",
        bytewise="",
    ),
    "postgresql": Dialect(
        name="PostgreSQL",
        number="DOUBLE PRECISION",
        text="TEXT",
        character="chr",
        largest="greatest",
        not_a_number="{} = CAST('NaN' AS DOUBLE PRECISION)",
        of_another_type="",
        infinity="CAST('inf' AS DOUBLE PRECISION)",
        bytewise=' COLLATE "C"',
        longest=63,
    ),
}
"""The dialects by the names that users give."""


def check_dialect(name: str) -> Dialect:
    """The dialect with a name.

    Raises
    ------
    ValueError
    """
    if not is_text(name) or name not in DIALECTS:
        raise ValueError(f"dialect must be {', '.join(DIALECTS)}; got {shown(name)}.")
    return DIALECTS[name]


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
    plain = ""
    for character in value:
        if character.isprintable():
            plain += character
            continue
        pieces += [_quoted(plain)] if plain else []
        pieces.append(f"{dialect.character}({ord(character)})")
        plain = ""
    pieces += [_quoted(plain)] if plain or not pieces else []
    return pieces[0] if len(pieces) == 1 else f"({' || '.join(pieces)})"


def _quoted(plain: str) -> str:
    return "'" + plain.replace("'", "''") + "'"


def number(value: float, dialect: Dialect) -> str:
    """A float64 as a literal or an expression with exactly this value."""
    if math.isinf(value):
        return dialect.infinity if value > 0 else f"-{dialect.infinity}"
    if dialect.is_sqlite:
        return _quotient(value)
    return f"CAST('{value!r}' AS {dialect.number})"


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


def moment(value: float, kind: str, dialect: Dialect) -> str:
    """The last date, datetime or time of day that is not after a number of days or seconds.

    Raises
    ------
    ValueError
        If Python has none: the years are 1 to 9999.
    """
    try:
        at = _START + _last_tick(value, kind) * _MICROSECOND
    except OverflowError:
        at = None
    if at is None or (kind == "time" and at.date() != _START.date()):
        raise ValueError(f"SQL has no {kind} for the threshold {value!r}; export to ONNX or C.")
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
