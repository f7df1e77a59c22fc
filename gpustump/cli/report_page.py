"""`gpustump train --report`: what training printed, drawn and explained, as one page of HTML.

The page holds everything it shows: pictures are part of it, styles too, and there is no script. So
it can be mailed, kept beside the model, and opened without a network. The text around the pictures
says how to read them; it lives in `report_page.html`.
"""

from __future__ import annotations

import base64
import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpustump import __version__
from gpustump.cli import inspect, report
from gpustump.cli.applied import names_in_pictures
from gpustump.cli.drawing import as_bytes, check_matplotlib, drawing, new_figure
from gpustump.cli.errors import MissingLibraryError
from gpustump.cli.task import Part, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gpustump import AdaBoostClassifier, StumpEnsemble

MARK = "<!-- a report of gpustump -->"
"""Stands at a report's beginning; a file without it is not replaced."""

MOST_ROWS = 100_000
"""More rows than this are not drawn: a random choice of them shows the same."""

MOST_CLASSES = 3
"""With more classes, only the most frequent ones have pictures of their own."""

_RULES = 10
_DPI = 144


@dataclass(frozen=True)
class Picture:
    """A picture in the page: what it is of, in words, and its PNG as text."""

    title: str
    png: str


class Rows(NamedTuple):
    """Rows to draw: a table, labels, and weights if there are any."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None


@dataclass(frozen=True)
class _Study:
    """What the pictures are of.

    Attributes
    ----------
    classifier : AdaBoostClassifier
        As it was fitted.
    plain : StumpEnsemble
        Its model, as it was saved.
    model : StumpEnsemble
        The same, with the features' names as pictures show them.
    trained : Rows
    held_out : Rows or None
        None as well if none of them has a weight.
    members : list of (label, str)
        The scores that have pictures of their own: what `plots` wants to know of each, and its name
        in a title.
    """

    classifier: AdaBoostClassifier
    plain: StumpEnsemble
    model: StumpEnsemble
    trained: Rows
    held_out: Rows | None
    members: list[tuple[Any, str]]


def check_libraries() -> None:
    """Refuse --report before the training if what it needs is missing.

    Raises
    ------
    MissingLibraryError
    """
    check_matplotlib("--report")
    if importlib.util.find_spec("jinja2") is None:
        raise MissingLibraryError("--report", "Jinja2", extra="plots")


def page(
    classifier: AdaBoostClassifier,
    model: StumpEnsemble,
    task: Task,
    parts: tuple[Part, Part | None],
    rows: Sequence[tuple[str, str]],
) -> bytes:
    """The page.

    Parameters
    ----------
    classifier : AdaBoostClassifier
        As it was fitted.
    model : StumpEnsemble
        Its model, with the features' names.
    task : Task
    parts : (Part, Part or None)
        The rows trained on, and those held out.
    rows : sequence of (str, str)
        What the command line reports: names and values.
    """
    import jinja2

    trained, held_out = parts
    named = replace(model, feature_names=names_in_pictures(model, task.encoding))
    watched = None if held_out is None else _drawn(held_out)
    if watched is not None and watched.weights is not None and not watched.weights.any():
        watched = None
    study = _Study(classifier, model, named, _drawn(trained), watched, _members(model, trained))
    with drawing():
        pictures = {
            "errors": list(_errors(study)),
            "shapes": list(_shapes(study)),
            "importances": list(_importances(study)),
            "margins": list(_margins(study)),
        }
    source = resources.files("gpustump.cli").joinpath("report_page.html").read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    text = environment.from_string(source).render(
        mark=MARK,
        version=__version__,
        target=report.shortened(task.target),
        source=report.shortened(task.source),
        rows=_with_lines([*rows, ("settings", _settings(model))]),
        is_binary=model.is_binary,
        has_stumps=model.n_rounds > 0,
        has_held_out=watched is not None,
        positive=report.shortened(str(model.classes[1])),
        n_classes=len(model.classes),
        drawn_classes=[report.shortened(str(label)) for label, _ in study.members],
        intercept=", ".join(report.number(value) for value in model.intercepts),
        most_rows=report.thousands(MOST_ROWS),
        is_sampled=max(len(part.rows) for part in parts if part is not None) > MOST_ROWS,
        rules=_rules(study),
        digest=model.digest(),
        **pictures,
    )
    return text.encode()


def _errors(study: _Study) -> Iterator[Picture]:
    from gpustump import plots

    rows: dict[str, Any] = {}
    if study.held_out is not None:
        X, y, weights = study.held_out
        rows = {"X": X, "y": y, "sample_weight": weights}
        if not study.model.is_binary and study.model.n_rounds:
            figure = new_figure(7.0, 3.9)
            plots.error_curve(study.classifier, **rows, ax=figure.add_subplot())
            yield _picture(figure, "Held-out error of the whole model by round")
    for label, name in study.members:
        figure = new_figure(7.0, 4.9)
        plots.error_curve(study.classifier, **rows, label=label, ax=figure.add_subplot())
        yield _picture(figure, f"Errors by round{name}")


def _shapes(study: _Study) -> Iterator[Picture]:
    from gpustump import plots

    X, _, weights = study.trained
    for label, name in study.members:
        tables = study.model.members[study.model.member_index(label)].tables[1]
        n_panels = min(6, max(1, len(tables)))
        figure = new_figure(0.5 + 3.1 * min(n_panels, 3), 2.7 * (1 if n_panels <= 3 else 2))
        plots.shape_functions(study.model, X=X, sample_weight=weights, label=label, figure=figure)
        yield _picture(figure, f"What the features add to the score{name}")


def _importances(study: _Study) -> Iterator[Picture]:
    from gpustump import plots

    X, _, weights = study.trained
    figure = new_figure(7.0, 3.9)
    plots.importances(study.model, X, sample_weight=weights, ax=figure.add_subplot())
    yield _picture(figure, "Shares of the features in the contributions and in the votes")


def _margins(study: _Study) -> Iterator[Picture]:
    from gpustump import plots

    X, y, weights = study.trained
    for label, name in study.members:
        figure = new_figure(6.2, 3.9)
        ax = figure.add_subplot()
        plots.margin_distribution(study.model, X, y, sample_weight=weights, label=label, ax=ax)
        yield _picture(figure, f"Margins of the rows trained on{name}")


def _members(model: StumpEnsemble, trained: Part) -> list[tuple[Any, str]]:
    """The scores that are drawn: the only one, or those of the most frequent classes."""
    if model.is_binary:
        return [(None, "")]
    counts = [int(np.count_nonzero(trained.y == label)) for label in model.classes]
    order = sorted(range(len(counts)), key=lambda k: -counts[k])[:MOST_CLASSES]
    labels = [model.classes[k] for k in sorted(order)]
    return [(label, f": {report.shortened(str(label))} against the rest") for label in labels]


def _drawn(part: Part) -> Rows:
    """The rows of a part that are drawn."""
    chosen = np.arange(len(part.rows))
    if len(chosen) > MOST_ROWS:
        chosen = np.sort(np.random.default_rng(0).permutation(len(chosen))[:MOST_ROWS])
    weights = None if part.weights is None else part.weights[chosen]
    return Rows(part.X[part.rows[chosen]], part.y[chosen], weights)


def _rules(study: _Study) -> list[list[str]]:
    """The first rules of the scores that are drawn."""
    rules = inspect.rules(study.plain, _RULES, "gpustump inspect MODEL --rounds")
    return [rules[study.model.member_index(label)] for label, _ in study.members]


def _picture(figure: Figure, title: str) -> Picture:
    return Picture(title, base64.b64encode(as_bytes(figure, "png", _DPI)).decode())


def _settings(model: StumpEnsemble) -> str:
    """What the command line asked for, from the model's own details."""
    return ", ".join(
        f"{name.replace('_', ' ')} {value}" for name, value in model.details["training"].items()
    )


def _with_lines(rows: Sequence[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Names with all their lines: an empty name goes on with the one above."""
    found: list[tuple[str, list[str]]] = []
    for name, value in rows:
        if name:
            found.append((name, [value]))
        else:
            found[-1][1].append(value)
    return found
