"""A model, and rows to try it on, as the data of its page.

A score is a constant, plus what each column adds, plus what pairs of columns add. A column of text
is one column here, whatever features it became: its value is the number of its category, -1 for any
other text, NaN for missing text. So a row is one number for each column, and each column adds the
entry of a table that stands at the row's step. All entries are whole multiples of one power of two,
and JavaScript's numbers are float64: sums are exact in any order, and the page's scores are those
of `StumpEnsemble.decision_function`, bit for bit.

Numbers travel as the bytes of arrays, in base64. A term has a part for each member of the model,
with the steps of that member only, so classes that are boosted one against the rest take no more
room than in the model's file.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.columns import numbers_of
from gpustump.data.input_arrays import as_array
from gpustump.data.labels import check_targets, class_numbers
from gpustump.data.readable import counted, thousands
from gpustump.learners.pair_table import PairAxis
from gpustump.learners.step_table import StepTable
from gpustump.model.columns import CATEGORY, Column, columns_of
from gpustump.model.ensemble import StumpEnsemble
from gpustump.model.members import added_up

MOST_ROWS = 5_000
"""The most rows in a page. Of more, evenly spaced ones are taken."""

MOST_VALUES = 500_000
"""The most values of all rows in a page together, 5 MB: of wide tables a page has fewer rows."""


def payload(
    model: StumpEnsemble, X: Array | None, y: Any, known_scores: Any, source: str | None
) -> dict[str, Any]:
    """What the page of a model holds, in JSON's types.

    Parameters
    ----------
    model : StumpEnsemble
    X : array (n_samples, n_features) or None
        Checked rows, of any library.
    y : array (n_samples,) or None
        Their labels or targets.
    known_scores : array or None
        What is known of them beforehand; see `page`.
    source : str or None
        What the rows are, in words.

    Raises
    ------
    ValueError, TypeError
        If y or known_scores is not as described.
    """
    used = model.used_features
    columns = [own for own in columns_of(model) if not used.isdisjoint(own.features)]
    places = {feature: place for place, own in enumerate(columns) for feature in own.features}
    rows = None if X is None else _Rows.of(model, X, y, columns)
    terms = _terms(model, columns, rows) + _pairs(model, columns, places, rows)
    order = sorted(range(len(terms)), key=lambda number: -terms[number]["size"])
    constants = [own.constant.tolist() for own in _effects_of(model)]
    return {
        "about": _about(model, len(columns)),
        "link": model.link,
        "classes": [str(label) for label in model.classes],
        "constant": list(itertools.chain.from_iterable(constants)),
        "digest": model.digest(),
        "bags": model.n_bags,
        "columns": [_described(model, own) for own in columns],
        "terms": [terms[number] for number in order],
        "rows": None if rows is None else rows.described(model, known_scores, source),
    }


def as_text(data: Mapping[str, Any]) -> str:
    """JSON that may stand in a script element: it holds no "<", ">" or "&", and ASCII only."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def packed(numbers: np.ndarray) -> dict[str, str]:
    """An array as its bytes, in the narrowest of a few types that hold the same numbers."""
    if numbers.dtype.kind in "iu":
        kind = "u1" if not numbers.size or numbers.max() < 256 else "u4"
    else:
        with np.errstate(over="ignore"):
            narrow = numbers.astype(np.float32)
        kind = "f4" if np.array_equal(narrow, numbers, equal_nan=True) else "f8"
    content = np.ascontiguousarray(numbers, dtype=f"<{kind}").tobytes()
    return {kind: base64.b64encode(content).decode("ascii")}


class _Effects(NamedTuple):
    """The step functions of one member by feature, whose outputs begin at `first`."""

    first: int
    constant: np.ndarray
    tables: dict[int, StepTable]

    def values(self, column: Column, probe: np.ndarray) -> np.ndarray:
        """What a column adds to each output in some rows of its features, (n_rows, n_outputs)."""
        found = np.zeros((len(probe), len(self.constant)))
        for feature, own in zip(column.features, probe.T, strict=True):
            if feature in self.tables:
                found += self.tables[feature].look_up(own)
        return found


def _effects_of(model: StumpEnsemble) -> Iterator[_Effects]:
    first = 0
    for member in model.effects:
        constant, found = added_up([member]).tables
        yield _Effects(first, constant, {own.feature: own for own in found})
        first += member.n_outputs


