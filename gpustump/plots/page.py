"""A model on one page: its shape functions, its features, and what it tells of its rounds."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from gpustump.model.ensemble import Label, StumpEnsemble, model_of
from gpustump.plots import inputs, style
from gpustump.plots.importances import draw_shares
from gpustump.plots.rounds import draw_model
from gpustump.plots.shapes import contributions_of, draw_panels, top

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANELS = 6
_NAMED = 6
"""So many classes stand in the title."""

_LINE = 110


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
    model : AdaBoostClassifier, DecisionStumpClassifier or StumpEnsemble
        A model's file is enough: `StumpEnsemble.load(path)`.
    X : array or frame (n_samples, n_features), optional
        Samples, for the distributions below the shape functions and for what features contribute.
    sample_weight : array (n_samples,), optional
        What the samples count.
    label : bool, int, float or str, optional
        With more than two classes, the class whose shape functions and rounds are drawn; the first
        by default. The importances are those of all classes.
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
    Above, the shape functions of the six features that matter most. Below, the importances, and by
    round the weighted error of the stump and the bound on the training error that follows from the
    errors and votes so far: `gpustump.theory.training_bounds` [Schapire and Singer 1999].
    """
    ensemble = model_of(model)
    if label is None and not ensemble.is_binary:
        label = ensemble.classes[0]
    number = ensemble.member_index(label)
    X = None if X is None else inputs.table_of(model, X)
    weights = inputs.weights_if_any(sample_weight, X)
    contributions = contributions_of(ensemble, X, sample_weight)
    one = ensemble if ensemble.is_binary else inputs.alone(ensemble, number)
    of_one = contributions if one is ensemble else contributions_of(one, X, sample_weight)
    chosen = top(one, of_one, _PANELS)
    heights = (2.5 if X is None else 2.9) * (1 if len(chosen) <= 3 else 2), 3.3 if chosen else 1.6
    if figure is None:
        figure = style.new_figure(10.0, sum(heights) + 0.6)
    figure.suptitle(_title(ensemble), fontsize="large", x=0.01, ha="left")
    above, below = figure.subfigures(2, 1, height_ratios=heights, squeeze=False)[:, 0]
    draw_panels(ensemble, chosen, label, X, weights, above)
    left, right = (style.tidy_axes(ax) for ax in below.subplots(1, 2))
    draw_shares(left, ensemble, None if X is None else contributions, 8 if X is None else 6)
    _draw_rounds(right, ensemble, number)
    return figure


def _draw_rounds(ax: Axes, model: StumpEnsemble, number: int) -> None:
    """What the rounds of a member tell, and whose they are."""
    draw_model(ax, model.members[number])
    if not len(model.members[number]):
        return
    name = inputs.class_name(model.classes[number])
    ax.set_ylabel("error" if model.is_binary else f"error, {name} against rest")
    style.legend_above(ax, *ax.get_legend_handles_labels(), ncols=1)


def _title(model: StumpEnsemble) -> str:
    """Rounds, features, classes and digest."""
    counts = [f"{len(member):,}" for member in model.members]
    if len(set(counts)) == 1:
        rounds = f"{counts[0]} round{'s' * (counts[0] != '1')}"
        rounds += "" if model.is_binary else " for each class"
    else:
        rounds = " + ".join(counts[:_NAMED]) + " + …" * (len(counts) > _NAMED) + " rounds"
    used = {t.feature for member in model.members for t in member.tables[1]}
    classes = ", ".join(style.words(label, 16) for label in model.classes[:_NAMED])
    classes += ", …" if len(model.classes) > _NAMED else ""
    text = (
        f"{rounds} · {len(used):,} of {model.n_features:,} features · "
        f"classes {classes} · digest {model.digest()[:12]}"
    )
    return "\n".join(textwrap.wrap(text, _LINE, break_long_words=False))
