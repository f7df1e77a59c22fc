"""A model in one line, and as a small table for notebooks: what people see who print it.

The table is plain HTML without colours, so it can be read on light and on dark pages. It has no
script, and all text of a model is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from gpustump.data.readable import counted, shortened

if TYPE_CHECKING:
    from gpustump.model.ensemble import StumpEnsemble

_LABELS, _FEATURES, _LONGEST = 10, 10, 40
"""How many classes and features are named, and how many characters of a name are shown."""

_CELL = "text-align:left;padding:0 1em 0 0"


def line_of(model: StumpEnsemble) -> str:
    """A model in one line of some hundred characters."""
    sizes = [len(member) for member in model.members]
    rounds = "+".join(map(str, sizes)) if len(sizes) <= _LABELS else str(sum(sizes))
    target = "a quantity" if model.is_regression else f"classes {_labels(model)}"
    pairs = f" and {counted(len(model.pairs), 'pair')}" if model.pairs else ""
    return (
        f"StumpEnsemble of {rounds} stump{'' if rounds == '1' else 's'}{pairs} on "
        f"{counted(model.n_features, 'feature')} for {target}; digest {_digest(model)[:12]}"
    )


def html_of(model: StumpEnsemble) -> str:
    """A model as a table: its size, its digest, and the features with the most votes."""
    used = model.used_features
    rows = [("rounds", f"{model.n_rounds}")]
    if not model.has_one_score:
        shared = ", shared by all classes" if model.is_shared else ""
        rows.append(("stumps", f"{sum(map(len, model.members))}{shared}"))
    rows.append(("predicts", "a quantity") if model.is_regression else ("classes", _labels(model)))
    rows.append(("features", f"{len(used)} used of {model.n_features}"))
    if model.pairs:
        named = ", ".join(map(_short, model.term_names[model.n_features :][:_LABELS]))
        more = f", ... ({len(model.pairs)} in all)" if len(model.pairs) > _LABELS else ""
        rows.append(("pairs", named + more))
    rows.append(("digest", _digest(model)))
    if model.edits is not None:
        words = "; ".join(edit.in_words(model.term_names) for edit in model.edits.made)
        rows.append(("edited", _short(words)))
    shares = model.feature_importances()
    order = np.argsort(-shares, kind="stable")[:_FEATURES]
    largest = [(_feature_name(model, j), f"{shares[j]:.1%}") for j in order.tolist() if shares[j]]
    if len(used) > _FEATURES:
        largest.append((f"{len(used) - _FEATURES} more", ""))
    of_features = _table([("feature", "share of the votes"), *largest]) if largest else []
    return "\n".join(
        ["<div>", "<strong>StumpEnsemble</strong>", *_table(rows), *of_features, "</div>"]
    )


def _table(rows: Iterable[tuple[str, str]]) -> list[str]:
    """A table of names and values, whose text is escaped."""
    cells = (
        f'<tr><th scope="row" style="{_CELL}">{html.escape(name)}</th>'
        f'<td style="{_CELL}">{html.escape(value)}</td></tr>'
        for name, value in rows
    )
    return ["<table>", *cells, "</table>"]


def _feature_name(model: StumpEnsemble, feature: int) -> str:
    names = model.feature_names
    return f"feature {feature}" if names is None else _short(names[feature])


def _labels(model: StumpEnsemble) -> str:
    """The first classes, and how many there are if not all are named."""
    named = ", ".join(_short(label) for label in model.classes[:_LABELS])
    n_classes = len(model.classes)
    return named if n_classes <= _LABELS else f"{named}, ... ({n_classes} in all)"


def _short(value: object) -> str:
    return shortened(str(value), _LONGEST)


def _digest(model: StumpEnsemble) -> str:
    """The digest; "none" for a model made by hand of values that JSON cannot hold."""
    try:
        return model.digest()
    except (TypeError, ValueError):
        return "none"
