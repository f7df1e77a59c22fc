"""The same table in every format, compression and encoding gives the same model and predictions."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
from command import command_fixture  # noqa: F401

from gpustump import StumpEnsemble

polars = pytest.importorskip("polars")


@pytest.fixture
def frame():
    r = np.random.default_rng(0)
    n = 120
    x = r.normal(size=n)
    return polars.DataFrame(
        {
            "größe": x,
            "menge": [None if k % 11 == 0 else int(k % 13) for k in range(n)],
            "farbe": r.choice(["grün", "rot", "blau"], n),
            "label": np.where(x + r.normal(size=n) > 0.2, "ja", "nein"),
        }
    )


def digest(command, *options) -> str:
    command.succeeds("train", *options, "--target", "label", "--rounds", 10, "--quiet")
    return StumpEnsemble.load("model.json").digest()


def predictions(command, data: str) -> bytes:
    command.succeeds("predict", "model.json", data, "-o", "out.csv")
    return Path("out.csv").read_bytes()


PACKED = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("packed", PACKED)
def test_compressed_text_is_read_and_a_damaged_file_is_named(command, frame, packed):
    pack = PACKED[packed]
    texts = {
        ".csv": frame.write_csv(),
        ".tsv": frame.write_csv(separator="\t"),
        ".jsonl": frame.write_ndjson(),
    }
    Path("plain.csv").write_text(texts[".csv"])
    expected = digest(command, "plain.csv"), predictions(command, "plain.csv")
    for ending, text in texts.items():
        name = f"table{ending}{packed}"
        Path(name).write_bytes(pack(text.encode()))
        assert (digest(command, name), predictions(command, name)) == expected
        for damaged in (pack(text.encode())[:200], text.encode()):
            Path(name).write_bytes(damaged)
            message = command.refuses("train", name, "--target", "label")
            assert message.startswith(f"{name} is not an intact ")


WRITERS = {
    ".feather": "write_ipc",
    ".arrow": "write_ipc_stream",
    ".ipc": "write_ipc",
    ".ndjson": "write_ndjson",
    ".pq": "write_parquet",
}


def test_feather_arrow_json_lines_and_parquet_are_read(command, frame):
    frame.write_csv("plain.csv")
    expected = digest(command, "plain.csv"), predictions(command, "plain.csv")
    for ending, write in WRITERS.items():
        name = "table" + ending
        getattr(frame, write)(name)
        assert (digest(command, name), predictions(command, name)) == expected
        message = command.refuses("train", name, "--target", "lable")
        assert "no column 'lable'" in message
        Path(name).write_bytes(Path(name).read_bytes()[:150] + b"{")
        assert "cannot be read as" in command.refuses("train", name, "--target", "label")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le"])
def test_an_encoding_can_be_named_and_predicting_knows_it(command, frame, encoding):
    frame.write_csv("plain.csv")
    expected = digest(command, "plain.csv")
    texts = predictions(command, "plain.csv")
    Path("other.csv").write_bytes(Path("plain.csv").read_text("utf-8").encode(encoding))
    if encoding == "latin-1":
        message = command.refuses("train", "other.csv", "--target", "label")
        assert "not UTF-8 text; save it as UTF-8, or name its encoding" in message
        assert "--encoding latin-1" in message
    if encoding == "utf-16":  # its mark tells
        assert digest(command, "other.csv") == expected
    assert digest(command, "other.csv", "--encoding", encoding) == expected
    if encoding != "utf-16-le":
        assert predictions(command, "other.csv") == texts
    assert predictions(command, "plain.csv") == texts


@pytest.mark.parametrize(
    ("option", "value"), [("--decimal", ","), ("--date-order", "dmy"), ("--encoding", "latin-1")]
)
@pytest.mark.parametrize("name", ["table.parquet", "table.arrow"])
def test_options_about_text_are_refused_for_files_that_hold_values(
    command, frame, name, option, value
):
    (frame.write_parquet if name.endswith("parquet") else frame.write_ipc)(name)
    message = command.refuses("train", name, "--target", "label", option, value)
    assert f"{option} is not for {name}" in message
