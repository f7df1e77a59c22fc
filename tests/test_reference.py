"""The reference is whole: it lists every public name."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

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


def test_the_reference_lists_public_names_only_and_each_once():
    listed = names_in_reference()
    assert len(listed) > 60
    public = [name for room in ROOMS for name in names_of(room)]
    assert sorted(listed) == sorted(public)
