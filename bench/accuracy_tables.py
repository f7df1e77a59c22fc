"""Tables of `python -m bench accuracy`, from its JSON: means over the folds, as Markdown.

Tables of classes, of more classes, of quantities, counts and costs are shown apart. Means are over
the tables that all contenders did. Times are compared with interpret's EBM on the same table; the
mean of such ratios is the geometric one: if both sides are swapped, it becomes its reciprocal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean
from typing import NamedTuple

import polars as pl

from bench.contenders import EBM
from bench.markdown import NOTHING, markdown, number
from bench.real_tables import KINDS, TABLES
from bench.records import Report

TOGETHER = "two classes or more"
CLASSES = (KINDS["two"], KINDS["more"])


class Score(NamedTuple):
    """What is compared: less is better."""

    name: str
    """Of the values in the record."""
    title: str
    shown: Callable[[float], str]


ERROR = Score("error", "Error, %", lambda value: f"{100 * value:.2f}")
NUMBER_ERROR = Score("error", "Error", "{:.4f}".format)
LOG_LOSS = Score("log_loss", "Log-loss", "{:.4f}".format)
BRIER = Score("brier", "Brier score", "{:.4f}".format)


class Kind:
    """The tables of one kind.

    Attributes
    ----------
    title : str
    frame : polars.DataFrame
        A row for each table and contender that was measured: the means over the folds.
    common : polars.DataFrame
        Its rows of the tables that all contenders did.
    ebm : str or None
        The EBM with whose times others are compared.
    """

    def __init__(self, title: str, frame: pl.DataFrame) -> None:
        self.title, self.frame = title, frame
        everybody = frame["contender"].n_unique()
        self.common = frame.filter(pl.len().over("table") == everybody)
        self.contenders = frame["contender"].unique(maintain_order=True).to_list()
        self.ebm = next((who for who in (EBM, f"{EBM}, no pairs") if who in self.contenders), None)
        self.n_common = self.common["table"].n_unique()
        known = [name for name in frame.columns if frame[name].null_count() == 0]
        self.time = "fit" if "fit" in known else "cpu"
        error = ERROR if title in (*CLASSES, TOGETHER) else NUMBER_ERROR
        self.scores = [own for own in (error, LOG_LOSS, BRIER) if own.name in known]
        self.has_predictions = "predict" in known

    def means(self, name: str) -> dict[str, float]:
        """The mean of each contender over the common tables."""
        found = self.common.group_by("contender", maintain_order=True).agg(pl.col(name).mean())
        return dict(found.select("contender", name).iter_rows())

    def ranks(self, score: Score) -> dict[str, float]:
        """The mean rank, 1 for the least; values that are shown alike share the mean of theirs."""
        shown = pl.col(score.name).map_elements(
            lambda value: float(score.shown(value)), return_dtype=pl.Float64
        )
        found = self.common.with_columns(shown=shown).with_columns(
            rank=pl.col("shown").rank("average").over("table")
        )
        means = found.group_by("contender", maintain_order=True).agg(pl.col("rank").mean())
        return dict(means.iter_rows())

    def ratios(self, name: str) -> dict[str, tuple[float, float]]:
        """Of a time over the EBM's: the geometric mean and the greatest, of each contender."""
        ebm = self.common.filter(pl.col("contender") == self.ebm).select("table", base=pl.col(name))
        found = (
            self.common.join(ebm, on="table", maintain_order="left")
            .with_columns(ratio=pl.col(name) / pl.col("base"))
            .group_by("contender", maintain_order=True)
            .agg(mean=pl.col("ratio").log().mean().exp(), most=pl.col("ratio").max())
        )
        return {who: (mean, most) for who, mean, most in found.iter_rows()}


def kinds(report: Report) -> list[Kind]:
    """A kind of tables after the other, as far as somebody was measured; first both of classes."""
    rows = [
        {
            "kind": own.case,
            "table": own.data,
            "size": f"{own.samples} x {own.features}",
            "folds": own.n_turns,
            "contender": own.contender,
            **{name: fmean(values) for name, values in own.values.items()},
        }
        for own in report.results
        if own.reason is None
    ]
    if not rows:
        return []
    frame = pl.DataFrame(rows, infer_schema_length=None)
    found = [
        Kind(title, frame.filter(pl.col("kind") == title))
        for title in KINDS.values()
        if (frame["kind"] == title).any()
    ]
    classes = frame.filter(pl.col("kind").is_in(CLASSES))
    return [Kind(TOGETHER, classes), *found] if classes["kind"].n_unique() == 2 else found


