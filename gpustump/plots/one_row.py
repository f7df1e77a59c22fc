"""An explanation of one row: what each term adds to its score, the largest first.

The picture and the text of the command line show the same numbers, which are computed here, as a
value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.parameters import check_count
from gpustump.data.readable import temporal_text
from gpustump.model.columns import Column, column_at
from gpustump.model.ensemble import Label, StumpEnsemble, model_of
from gpustump.plots import style, terms
from gpustump.plots.terms import Pair, Term, counted_terms, name_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UNITS = {"logistic": "half the log-odds", "softmax": "half the log-probability up to a constant"}
"""What a score is, by the model's link."""

_VALUE = 18
"""The middle of a category's value with more characters is cut out."""

_AMOUNT = 0.6
"""The room for an amount beside its bar, in inches."""


class Amount(NamedTuple):
    """What is added to the score, and what each bag adds to its own: ndarray (n_bags,) of float64.

    A model that is no average has no bags.
    """

    value: float
    bags: np.ndarray

    @property
    def deviation(self) -> float:
        """The standard deviation over the bags; 0 without bags."""
        return float(np.std(self.bags, ddof=1)) if self.bags.size else 0.0


class Addend(NamedTuple):
    """A term, and what it adds to the score."""

    term: Term
    amount: Amount


@dataclass(frozen=True)
class RowScore:
    """A row's score of one class, and how it comes about.

    Attributes
    ----------
    model : StumpEnsemble
    values : ndarray (n_features,) of float64
        The row.
    label : label or None
        The class whose score it is; None with two classes, which have one score.
    addends : tuple of Addend
        The terms that do not add 0; those that add or take away most stand first.
    idle : tuple of Column or Pair
        The other terms.
    intercept, known, score : Amount
        The score is the sum of the intercept, of what is known beforehand (None for nothing), and
        of all amounts; without the second, bit for bit.
    predicted : label or None
        None for a quantity, whose prediction is the score or its exponential; there are no
        probabilities then.
    probabilities : ndarray (n_classes,) of float64
    probabilities_of_bags : ndarray (n_bags, n_classes) of float64
    """

    model: StumpEnsemble
    values: np.ndarray
    label: Label | None
    addends: tuple[Addend, ...]
    idle: tuple[Term, ...]
    intercept: Amount
    known: Amount | None
    score: Amount
    predicted: Any
    probabilities: np.ndarray
    probabilities_of_bags: np.ndarray

    def split(self, limit: int) -> tuple[tuple[Addend, ...], tuple[Addend, ...]]:
        """The addends to show one by one, and the others, whose sum is shown.

        If only one would be left over, it is shown as well: its sum would take as much room.
        """
        if len(self.addends) == limit + 1:
            limit += 1
        return self.addends[:limit], self.addends[limit:]

    def value_of(
        self, column: Column, number: Callable[[float], str], names: Sequence[str] | None = None
    ) -> str:
        """A column's value as text.

        `number` makes text of a value that is neither missing nor a boolean, date or time; `names`
        are those of categories, by default their values.
        """
        code = float(column.codes(self.values[np.newaxis, list(column.features)])[0])
        if column.values is None:
            return _known_text(code, column.kind) or number(code)
        if math.isnan(code):
            return "missing"
        return (names or column.values)[int(code)] if code >= 0 else "(other)"


def total(addends: Sequence[Addend]) -> Amount:
    """The sum of their amounts."""
    amounts = [addend.amount for addend in addends]
    bags = np.sum([amount.bags for amount in amounts], axis=0)
    return Amount(float(sum(amount.value for amount in amounts)), bags)


def table_of_row(model: Any, row: Any) -> Array:
    """A row as a table of one row.

    Raises
    ------
    ValueError, TypeError
        If it is not one row with the model's features.
    """
    is_of_pandas = hasattr(row, "to_frame") and hasattr(row, "index")
    if is_of_pandas:  # its names say which value is which feature's
        row = row.to_frame().T.infer_objects()
    elif not hasattr(row, "columns"):
        if hasattr(row, "toarray") and 1 in (row.ndim, row.shape[0]):  # a sparse row
            row = row.toarray()
        row = row if arrays.is_array(row) else np.asarray(row)
        row = row[None, :] if row.ndim == 1 else row
    if len(row.shape) != 2 or row.shape[0] != 1:
        raise ValueError(f"row must be one row of a table; got shape {tuple(row.shape)}.")
    return terms.table_of(model, row)


def known_score(model: StumpEnsemble, init_score: Any, exposure: Any) -> np.ndarray:
    """What is known of one row's scores beforehand, (n_outputs,) of float64; 0 for what is not.

    Raises
    ------
    ValueError, TypeError
        If an argument is not what `predict` takes for one row.
    """
    if init_score is None and exposure is None:
        return np.zeros(model.n_outputs)
    from gpustump.estimators.targets import Offset  # it needs scikit-learn, which takes a second

    shape = (1,) if model.has_one_score else (1, -1)
    given = [None if own is None else np.reshape(own, shape) for own in (init_score, exposure)]
    found = Offset(given[0], given[1]).of_scores(np.zeros((1, 1)), model)
    return np.zeros(model.n_outputs) if found is None else np.reshape(found, -1)


