"""Samples on which searches go wrong first, by name, for the conformance suite.

The small ones are the awkward tables, nearly all of one shape. The large ones fill the bins that
the compiled engines search by.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from awkward_tables import DATA, made
from rounds import Case, signs

from gpustump.data.weights import check_weights

LARGE: dict[str, Callable[[], Case]] = {}


def large(make: Callable[[], Case]) -> Callable[[], Case]:
    LARGE[make.__name__] = make
    return make


L2 = {"newton": 0.5, "shared newton": 1.0}
"""Lambda of the cases with Newton votes; it is 0 where cases are drawn."""


WITH_SIGNS = ("discrete", "interval")
"""Kinds whose hypotheses have signs; "interval" is discrete votes for intervals."""


def voting(case: Case, kind: str) -> Case:
    """A case with votes of a kind."""
    return case if kind in WITH_SIGNS else case.voting(kind, L2.get(kind, 0.0))


@functools.cache
def small_case(name: str, kind: str = "discrete") -> Case:
    """An awkward table, for votes of some kind; samples without weight are left out by `rows`."""
    if kind != "discrete":
        return voting(small_case(name), kind)
    data = made(name)
    weights, rows = check_weights(data.sample_weight, data.X)
    y = np.asarray(data.y, dtype=np.float64)
    y = y if rows is None else y[rows]
    return Case(data.X, y, weights, rows, data.learning_rate, n_rounds=6)


@functools.cache
def large_case(name: str, kind: str = "discrete") -> Case:
    """A larger one."""
    return LARGE[name]() if kind == "discrete" else voting(large_case(name), kind)


@functools.cache
def of_outputs(votes: str, n_outputs: int) -> Case:
    """Few samples of flags, one-hot columns and small numbers, for so many outputs."""
    case = large_case("few_values_in_many_features")
    rows = np.arange(0, 3000, 5)
    case = replace(case, rows=rows, y=case.y[rows], weights=case.weights[rows], n_rounds=3)
    l2 = (0.5, 600.0)[n_outputs % 2] if votes == "newton" else 0.0
    return case.voting(f"shared {votes}", l2, n_outputs)


SMALL = tuple(DATA)


@large
def samples_in_reversed_order() -> Case:
    random = np.random.default_rng(3)
    X = random.normal(size=(3000, 3)).astype(np.float32)
    y, order = signs(X[:, 0] + X[:, 1], random), np.argsort(-X[:, 0])
    return Case.of(np.ascontiguousarray(X[order]), y[order])


@large
def duplicated_features() -> Case:
    """Every feature four times, once turned around."""
    random = np.random.default_rng(4)
    X = random.normal(size=(2000, 2)).astype(np.float32)
    return Case.of(np.concatenate([X, X[:, ::-1], -X, X], axis=1), signs(X[:, 1], random))


@large
def sums_that_carry_into_the_upper_word() -> Case:
    """Many weights whose lower halves are nearly full."""
    random = np.random.default_rng(5)
    X = np.round(random.normal(size=(4000, 3)) * 3).astype(np.float32)
    weights = 2.0**32 * random.integers(1, 2**10, size=4000) - random.integers(1, 9, size=4000)
    return Case.of(X, signs(X[:, 0], random), weights, n_rounds=12)


def _hidden(n_bins: int, inside: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels alternate in blocks about the bins' middles: at every edge the sums are level."""
    n_samples = n_bins * inside
    x = np.arange(n_samples, dtype=np.float32)[:, np.newaxis]
    y = np.where(np.arange(n_samples) % inside < inside // 2, 1.0, -1.0)
    y[3 * inside : 3 * inside + inside // 2 + 3] = 1.0  # one of them holds a little more
    return x, y


@large
def the_best_cut_hides_in_one_of_8_bins_of_shuffled_samples() -> Case:
    x, y = _hidden(8, 400)
    shuffled = np.random.default_rng(0).permutation(len(y))
    return Case.of(np.ascontiguousarray(x[shuffled]), y[shuffled], n_rounds=12)


@large
def the_best_cut_hides_in_one_of_255_bins() -> Case:
    return Case.of(*_hidden(255, 40), n_rounds=6)


@large
def few_values_in_many_features() -> Case:
    """Flags, one-hot columns and small numbers, which may share bytes."""
    random = np.random.default_rng(6)
    flags = (random.random((3000, 20)) < 0.3).astype(np.float32)
    kinds = random.integers(0, 30, size=3000)
    one_hot = (kinds[:, np.newaxis] == np.arange(30)).astype(np.float32)
    small = random.integers(0, 7, size=(3000, 5)).astype(np.float32)
    small[random.random(small.shape) < 0.2] = np.nan
    X = np.concatenate([flags, one_hot, random.normal(size=(3000, 2)), small], axis=1)
    y = signs(flags[:, 3] + one_hot[:, 4] + np.nan_to_num(small[:, 0]) / 4, random)
    return Case.of(X.astype(np.float32), y)


@large
def features_that_say_nothing() -> Case:
    """Missing throughout, constant, or one value where not missing."""
    random = np.random.default_rng(7)
    X = random.normal(size=(500, 5))
    X[:, 0], X[:, 2], X[:, 4] = np.nan, 1.0, np.where(random.random(500) < 0.5, np.nan, 3.0)
    return Case.of(X, signs(np.isnan(X[:, 4]) * 2.0, random))


@large
def nothing_but_missing_values() -> Case:
    return Case.of(np.full((40, 2), np.nan), np.where(np.arange(40) < 15, 1.0, -1.0))


@large
def weights_halved_often() -> Case:
    return _at_rate(3.0)


@large
def weights_never_halved() -> Case:
    return _at_rate(0.1)


def _at_rate(learning_rate: float) -> Case:
    random = np.random.default_rng(8)
    X = random.normal(size=(1500, 3)).astype(np.float32)
    return Case.of(X, signs(X[:, 0], random), learning_rate=learning_rate, n_rounds=25)


@large
def some_rows_of_a_table() -> Case:
    random = np.random.default_rng(10)
    X = random.normal(size=(4000, 3)).astype(np.float32)
    rows = np.flatnonzero(random.random(4000) < 0.6)
    y = signs(X[:, 0], random)[rows]
    return Case.of(X, y, random.integers(1, 4, size=len(rows)), rows=rows)


def _heavy(at: int, label: float, noise: bool) -> Case:
    """Labels change behind one sample that weighs more than all others."""
    x = np.arange(1000, dtype=np.float32)[:, np.newaxis]
    y = np.where(np.arange(1000) <= at, label, -label)
    weights = np.where(np.arange(1000) == at, 1e9, 1.0)
    if not noise:
        return Case.of(x, y, weights)
    wrong = np.random.default_rng(at).random(1000) < 0.2
    y = np.where(wrong & (np.arange(1000) != at), -y, y)
    return Case.of(x, y, weights, learning_rate=3.0)


# A heavy sample may stand anywhere in its bin: its weight alone may be most of all 62 bits, with
# the best cut right behind it.
for _number, _at in enumerate((0, 62, 499, 999)):
    _noise, _label = _number % 2 == 1, (-1.0) ** (_number // 2)
    _name = f"heavy_sample_at_{_at}{'_with_noise' if _noise else ''}"
    LARGE[_name] = functools.partial(_heavy, _at, _label, _noise)


def _features(n_features: int) -> Case:
    random = np.random.default_rng(n_features)
    X = random.normal(size=(700, n_features)).astype(np.float32)
    return Case.of(X, signs(X[:, -1] + X[:, 0], random), n_rounds=4)


# Engines take features in groups.
for _n in (1, 9, 33, 70):
    LARGE[f"{_n}_features"] = functools.partial(_features, _n)


def _with_categories(seed: int, n_samples: int = 700) -> Case:
    """Numbers and categories: many, two, rare ones; unused numbers; values missing and negative."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_samples, 6)).astype(np.float32)
    X[:, 1] = 2 * random.integers(0, 9, n_samples)
    X[:, 2] = random.integers(0, 2, n_samples)
    X[:, 4] = np.minimum(random.geometric(0.2, n_samples), 60)
    X[random.random(X.shape) < 0.1] = np.nan
    X[random.random(n_samples) < 0.05, 4] = -1
    effect = random.normal(size=32)
    score = X[:, 0] + effect[np.nan_to_num(X[:, 1]).astype(int)] + (X[:, 2] > 0)
    noisy = np.nan_to_num(score) + random.normal(size=n_samples)
    y = np.where(noisy > np.median(noisy), 1.0, -1.0)
    weights = random.integers(1, 5, n_samples).astype(np.float64)
    return Case(X, y, weights, None, 0.5, 6, categorical=(1, 2, 4))


def _of_one_column(x: np.ndarray) -> Case:
    y = np.resize([1.0, 1.0, -1.0, -1.0, 1.0], len(x))
    return Case(x[:, np.newaxis], y, np.ones(len(x)), n_rounds=3, categorical=(0,))


_TABLES = [_with_categories(seed) for seed in range(4)]
WITH_CATEGORIES = {
    "numbers and categories": _TABLES[0],
    "some rows": replace(
        _TABLES[1], rows=np.arange(0, 700, 2), y=_TABLES[1].y[::2], weights=_TABLES[1].weights[::2]
    ),
    "nothing but categories": replace(
        _TABLES[2], X=np.ascontiguousarray(_TABLES[2].X[:, [1, 4]]), categorical=(0, 1)
    ),
    "whole numbers": replace(_TABLES[3], X=np.nan_to_num(_TABLES[3].X).astype(np.int32)),
    "negative and missing ones": _of_one_column(np.resize([np.nan, -2.0, -1.0, 0.0, -1.0], 60)),
    "a single one": _of_one_column(np.full(60, 5.0)),
}
"""Cases with categorical features."""


@functools.cache
def hundreds_of_categories() -> Case:
    """Of two features, 300 categories and 20, with numbers that no byte holds; values missing."""
    random = np.random.default_rng(0)
    X = random.normal(size=(4500, 3))
    X[:, 0], X[:, 2] = random.permutation(1000)[np.arange(4500) % 300], np.arange(4500) % 20 * 50
    X[random.random(X.shape) < 0.02] = np.nan
    effect = random.normal(size=1000)
    score = effect[np.nan_to_num(X[:, 0]).astype(int)] + np.nan_to_num(X[:, 1])
    y = np.where(score + random.normal(size=len(X)) > 0, 1.0, -1.0)
    return Case(X, y, np.ones(len(X)), None, 0.5, 4, categorical=(0, 2))


@functools.cache
def with_categories(name: str, kind: str) -> Case:
    """One of them with votes of a kind; intervals stand beside sets where numbers call for them."""
    case = WITH_CATEGORIES[name]
    if kind == "interval" and name == "numbers and categories":
        x = np.nan_to_num(case.X)
        y = np.where((np.abs(x[:, 0]) < 0.5) ^ (x[:, 1] > 8), 1.0, -1.0)
        case = replace(case, y=y, n_rounds=12)
    return voting(case, kind)
