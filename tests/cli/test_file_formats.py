"""The same table in every format, compression and encoding gives the same model and predictions."""

from __future__ import annotations

import bz2
import gzip
import importlib
import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from command import command_fixture  # noqa: F401

from gpustump import StumpEnsemble

polars = pytest.importorskip("polars")


def zstd():
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            pass
    return pytest.skip("needs Python 3.14 or backports.zstd")


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


@pytest.mark.parametrize("packed", [*PACKED, ".zst"])
@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl"])
def test_compressed_text_is_read(command, frame, ending, packed):
    pack = PACKED.get(packed) or zstd().compress
    write = {
        ".csv": frame.write_csv,
        ".tsv": lambda f: frame.write_csv(f, separator="\t"),
        ".jsonl": frame.write_ndjson,
    }
    write[ending]("table" + ending)
    Path(f"table{ending}{packed}").write_bytes(pack(Path("table" + ending).read_bytes()))
    frame.write_csv("plain.csv")
    expected = digest(command, "plain.csv")
    assert digest(command, f"table{ending}{packed}") == expected
    expected = predictions(command, "plain.csv")
    assert predictions(command, f"table{ending}{packed}") == expected


@pytest.mark.parametrize("packed", [*PACKED, ".zst"])
def test_a_damaged_compressed_file_is_named(command, frame, packed):
    pack = PACKED.get(packed) or zstd().compress
    content = pack(frame.write_csv().encode())
    name = f"table.csv{packed}"
    for damaged in (content[: len(content) // 2], b"plain,text\n1,2\n"):
        Path(name).write_bytes(damaged)
        message = command.refuses("train", name, "--target", "label")
        assert message.startswith(f"{name} is not an intact ")


@pytest.mark.parametrize("ending", [".feather", ".arrow", ".ipc", ".ndjson", ".jsonl", ".pq"])
def test_feather_arrow_and_json_lines_are_read(command, frame, ending):
    frame.write_csv("plain.csv")
    name = "table" + ending
    write = {".ndjson": "write_ndjson", ".jsonl": "write_ndjson", ".pq": "write_parquet"}
    getattr(frame, write.get(ending, "write_ipc"))(name)
    expected = digest(command, "plain.csv")
    assert digest(command, name) == expected
    assert predictions(command, name) == predictions(command, "plain.csv")
    message = command.refuses("train", name, "--target", "lable")
    assert "no column 'lable'" in message
    Path("broken" + ending).write_bytes(Path(name).read_bytes()[:150] + b"{")
    assert "cannot be read as" in command.refuses("train", "broken" + ending, "--target", "label")


def test_an_arrow_stream_is_read_too(command, frame):
    frame.write_csv("plain.csv")
    frame.write_ipc_stream("stream.arrow")
    assert digest(command, "stream.arrow") == digest(command, "plain.csv")


def test_dates_in_json_lines_are_dates(command):
    rows = [{"day": f"2020-01-{k:02}", "label": int(k > 14)} for k in range(1, 29)]
    Path("table.jsonl").write_text("\n".join(map(json.dumps, rows)))
    outcome = command.succeeds("train", "table.jsonl", "--target", "label")
    assert outcome.row("encoded") == "day: date, in days since 1970-01-01"


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le"])
def test_an_encoding_can_be_named_and_predicting_knows_it(command, frame, encoding):
    frame.write_csv("plain.csv")
    expected = digest(command, "plain.csv")
    texts = predictions(command, "plain.csv")
    Path("other.csv").write_bytes(Path("plain.csv").read_text("utf-8").encode(encoding))
    if "16" not in encoding:
        message = command.refuses("train", "other.csv", "--target", "label")
        assert "not UTF-8 text; save it as UTF-8, or name its encoding" in message
        assert "--encoding latin-1" in message
    assert digest(command, "other.csv", "--encoding", encoding) == expected
    if encoding != "utf-16-le":
        assert predictions(command, "other.csv") == texts
    assert predictions(command, "plain.csv") == texts
    details = json.loads(Path("model.json").read_text())["details"]
    assert details["encoding"]["text_encoding"]


def test_utf_16_with_its_mark_needs_no_option(command, frame):
    frame.write_csv("plain.csv")
    Path("wide.csv").write_bytes(Path("plain.csv").read_text("utf-8").encode("utf-16"))
    assert digest(command, "wide.csv") == digest(command, "plain.csv")


def test_decimal_commas_give_the_same_model_and_are_mentioned(command, frame):
    frame.write_csv("plain.csv")
    with_commas = frame.with_columns(
        polars.col("größe").map_elements(lambda x: repr(x).replace(".", ","), polars.String)
    )
    with_commas.write_csv("comma.csv", separator=";")
    with_commas.write_csv("quoted.csv", quote_style="always")
    expected = digest(command, "plain.csv")
    texts = predictions(command, "plain.csv")
    assert digest(command, "comma.csv") == expected
    assert predictions(command, "comma.csv") == texts
    outcome = command.succeeds("train", "comma.csv", "--target", "label", "--rounds", 2)
    assert "separated by semicolons" in outcome.out
    assert "decimal commas in 'größe'" in outcome.out
    assert "more than 64" in command.refuses("train", "quoted.csv", "--target", "label")
    assert digest(command, "quoted.csv", "--decimal", ",") == expected
    for name in ("quoted.csv", "plain.csv", "comma.csv"):
        assert predictions(command, name) == texts
