"""Members as values: what they hold, what they refuse, and the properties of their terms."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle

import numpy as np
import pytest
from made_up_models import member, region_member, rows

from gpustump import Member, RegionMember, Split, Stump
from gpustump.learners.hypothesis import MISSING
from gpustump.model.members import added_up

SPLITS = (Split(1, 0.5), Split(0, math.inf))
VOTES = np.asarray([[[1.0, -0.5], [0.25, 0.0], [2.0, 0.0]], [[3.0, 1.0], [9.0, 9.0], [1.0, 1.0]]])
PAIR = RegionMember(SPLITS, VOTES, np.asarray([0.5, -0.25]))


def test_a_region_member_keeps_its_own_numbers_which_nobody_can_change():
    votes, constant = VOTES.copy(), np.asarray([0.5, -0.25])
    made = RegionMember(list(SPLITS), votes, constant)
    votes[:], constant[:] = 7.0, 7.0
    assert (made, hash(made)) == (PAIR, hash(PAIR))
    assert repr(made) == "RegionMember of 2 splits, n_outputs=2"
    assert (len(made), made.n_outputs, made.hypotheses) == (2, 2, SPLITS)
    for kept in (made, pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert kept == PAIR
        for values in (kept.votes, kept.constant):
            assert values.dtype == np.float64
            with pytest.raises(ValueError, match="read-only"):
                values[0] = 1.0
        with pytest.raises(dataclasses.FrozenInstanceError):
            kept.votes = votes


def test_region_members_are_equal_by_value_and_zero_has_no_sign():
    changed = VOTES.copy()
    changed[1, 2, 1] += 2.0**-36
    others = [
        RegionMember((SPLITS[0], Split(0, 1.0)), VOTES, PAIR.constant),
        RegionMember(SPLITS, changed, PAIR.constant),
        RegionMember(SPLITS, VOTES, [0.5, 0.25]),
        RegionMember(SPLITS, VOTES[:, :, :1], [0.5]),
        PAIR.truncated(1),
        Member((), ()),
    ]
    assert all(other != PAIR for other in others)
    empty = [RegionMember((), np.zeros((0, 3, k)), np.zeros(k)) for k in (1, 2)]
    assert empty[0] != empty[1]
    negative = RegionMember(SPLITS, np.full((2, 3, 1), -0.0), [-0.0])
    assert negative == RegionMember(SPLITS, np.zeros((2, 3, 1)), [0.0])
    assert not np.signbit(negative.votes).any()
    assert not np.signbit(negative.constant).any()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"votes": VOTES[:1]}, r"votes must have the shape \(2, 3, 2\), .* got \(1, 3, 2\)"),
        ({"votes": VOTES[:, :2]}, r"votes must have the shape \(2, 3, 2\)"),
        ({"constant": [0.5]}, r"votes must have the shape \(2, 3, 1\)"),
        ({"constant": []}, r"constant must have a number for each output, and at least one"),
        ({"constant": 1.0}, r"constant must have a number for each output.*got the shape \(\)"),
        ({"constant": [0.5, math.inf]}, "constant must be finite; got inf"),
        ({"votes": VOTES * [1.0, math.nan]}, "votes must be finite; got nan"),
        ({"splits": (Stump(0, 0.5, 1, 1, 0.1), SPLITS[0])}, r"splits must be of type Split or"),
    ],
)
def test_wrong_numbers_are_refused_by_their_name(changes, said):
    given = {"splits": SPLITS, "votes": VOTES, "constant": [0.5, -0.25]} | changes
    with pytest.raises((ValueError, TypeError), match=said):
        RegionMember(**given)


def test_a_stump_that_could_not_predict_cannot_be_made():
    for fields, message in (
        ((0, math.nan, 1, 1, 0.1), "threshold must be a number or infinite; got NaN"),
        ((0, 0.0, 0, 1, 0.1), r"polarity must be \+1 or -1; got 0"),
        ((0, 0.0, 1, 2, 0.1), r"missing must be \+1 or -1; got 2"),
    ):
        with pytest.raises(ValueError, match=message):
            Stump(*fields)
    for votes in ((math.nan,), (math.inf,), (1.0, 2.0)):
        message = "equally many; got 1 and 2" if len(votes) == 2 else "votes must be finite"
        with pytest.raises(ValueError, match=message):
            Member((Stump(0, 0.5, 1, 1, 0.4),), votes)


@pytest.mark.parametrize("threshold", [-math.inf, 0.25, 1e308, math.inf])
@pytest.mark.parametrize(("polarity", "missing"), [(-1, -1), (-1, 1), (1, -1), (1, 1)])
def test_a_stump_is_as_important_as_the_split_that_votes_the_same(threshold, polarity, missing):
    stump = Stump(3, threshold, polarity, missing, 0.25)
    assert stump.is_constant == (threshold == math.inf and polarity == missing)
    votes = np.asarray([polarity, -polarity, missing]).reshape(1, 3, 1) * 0.75
    one = Member((stump,), (0.75,))
    other = RegionMember((Split(3, threshold),), votes, np.zeros(1))
    assert one.term_importances.tolist() == other.term_importances.tolist()
    assert one.term_importances.tolist() == [0.0 if stump.is_constant else 0.75]
    assert one.used_features == other.used_features == (set() if stump.is_constant else {3})


def test_importances_add_up_over_the_outputs_and_leave_out_regions_that_learnt_nothing():
    # (2 - 0.25) / 2 + (0 - -0.5) / 2, and (3 - 1) / 2 + (1 - 1) / 2: nothing is right of infinity
    assert PAIR.term_importances.tolist() == [1.125, 1.0]
    assert PAIR.used_features == {0, 1}
    votes = [[[-1.5], [-1.0], [0.0]], [[-1.5], [-1.0], [0.5]], [[1.0], [9.0], [0.0]]]
    one = RegionMember((Split(0, 1.0), Split(0, 1.0), Split(0, math.inf)), votes, [0.0])
    # Missing values count if they have votes, and always beside an infinite threshold.
    assert one.term_importances.tolist() == [0.25, 1.0, 0.5]


def test_terms_that_vote_the_same_for_all_values_join_the_constant():
    votes = np.asarray([[[1.0, 2.0], [7.0, 7.0], [1.0, 2.0]], [[1.0, 2.0], [7.0, 7.0], [1.0, 2.5]]])
    one = RegionMember((Split(0, math.inf), Split(1, math.inf)), votes, [0.5, -4.0])
    assert one.used_features == {1}
    constant, (table,) = added_up([one]).tables
    assert (constant.tolist(), table.feature) == ([1.5, -2.0], 1)
    assert (table.values.tolist(), table.missing.tolist()) == ([[1.0, 2.0]], [1.0, 2.5])
    assert RegionMember((Split(0, -math.inf),), votes[:1], [0, 0]).used_features == {0}
    votes[0, MISSING, 1] = 2.5  # for one output only
    assert RegionMember((Split(0, math.inf),), votes[:1], [0, 0]).used_features == {0}


def test_members_stand_one_after_the_other_and_vote_for_their_own_outputs_only():
    random = np.random.default_rng(1)
    parts = [
        region_member(random, 6, 3, 1),
        member(random, 4, 3, exact=True),
        region_member(random, 0, 3, 1),
    ]
    model = added_up(parts)
    assert repr(model) == "AdditiveModel of 10 terms, n_outputs=3"
    assert model.constant == tuple(v for part in parts for v in part.constant.tolist())
    assert [len(terms) for terms in model.rounds] == [2] * 4 + [1] * 2
    for split, votes, terms in zip(parts[0].splits, parts[0].votes, model.rounds, strict=True):
        assert terms[0].partition is split
        assert (terms[0].votes == np.pad(votes, ((0, 0), (0, 2)))).all()
    for stump, vote, (_, term) in zip(parts[1].stumps, parts[1].votes, model.rounds, strict=False):
        assert term.partition is stump
        signs = [stump.polarity, -stump.polarity, stump.missing]
        assert term.votes.tolist() == [[0.0, sign * vote, 0.0] for sign in signs]
    X = rows(random, 60, 3, "float64")
    expected = np.concatenate([added_up([part]).scores(X) for part in parts], axis=1)
    assert (model.scores(X) == expected).all()
    *_, last = model.staged_scores(X)
    assert (last == expected).all()
