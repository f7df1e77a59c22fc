"""Errors that the user can mend, each reported in one line that says what to do.

Messages name the user's own file, column and value.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator


class InputError(ValueError):
    """Something that the user gave and can mend; the message says what and how."""


class MissingLibraryError(InputError):
    """An optional library that the command needs is not installed."""

    def __init__(self, what: str, library: str, extra: str = "cli") -> None:
        from gpustump.arrays.devices import how_to_install  # brings NumPy, which --help needs not

        super().__init__(f"{what} needs {library}; {how_to_install(extra)}")


class ToldInterrupt(KeyboardInterrupt):
    """An interruption with a message for the user. (Python puts words of its own into others.)"""


@contextlib.contextmanager
def as_input_error(prefix: str = "") -> Iterator[None]:
    """Turn a ValueError of the library, which is about the user's data, into an InputError."""
    try:
        yield
    except ValueError as error:
        raise InputError(prefix + str(error)) from error


@contextlib.contextmanager
def system_errors_at(place: str) -> Iterator[None]:
    """Name the option and file at which an error of the operating system happened."""
    try:
        yield
    except OSError as error:
        if is_short_of_memory(error):
            raise
        raise InputError(f"{place}: {_reason(error)}.") from error


def is_short_of_memory(error: Exception) -> bool:
    """Whether memory was too small; the system says so by ENOMEM."""
    says_so = isinstance(error, OSError) and error.errno == errno.ENOMEM
    return says_so or isinstance(error, MemoryError)


def message_of(error: Exception) -> str | None:
    """An error's message, or None if the user cannot mend it."""
    from gpustump.arrays.devices import DeviceError
    from gpustump.model.model_file import ModelFileError

    if isinstance(error, (InputError, ModelFileError, DeviceError)):
        return str(error)
    if is_short_of_memory(error):
        reason = "" if isinstance(error, OSError) else str(error).rstrip(".")
        return (
            f"not enough memory. {reason and reason + '.'} Try fewer columns (--drop), float32, a "
            "machine with more memory, or the table as a .npy file, which is read from disk as "
            "needed."
        )
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename is not None else ""
        return place + _reason(error)
    return None


def _reason(error: OSError) -> str:
    reason = error.strerror or str(error)
    if error.errno == errno.ENOSPC:
        reason += "; make room, or write elsewhere"
    if error.errno == errno.EACCES:
        reason += "; you have no permission to read or write it"
    return reason
