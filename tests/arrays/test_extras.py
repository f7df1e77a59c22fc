"""Messages about a library that is missing say what installs it: a command that works."""

from __future__ import annotations

import importlib.metadata
import json
import re
import shlex
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from gpustump.arrays import extras

ROOT = Path(__file__).resolve().parents[2]
URL = "https://example.org/gpustump"


def target(command: str) -> str:
    """What a command installs."""
    found = shlex.split(command)
    assert found[:2] == ["pip", "install"]
    return found[3] if found[2] == "-e" else found[2]


@pytest.mark.parametrize(
    ("origin", "url"),
    [
        ({"url": f"{URL}.whl", "archive_info": {}}, f"{URL}.whl"),
        ({"url": "file:///home/me/my%20code", "dir_info": {}}, "file:///home/me/my%20code"),
        ({"url": URL, "vcs_info": {"vcs": "git"}}, f"git+{URL}"),
        ({"url": URL, "vcs_info": {"vcs": "git", "requested_revision": "v1"}}, f"git+{URL}@v1"),
    ],
)
def test_an_extra_is_installed_from_where_the_package_came_from(origin, url):
    wanted = Requirement(target(extras.command("cpu", origin)))
    assert (wanted.name, wanted.extras, wanted.url) == ("gpustump", {"cpu"}, url)


def test_a_checkout_that_is_installed_to_be_edited_stays_so():
    origin = {"url": "file:///home/me/my%20code", "dir_info": {"editable": True}}
    command = extras.command("plots", origin)
    assert shlex.split(command) == ["pip", "install", "-e", "/home/me/my code[plots]"]


def test_where_nobody_noted_the_place_a_checkout_is_named(monkeypatch):
    def unknown(name):
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, "distribution", unknown)
    how_to_install = extras.how_to_install.__wrapped__  # without what it has noted
    assert how_to_install("onnx") == "pip install '.[onnx]' in a checkout of gpustump"


def test_the_place_is_what_the_installer_noted():
    noted = importlib.metadata.distribution("gpustump").read_text("direct_url.json")
    if noted is None:
        pytest.skip("this package was not installed from a place that pip notes")
    assert target(extras.how_to_install("cpu")) == target(extras.command("cpu", json.loads(noted)))


def test_no_message_spells_the_command_itself():
    spelled = [
        path.name
        for folder in ("gpustump", "bench", "ci")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"pip install .?gpustump", path.read_text()) and path.name != "extras.py"
    ]
    assert spelled == []
