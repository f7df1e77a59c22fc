"""The page of `gpustump train --report`: summary, pictures and how to read them, as one HTML file.

The pictures and styles are part of the page, and there is no script. So it can be mailed, kept
beside the model, and opened without a network. The text around the pictures is in
`report.html`.
"""

from __future__ import annotations

import base64
import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpustump import __version__
from gpustump.cli.columns.constraints import as_text
from gpustump.cli.columns.model import LoadedModel
from gpustump.cli.columns.offsets import Offsets
from gpustump.cli.columns.training import Part
from gpustump.cli.errors import MissingLibraryError
from gpustump.cli.method import Method
from gpustump.cli.summary.rules import Limit, rules
from gpustump.cli.summary.training import FinishedTraining
from gpustump.cli.wording import number_text
from gpustump.cli.write.drawn_model import DrawnModel
from gpustump.cli.write.pictures import as_bytes, check_matplotlib, default_matplotlib, new_figure
from gpustump.data.parameters import VoteKind, check_quantity_loss
from gpustump.data.readable import shortened, thousands
from gpustump.plots.pairs import SMALL
from gpustump.plots.style import words
from gpustump.plots.terms import PREDICTIONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gpustump import StumpEnsemble
    from gpustump.estimators.boosters import BoostedEstimator

MARK = "<!-- a report of gpustump -->"
"""Every report begins with it; a file without it is not replaced."""

MOST_ROWS = 100_000
"""If there are more rows, pictures show a random choice of this many."""

MOST_CLASSES = 3
"""If there are more classes, only the most frequent of them have pictures of their own."""

_MATRIX = 10
"""The most classes with a row in the confusion matrix, the most frequent ones."""

_RULES = 10
_DPI = 144


class Picture(NamedTuple):
    """A picture in the page: its title, and its PNG file in base64."""

    title: str
    png: str


