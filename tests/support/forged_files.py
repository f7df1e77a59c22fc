"""Model files as a careful forger would make them: edited, digest and checksum computed anew.

Both are computed from their description in `gpustump/model/model_file.py`, not with its functions.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_models import region_model

from gpustump import (
    CategorySplit,
    Interval,
    Member,
    ModelFileError,
    RegionMember,
    Split,
    Stump,
    StumpEnsemble,
)
from gpustump.learners.category_split import CategoryStump
from gpustump.learners.pair_table import PairAxis, PairTable
from gpustump.learners.step_table import VOTE_UNIT
from gpustump.model.bags import averaged

Document = dict[str, Any]

ABSENT = object()
"""In place of a value: the part is left out."""


def forged(document: Document) -> str:
    """The text of a document, with a digest and a checksum that fit what it holds."""
    document = {key: value for key, value in document.items() if key != "checksum"}
    if "digest" in document:
        document["digest"] = _sha256(document.get("model"))
    return json.dumps({**document, "checksum": _sha256(document)})


def _sha256(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def document_of(model: StumpEnsemble, folder: Path) -> Document:
    model.save(folder / "original.json")
    document: Document = json.loads((folder / "original.json").read_text())
    return document


def with_value(document: Document, place: str, value: Any) -> Document:
    """The document with another value at a place such as "model.members.0", or without it."""
    changed = copy.deepcopy(document)
    inner: Any = changed
    *way, last = (int(key) if key.lstrip("-").isdigit() else key for key in place.split("."))
    for key in way:
        inner = inner[key]
    if value is ABSENT:
        del inner[last]
    else:
        inner[last] = value
    return changed


def refusal_of(content: Document | str, folder: Path) -> str:
    """The message that refuses a file, which names the file and is short."""
    path = folder / "model.json"
    path.write_text(content if isinstance(content, str) else forged(content))
    with pytest.raises(ModelFileError) as caught:
        StumpEnsemble.load(path)
    message = str(caught.value)
    assert str(path) in message
    assert len(message) - len(str(path)) < 700
    return message


def _of(*members: Any, n_features: int = 3, **how: Any) -> StumpEnsemble:
    return StumpEnsemble(members, n_features, **how)


def _of_every_layout() -> dict[str, StumpEnsemble]:
    """A small model for each layout of a file, with every kind of value that it may hold."""
    votes = np.arange(18).reshape(3, 3, 2) / 8
    shared = np.concatenate([votes, votes[:, :, :1] - 2], axis=2)
    splits = (Split(0, 0.5), CategorySplit(1, (0, 999), (2,)), CategorySplit(2, (4,), ()))
    axes = PairAxis(0, np.asarray([-np.inf, 1.0, np.inf])), PairAxis(1, groups=((0, 2), (1,)))
    values = np.arange(12.0).reshape(4, 3, 1)
    pair = PairTable(axes, values, values[..., 0] / 8, np.stack([values, -values]))
    two = RegionMember(
        (Split(0, 0.5), Split(2, math.inf), Split(2, -math.inf)),
        [[[0.5], [-0.25], [0.0]], [[1.0], [0.0], [VOTE_UNIT]], [[2.0], [3.0], [-4.0]]],
        [-0.75],
    )
    stumps = Stump(0, 0.5, 1, -1, 0.25), Stump(2, math.inf, -1, 1, 1 / 3)
    intervals = Interval(1, -math.inf, 0.5, 1, -1, 0.25), Stump(0, -1.5, 1, 1, 0.0)
    sets = (
        Stump(0, -math.inf, 1, -1, 0.25),
        CategoryStump(1, (0, 3), (1, 200), -1, 1, 0.125),
        Interval(2, -math.inf, 2.0, 1, 1, 0.25),
        CategoryStump(1, (7,), (), 1, -1, 0.375),
    )
    first, second = (region_model(np.random.default_rng(s), 2 + s, 3) for s in (0, 1))
    members, bags = averaged([first.members, second.members])
    moved = RegionMember((Split(0, 1.0),), [[[0.5], [-0.5], [0.25]]], [0.0])
    quantity = RegionMember((Split(1, 2.5),), [[[0.5 + 2.0**-40], [-1.5], [3.0]]], [1e3])
    learnt = {"classes": ("no", "yes"), "missing_learnt": (True, False, False)}
    details = {"seed": 7, "nested": [None, {"é": 0.5}]}
    return {
        "stumps": _of(
            Member(stumps, (0.5, -0.25)), feature_names=("a", "b", "b"), details=details, **learnt
        ),
        "intervals": _of(
            Member(intervals, (1.0, 0.5)),
            Member((), ()),
            Member((Interval(0, 0.5, 1.5, -1, 1, 1.0),), (VOTE_UNIT,)),
            n_features=2,
            classes=(0, 1, 2),
        ),
        "sets": _of(Member(sets, (0.5, 0.25, 0.125, 1.0)), feature_names=("a", "colour", "c")),
        "two": _of(two, feature_names=("a", "b", "c"), **learnt),
        "rest": region_model(np.random.default_rng(0), 4, 3, 3, link="softmax"),
        "shared": region_model(np.random.default_rng(1), 4, 3, 3, shared=True),
        "shared sets": _of(
            RegionMember(splits, shared, [0.5, 0.0, -1.0]), classes=(0, 1, 2), link="softmax"
        ),
        "bags": _of(*members, bags=bags),
        "pairs": _of(*members, bags=bags, pairs=(pair,), moved=(moved,)),
        "quantity": _of(quantity, n_features=2, classes=(), link="identity"),
        "count": _of(two, classes=(), link="log"),
    }


FILED = _of_every_layout()
