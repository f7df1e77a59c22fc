"""Averages of models: as exact as any model, and the model of each bag can be restored."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_models import region_model

from gpustump import Member, RegionMember, Stump, StumpEnsemble
from gpustump.learners.step_table import VOTE_UNIT
from gpustump.model.bags import Bags, averaged, turns

SIZES = (3, 0, 5)
X = np.random.default_rng(3).normal(size=(50, 4))
X[::7, 1] = np.nan


def models(n_classes: int, *, shared: bool = False, n_bags: int = 3) -> list[StumpEnsemble]:
    """Models of the same features and classes, with 3, 0 and 5 splits a member."""
    return [
        region_model(np.random.default_rng(seed), SIZES[seed % 3], 4, n_classes, shared=shared)
        for seed in range(n_bags)
    ]


def average(bags: list[StumpEnsemble]) -> StumpEnsemble:
    members, owners = averaged([bag.members for bag in bags])
    return dataclasses.replace(bags[0], members=members, bags=owners)


@pytest.mark.parametrize(("n_classes", "shared"), [(2, False), (3, False), (3, True)])
def test_an_average_is_exact_and_its_bags_can_be_had_back(n_classes, shared):
    bags = models(n_classes, shared=shared)
    model = average(bags)
    for number, member in enumerate(model.members):
        found = {
            (split, votes.tobytes())
            for split, votes in zip(member.splits, member.votes, strict=True)
        }
        wanted = set()
        for one in (bag.members[number] for bag in bags):
            for split, votes in zip(one.splits, one.votes, strict=True):
                units = [round(Fraction(v) / 3 / Fraction(VOTE_UNIT)) for v in votes.ravel()]
                share = np.asarray(units).reshape(votes.shape) * VOTE_UNIT
                wanted.add((split, (share + 0.0).tobytes()))
        assert found == wanted
        assert len(member) == sum(SIZES)
    mean = np.mean([bag.decision_function(X) for bag in bags], axis=0)
    off = np.abs(model.decision_function(X) - mean).max()
    assert off <= (sum(SIZES) + 1) * VOTE_UNIT / 2
    assert model.n_bags == len(model.bag_models) == 3
    for bag, found in zip(bags, model.bag_models, strict=True):
        off = np.abs(found.decision_function(X) - bag.decision_function(X)).max()
        assert off <= 5 * 3 * VOTE_UNIT / 2
    for label in model.classes[1:] if model.is_binary else model.classes:
        for feature in range(4):
            table = model.shape_function(feature, label=label)
            assert table.bags.shape == (3, len(table.thresholds) + 1)
            assert np.array_equal(table.bags.mean(axis=0), table.outcomes)
            for own, bag in zip(table.bags, model.bag_models, strict=True):
                single = bag.shape_function(feature, label=label)
                assert np.array_equal(own[:-1], single.look_up(table.thresholds))
                assert own[-1] == single.missing
            assert np.array_equal(table.deviations, np.std(table.bags, axis=0, ddof=1))
            assert np.array_equal(table.quantiles(0.5), np.median(table.bags, axis=0))
            assert table.quantiles([0.0, 1.0]).shape == (2, len(table.thresholds) + 1)
    of_bags = [bag.predict_proba(X) for bag in model.bag_models]
    low, high = model.predict_proba_interval(X, coverage=1.0)
    assert np.array_equal(low, np.min(of_bags, axis=0))
    assert np.array_equal(high, np.max(of_bags, axis=0))
    inner = model.predict_proba_interval(X, coverage=0.5)
    np.testing.assert_allclose(inner, np.quantile(of_bags, [0.25, 0.75], axis=0))


def test_what_needs_bags_and_a_coverage_says_so():
    plain = models(2)[0]
    table = plain.shape_function(1)
    for spread in (lambda: table.deviations, lambda: table.quantiles(0.5)):
        with pytest.raises(ValueError, match="only tables of a bagged model have a spread"):
            spread()
    with pytest.raises(ValueError, match="need a bagged model"):
        plain.predict_proba_interval(X)
    with pytest.raises(TypeError, match="this model predicts classes"):
        average(models(2)).predict_interval(X)
    for wrong in (0.0, 1.5, -1.0):
        with pytest.raises(ValueError, match="coverage must be"):
            average(models(2)).predict_proba_interval(X, wrong)
    wrong_bags: Any = Bags(((1, 1),), (((0.0,), (0.0,)),))
    with pytest.raises(ValueError, match="must add up to 8"):
        dataclasses.replace(average(models(2)), bags=wrong_bags)


def test_discrete_votes_are_averaged_too_with_their_stumps_kept():
    stumps = [Stump(feature, 0.5, 1, -1, 0.25) for feature in range(4)]
    bags = [
        StumpEnsemble((Member(tuple(stumps[:2]), (1.0, 0.5)),), 4),
        StumpEnsemble((Member(tuple(stumps[2:]), (0.25, VOTE_UNIT)),), 4),
    ]
    (member,), owners = averaged([bag.members for bag in bags])
    assert member.stumps == (stumps[0], stumps[2], stumps[1], stumps[3])
    assert member.votes == (0.5, 0.125, 0.25, 0.0)  # half a unit is rounded to an even number
    assert owners.sizes == ((2, 2),)
    first = dataclasses.replace(bags[0], members=(member,), bags=owners).bag_models[0]
    assert first.members == bags[0].members
    empty = [(RegionMember((), np.zeros((0, 3, 1)), [own]),) for own in (0.5, -0.25)]
    (member,), _ = averaged(empty)
    assert (len(member), member.constant.tolist()) == (0, [0.125])


@given(st.lists(st.integers(0, 6), min_size=2, max_size=5))
def test_bags_take_turns_until_each_has_ended(sizes):
    left, expected = list(sizes), []
    while any(left):
        for bag in range(len(sizes)):
            if left[bag]:
                expected.append(bag)
                left[bag] -= 1
    assert turns(sizes).tolist() == expected


@pytest.mark.parametrize("n_terms", [0, 1, 4, 7, 30])
def test_a_truncated_average_knows_whose_terms_are_left(n_terms):
    model = average(models(3)).truncated(n_terms)
    for number, member in enumerate(model.members):
        assert len(member) == min(n_terms, sum(SIZES))
        assert sum(len(bag.members[number]) for bag in model.bag_models) == len(member)
    mean = np.mean([bag.decision_function(X) for bag in model.bag_models], axis=0)
    assert np.abs(model.decision_function(X) - mean).max() <= VOTE_UNIT / 2  # of the constants
