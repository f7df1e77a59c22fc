"""Figures show the numbers of the JSON."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from made_up import absent, report, run
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from bench import records
from bench.figures import draw, figure_of
from bench.records import Report, Section, Speed
from bench.report import page_of, read
from bench.summary import per_round, preparation, spread, whole_fit

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"
FILES = sorted(RESULTS.glob("*.json"))
DRAWN = [file for file in FILES if isinstance(read(file), Report)]  # accuracy has tables only


PEERS = Section(
    "drawn",
    (
        run((0.2, 1.2), (0.3, 1.5), (0.2, 1.1), contender="gpustump"),
        run((1.0, 9.0), contender="slow"),
        absent(),
    ),
)
GROWTH = Section(
    "samples",
    tuple(
        run((0.5 * m, 1.5 * m), (0.5 * m, 1.7 * m), contender="gpustump numpy", samples=m)
        for m in (10, 1000)
    ),
)


def points(figure: Figure, panel: int) -> list[tuple[float, float]]:
    """The markers of a panel that is drawn with error bars."""
    lines = [container.lines[0] for container in figure.axes[panel].containers]
    return [tuple(point) for line in lines for point in line.get_xydata()]


def whiskers(figure: Figure, panel: int) -> list[list[float]]:
    found = [container.lines[2][0] for container in figure.axes[panel].containers]
    return [sorted(segment[:, 0]) for bars in found for segment in bars.get_segments()]


def test_peers_show_the_median_of_a_round_and_of_a_whole_fit_with_their_spread():
    figure = figure_of(report("peers", PEERS))
    measured = PEERS.runs[:2]
    rounds = [(spread(per_round(each)).median * 1e3, row) for row, each in enumerate(measured)]
    fits = [(spread(whole_fit(each)).median, row) for row, each in enumerate(measured)]
    assert_allclose(points(figure, 0), rounds)
    assert_allclose(points(figure, 1), fits)
    assert_allclose(whiskers(figure, 0)[0], [90, 120])
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["gpustump", "slow"]


def test_growth_shows_rounds_and_preparation_over_the_axis_and_the_exponent():
    figure = figure_of(report("growth", GROWTH))
    drawn = [
        (run.samples, spread(of(run)).median * 1e3)
        for of in (per_round, preparation)
        for run in GROWTH.runs
    ]
    assert_allclose(points(figure, 0), drawn)
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["numpy 1.00"]
    assert figure.axes[0].get_xscale() == figure.axes[0].get_yscale() == "log"
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["10", "1k"]


def test_sizes_on_an_axis_are_shortened_without_loss():
    section = Section(
        "samples", tuple(run((1, 2), samples=m) for m in (100, 4096, 25_000, 1_600_000))
    )
    axes = figure_of(report("growth", section)).axes[0]
    labels = [tick.get_text() for tick in axes.get_xticklabels()]
    assert labels == ["100", "4.096k", "25k", "1.6M"]


def test_limit_shows_both_yardsticks_where_the_speeds_put_them():
    speed = Speed("cpu", 1, copied=24_000, copy=(0.1,), gathered=8_000, gather=(0.2,))
    section = Section("limit", (run((0.0, 10.0), contender="gpustump numpy"),))
    figure = figure_of(report("limit", section, speeds=(speed,)))
    bounds = [line.get_xdata()[0] for line in figure.axes[0].lines if len(line.get_xdata()) == 2]
    assert bounds == pytest.approx([100.0, 200.0])  # ms


def test_the_panel_shows_shares_of_the_fastest_peer_and_leaves_out_who_has_none():
    figure = figure_of(report("panel", PEERS, Section("late", (PEERS.runs[0], absent()))))
    shares = [(per_round, 0.1 / 0.8), (whole_fit, 1.2 / 9.0)]
    for panel, (_, share) in enumerate(shares):
        assert_allclose(points(figure, panel), [(share, 0)])
    assert len(figure.axes[0].get_yticklabels()) == 2


def test_nothing_measured_is_an_empty_panel_and_no_failure():
    nobody = Section("drawn", (absent(),))
    speed = Speed("cpu", 1, 10, (0.1,), 10, (0.1,))
    for benchmark in ("backends", "peers", "panel"):
        figure_of(report(benchmark, nobody))
    figure_of(report("growth", Section("samples", nobody.runs)))
    figure_of(report("limit", nobody, speeds=(speed,)))


@pytest.mark.parametrize("benchmark", ["backends", "peers"])
def test_the_same_json_gives_the_same_file(benchmark, tmp_path):
    path = tmp_path / "x.json"
    records.write(report(benchmark, PEERS), path)
    first = draw(path).read_bytes()
    assert draw(path).read_bytes() == first


def test_there_are_results():
    assert {file.stem for file in FILES} >= {"accuracy", "backends", "peers", "growth", "limit"}


@pytest.mark.parametrize("file", DRAWN, ids=lambda file: file.stem)
def test_committed_figures_were_drawn_from_the_committed_json(file):
    records.read(file)
    origin = hashlib.sha256(file.read_bytes()).hexdigest().encode()
    assert origin in file.with_suffix(".svg").read_bytes()


def test_the_report_beside_them_is_of_these_files():
    text = (RESULTS / "report.md").read_text()
    for file in FILES:
        assert page_of(file) in text
    assert len(re.findall(r"^## ", text, re.M)) == len(FILES)
