"""Every engine, in every way it can prepare a table, against the reference on NumPy.

After every round all of them know the same cut, totals, weights, smallest weight, sums over the
regions, and thresholds, for every kind of votes. See `engine_ways.ENGINES` for the engines, and
`hard_cases` for the data.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from awkward_tables import ABOUT_LIBRARIES
from engine_ways import ALL_KINDS, ENGINES, FIRST_WAY_ONLY, EngineUnderTest, as_routed, learner_of
from hard_cases import (
    LARGE,
    SMALL,
    WITH_CATEGORIES,
    WITH_SIGNS,
    hundreds_of_categories,
    large_case,
    of_outputs,
    small_case,
    voting,
    with_categories,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import KINDS, TABLES, Case, facts_of, signs, start, tied, trainer, with_any_weights

from gpustump import arrays
from gpustump.boosting.rounds.boosting import Boosting
from gpustump.boosting.rounds.known_scores import in_vote_units
from gpustump.boosting.votes.discrete import DiscreteVotes
from gpustump.boosting.votes.votes import Taken
from gpustump.engines.contract import PreparedTable, Step, agreement
from gpustump.engines.reference.engine import REFERENCE
from gpustump.learners.category_split import CategorySplit, CategoryStump
from gpustump.learners.hypothesis import signs as signs_of
from gpustump.learners.interval import Interval
from gpustump.learners.kinds import AnySplit
from gpustump.learners.split import Split
from gpustump.learners.stump import Stump

NO_LIBRARIES = [engine for engine in ENGINES if not engine.is_library]
KERNELS = [engine for engine in NO_LIBRARIES if engine.name != "reference on numpy"]
WITH_SETS = [engine for engine in NO_LIBRARIES if engine.name != "sparse"]
"""Sparse tables have no features of categories."""
ANY_SHAPE = [engine for engine in ENGINES if not engine.compiles_for_every_shape]
FEW_KINDS = ("discrete", "shared newton")
"""For array libraries, where a fact does not depend on the loss; all losses meet small tables."""
OF_ANY_SETS = [kind for kind in ALL_KINDS if kind not in ("poisson", "gamma")]
"""Of quantities one is enough: sets of categories are found by gains, whatever the loss."""
CONSTRAINED = ("discrete", "real", "newton")
"""Kinds of votes for which features may be constrained."""
FOR_ANY_VOTES = ("duplicated_features", "some_rows_of_a_table")
"""Larger tables for kinds of votes without signs."""
EXAMPLES_OF_LIBRARIES = 2
"""How many tables are drawn where only the library or the blocks differ."""


def with_kinds(
    engines: Sequence[EngineUnderTest],
    of_libraries: Sequence[str] = ALL_KINDS,
    of_others: Sequence[str] = ALL_KINDS,
) -> pytest.MarkDecorator:
    """Every engine with those of some kinds of votes that it makes; array libraries have theirs."""
    pairs = [
        (engine, kind)
        for engine in engines
        for kind in (of_libraries if engine.is_library else of_others)
        if kind in engine.kinds
    ]
    return pytest.mark.parametrize(("engine", "kind"), pairs, ids=[f"{e}-{k}" for e, k in pairs])


OF_ONE_SHAPE = (
    "missing",
    "weights_over_600_orders_of_magnitude",
    "full_of_ties",
    "a_feature_wholly_missing",
    "both_zeros",
)
"""Tables of one shape and dtype, for engines that compile anew for others."""


def small_cases() -> Iterator[tuple[EngineUnderTest, str, str]]:
    """Half of the awkward tables for discrete votes, and a share of them for each other kind.

    In `tests/test_digests.py` all libraries and engines are trained on those about what libraries
    compute differently, of which array libraries take half here.
    """
    for engine in ENGINES:
        names = sorted(ABOUT_LIBRARIES if engine.is_library else SMALL)
        few = engine.compiles_for_every_shape or (engine.is_library and FIRST_WAY_ONLY)
        yield from ((engine, "discrete", name) for name in names[:: 4 if few else 2])
        if "interval" in engine.kinds:
            yield from ((engine, "interval", name) for name in names[1::4])
        kinds = [kind for kind in KINDS if kind != "discrete"]
        names = list(OF_ONE_SHAPE) * 2 if engine.compiles_for_every_shape else names
        for number, kind in enumerate(kinds):
            if kind in engine.kinds:
                yield from ((engine, kind, name) for name in names[number :: len(kinds)])


@pytest.mark.parametrize(("engine", "kind", "name"), list(small_cases()), ids=str)
def test_every_way_knows_the_references_facts_of_an_awkward_table(engine, kind, name):
    """Where ways are many, each meets a third of the tables."""
    case = small_case(name, kind)
    engine.skip_if_unusable(case.X.dtype.name)
    n_ways = 1 if engine.compiles_for_every_shape and kind not in WITH_SIGNS else None
    third = sorted(SMALL).index(name) // (1 if kind in WITH_SIGNS else len(KINDS) - 1)
    engine.check(case, kind, n_ways=n_ways, third=third)


def larger_cases() -> Iterator[tuple[EngineUnderTest, str, str]]:
    """All larger tables for discrete votes of stumps, a third for intervals, one for others.

    The reference, which has only its blocks to differ in, takes those for stumps.
    """
    for engine in NO_LIBRARIES:
        yield from ((engine, "discrete", name) for name in LARGE)
        if engine in KERNELS:
            for number, kind in enumerate(kind for kind in engine.kinds if kind != "discrete"):
                names = list(LARGE)[::3] if kind == "interval" else [FOR_ANY_VOTES[number % 2]]
                yield from ((engine, kind, name) for name in names)


@pytest.mark.parametrize(("engine", "kind", "name"), list(larger_cases()), ids=str)
def test_every_way_knows_the_references_facts_of_a_larger_table(engine, kind, name):
    """Where ways are many, they share tables and kinds."""
    engine.skip_if_unusable()
    third = list(LARGE).index(name) + ALL_KINDS.index(kind)
    engine.check(large_case(name, kind), kind, third=third)


@pytest.mark.parametrize("engine", KERNELS, ids=str)
@pytest.mark.parametrize("votes", ["discrete", "real", "newton"])
def test_every_way_knows_the_references_facts_of_any_number_of_outputs(engine, votes):
    """Of sorted tables, whose kernels take outputs in groups, in all ways and for more of them."""
    engine.skip_if_unusable()
    for n_outputs in (2, 5, 9, 13, 17, 30) if engine.name == "sorted" else (5, 17):
        case = of_outputs(votes, n_outputs)
        engine.check(case, n_ways=None if engine.name == "sorted" else 1)


@with_kinds([engine for engine in ENGINES if engine.name != "sparse"], FEW_KINDS, OF_ANY_SETS)
def test_every_way_knows_the_references_facts_of_categories(engine, kind):
    """Where ways are many, they share the tables, of which half of the kinds take half."""
    engine.skip_if_unusable()
    # Sorted tables have no order of categories: of a constant, all samples count as missing there.
    named = list(WITH_CATEGORIES)[: 4 if engine.name == "sorted" else None]
    names = named[ALL_KINDS.index(kind) % 2 :: 2]
    for number, name in enumerate(names[:1] if engine.is_library else names):
        third = number + ALL_KINDS.index(kind) // 2
        n_ways = 1 if engine.is_library else None
        engine.check(with_categories(name, kind), kind, n_ways=n_ways, third=third)
    if kind in CONSTRAINED and not engine.is_library:
        case = with_categories("numbers and categories", kind).constrained(-1, 0, 0, 1, 0, 1)
        engine.check(case, kind, third=CONSTRAINED.index(kind))


@with_kinds(
    [engine for engine in WITH_SETS if engine.name != "cuda"],  # where a byte holds the number
    of_others=("discrete", "interval", "newton", "shared real"),
)
def test_every_way_knows_the_references_facts_of_hundreds_of_categories(engine, kind):
    engine.skip_if_unusable()
    engine.check(voting(hundreds_of_categories(), kind), kind, n_ways=1)


def from_known_scores(case: Case, number: int) -> Case:
    return case.from_known_scores()


def constrained(case: Case, number: int) -> Case:
    return case.constrained(*[(1, -1, 0, 1, -1), (1, 0), (-1, 0, -1)][number])


@pytest.mark.parametrize(
    ("engine", "kind", "changed"),
    [
        *(
            (engine, kind, from_known_scores)
            for engine in ENGINES
            for kind in ("newton", "shared newton")
            if engine.name != "cluster"
        ),
        *((engine, kind, constrained) for engine in ENGINES for kind in CONSTRAINED),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_every_way_knows_the_references_facts_from_known_scores_and_under_constraints(
    engine, kind, changed
):
    """Where ways are many, they share the tables."""
    engine.skip_if_unusable()
    n_ways = 1 if engine.compiles_for_every_shape else None
    for number, name in enumerate(OF_ONE_SHAPE[: 2 if engine.is_library else 3]):
        engine.check(changed(small_case(name, kind), number), n_ways=n_ways, third=number)
    if engine.backend is None:
        case = changed(large_case("duplicated_features", kind), 1)
        engine.check(case, third=ALL_KINDS.index(kind))


@with_kinds(ANY_SHAPE, FEW_KINDS)
def test_ties_are_broken_alike(engine, kind):
    """With constraints, too, where there may be some."""
    engine.skip_if_unusable()
    has_signs = kind in WITH_SIGNS

    @settings(max_examples=6 if engine in KERNELS else EXAMPLES_OF_LIBRARIES)
    @given(TABLES, st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=4))
    def ties_are_broken_alike(samples, directions):
        case = Case.of(*tied(samples), n_rounds=6 if has_signs else 4)
        case = case if has_signs else case.voting(kind)
        third = len(samples)
        engine.check(case, kind, n_ways=None if has_signs else 6, third=third)
        if kind in CONSTRAINED:
            engine.check(case.constrained(*directions), n_ways=6, third=third)

    ties_are_broken_alike()


@with_kinds(ANY_SHAPE, FEW_KINDS)
def test_any_values_and_weights_give_the_references_facts(engine, kind):
    engine.skip_if_unusable()
    has_signs = kind in WITH_SIGNS
    dtypes = [own for own in ("float16", "float32", "float64") if own not in engine.lacks]

    @settings(max_examples=(5 if has_signs else 4) if engine in KERNELS else EXAMPLES_OF_LIBRARIES)
    @given(
        st.integers(0, 10**6),
        st.integers(20, 160),
        st.sampled_from(dtypes),
        st.sampled_from([0.5, 1.0, 3.0]),
    )
    def facts_are_the_references(seed, n_samples, dtype, learning_rate):
        samples = with_any_weights(seed, n_samples, dtype)
        case = Case.of(*samples, learning_rate=learning_rate, n_rounds=5)
        case = case if has_signs else case.voting(kind)
        engine.check(case, kind, n_ways=None if has_signs else 6, third=seed)

    facts_are_the_references()


def example(seed: int = 0, shape: tuple[int, int] = (96, 5)) -> Case:
    """A table with missing and tied values, and weights that differ."""
    random = np.random.default_rng(seed)
    X = random.normal(size=shape)
    X[random.random(shape) < 0.2] = np.nan
    X[:, 1] = np.round(X[:, 1])
    near_zero = np.abs(np.nan_to_num(X[:, 0])) + np.nan_to_num(X[:, 1])
    return Case.of(X, signs(near_zero, random), random.integers(1, 9, size=shape[0]), n_rounds=4)


def ways_for(
    engine: EngineUnderTest, kind: str, case: Case, third: int = 0
) -> Iterator[tuple[str, Any]]:
    """For discrete votes of stumps all ways, or every third of many; the first two for others."""
    ways = engine.ways(case.X, case.rows, case.categorical, kind)
    if kind != "discrete":
        return itertools.islice(ways, 1 + (not engine.is_library))
    return itertools.islice(ways, third, None, 3) if engine.has_many_ways else ways


@pytest.mark.parametrize("engine", ENGINES, ids=str)
def test_a_prepared_table_knows_the_callers_table_and_its_own_size(engine):
    engine.skip_if_unusable()
    X = example().X
    X[:, 4] = 1.0  # a feature without missing values
    for rows in (None, np.arange(0, 96, 2)):
        own = X if rows is None else X[rows]
        for name, table in engine.ways(X, rows):
            assert (table.n_samples, table.n_features) == own.shape, name
            assert table.n_missing.tolist() == np.isnan(own).sum(axis=0).tolist(), name
            assert np.array_equal(engine.to_numpy(table.X), X, equal_nan=True), name


@with_kinds(ENGINES, FEW_KINDS)
def test_runs_that_share_a_table_do_not_disturb_each_other(engine, kind):
    """Several classes against the rest share one, too; here the runs take turns."""
    engine.skip_if_unusable()
    one = example()
    other = Case(one.X, -one.y[::-1].copy(), one.weights[::-1].copy(), n_rounds=4)
    cases = [one, other if kind in WITH_SIGNS else voting(one, kind)]
    learner = learner_of(kind)
    facts = [facts_of(case, learner) for case in cases]
    for name, table in ways_for(engine, kind, one):
        with arrays.computing_on(engine.asarray(one.y)):
            states = [
                start(
                    table,
                    engine.asarray(case.y),
                    engine.asarray(case.weights),
                    case.votes_of_run().objective(learner),
                )
                for case in cases
            ]
            for both in zip(*facts, strict=True):
                for state, fact in zip(states, both, strict=True):
                    assert state.best_cut() == fact.cut, name
                    assert state.totals == fact.totals, name
                    state.advance(fact.step)


ELSEWHERE = (
    Stump(0, 0.123456789, 1, -1, 0.0),
    Stump(1, 1.0, -1, -1, 0.0),
    Stump(2, -np.inf, 1, 1, 0.0),
    Stump(3, np.inf, -1, 1, 0.0),
    Stump(0, np.inf, -1, -1, 0.0),
    Interval(4, -0.5, 0.5, 1, -1, 0.0),
    Interval(1, 0.0, 1.0, -1, 1, 0.0),
    Interval(2, -np.inf, 0.0, -1, -1, 0.0),
)
"""Not found by a search on the table: thresholds at, between and beyond values."""
SETS = (
    CategoryStump(1, (0, 4, 7), (2, 999), -1, 1, 0.25),
    CategoryStump(4, (1, 60), tuple(range(2, 59)), 1, 1, 0.25),
    CategoryStump(0, (0, 3), (1, 2), 1, -1, 0.25),  # of a feature of numbers
)
"""Sets with categories that do not occur, and of numbers."""


def steps_elsewhere(case: Case, kind: str, reference: Any) -> Iterator[Step]:
    """Steps that no search has found, with votes of any sign and size.

    Some votes are so large that weights and probabilities fall to the least ones there are.
    """
    random, votes = np.random.default_rng(case.n_outputs), case.votes_of_run()
    hypotheses = [*ELSEWHERE, *(SETS if case.categorical else ())]
    for number, hypothesis in enumerate(hypotheses):
        size = 400.0 if number % 3 == 2 and case.quantity is None else 1.0
        if kind in WITH_SIGNS:
            sums = reference.region_sums(hypothesis).tolist()
            agreed = agreement(sums, signs_of(hypothesis))
            taken = Taken(hypothesis, size * 0.25 * (number - 3), reference.totals, agreed)
            yield DiscreteVotes().change(taken).step
        else:
            if isinstance(hypothesis, CategoryStump):
                split: AnySplit = CategorySplit(
                    hypothesis.feature, hypothesis.left, hypothesis.right
                )
            else:
                split = Split(hypothesis.feature, hypothesis.thresholds[-1])
            numbers = in_vote_units(size * random.normal(size=(3, case.n_outputs)))
            known = votes.known(split, tuple(map(tuple, numbers.tolist())), reference)
            yield votes.change(known).step


@pytest.mark.filterwarnings("ignore:overflow encountered in multiply:RuntimeWarning")
@with_kinds(ENGINES, FEW_KINDS)
def test_hypotheses_found_elsewhere_change_weights_and_scores_as_in_the_reference(engine, kind):
    engine.skip_if_unusable()
    check_elsewhere(engine, kind, voting(example(), kind), third=1)
    if engine in WITH_SETS:
        check_elsewhere(engine, kind, with_categories("numbers and categories", kind), third=2)


def check_elsewhere(engine: EngineUnderTest, kind: str, case: Case, third: int) -> None:
    """Steps that no search has found have the same effect in every way."""
    objective = case.votes_of_run().objective(learner_of(kind))
    own = as_routed(REFERENCE, case.X, None, None, case.categorical)
    reference = case.with_sets(own).start(case.y, case.weights, objective)
    others = [Split(feature, np.inf) for feature in range(5)] if kind not in WITH_SIGNS else []
    expected = []
    for step in steps_elsewhere(case, kind, reference):
        asked = [step.hypothesis, *others]
        sums = [reference.region_sums(own).tolist() for own in asked]
        reference.advance(step)
        after = (reference.totals, np.array(reference.weights), reference.best_cut())
        expected.append((asked, sums, step, after))
    for name, table in ways_for(engine, kind, case, third):
        y = engine.asarray(case.y)
        with arrays.computing_on(y):
            ready = case.with_sets(table)
            state = ready.start(y, engine.asarray(case.weights), objective)
            for asked, sums, step, (totals, new, cut) in expected:
                assert [state.region_sums(own).tolist() for own in asked] == sums, (name, step)
                state.advance(step)
                assert state.totals == totals, (name, step)
                assert np.array_equal(engine.to_numpy(state.weights), new), (name, step)
                assert state.best_cut() == cut, (name, step)


@with_kinds(ENGINES, FEW_KINDS)
def test_known_rounds_among_searched_ones_are_those_of_an_uninterrupted_run(engine, kind):
    """What only a search needs may wait while rounds are known, and must be there for the next."""
    engine.skip_if_unusable()
    shape = (96, 5) if engine.is_library else (300, 5)
    case = voting(example(seed=4, shape=shape), kind)

    def boosting(table: PreparedTable, asarray: Callable[[np.ndarray], Any]) -> Boosting:
        return Boosting(
            trainer(table), asarray(case.y), asarray(case.weights), votes=case.votes_of_run(),
            learner=learner_of(kind), n_rounds=10,
        )  # fmt: skip

    whole = boosting(as_routed(REFERENCE, case.X, None), np.asarray)
    expected = list(whole)
    assert len(expected) == 10

    def known(begin: int, end: int) -> tuple[list[Any], list[Any]]:
        own = expected[begin:end]
        votes = [r.vote if kind in WITH_SIGNS else r.votes for r in own]
        return [r.stump for r in own], votes

    for number, (name, table) in enumerate(ways_for(engine, kind, case, third=2)):
        run, first = boosting(table, engine.asarray), (1, 4)[number % 2]
        found = list(run.resume(*known(0, first)))
        found += [next(run)]
        found += run.resume(*known(first + 1, first + 3))
        found += list(run)
        assert found == expected, name
        # Without the context in which JAX has 64-bit numbers.
        assert np.array_equal(engine.to_numpy(run.weights), whole.weights), name
        assert run.model.digest() == whole.model.digest(), name


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_the_cases_are_not_trivial(kind):
    """The other tests would prove little about runs that all end at once."""
    names = sorted(SMALL)[1::2]
    facts = [facts_of(small_case(name, kind), learner_of(kind)) for name in names]
    assert sum(len(one) == 6 for one in facts) >= 10
    cuts = [fact.cut for one in facts for fact in one]
    assert len({cut.feature for cut in cuts}) >= 5
    assert any(cut.position is None for cut in cuts)
    types = [type(fact.hypothesis) for one in facts for fact in one]
    own = facts_of(with_categories("numbers and categories", kind), learner_of(kind))
    of_categories = {type(fact.hypothesis) for fact in own}
    assert of_categories & {CategoryStump, CategorySplit}
    if kind == "interval":
        assert types.count(Interval) > 20
        assert types.count(Stump) > 5
        assert Interval in of_categories
    else:
        assert any(fact.hypothesis.thresholds[0] == np.inf for one in facts for fact in one)
