"""Every picture of `gpustump.plots`, drawn from real data: scikit-learn's breast-cancer table, and
its table on diabetes for quantities.

    python examples/pictures.py [FOLDER]

writes an SVG file for each picture into FOLDER, by default `docs`, which the README shows. Each
function below is a recipe to copy: it takes data and returns the Axes, or the Figure.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import train_test_split

from gpustump import (
    AdaBoostClassifier,
    GlassBoxRegressor,
    LogitBoostClassifier,
    StumpEnsemble,
    fit_stump,
    plots,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

N_ROUNDS = 300
PLANE = ("worst texture", "worst concave points")
"""Two features that separate the classes well, but not perfectly."""


@dataclass(frozen=True)
class Study:
    """Training samples and held-out samples, and a classifier fitted to the training samples.

    Attributes
    ----------
    X, X_test : array (n_samples, 30)
    y, y_test : array (n_samples,) of str
    names : list of str
    classifier : AdaBoostClassifier
    model : StumpEnsemble
        The classifier's model, with the features' names.
    """

    X: np.ndarray
    X_test: np.ndarray
    y: np.ndarray
    y_test: np.ndarray
    names: list[str]
    classifier: AdaBoostClassifier
    model: StumpEnsemble


def study() -> Study:
    """Train on three quarters of the table."""
    data = load_breast_cancer()
    names = [str(name) for name in data.feature_names]
    labels = np.asarray(data.target_names)[data.target].astype(str)
    X, X_test, y, y_test = train_test_split(data.data, labels, random_state=0)
    classifier = AdaBoostClassifier(n_estimators=N_ROUNDS, device="cpu").fit(X, y)
    model = replace(classifier.model_, feature_names=tuple(names))
    return Study(X, X_test, y, y_test, names, classifier, model)


def shape_function(s: Study) -> Axes:
    """What one feature adds to the score, with a histogram of the samples."""
    return plots.shape_function(s.model, "worst texture", X=s.X)


def shape_functions(s: Study) -> Axes:
    """The six most important features, with one scale for all."""
    first: Axes = plots.shape_functions(s.model, X=s.X)[0]
    return first


def bagged_shape_functions(s: Study) -> Axes:
    """The same of an average of eight models; the bands show how far these differ."""
    classifier = LogitBoostClassifier(
        n_bags=8, n_estimators=400, learning_rate=0.1, n_iter_no_change=20, random_state=0,
        device="cpu",
    ).fit(s.X, s.y)  # fmt: skip
    model = replace(classifier.model_, feature_names=tuple(s.names))
    first: Axes = plots.shape_functions(model, X=s.X, n_features=3)[0]
    return first


def pair(_: Study) -> Figure | SubFigure:
    """What age and sex add together to the progression of diabetes after a year."""
    data = load_diabetes(scaled=False)
    regressor = GlassBoxRegressor(interactions=[(0, 1)], random_state=0, device="cpu")
    fitted = regressor.fit(data.data, data.target)
    model = replace(fitted.model_, feature_names=tuple(data.feature_names))
    return plots.pair(model, ("age", "sex"))


def error_curve(s: Study) -> Axes:
    """Errors by round and AdaBoost's bound; the held-out error falls when training's is 0."""
    return plots.error_curve(s.classifier, s.X_test, s.y_test)


def margin_distribution(s: Study) -> Axes:
    """Why it does: the smallest margins still grow when no training sample is misclassified."""
    return plots.margin_distribution(s.model, s.X, s.y)


def importances(s: Study) -> Axes:
    """The features' shares of the contributions and of the votes."""
    return plots.importances(s.model, s.X)


def explanation(s: Study) -> Axes:
    """What each feature adds to the score of the first held-out sample."""
    return plots.explanation(s.model, s.X_test[0])


def stump_lines(s: Study) -> Figure:
    """The best stumps for one data set under two weight vectors."""
    from matplotlib import pyplot as plt

    plane, signs = s.X[:, _of_plane(s)], np.where(s.y == "malignant", 1, -1)
    first = fit_stump(plane, signs)
    # AdaBoost's second round: misclassified samples have half of the total weight.
    wrong = first.predict(plane) != signs
    weights = np.where(wrong, 0.5 / np.mean(wrong), 0.5 / np.mean(~wrong))
    figure = plt.figure(figsize=(9, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    plots.stump_lines(first, plane, signs, ax=left)
    plots.stump_lines(
        fit_stump(plane, signs, weights), plane, signs, sample_weight=weights, ax=right
    )
    left.set(xlabel=f"{PLANE[0]}; first round: equal weights", ylabel=PLANE[1])
    right.set(xlabel=f"{PLANE[0]}; second round: reweighted", ylabel="")
    return figure


def decision_regions(s: Study) -> Axes:
    """A boosted model on the same two features."""
    plane = s.X[:, _of_plane(s)]
    fitted = AdaBoostClassifier(n_estimators=25, device="cpu").fit(plane, s.y)
    model = replace(fitted.model_, feature_names=PLANE)
    return plots.decision_regions(model, plane, s.y)


def weighted_loss(s: Study) -> Axes:
    """What the first round minimises: the weighted error for every threshold on one feature."""
    signs = np.where(s.y == "malignant", 1, -1)
    ax = plots.weighted_loss(s.X, signs, s.names.index("worst texture"))
    ax.set_xlabel("threshold b on worst texture")
    return ax


def normaliser_curve(s: Study) -> Axes:
    """What a round of real votes minimises on the same feature: Z for every threshold."""
    signs = np.where(s.y == "malignant", 1, -1)
    ax = plots.weighted_loss(s.X, signs, s.names.index("worst texture"), votes="real")
    ax.set_xlabel("threshold b on worst texture")
    return ax


def logistic_curve(s: Study) -> Axes:
    """The rounds of LogitBoost: errors, and the held-out log-loss below them."""
    classifier = LogitBoostClassifier(n_estimators=N_ROUNDS, device="cpu").fit(s.X, s.y)
    return plots.error_curve(classifier, s.X_test, s.y_test)


def overview(s: Study) -> Figure:
    """A model on one page, as `gpustump inspect --plot` draws it."""
    return plots.overview(s.model, s.X)


PICTURES: tuple[Callable[[Study], Axes | Figure | SubFigure], ...] = (
    shape_function,
    shape_functions,
    bagged_shape_functions,
    pair,
    error_curve,
    margin_distribution,
    importances,
    explanation,
    stump_lines,
    decision_regions,
    weighted_loss,
    normaliser_curve,
    logistic_curve,
    overview,
)


def draw(folder: Path) -> list[Path]:
    """Write all pictures; the same version of Matplotlib writes the same bytes each time."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    s, written = study(), []
    with matplotlib.rc_context({"svg.hashsalt": "gpustump"}):
        for picture in PICTURES:
            drawn = picture(s)
            figure = drawn if isinstance(drawn, Figure) else drawn.figure
            path = folder / f"{picture.__name__}.svg"
            figure.get_figure(root=True).savefig(path, metadata={"Date": None})
            pyplot.close("all")
            written.append(path)
    return written


def _of_plane(s: Study) -> list[int]:
    return [s.names.index(name) for name in PLANE]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Draw every picture of gpustump.plots.")
    parser.add_argument("folder", metavar="FOLDER", nargs="?", type=Path, default=Path("docs"))
    for path in draw(parser.parse_args().folder):
        print(path)
