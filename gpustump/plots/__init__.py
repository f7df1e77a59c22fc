"""Pictures of boosted stumps.

    shapes         what each feature adds to the score
    panels         one panel of it: steps, or the bars of a category
    columns        features, categories whose values are features, and pairs of features
    pairs          what a pair of features adds to the score
    cells          the cells of a pair: what they add, and the samples in them
    importances    shares of votes and contributions
    rounds         errors, bounds, edges and the log-loss by round
    margins        the distribution of margins
    predictions    true values and residuals over the predictions of a quantity
    regions        decision regions over two features
    lines          stumps as lines in the plane of two features
    explanation    what each feature and each pair adds to the score of one row
    waterfall      the same one after the other, from the intercept to the score
    one_row        what both draw: a row, its score, and what the terms add
    spread         how far the bags of a model differ: bands, and lines at bars
    loss_curve     a split over its threshold: its weighted error, its normaliser Z or its gain
    page           a model on one page
    model_rounds   the rounds of a model on that page
    inputs         models, tables, weights and features as arguments
    limits         the limits and units of an axis
    style          colours, lines, legends

How well a classifier does on held-out samples is drawn by scikit-learn, whose `RocCurveDisplay`,
`PrecisionRecallDisplay`, `ConfusionMatrixDisplay` and `CalibrationDisplay` take these estimators.

A model is a sum of step functions, so pictures of it are exact: steps and regions are drawn from
their corners, not from a grid of points. Each picture is a function that draws on `ax`, or on a new
figure, and returns the Axes::

    from gpustump import AdaBoostClassifier, plots

    clf = AdaBoostClassifier().fit(X, y)
    ax = plots.shape_function(clf, "age", X=X)
    ax.figure.savefig("age.png")

New figures are pyplot's, so notebooks and `plt.show()` show them. For axes of your own, use a
layout that leaves room for the legends above: `plt.subplots(layout="constrained")`. No setting of
Matplotlib is changed, and text follows your own font size. Matplotlib is imported by the first
picture.
"""

from __future__ import annotations

from gpustump.plots.explanation import explanation
from gpustump.plots.importances import importances
from gpustump.plots.lines import stump_lines
from gpustump.plots.loss_curve import weighted_loss
from gpustump.plots.margins import margin_distribution
from gpustump.plots.page import overview
from gpustump.plots.pairs import pair
from gpustump.plots.predictions import residuals, true_over_predicted
from gpustump.plots.regions import decision_regions
from gpustump.plots.rounds import error_curve
from gpustump.plots.shapes import shape_function, shape_functions
from gpustump.plots.waterfall import waterfall

__all__ = [
    "decision_regions",
    "error_curve",
    "explanation",
    "importances",
    "margin_distribution",
    "overview",
    "pair",
    "residuals",
    "shape_function",
    "shape_functions",
    "stump_lines",
    "true_over_predicted",
    "waterfall",
    "weighted_loss",
]


def __dir__() -> list[str]:
    """Only the functions that users call, for completion; not the files that draw."""
    return __all__
