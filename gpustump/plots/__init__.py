"""Pictures of boosted stumps: the model, its rounds, its margins, and the choice of one stump.

A model is a sum of step functions, so pictures of it can be exact: steps and regions are drawn from
their corners, never from a grid of points. Each picture is a function that draws on `ax`, or on
a new figure, and returns the Axes::

    from gpustump import AdaBoostClassifier, plots

    clf = AdaBoostClassifier().fit(X, y)
    ax = plots.shape_function(clf, "age", X=X)
    ax.figure.savefig("age.png")

New figures are pyplot's, as those of scikit-learn's displays are: notebooks and `plt.show()` find
them. On axes of one's own, a layout that leaves room for the legends above is best:
`plt.subplots(layout="constrained")`. Nothing is set globally, and text follows the caller's own
font size. Matplotlib is loaded by the first picture and not before.
"""

from __future__ import annotations

from gpustump.plots.importances import importances
from gpustump.plots.lines import stump_lines
from gpustump.plots.loss_curve import weighted_loss
from gpustump.plots.margins import margin_distribution
from gpustump.plots.page import overview
from gpustump.plots.regions import decision_regions
from gpustump.plots.rounds import error_curve
from gpustump.plots.shapes import shape_function, shape_functions

__all__ = [
    "decision_regions",
    "error_curve",
    "importances",
    "margin_distribution",
    "overview",
    "shape_function",
    "shape_functions",
    "stump_lines",
    "weighted_loss",
]
