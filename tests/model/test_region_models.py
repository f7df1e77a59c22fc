"""Models whose regions have votes of their own: one output, one class against the rest, shared."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from backends import Backend
from made_up_models import member, region_member, region_model, rows
from models_by_hand import bits
from scipy.special import softmax

from gpustump import Member, RegionMember, Split, StumpEnsemble
from gpustump.learners.hypothesis import regions

N_FEATURES = 4
KINDS = {
    "two classes": {"n_classes": 2},
    "against the rest": {"n_classes": 3},
    "against the rest, softmax": {"n_classes": 3, "link": "softmax"},
    "shared": {"n_classes": 4, "shared": True},
    "shared, softmax": {"n_classes": 3, "shared": True, "link": "softmax"},
}


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest) -> StumpEnsemble:
    return made(request.param)


def made(kind: str) -> StumpEnsemble:
    return region_model(np.random.default_rng(len(kind)), 15, N_FEATURES, **KINDS[kind])


def table() -> np.ndarray:
    return rows(np.random.default_rng(3), 70, N_FEATURES, "float64")


def naive_scores(model: StumpEnsemble, X: np.ndarray) -> np.ndarray:
    """The constant, and then vote by vote, (n_samples, n_outputs)."""
    parts = []
    for one in model.members:
        scores = np.tile(one.constant, (len(X), 1))
        for split, votes in zip(one.splits, one.votes, strict=True):
            scores = scores + votes[regions(split, X[:, split.feature])]
        parts.append(scores)
    return np.concatenate(parts, axis=1)


def test_scores_are_naive_sums_of_votes_in_every_library(backend: Backend, model):
    X = table()
    expected = naive_scores(model, X)
    found = model.decision_function(backend.asarray(X))
    assert backend.owns(found)
    scores = backend.to_numpy(found)
    assert scores.shape == ((70,) if model.is_binary else (70, len(model.classes)))
    assert scores.reshape(expected.shape).tolist() == expected.tolist()


def test_explanations_add_up_to_the_score_bit_for_bit_in_every_library(backend: Backend, model):
    X = backend.asarray(table())
    explained = model.explain(X)
    assert backend.owns(explained)
    parts, scores = backend.to_numpy(explained), backend.to_numpy(model.decision_function(X))
    assert parts.shape == (*scores.shape, N_FEATURES + 1)
    assert bits((parts.sum(axis=-1) + 0.0).ravel()) == bits((scores + 0.0).ravel())
    backwards = parts[..., ::-1].cumsum(axis=-1)[..., -1]
    assert bits((backwards + 0.0).ravel()) == bits((scores + 0.0).ravel())
    assert (parts[..., -1] == model.intercepts).all()


def test_stages_end_in_the_score_in_every_library(backend: Backend, model):
    X = backend.asarray(table())
    stages = [backend.to_numpy(stage) for stage in model.staged_decision_function(X)]
    assert len(stages) == model.n_rounds == 15
    scores = backend.to_numpy(model.decision_function(X))
    assert bits((stages[-1] + 0.0).ravel()) == bits((scores + 0.0).ravel())
    halfway = model.truncated(7)
    assert halfway.n_rounds == 7
    assert stages[6].tolist() == backend.to_numpy(halfway.decision_function(X)).tolist()
    assert model.truncated(0).intercepts == tuple(
        value for one in model.members for value in one.constant.tolist()
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_probabilities_follow_the_link(dtype):
    for kind, options in KINDS.items():
        model, X = made(kind), table().astype(dtype)
        scores = naive_scores(model, X)
        if options.get("link") == "softmax":
            expected = softmax(2 * scores, axis=1)
        else:
            alone = 1 / (1 + np.exp(-2 * scores))
            whole = np.concatenate([1 - alone, alone], axis=1) if model.is_binary else alone
            expected = whole / whole.sum(axis=1, keepdims=True)
        found = model.predict_proba(X)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        np.testing.assert_allclose(np.exp(model.log_probabilities_of(scores_of(model, X))), found)
        *_, last = model.staged_predict_proba(X)
        assert (last == found).all()
        labels = np.asarray(model.classes)[found.argmax(axis=1)]
        assert (model.predict(X) == labels).all()


def scores_of(model: StumpEnsemble, X: np.ndarray) -> np.ndarray:
    return model.decision_function(X)


def test_shape_functions_are_the_contributions(model):
    X = table()
    explained = model.explain(X).reshape(len(X), model.n_outputs, N_FEATURES + 1)
    for number, label in enumerate(model.classes[-model.n_outputs :]):
        assert model.output_index(label) == number
        for feature in range(N_FEATURES):
            shape = model.shape_function(feature, label=label)
            assert (shape.look_up(X[:, feature]) == explained[:, number, feature]).all()
        constant, tables = model.output_tables(number)
        assert constant == model.intercepts[number]
        assert all(one.values.ndim == 1 for one in tables)


def test_a_class_against_the_rest_has_its_own_thresholds_only():
    model = made("against the rest")
    for number, one in enumerate(model.members):
        own = {split.threshold for split in one.splits} | {math.inf}
        _, tables = model.output_tables(number)
        assert {at for found in tables for at in found.thresholds.tolist()} <= own
        assert model.output_member(number) is one
        assert model.member_index(model.classes[number]) == number


def test_the_one_member_that_classes_share_has_all_their_scores():
    model = made("shared")
    assert model.is_shared
    assert not model.is_binary
    assert (len(model.members), model.n_outputs) == (1, 4)
    assert [model.member_index(label) for label in model.classes] == [0] * 4
    assert [model.output_index(label) for label in model.classes] == [0, 1, 2, 3]
    X = table()
    scores = model.decision_function(X)
    for number in range(4):
        alone = StumpEnsemble((model.output_member(number),), N_FEATURES)
        assert alone.decision_function(X).tolist() == scores[:, number].tolist()


@pytest.mark.parametrize(("label", "kind"), [(None, "shared"), (9, "shared"), (0, "two classes")])
def test_a_label_without_a_score_is_refused(label, kind):
    for ask in (made(kind).output_index, made(kind).member_index):
        with pytest.raises(ValueError, match="label must be"):
            ask(label)


def test_importances_are_shares_of_half_the_differences_between_votes(model):
    weight = [Fraction(0)] * N_FEATURES
    for one in model.members:
        for split, votes in zip(one.splits, one.votes.tolist(), strict=True):
            reached = [votes[0], votes[2]] if split.threshold == math.inf else votes
            for of_output in zip(*reached, strict=True):
                weight[split.feature] += (Fraction(max(of_output)) - Fraction(min(of_output))) / 2
    expected = [float(one / sum(weight)) for one in weight]
    np.testing.assert_allclose(model.feature_importances(), expected, rtol=1e-12)
    assert model.used_features == {j for j, one in enumerate(weight) if one}


def test_contribution_importances_are_mean_absolute_deviations(model):
    X = table()
    parts = model.explain(X).reshape(len(X), model.n_outputs, -1)[:, :, :-1]
    deviations = np.abs(parts - parts.mean(axis=0)).mean(axis=0).sum(axis=0)
    found = model.contribution_importances(X)
    np.testing.assert_allclose(found, deviations / deviations.sum(), rtol=1e-9, atol=1e-12)


def test_contributions_have_a_name_each(model):
    names = model.contribution_names
    assert len(set(names)) == len(names) == model.n_outputs * (N_FEATURES + 1)


def test_models_are_shown_in_a_line_and_as_a_table(model):
    assert repr(model).startswith("StumpEnsemble of 15")
    assert len(repr(model).splitlines()) == 1
    assert model.digest() in model._repr_html_()
    assert ("shared by all classes" in model._repr_html_()) == model.is_shared


def test_models_come_back_from_pickle_and_copies(model):
    X = table()
    expected = model.decision_function(X)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert again == model
        assert hash(again.members) == hash(model.members)
        assert again.digest() == model.digest()
        assert (again.decision_function(X) == expected).all()


def test_the_digest_covers_every_number_and_the_link():
    model = made("shared")
    one = model.members[0]
    votes, constant = one.votes.copy(), one.constant.copy()
    votes[3, 2, 1] += 2.0**-36
    constant[2] += 2.0**-36
    splits = (Split(one.splits[0].feature, 0.123), *one.splits[1:])
    others = [
        dataclasses.replace(model, members=(RegionMember(one.splits, votes, one.constant),)),
        dataclasses.replace(model, members=(RegionMember(one.splits, one.votes, constant),)),
        dataclasses.replace(model, members=(RegionMember(splits, one.votes, one.constant),)),
        dataclasses.replace(model, members=tuple(one.of_output(k) for k in range(4))),
        dataclasses.replace(model, link="softmax"),
        model.truncated(14),
    ]
    assert all(other != model for other in others)
    assert len({model.digest(), *(other.digest() for other in others)}) == 7


def test_missing_values_that_were_not_in_training_are_warned_of():
    votes = np.asarray([[[1.0], [2.0], [3.0]]])
    model = StumpEnsemble(
        (RegionMember((Split(1, 0.5),), votes, [0.0]),), 2, missing_learnt=(False, False)
    )
    with pytest.warns(UserWarning, match="values are missing in features where none was missing"):
        assert model.decision_function([[0.0, math.nan]]).tolist() == [3.0]


def shared_by(n_outputs: int) -> RegionMember:
    return region_member(np.random.default_rng(0), 3, 2, n_outputs)


DISCRETE = member(np.random.default_rng(0), 3, 2, exact=True)


@pytest.mark.parametrize(
    ("members", "classes", "said"),
    [
        ((shared_by(2),), (0, 1), r"members must be 1 for 2 classes; got 1 with 2 outputs\."),
        ((shared_by(2),), (0, 1, 2), r"members must be 3 for 3 classes; got 1 with 2 outputs\."),
        ((shared_by(3),) * 3, (0, 1, 2), r"got 3 with 3, 3, 3 outputs\."),
        ((shared_by(2), shared_by(1)), (0, 1, 2), r"got 2 with 2, 1 outputs\."),
        ((shared_by(1),) * 2, (0, 1), r"members must be 1 for 2 classes; got 2\."),
        ((), (0, 1), r"members must be 1 for 2 classes; got 0\."),
    ],
)
def test_members_that_do_not_fit_the_classes_are_refused(members, classes, said):
    with pytest.raises(ValueError, match=said):
        StumpEnsemble(members, 2, classes)


def test_members_of_different_types_are_refused():
    with pytest.raises(TypeError, match="members must be of one type; got Member and RegionMember"):
        StumpEnsemble((DISCRETE, shared_by(1), shared_by(1)), 2, (0, 1, 2))


def test_features_beyond_the_models_are_refused():
    with pytest.raises(ValueError, match="stumps use features 5 to 5, but n_features is 2"):
        StumpEnsemble((RegionMember((Split(5, 0.0),), np.zeros((1, 3, 1)), [0.0]),), 2)


def test_links_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="; got 'probit'"):
        StumpEnsemble((shared_by(1),), 2, link="probit")
    with pytest.raises(ValueError, match=r"link must be 'logistic' for two classes, .* 'softmax'"):
        StumpEnsemble((shared_by(1),), 2, link="softmax")
    with pytest.raises(ValueError, match="'logistic' for members with discrete votes; got 'soft"):
        StumpEnsemble((DISCRETE,) * 3, 2, (0, 1, 2), link="softmax")


def test_discrete_members_are_given_to_those_who_need_signs():
    assert StumpEnsemble((DISCRETE,), 2).discrete_members == (DISCRETE,)
    assert isinstance(DISCRETE, Member)
    with pytest.raises(TypeError, match="the model must have discrete votes"):
        _ = StumpEnsemble((shared_by(1),), 2).discrete_members
