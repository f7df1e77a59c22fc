"""Every engine, in every way it can prepare a table, against the reference on NumPy.

After every round all of them know the same cut, totals, weights, smallest weight, sums over the
regions, and thresholds, for every kind of votes that they make. See `engine_ways.ENGINES` for the
engines, and `hard_cases` for the data.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from engine_ways import ENGINES, FIRST_WAY_ONLY, EngineUnderTest, as_routed
from hard_cases import ABOUT_LIBRARIES, LARGE, SMALL, large_case, small_case
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import KINDS, TABLES, Case, facts_of, signs, tied, with_any_weights
from trainers import start, trainer

from gpustump import arrays
from gpustump.boosting.rounds.boosting import Boosting
from gpustump.boosting.votes.discrete import DiscreteVotes
from gpustump.boosting.votes.votes import Round, Taken
from gpustump.data.parameters import Learner
from gpustump.engines.contract import (
    PreparedTable,
    RegionVotes,
    Search,
    agreement,
    hypothesis_at,
)
from gpustump.engines.reference.engine import REFERENCE
from gpustump.learners.hypothesis import signs as signs_of
from gpustump.learners.interval import Interval
from gpustump.learners.split import Split
from gpustump.learners.stump import Stump

LEARNERS: tuple[Learner, ...] = ("stump", "interval")
NEW_KINDS = tuple(kind for kind in KINDS if kind != "discrete")
L2 = {"newton": 0.5, "shared newton": 1.0}
"""Lambda of the cases with Newton votes; it is 0 where cases are drawn."""
NO_LIBRARIES = [engine for engine in ENGINES if not engine.is_library]
ANY_SHAPE = [engine for engine in ENGINES if not engine.compiles_for_every_shape]


def with_learners(engines: Sequence[EngineUnderTest]) -> pytest.MarkDecorator:
    pairs = [(engine, learner) for engine in engines for learner in engine.learners]
    return pytest.mark.parametrize(
        ("engine", "learner"), pairs, ids=[f"{e}-{learner}" for e, learner in pairs]
    )


def with_kinds(engines: Sequence[EngineUnderTest]) -> pytest.MarkDecorator:
    """Every engine with each kind of votes that it makes but discrete ones."""
    pairs = [(engine, kind) for engine in engines for kind in engine.votes if kind in NEW_KINDS]
    return pytest.mark.parametrize(
        ("engine", "kind"), pairs, ids=[f"{e}-{kind}" for e, kind in pairs]
    )


each_engine = pytest.mark.parametrize("engine", ENGINES, ids=str)


def small_cases() -> Iterator[tuple[EngineUnderTest, Learner, str]]:
    """All awkward tables; of an array library those about what libraries compute differently."""
    for engine in ENGINES:
        for learner in engine.learners:
            names = sorted(ABOUT_LIBRARIES if engine.is_library else SMALL)
            few = engine.is_library and (learner == "interval" or FIRST_WAY_ONLY)
            step = 4 if few or engine.compiles_for_every_shape else 1
            yield from ((engine, learner, name) for name in names[::step])


@pytest.mark.parametrize(("engine", "learner", "name"), list(small_cases()), ids=str)
def test_every_way_knows_the_references_facts_of_an_awkward_table(engine, learner, name):
    case = small_case(name)
    engine.skip_if_unusable(case.X.dtype.name)
    engine.check(case, learner)


OF_ONE_SHAPE = (
    "missing",
    "weights_over_600_orders_of_magnitude",
    "full_of_ties",
    "a_feature_wholly_missing",
    "both_zeros",
)
"""Tables of one shape and dtype, for engines that compile anew for others."""


def small_cases_of_kinds() -> Iterator[tuple[EngineUnderTest, str, str]]:
    """A share of the awkward tables for each kind of votes: together they take all of them."""
    for engine in ENGINES:
        kinds = [kind for kind in engine.votes if kind in NEW_KINDS]
        names = sorted(ABOUT_LIBRARIES if engine.is_library else SMALL)
        if engine.compiles_for_every_shape:
            names = list(OF_ONE_SHAPE)
        for number, kind in enumerate(kinds):
            yield from ((engine, kind, name) for name in names[number :: len(kinds)])


@pytest.mark.parametrize(("engine", "kind", "name"), list(small_cases_of_kinds()), ids=str)
def test_every_way_knows_the_references_facts_of_every_kind_of_votes(engine, kind, name):
    """Where ways are many, each meets a kind of votes on a third of its tables."""
    case = small_case(name, kind, L2.get(kind, 0.0))
    engine.skip_if_unusable(case.X.dtype.name)
    n_ways = 1 if engine.compiles_for_every_shape else None
    third = sorted(SMALL).index(name) // len(NEW_KINDS)
    engine.check(case, n_ways=n_ways, third=third)


@with_learners(NO_LIBRARIES)
@pytest.mark.parametrize("name", LARGE)
def test_every_way_knows_the_references_facts_of_a_larger_table(engine, learner, name):
    """Where ways are many, they share the tables."""
    engine.skip_if_unusable()
    third = list(LARGE).index(name) + (learner == "interval")
    engine.check(large_case(name), learner, third=third)


@with_kinds(NO_LIBRARIES)
@pytest.mark.parametrize("name", ["duplicated_features", "some_rows_of_a_table"])
def test_every_way_knows_the_references_facts_of_a_larger_table_and_any_votes(engine, kind, name):
    """Where ways are many, they share tables and kinds."""
    engine.skip_if_unusable()
    third = NEW_KINDS.index(kind) + (name == "some_rows_of_a_table")
    engine.check(large_case(name, kind, L2.get(kind, 0.0)), third=third)


@with_learners(ANY_SHAPE)
def test_ties_everywhere_are_broken_alike(engine, learner):
    engine.skip_if_unusable()

    @settings(max_examples=8 if engine.is_library else 15 if engine.has_many_ways else 30)
    @given(TABLES)
    def ties_are_broken_alike(samples):
        engine.check(Case.of(*tied(samples)), learner)

    ties_are_broken_alike()


@with_kinds(ANY_SHAPE)
def test_ties_of_every_kind_of_votes_are_broken_alike(engine, kind):
    engine.skip_if_unusable()

    @settings(max_examples=5 if engine.is_library else 8 if engine.has_many_ways else 15)
    @given(TABLES)
    def ties_are_broken_alike(samples):
        engine.check(Case.of(*tied(samples), n_rounds=4).voting(kind), n_ways=6)

    ties_are_broken_alike()


FROM_KNOWN_SCORES = ("newton", "shared newton")
"""Kinds of votes of runs that may start from known scores."""


@pytest.mark.parametrize("kind", FROM_KNOWN_SCORES)
@pytest.mark.parametrize("engine", [e for e in ENGINES if e.name != "cluster"], ids=str)
def test_every_way_knows_the_references_facts_of_a_run_from_known_scores(engine, kind):
    """Where ways are many, they share the tables."""
    engine.skip_if_unusable()
    names = OF_ONE_SHAPE[:2] if engine.is_library else OF_ONE_SHAPE
    for number, name in enumerate(names):
        case = small_case(name, kind, L2[kind]).from_known_scores()
        n_ways = 1 if engine.compiles_for_every_shape else None
        engine.check(case, n_ways=n_ways, third=number)
    if not engine.is_library:
        case = large_case("duplicated_features", kind, L2[kind]).from_known_scores()
        engine.check(case, third=0)


CONSTRAINED = ("discrete", "real", "newton")
"""Kinds of votes for which features may be constrained."""

with_constrained_kinds = pytest.mark.parametrize("kind", CONSTRAINED)


@each_engine
@with_constrained_kinds
def test_every_way_knows_the_references_facts_under_monotone_constraints(engine, kind):
    """Where ways are many, they share the tables."""
    engine.skip_if_unusable()
    names = OF_ONE_SHAPE[:2] if engine.is_library else OF_ONE_SHAPE
    for number, name in enumerate(names):
        case = small_case(name).voting(kind, L2.get(kind, 0.0)).constrained(1, -1, 0, 1, -1)
        n_ways = 1 if engine.compiles_for_every_shape else None
        engine.check(case, n_ways=n_ways, third=number)


@pytest.mark.parametrize("engine", NO_LIBRARIES, ids=str)
@with_constrained_kinds
@pytest.mark.parametrize("directions", [(1, 0), (-1, 0, -1)], ids=str)
def test_every_way_knows_the_references_facts_of_a_constrained_larger_table(
    engine, kind, directions
):
    engine.skip_if_unusable()
    case = large_case("duplicated_features").voting(kind, L2.get(kind, 0.0))
    engine.check(case.constrained(*directions), third=CONSTRAINED.index(kind) + len(directions))


@pytest.mark.parametrize("engine", ANY_SHAPE, ids=str)
@with_constrained_kinds
def test_ties_of_allowed_cuts_are_broken_alike(engine, kind):
    engine.skip_if_unusable()

    @settings(max_examples=5 if engine.is_library else 10)
    @given(TABLES, st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=4))
    def ties_are_broken_alike(samples, directions):
        case = Case.of(*tied(samples), n_rounds=4).voting(kind).constrained(*directions)
        engine.check(case, n_ways=6)

    ties_are_broken_alike()


@with_learners(ANY_SHAPE)
def test_any_values_and_weights_give_the_references_facts(engine, learner):
    engine.skip_if_unusable()
    dtypes = ["float16", "float32", "float64"]
    if engine.backend is not None:
        dtypes = [dtype for dtype in dtypes if dtype not in engine.backend.lacks]

    @settings(max_examples=8 if engine.is_library or engine.has_many_ways else 12)
    @given(st.integers(0, 10**6), st.integers(20, 400), st.sampled_from(dtypes))
    def facts_are_the_references(seed, n_samples, dtype):
        engine.check(Case.of(*with_any_weights(seed, n_samples, dtype)), learner)

    facts_are_the_references()


@with_kinds(ANY_SHAPE)
def test_any_values_and_weights_give_the_references_facts_of_every_kind_of_votes(engine, kind):
    engine.skip_if_unusable()

    @settings(max_examples=3 if engine.is_library else 5)
    @given(st.integers(0, 10**6), st.integers(20, 400), st.sampled_from([0.5, 1.0, 3.0]))
    def facts_are_the_references(seed, n_samples, learning_rate):
        samples = with_any_weights(seed, n_samples, "float32")
        case = Case.of(*samples, learning_rate=learning_rate, n_rounds=5).voting(kind)
        engine.check(case, n_ways=6)

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
                start(table, engine.asarray(case.y), engine.asarray(case.weights), Search(learner))
                for case in (one, other)
            ]
            for both in zip(*facts, strict=True):
                for state, fact in zip(states, both, strict=True):
                    assert state.best_cut() == fact.cut, name
                    assert state.totals == fact.totals, name
                    state.advance(fact.step)


@with_kinds(ENGINES)
def test_runs_of_other_votes_that_share_a_table_do_not_disturb_discrete_ones(engine, kind):
    engine.skip_if_unusable()
    cases = [example(), example().voting(kind, L2.get(kind, 0.0))]
    facts = [facts_of(case, "stump") for case in cases]
    for name, table in itertools.islice(engine.ways(cases[0].X), 1 + (not engine.is_library)):
        y, weights = engine.asarray(cases[0].y), engine.asarray(cases[0].weights)
        with arrays.computing_on(y):
            searches = [case.votes_of_run().search("stump") for case in cases]
            labels = [y, engine.asarray(cases[1].y)]
            states = [
                start(table, own, weights, search)
                for own, search in zip(labels, searches, strict=True)
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
    reference = start(first, case.y, case.weights, Search(learner))
    expected = []
    for number, hypothesis in enumerate(elsewhere()):
        weights = reference.region_sums(hypothesis).tolist()
        agreed, vote = agreement(weights, signs_of(hypothesis)), 0.25 * (number - 3)
        taken = Taken(hypothesis, vote, reference.totals, agreed)
        step = DiscreteVotes().change(taken).step
        reference.advance(step)
        after = (reference.totals, np.array(reference.weights), reference.best_cut())
        expected.append((hypothesis, weights, step, after))
    for name, table in engine.ways(case.X):
        y = engine.asarray(case.y)
        with arrays.computing_on(y):
            state = start(table, y, engine.asarray(case.weights), Search(learner))
            for hypothesis, weights, step, (totals, new, cut) in expected:
                assert state.region_sums(hypothesis).tolist() == weights, (name, hypothesis)
                state.advance(step)
                assert state.totals == totals, (name, hypothesis)
                assert np.array_equal(engine.to_numpy(state.weights), new), (name, hypothesis)
                assert state.best_cut() == cut, (name, hypothesis)


def splits_elsewhere(n_outputs: int) -> Iterator[tuple[Split, RegionVotes]]:
    """Splits not found by a search on the table, and votes of any sign and size."""
    random = np.random.default_rng(n_outputs)
    for hypothesis in elsewhere():
        split = Split(hypothesis.feature, hypothesis.thresholds[-1])
        votes = np.round(random.normal(size=(3, n_outputs)) * 2.0**36) / 2.0**36
        yield split, tuple(map(tuple, votes.tolist()))


@with_kinds(ENGINES)
def test_splits_found_elsewhere_change_weights_and_scores_as_in_the_reference(engine, kind):
    engine.skip_if_unusable()
    case = example().voting(kind, L2.get(kind, 0.0))
    votes = case.votes_of_run()
    search = votes.search("stump")
    first = dict(ENGINES[0].make(case.X, None))["numpy"]
    reference = start(first, case.y, case.weights, search)
    expected = []
    for split, numbers in splits_elsewhere(case.n_outputs):
        taken = votes.known(split, numbers, reference)
        step = votes.change(taken).step
        reference.advance(step)
        after = (reference.totals, np.array(reference.weights), reference.best_cut())
        expected.append((taken.sums, step, after))
    for name, table in itertools.islice(engine.ways(case.X), 1 + (not engine.is_library)):
        y = engine.asarray(case.y)
        with arrays.computing_on(y):
            state = start(table, y, engine.asarray(case.weights), search)
            for sums, step, (totals, new, cut) in expected:
                assert state.region_sums(step.hypothesis).tolist() == sums, (name, step)
                state.advance(step)
                assert state.totals == totals, (name, step)
                assert np.array_equal(engine.to_numpy(state.weights), new), (name, step)
                assert state.best_cut() == cut, (name, step)


@with_kinds(ENGINES)
def test_resumed_rounds_of_every_kind_of_votes_are_those_of_an_uninterrupted_run(engine, kind):
    engine.skip_if_unusable()
    case = example(seed=1).voting(kind, L2.get(kind, 0.0))

    def boosting(table: PreparedTable) -> Boosting:
        y, weights = engine.asarray(case.y), engine.asarray(case.weights)
        return Boosting(trainer(table), y, weights, votes=case.votes_of_run(), n_rounds=6)

    name, table = next(engine.ways(case.X))
    run = boosting(table)
    records = list(run)
    assert len(records) == 6
    resumed = boosting(table)
    known = [r.stump for r in records[:4]], [r.votes for r in records[:4]]
    assert list(resumed.resume(*known)) == records[:4], name
    assert list(resumed) == records[4:], name
    for one in (run, resumed):  # without the context in which JAX has 64-bit numbers
        assert np.array_equal(engine.to_numpy(one.weights), engine.to_numpy(run.weights)), name
    assert run.model.digest() == resumed.model.digest()


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
        return Boosting(
            trainer(table), engine.asarray(case.y), weights, n_rounds=6, learner=learner
        )

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


@pytest.mark.parametrize("kind", ["stump", "interval", *NEW_KINDS])
@pytest.mark.parametrize("engine", NO_LIBRARIES, ids=str)
def test_known_rounds_among_searched_ones_are_those_of_the_reference(engine, kind):
    """What only a search needs may wait while rounds are known, and must be there for the next."""
    engine.skip_if_unusable()
    if kind not in (*engine.votes, *engine.learners):
        pytest.skip(f"{engine} does not make them")
    case = example(seed=4, shape=(300, 5))
    learner = "interval" if kind == "interval" else "stump"
    if kind in NEW_KINDS:
        case = case.voting(kind, L2.get(kind, 0.0))

    def records(table: PreparedTable, asarray: Callable[[np.ndarray], Any]) -> list[Any]:
        run = Boosting(
            trainer(table), asarray(case.y), asarray(case.weights), votes=case.votes_of_run(),
            learner=learner,
        )  # fmt: skip
        found = [next(run) for _ in range(3)]
        for n_known in (1, 3, 2):
            known = found[:n_known]
            found += run.resume([r.stump for r in known], [r.vote for r in known])
            found += [next(run), next(run)]
        return found

    expected = records(as_routed(REFERENCE, case.X, None), np.asarray)
    for name, table in engine.ways(case.X):
        assert records(table, engine.asarray) == expected, name


@with_learners(ENGINES)
def test_what_a_state_says_of_regions_is_what_predictions_say(engine, learner):
    """The thresholds part the samples as the cut does."""
    engine.skip_if_unusable()
    case = example(seed=2)
    for name, table in engine.ways(case.X):
        y = engine.asarray(case.y)
        with arrays.computing_on(y):
            state = start(table, y, engine.asarray(case.weights), Search(learner))
            hypothesis = hypothesis_at(table, state.best_cut(), state.totals)
            totals, weights = state.totals, np.ceil(engine.to_numpy(state.weights))
        wrong = weights[hypothesis.predict(case.X) != case.y].sum()
        assert hypothesis.error == wrong / totals.weight, name


def test_the_cases_are_not_trivial():
    """The other tests would prove little about runs that all end at once."""
    lengths = {name: len(facts_of(small_case(name), "stump")) for name in SMALL}
    assert len(lengths) >= 40
    assert sum(length == 6 for length in lengths.values()) >= 30
    types = [
        type(fact.hypothesis)
        for name in sorted(SMALL)[::4]
        for fact in facts_of(small_case(name), "interval")
    ]
    assert types.count(Interval) > 20
    assert types.count(Stump) > 5


@pytest.mark.parametrize("kind", NEW_KINDS)
def test_the_cases_of_every_kind_of_votes_are_not_trivial(kind):
    facts = [facts_of(small_case(name).voting(kind), "stump") for name in sorted(SMALL)[::3]]
    assert sum(len(one) == 6 for one in facts) >= 10
    cuts = [fact.cut for one in facts for fact in one]
    assert len({cut.feature for cut in cuts}) >= 5
    assert any(cut.position is None for cut in cuts)
    assert any(fact.hypothesis.thresholds[0] == np.inf for one in facts for fact in one)


@with_kinds(NO_LIBRARIES)
def test_all_samples_together_have_the_references_sums(engine, kind):
    """Those that have a feature, and those that lack it."""
    engine.skip_if_unusable()
    case = example().voting(kind)
    run = (case.y, case.weights, case.votes_of_run().search("stump"))
    expected = start(next(iter(ENGINES[0].ways(case.X)))[1], *run)
    for name, table in itertools.islice(engine.ways(case.X), 2):
        state = start(table, *run)
        for feature in range(case.X.shape[1]):
            everything = Split(feature, np.inf)
            assert np.array_equal(
                state.region_sums(everything), expected.region_sums(everything)
            ), name