def row_score(
    model: StumpEnsemble, table: Array, label: Label | None, known: np.ndarray
) -> RowScore:
    """How the score of a table's only row comes about.

    Parameters
    ----------
    model : StumpEnsemble
    table : array (1, n_features)
    label : label or None
        The class whose score it is. None for the only score, or that of the class predicted.
    known : ndarray (n_outputs,) of float64
        What is known of each score beforehand.
    """
    scores = arrays.to_host(model.decision_function(table)) + known  # (1,) or (1, n_outputs)
    predicted = None
    if not model.is_regression:
        predicted = model.classes[int(model.class_indices(scores)[0])]
    if label is None and not model.has_one_score:
        label = predicted
    number = model.output_index(label)
    parts, of_every_bag = _parts(model, table), [_parts(bag, table) for bag in model.bag_models]
    of_bags = np.reshape(of_every_bag, (-1, *parts.shape))  # none if the model is no average
    scores_of_bags = of_bags.sum(axis=-1) + known
    probabilities = of_their_own = np.zeros((0, 0))
    if not model.is_regression:
        probabilities = model.probabilities_of(scores)[0]
        of_their_own = model.probabilities_of(
            scores_of_bags[:, 0] if model.is_binary else scores_of_bags
        )
    every = terms.terms_of(model)
    amounts = terms.shares_of(parts[number], every).tolist()
    each = zip(every, amounts, terms.shares_of(of_bags[:, number], every).T, strict=True)
    addends = [Addend(term, Amount(own, bags)) for term, own, bags in each]
    addends.sort(key=lambda addend: -abs(addend.amount.value))
    with arrays.computing_on(table):
        values = arrays.to_host(arrays.as_working(table[0, :])).astype(np.float64)
    beforehand = Amount(float(known[number]), np.full(len(of_bags), known[number]))
    return RowScore(
        model,
        values,
        label,
        tuple(addend for addend in addends if addend.amount.value != 0.0),
        tuple(addend.term for addend in addends if addend.amount.value == 0.0),
        Amount(float(parts[number, -1]), of_bags[:, number, -1]),
        beforehand if known.any() else None,
        Amount(float(scores.reshape(model.n_outputs)[number]), scores_of_bags[:, number]),
        predicted,
        probabilities,
        of_their_own,
    )


def _parts(model: StumpEnsemble, table: Array) -> np.ndarray:
    """What each feature, each pair and the intercept add to each score, (n_outputs, n_parts)."""
    parts = arrays.to_host(model.explain(table))
    return parts.reshape(model.n_outputs, parts.shape[-1])


def _known_text(value: float, kind: str) -> str | None:
    """A value that is not written as a number; None if it is."""
    if math.isnan(value):
        return "missing"
    if kind == "boolean" and value in (0.0, 1.0):
        return "true" if value else "false"
    if kind == "duration" and abs(value) < 60:
        return f"{value:.4g} s".replace("-", "−")
    return temporal_text(round(value) if kind == "duration" else value, kind)


