"""A pair of features as pictures show it: its cells, what they add, and where the samples are.

Here is all that is drawn of a pair, as values; `pairs` draws it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.data.readable import listed, shown, suggestion, temporal_text
from gpustump.learners.pair_table import PairAxis, PairTable
from gpustump.model.ensemble import StumpEnsemble
from gpustump.model.explanation import categories_of
from gpustump.plots import inputs, limits, style
from gpustump.plots.columns import pair_name
from gpustump.plots.panels import value_text

GAP = 0.35
"""The room between the other cells and those of missing values, in widths of a cell."""

_VALUE = 16
"""The middle of a category's name with more characters is cut out."""


@dataclass(frozen=True)
class CellAxis:
    """The bins of one feature of a pair, drawn with equal widths.

    Attributes
    ----------
    name : str
        With the unit that its values are drawn in.
    limits : tuple of str
        Where one bin ends and the next one begins, as text; empty for categories.
    bins : tuple of str
        What each bin holds, as text.
    has_missing : bool
        Whether the last bin is that of missing values.
    """

    name: str
    limits: tuple[str, ...]
    bins: tuple[str, ...]
    has_missing: bool

    @property
    def edges(self) -> np.ndarray:
        """The left edges of all bins and the right edge of the last one, with a gap before the bin
        of missing values, which is an own cell: (n_bins + 1,), or (n_bins + 2,) with a gap."""
        n_bins = len(self.bins)
        if not self.has_missing:
            return np.arange(n_bins + 1.0)
        end = n_bins - 1 + GAP
        return np.append(np.arange(float(n_bins)), [end, end + 1.0])

    @property
    def n_values(self) -> int:
        """How many bins there are beside that of missing values."""
        return len(self.bins) - self.has_missing

    def middle(self, number: int) -> float:
        """Where the middle of a bin is drawn."""
        return number + 0.5 + (GAP if self.has_missing and number == self.n_values else 0.0)

    def name_of(self, first: int, last: int) -> str:
        """What some neighbouring bins of numbers hold, such as "2 to 5"."""
        low = self.limits[first - 1] if first else ""
        high = self.limits[last] if last < len(self.limits) else ""
        if low and high:
            return f"{low} to {high}"
        return f"above {low}" if low else f"up to {high}" if high else "all"

    @property
    def tick_texts(self) -> tuple[str, ...]:
        """The limits, or else what each bin holds, without that of missing values."""
        return self.limits or self.bins[: self.n_values]

    def ticks(self, most: int) -> tuple[list[float], list[str]]:
        """Places and labels of at most so many ticks, and one for missing values."""
        texts = self.tick_texts
        chosen = _spread(len(texts), max(most, 1))
        places = [k + 1.0 if self.limits else self.middle(k) for k in chosen]
        found = [texts[k] for k in chosen]
        if self.has_missing:
            return [*places, self.middle(self.n_values)], [*found, "missing"]
        return places, found


@dataclass(frozen=True)
class Cells:
    """What a pair adds to one score.

    Attributes
    ----------
    name : str
    axes : (CellAxis, CellAxis)
        Along x and along y.
    values : ndarray (k, m) of float64
        What is added in each cell.
    bags : ndarray (n_bags, k, m) of float64, or None
        For a bagged model what each bag adds there.
    weights : ndarray (k, m) of float64
        The share of the weight of the training samples in each cell.
    shares : ndarray (k, m) of float64
        The same of the samples that are shown: those of the training, or of a table.
    """

    name: str
    axes: tuple[CellAxis, CellAxis]
    values: np.ndarray
    bags: np.ndarray | None
    weights: np.ndarray
    shares: np.ndarray

    @property
    def is_learnt(self) -> np.ndarray:
        """Whether any sample of the training lay in a cell, (k, m) of bool."""
        return self.weights > 0.0

    @property
    def largest(self) -> float:
        """The largest size of a value that was learnt."""
        return float(np.abs(self.values[self.is_learnt]).max(initial=0.0))

    def mean_over(self, bins: Sequence[int]) -> tuple[np.ndarray, np.ndarray | None]:
        """What the first feature adds on average beside some bins of the second one.

        Returns
        -------
        ndarray (k,) of float64
            The mean over the training samples in these bins; NaN where there are none.
        ndarray (k,) of float64, or None
            The standard deviation of that mean over the bags.
        """
        own = self.weights[:, bins]
        total = own.sum(axis=1)
        total = np.where(total > 0.0, total, np.nan)
        mean = (own * self.values[:, bins]).sum(axis=1) / total
        if self.bags is None:
            return mean, None
        return mean, np.std((own * self.bags[:, :, bins]).sum(axis=2) / total, axis=0, ddof=1)


def pair_index(model: StumpEnsemble, pair: Any) -> tuple[int, bool]:
    """The number of a pair among those of a model, and whether its features are named in turn.

    Parameters
    ----------
    model : StumpEnsemble
    pair : int, str, or two of these
        The number; the name, such as "age x income"; or both features, by index or name.

    Raises
    ------
    ValueError, TypeError
        If there is no such pair.
    """
    names = model.term_names[model.n_features :]
    if not names:
        raise ValueError(
            f"pair is {shown(pair)}, but the model has no pairs of features; train with "
            "interactions='auto', as GlassBoxClassifier and GlassBoxRegressor do."
        )
    if isinstance(pair, str):
        return _named(model, pair, names)
    if isinstance(pair, Sequence) and len(pair) == 2:
        first, second = (model.feature_index(feature) for feature in pair)
        features = [own.features for own in model.pairs]
        for number, own in enumerate(features):
            if own in ((first, second), (second, first)):
                return number, own != (first, second)
        raise ValueError(
            f"pair is {shown(pair)}, which is none of the model's pairs: {listed(names, 3)}."
        )
    if isinstance(pair, bool) or not isinstance(pair, int | np.integer):
        raise TypeError(
            "pair must be a number, a name such as 'age x income', or two features; got "
            f"{shown(pair)}."
        )
    if not -len(names) <= pair < len(names):
        raise ValueError(
            f"pair must be a number below {len(names)}, the number of pairs; got {pair}."
        )
    return int(pair) % len(names), False


