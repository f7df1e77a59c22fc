"""CSV text that is made fast is what the standard library writes, byte for byte."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from gpustump.cli.write import csv_text, shortest_floats
from gpustump.cli.write.csv_text import CsvColumns, header_line
from gpustump.cli.write.shortest_floats import shortest_texts

AWKWARD = ["", " ", "a,b", 'say "no"', "two\nlines", "\r", "é", "0", "nan", "#", "'", ";", "\t"]
SPECIAL = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e16, 1e-5, 1e22, 5e-324, 0.1, 1.0, 2**53]


def by_the_library(columns: list[np.ndarray]) -> bytes:
    text = io.StringIO(newline="")
    rows = zip(*(column.tolist() for column in columns), strict=True)
    csv.writer(text, lineterminator="\r\n").writerows(rows)  # quotes both of these in a field
    return text.getvalue().replace("\r\n", "\n").encode()


def floats(random: np.random.Generator, n_rows: int) -> np.ndarray:
    return random.integers(-(2**63), 2**63 - 1, n_rows).view(np.float64)


@pytest.mark.parametrize("most", [2**16, 50])
def test_lines_are_those_of_the_standard_library(monkeypatch, most):
    monkeypatch.setattr(csv_text, "MOST_REMEMBERED", most)
    random = np.random.default_rng(0)
    kinds = {
        "text": lambda n: np.asarray(AWKWARD)[random.integers(0, len(AWKWARD), n)],
        "booleans": lambda n: random.random(n) < 0.5,
        "integers": lambda n: random.integers(-9, 9, n),
        "many integers": lambda n: random.integers(-(2**63), 2**63 - 1, n),
        "few floats": lambda n: np.asarray(SPECIAL)[random.integers(0, len(SPECIAL), n)],
        "any floats": lambda n: floats(random, n),
        "first few, then many": lambda n: np.append(np.ones(n // 2), random.random(n - n // 2)),
    }
    for names in ([name] for name in kinds):
        lines = CsvColumns(1)
        for n_rows in (100, 1, 0, 300):
            columns = [kinds[name](n_rows) for name in names]
            assert lines.lines(columns) == by_the_library(columns)
    lines = CsvColumns(len(kinds))
    for n_rows in (100, 300, 0, 200, 200):
        columns = [make(n_rows) for make in kinds.values()]
        assert lines.lines(columns) == by_the_library(columns)


def test_every_number_reads_back_as_itself():
    values = floats(np.random.default_rng(1), 20_000)
    strided = np.column_stack([values, values])[:, 1]
    text = CsvColumns(1).lines([strided]).decode()
    read = np.asarray([float(line) for line in text.splitlines()])
    assert np.array_equal(
        read.view(np.int64)[~np.isnan(values)], values.view(np.int64)[~np.isnan(values)]
    )
    assert np.array_equal(np.isnan(read), np.isnan(values))


def test_what_is_remembered_has_a_limit(monkeypatch):
    monkeypatch.setattr(csv_text, "MOST_REMEMBERED", 100)
    lines = CsvColumns(1)
    repeated = np.repeat(np.arange(90.0), 3)
    lines.lines([repeated])
    assert len(lines._texts[0]._floats) == 90
    lines.lines([repeated + 1000])
    assert len(lines._texts[0]._floats) == 0
    assert lines.lines([repeated]) == by_the_library([repeated])


def test_names_are_quoted_as_the_standard_library_quotes_them():
    line = header_line(AWKWARD)
    assert line == by_the_library([np.asarray([name]) for name in AWKWARD])
    assert list(csv.reader(io.StringIO(line.decode(), newline=""))) == [AWKWARD]


def hard_numbers(random: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """Numbers whose shortest text is hard to find, or that have no short one."""
    powers = np.concatenate([10.0 ** np.arange(-8, 20), 2.0 ** np.arange(-40, 70)])
    signs = random.choice([-1.0, 1.0], n)
    wide = random.normal(size=n) * 10 ** random.uniform(-6, 17, n)
    return {
        "uniform": random.random(n),
        "of every size": wide,
        "any bits": floats(random, n),
        "next to powers": np.concatenate(
            [powers, *(np.nextafter(powers, to) for to in (0.0, np.inf)), -powers]
        ),
        "few digits": np.round(random.normal(size=n) * 100, 3),
        "15 digits": np.round(random.random(n), 15),
        "16 digits, next to it": np.nextafter(np.round(random.random(n), 16), signs),
        "votes": random.integers(-(2**40), 2**40, n) / 2**36,
        "halves of the last digit": random.integers(-(2**20), 2**20, n) / 2**19,
        "whole": random.integers(0, 10**17, n).astype(np.float64) * signs,
        "none": np.empty(0),
        "special": np.asarray(SPECIAL),
    }


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_fewest_digits_are_those_of_repr(seed):
    n = 20_000 if seed == 0 else 100_000
    for name, values in hard_numbers(np.random.default_rng(seed), n).items():
        wanted = [repr(value).encode() for value in values.tolist()]
        found = shortest_texts(values)
        assert found == wanted, name


def test_numbers_beside_the_middle_of_two_decimals_are_left_to_repr():
    digits = np.random.default_rng(2).integers(10**15, 10**16, 50_000)
    texts = [f"0.{d}{end}" for d in digits.tolist() for end in ("5", "49", "51", "500001")]
    values = np.asarray(texts, dtype=np.float64)
    assert shortest_texts(values) == [repr(value).encode() for value in values.tolist()]


def test_few_numbers_need_repr(monkeypatch):
    asked = []
    monkeypatch.setattr(shortest_floats, "repr", lambda v: asked.append(v) or "", raising=False)
    shortest_texts(np.random.default_rng(0).random(100_000) * 0.999 + 0.0005)
    assert len(asked) < 10
