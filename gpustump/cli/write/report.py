"""The page of `gpustump train --report`: summary, pictures and how to read them, as one HTML file.

The pictures and styles are part of the page, and there is no script. So it can be mailed, kept
beside the model, and opened without a network. The text around the pictures is in `report.html`.
"""

from __future__ import annotations

import base64
import importlib.util
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpustump import __version__
from gpustump.cli.columns.model import LoadedModel
from gpustump.cli.columns.training import Part, as_text
from gpustump.cli.errors import MissingLibraryError
from gpustump.cli.summary.rules import Limit, rules
from gpustump.cli.summary.training import FinishedTraining
from gpustump.cli.wording import number_text
from gpustump.cli.write.pictures import as_bytes, check_matplotlib, default_matplotlib, new_figure
from gpustump.data.parameters import check_quantity_loss
from gpustump.data.readable import shortened, thousands
from gpustump.plots.pairs import SMALL
from gpustump.plots.style import words
from gpustump.plots.terms import PREDICTIONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gpustump import StumpEnsemble

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


class _Drawing(NamedTuple):
    """What the pictures show.

    Attributes
    ----------
    training : FinishedTraining
    model : StumpEnsemble
        With the names that pictures show.
    trained : Part
        The rows to draw; its table holds them alone.
    held_out : Part or None
        None also if all their weights are zero.
    scores : list of (label, str)
        The scores with pictures of their own: how `plots` names them, and an ending for titles.
    """

    training: FinishedTraining
    model: StumpEnsemble
    trained: Part
    held_out: Part | None
    scores: list[tuple[Any, str]]

    @property
    def whole(self) -> list[tuple[Any, str]]:
        """Those with rounds of their own: all scores together if they share the stumps."""
        return [(None, "")] if self.model.is_shared else self.scores

    @property
    def is_newton(self) -> bool:
        """Whether regions vote Newton steps."""
        return self.training.method.votes == "newton"


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
            "importances": list(_importances(drawing)),
            "margins": list(_margins(drawing)),
        }
    template = resources.files("gpustump.cli.write").joinpath("report.html")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    text = environment.from_string(template.read_text("utf-8")).render(
        **_facts(drawing),
        rows=_with_lines([*rows, ("settings", _settings(training.model))]),
        rules=_rules(drawing),
        **pictures,
    )
    return text.encode()


def _drawing(training: FinishedTraining) -> _Drawing:
    held_out = None if training.held_out is None else _drawn_rows(training.held_out)
    if held_out is not None and held_out.weights is not None and not held_out.weights.any():
        held_out = None
    loaded = LoadedModel(training.model, training.data.encoding)
    return _Drawing(
        training, loaded.named, _drawn_rows(training.trained), held_out, _scores(training)
    )


def _drawn_rows(part: Part) -> Part:
    """All rows of a part, or a random choice if there are too many, with a table of their own."""
    chosen = np.arange(len(part.rows))
    if len(chosen) > MOST_ROWS:
        chosen = np.sort(np.random.default_rng(0).permutation(len(chosen))[:MOST_ROWS])
    weights = None if part.weights is None else part.weights[chosen]
    X, offsets = part.X[part.rows[chosen]], part.offsets.in_rows(chosen)
    return Part(X, np.arange(len(X)), part.y[chosen], weights, offsets)


def _given(rows: Part) -> dict[str, Any]:
    """Rows as functions of `plots` take them."""
    return {"X": rows.X, "y": rows.y, "sample_weight": rows.weights}


def _scores(training: FinishedTraining) -> list[tuple[Any, str]]:
    """The only score of two classes, or those of the most frequent classes."""
    model = training.model
    if model.n_outputs == 1:
        return [(None, "")]
    rest = "" if model.is_shared else " against the rest"
    labels = _frequent(model, training.trained.y, MOST_CLASSES)
    return [(label, f": {shortened(str(label))}{rest}") for label in labels]


