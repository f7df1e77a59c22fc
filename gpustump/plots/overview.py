"""A model on one page: shape functions, pairs of features, importances, and errors by round."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from gpustump.data.readable import counted, thousands
from gpustump.model.columns import columns_of
from gpustump.model.ensemble import Label, StumpEnsemble, model_of
from gpustump.plots import style, terms
from gpustump.plots.importances import draw_shares
from gpustump.plots.pairs import draw_pairs, top_pairs
from gpustump.plots.rounds import draw_rounds
from gpustump.plots.shapes import (
    contributions_of,
    draw_panels,
    drawn_scores,
    features_in,
    output_indices,
    ranked_model,
    top,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PANELS = 6
_NAMED = 6
"""How many classes the title names."""

_LINE = 110
"""The length of a line of the title, in characters."""


def overview(
    model: Any,
    X: Any = None,
    *,
    sample_weight: Any = None,
    label: Label | None = None,
    figure: Figure | None = None,
) -> Figure:
    """Draw a model on one page.

    Parameters
    ----------
    model : StumpEnsemble or fitted estimator
        Also a model from a file: `StumpEnsemble.load(path)`.
    X : array or frame (n_samples, n_features), optional
        Samples, for the histograms below the shape functions and for the contributions.
    sample_weight : array (n_samples,), optional
        The weights of the samples.
    label : bool, int, float or str, optional
        With more than two classes, the class whose shape functions and rounds are drawn. By
        default, those of all classes are drawn; if there are more than 6, those whose functions
        rise and fall most. The importances are those of all classes.
    figure : matplotlib Figure, optional
        An empty one to draw on, with a constrained layout; a new one by default.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.
    ImportError
        If Matplotlib is missing.

    Notes
    -----
    Above are the shape functions of the six most important features. If the model has pairs of
    features, the tables of the three most important ones come next, with one scale of colours: by
    their contributions over X, or else over the samples of the training. `pair` draws a pair in
    full.

    Below are the importances, and for each round the bound on the training error that follows from
    the errors and votes so far: `gpustump.theory.training_bounds` [Schapire and Singer 1999].

    Where regions have votes of their own, a model does not store these errors. Then a fitted
    estimator has the bound if it is AdaBoost, or else the training error by round; of a model alone
    the size of each round's votes is drawn: half the difference between the largest and the
    smallest, over all classes.

    For a bagged model that is the median of the bags, with a band from the least to the largest.
    Its shape functions and importances show how far the bags differ, as for `shape_function` and
    `importances`.

    Examples
    --------
    >>> from gpustump import AdaBoostClassifier, plots
    >>> X, y = [[1, 9], [2, 5], [3, 8], [4, 6], [5, 7]], [0, 0, 1, 0, 1]
    >>> clf = AdaBoostClassifier(n_estimators=10).fit(X, y)
    >>> figure = plots.overview(clf, X)
    >>> figure.get_suptitle().split(" · ")[:3]
    ['10 rounds', '2 of 2 features', 'classes 0, 1']
    """
    ensemble = model_of(model)
    outputs = output_indices(ensemble, label)
    columns = list(columns_of(ensemble))
    samples = terms.samples_of(model, X, sample_weight)
    contributions = contributions_of(ensemble, samples)
    one = ranked_model(ensemble, outputs)
    of_one = contributions if one is ensemble else contributions_of(one, samples)
    chosen = top(one, of_one, columns, _PANELS)
    scores = drawn_scores(ensemble, outputs, features_in(chosen))
    pairs = top_pairs(one, of_one)
    heights = [
        (2.5 if samples is None else 2.9) * (1 if len(chosen) <= 3 else 2),
        *([2.9] if pairs else []),
        3.3 if chosen else 1.6,
    ]
    if figure is None:
        figure = style.new_figure(10.0, sum(heights) + 0.6)
    figure.suptitle(_title(ensemble), fontsize="large", x=0.01, ha="left")
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    draw_panels(ensemble, chosen, scores, samples, parts[0])
    if pairs:
        draw_pairs(ensemble, pairs, scores, samples, parts[1])
    left, right = (style.tidy_axes(ax) for ax in parts[-1].subplots(1, 2))
    draw_shares(left, ensemble, contributions, samples, 8 if samples is None else 6)
    draw_rounds(right, ensemble, scores, getattr(model, "rounds_", None))
    return figure


def _title(model: StumpEnsemble) -> str:
    """Rounds, features, pairs of features, classes and digest."""
    n_sizes = len({len(member) for member in model.members})
    rounds = "at most " * (n_sizes > 1) + counted(model.n_rounds, "round")
    rounds += " for each class" * (len(model.members) > 1)
    if model.n_bags > 1:
        rounds = f"{model.n_bags} bags · {rounds} in all"
    classes = ", ".join(style.different_words([*map(str, model.classes[:_NAMED])], 16))
    classes += ", …" if len(model.classes) > _NAMED else ""
    target = "a quantity" if model.is_regression else f"classes {classes}"
    pairs = f"{counted(len(model.pairs), 'pair')} · " if model.pairs else ""
    features = f"{thousands(len(model.used_features))} of {thousands(model.n_features)} features"
    text = f"{rounds} · {features} · {pairs}{target} · digest {model.digest()[:12]}"
    return "\n".join(textwrap.wrap(text, _LINE, break_long_words=False))
