"""The README's table: its numbers are those of the whole tables, and of the best other library."""

from __future__ import annotations

import pytest

from bench.__main__ import main
from bench.front import RESULTS
from bench.report import page_of


def cells(markdown: str) -> list[list[str]]:
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture(scope="module")
def rows(request: pytest.FixtureRequest) -> dict[str, list[str]]:
    from bench.front import page

    return {name: rest for name, *rest in cells(page())[2:]}


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("accuracy", "log-loss of LogitBoost, 26 tables of two classes"),
        ("accuracy-classes", "log-loss of LogitBoost, 16 tables of more than two classes"),
    ],
)
def test_log_losses_are_those_of_the_table_of_means(rows, name, question):
    titles, _, *lines = cells(page_of(RESULTS / f"{name}.json", only_means=True))
    losses = {line[0]: float(line[titles.index("log-loss")]) for line in lines if line[1] != "-"}
    others = {who: loss for who, loss in losses.items() if "gpustump" not in who}
    ours, best, whose = rows[question]
    assert float(ours) == losses["gpustump LogitBoost"]
    assert (float(best), others[whose]) == (min(others.values()),) * 2


def test_glass_boxes_are_compared_by_the_table_of_means(rows):
    found = cells(page_of(RESULTS / "glassbox.json", only_means=True))
    titles = found[0]
    starts = [at for at, line in enumerate(found) if line[0] == ""]
    kinds = ("42 tables of two classes or more", "26 tables of two classes")
    kinds = (*kinds, "16 tables of more than two classes")
    for start, kind in zip(starts, kinds, strict=True):
        lines = {line[0]: line for line in found[start + 2 : start + 10]}
        for what, column in (("log-loss", "log-loss"), ("error, %", "error, %")):
            ours, best, _ = rows[f"glass box: {what}, {kind}"]
            assert ours == lines["gpustump GlassBox"][titles.index(column)]
            assert best == lines["interpret EBM"][titles.index(column)]
        if kind == kinds[0]:
            ours, _, _ = rows[f"glass box: time to fit, as a share, {kind}"]
            assert ours == lines["gpustump GlassBox"][titles.index("x EBM's")]


def test_glass_boxes_of_quantities_are_compared_by_the_tables_of_means(rows):
    found = cells(page_of(RESULTS / "quantities.json", only_means=True))
    starts = [at for at, line in enumerate(found) if line[0] == ""]
    asked = [name for name in rows if name.startswith("glass box: error, ") and "%" not in name]
    for start, question in zip(starts, asked, strict=True):
        lines = {}
        for name, error, *_ in found[start + 2 : start + 9]:
            lines[name] = float(error)
        ours, best, whose = rows[question]
        others = [n for n in lines if "gpustump" not in n and n != "LightGBM, 31 leaves"]
        assert float(ours) == lines["gpustump GlassBox"]
        assert float(best) == min(lines[name] for name in others)
        assert lines[whose.removesuffix(", no pairs")] == float(best)


def test_fits_are_shown_where_others_are_faster_too(rows):
    fits = {name: cells for name, cells in rows.items() if name.startswith("100 rounds")}
    seconds = [[float(cell.removesuffix(" s")) for cell in cells[:2]] for cells in fits.values()]
    assert len(fits) == 8
    assert {ours < best for ours, best in seconds} == {True, False}


def test_the_command_prints_the_table(capsys, rows):
    assert main(["front"]) == 0
    assert len(cells(capsys.readouterr().out)) == len(rows) + 2
