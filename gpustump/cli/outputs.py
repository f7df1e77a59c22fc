"""Files to write: checked before the work begins, so that it is not lost at the end."""

from __future__ import annotations

import os
import tempfile

from gpustump.cli.errors import InputError, quoted


def check_output(path: str, option: str, *, inputs: tuple[str | None, ...] = ()) -> None:
    """Refuse a file that could not be written, or that would replace an input.

    Raises
    ------
    InputError
    """
    if not path:
        raise InputError(f"{option} needs the name of a file.")
    if os.path.isdir(path):
        raise InputError(f"{option}: {path} is a folder; give the name of a file in it.")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise InputError(f"{option}: the folder {folder} does not exist; make it first.")
    for given in inputs:
        there = given is not None and os.path.exists(path) and os.path.exists(given)
        if there and os.path.samefile(path, given or ""):
            raise InputError(f"{option}: {path} would replace the file that is read.")
    if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe
        return
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"{option}: no file can be made in {folder}: {error.strerror}.") from error


def check_replaced(path: str, option: str, mark: bytes, what: str, *, force: bool = True) -> None:
    """Refuse to replace a file that is something else, and does not begin like what is written.

    `force` says whether the command has a --force.
    """
    if not os.path.isfile(path):
        return
    with open(path, "rb") as file:
        head = file.read(600)
    if head and mark not in head:
        way_out = "give another name, or --force" if force else "give another name"
        raise InputError(f"{option}: {path} is there and not a {what}; {way_out}.")


def check_ending(path: str, option: str, endings: tuple[str, ...]) -> None:
    """Refuse a file whose name does not tell the format."""
    if not path.lower().endswith(endings):
        *others, last = endings
        wanted = f"{', '.join(others)} or {last}" if others else last
        raise InputError(f"{option}: {quoted(path)} must end in {wanted}.")


def check_distinct(first: tuple[str, str], second: tuple[str, str]) -> None:
    """Refuse two options, each with its file, that name the same one."""
    if os.path.realpath(first[1]) == os.path.realpath(second[1]):
        raise InputError(f"{first[0]} and {second[0]} both name {first[1]}.")
