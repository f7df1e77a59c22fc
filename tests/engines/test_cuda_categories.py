"""What the CUDA engine does with categorical features: codes, sums on their way, steps of sets.

tests/engines/test_categories.py compares its rounds with those of all engines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import cuda_on_cpu
import numpy as np
import pytest
from cuda_on_cpu import OnCpu
from engine_ways import cuda
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from rounds import KINDS, Case, Way, check_facts, facts_of, signs
from trainers import start

from gpustump import AdaBoostClassifier, LogitBoostClassifier, audit
from gpustump.data.parameters import Learner
from gpustump.engines.category_columns import NO_CATEGORY, CategoryColumns
from gpustump.engines.contract import Resources, Search, State, Step, Task, discrete_step
from gpustump.engines.cuda import device_memory, layout
from gpustump.engines.cuda import table as columns
from gpustump.engines.cuda.engine import CudaEngine
from gpustump.engines.cuda.source_table import SourceTable
from gpustump.engines.reference import table as reference_table
from gpustump.engines.route import Choice, Route
from gpustump.learners.category_split import CategorySplit, CategoryStump
from gpustump.learners.hypothesis import N_REGIONS, by_region
from gpustump.learners.kinds import AnySplit, AnyStump, OfCategories
from gpustump.learners.split import Split
from gpustump.learners.stump import Stump

pytestmark = pytest.mark.skipif(bool(cuda_on_cpu.unusable()), reason=str(cuda_on_cpu.unusable()))

RANDOM = st.integers(0, 2**32).map(np.random.default_rng)


def drawn_table(random: np.random.Generator, n_samples: int, n_features: int) -> np.ndarray:
    """Numbers in features 1, 4, ..., categories in the others; some are missing, or negative."""
    X = random.normal(size=(n_samples, n_features)).astype(np.float32)
    for feature in categories_among(n_features):
        n_categories = int(random.choice([1, 2, 9, 254]))
        X[:, feature] = random.integers(0, n_categories, n_samples)
        X[random.random(n_samples) < 0.1, feature] = -2
    X[random.random(X.shape) < 0.1] = np.nan
    return X


def categories_among(n_features: int) -> tuple[int, ...]:
    return tuple(feature for feature in range(n_features) if feature % 3 != 1)


def drawn_case(random: np.random.Generator, kind: str) -> Case:
    """Samples whose labels depend on a number and on categories."""
    X = drawn_table(random, int(random.integers(2, 1200)), int(random.integers(1, 7)))
    effect = random.normal(size=256)[CategoryColumns.of(X, None, (0,)).numbers[0]]
    y = signs(effect + np.nan_to_num(X[:, -1]), random, noise=0.5)
    case = Case(X, y, 10.0 ** random.uniform(-3, 3, len(X)), None, 0.5, 3)
    return replace(case, categorical=categories_among(X.shape[1])).voting(kind, 0.5)


def on_device_and_streamed(case: Case) -> Iterator[Way]:
    """The table on the device, and on the host with codes that come in parts."""
    X, how = case.X, {"categorical": case.categorical}
    yield "on the device", columns.prepare(X, None, OnCpu(), **how)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_memory, "_LEAST_BUFFER", 1024)
        patch.setattr(device_memory, "_MOST_BUFFER", 1024)
        least = Resources(max_memory=device_memory.least_bytes(*X.shape, Search()))
        yield "streamed", columns.prepare(X.view(np.memmap), None, OnCpu(), least, **how)


@pytest.mark.parametrize("n_features", [1, 5, 40])
def test_a_code_is_the_number_of_the_category(n_features):
    """In groups of several widths, on the device and in the host's memory."""
    X = drawn_table(np.random.default_rng(0), 1100, n_features)
    own = categories_among(n_features)
    expected = CategoryColumns.of(X, None, own)
    for name, made in cuda(X, None, own):
        assert isinstance(made, columns.CudaTable)
        for feature, numbers in zip(own, expected.numbers, strict=True):
            group, place = made.group_of(feature)
            parts = [np.array(part.codes) for part in made.codes.parts_of(group)]
            by_run = np.concatenate(parts)[: layout.padded(1100) << group.width_bits]
            found = by_run.reshape(-1, 1 << group.width_bits, layout.RUN)[:, place].reshape(-1)
            assert np.array_equal(found[:1100], numbers), (name, feature)
        counts = np.stack(list(made.categories.values()))
        assert np.array_equal(counts, expected.counts), name


