"""`python -m bench front`: the few figures that the README shows, from the committed results.

Each row compares gpustump with the best of the other contenders of the same run, whether it wins
or not. The rows are what people ask first: how good the models are, and how long a fit takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean, geometric_mean, median
from typing import NamedTuple

from bench import (
    accuracy_records,
    accuracy_tables,
    glassbox_records,
    glassbox_tables,
    quantities,
    records,
)
from bench.contenders import is_ours
from bench.glassbox_contenders import EBM
from bench.records import Section
from bench.summary import fastest_peer, whole_fit
from bench.tables import markdown, number

RESULTS = Path(__file__).parent / "results"
GLASS = "gpustump GlassBox"


class GlassRuns(NamedTuple):
    """Runs of the glass boxes: what they are called, their files, and what the EBM is called."""

    title: str
    classes: str
    quantities: str
    ebm: str


RUNS = (
    GlassRuns("glass box", "glassbox.json", "quantities.json", f"{EBM.name}, no pairs"),
    GlassRuns("glass box with pairs", "glassbox-pairs.json", "quantities-pairs.json", EBM.name),
)
"""The first ones were measured without pairs of features, which both have by default."""


class Row(NamedTuple):
    """A question, our figure, the others' best figure and whose it is."""

    question: str
    ours: str
    best: str
    whose: str


def page(folder: Path = RESULTS) -> str:
    """The table, as Markdown.

    Raises
    ------
    FormatError
        If one of the files is not that of its benchmark.
    """
    rows = [*_losses(folder)]
    for runs in RUNS:
        rows += [*_glass_boxes(folder, runs), *_quantities(folder, runs)]
    rows += _fits(folder)
    return markdown(["what", "gpustump", "best other", ""], rows)


def _losses(folder: Path) -> Iterator[Row]:
    """Log-losses of as many stumps as the others make."""
    for name in ("accuracy", "accuracy-classes"):
        for kind in accuracy_tables.kinds(accuracy_records.read(folder / f"{name}.json")):
            score = accuracy_tables.LOG_LOSS
            means = {each: kind.mean(each, score.of) for each in kind.contenders}
            others = {each: mean for each, mean in means.items() if not is_ours(each)}
            best = min(others, key=others.__getitem__)
            yield Row(
                f"log-loss of LogitBoost, {_tables(kind)}",
                score.shown(means["gpustump LogitBoost"]),
                score.shown(others[best]),
                best,
            )


def _glass_boxes(folder: Path, runs: GlassRuns) -> Iterator[Row]:
    """`GlassBoxClassifier` beside the Explainable Boosting Machine."""
    found = glassbox_records.read(folder / runs.classes)
    kinds = [kind for kind in glassbox_tables.kinds(found) if kind.common]
    if len(kinds) > 1:
        kinds.insert(0, glassbox_tables.together(found))
    whole = kinds[0]
    for kind in kinds:
        about = _tables(kind)
        for score in (glassbox_tables.LOG_LOSS, glassbox_tables.ERROR):
            rows = [glassbox_tables.row(table, score.of) for table in kind.common]
            ours, ebm = (
                score.shown(fmean(row[name] for row in rows)) for name in (GLASS, EBM.name)
            )
            yield Row(f"{runs.title}: {score.title.lower()}, {about}", ours, ebm, runs.ebm)
    ratios = glassbox_tables.ratios(whole, glassbox_tables.FIT.of, GLASS).values()
    took = f"{number(geometric_mean(ratios))}"
    yield Row(f"{runs.title}: time to fit, as a share, {_tables(whole)}", took, "1", runs.ebm)


def _quantities(folder: Path, runs: GlassRuns) -> Iterator[Row]:
    """`GlassBoxRegressor` beside the best of the other glass boxes."""
    found: quantities.Quantities = records.decoded(folder / runs.quantities, quantities.Quantities)
    for summary in quantities.summaries(found):
        about = f"{summary.n_common} tables of {summary.title}"
        others = {
            name: error
            for name, error in summary.errors.items()
            if not is_ours(name) and name != quantities.WITH_TREES
        }
        best = min(others, key=others.__getitem__)
        whose = runs.ebm if best == EBM.name else best
        error = f"{summary.errors[GLASS]:.4f}"
        yield Row(f"{runs.title}: error, {about}", error, f"{others[best]:.4f}", whose)
    all_of_them = quantities.summaries(found)
    weights = [summary.n_common for summary in all_of_them]
    took = number(math.exp(fmean([math.log(own.shares[GLASS]) for own in all_of_them], weights)))
    *first, last = (own.title for own in all_of_them)
    kinds = f"{', '.join(first)} and {last}" if first else last
    about = f"{sum(weights)} tables of {kinds}"
    yield Row(f"{runs.title}: processor time, as a share, {about}", took, "1", runs.ebm)


def _tables(kind: accuracy_tables.Kind | glassbox_tables.Kind) -> str:
    return f"{len(kind.common)} tables of {kind.title}"


def _fits(folder: Path) -> Iterator[Row]:
    """Whole fits of 100 rounds, with discrete votes and with LogitBoost's."""
    panel = records.read(folder / "panel.json")
    for contender, votes in (("gpustump", "discrete votes"), ("gpustump LogitBoost", "LogitBoost")):
        for size, data in ((1_000_000, "noise"), (200_000, "heavy"), (200_000, "mixed")):
            (section,) = (
                each
                for each in panel.sections
                if (each.runs[0].samples, each.runs[0].data) == (size, data)
                and each.runs[0].rounds == (10, 100)
            )
            yield _fit(section, contender, f"{data}, {votes}")
    (section, *_) = records.read(folder / "peers.json").sections
    exact = [run for run in section.runs if run.contender in ("gpustump", "scikit-learn AdaBoost")]
    yield _fit(Section(section.name, tuple(exact)), "gpustump", "AdaBoost")
    (section, *_) = records.read(folder / "gpu-large.json").sections
    yield _fit(section, "gpustump cuda, CuPy arrays", "on a GPU (H100), its arrays")


def _fit(section: Section, contender: str, about: str) -> Row:
    """The median of the turns, and that of the fastest peer."""
    seconds: Callable[..., float] = lambda run: median(whole_fit(run))  # noqa: E731
    ours = next(run for run in section.runs if run.contender == contender)
    peer = fastest_peer(whole_fit, section)
    assert peer is not None, f"{section.name} has no peer"
    rounds = ours.rounds[1]
    size = f"{ours.samples} x {ours.features}"
    return Row(
        f"{rounds} rounds, {size}: {about}",
        f"{number(seconds(ours))} s",
        f"{number(seconds(peer))} s",
        peer.contender,
    )
