"""What a command asks of a data file: which of its columns, as what, and how its text is written.

A reader looks at the names of the columns first and asks which of them to read. So a wrong option
is refused before a large file is read, and columns that nobody needs are not parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gpustump.cli.read.table import InputTable

TEXT = "text"
NUMBER = "number"
"""Kinds in `Wanted`: a column to read as text, and one that is known to hold numbers or times."""


@dataclass(frozen=True)
class Wanted:
    """The columns to read.

    Attributes
    ----------
    skipped : frozenset of int
        Positions of columns that are not needed.
    kinds : mapping of int to str
        Columns that are known to be `TEXT` or `NUMBER`. The reader finds out what the others are.
    date_orders : mapping of int to str
        How the dates of columns begin, where that is known; see `written_dates`.
    """

    skipped: frozenset[int] = frozenset()
    kinds: Mapping[int, str] = field(default_factory=dict)
    date_orders: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TextOptions:
    """How a text file is written.

    Attributes
    ----------
    encoding : str or None
        Of its characters; None for UTF-8.
    fallback : str or None
        The encoding of a file that turns out not to be UTF-8; None to refuse it.
    decimals : str or None
        The decimal marks: ".", ",", ".," or ",.", the likely one first. None for a point and, if
        the file is not separated by commas, a comma.
    missing : tuple of str
        Words that stand for missing values, beside the known ones.
    """

    encoding: str | None = None
    fallback: str | None = None
    decimals: str | None = None
    missing: tuple[str, ...] = ()


def everything(header: InputTable) -> Wanted:
    """All columns, of whatever kind."""
    return Wanted()


@dataclass(frozen=True)
class Request:
    """What to read.

    Attributes
    ----------
    choose : callable
        Says which columns are wanted, given a table that has their names but no rows. It raises
        an InputError if the file lacks what is needed.
    text : TextOptions
    """

    choose: Callable[[InputTable], Wanted] = everything
    text: TextOptions = TextOptions()
