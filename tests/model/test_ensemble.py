"""The finished model: scores, labels, probabilities, tables and digest, against sums in Python."""

from __future__ import annotations

import dataclasses
import math
import random

import numpy as np
import pytest
from backends import NUMPY, Backend
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustump import Member, Stump, StumpEnsemble
from gpustump.learners.step_table import VOTE_UNIT

UNITS = st.integers(-(2**40), 2**40)
THRESHOLDS = st.sampled_from([-math.inf, -1.5, -5e-324, 0.0, 5e-324, 0.1, 1.0, 2.0, math.inf])
SIGNS = st.sampled_from([-1, 1])
STUMPS = st.builds(Stump, st.integers(0, 2), THRESHOLDS, SIGNS, SIGNS, st.just(0.25))
VALUES = (math.nan, -math.inf, math.inf, 0.0, -0.0, 0.1, 5e-324, -5e-324, 1.0, 1.5, 2.0, 3.0)


def member(pairs: list[tuple[Stump, int]]) -> Member:
    return Member(tuple(s for s, _ in pairs), tuple(units * VOTE_UNIT for _, units in pairs))


def every_row() -> np.ndarray:
    rows = [[a, b, c] for a in VALUES for b in VALUES[::3] for c in VALUES[1::4]]
    return np.asarray(rows)


def side(stump: Stump, row: list[float]) -> int:
    value = row[stump.feature]
    if math.isnan(value):
        return stump.missing
    return stump.polarity if value <= stump.threshold else -stump.polarity


def by_hand(part: Member, X: np.ndarray) -> list[float]:
    return [
        math.fsum(v * side(s, row) for s, v in zip(part.stumps, part.votes, strict=True))
        for row in X.tolist()
    ]


PAIRS = st.lists(st.tuples(STUMPS, UNITS), max_size=12)


@settings(max_examples=200)
@given(PAIRS)
def test_tables_add_up_to_the_stumps_one_by_one(pairs):
    X = every_row()
    part = member(pairs)
    scores = StumpEnsemble((part,), 3).decision_function(X)
    assert scores.tolist() == by_hand(part, X)


@settings(max_examples=100)
@given(PAIRS)
def test_stages_end_in_the_whole_score(pairs):
    X = every_row()
    model = StumpEnsemble((member(pairs),), 3)
    stages = list(model.staged_decision_function(X))
    assert len(stages) == len(pairs)
    for number, stage in enumerate(stages, start=1):
        assert stage.tolist() == by_hand(member(pairs[:number]), X)
    if stages:
        assert stages[-1].tobytes() == model.decision_function(X).tobytes()


@settings(max_examples=100)
@given(PAIRS)
def test_scores_do_not_depend_on_the_order_of_the_stumps(pairs):
    X = every_row()
    shuffled = random.Random(0).sample(pairs, len(pairs))
    first = StumpEnsemble((member(pairs),), 3).decision_function(X)
    second = StumpEnsemble((member(shuffled),), 3).decision_function(X)
    assert first.tolist() == second.tolist()


def test_scores_are_exact_at_the_largest_sum_of_votes():
    """2**17 in all, the last bit of 2**-36 still there."""
    large, small = 2**52, 1
    pairs = [
        (Stump(0, 0.5, 1, 1, 0.1), large),
        (Stump(0, 1.5, 1, -1, 0.1), large - small),
        (Stump(1, 0.5, -1, 1, 0.1), small),
    ]
    X = np.asarray([[x, z, 0.0] for x in (0.0, 1.0, 2.0, math.nan) for z in (0.0, 1.0, math.nan)])
    model = StumpEnsemble((member(pairs),), 3)
    expected = [
        sum(units * side(stump, row) for stump, units in pairs) * VOTE_UNIT for row in X.tolist()
    ]
    assert model.decision_function(X).tolist() == expected
    assert len(set(expected)) > 6


MODEL = StumpEnsemble(
    (
        Member((Stump(0, 0.0, 1, 1, 0.1), Stump(2, 1.0, -1, 1, 0.2)), (1.0, 0.5)),
        Member((Stump(1, 0.1, -1, -1, 0.1),), (0.75,)),
        Member((), ()),
    ),
    n_features=3,
    classes=(10, 20, 30),
)


