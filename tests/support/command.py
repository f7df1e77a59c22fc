"""Run the command line: in this process, which is fast, or as a process of its own."""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from gpustump.cli import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    def row(self, name: str) -> str:
        """The value beside a name in the summary."""
        (found,) = (line for line in self.out.splitlines() if line.startswith(f"{name}  "))
        return found.removeprefix(name).strip()


class Command:
    """`gpustump` in a folder of its own."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capture = capture

    def __call__(self, *arguments: object) -> Outcome:
        self._capture.readouterr()
        code = main([str(argument) for argument in arguments])
        return Outcome(code, *self._capture.readouterr())

    def succeeds(self, *arguments: object) -> Outcome:
        outcome = self(*arguments)
        assert (outcome.code, outcome.err) == (0, "")
        return outcome

    def lines(self, *arguments: object) -> list[str]:
        """What a command prints, with single spaces."""
        return [" ".join(line.split()) for line in self.succeeds(*arguments).out.splitlines()]

    def refuses(self, *arguments: object) -> str:
        """The message of a refusal; nothing else may be printed, and no file written."""
        before = self.files()
        outcome = self(*arguments)
        assert self.files() == before
        return refusal(outcome)

    def files(self) -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in self.folder.iterdir() if p.is_file()}


def refusal(outcome: Outcome) -> str:
    """The message of a refusal: one line on stderr, and nothing on stdout."""
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("gpustump: error: ")
    assert outcome.err.count("\n") == 1
    assert outcome.err.endswith("\n")
    assert outcome.err.rstrip("\n").isprintable()
    return outcome.err.removeprefix("gpustump: error: ").rstrip("\n")


def process(
    *arguments: object,
    folder: Path,
    without: tuple[str, ...] = (),
    **options: object,
) -> subprocess.Popen[str]:
    """The command as a process of its own, as if some modules were not installed."""
    program = (
        "import sys\n"
        "from importlib.machinery import PathFinder\n"
        "find = PathFinder.find_spec\n"
        "def find_others(name, *rest):\n"
        f"    return None if name.partition('.')[0] in {without!r} else find(name, *rest)\n"
        "PathFinder.find_spec = find_others\n"
        "from gpustump.cli import main\n"
        "sys.exit(main())\n"
    )
    given: dict[str, str] = options.pop("env", dict(os.environ))  # type: ignore[assignment]
    streams: dict[str, object] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=folder,
        text=True,
        env={**given, "PYTHONUNBUFFERED": ""},
        **{**streams, **options},  # type: ignore[call-overload]
    )


def run_process(*arguments: object, folder: Path, **options: object) -> Outcome:
    with process(*arguments, folder=folder, **options) as running:
        out, err = running.communicate(timeout=120)
    return Outcome(running.returncode, out or "", err or "")


def parts(n_rows: int, labels: object = None) -> tuple[np.ndarray, np.ndarray]:
    """The rows that `train` trains on, and those that it holds out; labels are those of classes."""
    rows = train_test_split(np.arange(n_rows), test_size=0.2, random_state=0, stratify=labels)
    return np.sort(rows[0]), np.sort(rows[1])


def mixed_table(n_rows: int = 300) -> Any:
    """Numbers, whole numbers and text with missing values; weights; and two columns of labels."""
    polars = pytest.importorskip("polars")
    random = np.random.default_rng(0)
    age, size = random.normal(40, 10, n_rows).round(2), random.integers(0, 9, n_rows)
    colour = random.choice(["red", "green", "blue"], n_rows)
    score = (age - 40) / 10 + (colour == "red") + random.normal(size=n_rows) / 2
    return polars.DataFrame(
        {
            "age": polars.Series(age).scatter(range(0, n_rows, 9), None),
            "size": size,
            "colour": polars.Series(colour).scatter(range(0, n_rows, 7), None),
            "weight": random.integers(1, 4, n_rows),
            "label": np.where(score > 0.3, "yes", "no"),
            "kind": np.digitize(score, [-0.3, 0.8]),
        }
    )


def numbers(text: str) -> list[float]:
    """The numbers in a line of a summary, but for those of percent."""
    found = re.findall(r"(?<!\w)[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\d%])", text)
    return list(map(float, found))


def read_csv(text: str) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of a result."""
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    return header, rows


@pytest.fixture(name="command")
def command_fixture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command(tmp_path, capsys)