def _frequent(model: StumpEnsemble, y: np.ndarray, most: int) -> list[Any]:
    """The most frequent classes, in the order of the model."""
    counts = [int(np.count_nonzero(y == label)) for label in model.classes]
    order = sorted(range(len(counts)), key=lambda k: -counts[k])[:most]
    return [model.classes[k] for k in sorted(order)]


def _facts(drawing: _Drawing) -> dict[str, Any]:
    """What the text of the page mentions."""
    training, model, held_out = drawing.training, drawing.model, drawing.held_out
    parts = [part for part in (training.trained, training.held_out) if part is not None]
    return {
        "mark": MARK,
        "version": __version__,
        "target": shortened(training.data.target),
        "source": shortened(training.data.source),
        "model": training.model,
        "votes": training.method.votes,
        "is_log": model.link == "log",
        "has_terms": model.n_rounds > 0 or bool(model.pairs),
        "n_pairs": len(model.pairs),
        "pairs_shown": SMALL,
        "has_held_out": held_out is not None,
        "is_weighted": held_out is not None and held_out.weights is not None,
        "has_exposure": training.data.offsets.exposure is not None,
        "positive": "" if model.is_regression else shortened(str(model.classes[1])),
        "n_classes": len(model.classes),
        "drawn_classes": [shortened(str(label)) for label, _ in drawing.scores],
        "intercept": ", ".join(number_text(value) for value in model.intercepts),
        "most_rows": thousands(MOST_ROWS),
        "is_sampled": max(len(part.rows) for part in parts) > MOST_ROWS,
    }


def _quality(drawing: _Drawing) -> Iterator[Picture]:
    """How good the model is on the rows held out."""
    model, rows = drawing.model, drawing.held_out
    if rows is None or not (model.n_rounds or model.pairs):
        return
    if model.is_regression:
        yield from _quality_of_quantity(model, rows, drawing.training.method.loss)
    else:
        yield from _quality_of_classes(model, rows)


def _quality_of_quantity(model: StumpEnsemble, rows: Part, loss: str) -> Iterator[Picture]:
    """True values, and what predictions of them miss, by scikit-learn; of rates with exposures."""
    from sklearn.metrics import PredictionErrorDisplay

    true = rows.y
    predicted = model.quantities_of(np.asarray(model.decision_function(rows.X)))
    if rows.offsets.exposure is None:
        predicted = rows.offsets.applied(predicted, model)
    else:
        true = _without_offsets(rows, loss)["y"]
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


def _quality_of_classes(model: StumpEnsemble, rows: Part) -> Iterator[Picture]:
    """Mistaken classes, the ranking of the rows, and their probabilities, by scikit-learn."""
    from sklearn import metrics
    from sklearn.calibration import CalibrationDisplay

    weights = rows.weights
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
        counts = np.ones(len(rows.y)) if weights is None else weights
        for label in labels:
            is_it, probability = rows.y == label, probabilities[:, model.classes.index(label)]
            if counts[is_it].any() and counts[~is_it].any():
                draw.from_predictions(is_it, probability, name=words(label), ax=ax, **how)
        ax.set(xlabel=axes[0], ylabel=axes[1])
        yield _picture(figure, f"{title} of the held-out rows")


def _errors(drawing: _Drawing) -> Iterator[Picture]:
    """The rounds: of all classes together if they share the stumps, else of each drawn class."""
    from gpustump import plots

    model, held_out, estimator = drawing.model, drawing.held_out, drawing.training.estimator
    if model.n_bags > 1 and held_out is None:
        return  # the error of the average needs held-out samples
    rows: dict[str, Any] = {}
    title = "Errors and log-loss" if drawing.is_newton and held_out else "Errors"
    if model.is_regression:
        title = "Loss"
        if held_out is not None:
            rows = _without_offsets(held_out, drawing.training.method.loss)
    elif held_out is not None and held_out.offsets.init_score is None:
        rows = _given(held_out)
        if not model.is_binary and not model.is_shared and model.n_rounds:
            figure = new_figure(7.0, 5.2)
            plots.error_curve(estimator, **rows, ax=figure.add_subplot())
            yield _picture(figure, "Held-out error of the whole model by round")
    for label, ending in drawing.whole:
        figure = new_figure(7.0, 5.2)
        plots.error_curve(estimator, **rows, label=label, ax=figure.add_subplot())
        yield _picture(figure, f"{title} by round{ending}")


