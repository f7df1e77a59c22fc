"""The reference is whole: every public name has a page, and an example that shows its use."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
ROOMS = ("gpustump", *map("gpustump.{}".format, ("exports", "plots", "theory", "dask")))


def names_of(room: str) -> list[str]:
    """The public names of a room, each with the room in front."""
    if room == "gpustump.dask":
        pytest.importorskip("distributed")
    return [f"{room}.{name}" for name in importlib.import_module(room).__all__]


def names_in_reference() -> list[str]:
    """The names that the page lists, each with the room of its block in front."""
    found, room = [], ""
    for line in REFERENCE.read_text().splitlines():
        if match := re.fullmatch(r"\.\. currentmodule:: ([\w.]+)", line):
            room = match[1]
        elif match := re.fullmatch(r"   (\w+)", line):
            found.append(f"{room}.{match[1]}")
    return found


def value_of(name: str) -> Any:
    room, _, own = name.rpartition(".")
    return getattr(importlib.import_module(room), own)


def docstrings_of(value: Any) -> list[str]:
    """What stands at a name: its docstring, and for a class those of its own public methods."""
    found = [inspect.getdoc(value) or ""]
    if inspect.isclass(value):
        methods = [own for name, own in vars(value).items() if not name.startswith("_")]
        found += [inspect.getdoc(own) or "" for own in methods]
    return found


def has_example(text: str) -> bool:
    """Whether a section holds a command with an output: a line that is not a command follows it."""
    _, _, section = text.partition("Examples\n--------\n")
    return re.search(r"^>>> .*\n(\.\.\. .*\n)*(?!>>> |\.\.\. |$).+", section, re.M) is not None


def test_the_reference_lists_public_names_only_and_each_once():
    listed = names_in_reference()
    assert len(listed) > 60
    public = [name for room in ROOMS for name in names_of(room)]
    assert sorted(listed) == sorted(public)


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_has_an_example_with_an_output(room):
    names = names_of(room)
    assert [
        name for name in names if not any(map(has_example, docstrings_of(value_of(name))))
    ] == []
