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
from command import Outcome, command_fixture, refusal  # noqa: F401
from fault_counts import count
from forged_files import forged
from golden_models import FOLDER, TABLE
from hostile_data import intact

from gpustump.cli.read.files import read_table

pytest.importorskip("polars")


@pytest.mark.parametrize("name", intact())
def test_an_intact_file_is_a_table(command, name):
    Path(name).write_bytes(intact()[name])
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
        assert ended.returncode == 2, ended.stdout + ended.stderr
        at, path = (tmp_path / hostile_data.AT).read_text().split()
        message = refusal(Outcome(2, "", ended.stderr))
        assert message.startswith(f"{path} cannot be read as")
        assert message.endswith("it is damaged, or larger than the memory.")
        start, n_ended = int(at) + 1, n_ended + 1
    assert n_ended <= len(intact()) * n_each / 100


ABORTS = """
import ctypes, os, sys, threading
from gpustump.cli.read.frames import explained

def abort():
    ctypes.CDLL(None).abort()  # as Rust does where it gets no memory; Python's lock is let go

with explained("first.csv", "CSV"):
    pass
with explained("t\\x1b.arrow", "Arrow"):
    if sys.argv[1] == "thread":
        threading.Thread(target=abort).start()
        threading.Event().wait()
    abort()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="about a signal of POSIX")
@pytest.mark.parametrize("where", ["here", "thread"])
def test_a_reader_that_ends_the_process_is_one_line(where, tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", ABORTS, where],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    message = refusal(Outcome(ended.returncode, ended.stdout, ended.stderr))
    said = "cannot be read as Arrow: it is damaged, or larger than the memory."
    assert message == rf"t\x1b.arrow {said}"


def test_after_reading_an_abort_is_what_it_was(tmp_path):
    program = "\n".join([*ABORTS.splitlines()[:-4], "    pass", "abort()"])
    ended = subprocess.run(
        [sys.executable, "-c", program, "here"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (-signal.SIGABRT, "")


def test_damage_in_compressed_bytes_is_told_with_the_file_s_name(command):
    content = bytearray(intact()["lz4.feather"])
    at = content.rindex(b"\x04\x22\x4d\x18")  # what begins a frame of LZ4
    content[at + 4 : at + 7] = b"\xff\xff\xff"
    Path("t.feather").write_bytes(content)
    message = command.refuses("train", "t.feather", "--target", "y")
    assert message.startswith("t.feather cannot be read as Arrow: LZ4 error")


@pytest.mark.parametrize("word", ["}", "{", "{them}", "{0}", "{them.__class__}"])
def test_advice_about_a_word_repeats_it_as_it_is(command, word):
    rows = "\n".join(f"{number},{number % 2}" for number in range(30))
    Path("t.csv").write_text(f"a,y\n{rows}\n{word},1\n")
    message = command.refuses("train", "t.csv", "--target", "y")
    assert f"Give --missing '{word}' if it stands" in message


def test_text_that_utf_8_cannot_hold_is_refused(command):
    Path("t.csv").write_bytes(b"a,y\n1,+2AA-\n2,x\n")  # half of a surrogate pair in UTF-7
    message = command.refuses("train", "t.csv", "--target", "y", "--encoding", "utf-7")
    assert "t.csv is not utf-7 text" in message


@pytest.mark.parametrize("encoding", ["unheard-of", "zip", "rot13", "a\0b", "x" * 5000, "utf-16"])
def test_an_encoding_in_a_model_file_need_not_be_one(command, encoding):
    document = json.loads((FOLDER / "command.json").read_text())
    document["details"]["encoding"]["text_encoding"] = encoding
    Path("model.json").write_text(forged(document))
    command.succeeds("predict", "model.json", TABLE)  # UTF-8, so it is not asked for
    Path("t.csv").write_bytes(TABLE.read_text(encoding="utf-8").encode("latin-1"))
    message = command.refuses("predict", "model.json", "t.csv")
    said = "is not utf-16 text" if encoding == "utf-16" else "this Python knows no encoding"
    assert f"t.csv {said}" in message or f"t.csv is not UTF-8 text, and {said}" in message


@pytest.mark.parametrize("how", [(), ("--categories", "sets")])
def test_one_long_label_in_a_small_file_cannot_fill_the_memory(command, how):
    """An array of text takes the room of the longest value for each row."""
    long = "x" * 20_000
    rows = "\n".join(f"{number % 97},{('no', 'yes')[number % 2]}" for number in range(20_000))
    Path("t.csv").write_text(f"a,y\n{rows}\n5,{long}\n6,{long}\n")
    message = command.refuses("train", "t.csv", "--target", "y", *how)
    assert message.startswith("t.csv: the column 'y' holds a text of 20 000 characters, for which")
    assert "20 002 rows would take 1.6 GB; shorten it" in message
