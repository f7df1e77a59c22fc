"""Checks of the files to write, made before the work begins so that it is not lost at the end.

One rule holds for all of them: a file is replaced only if it is empty, or if the command recognises
it as its own kind. Any other file is refused, unless --force is given.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

from gpustump.cli.errors import InputError
from gpustump.data.readable import quoted

STANDARD_INPUT = STANDARD_OUTPUT = "-"

_HEAD_BYTES = 600


class OutputFile(NamedTuple):
    """A file that the user wants written.

    Attributes
    ----------
    option : str
        The option that names it.
    path : str
    """

    option: str
    path: str


class FileKind(NamedTuple):
    """A kind of file that a command writes, and how to recognise it.

    Attributes
    ----------
    name : str
        In words, after "a".
    includes : callable
        Says whether an open file is of this kind.
    """

    name: str
    includes: Callable[[BinaryIO], bool]


def kind_with_mark(name: str, mark: bytes) -> FileKind:
    """Files that have a mark near their beginning."""
    return FileKind(name, lambda file: mark in file.read(_HEAD_BYTES))


def check_output(output: OutputFile, *, inputs: tuple[str | None, ...] = ()) -> None:
    """Refuse a file that cannot be written, or that would replace an input.

    Raises
    ------
    InputError
    """
    option, path = output
    if not path:
        raise InputError(f"{option} needs the name of a file.")
    if path == STANDARD_OUTPUT:
        if sys.__stdout__ is None:  # closed by the shell, `>&-`
            raise InputError(f"{option}: standard output is closed.")
        return
    if "\0" in path:
        raise InputError(f"{option}: {quoted(path)} cannot be the name of a file.")
    if os.path.isdir(path):
        raise InputError(f"{option}: {path} is a folder; give the name of a file in it.")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise InputError(f"{option}: the folder {folder} does not exist; make it first.")
    for source in inputs:
        if source is None or source == STANDARD_INPUT:
            continue
        if os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
            raise InputError(f"{option}: {path} would replace the file that is read.")
    if is_stream(path):
        return
    try:
        with contextlib.suppress(FileNotFoundError):
            os.stat(path)  # fails for a name that is too long, for example
    except OSError as error:
        raise InputError(f"{option}: {path}: {error.strerror}.") from error
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"{option}: no file can be made in {folder}: {error.strerror}.") from error


def is_stream(path: str) -> bool:
    """Whether an output is standard output, a pipe or a device, which are not replaced."""
    return path == STANDARD_OUTPUT or (os.path.exists(path) and not os.path.isfile(path))


def check_replaced_file(output: OutputFile, kind: FileKind, *, force: bool) -> None:
    """Refuse to replace a file of another kind, unless --force is given.

    Raises
    ------
    InputError
    """
    if force or output.path == STANDARD_OUTPUT or not os.path.isfile(output.path):
        return
    if os.path.getsize(output.path) == 0:
        return
    with open(output.path, "rb") as file:
        if kind.includes(file):
            return
    raise InputError(
        f"{output.option}: {output.path} exists and is not a {kind.name}; give another name, or "
        "--force."
    )


def check_ending(output: OutputFile, endings: tuple[str, ...], hint: str = "") -> None:
    """Refuse a file whose name has none of these endings, which tell the format.

    `hint` says what else can be done.
    """
    if not output.path.lower().endswith(endings):
        *others, last = endings
        wanted = f"{', '.join(others)} or {last}" if others else last
        raise InputError(f"{output.option}: {quoted(output.path)} must end in {wanted}{hint}.")


def check_different_files(first: OutputFile, second: OutputFile) -> None:
    """Refuse two options that name the same file."""
    if os.path.realpath(first.path) == os.path.realpath(second.path):
        raise InputError(f"{first.option} and {second.option} both name {first.path}.")