class DrawnRows(NamedTuple):
    """Rows to draw: a table, targets, weights if there are any, and what is known beforehand."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    offsets: Offsets

    def given(self) -> dict[str, Any]:
        """As functions of `plots` take them."""
        return {"X": self.X, "y": self.y, "sample_weight": self.weights}

    def without_offsets(self, loss: str) -> dict[str, Any]:
        """The same with what models of a quantity learn of the targets."""
        from gpustump.estimators.targets import Offset, without_offset

        asked = check_quantity_loss(loss)
        known = Offset(*self.offsets).of_quantity(self.y[:, np.newaxis], asked)
        if known is None:
            return self.given()
        weights = np.ones(len(self.y)) if self.weights is None else self.weights
        y, weights = without_offset(self.y, weights, known, asked)
        return {"X": self.X, "y": y, "sample_weight": weights}


class DrawnScore(NamedTuple):
    """A score with pictures of its own: how `plots` names it, and an ending for titles."""

    label: Any
    title: str


@dataclass(frozen=True)
class _Drawing:
    """What the pictures show.

    Attributes
    ----------
    estimator : BoostedEstimator
    drawn : DrawnModel
    trained : DrawnRows
    held_out : DrawnRows or None
        None also if all their weights are zero.
    scores : list of DrawnScore
    method : Method
        How it was trained.
    """

    estimator: BoostedEstimator
    drawn: DrawnModel
    trained: DrawnRows
    held_out: DrawnRows | None
    scores: list[DrawnScore]
    method: Method

    @property
    def votes(self) -> VoteKind:
        """What regions vote."""
        return self.method.votes

    @property
    def losses(self) -> str:
        """What the pictures of rounds show."""
        if self.method.is_of_quantity:
            return "Loss"
        return "Errors and log-loss" if self.votes == "newton" and self.held_out else "Errors"


def check_libraries() -> None:
    """Refuse --report before the training if a library that it needs is missing.

    Raises
    ------
    MissingLibraryError
    """
    check_matplotlib("--report")
    if importlib.util.find_spec("jinja2") is None:
        raise MissingLibraryError("--report", "Jinja2", extra="plots")


def page(training: FinishedTraining, rows: Sequence[tuple[str, str]]) -> bytes:
    """The content of the HTML file.

    Parameters
    ----------
    training : FinishedTraining
    rows : sequence of (str, str)
        The summary: names and values.
    """
    import jinja2

    drawing = _drawing(training)
    with default_matplotlib():
        pictures = {
            "quality": list(_quality(drawing)),
            "errors": list(_errors(drawing)),
            "shapes": list(_shapes(drawing)),
            "pairs": list(_pairs(drawing)),
            "importances": [_importances(drawing)],
            "margins": [] if drawing.method.is_of_quantity else list(_margins(drawing)),
        }
    template = resources.files("gpustump.cli.write").joinpath("report.html")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    text = environment.from_string(template.read_text("utf-8")).render(
        **_facts(training, drawing),
        rows=_with_lines([*rows, ("settings", _settings(training.model))]),
        rules=_rules(training, drawing),
        **pictures,
    )
    return text.encode()


def _drawing(training: FinishedTraining) -> _Drawing:
    held_out = None if training.held_out is None else _drawn_rows(training.held_out)
    if held_out is not None and held_out.weights is not None and not held_out.weights.any():
        held_out = None
    return _Drawing(
        training.estimator,
        DrawnModel.of(training.model, training.data.encoding),
        _drawn_rows(training.trained),
        held_out,
        _drawn_scores(training),
        training.method,
    )


def _facts(training: FinishedTraining, drawing: _Drawing) -> dict[str, Any]:
    """What the text of the page mentions."""
    model, data = training.model, training.data
    parts = [part for part in (training.trained, training.held_out) if part is not None]
    return {
        "mark": MARK,
        "version": __version__,
        "target": shortened(data.target),
        "source": shortened(data.source),
        "is_binary": model.is_binary,
        "is_shared": model.is_shared,
        "is_softmax": model.link == "softmax",
        "votes": drawing.votes,
        "has_terms": model.n_rounds > 0 or bool(model.pairs),
        "n_pairs": len(model.pairs),
        "pairs_shown": SMALL,
        "has_held_out": drawing.held_out is not None,
        "is_weighted": drawing.held_out is not None and drawing.held_out.weights is not None,
        "is_quantity": model.is_regression,
        "is_log": model.link == "log",
        "has_exposure": data.offsets.exposure is not None,
        "positive": "" if model.is_regression else shortened(str(model.classes[1])),
        "n_classes": len(model.classes),
        "n_bags": model.n_bags,
        "drawn_classes": [shortened(str(score.label)) for score in drawing.scores],
        "intercept": ", ".join(number_text(value) for value in model.intercepts),
        "most_rows": thousands(MOST_ROWS),
        "is_sampled": max(len(part.rows) for part in parts) > MOST_ROWS,
        "digest": model.digest(),
    }


def _quality(drawing: _Drawing) -> Iterator[Picture]:
    """How good the model is on the rows held out."""
    drawn = drawing.drawn.model
    if drawing.held_out is None or not (drawn.n_rounds or drawn.pairs):
        return
    if drawn.is_regression:
        yield from _quality_of_quantity(drawing, drawing.held_out)
        return
    yield from _quality_of_classes(drawing, drawing.held_out)


def _quality_of_quantity(drawing: _Drawing, rows: DrawnRows) -> Iterator[Picture]:
    """True values, and what predictions of them miss, by scikit-learn; of rates with exposures."""
    from sklearn.metrics import PredictionErrorDisplay

    model, true = drawing.drawn.model, rows.y
    predicted = model.quantities_of(np.asarray(model.decision_function(rows.X)))
    if rows.offsets.exposure is None:
        predicted = rows.offsets.applied(predicted, model)
    else:
        true = rows.without_offsets(drawing.method.loss)["y"]
    what = "value" if rows.offsets.exposure is None else "rate"
    for kind, title, name in (
        (
            "actual_vs_predicted",
            "True values over predictions of the held-out rows",
            f"true {what}",
        ),
        ("residual_vs_predicted", "What predictions of the held-out rows miss", "true − predicted"),
    ):
        figure = new_figure(6.0, 5.2)
        ax = figure.add_subplot()
        PredictionErrorDisplay.from_predictions(
            true, predicted, kind=kind, ax=ax, random_state=0, scatter_kwargs={"s": 9}
        )
        ax.set(xlabel=f"predicted {what}", ylabel=name)
        yield _picture(figure, title)


def _quality_of_classes(drawing: _Drawing, rows: DrawnRows) -> Iterator[Picture]:
    """Mistaken classes, the ranking of the rows, and their probabilities, by scikit-learn."""
    from sklearn import metrics
    from sklearn.calibration import CalibrationDisplay

    model, weights = drawing.drawn.model, rows.weights
    scores = rows.offsets.added(np.asarray(model.decision_function(rows.X)), model)
    predicted, probabilities = model.labels_of(scores), model.probabilities_of(scores)
    shown = _frequent(model, rows.y, _MATRIX)
    side = 2.2 + 0.5 * max(4, len(shown))
    figure = new_figure(side + 0.8, side)
    metrics.ConfusionMatrixDisplay.from_predictions(
        rows.y, predicted, sample_weight=weights, labels=shown, values_format=".6g", cmap="Blues",
        display_labels=list(map(words, shown)), xticks_rotation=45 if len(shown) > 2 else 0,
        colorbar=False, ax=figure.add_subplot(),
    )  # fmt: skip
    yield _picture(figure, "Confusion matrix of the held-out rows")
    labels = model.classes[1:] if model.is_binary else _frequent(model, rows.y, MOST_CLASSES)
    columns = {
        words(label): (rows.y == label, probabilities[:, model.classes.index(label)])
        for label in labels
    }
    known = {"sample_weight": weights}
    rates = "false positive rate", "true positive rate"
    shares = "predicted probability", "share that is of the class"
    for draw, how, title, axes in (
        (metrics.RocCurveDisplay, known, "ROC curve", rates),
        (metrics.PrecisionRecallDisplay, known, "Precision and recall", ("recall", "precision")),
        (CalibrationDisplay, {"n_bins": 10}, "Reliability of the probabilities", shares),
    ):
        if weights is not None and how is not known:
            continue  # it takes no weights
        figure = new_figure(6.0, 5.2)
        ax = figure.add_subplot()
        for name, (is_it, probability) in columns.items():
            counts = np.ones(len(is_it)) if weights is None else weights
            if counts[is_it].any() and counts[~is_it].any():
                draw.from_predictions(is_it, probability, name=name, ax=ax, **how)
        ax.set(xlabel=axes[0], ylabel=axes[1])
        yield _picture(figure, f"{title} of the held-out rows")


def _frequent(model: StumpEnsemble, y: np.ndarray, most: int) -> list[Any]:
    """The most frequent classes, in the order of the model."""
    counts = [int(np.count_nonzero(y == label)) for label in model.classes]
    order = sorted(range(len(counts)), key=lambda k: -counts[k])[:most]
    return [model.classes[k] for k in sorted(order)]


def _errors(drawing: _Drawing) -> Iterator[Picture]:
    """The rounds: of all classes together if they share the stumps, else of each drawn class."""
    from gpustump import plots

    rows: dict[str, Any] = {}
    model = drawing.drawn.model
    if model.n_bags > 1 and drawing.held_out is None:
        return  # the error of the average needs held-out samples
    if model.is_regression:
        if drawing.held_out is not None:
            rows = drawing.held_out.without_offsets(drawing.method.loss)
        figure = new_figure(7.0, 4.9)
        plots.error_curve(drawing.estimator, **rows, ax=figure.add_subplot())
        yield _picture(figure, "Loss by round")
        return
    if drawing.held_out is not None and drawing.held_out.offsets.init_score is None:
        rows = drawing.held_out.given()
        if not model.is_binary and not model.is_shared and model.n_rounds:
            figure = new_figure(7.0, 3.9 if drawing.votes != "newton" else 5.2)
            plots.error_curve(drawing.estimator, **rows, ax=figure.add_subplot())
            yield _picture(figure, "Held-out error of the whole model by round")
    for label, title in [DrawnScore(None, "")] if model.is_shared else drawing.scores:
        figure = new_figure(7.0, 4.9 if drawing.votes != "newton" else 5.6)
        plots.error_curve(drawing.estimator, **rows, label=label, ax=figure.add_subplot())
        yield _picture(figure, f"{drawing.losses} by round{title}")


def _shapes(drawing: _Drawing) -> Iterator[Picture]:
    from gpustump import plots

    model, (X, _, weights, _) = drawing.drawn.model, drawing.trained
    for label, title in drawing.scores:
        n_panels = min(6, max(1, _n_columns(drawing.drawn, label)))
        figure = new_figure(0.5 + 3.1 * min(n_panels, 3), 2.7 * (1 if n_panels <= 3 else 2))
        rows: dict[str, Any] = {"X": X, "sample_weight": weights}
        plots.shape_functions(model, **rows, label=label, figure=figure)
        what = PREDICTIONS.get(model.link, "score")
        yield _picture(figure, f"What the features add to the {what}{title}")


def _pairs(drawing: _Drawing) -> Iterator[Picture]:
    """The pairs that add most to the scores of the rows trained on."""
    from gpustump.plots.pairs import draw_pairs, top_pairs
    from gpustump.plots.shapes import contributions_of, drawn_scores, ranked_model

    model = drawing.drawn.model
    for label, title in drawing.scores:
        one = ranked_model(model, label)
        chosen = top_pairs(one, contributions_of(one, None))
        if chosen:
            figure = new_figure(10.0, 3.2)
            draw_pairs(model, chosen, drawn_scores(model, label, []), None, figure)
            what = PREDICTIONS.get(model.link, "score")
            yield _picture(figure, f"What pairs of features add to the {what}{title}")


def _n_columns(drawn: DrawnModel, label: Any) -> int:
    """How many columns a score uses."""
    _, tables = drawn.model.output_tables(drawn.model.output_index(label))
    of = {
        feature: name
        for name, values in drawn.model.encoding.groups.items()
        for feature in values.values()
    }
    return len({of.get(table.feature, table.feature) for table in tables})


def _importances(drawing: _Drawing) -> Picture:
    from gpustump import plots

    X, _, weights, _ = drawing.trained
    figure = new_figure(7.0, 3.9)
    drawn, ax = drawing.drawn, figure.add_subplot()
    plots.importances(drawn.model, X, sample_weight=weights, ax=ax)
    terms = "features and pairs" if drawn.model.pairs else "features"
    return _picture(figure, f"Shares of the {terms} in the contributions and in the votes")


def _margins(drawing: _Drawing) -> Iterator[Picture]:
    from gpustump import plots

    if drawing.trained.offsets.init_score is not None:
        return  # margins are those of the model alone
    rows = drawing.trained.given()
    whole = [DrawnScore(None, "")] if drawing.drawn.model.is_shared else drawing.scores
    for label, title in whole:
        figure = new_figure(6.2, 3.9)
        ax = figure.add_subplot()
        plots.margin_distribution(drawing.drawn.model, **rows, label=label, ax=ax)
        yield _picture(figure, f"Margins of the rows trained on{title}")


def _drawn_scores(training: FinishedTraining) -> list[DrawnScore]:
    """The only score of two classes, or those of the most frequent classes."""
    model, y = training.model, training.trained.y
    if model.n_outputs == 1:
        return [DrawnScore(None, "")]
    labels = _frequent(model, y, MOST_CLASSES)
    rest = "" if model.is_shared else " against the rest"
    return [DrawnScore(one, f": {shortened(str(one))}{rest}") for one in labels]


def _drawn_rows(part: Part) -> DrawnRows:
    """All rows of a part, or a random choice if there are too many."""
    chosen = np.arange(len(part.rows))
    if len(chosen) > MOST_ROWS:
        chosen = np.sort(np.random.default_rng(0).permutation(len(chosen))[:MOST_ROWS])
    weights = None if part.weights is None else part.weights[chosen]
    offsets = part.offsets.in_rows(chosen)
    return DrawnRows(part.X[part.rows[chosen]], part.y[chosen], weights, offsets)


def _rules(training: FinishedTraining, drawing: _Drawing) -> list[list[str]]:
    """The first rules of the scores that are drawn."""
    loaded = LoadedModel(training.model, training.data.encoding)
    found = rules(loaded, Limit(_RULES, "gpustump inspect MODEL --rounds"))
    numbers = [training.model.member_index(score.label) for score in drawing.scores]
    return [found[number] for number in dict.fromkeys(numbers)]  # shared stumps are there once


def _picture(figure: Figure, title: str) -> Picture:
    return Picture(title, base64.b64encode(as_bytes(figure, "png", _DPI)).decode())


def _settings(model: StumpEnsemble) -> str:
    """The options of the training, from the model's details."""
    return ", ".join(
        f"{name.replace('_', ' ')} {as_text(value) if isinstance(value, dict) else value}"
        for name, value in model.details["training"].items()
    )


def _with_lines(rows: Sequence[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Names with all lines of their values; an empty name continues the value above."""
    found: list[tuple[str, list[str]]] = []
    for name, value in rows:
        if name:
            found.append((name, [value]))
        else:
            found[-1][1].append(value)
    return found
