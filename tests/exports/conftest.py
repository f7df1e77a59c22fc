"""Models with pairs, for all tests of exports: of numbers, and of columns of every kind."""

from __future__ import annotations

import dataclasses

import exported
import exported_columns as columns
import numpy as np
import pytest
from exported_models import Case
from made_up_models import PAIRED, paired_model, paired_rows

from gpustump import RegionMember, StumpEnsemble
from gpustump.learners.pair_table import PairAxis, PairTable
from gpustump.learners.step_table import VOTE_UNIT


@pytest.fixture(scope="session", params=PAIRED)
def paired(request: pytest.FixtureRequest) -> Case:
    """A model with pairs, and rows for it."""
    return Case(paired_model(request.param), paired_rows())


@pytest.fixture(scope="session")
def paired_edges(paired: Case) -> Case:
    """The same model, and rows at the thresholds and categories of its pairs."""
    random = np.random.default_rng(6)
    X = exported.edge_rows(paired.model, "float64", 400)
    for axis in (axis for pair in paired.model.pairs for axis in pair.axes):
        ends = np.asarray([*axis.thresholds, *(number for own in axis.groups for number in own)])
        near = np.concatenate([ends, np.nextafter(ends, -np.inf), np.nextafter(ends, np.inf)])
        chosen = random.random(len(X)) < 0.7
        X[chosen, axis.feature] = random.choice(near, size=chosen.sum())
    return Case(paired.model, X)


def _paired_columns() -> StumpEnsemble:
    """Pairs of columns of every kind; one pairs two values of the same column of text."""
    random = np.random.default_rng(8)
    blue, quoted = 1 + columns.COLOURS.index("blue"), 1 + columns.COLOURS.index("a'b")
    thresholds = {
        0: [-0.5, 0.25], quoted: [0.5], blue: [0.5], columns.FLAG: [0.5],
        columns.DAY: [-3.0, 3.0, 10.5], columns.AT: [0.1, 1.0005], columns.HOUR: [60.5, 3600.0],
    }  # fmt: skip
    axes = {own: PairAxis(own, np.asarray([*ends, np.inf])) for own, ends in thresholds.items()}
    axes[columns.SHAPE] = PairAxis(columns.SHAPE, groups=((0, 3, 5), (1,)))
    pairs = []
    for features in (
        (0, blue), tuple(sorted((quoted, blue))), (blue, columns.AT), (columns.SHAPE, columns.DAY),
        (0, columns.SHAPE), (columns.FLAG, columns.HOUR), (columns.AT, columns.HOUR),
    ):  # fmt: skip
        first, second = (axes[own] for own in features)
        shape = (first.n_bins, second.n_bins)
        units = random.integers(-(2**38), 2**38, size=(*shape, 3))
        pairs.append(PairTable((first, second), units * VOTE_UNIT, np.zeros(shape)))
    moved = (RegionMember((), np.zeros((0, 3, 3)), np.zeros(3)),)
    model = columns.MODELS["three classes"]
    return dataclasses.replace(model, pairs=tuple(pairs), moved=moved)


COLUMN_MODELS = columns.MODELS | {"pairs": _paired_columns()}


@pytest.fixture(scope="session")
def column_models() -> dict[str, StumpEnsemble]:
    """Models of columns of every kind, by name."""
    return COLUMN_MODELS


@pytest.fixture(params=COLUMN_MODELS)
def column_model(request: pytest.FixtureRequest) -> StumpEnsemble:
    """One of them."""
    return COLUMN_MODELS[request.param]
