"""The defined scores have the same bits everywhere: libraries, compilers and Python's own floats.

Only operations that IEEE 754 rounds once take part, and no product feeds an addition.
"""

from __future__ import annotations

import numpy as np
import pytest
from backends import Backend
from worth_oracle import Pair, Regions, score_of

from gpustump import arrays
from gpustump.engines.contract import Search
from gpustump.engines.worth import Sums, worth_of
from gpustump.engines.worth_of_split import score_of as score_of_split

SEARCHES = [
    Search("stump", votes, 3, l2)
    for votes, l2 in (
        ("discrete", 0.0), ("real", 0.0), ("newton", 0.0), ("newton", 0.3), ("newton", 1e17),
    )
]  # fmt: skip
N_RANDOM = 2000


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


def by_python(outputs, search: Search) -> list[int]:
    """Bits of the scores that Python's own floats give."""
    own = score_of(search.votes, search.l2)
    dtype = np.int64 if search.votes == "discrete" else np.float64
    return bits(np.asarray([own(regions_at(outputs, n)) for n in range(N_RANDOM)], dtype=dtype))


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_scores_have_the_bits_of_pythons_own_floats_in_every_library(search, backend: Backend):
    outputs = drawn(search)
    here = sums_on(backend, outputs)
    with arrays.computing_on(here[0][0].first):
        found = backend.to_numpy(score(here, search))
    assert found.dtype == (np.int64 if search.votes == "discrete" else np.float64)
    assert bits(found) == by_python(outputs, search)


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_scores_have_these_bits_for_one_split_and_where_jax_compiles_one_function(search):
    outputs = drawn(search)
    expected = bits(np.asarray(score(outputs, search), dtype=np.float64))
    for number in range(0, N_RANDOM, 4):
        sums = list(zip(*regions_at(outputs, number), strict=True))
        assert bits([score_of_split(sums, search)]) == [expected[number]]
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        given = [[[jax.numpy.asarray(x) for x in own] for own in regions] for regions in outputs]

        def compiled(given):
            return score([tuple(Sums(*own) for own in regions) for regions in given], search)

        found = np.asarray(jax.jit(compiled)(given))
    assert bits(found) == bits(score(outputs, search))


def regions_at(outputs, number: int) -> Regions:
    def pair(own: Sums) -> Pair:
        return int(own.first[number]), int(own.second[number])

    return [(pair(left), pair(right), pair(missing)) for left, right, missing in outputs]


def test_the_drawn_sums_are_not_trivial():
    """Sums beyond 2**53, where conversions round, and scores that are not whole numbers."""
    for search in SEARCHES[1:]:
        outputs = drawn(search)
        seconds = np.concatenate([own.second for regions in outputs for own in regions])
        assert (seconds > 2**53).sum() > 0.1 * N_RANDOM
        assert (seconds == 0).sum() > 10
        found = score(outputs, search)
        assert len(set(found.tolist())) > 0.99 * N_RANDOM
