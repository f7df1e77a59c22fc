"""Averages of models: as exact as any model, and the model of each bag can be restored from
them."""

from __future__ import annotations

import dataclasses
import json
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from forged_files import forged
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_models import region_model

from gpustump import Member, ModelFileError, RegionMember, Stump, StumpEnsemble
from gpustump.learners.step_table import VOTE_UNIT
from gpustump.model.bags import Bags, averaged, turns

SIZES = (3, 0, 5)


def models(n_classes: int, *, shared: bool = False, n_bags: int = 3) -> list[StumpEnsemble]:
    """Models of the same features and classes, with 3, 0 and 5 splits a member."""
    return [
        region_model(np.random.default_rng(seed), SIZES[seed % 3], 4, n_classes, shared=shared)
        for seed in range(n_bags)
    ]


def average(bags: list[StumpEnsemble]) -> StumpEnsemble:
    members, owners = averaged([bag.members for bag in bags])
    return dataclasses.replace(bags[0], members=members, bags=owners)


CASES = [(2, False), (3, False), (3, True)]
X = np.random.default_rng(3).normal(size=(50, 4))
X[::7, 1] = np.nan


@pytest.mark.parametrize(("n_classes", "shared"), CASES)
def test_every_vote_is_its_bags_vote_over_the_number_of_bags_rounded_to_the_unit(n_classes, shared):
    bags = models(n_classes, shared=shared)
    for number, member in enumerate(average(bags).members):
        own = [bag.members[number] for bag in bags]
        found = {
            (split, votes.tobytes())
            for split, votes in zip(member.splits, member.votes, strict=True)
        }
        wanted = set()
        for one in own:
            for split, votes in zip(one.splits, one.votes, strict=True):
                units = [round(Fraction(v) / 3 / Fraction(VOTE_UNIT)) for v in votes.ravel()]
                share = np.asarray(units).reshape(votes.shape) * VOTE_UNIT
                wanted.add((split, (share + 0.0).tobytes()))
        assert found == wanted
        assert len(member) == sum(map(len, own))


@pytest.mark.parametrize(("n_classes", "shared"), CASES)
def test_scores_are_the_mean_of_the_bags_but_for_the_rounding_of_votes(n_classes, shared):
    bags = models(n_classes, shared=shared)
    scores = average(bags).decision_function(X)
    mean = np.mean([bag.decision_function(X) for bag in bags], axis=0)
    assert np.abs(scores - mean).max() <= (sum(SIZES) + 1) * VOTE_UNIT / 2


@pytest.mark.parametrize(("n_classes", "shared"), CASES)
def test_the_bags_can_be_had_back_and_their_tables_average_to_the_models_to_the_last_bit(
    n_classes, shared
):
    bags = models(n_classes, shared=shared)
    model = average(bags)
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


def test_deviations_and_quantiles_are_those_of_the_bags():
    table = average(models(2)).shape_function(1)
    assert np.array_equal(table.deviations, np.std(table.bags, axis=0, ddof=1))
    assert np.array_equal(table.quantiles(0.5), np.median(table.bags, axis=0))
    assert table.quantiles([0.0, 1.0]).shape == (2, len(table.thresholds) + 1)
    plain = models(2)[0].shape_function(1)
    for spread in (lambda: plain.deviations, lambda: plain.quantiles(0.5)):
        with pytest.raises(ValueError, match="only tables of a bagged model have a spread"):
            spread()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_widest_range_of_probabilities_reaches_from_the_least_to_the_largest_of_a_bag(
    n_classes,
):
    model = average(models(n_classes))
    of_bags = [bag.predict_proba(X) for bag in model.bag_models]
    low, high = model.predict_proba_interval(X, coverage=1.0)
    assert np.array_equal(low, np.min(of_bags, axis=0))
    assert np.array_equal(high, np.max(of_bags, axis=0))
    inner = model.predict_proba_interval(X, coverage=0.5)
    ends = np.stack([low, *inner, high])
    assert (np.diff(ends, axis=0) >= 0).all()


def test_a_range_needs_bags_and_a_coverage_between_0_and_1():
    with pytest.raises(ValueError, match="need a bagged model"):
        models(2)[0].predict_proba_interval(X)
    for wrong in (0.0, 1.5, -1.0):
        with pytest.raises(ValueError, match="coverage must be"):
            average(models(2)).predict_proba_interval(X, wrong)


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


