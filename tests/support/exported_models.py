"""Models of every kind, and rows for them, by name: what exports are tried on."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, NamedTuple

import exported
import models_by_hand
import numpy as np
import pytest
from awkward_tables import made
from made_up_models import member, region_member, region_model, rows

from gpustump import (
    AdaBoostClassifier,
    CategorySplit,
    CategoryStump,
    GlassBoxClassifier,
    GlassBoxRegressor,
    Interval,
    LogitBoostClassifier,
    Member,
    RegionMember,
    Split,
    StumpBoostingRegressor,
    StumpEnsemble,
)
from gpustump.learners.step_table import VOTE_UNIT

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


class Case(NamedTuple):
    """A model, and rows for it in their own dtype."""

    model: StumpEnsemble
    X: np.ndarray


def _random() -> np.random.Generator:
    return np.random.default_rng(11)


def _golden(name: str) -> Case:
    model = StumpEnsemble.load(GOLDEN / name)
    return Case(model, exported.edge_rows(model, "float64"))


def _made_up(dtype: str, n_classes: int, **how: object) -> Case:
    model = region_model(_random(), 120, 4, n_classes, **how)
    return Case(model, rows(_random(), 150, 4, dtype))


def _discrete(n_classes: int) -> Case:
    members = tuple(member(_random(), 60, 4, exact=1) for _ in range(max(n_classes, 1)))
    classes = (-1, 1) if n_classes == 1 else tuple(range(n_classes))
    return Case(StumpEnsemble(members, 4, classes), rows(_random(), 150, 4, "float32"))


def _fitted(estimator: Any, n_classes: int = 0, scale: float = 1.0) -> Case:
    """Of classes; or of a quantity in some unit: counts, where it is counted."""
    random = _random()
    X = random.normal(size=(400, 4)).astype(np.float32)
    X[random.random(X.shape) < 0.1] = np.nan
    mean = np.exp(np.nan_to_num(X[:, 0]) / 2)
    if n_classes:
        score = np.nan_to_num(X[:, 0] + X[:, 1] ** 2)
        y = (score * n_classes / 2).astype(int).clip(0, n_classes - 1)
    elif getattr(estimator, "loss", "") == "poisson":
        y = random.poisson(mean)
    else:
        y = mean * random.uniform(0.5, 1.5, size=400) * scale
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUSTUMP_KERNELS", "reference")  # nothing is compiled for so few rows
        return Case(estimator.fit(X, y).model_, X)


def _of_one_number(number: float) -> Case:
    one = RegionMember((), np.zeros((0, 3, 1)), np.asarray([number]))
    model = StumpEnsemble((one,), 1, (), link="identity")
    return Case(model, np.asarray([[0.0], [np.nan]]))


def _categories() -> Case:
    stumps = (
        CategoryStump(0, (0, 2, 999), (1, 5), 1, -1, 0.25),
        CategoryStump(1, (1,), (), -1, 1, 0.25),
        Interval(2, -np.inf, 0.5, 1, -1, 0.25),
        Interval(2, 0.5, 3.0, -1, -1, 0.25),
    )
    model = StumpEnsemble((Member(stumps, (0.5, 0.25, 0.125, 1.0)),), 3)
    return Case(model, exported.edge_rows(model, "float64"))


def _category_regions() -> Case:
    votes = _random().integers(-(2**40), 2**40, size=(2, 3, 3)) * VOTE_UNIT
    splits = (CategorySplit(0, (0, 3), (1, 2)), Split(0, 2.0))
    model = StumpEnsemble(
        (RegionMember(splits, votes, np.zeros(3)),), 1, ("a", "b", "c"), link="softmax"
    )
    return Case(model, exported.edge_rows(model, "float32"))


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

CASES = {
    **{name: functools.partial(_trained, name) for name in OF_EVERY_DTYPE_AND_KIND_OF_VALUE},
    **{
        f"golden {name}": functools.partial(_golden, name)
        for name in ("two_classes.json", "five_classes.json", "intervals.json")
    },
    **{
        f"made up {dtype}": functools.partial(_made_up, dtype, 2)
        for dtype in ("float16", "float32", "float64", "int8", "int32", "bool")
    },
    "one against the rest": functools.partial(_made_up, "float32", 5),
    "shared": functools.partial(_made_up, "float64", 5, shared=True),
    "shared softmax": functools.partial(_made_up, "float32", 12, shared=True, link="softmax"),
    "softmax of runs": functools.partial(_made_up, "float32", 3, link="softmax"),
    "discrete": functools.partial(_discrete, 1),
    "discrete of 4 classes": functools.partial(_discrete, 4),
    "real votes": lambda: _fitted(
        AdaBoostClassifier(n_estimators=20, votes="real", device="cpu"), 2
    ),
    "newton votes of 3 classes": lambda: _fitted(
        LogitBoostClassifier(n_estimators=15, device="cpu"), 3
    ),
    "bags": lambda: _fitted(GlassBoxClassifier(n_estimators=20, n_bags=3, device="cpu"), 2),
    "bags of 3 classes": lambda: _fitted(
        GlassBoxClassifier(n_estimators=20, n_bags=2, device="cpu"), 3
    ),
    "quantity": lambda: _fitted(StumpBoostingRegressor(n_estimators=30)),
    "large quantity": lambda: _fitted(StumpBoostingRegressor(n_estimators=10), scale=1e300),
    "small quantity": lambda: _fitted(StumpBoostingRegressor(n_estimators=10), scale=1e-300),
    "bags of a quantity": lambda: _fitted(GlassBoxRegressor(n_estimators=9, n_bags=3)),
    "counts": lambda: _fitted(StumpBoostingRegressor(loss="poisson", n_estimators=30)),
    "costs": lambda: _fitted(GlassBoxRegressor(loss="gamma", n_estimators=9, n_bags=2), scale=1e6),
    "constant quantity": lambda: _of_one_number(-0.1),
    "nothing but 0": lambda: _of_one_number(0.0),
    "categories and intervals": _categories,
    "regions of categories": _category_regions,
    "boolean labels": functools.partial(_labelled, False, True),
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
