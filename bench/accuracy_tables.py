"""Tables of `python -m bench accuracy`, from its JSON: means over the folds, as Markdown.

Tables with two classes and with more are shown apart. Contenders that differ in the learning rate
only are a group. The first table has a row for each of them. Each later one, of one score, has a
column for each group: that of the contender with the lowest mean of this score. It is chosen on the
held-out samples themselves, which favours libraries that have a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from bench.accuracy_records import Accuracy, Fold, Result, TableResults
from bench.tables import NOTHING, markdown, number, origin

Scores = Mapping[str, Mapping[str, float]]
"""For each table, the score of each contender that was measured on it."""


class Score(NamedTuple):
    """What is compared: less is better."""

    title: str
    of: Callable[[Fold], float]
    decimals: int

    def shown(self, value: float) -> str:
        """A value as a cell."""
        return f"{value:.{self.decimals}f}"


ERROR = Score("Error, %", lambda fold: 100 * fold.error, 2)
LOG_LOSS = Score("Log-loss", lambda fold: fold.log_loss, 4)


class Kind(NamedTuple):
    """The tables with two classes, or those with more."""

    title: str
    tables: tuple[TableResults, ...]

    @property
    def contenders(self) -> tuple[str, ...]:
        """Those that were measured on a table at least, in their order."""
        return tuple(dict.fromkeys(r.contender for t in self.tables for r in _measured(t)))

    @property
    def common(self) -> tuple[TableResults, ...]:
        """The tables on which all of them were measured."""
        count = len(self.contenders)
        return tuple(table for table in self.tables if len(_measured(table)) == count)

    def mean(self, contender: str, of: Callable[[Fold], float]) -> float:
        """The mean of a contender over folds, then over the common tables."""
        return fmean(_mean(_result(table, contender), of) for table in self.common)

    def columns(self, score: Score) -> tuple[str, ...]:
        """The best of each group, by the mean of a score."""
        groups: dict[str, list[str]] = {}
        for table in self.tables:
            for result in _measured(table):
                members = groups.setdefault(result.group, [])
                if result.contender not in members:
                    members.append(result.contender)
        return tuple(
            members[0]
            if len(members) == 1 or not self.common
            else min(members, key=lambda each: self.mean(each, score.of))
            for members in groups.values()
        )

    def scores(self, score: Score) -> dict[str, dict[str, float]]:
        """A row for each table: the score of each contender of the columns."""
        columns = self.columns(score)
        return {
            table.name: {
                result.contender: _mean(result, score.of)
                for result in _measured(table)
                if result.contender in columns
            }
            for table in self.tables
        }


def page(found: Accuracy, *, only_means: bool = False) -> str:
    """All that a run says, as Markdown, or the means alone, without machine and command.

    The seconds of a fit stay in the file: they are good for a plan, not for a comparison.
    """
    parts = [] if only_means else [_tables(found)]
    for kind in kinds(found):
        if kind.contenders:
            parts.append(_summary(kind, found))
            if not only_means:
                parts += [_scores(kind, score) for score in (ERROR, LOG_LOSS)]
        parts += _not_measured(kind)
    if not only_means:
        parts.append(origin(found.machine, found.started, found.command))
    return "\n\n".join(parts)


def kinds(found: Accuracy) -> list[Kind]:
    """The tables with two classes, and those with more, if there are such."""
    two = tuple(table for table in found.tables if len(table.classes) == 2)
    more = tuple(table for table in found.tables if len(table.classes) > 2)
    made = [Kind("two classes", two), Kind("more than two classes", more)]
    return [kind for kind in made if kind.tables]


def ranks(row: Mapping[str, float], shown: Callable[[float], str]) -> dict[str, float]:
    """1 for the least value. Values that are shown alike share the mean of their ranks."""
    values = [float(shown(value)) for value in row.values()]
    return {
        name: 1 + sum(other < value for other in values) + (values.count(value) - 1) / 2
        for name, value in zip(row, values, strict=True)
    }


def mean_ranks(kind: Kind, score: Score) -> dict[str, float]:
    """The mean rank of each contender of the columns over the common tables."""
    scores, common = kind.scores(score), [table.name for table in kind.common]
    ranked = [ranks(scores[name], score.shown) for name in common]
    return {name: fmean(row[name] for row in ranked) for name in kind.columns(score) if ranked}


def _tables(found: Accuracy) -> str:
    columns = ["", "samples", "features", "classes", "rarest, %", "missing, %", "what"]
    rows = [
        [
            table.name,
            str(table.samples),
            str(table.features),
            str(len(table.classes)),
            number(100 * min(table.classes) / table.samples),
            number(100 * table.missing),
            table.about,
        ]
        for table in found.tables
    ]
    heading = f"**The tables**: {found.folds} stratified folds, the same for all"
    return f"{heading}\n\n{markdown(columns, rows)}"


def _summary(kind: Kind, found: Accuracy) -> str:
    """A row for each contender: means over the common tables."""
    columns = ["", "error, %", "log-loss", "rank, error", "rank, log-loss", "stumps"]
    by_error, by_loss = (mean_ranks(kind, score) for score in (ERROR, LOG_LOSS))
    rows = []
    for name in kind.contenders if kind.common else ():
        ranked = [number(each[name]) if name in each else NOTHING for each in (by_error, by_loss)]
        means = [score.shown(kind.mean(name, score.of)) for score in (ERROR, LOG_LOSS)]
        stumps = kind.mean(name, lambda fold: fold.stumps)
        rows.append([name, *means, *ranked, f"{stumps:.0f}"])
    count = len(kind.common)
    heading = (
        f"**{kind.title.capitalize()}**: {found.rounds} rounds, {found.threads} threads; means "
        f"over {count} of {len(kind.tables)} tables, those that all of these contenders did"
    )
    return f"{heading}\n\n{markdown(columns, rows)}" if rows else heading


def _scores(kind: Kind, score: Score) -> str:
    """A row for each table, a column for each group; the best in bold."""
    columns, scores = kind.columns(score), kind.scores(score)
    rows = [[name, *cells(columns, row, score.shown)] for name, row in scores.items()]
    if kind.common:
        means = {name: kind.mean(name, score.of) for name in columns}
        rows.append(["mean", *cells(columns, means, score.shown)])
        rows.append(["mean rank", *cells(columns, mean_ranks(kind, score), lambda x: f"{x:.2f}")])
    return f"**{score.title}, {kind.title}**\n\n{markdown(['', *columns], rows)}"


def cells(
    columns: Sequence[str], row: Mapping[str, float], shown: Callable[[float], str]
) -> list[str]:
    """The values of a row, the least in bold; values that are shown alike count as equal."""
    texts = {name: shown(value) for name, value in row.items()}
    least = min(texts.values(), key=float, default="")
    marked = {name: f"**{text}**" if text == least else text for name, text in texts.items()}
    return [marked.get(name, NOTHING) for name in columns]


def _not_measured(kind: Kind) -> list[str]:
    """One sentence on who was not measured, with the reason and the tables; or nothing."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for table in kind.tables:
        for result in table.results:
            if result.reason is not None:
                reasons.setdefault((result.contender, result.reason[:120]), []).append(table.name)
    listed = "; ".join(
        f"{name}{_where(names, kind)} ({reason})" for (name, reason), names in reasons.items()
    )
    return [f"Not measured, {kind.title}: {listed}."] if listed else []


def _where(names: Sequence[str], kind: Kind) -> str:
    return "" if len(names) == len(kind.tables) else f" on {', '.join(names)}"


def _measured(table: TableResults) -> list[Result]:
    return [result for result in table.results if result.reason is None]


def _result(table: TableResults, contender: str) -> Result:
    return next(result for result in table.results if result.contender == contender)


def _mean(result: Result, of: Callable[[Fold], float]) -> float:
    return fmean(of(fold) for fold in result.folds)
