"""Tables of `python -m bench glassbox`, from its JSON: means over the folds, as Markdown.

Tables with two classes and with more are shown apart, after the means over all of them. Times are
compared with interpret's EBM on the same table. The mean of ratios is the geometric one: if both
sides are swapped, it becomes its reciprocal.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean, geometric_mean
from typing import NamedTuple

from bench.accuracy_tables import cells, ranks
from bench.glassbox_contenders import EBM
from bench.glassbox_records import Glassbox, GlassFold, GlassResult, GlassTable
from bench.tables import NOTHING, markdown, number, origin


class Score(NamedTuple):
    """What is compared: less is better."""

    title: str
    of: Callable[[GlassFold], float]
    decimals: int

    def shown(self, value: float) -> str:
        """A value as a cell."""
        return f"{value:.{self.decimals}f}"


ERROR = Score("Error, %", lambda fold: 100 * fold.error, 2)
LOG_LOSS = Score("Log-loss", lambda fold: fold.log_loss, 4)
BRIER = Score("Brier score", lambda fold: fold.brier, 4)
SCORES = (ERROR, LOG_LOSS, BRIER)
FIT = Score("Fit, ms", lambda fold: 1e3 * fold.fit, 0)
PREDICT = Score("Predict, ms", lambda fold: 1e3 * fold.predict, 2)


class Kind(NamedTuple):
    """The tables with two classes, those with more, or all of them."""

    title: str
    tables: tuple[GlassTable, ...]

    @property
    def contenders(self) -> tuple[str, ...]:
        """Those that were measured on a table at least, in their order."""
        named = (result.contender for table in self.tables for result in measured(table))
        return tuple(dict.fromkeys(named))

    @property
    def common(self) -> tuple[GlassTable, ...]:
        """The tables on which all of them were measured."""
        count = len(self.contenders)
        return tuple(table for table in self.tables if len(measured(table)) == count)


def page(found: Glassbox, *, only_means: bool = False) -> str:
    """All that a run says, as Markdown, or the means alone, without machine and command."""
    parts = []
    if len(kinds(found)) > 1:
        parts.append(_summary(together(found), found))
    for kind in kinds(found):
        if kind.contenders:
            parts.append(_summary(kind, found))
            if not only_means:
                parts += [_scores(kind, score) for score in (*SCORES, FIT)]
        parts += _not_measured(kind)
    if not only_means:
        parts.append(origin(found.machine, found.started, found.command))
    return "\n\n".join(parts)


def kinds(found: Glassbox) -> list[Kind]:
    """The tables with two classes, and those with more, if there are such."""
    two = tuple(table for table in found.tables if len(table.classes) == 2)
    more = tuple(table for table in found.tables if len(table.classes) > 2)
    made = [Kind("two classes", two), Kind("more than two classes", more)]
    return [kind for kind in made if kind.tables]


def together(found: Glassbox) -> Kind:
    """All tables."""
    return Kind("two classes or more", found.tables)


def measured(table: GlassTable) -> list[GlassResult]:
    """Those that did all folds of a table."""
    return [result for result in table.results if result.reason is None]


def row(table: GlassTable, of: Callable[[GlassFold], float]) -> dict[str, float]:
    """The mean over the folds of each contender on a table."""
    return {
        result.contender: fmean(of(fold) for fold in result.folds) for result in measured(table)
    }


def ratios(kind: Kind, of: Callable[[GlassFold], float], contender: str) -> dict[str, float]:
    """A contender's mean divided by the EBM's, on each table that both did."""
    rows = {table.name: row(table, of) for table in kind.tables}
    both = {contender, EBM.name}
    return {
        name: found[contender] / found[EBM.name]
        for name, found in rows.items()
        if both <= found.keys()
    }


def _summary(kind: Kind, found: Glassbox) -> str:
    """A row for each contender: means over the common tables."""
    columns = ["", "error, %", "log-loss", "Brier score", "rank, log-loss"]
    columns += ["fit, s", "x EBM's", "most", "predict, x EBM's"]
    rows = [_means(kind, name) for name in kind.contenders if kind.common]
    heading = (
        f"**{kind.title.capitalize()}**: {found.threads} threads, up to {_folds(found)}; means "
        f"over {len(kind.common)} of {len(kind.tables)} tables, those that all of these contenders "
        "did; geometric means of times as ratios"
    )
    return f"{heading}\n\n{markdown(columns, rows)}" if rows else heading


def _folds(found: Glassbox) -> str:
    shuffles = "" if found.shuffles == 1 else f" of each of {found.shuffles} shuffles"
    return f"{found.folds} folds{shuffles}"


def _means(kind: Kind, contender: str) -> list[str]:
    scores = [
        score.shown(fmean(row(table, score.of)[contender] for table in kind.common))
        for score in SCORES
    ]
    rank = fmean(ranks(row(table, LOG_LOSS.of), LOG_LOSS.shown)[contender] for table in kind.common)
    seconds = fmean(row(table, lambda fold: fold.fit)[contender] for table in kind.common)
    shared = Kind(kind.title, kind.common)
    fits, predictions = (
        [*ratios(shared, score.of, contender).values()] for score in (FIT, PREDICT)
    )
    times = [number(geometric_mean(fits)), number(max(fits))] if fits else [NOTHING, NOTHING]
    times.append(number(geometric_mean(predictions)) if predictions else NOTHING)
    return [contender, *scores, number(rank), number(seconds), *times]


def _scores(kind: Kind, score: Score) -> str:
    """A row for each table, a column for each contender; the best in bold."""
    columns = kind.contenders
    rows = [
        [_title(table), *cells(columns, row(table, score.of), score.shown)] for table in kind.tables
    ]
    if kind.common:
        found = [row(table, score.of) for table in kind.common]
        means = {name: fmean(each[name] for each in found) for name in columns}
        rows.append(["mean", *cells(columns, means, score.shown)])
    return f"**{score.title}, {kind.title}**\n\n{markdown(['', *columns], rows)}"


def _title(table: GlassTable) -> str:
    """Its name, its size, and how many folds were measured."""
    folds = max((len(result.folds) for result in measured(table)), default=0)
    plural = "" if folds == 1 else "s"
    return f"{table.name}, {table.samples} x {table.features}, {folds} fold{plural}"


def _not_measured(kind: Kind) -> list[str]:
    """One sentence on who was not measured, with the reason and the tables; or nothing."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for table in kind.tables:
        for result in table.results:
            if result.reason is not None:
                reasons.setdefault((result.contender, result.reason[:120]), []).append(table.name)
    listed = "; ".join(
        f"{name} on {'all' if len(names) == len(kind.tables) else ', '.join(names)} ({reason})"
        for (name, reason), names in reasons.items()
    )
    return [f"Not measured, {kind.title}: {listed}."] if listed else []
