"""Data files of every format, with faults in their bytes, and a program that reads them in turn.

    python tests/support/hostile_data.py N START

makes N faulty files of each kind in the current folder and reads them, or trains on one in twelve.
It leaves out those before the one with the number START. It ends with 0 if all of them are tables
or refused in one line, with 1 and the reason if not. `AT` holds the number and name of the last
one, for whoever finds that the process was ended.
"""

from __future__ import annotations

import bz2
import contextlib
import functools
import gzip
import io
import itertools
import lzma
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from mutations import limit_bytes, peak_bytes, with_other_bytes

from gpustump.cli import main
from gpustump.cli.errors import InputError
from gpustump.cli.read.files import read_table

AT = "at.txt"
N_ROWS = 40
LONGEST_MESSAGE = 2100
MOST_BYTES = 8 * 2**30
"""What the program may ask for, so that a claim of more cannot take the machine's memory."""

MOST_RESIDENT = 1_200_000_000
"""What it may take (bytes)."""


@functools.cache
def intact() -> dict[str, bytes]:
    """A file of every format that is read, by the ending of its name, after what tells it apart."""
    return dict(_files())


def _files() -> Iterator[tuple[str, bytes]]:
    import polars as pl

    rows = np.arange(N_ROWS)
    X = np.column_stack([rows, -rows % 7, rows % 5]) / 3.0
    frame = pl.DataFrame({
        "a": X[:, 0],
        "b": [("x", "y", 'say "z"')[row % 3] for row in rows],
        "day": pl.Series(rows, dtype=pl.Int32).cast(pl.Date),
        "gaps": [None if row % 7 == 0 else int(row) for row in rows],
        "flag": rows % 2 == 0,
        "kind": pl.Series([f"k{row % 4}" for row in rows], dtype=pl.Categorical),
        "y": (rows + rows % 3 > 20).astype(int),
    })  # fmt: skip
    text = frame.write_csv().encode()
    yield "text.csv", text
    yield "lines.csv", b'a,b,y\r\n"1,5","x\ny",no\r\n2,"two ""q""",yes\r\n3,,no\r\n4,w,yes\r\n' * 2
    yield "tabs.tsv", text.replace(b",", b"\t")
    yield "wide.csv", text.decode().encode("utf-16")
    packed: dict[str, Callable[[bytes], bytes]] = {
        "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress
    }  # fmt: skip
    yield from ((f"packed.csv.{ending}", pack(text)) for ending, pack in packed.items())
    yield "lines.jsonl", frame.write_ndjson().encode()
    for how in ("uncompressed", "snappy", "zstd", "gzip", "lz4"):
        yield f"{how}.parquet", _written(frame.write_parquet, compression=how)
    for how in ("uncompressed", "lz4", "zstd"):
        yield f"{how}.feather", _written(frame.write_ipc, compression=how)
        yield f"{how}-stream.arrow", _written(frame.write_ipc_stream, compression=how)
    y = np.asarray(["no", "yes"])[rows % 2]
    yield "rows.npy", _written(np.save, arr=np.column_stack([X, rows % 2]))
    yield "columns.npy", _written(np.save, arr=np.asfortranarray(X, dtype=np.float32))
    yield "named.npz", _written(np.savez, X=X, y=y, names=np.asarray(["a", "b", "c"]))
    yield "packed.npz", _written(np.savez_compressed, X=X, y=y)


def _written(write: Callable[..., object], **how: object) -> bytes:
    file = io.BytesIO()
    write(file, **how)
    return file.getvalue()


def faulty(name: str, number: int) -> str:
    """The name of a new file: this one with other bytes."""
    content = with_other_bytes(random.Random(f"{name} {number}"), intact()[name])
    path = f"{number}-{name}"
    Path(path).write_bytes(content)
    return path


def message_of_reading(path: str) -> str:
    """What is said of a file; nothing if it is a table."""
    try:
        table = read_table(path)
        assert [column.kind for column in table.columns]
    except InputError as error:
        message = str(error)
        assert path in message or "array" in message
        return message
    return ""


def message_of_training(path: str) -> str:
    """What the command says of a file; nothing if it wrote a model."""
    target = "3" if path.endswith("npy") else "y"
    text = io.StringIO()
    with contextlib.redirect_stderr(text):
        code = main(["train", path, "--target", target, "--rounds", "2", "--quiet"])
    model = Path("model.json")
    assert (code, model.exists()) in ((0, True), (2, False))
    model.unlink(missing_ok=True)
    lines = text.getvalue().splitlines()
    assert all(line.isprintable() and line.startswith("gpustump: ") for line in lines)
    return lines[-1] if code else ""


def run(n_each: int, start: int) -> None:
    cases = itertools.product(intact(), range(n_each))
    for at, (name, number) in itertools.islice(enumerate(cases), start, None):
        path = faulty(name, number)
        Path(AT).write_text(f"{at} {path}")
        try:
            message = (message_of_training if at % 12 == 11 else message_of_reading)(path)
            assert len(message) < LONGEST_MESSAGE
        except BaseException as error:  # a panic of polars is no Exception
            print(f"{path}: {error!r}")
            raise SystemExit(1) from error
        Path(path).unlink()
    assert peak_bytes() < MOST_RESIDENT


if __name__ == "__main__":
    limit_bytes(MOST_BYTES)
    run(*map(int, sys.argv[1:]))