def pages(report: Report, *, only_means: bool) -> list[str]:
    """All that a run says, or the means alone."""
    parts = [] if only_means else [_tables(report)]
    for kind in kinds(report):
        parts.append(_summary(kind))
        if not only_means and kind.title != TOGETHER:
            parts += [_by_table(kind, score) for score in kind.scores]
    reasons: dict[tuple[str, str], list[str]] = {}
    for own in report.results:
        if own.reason is not None:
            reasons.setdefault((own.contender, own.reason[:120]), []).append(own.data)
    listed = "; ".join(
        f"{who} on {', '.join(names)} ({reason})" for (who, reason), names in reasons.items()
    )
    return [*parts, *([f"Not measured: {listed}."] if listed else [])]


def _tables(report: Report) -> str:
    rows = {}
    for own in report.results:
        classes = own.facts.get("classes", [])
        rows[own.data] = [
            own.data,
            str(own.samples),
            str(own.features),
            str(len(classes)) if classes else NOTHING,
            number(100 * min(classes) / own.samples) if classes else NOTHING,
            number(100 * own.facts["missing"]) if "missing" in own.facts else NOTHING,
            TABLES[own.data].about if own.data in TABLES else NOTHING,
        ]
    columns = ["", "samples", "features", "classes", "rarest, %", "missing, %", "what"]
    return f"**The tables**\n\n{markdown(columns, list(rows.values()))}"


def _summary(kind: Kind) -> str:
    """A row for each contender: means over the common tables."""
    n_tables = kind.frame["table"].n_unique()
    heading = (
        f"**{kind.title.capitalize()}**: means over {kind.n_common} of {n_tables} tables, those "
        "that all of these contenders did"
    )
    if not kind.n_common:
        return heading
    columns: list[tuple[str, Mapping[str, str]]] = []
    for score in kind.scores:
        means = kind.means(score.name).items()
        columns.append((score.title.lower(), {who: score.shown(mean) for who, mean in means}))
    best = LOG_LOSS if LOG_LOSS in kind.scores else kind.scores[0]
    shown = {who: number(rank) for who, rank in kind.ranks(best).items()}
    columns.append((f"rank, {best.title.partition(',')[0].lower()}", shown))
    unit = "s" if kind.time == "fit" else "s of the processor"
    seconds = {who: number(mean) for who, mean in kind.means(kind.time).items()}
    columns.append((f"fit, {unit}", seconds))
    if kind.ebm is not None:
        fits = kind.ratios(kind.time)
        columns.append(("x EBM's", {who: number(mean) for who, (mean, _) in fits.items()}))
        columns.append(("most", {who: number(most) for who, (_, most) in fits.items()}))
        if kind.has_predictions:
            predict = {who: number(mean) for who, (mean, _) in kind.ratios("predict").items()}
            columns.append(("predict, x EBM's", predict))
    rows = [[who, *(cells[who] for _, cells in columns)] for who in kind.contenders]
    return f"{heading}\n\n{markdown(['', *(title for title, _ in columns)], rows)}"


def _by_table(kind: Kind, score: Score) -> str:
    """A row for each table, a column for each contender; the best in bold."""
    rows = []
    for (table,), frame in kind.frame.group_by("table", maintain_order=True):
        values = dict(frame.select("contender", score.name).iter_rows())
        (size, folds), *_ = frame.select("size", "folds").iter_rows()
        plural = "fold" if folds == 1 else "folds"
        rows.append([f"{table}, {size}, {folds} {plural}", *_cells(kind, values, score)])
    if kind.n_common:
        rows.append(["mean", *_cells(kind, kind.means(score.name), score)])
    return f"**{score.title}, {kind.title}**\n\n{markdown(['', *kind.contenders], rows)}"


def _cells(kind: Kind, values: Mapping[str, float], score: Score) -> list[str]:
    """The values of a row, the least in bold; values that are shown alike count as equal."""
    texts = {who: score.shown(value) for who, value in values.items()}
    least = min(texts.values(), key=float)
    marked = {who: f"**{text}**" if text == least else text for who, text in texts.items()}
    return [marked.get(who, NOTHING) for who in kind.contenders]
