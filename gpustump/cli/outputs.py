"""Files to write: checked before the work begins, so that it is not lost at the end."""

from __future__ import annotations

import os
import tempfile

from gpustump.cli.errors import InputError
from gpustump.model_file import FORMAT


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


def check_replaced_model(path: str, option: str) -> None:
    """Refuse to replace a file that is something else than a model."""
    if not os.path.isfile(path):
        return
    with open(path, "rb") as file:
        head = file.read(200)
    if head and FORMAT.encode() not in head:
        raise InputError(
            f"{option}: {path} is there and not a gpustump model; give another name, or --force."
        )