@pytest.mark.parametrize("kind", KINDS)
@hypothesis_settings(max_examples=6)
@given(random=RANDOM)
def test_steps_that_a_search_has_not_found_are_those_of_the_reference(kind, random):
    """Sets with unknown categories, sets of numbers, and thresholds between categories."""
    case = drawn_case(random, kind)
    search = case.votes_of_run().search("stump")
    reference = reference_table.prepare(case.X, categorical=case.categorical)
    for name, table in on_device_and_streamed(case):
        one, other = (
            case.with_sets(own).start(case.y, case.weights, search) for own in (reference, table)
        )
        for _ in range(4):
            step = drawn_step(random, case, search, one)
            sums = [state.region_sums(step.hypothesis) for state in (one, other)]
            assert np.array_equal(*sums), (name, step.hypothesis)
            one.advance(step)
            other.advance(step)
            assert one.totals == other.totals, (name, step.hypothesis)
            assert np.array_equal(one.weights, other.weights), (name, step.hypothesis)
            assert one.best_cut() == other.best_cut(), (name, step.hypothesis)


def drawn_step(random: np.random.Generator, case: Case, search: Search, state: State) -> Step:
    """A step of a hypothesis that has nothing to do with the samples."""
    feature = int(random.integers(case.X.shape[1]))
    threshold = float(random.choice([-1.5, 0.2, 3.0, np.inf]))
    numbers = random.permutation(254)[:40].tolist()
    left, right = tuple(sorted({0, *numbers[:20]})), tuple(sorted({*numbers[20:]} - {0}))
    is_set = random.random() < 0.6
    if search.has_signs:
        stump: AnyStump = CategoryStump(feature, left, right, -1, 1, 0.25)
        missing = 1 if threshold == np.inf else -1
        hypothesis = stump if is_set else Stump(feature, threshold, 1, missing, 0.25)
        return discrete_step(hypothesis, 0.25, 0.75, 1)
    split: AnySplit = CategorySplit(feature, left, right) if is_set else Split(feature, threshold)
    shape = (N_REGIONS, search.n_outputs)
    first, second, missing_vote = (random.integers(-5, 6, shape) / 16).tolist()
    votes = case.votes_of_run()
    vote = (tuple(first), tuple(second), tuple(missing_vote))
    return replace(votes.change(votes.known(split, vote, state)).step, is_known=True)


@given(random=RANDOM)
@hypothesis_settings(max_examples=10)
def test_the_samples_in_the_regions_of_a_set_are_counted(random):
    X = drawn_table(random, 200, 1)
    numbers = random.permutation(20).tolist()
    split = CategorySplit(0, tuple(sorted(numbers[:7])), tuple(sorted(numbers[7:15])))
    made = columns.prepare(X, None, OnCpu(), categorical=(0,))
    regions = by_region(split, X[:, 0], range(N_REGIONS))
    expected = tuple(np.count_nonzero(regions == region) for region in range(N_REGIONS))
    assert made.counts_of_regions(split) == expected


@pytest.mark.parametrize(
    ("kind", "learner"),
    [("discrete", "stump"), ("discrete", "interval"), ("shared newton", "stump")],
)
def test_rounds_of_sets_take_one_copy_each_and_read_no_values(monkeypatch, kind, learner: Learner):
    random = np.random.default_rng(3)
    X = np.stack([random.integers(0, 9, 400), random.normal(size=400)], axis=1)
    y = np.where(X[:, 0] % 2 == 0, 1.0, -1.0) * np.where(random.random(400) < 0.1, -1, 1)
    case = Case(X, y, np.ones(400), None, 0.5, 6, categorical=(0,)).voting(kind, 0.5)
    facts = facts_of(case, learner)
    assert sum(isinstance(fact.hypothesis, OfCategories) for fact in facts) >= 2
    device = OnCpu()
    table = case.with_sets(columns.prepare(X, None, device, categorical=(0,)))
    search = case.votes_of_run().search(learner)
    state, first = start(table, case.y, case.weights, search), facts[0].step
    assert first is not None
    state.advance(first)  # of Newton votes it is one of a constant

    def refuse(*_: Any) -> None:
        raise AssertionError("values were read")

    monkeypatch.setattr(SourceTable, "values", refuse)
    before = device.n_transfers
    for fact in facts[1:]:
        assert state.best_cut() == fact.cut
        if isinstance(fact.hypothesis, OfCategories):
            assert state.region_sums(fact.hypothesis).tolist() == fact.region_sums
        if fact.step is not None:
            state.advance(fact.step)
    n_steps = sum(fact.step is not None for fact in facts[1:])
    assert device.n_transfers == before + n_steps


