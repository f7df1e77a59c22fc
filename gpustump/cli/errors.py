"""What went wrong, in one line that says what to do.

Messages name the user's own file, column and value. Everything taken from a file is quoted with
its control characters escaped, so that one message is one line.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
from collections.abc import Iterable, Iterator, Sequence

from gpustump.data.readable import printable

LISTED = 6
"""How many names a message lists before it says how many more there are."""


class InputError(ValueError):
    """Something that the user gave and can mend; the message says what and how."""


class MissingLibraryError(InputError):
    """An optional library that the command needs."""

    def __init__(self, what: str, library: str, extra: str = "cli") -> None:
        super().__init__(f"{what} needs {library}; pip install 'gpustump[{extra}]'")


@contextlib.contextmanager
def input_errors(about: str = "") -> Iterator[None]:
    """Take a ValueError from the library as a statement about the user's data."""
    try:
        yield
    except ValueError as error:
        raise InputError(about + str(error)) from error


@contextlib.contextmanager
def named_errors(what: str) -> Iterator[None]:
    """Say of the system's own errors at which option and file they happened."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{what}: {_what_happened(error)}.") from error


def explained(error: Exception) -> str | None:
    """One line about an error, or None if it is not of a kind that a user can mend."""
    from gpustump.arrays.devices import DeviceError
    from gpustump.model.model_file import ModelFileError

    if isinstance(error, (InputError, ModelFileError, DeviceError)):
        return one_line(str(error))
    if isinstance(error, MemoryError):
        return one_line(
            f"not enough memory. {error} Try a machine with more, fewer columns (--drop), or "
            "float32 in a .npy or .parquet file."
        )
    if isinstance(error, OSError):
        return one_line(_about_system(error))
    return None


def _about_system(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename is not None else ""
    return where + _what_happened(error)


def _what_happened(error: OSError) -> str:
    what = error.strerror or str(error)
    if error.errno == errno.ENOSPC:
        what += "; make room, or write elsewhere"
    if error.errno == errno.EACCES:
        what += "; you may not read or write it"
    return what


def one_line(text: str) -> str:
    """The text without line breaks, and with whatever else a terminal would act upon escaped."""
    return printable(" ".join(text.split()))


def quoted(name: object) -> str:
    """A name or value as it stands in a message."""
    return f"'{printable(name)}'" if isinstance(name, str) else repr(name)


def listed(names: Iterable[object], limit: int = LISTED) -> str:
    """Quoted names with commas, and how many more there are."""
    names = list(names)
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(quoted(name) for name in names[:limit]) + more


def suggestion(name: str, candidates: Sequence[str]) -> str:
    """ " Did you mean 'x'?" if a candidate is close, else nothing."""
    by_lower = {candidate.lower(): candidate for candidate in reversed(candidates)}
    close = difflib.get_close_matches(name.lower().strip(), by_lower, n=1)
    return f" Did you mean {quoted(by_lower[close[0]])}?" if close else ""


def counted(number: int, thing: str, things: str | None = None) -> str:
    """ "1 row", "12 345 rows"."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}".replace(",", " ")
