"""`gpustump train --report`: what training printed, drawn and explained, as one page of HTML.

The page holds everything it shows: pictures are part of it, styles too, and there is no script. So
it can be mailed, kept beside the model, and opened without a network. The text around the pictures
says how to read them; it lives in `report_page.html`.
"""

from __future__ import annotations

import base64
import importlib.util
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from gpustump import __version__
from gpustump.cli import inspect
from gpustump.cli.errors import MissingLibraryError
from gpustump.cli.task import Part, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gpustump import AdaBoostClassifier, StumpEnsemble

MARK = "<!-- a report of gpustump -->"
"""Stands at a report's beginning; a file without it is not replaced."""

MOST_ROWS = 100_000
"""More rows than this are not drawn: a random choice of them shows the same."""

MOST_CLASSES = 6
"""With more classes, only the most frequent ones have pictures of their own."""

_RULES = 10
_DPI = 144
_NEEDED = {"matplotlib": "Matplotlib", "jinja2": "Jinja2"}


@dataclass(frozen=True)
class Picture:
    """A picture in the page: what it is of, in words, and its PNG as text."""

    title: str
    png: str


def check_libraries() -> None:
    """Refuse --report before the training if what it needs is missing.

    Raises
    ------
    MissingLibraryError
    """
    for module, name in _NEEDED.items():
        if importlib.util.find_spec(module) is None:
            raise MissingLibraryError("--report", name, extra="plots")


def write(
    file: BinaryIO,
    classifier: AdaBoostClassifier,
    model: StumpEnsemble,
    task: Task,
    parts: tuple[Part, Part | None],
    rows: Sequence[tuple[str, str]],
) -> None:
    """Write the page.

    Parameters
    ----------
    file : binary file
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

    source = resources.files("gpustump.cli").joinpath("report_page.html").read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    trained, held_out = parts
    text = environment.from_string(source).render(
        mark=MARK,
        version=__version__,
        task=task,
        rows=_with_lines(rows),
        is_binary=model.is_binary,
        positive=str(model.classes[1]),
        n_classes=len(model.classes),
        n_drawn=MOST_ROWS if len(trained.rows) > MOST_ROWS else None,
        has_held_out=held_out is not None,
        weighted_by_edges=classifier.learning_rate == 1.0,
        errors=list(_errors(classifier, model, held_out)),
        shapes=list(_shapes(model, trained)),
        importances=list(_importances(model, trained)),
        margins=list(_margins(model, trained)),
        rules=inspect.rules(model, _RULES),
        digest=model.digest(),
    )
    file.write(text.encode())


def _errors(
    classifier: AdaBoostClassifier, model: StumpEnsemble, held_out: Part | None
) -> Iterator[Picture]:
    from gpustump import plots

    part = None if held_out is None else _drawn(held_out)
    for label, name in _members(model):
        figure = _figure(7.0, 4.9)
        rows = {} if part is None else {"X": part[0], "y": part[1], "sample_weight": part[2]}
        plots.error_curve(classifier, **rows, label=label, ax=figure.add_subplot())
        yield _picture(figure, f"Errors by round{name}")


def _shapes(model: StumpEnsemble, trained: Part) -> Iterator[Picture]:
    from gpustump import plots

    X, _, weights = _drawn(trained)
    for label, name in _members(model):
        n_panels = min(6, max(1, int(_used(model, label).sum())))
        figure = _figure(0.5 + 3.1 * min(n_panels, 3), 2.7 * (1 if n_panels <= 3 else 2))
        plots.shape_functions(model, X=X, sample_weight=weights, label=label, figure=figure)
        yield _picture(figure, f"What the features add to the score{name}")


def _importances(model: StumpEnsemble, trained: Part) -> Iterator[Picture]:
    from gpustump import plots

    if any(_used(model, label).any() for label, _ in _members(model)):
        figure = _figure(7.0, 3.9)
        plots.importances(model, _drawn(trained)[0], ax=figure.add_subplot())
        yield _picture(figure, "Shares of the features in the contributions and in the votes")


def _margins(model: StumpEnsemble, trained: Part) -> Iterator[Picture]:
    from gpustump import plots

    X, y, _ = _drawn(trained)
    for label, name in _members(model):
        figure = _figure(6.2, 3.9)
        plots.margin_distribution(model, X, y, label=label, ax=figure.add_subplot())
        yield _picture(figure, f"Margins of the rows trained on{name}")


def _members(model: StumpEnsemble) -> list[tuple[Any, str]]:
    """The scores that are drawn: of the one member, or of the first classes, each with a name."""
    if model.is_binary:
        return [(None, "")]
    return [(label, f": {label} against the rest") for label in model.classes[:MOST_CLASSES]]


def _used(model: StumpEnsemble, label: Any) -> np.ndarray:
    """Which features a score uses, (n_features,) of bool."""
    tables = model.members[model.member_index(label)].tables[1]
    return np.isin(np.arange(model.n_features), [table.feature for table in tables])


def _drawn(part: Part) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The rows of a part that are drawn: table, labels and weights."""
    chosen = np.arange(len(part.rows))
    if len(chosen) > MOST_ROWS:
        chosen = np.sort(np.random.default_rng(0).permutation(len(chosen))[:MOST_ROWS])
    weights = None if part.weights is None else part.weights[chosen]
    if weights is not None and not weights.any():
        weights = None
    return part.X[part.rows[chosen]], part.y[chosen], weights


def _figure(width: float, height: float) -> Figure:
    """A figure that pyplot does not know of: nobody is to see it but the page."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _picture(figure: Figure, title: str) -> Picture:
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=_DPI)
    return Picture(title, base64.b64encode(png.getvalue()).decode())


def _with_lines(rows: Sequence[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Names with all their lines: an empty name goes on with the one above."""
    found: list[tuple[str, list[str]]] = []
    for name, value in rows:
        if name:
            found.append((name, [value]))
        else:
            found[-1][1].append(value)
    return found
