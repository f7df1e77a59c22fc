"""The finished model: scores, stages, labels, probabilities and digest, against sums in Python."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from backends import Backend
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_models import member, region_member, region_model, rows
from models_by_hand import bits, exact_scores
from scipy.special import expit, log_softmax, softmax

from gpustump import Member, RegionMember, Split, Stump, StumpEnsemble
from gpustump.learners.step_table import VOTE_UNIT, VOTES_LIMIT
from gpustump.model.classes import log_probabilities, probabilities
from gpustump.model.members import added_up

N_FEATURES = 4
KINDS = {
    "two classes": {"n_classes": 2},
    "against the rest": {"n_classes": 3},
    "against the rest, softmax": {"n_classes": 3, "link": "softmax"},
    "shared": {"n_classes": 4, "shared": True},
    "shared, softmax": {"n_classes": 3, "shared": True, "link": "softmax"},
}
MODEL = StumpEnsemble(
    (
        Member((Stump(0, 0.0, 1, 1, 0.1), Stump(2, 1.0, -1, 1, 0.2)), (1.0, 0.5)),
        Member((Stump(1, 0.1, -1, -1, 0.1),), (0.75,)),
        Member((), ()),
    ),
    n_features=3,
    classes=(10, 20, 30),
)


def made(kind: str) -> StumpEnsemble:
    if kind == "discrete":
        random_ = np.random.default_rng(7)
        parts = tuple(member(random_, n, N_FEATURES, exact=True) for n in (15, 9, 0))
        return StumpEnsemble(parts, N_FEATURES, ("a", "b", "c"))
    return region_model(np.random.default_rng(len(kind)), 15, N_FEATURES, **KINDS[kind])


@pytest.fixture(params=["discrete", *KINDS])
def model(request: pytest.FixtureRequest) -> StumpEnsemble:
    return made(request.param)


def table(dtype: str = "float64") -> np.ndarray:
    return rows(np.random.default_rng(3), 70, N_FEATURES, dtype)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(0, 3), st.integers(0, 8))
def test_scores_and_stages_are_the_exact_sums_in_any_order(seed, n_outputs, n_terms):
    random = np.random.default_rng(seed)
    one = region_member(random, n_terms, 3, n_outputs or 1)
    if n_outputs == 0:
        one = member(random, n_terms, 3, exact=True)
    X = rows(random, 40, 3, "float64")
    sums, scores = added_up([one]), exact_scores(one, X)
    assert sums.scores(X).tolist() == scores.tolist()
    order = random.permutation(len(one)).tolist()
    if isinstance(one, Member):
        other = Member([one.stumps[k] for k in order], [one.votes[k] for k in order])
    else:
        other = RegionMember([one.splits[k] for k in order], one.votes[order], one.constant)
    assert added_up([other]).scores(X).tolist() == scores.tolist()
    stages = list(sums.staged_scores(X))
    assert len(stages) == len(one)
    for number, stage in enumerate(stages, start=1):
        assert stage.tolist() == exact_scores(one.truncated(number), X).tolist()
    for output in range(one.n_outputs):
        constant, tables = sums.tables
        found = np.full(len(X), constant[output])
        for own in tables:
            found = found + own.output(output).look_up(X[:, own.feature])
        assert found.tolist() == scores[:, output].tolist()


def test_scores_are_exact_at_the_largest_sum_of_votes():
    large = VOTES_LIMIT / 4
    votes = [
        [[large], [-large + VOTE_UNIT], [0.0]],
        [[-large / 2], [large / 2], [large - VOTE_UNIT]],
        [[0.0], [VOTE_UNIT], [-large / 8]],
    ]
    one = RegionMember((Split(0, 0.0), Split(0, 1.0), Split(0, -1.0)), votes, [VOTE_UNIT])
    stumps = Stump(0, 0.5, 1, 1, 0.1), Stump(0, 1.5, 1, -1, 0.1), Stump(0, 0.7, -1, 1, 0.1)
    other = Member(stumps, (2**52 * VOTE_UNIT, (2**52 - 1) * VOTE_UNIT, VOTE_UNIT))
    X = np.asarray([[-2.0], [-0.5], [0.6], [1.0], [2.0], [math.nan]])
    for each in (one, other):
        scores = added_up([each]).scores(X)
        assert scores.tolist() == exact_scores(each, X).tolist()
        assert len(set(scores[:, 0])) > 4


def test_scores_explanations_and_stages_are_exact_in_every_library(backend: Backend, model):
    X = table()
    expected = np.concatenate([exact_scores(one, X) for one in model.members], axis=1)
    there = backend.asarray(X)
    found = model.decision_function(there)
    assert backend.owns(found)
    scores = backend.to_numpy(found)
    assert scores.shape == ((70,) if model.is_binary else (70, len(model.classes)))
    assert scores.reshape(expected.shape).tolist() == expected.tolist()
    explained = model.explain(there)
    assert backend.owns(explained)
    assert backend.dtype_of(explained) == "float64"
    parts = backend.to_numpy(explained)
    assert parts.shape == (*scores.shape, N_FEATURES + 1)
    assert bits((parts.sum(axis=-1) + 0.0).ravel()) == bits((scores + 0.0).ravel())
    backwards = parts[..., ::-1].cumsum(axis=-1)[..., -1]
    assert bits((backwards + 0.0).ravel()) == bits((scores + 0.0).ravel())
    assert (parts[..., -1] == model.intercepts).all()
    stages = [backend.to_numpy(stage) for stage in model.staged_decision_function(there)]
    assert len(stages) == model.n_rounds == 15
    assert bits((stages[-1] + 0.0).ravel()) == bits((scores + 0.0).ravel())
    halfway = model.truncated(7)
    assert halfway.n_rounds == 7
    assert stages[6].tolist() == backend.to_numpy(halfway.decision_function(there)).tolist()
    labels = model.predict(there)
    wanted = (scores > 0) * 1 if model.is_binary else scores.argmax(axis=1)

    def on_host(own):  # text is NumPy's already
        return (backend.to_numpy(own) if backend.owns(own) else own).tolist()

    assert on_host(labels) == [model.classes[k] for k in wanted]
    assert backend.owns(labels) or isinstance(model.classes[0], str)
    *_, last = model.staged_predict(there)
    assert on_host(last) == on_host(labels)
    *_, last = model.staged_predict_proba(X)
    found = model.predict_proba(X)
    assert (last == found).all()
    np.testing.assert_allclose(np.exp(model.log_probabilities_of(scores)), found)
    if not model.is_shared and not model.is_binary:
        assert sum(len(terms) for terms in model.additive.rounds) == sum(map(len, model.members))


SCORES = np.asarray([
    [0.0, 0.0, 0.0], [1.0, -2.0, 0.5], [-30.0, 0.25, -29.0], [1e5, -1e5, 0.0], [1e5, 1e5, -1e5],
    [-1e5, -1e5, -1e5], [131072.0, -131072.0, 131071.5],
])  # fmt: skip


def test_probabilities_are_scipys_also_of_extreme_scores(backend: Backend):
    there = backend.asarray(SCORES)
    found = probabilities(there, "softmax")
    assert backend.owns(found)
    np.testing.assert_allclose(
        backend.to_numpy(found), softmax(2 * SCORES, axis=1), rtol=1e-13, atol=0
    )
    logs = backend.to_numpy(log_probabilities(there, "softmax"))
    np.testing.assert_allclose(logs, log_softmax(2 * SCORES, axis=1), rtol=1e-13, atol=1e-15)
    alone = expit(2 * SCORES[:3])  # these sums do not underflow
    found = backend.to_numpy(probabilities(there))
    np.testing.assert_allclose(found[:3], alone / alone.sum(axis=1, keepdims=True), rtol=1e-13)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(found[4], [0.5, 0.5, 0.0])
    assert np.isfinite(backend.to_numpy(log_probabilities(there))).all()
    for score in (0.0, 0.3, -7.0, 1e5, -1e5):
        two = backend.to_numpy(probabilities(backend.asarray(np.asarray([score]))))
        np.testing.assert_allclose(two, [[expit(-2 * score), expit(2 * score)]], rtol=1e-13)


@pytest.mark.parametrize("classes", [(-1, 1), (False, True), (0.5, 2.5), ("no", "yes")])
def test_labels_are_the_models_own_and_a_score_of_zero_gives_the_first(backend: Backend, classes):
    stumps = Stump(0, 0.5, 1, 1, 0.1), Stump(1, 0.5, 1, 1, 0.1)
    own = StumpEnsemble((Member(stumps, (0.5, 0.5)),), 2, classes=classes)
    X = backend.asarray(np.asarray([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    assert backend.to_numpy(own.decision_function(X)).tolist() == [1.0, 0.0, -1.0]
    labels, expected = own.predict(X), [classes[1], classes[0], classes[0]]
    if not isinstance(classes[0], str):
        assert backend.owns(labels)
        labels = backend.to_numpy(labels)
        assert labels.dtype.kind == np.asarray(expected).dtype.kind
    assert labels.tolist() == expected
    nothing = StumpEnsemble((Member((), ()),), 2)
    assert backend.to_numpy(nothing.predict(X)).tolist() == [-1, -1, -1]
    assert (list(nothing.staged_decision_function(X)), nothing.n_rounds) == ([], 0)
    assert nothing.feature_importances().tolist() == [0.0, 0.0]


def edited(**changes) -> StumpEnsemble:
    """MODEL with its first stump, or its first vote, changed."""
    first = MODEL.members[0]
    votes = (changes.pop("vote", first.votes[0]), *first.votes[1:])
    stumps = (dataclasses.replace(first.stumps[0], **changes), *first.stumps[1:])
    return dataclasses.replace(MODEL, members=(Member(stumps, votes), *MODEL.members[1:]))


def test_the_digest_covers_everything_that_makes_the_model_and_nothing_else():
    changed = [
        *(edited(**{name: value}) for name, value in [
            ("feature", 1), ("threshold", 5e-324), ("threshold", math.inf),
            ("threshold", -math.inf), ("polarity", -1), ("missing", -1),
            ("error", np.nextafter(0.1, 1.0).item()), ("vote", 1.0 + VOTE_UNIT),
        ]),
        dataclasses.replace(MODEL, n_features=4),
        dataclasses.replace(MODEL, classes=(10, 20, 31)),
        dataclasses.replace(MODEL, classes=("10", "20", "30")),
        dataclasses.replace(MODEL, members=MODEL.members[::-1]),
        MODEL.truncated(1),
    ]  # fmt: skip
    assert len({one.digest() for one in (MODEL, *changed)}) == len(changed) + 1
    # written down once: a change here breaks every digest that users have kept
    assert MODEL.digest() == "bbc8fe97b471f3e6c690d8b99897936d64e63bfa27d700175deafc4ff4329c5b"
    learnt = np.asarray([True, False, True])
    named = StumpEnsemble(
        MODEL.members, 3, MODEL.classes, ("a", "b", "c"), {"by": "me"}, missing_learnt=learnt
    )
    assert named.digest() == edited().digest() == MODEL.digest()
    assert named.truncated(1).missing_learnt == (True, False, True)
    assert dataclasses.replace(MODEL, missing_learnt=learnt) == MODEL
    own = made("shared")
    one = own.members[0]
    votes, constant = one.votes.copy(), one.constant.copy()
    votes[3, 2, 1] += VOTE_UNIT
    constant[2] += VOTE_UNIT
    splits = (Split(one.splits[0].feature, 0.123), *one.splits[1:])
    changed = [
        dataclasses.replace(own, members=(RegionMember(one.splits, votes, one.constant),)),
        dataclasses.replace(own, members=(RegionMember(one.splits, one.votes, constant),)),
        dataclasses.replace(own, members=(RegionMember(splits, one.votes, one.constant),)),
        dataclasses.replace(own, members=tuple(one.of_output(k) for k in range(4))),
        dataclasses.replace(own, link="softmax"),
        own.truncated(14),
    ]
    assert all(other != own for other in changed)
    assert len({own.digest(), *(other.digest() for other in changed)}) == 7


def shared_by(n_outputs: int) -> RegionMember:
    return region_member(np.random.default_rng(0), 3, 2, n_outputs)


DISCRETE = member(np.random.default_rng(0), 3, 2, exact=True)
FIVE = RegionMember((Split(5, 0.0),), np.zeros((1, 3, 1)), [0.0])


@pytest.mark.parametrize(
    ("members", "classes", "more", "said"),
    [
        ((shared_by(2),), (0, 1), {}, r"members must be 1 for 2 classes; got 1 with 2 outputs\."),
        ((shared_by(2),), (0, 1, 2), {}, r"must be 3 for 3 classes; got 1 with 2 outputs\."),
        ((shared_by(3),) * 3, (0, 1, 2), {}, r"got 3 with 3, 3, 3 outputs\."),
        ((shared_by(1),) * 2, (0, 1), {}, r"members must be 1 for 2 classes; got 2\."),
        ((), (0, 1), {}, r"members must be 1 for 2 classes; got 0\."),
        ((DISCRETE, shared_by(1)), (0, 1), {}, "must be of one type; got Member and RegionMember"),
        ((FIVE,), (0, 1), {}, "stumps use features 5 to 5, but n_features is 2"),
        ((DISCRETE,), (0, 1), {"feature_names": ("a",)}, "feature_names must name 2 features"),
        ((DISCRETE,), (0, 1), {"missing_learnt": (True,)}, "must say true or false for 2 features"),
        ((shared_by(1),), (0, 1), {"link": "probit"}, "; got 'probit'"),
        ((shared_by(1),), (0, 1), {"link": "softmax"}, "link must be 'logistic' for two classes"),
        ((DISCRETE,) * 3, (0, 1, 2), {"link": "softmax"}, "'logistic' for members with discrete"),
        ((shared_by(1),), (0, 1), {"link": "log"}, "link must be 'identity' or 'log' for a quant"),
        ((shared_by(1),), (), {}, "link must be 'identity' or 'log' for a quantity"),
        ((DISCRETE,), (), {"link": "log"}, "members must be of type RegionMember for a quantity"),
    ],
)
def test_parts_that_do_not_fit_are_refused(members, classes, more, said):
    with pytest.raises((ValueError, TypeError), match=said):
        StumpEnsemble(members, 2, classes, **more)


def test_discrete_members_are_given_to_those_who_need_signs():
    assert StumpEnsemble((DISCRETE,), 2).discrete_members == (DISCRETE,)
    with pytest.raises(TypeError, match="the model must have discrete votes"):
        _ = StumpEnsemble((shared_by(1),), 2).discrete_members
