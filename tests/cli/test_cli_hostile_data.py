"""Data files with faults, by the thousand: each is refused in one line, or is a table.

The usual run makes a few hundred; `bash ci/test --all-faults` makes 12 000, and trains on a part.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import hostile_data
import pytest
from command import command_fixture  # noqa: F401
from fault_counts import count
from forged_files import forged
from golden_models import FOLDER, TABLE
from hostile_data import intact

from gpustump.cli.read.files import read_table

pytest.importorskip("polars")


def test_an_intact_file_is_a_table(command):
    for name, content in intact().items():
        Path(name).write_bytes(content)
        assert read_table(name).n_rows > 0


def test_a_file_with_a_fault_is_refused_by_name_or_is_a_table(tmp_path):
    """In a process of its own: where a file claims too much memory, polars ends the process."""
    n_each, start, n_ended = count(12, 520), 0, 0
    while True:
        arguments = [str(number) for number in (n_each, start)]
        ended = subprocess.run(
            [sys.executable, hostile_data.__file__, *arguments],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGABRT, ended.stdout + ended.stderr
        at, _ = (tmp_path / hostile_data.AT).read_text().split()
        assert "memory allocation of" in ended.stderr
        start, n_ended = int(at) + 1, n_ended + 1
    assert n_ended <= len(intact()) * n_each / 100


def test_advice_about_a_word_repeats_it_as_it_is(command):
    rows = "\n".join(f"{number},{number % 2}" for number in range(30))
    for word in ("}", "{them}", "{them.__class__}"):
        Path("t.csv").write_text(f"a,y\n{rows}\n{word},1\n")
        message = command.refuses("train", "t.csv", "--target", "y")
        assert f"Give --missing '{word}' if it stands" in message


def test_text_that_utf_8_cannot_hold_is_refused(command):
    Path("t.csv").write_bytes(b"a,y\n1,+2AA-\n2,x\n")  # half of a surrogate pair in UTF-7
    message = command.refuses("train", "t.csv", "--target", "y", "--encoding", "utf-7")
    assert "t.csv is not utf-7 text" in message


def test_an_encoding_in_a_model_file_need_not_be_one(command):
    document = json.loads((FOLDER / "command.json").read_text())
    Path("t.csv").write_bytes(TABLE.read_text(encoding="utf-8").encode("latin-1"))
    for encoding in ("unheard-of", "zip", "a\0b", "x" * 5000):
        document["details"]["encoding"]["text_encoding"] = encoding
        Path("model.json").write_text(forged(document))
        message = command.refuses("predict", "model.json", "t.csv")
        assert "t.csv is not UTF-8 text, and this Python knows no encoding" in message
    command.succeeds("predict", "model.json", TABLE)  # UTF-8, so it is not asked for


def test_one_long_label_in_a_small_file_cannot_fill_the_memory(command):
    """An array of text takes the room of the longest value for each row."""
    long = "x" * 20_000
    rows = "\n".join(f"{number % 97},{('no', 'yes')[number % 2]}" for number in range(20_000))
    Path("t.csv").write_text(f"a,y\n{rows}\n5,{long}\n6,{long}\n")
    message = command.refuses("train", "t.csv", "--target", "y")
    assert message.startswith("t.csv: the column 'y' holds a text of 20 000 characters, for which")
    assert "20 002 rows would take 1.6 GB; shorten it" in message
