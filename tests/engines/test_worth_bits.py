"""The defined scores have the same bits everywhere: libraries, compilers and Python's own floats.

Only operations that IEEE 754 rounds once take part, and no product feeds an addition.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from backends import Backend
from worth_oracle import Pair, Regions, score_of

from gpustump import arrays
from gpustump.engines.contract import Search
from gpustump.engines.monotone import limit_of, smoothing_of
from gpustump.engines.worth import Sums, worth_of
from gpustump.engines.worth_of_split import score_of as score_of_split

SEARCHES = [
    Search("stump", votes, 3, l2)
    for votes, l2 in (
        ("discrete", 0.0), ("real", 0.0), ("newton", 0.0), ("newton", 0.3), ("newton", 1e17),
    )
]  # fmt: skip
N_RANDOM = 4000


def drawn(search: Search) -> list[tuple[Sums, Sums, Sums]]:
    """For each output random sums over three regions, up to 2**61, many of them small or 0."""
    random = np.random.default_rng(0)
    outputs = []
    for _ in range(search.n_outputs):
        regions = []
        for _ in range(3):
            bits = random.integers(0, 60, N_RANDOM)
            second = random.integers(0, 2**61, N_RANDOM) >> bits
            share = np.where(random.random(N_RANDOM) < 0.2, 1.0, random.uniform(-1, 1, N_RANDOM))
            first = (second * share).astype(np.int64)
            first = np.clip(first, -second, second)
            if search.votes != "newton":  # both are sums of the same weights
                first -= np.sign(first) * ((first ^ second) & 1)
                first = np.where((first ^ second) & 1, second, first)
            regions.append(Sums(first, second))
        outputs.append(tuple(regions))
    return outputs


def score(outputs, search: Search):
    """As every engine adds the outputs' parts."""
    parts = [worth_of(search)(*regions) for regions in outputs]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def bits(scores) -> list[int]:
    found = np.asarray(scores)
    return found.tolist() if found.dtype == np.int64 else found.view(np.int64).tolist()


def sums_on(backend: Backend, outputs):
    return [
        tuple(Sums(*(backend.asarray(part) for part in own)) for own in regions)
        for regions in outputs
    ]


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_scores_have_the_bits_of_pythons_own_floats_in_every_library(search, backend: Backend):
    outputs = drawn(search)
    by_python = score_of(search.votes, search.l2)
    expected = [by_python(regions_at(outputs, number)) for number in range(N_RANDOM)]
    here = sums_on(backend, outputs)
    with arrays.computing_on(here[0][0].first):
        found = backend.to_numpy(score(here, search))
    assert found.dtype == (np.int64 if search.votes == "discrete" else np.float64)
    assert bits(found) == bits(np.asarray(expected, dtype=found.dtype))


LIMITED = [
    Search("stump", votes, 1, l2, monotone=(1,))
    for votes, l2 in (("real", 0.0), ("newton", 0.0), ("newton", 0.3), ("newton", 1e17))
]
"""Searches whose levels are compared, for a sum of weights of 2**61 and `N_RANDOM` samples."""


