"""docs/trust.md: every promise names a test that is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROWS = re.findall(
    r"^\| (?P<promise>[^|]*(?:\\\|[^|]*)*) \| (?P<tests>.*?) \| [\d ]+ \| [\d ]+ \|$",
    (ROOT / "docs" / "trust.md").read_text(),
    re.M,
)


def test_the_tables_are_read_whole():
    text = (ROOT / "docs" / "trust.md").read_text()
    assert len(ROWS) == text.count("\n| ") - 2 * text.count("\n| --- ")


@pytest.mark.parametrize(("promise", "tests"), ROWS)
def test_a_promise_names_its_test(promise, tests):
    files, words = [], ""
    for name in re.findall(r"`([^`]+)`", tests):
        if name.endswith((".py", "/")):
            path = ROOT / name if name.startswith("tests/") else ROOT / "tests" / "faults" / name
            found = sorted(path.glob("test_*.py")) if path.is_dir() else [path]
            files += found
            words = "".join(file.read_text() for file in found)
            assert "def test_" in words, name
            continue
        start, _, rest = name.strip(".").partition("...")
        function, _, case = (rest or start).partition("[")
        found = re.findall(r"def (test_\w+)", words)
        assert any(function.strip("_.") in one for one in found), name
        assert case.strip("]") in words, name
    assert files or tests == "the same"