def _without_offsets(rows: Part, loss: str) -> dict[str, Any]:
    """The rows with what models of a quantity learn of the targets."""
    from gpustump.estimators.targets import Offset, without_offset

    asked = check_quantity_loss(loss)
    known = Offset(*rows.offsets).of_quantity(rows.y[:, np.newaxis], asked)
    if known is None:
        return _given(rows)
    weights = np.ones(len(rows.y)) if rows.weights is None else rows.weights
    y, weights = without_offset(rows.y, weights, known, asked)
    return {"X": rows.X, "y": y, "sample_weight": weights}


def _shapes(drawing: _Drawing) -> Iterator[Picture]:
    from gpustump import plots

    model, groups = drawing.model, drawing.training.data.encoding.groups
    rows: dict[str, Any] = {"X": drawing.trained.X, "sample_weight": drawing.trained.weights}
    columns = {j: name for name, values in groups.items() for j in values.values()}
    for label, title in drawing.scores:
        _, tables = model.output_tables(model.output_index(label))
        n_columns = len({columns.get(table.feature, table.feature) for table in tables})
        n_panels = min(6, max(1, n_columns))
        figure = new_figure(0.5 + 3.1 * min(n_panels, 3), 2.7 * (1 if n_panels <= 3 else 2))
        plots.shape_functions(model, **rows, label=label, figure=figure)
        what = PREDICTIONS.get(model.link, "score")
        yield _picture(figure, f"What the features add to the {what}{title}")


def _pairs(drawing: _Drawing) -> Iterator[Picture]:
    """The pairs that add most to the scores of the rows trained on."""
    from gpustump.plots.pairs import draw_pairs, top_pairs
    from gpustump.plots.shapes import contributions_of, drawn_scores, ranked_model

    model = drawing.model
    for label, title in drawing.scores:
        one = ranked_model(model, label)
        chosen = top_pairs(one, contributions_of(one, None))
        if chosen:
            figure = new_figure(10.0, 3.2)
            draw_pairs(model, chosen, drawn_scores(model, label, []), None, figure)
            what = PREDICTIONS.get(model.link, "score")
            yield _picture(figure, f"What pairs of features add to the {what}{title}")


def _importances(drawing: _Drawing) -> Iterator[Picture]:
    from gpustump import plots

    model = drawing.model
    rows: dict[str, Any] = {"X": drawing.trained.X, "sample_weight": drawing.trained.weights}
    figure = new_figure(7.0, 3.9)
    plots.importances(model, **rows, ax=figure.add_subplot())
    terms = "features and pairs" if model.pairs else "features"
    yield _picture(figure, f"Shares of the {terms} in the contributions and in the votes")


def _margins(drawing: _Drawing) -> Iterator[Picture]:
    from gpustump import plots

    if drawing.model.is_regression or drawing.trained.offsets.init_score is not None:
        return  # margins are those of the model alone
    for label, title in drawing.whole:
        figure = new_figure(6.2, 3.9)
        rows = _given(drawing.trained)
        plots.margin_distribution(drawing.model, **rows, label=label, ax=figure.add_subplot())
        yield _picture(figure, f"Margins of the rows trained on{title}")


def _picture(figure: Figure, title: str) -> Picture:
    return Picture(title, base64.b64encode(as_bytes(figure, "png", _DPI)).decode())


def _rules(drawing: _Drawing) -> list[list[str]]:
    """The first rules of the scores that are drawn."""
    training = drawing.training
    loaded = LoadedModel(training.model, training.data.encoding)
    found = rules(loaded, Limit(_RULES, "gpustump inspect MODEL --rounds"))
    numbers = [training.model.member_index(label) for label, _ in drawing.scores]
    return [found[number] for number in dict.fromkeys(numbers)]  # shared stumps are there once


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
