"""The few figures that the README shows, from the committed results.

Each row compares gpustump with the best of the other contenders of the same run, whether it wins
or not. The rows are what people ask first: how good the models are, and how long a fit takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from bench.accuracy_tables import ERROR, LOG_LOSS, NUMBER_ERROR, TOGETHER, Kind, kinds
from bench.contenders import is_ours
from bench.markdown import markdown, number
from bench.records import Result, read
from bench.tables import fastest_peer, whole_fit

RESULTS = Path(__file__).parent / "results"
GLASS = "gpustump GlassBox"
_WITH_TREES = "31 leaves"  # in the names of those that are no glass boxes


class Row(NamedTuple):
    """A question, our figure, the others' best figure and whose it is."""

    question: str
    ours: str
    best: str
    whose: str


def page() -> str:
    """The table, as Markdown.

    Raises
    ------
    FormatError
        If one of the files is not that of its benchmark.
    """
    rows = [*_losses()]
    for title, pairs in (("glass box", ""), ("glass box with pairs", "-pairs")):
        for name in ("glassbox", "quantities"):
            rows += _glass_boxes(title, kinds(read(RESULTS / f"{name}{pairs}.json")))
    return markdown(["what", "gpustump", "best other", ""], [*rows, *_fits()])


def _losses() -> Iterator[Row]:
    """Log-losses of as many stumps as the others make."""
    for name in ("accuracy", "accuracy-classes"):
        for kind in kinds(read(RESULTS / f"{name}.json")):
            means = kind.means("log_loss")
            best = min((who for who in means if not is_ours(who)), key=means.__getitem__)
            ours, theirs = (LOG_LOSS.shown(means[who]) for who in ("gpustump LogitBoost", best))
            yield Row(f"log-loss of LogitBoost, {_tables(kind)}", ours, theirs, best)


def _glass_boxes(title: str, found: Sequence[Kind]) -> Iterator[Row]:
    """Our glass box beside the best of the others; times are shares of the EBM's."""
    found = [kind for kind in found if kind.n_common]
    glass = GLASS if GLASS in found[0].contenders else f"{GLASS}, no pairs"
    for kind in found:
        for score in (LOG_LOSS, ERROR) if LOG_LOSS in kind.scores else (NUMBER_ERROR,):
            means = kind.means(score.name)
            others = [who for who in means if not is_ours(who) and _WITH_TREES not in who]
            best = min(others, key=means.__getitem__)
            ours, theirs = (score.shown(means[who]) for who in (glass, best))
            about = f"{title}: {score.title.lower()}, {_tables(kind)}"
            yield Row(about, ours, theirs, best)
    whole = found[:1] if found[0].title == TOGETHER else found
    time = "time to fit" if found[0].time == "fit" else "processor time"
    *first, last = (kind.title for kind in whole)
    titles = f"{', '.join(first)} and {last}" if first else last
    tables = f"{sum(kind.n_common for kind in whole)} tables of {titles}"
    logs = [math.log(kind.ratios(kind.time)[glass][0]) for kind in whole]
    share = math.exp(fmean(logs, [kind.n_common for kind in whole]))
    yield Row(f"{title}: {time}, as a share, {tables}", number(share), "1", str(whole[0].ebm))


def _tables(kind: Kind) -> str:
    return f"{kind.n_common} tables of {kind.title}"


def _fits() -> Iterator[Row]:
    """Whole fits of 100 rounds, with discrete votes and by two losses."""
    files = ("panel", "panel-small", "panel-medium")
    panel = {
        name: own for file in files for name, own in read(RESULTS / f"{file}.json").cases.items()
    }
    for contender, votes, names in (
        ("gpustump", "discrete votes", "{} {}"),
        ("gpustump LogitBoost", "LogitBoost", "{} {}"),
        ("gpustump squared", "squared loss", "squared-{} {}-quantity"),
    ):
        for size, data in (
            ("large", "noise"), ("small", "heavy"), ("small", "mixed"), ("medium", "noise")
        ):  # fmt: skip
            yield _fit(panel[names.format(size, data)], contender, f"{data}, {votes}")
    adaboost = ("gpustump", "scikit-learn AdaBoost")
    peers = next(iter(read(RESULTS / "peers.json").cases.values()))
    yield _fit([own for own in peers if own.contender in adaboost], "gpustump", "AdaBoost")
    large = next(iter(read(RESULTS / "gpu-large.json").cases.values()))
    yield _fit(large, "gpustump cuda, CuPy arrays", "on a GPU (H100), its arrays")


def _fit(results: Sequence[Result], contender: str, about: str) -> Row:
    """The median of the turns, and that of the fastest peer."""
    ours = next(own for own in results if own.contender == contender)
    peer = fastest_peer(whole_fit, results)
    assert peer is not None, f"{about} has no peer"
    size = f"{ours.samples} x {ours.features}"
    own, its = (f"{number(median(whole_fit(each)))} s" for each in (ours, peer))
    name = peer.contender.removesuffix(" squared")
    return Row(f"{ours.rounds[1]} rounds, {size}: {about}", own, its, name)
