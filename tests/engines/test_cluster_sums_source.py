"""The pieces of a search through shards: each is what brute force over all samples finds."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

import spread_tables
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import KINDS, Case, signs, start
from spread_tables import Spread, SpreadTable, any_values

from gpustump import arrays
from gpustump.engines.cluster import state, sums_source
from gpustump.engines.cluster.questions import (
    BY_VALUE,
    Ranges,
    Run,
    Shard,
    bin_planes_of,
    planes_of,
)
from gpustump.engines.cluster.samples import Samples
from gpustump.engines.cluster.shards import Together, answer, shard_of
from gpustump.engines.cluster.sums_source import _shifts
from gpustump.engines.contract import Search, Step, discrete_step
from gpustump.engines.integer_weights import (
    fitting_exponent,
    safe_exponent,
    scaled_total,
    unit_exponent,
)
from gpustump.learners.split import Split
from gpustump.learners.stump import Stump

SEEDS = st.integers(0, 2**32 - 1)
KEYS = st.integers(-(2**63) + 1, 2**63 - 2)
WEIGHTS = st.floats(1e-300, 1e300) | st.floats(0.5, 2.0)
DTYPES = st.sampled_from(["float32", "float64"])


@given(st.lists(st.tuples(KEYS, KEYS, st.integers(1, 600)), min_size=1, max_size=30))
def test_a_range_is_cut_into_few_units_but_at_least_two(drawn):
    low, high = (np.asarray([f(a, b) for a, b, _ in drawn]) for f in (min, max))
    size = np.asarray([own for *_, own in drawn])
    shifts = _shifts(low, high, size)
    for a, b, n, shift in zip(low.tolist(), high.tolist(), size.tolist(), shifts, strict=True):
        n_units = 1 + ((b - a) >> max(0, int(shift)))
        if shift == BY_VALUE:
            assert n <= sums_source._LISTED
            assert b - a >= 2**sums_source._UNIT_BITS
        else:
            assert (
                min(b - a + 1, 2 ** (sums_source._UNIT_BITS - 1))
                <= n_units
                <= 2**sums_source._UNIT_BITS
            )
            assert shift == 0 or n > sums_source._LISTED
    n = 4000  # many ranges are cut into fewer units each, but into two at least
    low = np.arange(n, dtype=np.int64) * 2**20
    shift = _shifts(low, low + 2**20 - 1, np.full(n, 200))
    assert n * 2 ** (20 - shift[0]) <= sums_source._UNITS < n * 2 ** (21 - shift[0])
    assert (_shifts(low, low + 2**20 - 1, np.full(n, 4)) == BY_VALUE).all()
    assert not _shifts(np.zeros(10**5, int), np.ones(10**5, int), np.full(10**5, 9)).any()


@st.composite
def spread_values(draw: st.DrawFn) -> list[Samples]:
    """Samples in a few shards, one of which may lack a feature altogether."""
    dtype, n_features = draw(DTYPES), draw(st.integers(1, 3))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        columns = [draw(any_values(dtype)) for _ in range(n_features)]
        n = min(map(len, columns))
        values = np.stack([own[:n] for own in columns])
        if draw(st.booleans()):
            values[0] = np.nan
        random = np.random.default_rng(draw(SEEDS))
        weights = 10.0 ** random.uniform(-6, 6, size=n)
        found.append(Samples(values, random.integers(0, 12, size=n), weights))
        for own in (
            found[-1].values,
            found[-1].classes,
            found[-1].weights,
        ):  # as they are in a file, or in a message
            own.flags.writeable = False
    return found


def drawn_cuts(data: st.DataObject, shards: list[Samples]) -> list[np.ndarray]:
    """Some of the values of each feature, as keys."""
    keys = np.concatenate([arrays.order_keys(own.values) for own in shards], axis=1)
    missing = arrays.missing_key(str(shards[0].values.dtype))
    found = []
    for own in keys:
        values = np.unique(own[own != missing])
        few = st.lists(st.sampled_from(values), unique=True, max_size=5)
        chosen = data.draw(few) if len(values) else []
        found.append(np.sort(np.asarray(chosen, dtype=keys.dtype)))
    return found


def step_of(split: Split, search: Search, random: np.random.Generator) -> Step:
    """A step with any votes, by whose factors no sum grows beyond 62 bits."""
    votes = tuple(map(tuple, np.round(random.normal(size=(3, search.n_outputs)), 3).tolist()))
    if search.has_signs:
        hypothesis = Stump(split.feature, split.threshold, 1, -1, 0.0)
        halvings = int(random.integers(2))
        return discrete_step(hypothesis, votes[0][0], 0.7 * 2.0**-halvings, halvings)
    # In a softmax both labels' factors are equal.
    same = search.votes == "newton" and search.n_outputs > 1
    by = [[(np.exp(v - 5.0), np.exp((v if same else -v) - 5.0)) for v in own] for own in votes]
    return Step(split, votes, tuple(tuple((float(a), float(b)) for a, b in own) for own in by))


def assert_alike(one: object, other: object) -> None:
    """Two answers are equal, array by array."""
    if isinstance(one, tuple):
        for pair in zip(one, other, strict=True):
            assert_alike(*pair)
    else:
        assert np.array_equal(one, other)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(data=st.data(), samples=spread_values())
def test_kernels_and_arrays_answer_every_question_alike(kind, data, samples):
    """Units of single samples come in another order, so they are put together first."""
    own, random = samples[0], np.random.default_rng(data.draw(SEEDS))
    cuts = drawn_cuts(data, [own])
    votes, n_outputs = KINDS[kind]
    own = Samples(own.values, own.classes % max(2, n_outputs), own.weights)
    search = Search("stump", votes, n_outputs, 0.5)
    shards = [shard_of(own, "kernels"), shard_of(own, "arrays")]
    coded = [shard.code(cuts, [False] * len(cuts)) for shard in shards]
    assert_alike(*coded)
    run = Run(search, 1, unit_exponent(own.weights, search.n_copies))
    assert_alike(*(shard.begin(run) for shard in shards))
    for _ in range(3):
        feature = int(random.integers(len(cuts)))
        values = own.values[feature]
        threshold = float(random.choice(np.append(values[values == values], [0.0, np.inf])))
        split = Split(feature, threshold)
        assert_alike(*(shard.region_sums(split) for shard in shards))
        step = step_of(split, search, random)
        assert_alike(*(shard.advance(step) for shard in shards))
        some, nothing = np.unique(random.integers(len(cuts), size=2)), no_ranges()
        (one, _), (other, _) = (shard.look(some, nothing) for shard in shards)
        assert np.array_equal(one, other)
        assert len(one) == bin_planes_of(search)
        assert_alike(*(shard.smallest_weight() for shard in shards))
        assert_alike(*(shard.weights() for shard in shards))
        asked = ranges_within(coded[0], cuts, random)
        if not len(asked.low):
            continue
        answers = [shard.units(asked) for shard in shards]
        size = np.bincount(answers[1].range, answers[1].size, len(asked.low)).astype(np.int64)
        assert answers[0].sums.shape[0] == planes_of(search)
        if size.any():
            assert_alike(*answers)


def no_ranges() -> Ranges:
    """Nothing to be asked about."""
    return Ranges(*[np.empty(0, dtype=np.int64)] * 5)


def ranges_within(coded: object, cuts: list[np.ndarray], random: np.random.Generator) -> Ranges:
    """Ranges of keys within some bins, two in a bin at most."""
    found = []
    first = 0
    for feature, own in enumerate(cuts):
        for bin_ in range(len(own) + 1):
            low, high = int(coded.low[first + bin_]), int(coded.high[first + bin_])
            if low > high or random.random() < 0.3:
                continue
            middle = low + (high - low) // 2
            parts = [(low, middle), (middle + 1, high)] if middle < high else [(low, high)]
            for begin, end in parts:
                bits = max(0, (end - begin).bit_length() - int(random.integers(1, 8)))
                found.append((feature, bin_, begin, end, int(random.choice([BY_VALUE, bits]))))
        first += len(own) + 2
    columns = np.asarray(found, dtype=np.int64).reshape(-1, 5).T
    return Ranges(*map(np.ascontiguousarray, columns))


@settings(max_examples=40)
@given(st.data(), st.lists(WEIGHTS, min_size=1, max_size=50), st.integers(1, 11))
def test_any_split_of_the_weights_gives_their_unit(data, drawn, n_copies):
    weights = np.asarray(drawn)
    owner = np.asarray(data.draw(st.lists(st.integers(0, 3), min_size=50)))[: len(weights)]
    parts = [weights[owner == shard] for shard in range(4)]
    classes = np.arange(len(weights)) % 3
    shards = [
        Samples(own[np.newaxis], classes[owner == shard], own) for shard, own in enumerate(parts)
    ]
    n_integers = len(weights) * n_copies
    safe = safe_exponent(max(own.largest_weight() for own in shards), n_integers)
    totals = [own.scaled_total(safe) for own in shards]
    assert sum(totals) == scaled_total(weights, safe)
    assert fitting_exponent(safe, sum(totals) * n_copies, n_integers) == unit_exponent(
        weights, n_copies
    )
    by_class = Samples(weights[np.newaxis], classes, weights).class_weights(safe, 3)
    asked = [answer(shard_of(own, "arrays"), "class_weights", (safe, 3)) for own in shards]
    assert np.sum(asked, axis=0).tolist() == by_class
    assert sum(by_class) == sum(totals)


class Weighed(Together):
    """Shards whose answers in a round are weighed as messages."""

    n_bytes = 0

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        answers = super().ask(method, *arguments)
        self.n_bytes += max(len(pickle.dumps(own)) for own in answers)
        return answers


def most_bytes(
    n_copies: int, kind: str, max_cuts: int | None, monkeypatch: pytest.MonkeyPatch
) -> int:
    """The most that a shard sends in one of a few rounds, for 40 features.

    The table holds 10 000 samples so many times, no two of them quite the same.
    """
    made: list[Weighed] = []

    def together(shards: Sequence[Shard]) -> Weighed:
        made.append(Weighed(shards))
        return made[-1]

    monkeypatch.setattr(spread_tables, "Together", together)
    random = np.random.default_rng(0)
    X = random.standard_normal((10_000, 40), dtype=np.float32)
    y = np.tile(signs(np.abs(X[:, 0]) + X[:, 1] + X[:, 2] * X[:, 3], random), n_copies)
    X = np.tile(X, (n_copies, 1))
    X += np.float32(0.001) * random.standard_normal(X.shape, dtype=np.float32)
    case = Case.of(X, y, learning_rate=0.3).voting(kind, 1.0)
    votes = case.votes_of_run()
    table = SpreadTable(X, None, Spread(("kernels",) * 2, max_cuts=max_cuts))
    state = start(table, case.y, case.weights, votes.search("stump"))
    found = 0
    for _ in range(4):
        made[0].n_bytes = 0
        taken = votes.found(table, state)
        state.advance(votes.change(taken).step)
        found = max(found, made[0].n_bytes)
    return found


@pytest.mark.parametrize("kind", ["real", "newton"])
def test_what_shards_send_in_a_round_does_not_grow_with_the_rows(kind, monkeypatch):
    monkeypatch.setattr(state, "_LEAST_CODES", 0)
    # Units that hold no sample are not sent: of few samples some, of many hardly any.
    few, many = (most_bytes(n, kind, 60, monkeypatch) for n in (1, 10))
    assert many < 1.5 * few
    assert most_bytes(10, kind, None, monkeypatch) < 2e6
