"""Standard input and output in every command, pipes and devices; output that has no room; and which
files a command replaces: its own and empty ones, any other only with --force."""

from __future__ import annotations

import gzip
import io
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from command import Command, command_fixture, run_process  # noqa: F401

posix = pytest.mark.skipif(os.name != "posix", reason="there are no such pipes or devices")


@pytest.fixture
def table(command: Command) -> np.ndarray:
    """A table with labels as .npz, its features in every format, and a model of it."""
    random = np.random.default_rng(3)
    X = random.normal(size=(200, 3))
    y = (X[:, 0] + random.normal(size=200) > 0).astype(int)
    np.savez("t.npz", X=X, y=y, names=["a", "b", "c"])
    np.savez("x.npz", X=X)
    np.save("x.npy", X)
    command.succeeds("train", "t.npz", "--target", "y", "--rounds", 10, "--quiet")
    command.succeeds("predict", "model.json", "t.npz", "-o", "expected.csv")
    return X


def give(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize(
    "name", ["csv", "parquet", "csv.gz", "tsv", "feather", "jsonl", "utf", "npy", "npz"]
)
def test_the_first_bytes_of_standard_input_tell_its_format(command, table, monkeypatch, name):
    if name not in ("npy", "npz"):
        polars = pytest.importorskip("polars")
        frame = polars.DataFrame(table, schema=["a", "b", "c"])
        frame.write_parquet("x.parquet")
        frame.write_ipc("x.feather")
        frame.write_ndjson("x.jsonl")
        frame.write_csv("x.csv")
        frame.write_csv("x.tsv", separator="\t")
        Path("x.csv.gz").write_bytes(gzip.compress(Path("x.csv").read_bytes()))
        Path("x.utf").write_bytes(Path("x.csv").read_text().encode("utf-16"))
    give(monkeypatch, Path(f"x.{name}").read_bytes())
    outcome = command.succeeds("predict", "model.json", "-", "-o", "-")
    assert outcome.out == Path("expected.csv").read_text()


def test_every_command_takes_standard_input_and_names_it(command, table, monkeypatch):
    content, model = Path("t.npz").read_bytes(), Path("model.json").read_bytes()
    give(monkeypatch, content)
    outcome = command.succeeds("train", "-", "--target", "y", "--rounds", 10, "-o", "new.json")
    assert outcome.row("data") == "standard input"
    assert Path("new.json").read_bytes() == model
    command.succeeds("explain", "model.json", "t.npz", "-o", "parts.csv")
    for source, arguments in (
        (content, ("explain", "model.json", "-")),
        (model, ("explain", "-", "t.npz")),
    ):
        give(monkeypatch, source)
        assert command.succeeds(*arguments).out == Path("parts.csv").read_text()
    for arguments in (("inspect", "-"), ("audit", "-", "t.npz")):
        give(monkeypatch, model)
        assert command.succeeds(*arguments).row("model") == "standard input"
    give(monkeypatch, content)
    assert "contributions" in command.succeeds("inspect", "model.json", "--data", "-").out
    give(monkeypatch, content)
    table_line = command.succeeds("audit", "model.json", "-").row("table")
    assert table_line == "standard input, 200 rows, 40 of them held out in training"


def test_what_standard_input_cannot_be_is_refused_by_its_name(command, table, monkeypatch):
    for content, arguments, said in (
        (b"", ("predict", "model.json", "-"), "standard input is empty."),
        (
            b"\0" * 100,
            ("predict", "model.json", "-"),
            "standard input is not a table: neither text",
        ),
        (b"PK\x03\x04 and no more", ("predict", "model.json", "-"), "standard input is not an int"),
        (b"a,b\n1,2\n", ("inspect", "-"), "standard input is not a gpustump model: it is not JSON"),
        (b'{"a": 1}', ("inspect", "-"), "standard input is not a gpustump model: it does not say"),
        (b"x", ("predict", "-", "-"), "MODEL and DATA are both -, standard input"),
        (b"x", ("explain", "-", "-"), "MODEL and DATA are both -, standard input"),
        (b"x", ("audit", "-", "-"), "MODEL and DATA are both -, standard input"),
        (b"x", ("inspect", "-", "--data", "-"), "MODEL and DATA are both -, standard input"),
    ):
        give(monkeypatch, content)
        assert command.refuses(*arguments).startswith(said)
    monkeypatch.setattr(sys, "stdin", None)  # as `<&-` leaves it
    assert command.refuses("inspect", "-") == "standard input is closed."


def test_a_model_on_a_stream_is_the_file_and_the_summary_goes_to_stderr(
    command, table, monkeypatch
):
    give(monkeypatch, Path("t.npz").read_bytes())
    outcome = command("train", "-", "--target", "y", "--rounds", 10, "-o", "-")
    assert outcome.code == 0
    assert outcome.out == Path("model.json").read_text()
    assert "held-out accuracy" in outcome.err
    assert "written            standard output, " in outcome.err
    assert not Path("-").exists()
    if os.name == "posix":
        os.mkfifo("pipe")
        found: list[str] = []
        reader = threading.Thread(target=lambda: found.append(Path("pipe").read_text()))
        reader.start()
        command.succeeds("train", "t.npz", "--target", "y", "--rounds", 10, "--quiet", "-o", "pipe")
        reader.join(60)
        assert found == [outcome.out]


def test_results_are_refused_where_standard_output_is_closed(command, table, monkeypatch):
    monkeypatch.setattr(sys, "__stdout__", None)  # as `>&-` leaves it
    for arguments in (("predict", "model.json", "t.npz"), ("train", "-o", "-")):
        assert command.refuses(*arguments) == "--output: standard output is closed."


@posix
def test_copies_of_streams_do_not_outlive_the_process(command, table, tmp_path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    with open("x.npy", "rb") as stdin:
        outcome = run_process(
            *("predict", "model.json", "-"),
            folder=command.folder,
            stdin=stdin,
            env={**os.environ, "TMPDIR": str(folder)},
        )
    assert outcome.out == Path("expected.csv").read_text()
    assert list(folder.iterdir()) == []


def test_a_table_without_rows_has_an_empty_result(command, table, monkeypatch):
    polars = pytest.importorskip("polars")
    Path("header.csv").write_text("a,b,c\n")
    np.save("none.npy", table[:0])
    for data in ("header.csv", "none.npy"):
        assert command.succeeds("predict", "model.json", data).out == "row,prediction,P(0),P(1)\n"
        assert command.succeeds("explain", "model.json", data).out == "a,b,c,(intercept),(score)\n"
    for name, n_columns in (("predict", 4), ("explain", 5)):
        command.succeeds(name, "model.json", "none.npy", "-o", f"{name}.parquet")
        command.succeeds(name, "model.json", "none.npy", "-o", f"{name}.npz")
        assert polars.read_parquet(f"{name}.parquet").shape == (0, n_columns)
    with np.load("predict.npz") as predicted, np.load("explain.npz") as explained:
        assert predicted["probability"].shape == (0, 2)
        assert explained["contributions"].shape == (0, 4)
        assert explained["score"].shape == (0,)
    assert "no rows" in command.refuses("train", "header.csv", "--target", "a")
    assert "no rows" in command.refuses("inspect", "model.json", "--data", "none.npy")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names are Unicode text")
def test_names_that_are_no_text_are_names_like_others(command, table):
    polars = pytest.importorskip("polars")
    name = os.fsdecode(b"a\xff.csv")
    polars.DataFrame(table, schema=["a", "b", "c"]).write_csv("t.csv")
    os.rename("t.csv", name)
    assert command.succeeds("predict", "model.json", name).out == Path("expected.csv").read_text()
    command.succeeds("predict", "model.json", name, "-o", name.replace("csv", "parquet"))
    assert r"z\udcff.csv: No such file" in command.refuses(
        *("predict", "model.json", os.fsdecode(b"z\xff.csv"))
    )
    Path(name).write_text("a,b\n1,2\n")
    assert command.refuses("predict", "model.json", name).startswith(r"a\udcff.csv lacks 1 column")


@posix
@pytest.mark.parametrize("name", ["pipe.npy", "pipe.npz", "pipe"])
def test_a_pipe_is_read_once_in_any_format(command, table, name):
    os.mkfifo(name)
    content = Path("t.npz" if name == "pipe.npz" else "x.npy").read_bytes()
    arguments = ["predict", "model.json", name]
    for own, given in (
        (content, arguments),
        (Path("model.json").read_bytes(), ["predict", name, "t.npz"]),
    ):
        writer = threading.Thread(target=Path(name).write_bytes, args=(own,))
        writer.start()
        assert command.succeeds(*given).out == Path("expected.csv").read_text()
        writer.join(60)


@posix
def test_a_device_is_no_input_and_a_full_one_is_told_in_one_line(command, table):
    for device in ("/dev/zero", "/dev/null"):
        for arguments in (
            ("inspect", device),
            ("predict", "model.json", device),
            ("train", device, "--target", "y"),
            ("train", "t.npz", "--target", "y", "--feature-names", device),
            ("inspect", "model.json", "--edits", device),
        ):
            said = command.refuses(*arguments)
            assert said.startswith(f"{device} is a device; give the name of")
    if not os.path.exists("/dev/full"):
        return
    for output in ("full.csv", "full.npz", "full.parquet"):
        os.symlink("/dev/full", output)
        for name in ("predict", "explain"):
            message = command.refuses(name, "model.json", "t.npz", "-o", output)
            assert message.startswith(f"--output {output}: No space left on device")


@pytest.mark.parametrize("name", ["predict", "explain"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_a_result_replaces_only_a_result_with_the_same_columns(command, table, name, ending):
    if ending == "parquet":
        pytest.importorskip("polars")
    output, other = f"out.{ending}", {"predict": "explain", "explain": "predict"}[name]
    arguments = (name, "model.json", "t.npz", "-o", output)
    command.succeeds(*arguments)
    first = Path(output).read_bytes()
    command.succeeds(*arguments)  # its own
    assert Path(output).read_bytes() == first
    Path(output).write_bytes(b"")
    command.succeeds(*arguments)  # an empty one
    Path(output).unlink()
    command.succeeds(other, "model.json", "t.npz", "-o", output)
    message = command.refuses(*arguments)
    assert message == (
        f"--output: {output} exists and is not a result of this command with this model; give "
        "another name, or --force."
    )
    Path(output).write_bytes(b"my own notes\n" * 20)
    assert "--force" in command.refuses(*arguments)
    command.succeeds(*arguments, "--force")
    assert Path(output).read_bytes() == first