def test_many_classes_get_a_column_each(backend: Backend):
    X = every_row()
    scores = backend.to_numpy(MODEL.decision_function(backend.asarray(X)))
    assert scores.shape == (len(X), 3)
    for column, part in zip(scores.T, MODEL.members, strict=True):
        assert column.tolist() == by_hand(part, X)
    labels = MODEL.predict(backend.asarray(X))
    assert backend.owns(labels)
    assert backend.to_numpy(labels).tolist() == [10 * (int(np.argmax(s)) + 1) for s in scores]


def test_shorter_members_keep_their_score_in_later_stages(backend: Backend):
    X = every_row()
    stages = [backend.to_numpy(s) for s in MODEL.staged_decision_function(backend.asarray(X))]
    assert len(stages) == 2
    assert stages[0][:, 1].tolist() == stages[1][:, 1].tolist()
    assert stages[1].tolist() == NUMPY.to_numpy(MODEL.decision_function(X)).tolist()
    labels = [backend.to_numpy(s) for s in MODEL.staged_predict(backend.asarray(X))]
    assert labels[-1].tolist() == MODEL.predict(X).tolist()


@pytest.mark.parametrize("classes", [(-1, 1), (False, True), (0.5, 2.5), ("no", "yes")])
def test_labels_are_the_models_own_and_a_score_of_zero_gives_the_first(backend: Backend, classes):
    pairs = [(Stump(0, 0.5, 1, 1, 0.1), 4), (Stump(1, 0.5, 1, 1, 0.1), 4)]
    model = StumpEnsemble((member(pairs),), 2, classes=classes)
    X = backend.asarray(np.asarray([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    assert backend.to_numpy(model.decision_function(X)).tolist() == [
        8 * VOTE_UNIT,
        0,
        -8 * VOTE_UNIT,
    ]
    labels = model.predict(X)
    if isinstance(classes[0], str):
        assert labels.tolist() == ["yes", "no", "no"]
    else:
        assert backend.owns(labels)
        expected = [classes[1], classes[0], classes[0]]
        assert backend.to_numpy(labels).tolist() == expected
        assert backend.to_numpy(labels).dtype.kind == np.asarray(expected).dtype.kind


def test_probabilities_are_the_logistic_function_of_twice_the_score(backend: Backend):
    X = every_row()
    model = StumpEnsemble((MODEL.members[0],), 3)
    P = backend.to_numpy(model.predict_proba(backend.asarray(X)))
    F = np.asarray(by_hand(model.members[0], X))
    assert P.shape == (len(X), 2)
    np.testing.assert_allclose(P[:, 1], 1 / (1 + np.exp(-2 * F)), rtol=1e-14)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-14)
    P = backend.to_numpy(MODEL.predict_proba(backend.asarray(X)))
    each = 1 / (1 + np.exp(-2 * NUMPY.to_numpy(MODEL.decision_function(X))))
    np.testing.assert_allclose(P, each / each.sum(axis=1, keepdims=True), rtol=1e-14)


def test_probabilities_of_extreme_scores_are_finite(backend: Backend):
    pairs = [(Stump(0, 0.5, 1, 1, 0.1), 2**52)]
    X = backend.asarray(np.asarray([[0.0], [1.0]]))
    P = backend.to_numpy(StumpEnsemble((member(pairs),), 1).predict_proba(X))
    assert P.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    parts = (member(pairs), member(pairs), Member((), ()))
    P = backend.to_numpy(StumpEnsemble(parts, 1, classes=(0, 1, 2)).predict_proba(X))
    np.testing.assert_allclose(P, [[0.4, 0.4, 0.2], [0.0, 0.0, 1.0]])


def test_a_model_without_rounds_predicts_the_first_class(backend: Backend):
    model = StumpEnsemble((Member((), ()),), 2)
    X = backend.asarray(np.zeros((3, 2)))
    assert backend.to_numpy(model.decision_function(X)).tolist() == [0.0, 0.0, 0.0]
    assert backend.to_numpy(model.predict(X)).tolist() == [-1, -1, -1]
    assert list(model.staged_decision_function(X)) == []
    assert model.feature_importances().tolist() == [0.0, 0.0]
    assert model.n_rounds == 0


def test_importances_are_shares_of_the_votes_without_constants():
    pairs = [(Stump(0, 0.5, 1, 1, 0.1), 4), (Stump(2, math.inf, 1, -1, 0.1), 12)]
    model = StumpEnsemble((member([*pairs, (Stump(0, math.inf, 1, 1, 0.4), 100)]),), 3)
    assert model.feature_importances().tolist() == [0.25, 0.0, 0.75]


def test_truncating_keeps_the_first_rounds():
    short = MODEL.truncated(1)
    assert [len(part) for part in short.members] == [1, 1, 0]
    assert short.members[0].stumps == MODEL.members[0].stumps[:1]
    assert (short.classes, short.n_features) == (MODEL.classes, MODEL.n_features)
    assert MODEL.truncated(99) == MODEL


def edited(**changes) -> StumpEnsemble:
    """MODEL with its first stump, or its first vote, changed."""
    first = MODEL.members[0]
    votes = (changes.pop("vote", first.votes[0]), *first.votes[1:])
    stumps = (dataclasses.replace(first.stumps[0], **changes), *first.stumps[1:])
    return dataclasses.replace(MODEL, members=(Member(stumps, votes), *MODEL.members[1:]))


def test_digest_changes_with_everything_that_makes_the_model():
    others = [
        edited(feature=1),
        edited(threshold=5e-324),
        edited(threshold=math.inf),
        edited(threshold=-math.inf),
        edited(polarity=-1),
        edited(missing=-1),
        edited(error=np.nextafter(0.1, 1.0).item()),
        edited(vote=1.0 + VOTE_UNIT),
        dataclasses.replace(MODEL, n_features=4),
        dataclasses.replace(MODEL, classes=(10, 20, 31)),
        dataclasses.replace(MODEL, classes=("10", "20", "30")),
        dataclasses.replace(MODEL, members=MODEL.members[::-1]),
        MODEL.truncated(1),
    ]
    digests = {model.digest() for model in (MODEL, *others)}
    assert len(digests) == len(others) + 1
    assert edited().digest() == MODEL.digest()
    assert len(MODEL.digest()) == 64


def test_digest_does_not_change_with_names_and_details():
    named = dataclasses.replace(MODEL, feature_names=("a", "b", "c"), details={"by": "me"})
    assert named.digest() == MODEL.digest()


def test_digest_stays_what_it_was():
    """Written down once: a change here breaks every digest that users have kept."""
    assert MODEL.digest() == "bbc8fe97b471f3e6c690d8b99897936d64e63bfa27d700175deafc4ff4329c5b"


def test_learnt_missing_values_are_no_part_of_what_models_are_compared_by():
    learnt = dataclasses.replace(MODEL, missing_learnt=np.asarray([True, False, True]))
    assert learnt.missing_learnt == (True, False, True)
    assert all(type(value) is bool for value in learnt.missing_learnt)
    assert MODEL.missing_learnt is None
    assert learnt == MODEL
    assert learnt.digest() == MODEL.digest()
    assert learnt.truncated(1).missing_learnt == (True, False, True)


def test_details_are_still_the_fifth_argument():
    given = ("a", "b", "c"), {"by": "me"}
    model = StumpEnsemble(MODEL.members, 3, MODEL.classes, *given, missing_learnt=(True,) * 3)
    assert (model.feature_names, model.details) == given
    assert model.missing_learnt == (True, True, True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"missing_learnt": (True,)}, "missing_learnt must say true or false for 3 features; got"),
        ({"classes": (1, 2)}, r"members must be 1 for 2 classes; got 3"),
        ({"classes": (1,)}, r"members must be 1 for 1 classes; got 3"),
        ({"n_features": 2}, r"features 0 to 2, but n_features is 2"),
    ],
)
def test_models_that_do_not_add_up_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(MODEL, **changes)


def test_a_model_describes_itself():
    assert str(MODEL) == (
        f"StumpEnsemble of 2+1+0 stumps on 3 features for classes 10, 20, 30; "
        f"digest {MODEL.digest()[:12]}"
    )


def test_a_constant_stump_is_one_that_answers_alike_everywhere():
    assert Stump(0, math.inf, 1, 1, 0.5).is_constant
    assert not Stump(0, math.inf, 1, -1, 0.5).is_constant
    assert not Stump(0, 1e308, 1, 1, 0.5).is_constant