def explanation(
    model: Any,
    row: Any,
    *,
    n_features: int = 10,
    label: Label | None = None,
    init_score: Any = None,
    exposure: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what each feature adds to the score of one row, as bars from 0, the largest on top.

    Parameters
    ----------
    model : StumpEnsemble or fitted estimator
    row : array (n_features,) or (1, n_features)
        Of any array library; NaN means missing. Also a frame of one row, or a row of a pandas
        frame, in which the features are found by name.
    n_features : int
        How many features, and pairs of features, have a bar of their own: those that add or take
        away most. The others that contribute are summed in one bar. Beside the name of a pair stand
        the values of both features.
    label : bool, int, float or str, optional
        With more than two classes, the class whose score it is; by default the one predicted.
    init_score : float or array (n_classes,), optional
    exposure : float, optional
        What is known of the row beforehand, as `predict` takes it. It has a bar of its own.
    ax : matplotlib Axes, optional
        A new figure's by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.
    ImportError
        If Matplotlib is missing.

    Notes
    -----
    The local explanation of a generalised additive model, as Explainable Boosting Machines draw it
    [Nori, Jenkins, Koch and Caruana 2019]. All bars begin at 0, so their lengths compare, as those
    of a waterfall do not. A feature's contribution is the sum of its votes,
    `StumpEnsemble.explain`. The widths of the bars, with that of the intercept, add up to the score
    that stands below them: `decision_function` bit for bit, if nothing is known beforehand. For a
    bagged model, a line at the end of each bar reaches one standard deviation over the bags to both
    sides.

    Examples
    --------
    >>> from gpustump import LogitBoostClassifier, plots
    >>> X, y = [[1, 9], [2, 5], [3, 8], [4, 6], [5, 7]], [0, 0, 1, 0, 1]
    >>> clf = LogitBoostClassifier(n_estimators=10).fit(X, y)
    >>> ax = plots.explanation(clf, X[2])
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['feature 0 = 3', 'feature 1 = 8', 'intercept', 'score']
    """
    ensemble = model_of(model)
    check_count(n_features, "n_features")
    known = known_score(ensemble, init_score, exposure)
    found = row_score(ensemble, table_of_row(model, row), label, known)
    return draw_row(found, n_features, ax)


def draw_row(row: RowScore, n_features: int, ax: Axes | None) -> Axes:
    """Draw a row whose score is known, on `ax` or on a new figure."""
    bars = [*_bars_of(row, n_features), ("intercept", row.intercept)]
    names = [*(name for name, _ in bars), terms.PREDICTIONS.get(row.model.link, "score")]
    ax = style.tidy_axes(ax, 6.4, 1.3 + 0.3 * len(names))
    ax.axvline(0.0, color=style.GREY, linewidth=0.8, zorder=1)
    ends = []
    for k, (name, amount) in enumerate(bars):
        colour = style.BLUE if amount.value > 0 else style.VERMILION
        look: Any = {"color": style.GREY if name == "intercept" else colour, "linewidth": 0.0}
        look |= {"hatch": "////"} if amount.value < 0 else {}
        look |= {"xerr": amount.deviation, **style.bag_lines()} if amount.bags.size else {}
        ax.barh(k, amount.value, 0.66, gid="contribution", edgecolor=ax.get_facecolor(), **look)
        ends.append(amount.value + math.copysign(amount.deviation, amount.value))
        _write(ax, (ends[-1], k), amount.value)
    low, high = min(0.0, *ends), max(0.0, *ends)
    room = min(0.4, _AMOUNT / (0.55 * style.width_of(ax))) * (high - low) or 1.0
    ax.set_xlim(low - room if low < 0 else -0.02 * high, high + room)
    ax.axhline(len(bars) - 0.5, color=style.ink(), linewidth=0.8, gid="sum")
    _write(ax, (0.0, len(bars)), row.score.value, fontsize="small", fontweight="bold", ha="left")
    ax.set_yticks(range(len(names)), names)
    ax.get_yticklabels()[-1].set_fontweight("bold")
    ax.set_ylim(len(bars) + 0.5, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    whose = terms.score_name(row.model, row.label)
    what = whose if row.model.is_regression else f"score of {whose}, {UNITS[row.model.link]}"
    lines = [f"lines: {style.bag_text(row.model.n_bags)}"] * (row.model.n_bags > 1)
    # The names beside the bars take a part of the axes' width.
    room = int(1.25 * style.width_of(ax) / 0.07) - max(map(len, names))
    ax.set_xlabel(style.in_lines([f"contribution to the {what}", *lines], room))
    style.legend_above(ax, [], [], title=style.in_lines([_prediction(row)], room))
    return style.make_current(ax)


def _bars_of(row: RowScore, limit: int) -> list[tuple[str, Amount]]:
    """The terms that add or take away most, the sum of the others, and what is known."""
    shown, others = row.split(limit)
    bars = [
        (f"{name_of(row.model, term)} = {_drawn_value(row, term)}", amount)
        for term, amount in shown
    ]
    if others:
        what = counted_terms([addend.term for addend in others])
        bars.append((f"{len(others):,} other {what}", total(others)))
    return bars if row.known is None else [*bars, ("known beforehand", row.known)]


def _drawn_value(row: RowScore, term: Term) -> str:
    """A term's value in the row, in a picture; of a pair both values."""
    if isinstance(term, Pair):
        return ", ".join(_drawn_value(row, column_at(row.model, own)) for own in term.features)
    names = style.different_words(term.values or (), _VALUE)
    return row.value_of(term, style.number_text, names)


def _prediction(row: RowScore) -> str:
    """What is predicted: a quantity, or a class and its probability."""
    if row.predicted is None:
        (predicted,) = row.model.quantities_of(np.asarray([row.score.value])).tolist()
        return f"predicted: {style.number_text(predicted)}"
    number = row.model.classes.index(row.predicted)
    probability = float(row.probabilities[number])
    share = f"{probability:.3f}" if probability < 0.9995 else "> 0.999"
    return f"predicted: {terms.class_names(row.model)[number]}, probability {share}"


def _write(ax: Axes, place: tuple[float, int], amount: float, **how: Any) -> None:
    """An amount as text at the end of its bar: three digits, or a whole number from 1000 to a
    million."""
    is_short = 1000 <= abs(amount) < 1e6
    text = f"{amount:+.0f}" if is_short else f"{amount:+.3g}"
    text = text.replace("-", "−") if amount else "0"
    look: dict[str, Any] = {"ha": "left" if amount >= 0 else "right", "fontsize": "x-small"} | how
    shift = (4 if look["ha"] == "left" else -4, 0)
    look |= {"va": "center", "color": style.ink(), "textcoords": "offset points"}
    ax.annotate(text, place, xytext=shift, **look)
