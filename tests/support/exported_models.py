"""Models of every kind, and rows for them, by name: what exports are tried on."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import exported
import models_by_hand
import numpy as np
from awkward_tables import made
from golden_models import FOLDER, KINDS
from made_up_models import region_member, region_model, rows

from gpustump import (
    Interval,
    Member,
    RegionMember,
    Split,
    StumpBoostingRegressor,
    StumpEnsemble,
)
from gpustump.learners.step_table import VOTE_UNIT


class Case(NamedTuple):
    """A model, and rows for it in their own dtype."""

    model: StumpEnsemble
    X: np.ndarray


def _random() -> np.random.Generator:
    return np.random.default_rng(11)


def _golden(path: str) -> Case:
    model = StumpEnsemble.load(FOLDER.parent / f"{path}.json")
    return Case(model, rows(_random(), 30, model.n_features, "float64"))


def _made_up(dtype: str, n_classes: int, **how: object) -> Case:
    model = region_model(_random(), 120, 4, n_classes, **how)
    return Case(model, rows(_random(), 150, 4, dtype))


def _in_unit(scale: float) -> Case:
    """A quantity in some unit."""
    X = np.arange(60.0).reshape(30, 2) % 11
    return Case(StumpBoostingRegressor(n_estimators=9).fit(X, X[:, 0] * scale).model_, X)


def _of_one_number(number: float) -> Case:
    one = RegionMember((), np.zeros((0, 3, 1)), np.asarray([number]))
    model = StumpEnsemble((one,), 1, (), link="identity")
    return Case(model, np.asarray([[0.0], [np.nan]]))


def _constant_only() -> Case:
    one = region_member(_random(), 0, 3, 3)
    return Case(StumpEnsemble((one,), 3, (0, 1, 2)), rows(_random(), 9, 3, "float64"))


def _tie_of_scores() -> Case:
    votes = np.asarray([[[0.5] * 3, [0.0] * 3, [0.0, 1.0, 1.0]]])
    model = StumpEnsemble((RegionMember((Split(0, 0.0),), votes, np.zeros(3)),), 1, ("b", "a", "c"))
    return Case(model, exported.edge_rows(model, "float32"))


def _large_votes() -> Case:
    """Scores of 2**53 units, the largest there are."""
    stumps = tuple(Interval(0, -np.inf, threshold, 1, -1, 0.25) for threshold in (0.0, 1.0))
    return Case(
        StumpEnsemble((Member(stumps, (2.0**17 - VOTE_UNIT, VOTE_UNIT)),), 1),
        np.asarray([[-1.0], [0.5], [2.0], [np.nan]]),
    )


def _trained(name: str) -> Case:
    return Case(models_by_hand.reference(name), made(name).X)


def _labelled(*classes: Any) -> Case:
    n_outputs = 1 if len(classes) == 2 else len(classes)
    one = region_member(_random(), 20, 3, n_outputs)
    return Case(StumpEnsemble((one,), 3, classes), rows(_random(), 40, 3, "float64"))


OF_EVERY_DTYPE_AND_KIND_OF_VALUE = (
    *("float16_with_missing_and_infinite", "float32", "float64", "booleans", "int8", "uint8"),
    *("int16", "int32", "int64_beyond_2_to_53", "missing", "missing_says_it_all", "infinities"),
    *("a_feature_wholly_missing", "both_zeros", "subnormal", "subnormal_float32"),
    *("neighbouring_floats", "near_overflow", "no_edge_at_all", "separable"),
)
"""Awkward tables. Those about weights or ties have models as of any other table."""

NOT_IN_SQL = {"by-hand-signs", "by-hand-sets"}
"""For their names of columns, or their labels."""

CASES = {
    **{name: functools.partial(_trained, name) for name in OF_EVERY_DTYPE_AND_KIND_OF_VALUE},
    **{name: functools.partial(_golden, f"models/{name}") for name in sorted(KINDS - NOT_IN_SQL)},
    **{
        f"of version 0.1.0, {name}": functools.partial(_golden, name)
        for name in ("two_classes", "five_classes", "intervals")
    },
    **{
        f"made up {dtype}": functools.partial(_made_up, dtype, 2)
        for dtype in ("float16", "float32", "float64", "int8", "int32", "bool")
    },
    "shared softmax": functools.partial(_made_up, "float32", 12, shared=True, link="softmax"),
    "softmax of runs": functools.partial(_made_up, "float32", 3, link="softmax"),
    "large quantity": functools.partial(_in_unit, 1e300),
    "small quantity": functools.partial(_in_unit, 1e-300),
    "constant quantity": lambda: _of_one_number(-0.1),
    "nothing but 0": lambda: _of_one_number(0.0),
    "float labels": functools.partial(_labelled, 0.1, -1.5, 1e300),
    "wide integer labels": functools.partial(_labelled, 2**63 - 1, -(2**63), 2**53 + 1),
    "labels that are whole and not": functools.partial(_labelled, 1, 2.5, -7),
    "one label": functools.partial(_labelled, "only"),
    "text labels": functools.partial(_labelled, "b", "a", "é'", '"', "1"),
    "no stump": _constant_only,
    "equal scores": _tie_of_scores,
    "the largest scores": _large_votes,
}


@functools.cache
def case(name: str) -> Case:
    return CASES[name]()


def edges(name: str) -> Case:
    """The case with rows at the thresholds of its model."""
    model, X = case(name)
    is_narrow = np.result_type(X, np.float32) == np.float32
    return Case(model, exported.edge_rows(model, "float32" if is_narrow else "float64"))
