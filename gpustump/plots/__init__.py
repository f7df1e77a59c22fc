"""Pictures of boosted stumps.

    shapes         what each feature adds to the score
    panels         one panel of it: the steps of a feature, or the bars of categories
    pairs          what a pair of features adds to the score
    importances    shares of votes and contributions
    one_row        what each term adds to the score of one row
    rounds         errors, bounds, edges and the log-loss by round
    margins        the distribution of margins
    regions        decision regions over two features
    lines          stumps as lines, and a split's loss or gain over its threshold
    overview       a model on one page
    terms          models and tables as arguments; columns and pairs, their names
    axis           limits, units and ticks of a feature's axis
    style          colours, lines, text, legends

`page` is no picture: it is a file of HTML in which people explore a model (`gpustump.page`).

How well a model does on held-out samples is drawn by scikit-learn, whose `RocCurveDisplay`,
`PrecisionRecallDisplay`, `ConfusionMatrixDisplay`, `CalibrationDisplay` and, for quantities,
`PredictionErrorDisplay` take these estimators.

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

from gpustump.page import page
from gpustump.plots.importances import importances
from gpustump.plots.lines import stump_lines, weighted_loss
from gpustump.plots.margins import margin_distribution
from gpustump.plots.one_row import explanation
from gpustump.plots.overview import overview
from gpustump.plots.pairs import pair
from gpustump.plots.regions import decision_regions
from gpustump.plots.rounds import error_curve
from gpustump.plots.shapes import shape_function, shape_functions

__all__ = [
    "decision_regions",
    "error_curve",
    "explanation",
    "importances",
    "margin_distribution",
    "overview",
    "page",
    "pair",
    "shape_function",
    "shape_functions",
    "stump_lines",
    "weighted_loss",
]


def __dir__() -> list[str]:
    """Only the functions that users call, for completion; not the files that draw."""
    return __all__