def _described(model: StumpEnsemble, column: Column) -> dict[str, Any]:
    learnt = model.missing_learnt
    return {
        "name": column.name,
        "kind": column.kind,
        "values": column.values,
        "features": column.features,
        "gone": numbers_of(model.encoding.missing) if column.kind == "number" else (),
        "learnt": True if learnt is None else any(learnt[j] for j in column.features),
    }


def _terms(
    model: StumpEnsemble, columns: Sequence[Column], rows: _Rows | None
) -> list[dict[str, Any]]:
    """What each column adds by itself."""
    members = list(_effects_of(model))
    bags = [list(_effects_of(bag)) for bag in model.bag_models]
    found = []
    for place, column in enumerate(columns):
        parts, size = [], 0.0
        for number, own in enumerate(members):
            held = [own.tables[j] for j in column.features if j in own.tables]
            if not held:
                continue
            ends = held[0].thresholds if column.values is None else np.empty(0)
            probe = column.probe(ends)
            values = own.values(column, probe)
            part = {
                "first": own.first,
                "width": len(own.constant),
                "ends": packed(ends),
                "values": packed(values),
            }
            if bags:
                of_bags = [bag[number].values(column, probe) for bag in bags]
                part["spread"] = packed(np.std(of_bags, axis=0, ddof=1).astype(np.float32))
            weights = np.ones(len(values))
            if rows is not None:
                weights = rows.counts(place, column, ends, len(values))
                part["counts"] = packed(weights)
            size += _size(values, weights)
            parts.append(part)
        if parts:
            found.append({"name": column.name, "columns": [place], "parts": parts, "size": size})
    return found


def _size(values: np.ndarray, weights: np.ndarray) -> float:
    """How much a term makes scores differ: the mean absolute deviation, over all outputs."""
    weights = weights / (weights.sum() or 1)
    return float((np.abs(values - weights @ values) * weights[:, np.newaxis]).sum())


def _pairs(
    model: StumpEnsemble, columns: Sequence[Column], places: Mapping[int, int], rows: _Rows | None
) -> list[dict[str, Any]]:
    """What pairs of features add."""
    found = []
    for pair in model.pairs:
        at = [places[feature] for feature in pair.features]
        axes = [_axis(axis, columns[place]) for axis, place in zip(pair.axes, at, strict=True)]
        part = {"first": 0, "width": model.n_outputs, "values": packed(pair.values)}
        weights = pair.weights
        if rows is not None:
            bins = [
                own[columns[place].steps(rows.columns[place], ends)]
                for place, (ends, own) in zip(at, axes, strict=True)
            ]
            cells = bins[0].astype(np.int64) * pair.axes[1].n_bins + bins[1]
            weights = np.bincount(cells, minlength=pair.n_cells).reshape(weights.shape)
            part["counts"] = packed(weights)
        if pair.bags is not None:
            part["spread"] = packed(np.std(pair.bags, axis=0, ddof=1).astype(np.float32))
        names = [
            columns[p].name if columns[p].kind != CATEGORY else model.encoding.shown_names[j]
            for p, j in zip(at, pair.features, strict=True)
        ]
        found.append(
            {
                "name": " × ".join(names),
                "columns": at,
                "features": pair.features,
                "axes": [
                    {"ends": packed(ends), "bins": packed(own), "n": axis.n_bins}
                    for (ends, own), axis in zip(axes, pair.axes, strict=True)
                ],
                "seen": packed((pair.weights > 0).astype(np.uint8)),
                "parts": [part],
                "size": _size(pair.values.reshape(pair.n_cells, -1), weights.ravel()),
            }
        )
    return found


def _axis(axis: PairAxis, column: Column) -> tuple[np.ndarray, np.ndarray]:
    """The ends (k,) of the steps of a pair's column, and the bin of each step."""
    if column.values is None:
        return axis.steps
    own = column.probe(np.empty(0))[:, column.features.index(axis.feature)]
    return np.empty(0), axis.bins_of(own).astype(np.uint8)


