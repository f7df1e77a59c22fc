"""Data files with faults, and arrays that claim what they do not hold: one line each, or a table.

The usual run makes a few hundred; `bash ci/test --all-faults` makes 12 000, and trains on a part.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import hostile_data
import numpy as np
import pytest
from classifiers import drawn
from command import command_fixture  # noqa: F401
from fault_counts import count
from forged_files import forged
from golden_models import FOLDER, TABLE
from hostile_data import intact

from gpustump.cli.errors import InputError
from gpustump.cli.read.files import read_table, unchanged

pytest.importorskip("polars")

VALUES = np.arange(12.0).tobytes()


def npy(shape: object = (4, 3), *, descr: object = "<f8", order: object = False, **more) -> bytes:
    """An array file whose header says this, true or not."""
    text = f"{{'descr': {descr!r}, 'fortran_order': {order!r}, 'shape': {shape!r}, }}"
    return with_header(text, **more)


def with_header(text: str, *, values=VALUES, version=(1, 0), length=None) -> bytes:
    header = text.encode("latin-1") + b"\n"
    size = struct.pack("<H" if version == (1, 0) else "<I", length or len(header))
    return b"\x93NUMPY" + bytes(version) + size + header + values


HEADERS = {
    "negative": npy((-4, -3)),
    "huge": npy((10**30, 3)),
    "huge whose bytes overflow": npy((2**61, 8)),
    "one row too many": npy((5, 3)),
    "a shape that is a list": npy([4, 3]),
    "no dimension": npy(()),
    "many columns without rows": npy((0, 10**12)),
    "order that is a word": npy(order="yes"),
    "no dtype": npy(descr="nothing"),
    "dtype of fields": npy(descr=[("a", "<f8")]),
    "dtype of itself": npy(descr=[("a", [("b", [])])]),
    "dates": npy(descr="<M8[s]"),
    "text without letters": npy((4, 10**9), descr="<U0"),
    "objects": npy(descr="|O"),
    "a later version": npy(version=(9, 0)),
    "a header of a gigabyte": npy(version=(2, 0), length=2**30),
    "a call": with_header("open('new.txt', 'w')"),
    "brackets": with_header("(" * 5000),
    "no values": npy(values=b""),
    "letters beyond ASCII": with_header("{'é': 1}"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_a_header_that_cannot_be_true_is_one_line(command, case):
    Path("t.npy").write_bytes(HEADERS[case])
    with zipfile.ZipFile("t.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", HEADERS[case])
    for name in ("t.npy", "t.npz"):
        message = command.refuses("train", name, "--target", "0")
        assert name in message or "not enough memory" in message


@pytest.fixture
def archive(command) -> bytes:
    X, y = drawn()
    y = np.where(np.arange(len(y)) < 3, np.nan, y)
    np.savez_compressed("t.npz", X=X, y=y, other=X[:, 0], more=X.reshape(8, 10, 6))
    return Path("t.npz").read_bytes()


def test_a_message_does_not_repeat_the_file(command, archive):
    at = archive.index(b"X.npy")
    for start, new in ((at - 4, struct.pack("<H", 3000)), (at + 500, b"\0\1")):
        damaged = bytearray(archive)
        damaged[start : start + 2] = new  # the length of the name; some values
        Path("t.npz").write_bytes(damaged)
        message = command.refuses("train", "t.npz", "--target", "y")
        assert "is not an intact NumPy file" in message
        assert len(message) < 1000


def test_a_table_that_is_written_to_while_it_is_read_is_refused(tmp_path):
    path = tmp_path / "t.npy"
    np.save(path, np.ones((10, 3)))
    for change in (lambda: path.write_bytes(b"more"), lambda: os.utime(path, ns=(0, 0))):
        with (
            pytest.raises(InputError, match=r"t\.npy was changed while it was read; wait until"),
            unchanged(str(path)),
        ):
            change()
    with unchanged(str(path)):  # the old file is still mapped
        np.save(tmp_path / "new.npy", np.ones((5, 3)))
        os.replace(tmp_path / "new.npy", path)
    for other in (str(tmp_path), "-", None):
        with unchanged(other):
            pass


def test_a_mapped_table_that_changes_during_training_makes_no_model(command, monkeypatch):
    np.save("t.npy", np.column_stack(drawn()))
    from gpustump.cli.commands import train

    fitted = train._fitted

    def fit_and_write(*arguments: object) -> object:
        np.lib.format.open_memmap("t.npy", mode="r+")[0, 0] = 7.0
        os.utime("t.npy", ns=(1, 1))  # clocks of files tick slowly
        return fitted(*arguments)

    monkeypatch.setattr(train, "_fitted", fit_and_write)
    outcome = command("train", "t.npy", "--target", 4, "--rounds", 3)
    assert outcome.code == 2
    assert "t.npy was changed while it was read" in outcome.err
    assert "model.json" not in command.files()


def test_an_array_that_cannot_be_read_matters_only_if_it_is_asked_for(command, archive):
    with zipfile.ZipFile("t.npz", "a") as opened:
        opened.writestr("notes.npy", b"hello")
        opened.writestr("readme.txt", b"hello")
    arguments = ("train", "t.npz", "--drop-missing-target", "--rounds", 3, "--target")
    command.succeeds(*arguments, "y")
    for name in ("notes", "readme.txt"):
        assert f"{name!r} is not an intact NumPy file" in command.refuses(*arguments, name)


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
        assert f"Give --missing '{word}' for missing values" in message


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
    assert "the column 'y' holds a text of 20 000 characters, for which an array" in message
