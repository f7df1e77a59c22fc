"""Members as values: what they hold, what they refuse, and the properties of their terms."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle

import numpy as np
import pytest
from made_up_models import member, region_member, rows

from gpustump import Interval, Member, RegionMember, Split, Stump
from gpustump.learners.hypothesis import MISSING, regions
from gpustump.model import ensemble
from gpustump.model.members import added_up

SPLITS = (Split(1, 0.5), Split(0, math.inf))
VOTES = np.asarray([[[1.0, -0.5], [0.25, 0.0], [2.0, 0.0]], [[3.0, 1.0], [9.0, 9.0], [1.0, 1.0]]])
PAIR = RegionMember(SPLITS, VOTES, np.asarray([0.5, -0.25]))


def discrete(vote: float, stump: Stump) -> tuple[Member, RegionMember]:
    """A stump with a vote, and the split that votes the same."""
    signs = np.asarray([stump.polarity, -stump.polarity, stump.missing]) * vote
    split = Split(stump.feature, stump.threshold)
    return Member((stump,), (vote,)), RegionMember((split,), signs.reshape(1, 3, 1), np.zeros(1))


def test_a_member_keeps_its_old_place():
    assert ensemble.Member is Member


def test_a_region_member_is_shown_in_one_line():
    assert repr(PAIR) == "RegionMember of 2 splits, n_outputs=2"
    assert (len(PAIR), PAIR.n_outputs, PAIR.hypotheses) == (2, 2, SPLITS)


def test_a_region_member_keeps_its_own_numbers_which_nobody_can_change():
    votes, constant = VOTES.copy(), np.asarray([0.5, -0.25])
    made = RegionMember(list(SPLITS), votes, constant)
    votes[:], constant[:] = 7.0, 7.0
    assert made == PAIR
    for kept in (made, pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        for values in (kept.votes, kept.constant):
            assert values.dtype == np.float64
            with pytest.raises(ValueError, match="read-only"):
                values[0] = 1.0
        with pytest.raises(dataclasses.FrozenInstanceError):
            kept.votes = votes


def test_region_members_are_equal_by_value():
    same = RegionMember(SPLITS, VOTES.tolist(), [0.5, -0.25])
    assert same == PAIR
    assert hash(same) == hash(PAIR)
    assert pickle.loads(pickle.dumps(PAIR)) == PAIR
    changed = VOTES.copy()
    changed[1, 2, 1] += 2.0**-36
    others = [
        RegionMember((SPLITS[0], Split(0, 1.0)), VOTES, PAIR.constant),
        RegionMember(SPLITS, changed, PAIR.constant),
        RegionMember(SPLITS, VOTES, [0.5, 0.25]),
        RegionMember(SPLITS, VOTES[:, :, :1], [0.5]),
        PAIR.truncated(1),
    ]
    assert all(other != PAIR for other in others)
    assert Member((), ()) != PAIR
    empty = [RegionMember((), np.zeros((0, 3, k)), np.zeros(k)) for k in (1, 2)]
    assert empty[0] != empty[1]


def test_zero_has_no_sign():
    """Equal members have equal digests, and JSON would tell -0.0 from 0.0."""
    negative = RegionMember(SPLITS, np.full((2, 3, 1), -0.0), [-0.0])
    positive = RegionMember(SPLITS, np.zeros((2, 3, 1)), [0.0])
    assert negative == positive
    assert not np.signbit(negative.votes).any()
    assert not np.signbit(negative.constant).any()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"votes": VOTES[:1]}, r"votes must have the shape \(2, 3, 2\), .* got \(1, 3, 2\)"),
        ({"votes": VOTES[:, :2]}, r"votes must have the shape \(2, 3, 2\)"),
        ({"votes": VOTES[:, :, :1]}, r"votes must have the shape \(2, 3, 2\)"),
        ({"constant": [0.5]}, r"votes must have the shape \(2, 3, 1\)"),
        ({"constant": []}, r"constant must have a number for each output, and at least one"),
        ({"constant": 1.0}, r"constant must have a number for each output.*got the shape \(\)"),
        ({"constant": [0.5, math.inf]}, "constant must be finite; got inf"),
        ({"votes": VOTES * [1.0, math.nan]}, "votes must be finite; got nan"),
    ],
)
def test_wrong_numbers_are_refused_by_their_name(changes, said):
    given = {"splits": SPLITS, "votes": VOTES, "constant": [0.5, -0.25]} | changes
    with pytest.raises(ValueError, match=said):
        RegionMember(**given)


def test_other_hypotheses_than_splits_are_refused():
    with pytest.raises(
        TypeError, match=r"splits must be of type Split or CategorySplit; got Stump\("
    ):
        RegionMember((Stump(0, 0.5, 1, 1, 0.1),), np.zeros((1, 3, 1)), [0.0])


@pytest.mark.parametrize("threshold", [-math.inf, 0.25, math.inf])
@pytest.mark.parametrize("polarity", [-1, 1])
@pytest.mark.parametrize("missing", [-1, 1])
def test_a_discrete_stump_is_as_important_as_the_split_that_votes_the_same(
    threshold, polarity, missing
):
    stump = Stump(3, threshold, polarity, missing, 0.25)
    one, other = discrete(0.75, stump)
    assert one.term_importances.tolist() == other.term_importances.tolist()
    assert one.term_importances.tolist() == [0.0 if stump.is_constant else 0.75]
    assert one.used_features == other.used_features == (set() if stump.is_constant else {3})


def test_importances_add_up_over_the_outputs_and_leave_out_regions_without_values():
    # (2 - 0.25) / 2 + (0 - -0.5) / 2, and (3 - 1) / 2 + (1 - 1) / 2: nothing is right of infinity
    assert PAIR.term_importances.tolist() == [1.125, 1.0]
    assert PAIR.used_features == {0, 1}


def test_missing_values_that_no_training_sample_had_do_not_count_in_importances():
    votes = np.asarray([[[-1.5], [-1.0], [0.0]], [[-1.5], [-1.0], [0.5]], [[1.0], [9.0], [0.0]]])
    member = RegionMember((Split(0, 1.0), Split(0, 1.0), Split(0, math.inf)), votes, [0.0])
    # Beside an infinite threshold there are missing values, whatever they vote.
    assert member.term_importances.tolist() == [0.25, 1.0, 0.5]


def test_a_split_that_votes_the_same_for_all_values_is_constant():
    votes = np.asarray([[[1.0, 2.0], [5.0, 6.0], [1.0, 2.0]]])
    model = added_up([RegionMember((Split(0, math.inf),), votes, [0, 0])])
    assert [term.is_constant for term in model.terms] == [True]
    assert not RegionMember((Split(0, math.inf),), votes, [0, 0]).used_features
    assert RegionMember((Split(0, -math.inf),), votes, [0, 0]).used_features == {0}
    votes[0, MISSING, 1] = 2.5  # for one output only
    assert RegionMember((Split(0, math.inf),), votes, [0, 0]).used_features == {0}


def test_a_discrete_member_says_of_itself_what_a_region_member_says():
    stumps = (Stump(0, 0.5, 1, -1, 0.1), Interval(2, 0.0, 1.0, -1, 1, 0.2))
    one = Member(stumps, (1.0, -0.5))
    assert one.n_outputs == 1
    assert one.constant.tolist() == [0.0]
    assert one.hypotheses == stumps
    assert one.term_importances.tolist() == [1.0, 0.5]
    assert one.used_features == {0, 2}
    assert one.truncated(1) == Member(stumps[:1], (1.0,))
    assert one.of_output(0) is one
    assert one.output_tables(0) is one.tables
    for ask in (one.of_output, one.output_tables):
        with pytest.raises(IndexError, match="output must be 0, the only one; got 1"):
            ask(1)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_truncated_member_keeps_its_constant_and_one_of_an_output_its_votes(n_outputs):
    one = region_member(np.random.default_rng(0), 7, 3, n_outputs)
    short = one.truncated(4)
    assert short.splits == one.splits[:4]
    assert (short.votes == one.votes[:4]).all()
    assert (short.constant == one.constant).all()
    for output in range(n_outputs):
        alone = one.of_output(output)
        assert (alone.n_outputs, alone.splits) == (1, one.splits)
        assert (alone.votes[:, :, 0] == one.votes[:, :, output]).all()
        assert alone.constant.tolist() == [one.constant[output]]


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_each_outputs_tables_add_up_to_its_votes(seed, n_outputs):
    random = np.random.default_rng(seed)
    one, X = region_member(random, 25, 4, n_outputs), rows(random, 200, 4, "float64")
    for output in range(n_outputs):
        constant, tables = one.output_tables(output)
        found = np.full(len(X), constant)
        for table in tables:
            assert table.values.ndim == 1
            found = found + table.look_up(X[:, table.feature])
        expected = np.full(len(X), one.constant[output])
        for split, votes in zip(one.splits, one.votes, strict=True):
            expected = expected + votes[regions(split, X[:, split.feature]), output]
        assert found.tolist() == expected.tolist()


def test_terms_vote_for_their_own_outputs_only():
    random = np.random.default_rng(1)
    parts = [region_member(random, 6, 3, 2), member(random, 4, 3, exact=True)]
    model = added_up(parts)
    assert [len(terms) for terms in model.rounds] == [2] * 4 + [1] * 2
    for split, votes, terms in zip(parts[0].splits, parts[0].votes, model.rounds, strict=True):
        assert terms[0].partition is split
        assert (terms[0].votes == np.pad(votes, ((0, 0), (0, 1)))).all()
    for stump, vote, (_, term) in zip(parts[1].stumps, parts[1].votes, model.rounds, strict=False):
        assert term.partition is stump
        signs = [stump.polarity, -stump.polarity, stump.missing]
        assert term.votes.tolist() == [[0.0, 0.0, sign * vote] for sign in signs]
