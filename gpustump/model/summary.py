"""A model in one line, and as a small table for notebooks: what people see who print it.

The table is plain HTML. Only its bars have a colour, so it can be read on light and on dark pages.
It has no script, and all text of a model is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from gpustump.data.readable import counted, printable

if TYPE_CHECKING:
    from gpustump.model.ensemble import StumpEnsemble

_LABELS, _FEATURES, _LONGEST = 10, 10, 40
"""How many classes and features are named, and how many characters of a name are shown."""

_CELL = "text-align:left;padding:0 1em 0 0"
_BAR = "display:inline-block;height:0.7em;background:#4c8bd6"


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
    rows = [
        ("rounds", f"{model.n_rounds}"),
        ("predicts", "a quantity") if model.is_regression else ("classes", _labels(model)),
        ("features", f"{len(used)} used of {model.n_features}"),
        ("digest", _digest(model)),
    ]
    if model.edits is not None:
        words = "; ".join(edit.in_words(model.term_names) for edit in model.edits.made)
        rows.append(("edited", _short(words)))
    if not model.has_one_score:
        shared = ", shared by all classes" if model.is_shared else ""
        rows.insert(1, ("stumps", f"{sum(map(len, model.members))}{shared}"))
    if model.pairs:
        named = ", ".join(map(_short, model.term_names[model.n_features :][:_LABELS]))
        more = f", ... ({len(model.pairs)} in all)" if len(model.pairs) > _LABELS else ""
        rows.insert(-1, ("pairs", named + more))
    lines = [_row(name, html.escape(text)) for name, text in rows]
    return "\n".join(
        [
            "<div>",
            "<strong>StumpEnsemble</strong>",
            *_table(lines),
            *_feature_table(model, len(used)),
            "</div>",
        ]
    )


def _feature_table(model: StumpEnsemble, n_used: int) -> list[str]:
    """The features with the largest shares of the votes, each with a bar."""
    shares = model.feature_importances()
    order = np.argsort(-shares, kind="stable")[:_FEATURES]
    largest = shares[order[:1]].sum()
    if not largest > 0:
        return []
    lines = [_row("feature", "share of the votes", head=True)]
    for feature in order[shares[order] > 0].tolist():
        share = float(shares[feature])
        bar = f'<span style="{_BAR};width:{6 * share / largest:.2f}em"></span>'
        lines.append(_row(html.escape(_feature_name(model, feature)), f"{bar} {share:.1%}"))
    if n_used > _FEATURES:
        lines.append(_row(f"{n_used - _FEATURES} more", ""))
    return _table(lines)


def _table(rows: Iterable[str]) -> list[str]:
    return ["<table>", *rows, "</table>"]


def _row(name: str, value: str, *, head: bool = False) -> str:
    """A row of two cells of HTML."""
    kind, scope = ("th", "col") if head else ("td", "row")
    return (
        f'<tr><th scope="{scope}" style="{_CELL}">{name}</th>'
        f'<{kind} style="{_CELL}">{value}</{kind}></tr>'
    )


def _feature_name(model: StumpEnsemble, feature: int) -> str:
    names = model.feature_names
    return f"feature {feature}" if names is None else _short(names[feature])


def _labels(model: StumpEnsemble) -> str:
    """The first classes, and how many there are if not all are named."""
    named = ", ".join(_short(label) for label in model.classes[:_LABELS])
    n_classes = len(model.classes)
    return named if n_classes <= _LABELS else f"{named}, ... ({n_classes} in all)"


def _short(value: object) -> str:
    text = printable(str(value)[: _LONGEST + 1])
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _digest(model: StumpEnsemble) -> str:
    """The digest; "none" for a model made by hand of values that JSON cannot hold."""
    try:
        return model.digest()
    except (TypeError, ValueError):
        return "none"