def test_sums_of_categories_that_do_not_occur_are_not_sent():
    X = np.asarray([[3.0, 1.0], [200.0, 2.0], [3.0, 3.0], [np.nan, 4.0]])
    made = columns.prepare(X, None, OnCpu(), categorical=(0,))
    state: Any = start(made, np.asarray([1.0, -1, -1, 1]), np.ones(4), Search("stump", "real", 2))
    assert state._search._by_category.n_words == 2 * 2 * 3
    (sums,) = state.category_sums(CategoryColumns.of(X, None, (0,)))
    assert np.flatnonzero(sums[0, 1]).tolist() == [3, 200, NO_CATEGORY]


@pytest.mark.parametrize("kind", KINDS)
def test_a_constant_counts_negative_values_of_its_feature_as_the_reference_does(kind):
    """They are missing to a set of categories, and on the left of a threshold above all values."""
    random = np.random.default_rng(4)
    X = random.integers(-2, 1, (60, 1)).astype(np.float64)
    X[:9] = np.nan
    case = Case(X, signs(X[:, 0], random), np.ones(60), n_rounds=3, categorical=(0,))
    case = case.voting(kind, 0.5)
    search, facts = case.votes_of_run().search("stump"), facts_of(case, "stump")
    assert facts[0].cut.feature == 0
    table = case.with_sets(columns.prepare(X, None, OnCpu(), categorical=(0,)))
    run = (case.y, case.weights, search)
    check_facts(facts, (kind, table), run)
    reference = case.with_sets(reference_table.prepare(X, categorical=(0,)))
    everything = Stump(0, np.inf, 1, 1, 0.5) if search.has_signs else Split(0, np.inf)
    found, expected = (start(own, *run).region_sums(everything) for own in (table, reference))
    assert np.array_equal(found, expected)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [254.0, 0.5, np.inf, 1e30])
def test_what_is_no_number_of_a_category_is_refused_without_another_word(value):
    X = np.asarray([[0.0, 0.0], [0.0, value], [0.0, np.nan]])
    task, engine = Task(X, 3, categorical=(1,)), CudaEngine(OnCpu())
    choice = Choice(Route("cuda:0", "cuda", "", ""), engine, task, Resources())
    with pytest.raises(ValueError, match="categorical feature 1 must hold"):
        choice.prepare()


def test_a_table_of_one_category_has_nothing_but_constants():
    case = Case(np.full((20, 2), 5.0), np.resize([1.0, 1.0, -1.0], 20), np.ones(20), n_rounds=2)
    case = replace(case, categorical=(0, 1))
    for kind in KINDS:
        own = case.voting(kind, 0.5)
        facts = facts_of(own, "stump")
        assert all(fact.cut.position is None for fact in facts)
        table = own.with_sets(columns.prepare(case.X, None, OnCpu(), categorical=(0, 1)))
        run = (own.y, own.weights, own.votes_of_run().search("stump"))
        check_facts(facts, (kind, table), run)


@pytest.fixture
def on_stand_in(monkeypatch: pytest.MonkeyPatch) -> OnCpu:
    """NumPy's arrays count as a device's, and the kernels are asked for."""
    made = OnCpu()
    monkeypatch.setattr("gpustump.engines.cuda.device.device_of", lambda x: made)
    monkeypatch.setenv("GPUSTUMP_KERNELS", "cuda")
    return made


def test_smoothing_held_out_scores_warm_starts_and_audits_are_those_of_the_reference(
    monkeypatch, on_stand_in
):
    random = np.random.default_rng(5)
    X = drawn_table(random, 300, 5)
    y = signs(np.nan_to_num(X[:, 1]) + (X[:, 0] % 2 == 1), random).astype(int)
    own = {"categorical_features": [0, 2, 3], "random_state": 0}

    def fits() -> Iterator[Any]:
        stopping = {"n_iter_no_change": 4, "n_estimators": 30}
        yield LogitBoostClassifier(smoothing_rounds=8, **stopping, **own).fit(X, y)
        warm = AdaBoostClassifier(n_estimators=4, warm_start=True, **own).fit(X, y)
        yield warm.set_params(n_estimators=9).fit(X, y)
        three = (np.where(X[:, 4] > 0, 2, y) * 1.0).astype(int)
        yield LogitBoostClassifier(n_estimators=6, **own).fit(X, three)

    found = list(fits())
    assert on_stand_in.launched.count("gather_categories") > 20
    assert all(audit(fit.model_, X, y).same for fit in found[:2])
    monkeypatch.setenv("GPUSTUMP_KERNELS", "reference")
    for fit, expected in zip(found, fits(), strict=True):
        assert fit.model_.digest() == expected.model_.digest()
        assert np.array_equal(fit.held_out_scores_, expected.held_out_scores_)
        assert fit.rounds_ == expected.rounds_
        assert np.array_equal(fit.decision_function(X), expected.decision_function(X))
