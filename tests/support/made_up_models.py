"""Models and rows made up for tests of predicting: not learnt, so as odd as can be."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from gpustump import Member, RegionMember, Split, StumpEnsemble
from gpustump.data.parameters import Link
from gpustump.learners.hypothesis import N_REGIONS
from gpustump.learners.pair_table import PairAxis, PairTable
from gpustump.learners.step_table import VOTE_UNIT
from gpustump.learners.stump import Stump


def member(
    random: np.random.Generator, n_stumps: int, n_features: int, *, exact: float | bool
) -> Member:
    """Any stumps: some at infinity, some at values that the rows have, some constant.

    `exact` is the share of votes that are multiples of the unit.
    """
    stumps, votes = [], []
    for _ in range(n_stumps):
        threshold = random.choice([random.normal(), np.round(random.normal()), np.inf])
        polarity, missing = random.choice([-1, 1], size=2)
        stumps.append(Stump(random.integers(n_features), threshold, polarity, missing, 0.25))
        vote = random.exponential()
        whole = random.random() < exact
        votes.append(round(vote / VOTE_UNIT) * VOTE_UNIT if whole else vote)
    return Member(tuple(stumps), tuple(votes))


def region_member(
    random: np.random.Generator,
    n_splits: int,
    n_features: int,
    n_outputs: int = 1,
    *,
    exact: float | bool = True,
) -> RegionMember:
    """Any splits and any votes: some splits vote for some outputs only, some vote the same always.

    `exact` is the share of the splits whose votes are multiples of the unit; with 1, so is the
    constant.
    """
    splits = []
    votes = random.normal(size=(n_splits, N_REGIONS, n_outputs))
    for own in votes:
        threshold = random.choice([random.normal(), np.round(random.normal()), np.inf, -np.inf])
        splits.append(Split(int(random.integers(n_features)), float(threshold)))
        if random.random() < 0.2:
            own[:, random.random(n_outputs) < 0.5] = 0.0
        if random.random() < 0.2:
            own[:] = own[0]
    whole = random.random(n_splits) < exact
    votes[whole] = np.rint(votes[whole] / VOTE_UNIT) * VOTE_UNIT
    constant = random.normal(size=n_outputs)
    if exact >= 1:
        constant = np.rint(constant / VOTE_UNIT) * VOTE_UNIT
    return RegionMember(tuple(splits), votes, constant)


def region_model(
    random: np.random.Generator,
    n_splits: int,
    n_features: int,
    n_classes: int = 2,
    *,
    shared: bool = False,
    link: Link = "logistic",
) -> StumpEnsemble:
    """A model whose regions have votes of their own: one class against the rest, or shared."""
    n_outputs = 1 if n_classes == 2 else n_classes
    if shared:
        members = (region_member(random, n_splits, n_features, n_outputs),)
    else:
        members = tuple(region_member(random, n_splits, n_features) for _ in range(n_outputs))
    return StumpEnsemble(members, n_features, tuple(range(n_classes)), link=link)


PAIRED: dict[str, dict[str, Any]] = {
    "two classes": {},
    "shared classes": {"n_classes": 3, "shared": True, "link": "softmax"},
    "one against the rest": {"n_classes": 3},
    "quantity": {},
    "counts": {},
}
"""Kinds of models with pairs, by name."""


def paired_model(kind: str) -> StumpEnsemble:
    """A model of 4 features with three pairs, two of them with a feature of categories."""
    random = np.random.default_rng(0)
    own = region_model(random, 15, 4, **PAIRED[kind])
    axes = (
        PairAxis(0, np.asarray([-np.inf, -0.5, 1.0, np.inf])),
        PairAxis(1, np.asarray([-1.0, 0.5, 2.0, np.inf])),
        PairAxis(3, groups=((0, 2), (1,), (5,))),
    )
    pairs, unit = [], VOTE_UNIT / 8 if kind == "quantity" else VOTE_UNIT
    for both in itertools.combinations(axes, 2):
        shape = (both[0].n_bins, both[1].n_bins)
        units = random.integers(-(2**38), 2**38, size=(*shape, own.n_outputs))
        pairs.append(PairTable(both, units * unit, np.zeros(shape)))
    moved = tuple(region_member(random, 3, 4, one.n_outputs) for one in own.members)
    own = replace(own, pairs=tuple(pairs), moved=moved)
    links = {"quantity": "identity", "counts": "log"}
    return replace(own, classes=(), link=links[kind]) if kind in links else own


def paired_rows() -> np.ndarray:
    """Rows for such a model: the last feature holds numbers of categories."""
    random = np.random.default_rng(1)
    X = rows(random, 300, 4, "float32")
    X[:, 3] = random.integers(-1, 7, len(X))
    return X


def rows(random: np.random.Generator, n_samples: int, n_features: int, dtype: str) -> np.ndarray:
    X = random.normal(size=(n_samples, n_features)) * random.choice([0.1, 1.0, 30.0])
    X = np.where(random.random(X.shape) < 0.3, np.round(X), X)
    if dtype.startswith("float"):
        X[random.random(X.shape) < 0.1] = np.nan
        X[random.random(X.shape) < 0.05] = -np.inf
        X[random.random(X.shape) < 0.05] = np.inf
        return X.astype(dtype)
    return np.abs(X).clip(0, 100).astype(dtype)