class _Rows(NamedTuple):
    """The rows that a page is given.

    Attributes
    ----------
    X : array (n_rows, n_features)
    target : ndarray (n_rows,) of float64, or None
        The number of each row's class, or its quantity.
    columns : list of ndarray (n_rows,)
        The values of each column.
    fits : ndarray (n_rows,) of bool
        Whether these values are all of the row: not if it has two categories of one column.
    """

    X: Array
    target: np.ndarray | None
    columns: list[np.ndarray]
    fits: np.ndarray

    @classmethod
    def of(cls, model: StumpEnsemble, X: Array, y: Any, columns: Sequence[Column]) -> _Rows:
        with arrays.computing_on(X):
            target = None
            if y is not None:
                given = check_targets(y, X) if model.is_regression else None
                of_class = None if given is not None else class_numbers(model.classes, y, X)
                target = np.asarray(of_class if given is None else arrays.to_host(given))
            own = [
                np.stack([arrays.to_host(arrays.as_working(X[:, j])) for j in one.features], 1)
                for one in columns
            ]
        codes, fits = [], np.ones(int(X.shape[0]), dtype=bool)
        for one, given in zip(columns, own, strict=True):
            codes.append(one.codes(given.astype(np.float64)))
            if one.kind == CATEGORY:
                again = one.probe(np.empty(0))[one.steps(codes[-1], np.empty(0))]
                fits &= ((again == given) | (np.isnan(again) & np.isnan(given))).all(axis=1)
        return cls(X, None if target is None else target.astype(np.float64), codes, fits)

    def counts(self, place: int, column: Column, ends: np.ndarray, n_steps: int) -> np.ndarray:
        """How many rows lie on each of a column's steps, (n_steps,) of int64."""
        return np.bincount(column.steps(self.columns[place], ends), minlength=n_steps)

    def described(
        self, model: StumpEnsemble, known_scores: Any, source: str | None
    ) -> dict[str, Any]:
        """Some rows for the page, evenly spaced, with their scores."""
        rows = np.flatnonzero(self.fits)
        most = max(1, min(MOST_ROWS, MOST_VALUES // (len(self.columns) + model.n_outputs)))
        taken = rows[np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(np.int64)]
        with arrays.computing_on(self.X):
            xp, device = arrays.namespace_of(self.X), arrays.device_of(self.X)
            X = arrays.picked(self.X, xp.asarray(taken, device=device))
            scores = np.asarray(arrays.to_host(model.decision_function(X)))
        known = None
        if known_scores is not None:
            known = np.asarray(arrays.to_host(as_array(known_scores, "known_scores")))
            shape = len(self.fits), model.n_outputs
            if known.shape != shape and (known.shape != shape[:1] or model.n_outputs > 1):
                raise ValueError(f"known_scores must have shape {shape}; got {known.shape}.")
            known = known.astype(np.float64).reshape(shape)
            if not np.isfinite(known).all():
                raise ValueError("known_scores must be finite numbers.")
            known = known[taken]
        return {
            "source": source,
            "given": len(self.fits),
            "numbers": packed(taken),
            "columns": [packed(own[taken]) for own in self.columns],
            "target": None if self.target is None else packed(self.target[taken]),
            "known": None if known is None else packed(known),
            "scores": packed(scores.reshape(len(taken), -1)),
        }


def _about(model: StumpEnsemble, n_used: int) -> list[tuple[str, str]]:
    """What the model is, and what it was trained on: names and values."""
    details, encoding = model.details, model.encoding
    fingerprint, target = details.get("fingerprint"), details.get("target")
    found = [("target", target)] if isinstance(target, str) else []
    if isinstance(fingerprint, Mapping) and isinstance(fingerprint.get("rows"), int):
        found.append(("trained on", counted(fingerprint["rows"], "row")))
    n_columns = len(encoding.columns)
    found.append(("columns", f"{thousands(n_columns)}, {thousands(n_used)} of them used"))
    if model.pairs:
        found.append(("pairs", thousands(len(model.pairs))))
    sizes = [thousands(len(member)) for member in model.members]
    rounds = sizes[0] if len({*sizes}) == 1 else f"at most {thousands(model.n_rounds)}"
    each = " for each class" if len(sizes) > 1 else ""
    found.append(("rounds", rounds + each))
    if model.n_bags > 1:
        found.append(("bags", f"{model.n_bags}, their rounds in turns"))
    if model.edits is not None:
        words = "; ".join(own.in_words(encoding.shown_names) for own in model.edits.made)
        found += [("edited", words), ("before", model.edits.of)]
    estimator = details.get("estimator")
    if isinstance(estimator, Mapping) and isinstance(estimator.get("name"), str):
        found.append(("estimator", estimator["name"]))
    return found
