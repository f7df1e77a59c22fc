"""Every engine, in every way it can prepare a table, against the reference on NumPy.

After every round all of them know the same cut, totals, weights, smallest weight, weights in the
regions, and thresholds. See `engine_ways.ENGINES` for the engines, and `hard_cases` for the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from engine_ways import ENGINES, FIRST_WAY_ONLY, EngineUnderTest
from hard_cases import ABOUT_LIBRARIES, LARGE, SMALL, large_case, small_case
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import TABLES, Case, facts_of, signs, tied, with_any_weights

from gpustump import arrays
from gpustump.boosting.discrete_votes import DiscreteVotes
from gpustump.boosting.rounds import Boosting
from gpustump.boosting.votes import Round, Taken
from gpustump.data.parameters import Learner
from gpustump.engines.contract import PreparedTable, Search, agreement, hypothesis_at
from gpustump.learners.hypothesis import signs as signs_of
from gpustump.learners.interval import Interval
from gpustump.learners.stump import Stump

LEARNERS: tuple[Learner, ...] = ("stump", "interval")
NO_LIBRARIES = [engine for engine in ENGINES if not engine.is_library]
ANY_SHAPE = [engine for engine in ENGINES if not engine.compiles_for_every_shape]


def with_learners(engines: Sequence[EngineUnderTest]) -> pytest.MarkDecorator:
    pairs = [(engine, learner) for engine in engines for learner in engine.learners]
    return pytest.mark.parametrize(
        ("engine", "learner"), pairs, ids=[f"{e}-{learner}" for e, learner in pairs]
    )


each_engine = pytest.mark.parametrize("engine", ENGINES, ids=str)


def small_cases() -> Iterator[tuple[EngineUnderTest, Learner, str]]:
    """All awkward tables; of an array library those about what libraries compute differently."""
    for engine in ENGINES:
        for learner in engine.learners:
            names = sorted(ABOUT_LIBRARIES if engine.is_library else SMALL)
            few = engine.is_library and (learner == "interval" or FIRST_WAY_ONLY)
            step = 4 if few else 1
            yield from ((engine, learner, name) for name in names[::step])


@pytest.mark.parametrize(("engine", "learner", "name"), list(small_cases()), ids=str)
def test_every_way_knows_the_references_facts_of_an_awkward_table(engine, learner, name):
    case = small_case(name)
    engine.skip_if_unusable(case.X.dtype.name)
    engine.check(case, learner)


@with_learners(NO_LIBRARIES)
@pytest.mark.parametrize("name", LARGE)
def test_every_way_knows_the_references_facts_of_a_larger_table(engine, learner, name):
    engine.skip_if_unusable()
    engine.check(large_case(name), learner)


@with_learners(ANY_SHAPE)
def test_ties_everywhere_are_broken_alike(engine, learner):
    engine.skip_if_unusable()

    @settings(max_examples=8 if engine.is_library else 30)
    @given(TABLES)
    def ties_are_broken_alike(samples):
        engine.check(Case.of(*tied(samples)), learner)

    ties_are_broken_alike()


@with_learners(ANY_SHAPE)
def test_any_values_and_weights_give_the_references_facts(engine, learner):
    engine.skip_if_unusable()
    dtypes = ["float16", "float32", "float64"]
    if engine.backend is not None:
        dtypes = [dtype for dtype in dtypes if dtype not in engine.backend.lacks]

    @settings(max_examples=8 if engine.is_library else 12)
    @given(st.integers(0, 10**6), st.integers(20, 400), st.sampled_from(dtypes))
    def facts_are_the_references(seed, n_samples, dtype):
        engine.check(Case.of(*with_any_weights(seed, n_samples, dtype)), learner)

    facts_are_the_references()


def example(seed: int = 0, shape: tuple[int, int] = (96, 5)) -> Case:
    """A table with missing and tied values, and weights that differ."""
    random = np.random.default_rng(seed)
    X = random.normal(size=shape)
    X[random.random(shape) < 0.2] = np.nan
    X[:, 1] = np.round(X[:, 1])
    near_zero = np.abs(np.nan_to_num(X[:, 0])) + np.nan_to_num(X[:, 1])
    return Case.of(X, signs(near_zero, random), random.integers(1, 9, size=shape[0]), n_rounds=4)


@each_engine
def test_a_prepared_table_knows_the_callers_table_and_its_own_size(engine):
    engine.skip_if_unusable()
    X, rows = example().X, np.arange(0, 96, 2)
    X[:, 4] = 1.0  # a feature without missing values
    for name, table in engine.ways(X):
        assert (table.n_samples, table.n_features) == (96, 5), name
        assert table.n_missing.tolist() == np.isnan(X).sum(axis=0).tolist(), name
        assert np.array_equal(engine.to_numpy(table.X), X, equal_nan=True), name
        assert table.note is None or isinstance(table.note, str), name
    for name, table in engine.ways(X, rows):
        assert (table.n_samples, table.n_features) == (48, 5), name
        assert table.n_missing.tolist() == np.isnan(X[rows]).sum(axis=0).tolist(), name
        assert engine.to_numpy(table.X).shape == (96, 5), name


@with_learners(ENGINES)
def test_two_runs_that_share_a_table_do_not_disturb_each_other(engine, learner):
    """Several classes against the rest share one, too; here the runs take turns."""
    engine.skip_if_unusable()
    one = example()
    other = Case(one.X, -one.y[::-1].copy(), one.weights[::-1].copy(), n_rounds=4)
    facts = [facts_of(case, learner) for case in (one, other)]
    for name, table in engine.ways(one.X):
        with arrays.computing_on(engine.asarray(one.y)):
            states = [
                table.start(engine.asarray(case.y), engine.asarray(case.weights), Search(learner))
                for case in (one, other)
            ]
            for both in zip(*facts, strict=True):
                for state, fact in zip(states, both, strict=True):
                    assert state.best_cut() == fact.cut, name
                    assert state.totals == fact.totals, name
                    state.advance(fact.step)


def elsewhere() -> list[Stump | Interval]:
    """Not found by a search on the table: thresholds at, between and beyond values."""
    return [
        Stump(0, 0.123456789, 1, -1, 0.0),
        Stump(1, 1.0, -1, -1, 0.0),
        Stump(2, -np.inf, 1, 1, 0.0),
        Stump(3, np.inf, -1, 1, 0.0),
        Stump(0, np.inf, -1, -1, 0.0),
        Interval(4, -0.5, 0.5, 1, -1, 0.0),
        Interval(1, 0.0, 1.0, -1, 1, 0.0),
        Interval(2, -np.inf, 0.0, -1, -1, 0.0),
    ]


@with_learners(ENGINES)
def test_hypotheses_found_elsewhere_change_weights_and_scores_as_in_the_reference(engine, learner):
    engine.skip_if_unusable()
    case = example()
    first = dict(ENGINES[0].make(case.X, None))["numpy"]
    reference = first.start(case.y, case.weights, Search(learner))
    expected = []
    for number, hypothesis in enumerate(elsewhere()):
        weights = list(reference.region_sums(hypothesis))
        agreed, vote = agreement(weights, signs_of(hypothesis)), 0.25 * (number - 3)
        taken = Taken(hypothesis, vote, reference.totals, agreed)
        step = DiscreteVotes().change(taken).step
        reference.advance(step)
        after = (reference.totals, np.array(reference.weights), reference.best_cut())
        expected.append((hypothesis, weights, step, after))
    for name, table in engine.ways(case.X):
        y = engine.asarray(case.y)
        with arrays.computing_on(y):
            state = table.start(y, engine.asarray(case.weights), Search(learner))
            for hypothesis, weights, step, (totals, new, cut) in expected:
                assert list(state.region_sums(hypothesis)) == weights, (name, hypothesis)
                state.advance(step)
                assert state.totals == totals, (name, hypothesis)
                assert np.array_equal(engine.to_numpy(state.weights), new), (name, hypothesis)
                assert state.best_cut() == cut, (name, hypothesis)


@with_learners(ENGINES)
@pytest.mark.parametrize("known", [1, 4, 6])
def test_resumed_rounds_and_the_rounds_after_them_are_those_of_an_uninterrupted_run(
    engine, learner, known
):
    engine.skip_if_unusable()
    if engine.is_library and known != 4:
        pytest.skip("one number of rounds is enough where only the library differs")
    case = example(seed=1)

    def boosting(table: PreparedTable) -> Boosting:
        weights = engine.asarray(case.weights)
        return Boosting(table, engine.asarray(case.y), weights, n_rounds=6, learner=learner)

    expected: list[Round] | None = None
    for name, table in engine.ways(case.X):
        records = list(boosting(table))
        expected = expected or records
        assert records == expected, name
        resumed = boosting(table)
        hypotheses, votes = [r.stump for r in records[:known]], [r.vote for r in records[:known]]
        assert list(resumed.resume(hypotheses, votes)) == records[:known], name
        assert list(resumed) == records[known:], name
    assert expected is not None
    assert len(expected) == 6


@with_learners(ENGINES)
def test_what_a_state_says_of_regions_is_what_predictions_say(engine, learner):
    """The thresholds part the samples as the cut does."""
    engine.skip_if_unusable()
    case = example(seed=2)
    for name, table in engine.ways(case.X):
        y = engine.asarray(case.y)
        with arrays.computing_on(y):
            state = table.start(y, engine.asarray(case.weights), Search(learner))
            hypothesis = hypothesis_at(table, state.best_cut(), state.totals)
            totals, weights = state.totals, np.ceil(engine.to_numpy(state.weights))
        wrong = weights[hypothesis.predict(case.X) != case.y].sum()
        assert hypothesis.error == wrong / totals.weight, name


def test_the_cases_are_not_trivial():
    """The other tests would prove little about runs that all end at once."""
    lengths = {name: len(facts_of(small_case(name), "stump")) for name in SMALL}
    assert len(lengths) >= 40
    assert sum(length == 6 for length in lengths.values()) >= 30
    kinds = [
        type(fact.hypothesis)
        for name in sorted(SMALL)[::4]
        for fact in facts_of(small_case(name), "interval")
    ]
    assert kinds.count(Interval) > 20
    assert kinds.count(Stump) > 5
