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


def _of_every_layout() -> dict[str, StumpEnsemble]:
    """A small model for each layout of a file, with every kind of value that it may hold."""
    votes = np.arange(18).reshape(3, 3, 2) / 8
    splits = (Split(0, 0.5), CategorySplit(1, (0, 999), (2,)), CategorySplit(2, (4,), ()))
    axes = PairAxis(0, np.asarray([-np.inf, 1.0, np.inf])), PairAxis(1, groups=((0, 2), (1,)))
    values = np.arange(12.0).reshape(4, 3, 1)
    pair = PairTable(axes, values, values[..., 0] / 8, np.stack([values, -values]))
    regions = RegionMember(
        (Split(0, 0.5), Split(2, math.inf), Split(2, -math.inf)),
        [[[0.5], [-0.25], [0.0]], [[1.0], [0.0], [VOTE_UNIT]], [[2.0], [3.0], [-4.0]]],
        [-0.75],
    )
    stumps = Member((Stump(0, 0.5, 1, -1, 0.25), Stump(2, math.inf, -1, 1, 1 / 3)), (0.5, -0.25))
    inside = Member((Interval(0, 0.5, 1.5, -1, 1, 1.0),), (VOTE_UNIT,))
    below = Interval(1, -math.inf, 0.5, 1, -1, 0.25), Stump(0, -1.5, 1, 1, 0.0)
    of_sets = (
        Stump(0, -math.inf, 1, -1, 0.25),
        CategoryStump(1, (0, 3), (1, 200), -1, 1, 0.125),
        Interval(2, -math.inf, 2.0, 1, 1, 0.25),
        CategoryStump(1, (7,), (), 1, -1, 0.375),
    )
    votes_of_three = np.concatenate([votes, votes[:, :, :1] - 2], axis=2)
    shared_sets = RegionMember(splits, votes_of_three, [0.5, 0.0, -1.0])
    learnt = (True, False, False)
    first, second = (region_model(np.random.default_rng(s), 2 + s, 3) for s in (0, 1))
    members, bags = averaged([first.members, second.members])
    moved = RegionMember((Split(0, 1.0),), [[[0.5], [-0.5], [0.25]]], [0.0])
    quantity = RegionMember((Split(1, 2.5),), [[[0.5 + 2.0**-40], [-1.5], [3.0]]], [1e3])
    return {
        "stumps": StumpEnsemble(
            (stumps,),
            3,
            classes=("no", "yes"),
            feature_names=("a", "b", "b"),
            missing_learnt=learnt,
            details={"seed": 7, "nested": [None, {"é": 0.5}]},
        ),
        "intervals": StumpEnsemble(
            (Member(below, (1.0, 0.5)), Member((), ()), inside), 2, classes=(0, 1, 2)
        ),
        "sets": StumpEnsemble(
            (Member(of_sets, (0.5, 0.25, 0.125, 1.0)),), 3, feature_names=("a", "colour", "c")
        ),
        "two": StumpEnsemble(
            (regions,), 3, ("no", "yes"), feature_names=("a", "b", "c"), missing_learnt=learnt
        ),
        "rest": region_model(np.random.default_rng(0), 4, 3, 3, link="softmax"),
        "shared": region_model(np.random.default_rng(1), 4, 3, 3, shared=True),
        "shared sets": StumpEnsemble((shared_sets,), 3, classes=(0, 1, 2), link="softmax"),
        "bags": StumpEnsemble(members, 3, bags=bags),
        "pairs": StumpEnsemble(members, 3, bags=bags, pairs=(pair,), moved=(moved,)),
        "quantity": StumpEnsemble((quantity,), 2, classes=(), link="identity"),
        "count": StumpEnsemble((regions,), 3, classes=(), link="log"),
    }


FILED = _of_every_layout()
