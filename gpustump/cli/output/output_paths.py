"""Checks of the files to write, made before the work begins so that it is not lost at the end."""

from __future__ import annotations

import os
import tempfile
from typing import NamedTuple

from gpustump.cli.errors import InputError
from gpustump.data.readable import quoted


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
    """What a file of ours is, and how to know one.

    Attributes
    ----------
    name : str
        In words, after "a".
    mark : bytes
        What stands near the beginning of every such file.
    """

    name: str
    mark: bytes


def check_output(output: OutputFile, *, inputs: tuple[str | None, ...] = ()) -> None:
    """Refuse a file that cannot be written, or that would replace an input.

    Raises
    ------
    InputError
    """
    option, path = output
    if not path:
        raise InputError(f"{option} needs the name of a file.")
    if os.path.isdir(path):
        raise InputError(f"{option}: {path} is a folder; give the name of a file in it.")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise InputError(f"{option}: the folder {folder} does not exist; make it first.")
    for source in inputs:
        both_exist = source is not None and os.path.exists(path) and os.path.exists(source)
        if both_exist and os.path.samefile(path, source or ""):
            raise InputError(f"{option}: {path} would replace the file that is read.")
    if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe
        return
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"{option}: no file can be made in {folder}: {error.strerror}.") from error


def check_replaced_file(output: OutputFile, kind: FileKind, *, has_force: bool = True) -> None:
    """Refuse to replace a file of another kind.

    `has_force` says whether the command has the option --force, which the message then names.
    """
    if not os.path.isfile(output.path):
        return
    with open(output.path, "rb") as file:
        head = file.read(600)
    if head and kind.mark not in head:
        what_to_do = "give another name, or --force" if has_force else "give another name"
        raise InputError(
            f"{output.option}: {output.path} exists and is not a {kind.name}; {what_to_do}."
        )


def check_ending(output: OutputFile, endings: tuple[str, ...]) -> None:
    """Refuse a file whose name has none of these endings, which tell the format."""
    if not output.path.lower().endswith(endings):
        *others, last = endings
        wanted = f"{', '.join(others)} or {last}" if others else last
        raise InputError(f"{output.option}: {quoted(output.path)} must end in {wanted}.")


def check_different_files(first: OutputFile, second: OutputFile) -> None:
    """Refuse two options that name the same file."""
    if os.path.realpath(first.path) == os.path.realpath(second.path):
        raise InputError(f"{first.option} and {second.option} both name {first.path}.")
