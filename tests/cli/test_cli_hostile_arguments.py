"""Nonsense for every option and argument of every command: one line, and no file is changed.

The usual run takes some of the pairs of an option and a value; `bash ci/test --all-faults` all.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from command import Command, command_fixture, refusal  # noqa: F401
from fault_counts import count

from gpustump.cli.options import _parsers
from gpustump.data.parameters import MOST_BAGS

pytest.importorskip("polars")

LONGEST_MESSAGE = 2100

NONSENSE = [
    *("", " ", "x" * 10_000, "x" * 300 + ".json", "-1", "-" + "9" * 50, "9" * 50, "9" * 5000),
    *("1e400", "nan", "inf", "-inf", "0", "3.5", "1e-320", "0x10", "٣", "1_0", "--", "-", "~"),
    *("\udcff", "\udcff.csv", "\udcff.json", "é.json", "\x1b[31m", "\n"),
    *("/", ".", "..", "/dev/zero", "/dev/full", "/dev/null", "/proc/self/mem", "../x/x.json"),
    *("t.csv", "model.json", "missing.csv", "empty.csv", "link.csv", "loop.csv", "folder.json"),
    *("out.csv", "out.html", "out.svg", "out.npz", "y", "a", "a,b", "a=1", "a=2", ",", "=", "{}"),
    *("%s", "*.csv", "[", "a:b", "auto", "cuda:99999999999", "utf-16", "zip", "sets", "1e30GB"),
]

GOOD = {
    "train": ["t.csv", "--target", "y", "--rounds", "2"],
    "predict": ["model.json", "t.csv"],
    "explain": ["model.json", "t.csv", "--row", "1"],
    "inspect": ["model.json"],
    "audit": ["model.json", "t.csv"],
    "export": ["model.json", "--to", "c", "-o", "out.h"],
    "devices": [],
    "kernels": [],
    "help": ["text"],
}
"""Arguments that each command takes; the files come first."""

FIRST_FILES = ("model.json", "t.csv")
N_FILES = {name: sum(own in FIRST_FILES for own in given[:2]) for name, given in GOOD.items()}


def wrong_commands() -> Iterator[list[str]]:
    """Every command with nonsense in one place."""
    for name, parser in _parsers()[1].items():
        for value in NONSENSE:
            for option in options_of(parser):
                yield [name, *GOOD[name], *with_value(option, value)]
            for place in range(N_FILES[name]):
                if value != "-":  # standard input, which is a terminal's in a debugger
                    given = [*GOOD[name]]
                    given[place] = value
                    yield [name, *given]


def options_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """All but --help, which needs no test."""
    return [a for a in parser._actions if a.option_strings and a.dest != "help"]


def with_value(option: argparse.Action, value: str) -> list[str]:
    name = option.option_strings[-1]
    return [name, value] if option.nargs == 0 else [f"{name}={value}"]


@pytest.fixture
def files(command: Command) -> Command:
    """A table, its model, and names that are no plain files."""
    rows = np.random.default_rng(0).normal(size=(40, 2))
    lines = [f"{a},{b},{abs(a)},{'no' if a < 0 else 'yes'}" for a, b in rows.tolist()]
    Path("t.csv").write_text("a,b,w,y\n" + "\n".join(lines) + "\n")
    command.succeeds("train", *GOOD["train"], "--quiet")
    Path("empty.csv").touch()
    Path("folder.json").mkdir()
    os.symlink("t.csv", "link.csv")
    os.symlink("loop.csv", "loop.csv")
    return command


@pytest.mark.filterwarnings("ignore::UserWarning")  # of learning rates that cannot serve
def test_nonsense_in_any_place_is_one_line_or_taken(files: Command) -> None:
    wrong = list(wrong_commands())
    random.Random(0).shuffle(wrong)
    n_refused = 0
    wanted = count(150, len(wrong))
    for arguments in wrong[:wanted]:
        shown = ascii([argument[:60] for argument in arguments])
        before = files.files()
        try:
            outcome = files(*arguments)
        except BaseException as error:
            raise AssertionError(f"{shown}: {error!r}") from error
        assert outcome.code in ((0, 1, 2) if arguments[0] == "audit" else (0, 2)), shown
        assert all(line.isprintable() for line in outcome.err.split("\n")), shown
        if outcome.code == 2:
            n_refused += 1
            assert files.files() == before, shown
            assert outcome.err.splitlines()[-1].startswith("gpustump: error: "), shown
            assert len(outcome.err) < LONGEST_MESSAGE, shown
        for name in files.files().keys() - before.keys():
            Path(name).unlink()
    assert n_refused > wanted / 2


def test_nonsense_that_used_to_end_in_a_traceback_is_one_line(files):
    for arguments, said in (
        (["explain", "model.json", "t.csv", "--row=--"], "'--row=--': -- is not a value"),
        (["train", "t.csv", "--target", "y", "--bags", "9" * 50], f"at most {MOST_BAGS}"),
        (["train", "t.csv", "--target", "y", "--missing", "\udcff"], r"must be text; got '\udcff'"),
        (["predict", "model.json", "t.csv", "--id", "\udcff"], r"must be text; got '\udcff'"),
        (["inspect", "x" * 10_000], " ... "),
    ):
        message = files.refuses(*arguments)
        assert said in message
        assert len(message) < LONGEST_MESSAGE