@given(st.lists(st.integers(0, 6), min_size=2, max_size=5))
def test_bags_take_turns_until_each_has_ended(sizes):
    left, expected = list(sizes), []
    while any(left):
        for bag in range(len(sizes)):
            if left[bag]:
                expected.append(bag)
                left[bag] -= 1
    assert turns(sizes).tolist() == expected


@settings(max_examples=20)
@given(st.integers(0, 30))
def test_a_truncated_average_knows_whose_terms_are_left(n_terms):
    model = average(models(3)).truncated(n_terms)
    for number, member in enumerate(model.members):
        assert len(member) == min(n_terms, sum(SIZES))
        assert sum(len(bag.members[number]) for bag in model.bag_models) == len(member)
    mean = np.mean([bag.decision_function(X) for bag in model.bag_models], axis=0)
    assert np.abs(model.decision_function(X) - mean).max() <= VOTE_UNIT / 2  # of the constants


@pytest.mark.parametrize(("n_classes", "shared"), CASES)
def test_a_file_keeps_the_bags_and_older_files_have_none(tmp_path, n_classes, shared):
    model = average(models(n_classes, shared=shared))
    model.save(tmp_path / "model.json")
    loaded = StumpEnsemble.load(tmp_path / "model.json")
    assert loaded == model
    assert loaded.bags == model.bags
    assert loaded.digest() == model.digest()
    document = json.loads((tmp_path / "model.json").read_text())
    del document["bags"]
    (tmp_path / "model.json").write_text(forged(document))
    plain = StumpEnsemble.load(tmp_path / "model.json")
    assert plain.bags is None
    assert plain.digest() == model.digest()


GOOD = {"sizes": [[3, 0, 5]], "constants": [[[0.5], [0.25], [0.0]]]}


@pytest.mark.parametrize(
    ("bags", "problem"),
    [
        (None, "bags must be an object of constants, sizes; got None"),
        ([], "bags must be an object of constants, sizes; got []"),
        ({"sizes": [[3, 5]]}, "bags must be an object of constants, sizes"),
        (GOOD | {"more": 1}, "bags must be an object of constants, sizes"),
        (GOOD | {"sizes": [[3, 0, 5.0]]}, "sizes must be a whole number, 0 or more; got 5.0"),
        (GOOD | {"sizes": [[3, 0, True]]}, "sizes must be a whole number, 0 or more; got True"),
        (GOOD | {"sizes": [[3, -1, 6]]}, "sizes must be a whole number, 0 or more; got -1"),
        (GOOD | {"sizes": [3, 0, 5]}, "sizes must be lists of lists; got 3"),
        (GOOD | {"sizes": [[3, 0, 6]]}, "must add up to 8, the terms of their member"),
        (GOOD | {"sizes": [[3, 0, 10**30]]}, "must add up to 8, the terms of their member"),
        (GOOD | {"sizes": [[3, 5]]}, "must give sizes and constants for every member"),
        (GOOD | {"sizes": []}, "must give sizes and constants for every member"),
        (GOOD | {"sizes": [[8]], "constants": [[[0.0]]]}, "the same two bags or more"),
        ({"sizes": [[3, 0, 5]] * 2, "constants": GOOD["constants"] * 2}, "be of 1 members; got 2"),
        (GOOD | {"constants": [[[0.5], [0.25], []]]}, "must be 1, one for each output"),
        (GOOD | {"constants": [[[0.5], [0.25], [0.1]]]}, "a whole multiple of 2\\*\\*-36"),
        (GOOD | {"constants": [[[0.5], [0.25], [-0.0]]]}, "zero as 0.0"),
        (GOOD | {"constants": [[[0.5], [0.25], ["1"]]]}, "got '1'"),
    ],
)
def test_files_with_bags_that_cannot_be_are_refused(tmp_path, bags, problem):
    path = tmp_path / "model.json"
    average(models(2)).save(path)
    path.write_text(forged(json.loads(path.read_text()) | {"bags": bags}))
    with pytest.raises(ModelFileError, match=problem.replace("[]", re.escape("[]"))):
        StumpEnsemble.load(path)


def test_a_model_refuses_bags_of_other_members():
    model = average(models(2))
    wrong: Any = Bags(((1, 1),), (((0.0,), (0.0,)),))
    with pytest.raises(ValueError, match="must add up to 8"):
        dataclasses.replace(model, bags=wrong)


def test_members_without_any_term_are_averaged_to_their_constants():
    bags = [(RegionMember((), np.zeros((0, 3, 1)), [own]),) for own in (0.5, -0.25)]
    (member,), _ = averaged(bags)
    assert len(member) == 0
    assert member.constant.tolist() == [0.125]
