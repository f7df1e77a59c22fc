"""Names, labels and values that would harm if they were not escaped, through every command.

Reports may hold them as text only, terminals and pictures without control characters, and files as
they are. The usual run takes some tables; `bash ci/test --all-faults` takes 200.
"""

from __future__ import annotations

import csv
import io
import random
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from command import Command, Outcome, command_fixture  # noqa: F401
from fault_counts import count

from gpustump.cli.columns.training import as_text
from gpustump.data.readable import listed

pl = pytest.importorskip("polars")
pytest.importorskip("matplotlib")

HOSTILE = [
    *("\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x7f", "\x80\x9b31m", "a\0b", "a\nb", "a\rb"),
    *("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "&amp;", "-->", "]]>", "<!--"),
    *("\u202eevil\u2066", "\u200b", "\ufeff", "\u2028", "\x85", "\uffff", "x\u0300" * 200),
    *("x" * 10_000, "", " ", "\t", "\n", "\r", "'", '"', "\\", "/", "é", "\U0001f468\u200d"),
    *("../../x", "/dev/null", "-", "--force", "~", "$(touch x)", "`touch x`", "; touch x", "a|b"),
    *("=cmd|'/c calc'!A0", "@SUM(1)", "+1", "{}", "{0}", "}", "%s", "$x$", "$", "\\frac{", "_^"),
    *("nan", "null", "true", "inf", "0", "1e999", "a,b", "a;b", "a=1", "column 0"),
    *("prediction", "(intercept)", "(score)", "P(a)"),
]

RESULTS = [
    "model.json",
    *(f"{kind}.{ending}" for kind in ("p", "e") for ending in ("csv", "parquet", "npz")),
]
PICTURES = ["page.html", "all.svg", "row.svg"]


@pytest.mark.parametrize("number", range(count(3, 200)))
def test_hostile_names_labels_and_values_do_no_harm(command: Command, number: int) -> None:
    draw = random.Random(f"names {number}")
    labels = draw.sample(HOSTILE, draw.choice((2, 2, 3)))
    names = draw.sample([name for name in HOSTILE if name != "y"], 3)
    path = written_table(draw, names, labels)
    how = draw.choice(
        (["--categories", "sets"], ["--votes", "real"], ["--monotone", f"{names[0]}=1"], [])
    )
    has_pictures = number % 3 == 0
    trained = harmless(command("train", path, "--target=y", "--rounds", 3, *how))
    if trained.code == 2:
        assert set(command.files()) == {path}
        return
    if has_pictures:
        check_pictures(command, path)
    assert harmless(command("inspect", "model.json")).code == 0
    assert harmless(command("explain", "model.json", path, "--row", 1)).code == 0
    for name, kind in (("predict", "p"), ("explain", "e")):
        endings = ["csv", "parquet", "npz"]
        for ending in [*endings, draw.choice(endings)]:  # one of them once more, over its own file
            outcome = command(name, "model.json", path, "-o", f"{kind}.{ending}")
            assert harmless(outcome).code == 0
    predicted = pl.read_parquet("p.parquet")["prediction"].cast(pl.String).to_list()
    with open("p.csv", encoding="utf-8", newline="") as file:
        assert [row[1] for row in csv.reader(file)] == ["prediction", *predicted]
    assert set(command.files()) == {path, *RESULTS, *(PICTURES if has_pictures else [])}


def check_pictures(command: Command, path: str) -> None:
    for arguments in (
        ("inspect", "model.json", "--data", path, "--page", "page.html", "--plot", "all.svg"),
        ("explain", "model.json", path, "--row", 2, "--plot", "row.svg"),
    ):
        assert harmless(command(*arguments)).code == 0
        ElementTree.parse(arguments[-1])
    check_page(Path("page.html").read_text())


def written_table(draw: random.Random, names: list[str], labels: list[str]) -> str:
    """A table of such columns and labels, whose words are hostile, too; its name."""
    words = draw.sample(HOSTILE, 3)
    rows = np.arange(40)
    places = rows * len(labels) // len(rows)
    frame = pl.DataFrame({
        names[0]: places + np.sin(rows),
        names[1]: [words[row % 3] for row in rows],
        names[2]: [None if row % 5 == 0 else float(row % 7) for row in rows],
        "y": [labels[place] for place in places],
    })  # fmt: skip
    ending = draw.choice(("parquet", "csv", "jsonl", "feather"))
    write = {
        "parquet": frame.write_parquet,
        "csv": lambda path: frame.write_csv(path, quote_style="always"),
        "jsonl": frame.write_ndjson,
        "feather": frame.write_ipc,
    }
    write[ending](f"t.{ending}")
    return f"t.{ending}"


def harmless(outcome: Outcome) -> Outcome:
    """The outcome of a command, whose lines may hold nothing that a terminal obeys."""
    assert outcome.code in (0, 2)
    for line in (*outcome.out.split("\n"), *outcome.err.split("\n")):
        assert line.isprintable(), ascii(line)
        assert len(line) < 2100
    return outcome


class Elements(HTMLParser):
    """Refuses elements and attributes that do something."""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag not in ("iframe", "object", "embed", "form", "base")
        for name, value in attributes:
            assert not name.startswith("on"), name
            if name in ("src", "href"):
                assert str(value).startswith(("data:", "#", "https://")), value


def check_page(page: str) -> None:
    Elements().feed(page)
    assert "onerror=alert(1)>" not in page
    assert all(line.isprintable() for line in page.split("\n"))


def test_a_field_with_a_carriage_return_comes_back_from_a_csv_file(command):
    labels = ["a\rb", "\r", "c\n"] * 10
    frame = pl.DataFrame({"x": list(range(30)), "\r": [0.5, 1.0, 2.0] * 10, "y": labels})
    frame.write_parquet("t.parquet")
    command.succeeds("train", "t.parquet", "--target", "y", "--rounds", 3, "--quiet")
    command.succeeds("predict", "model.json", "t.parquet", "-o", "p.csv")
    content = Path("p.csv").read_bytes().decode()
    header, *rows = csv.reader(io.StringIO(content, newline=""))
    assert header == ["row", "prediction", "P(\r)", "P(a\rb)", "P(c\n)"]
    assert {row[1] for row in rows} <= {*labels}
    options = ("--target", "prediction", "--drop-missing-target", "--quiet", "-o", "next.json")
    command.succeeds("train", "p.csv", *options)  # "\r" is blank, so it counts as missing


def test_what_is_said_of_long_names_and_values_is_short_and_printable(command):
    long, hostile = "x" * 10_000, "a\0b\u202e"
    assert len(listed([long] * 9)) < 6 * 210
    assert as_text({hostile: 1, long: -1}).startswith(r"a\x00b\u202e=1, xxx")
    assert len(as_text({long: -1})) < 70
    rows = "".join(f"{number},{number % 2}\n" for number in range(9))
    for name, value, option in (
        ("a", long, ()),
        (long, "1", ["--drop=z"]),
        ("a", "1", ["--drop=" + long]),
    ):
        Path("t.csv").write_text(f"{name},y\n{rows}{value},1\n")
        assert len(command.refuses("train", "t.csv", "--target", "y", *option)) < 2100