def levels_by_python(search: Search) -> list[float]:
    """The levels of left regions, from the formulas in Python's own floats."""
    ((left, *_),) = drawn(search)
    s = float(2**61) / float(2 * N_RANDOM)

    def level(first: int, second: int) -> float:
        if search.votes == "real":
            return (float((second + first) // 2) + s) / (float((second - first) // 2) + s)
        return float(first) / max(float(second) + search.l2, 1.0)

    return [level(*pair) for pair in zip(left.first.tolist(), left.second.tolist(), strict=True)]


@pytest.mark.parametrize("search", LIMITED, ids=str)
def test_levels_have_the_bits_of_pythons_own_floats_in_every_library(search, backend: Backend):
    ((left, *_),) = sums_on(backend, drawn(search))
    with arrays.computing_on(left.first):
        limit = limit_of(search, 2**61, N_RANDOM)
        assert limit is not None
        found = backend.to_numpy(limit.level(left))
    assert bits(found) == bits(levels_by_python(search))


@pytest.mark.parametrize("search", LIMITED, ids=str)
def test_levels_have_the_same_bits_in_the_kernels(search):
    pytest.importorskip("numba")
    from inner_functions import callable_from_python

    from gpustump.engines.cpu.split import monotone_bounds

    newton_step = callable_from_python(monotone_bounds.newton_step)
    odds = callable_from_python(monotone_bounds.odds)
    ((left, *_),) = drawn(search)
    pairs = zip(left.first.tolist(), left.second.tolist(), strict=True)
    s = smoothing_of(2**61, N_RANDOM)
    found = [
        odds((b + a) // 2, (b - a) // 2, s)
        if search.votes == "real"
        else newton_step(a, b, search.l2)
        for a, b in pairs
    ]
    assert bits(found) == bits(levels_by_python(search))


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_the_score_of_one_split_has_these_bits(search):
    outputs = drawn(search)
    expected = bits(np.asarray(score(outputs, search), dtype=np.float64))
    for number in range(0, N_RANDOM, 4):
        sums = list(zip(*regions_at(outputs, number), strict=True))
        assert bits([score_of_split(sums, search)]) == [expected[number]]


def regions_at(outputs, number: int) -> Regions:
    def pair(own: Sums) -> Pair:
        return int(own.first[number]), int(own.second[number])

    return [(pair(left), pair(right), pair(missing)) for left, right, missing in outputs]


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_scores_have_the_same_bits_where_jax_compiles_them_as_one_function(search):
    jax = pytest.importorskip("jax")
    outputs = drawn(search)
    with jax.enable_x64(True):
        given = [[[jax.numpy.asarray(x) for x in own] for own in regions] for regions in outputs]

        def compiled(given):
            return score([tuple(Sums(*own) for own in regions) for regions in given], search)

        found = np.asarray(jax.jit(compiled)(given))
    assert bits(found) == bits(score(outputs, search))


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_scores_have_the_same_bits_where_numba_compiles_them(search):
    """In one loop, as kernels do; without fastmath, LLVM must neither contract nor reorder."""
    numba = pytest.importorskip("numba")
    outputs = drawn(search)
    l2 = search.l2

    def discrete(a, _):
        return abs(a[0] - a[1]) + abs(a[2])

    def real(a, b):
        total = 0.0
        for r in range(3):
            root = math.sqrt(float((b[r] + a[r]) >> 1) * float((b[r] - a[r]) >> 1))
            total = root if r == 0 else total + root
        return -total

    def newton(a, b):
        total = 0.0
        for r in range(3):
            first, below = float(a[r]), float(b[r]) + l2
            own = (first * first) / max(below, 1.0)
            total = own if r == 0 else total + own
        return total

    one = numba.njit(fastmath=False)({"discrete": discrete, "real": real}.get(search.votes, newton))

    @numba.njit(fastmath=False)
    def compiled(first, second, found):
        for number in range(first.shape[0]):
            total = one(first[number, 0], second[number, 0])
            for output in range(1, first.shape[1]):
                total += one(first[number, output], second[number, output])
            found[number] = total

    first, second = (
        np.stack([[own[part] for own in regions] for regions in outputs]).transpose(2, 0, 1).copy()
        for part in (0, 1)
    )
    expected = score(outputs, search)
    found = np.zeros_like(expected)
    compiled(first, second, found)
    assert bits(found) == bits(expected)


def test_the_drawn_sums_are_not_trivial():
    """Sums beyond 2**53, where conversions round, and scores that are not whole numbers."""
    for search in SEARCHES[1:]:
        outputs = drawn(search)
        seconds = np.concatenate([own.second for regions in outputs for own in regions])
        assert (seconds > 2**53).sum() > 500
        assert (seconds == 0).sum() > 50
        found = score(outputs, search)
        assert len(set(found.tolist())) > 0.99 * N_RANDOM