def _named(model: StumpEnsemble, name: str, names: Sequence[str]) -> tuple[int, bool]:
    if name in names:
        return names.index(name), False
    of_features = model.term_names[: model.n_features]
    swapped = [" x ".join(of_features[j] for j in own.features[::-1]) for own in model.pairs]
    if name in swapped:
        return swapped.index(name), True
    hint = suggestion(name, [*names, *swapped])
    raise ValueError(
        f"pair is {shown(name)}, which is none of the model's pairs: {listed(names, 3)}.{hint}"
    )


def cells_of(
    model: StumpEnsemble,
    number: int,
    output: int,
    samples: inputs.Samples | None,
    *,
    is_turned: bool = False,
) -> Cells:
    """What a pair adds to one output; the first feature is drawn along x.

    Parameters
    ----------
    model : StumpEnsemble
    number : int
        Of the pair.
    output : int
    samples : Samples or None
        Whose shares are shown; None for those of the training.
    is_turned : bool
        Whether the second feature is drawn along x.
    """
    pair = model.pairs[number]
    table = pair.output(output)
    shares = table.weights if samples is None else _shares(pair, samples)
    bags = table.bags
    first, second = pair.axes
    features = pair.features
    if is_turned:
        first, second, features = second, first, (features[1], features[0])
        shares = shares.T
        table = replace(table, axes=(first, second), values=table.values.T, weights=table.weights.T)
        bags = None if bags is None else bags.transpose(0, 2, 1)
    total = table.weights + shares
    shows = total[-1].any(), total[:, -1].any()
    x, y = (
        _cell_axis(model, axis, has_missing=bool(shown_))
        for axis, shown_ in zip((first, second), shows, strict=True)
    )
    kept = np.s_[: len(x.bins), : len(y.bins)]
    return Cells(
        pair_name(model, features),
        (x, y),
        table.values[kept],
        None if bags is None else bags[(slice(None), *kept)],
        table.weights[kept],
        shares[kept],
    )


def _shares(pair: PairTable, samples: inputs.Samples) -> np.ndarray:
    """The share of the samples' weight in each cell."""
    weights = samples.weights
    with arrays.computing_on(samples.X):
        first, second = map(arrays.to_host, pair.bins_of(samples.X))
    found = np.zeros(pair.weights.shape)
    np.add.at(found, (first, second), weights.values / weights.total)
    return found


def _cell_axis(model: StumpEnsemble, axis: PairAxis, *, has_missing: bool) -> CellAxis:
    name = inputs.feature_name(model, axis.feature)
    missing = ("missing",) * has_missing
    if axis.groups:
        names = categories_of(model, axis.feature) or {}
        texts = [[names.get(number, str(number)) for number in own] for own in axis.groups]
        short = style.different_words([_some(own) for own in texts], _VALUE)
        return CellAxis(name, (), (*short, *missing), has_missing)
    origin = model.encoding.origin(axis.feature)
    thresholds, kind = axis.thresholds[:-1], origin.column.kind
    is_flag = len(thresholds) == 1 and 0.0 <= thresholds[0] < 1.0
    if is_flag and kind == "boolean":
        return CellAxis(name, (), ("false", "true", *missing), has_missing)
    if is_flag and kind == "category":
        return CellAxis(name, (), ("no", "yes", *missing), has_missing)
    unit, note = limits.unit_of_kind(thresholds, kind)
    ends = tuple(_texts(limits.in_unit(thresholds, unit), kind))
    bare = CellAxis(name + note, ends, (), has_missing)
    bins = (bare.name_of(k, k) for k in range(len(ends) + 1))
    return replace(bare, bins=(*bins, *missing))


def _some(names: Sequence[str]) -> str:
    """The categories of one bin: all of them if there is room, or else the first one."""
    text = ", ".join(names)
    if len(names) == 1 or len(text) <= _VALUE:
        return text
    more = f" + {len(names) - 1} more"
    return style.words(names[0], _VALUE - len(more)) + more


def _texts(values: np.ndarray, kind: str) -> list[str]:
    """Increasing values with as few digits as tell them apart, three at least."""
    if kind in ("date", "datetime", "time"):
        found = [value_text(value, kind) for value in values.tolist()]
        if kind != "datetime" or len({*found}) == len(found):
            return found
        seconds = (temporal_text(86400.0 * value, kind) for value in values.tolist())
        return [text or short for text, short in zip(seconds, found, strict=True)]
    texts: list[str] = []
    for digits in range(3, 18):
        texts = [_number(value, digits) for value in values.tolist()]
        if len({*texts}) == len(texts):
            break
    return texts


def _number(value: float, digits: int) -> str:
    """A number with so many significant digits; those before the decimal point in full."""
    if value == 0.0 or not 1e-4 <= abs(value) < 1e6:
        text = f"{value:.{digits}g}"
    else:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        text = f"{value:.{decimals}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", "−")


def _spread(count: int, most: int) -> list[int]:
    """At most so many of the numbers below `count`, evenly spaced, the ends left out if many."""
    if count <= most:
        return list(range(count))
    places = (np.arange(most) + 0.5) * count / most
    return [*dict.fromkeys(int(place) for place in places.tolist())]
