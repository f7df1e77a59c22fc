"""Edits of a model: an edited model scores rows as the model scores rows that are edited so."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import golden_models
import numpy as np
import pytest
from forged_files import document_of, refusal_of
from golden_models import KINDS

from gpustump import StumpEnsemble
from gpustump.learners.kinds import OfCategories

pytestmark = [
    pytest.mark.filterwarnings("ignore:values are missing:UserWarning"),
    pytest.mark.filterwarnings("ignore:.* has values that were not in training:UserWarning"),
]

NAMES = sorted(KINDS)


def loaded(name: str) -> tuple[StumpEnsemble, np.ndarray]:
    """A model of every kind, and rows at its thresholds."""
    model, rows = golden_models.loaded(name)
    random = np.random.default_rng(3)
    mixed = np.stack([random.choice(column, 100) for column in rows.T], axis=1)
    return model, np.vstack([rows, mixed])


def main_effects(model: StumpEnsemble, X: np.ndarray) -> np.ndarray:
    """What each feature adds by itself, (n_rows, ..., n_features)."""
    return model.explain(X)[..., : model.n_features]


def by_features(model: StumpEnsemble, X: np.ndarray) -> np.ndarray:
    """The scores without what pairs add; a flat stump may count for the intercept."""
    return replace(model, pairs=()).decision_function(X)


def used(model: StumpEnsemble) -> list[int]:
    return sorted(frozenset().union(*(own.used_features for own in model.effects)))


def numeric(model: StumpEnsemble) -> list[int]:
    """The features in use whose values are numbers."""
    every = [one for member in model.effects for one in member.hypotheses]
    sets = {one.feature for one in every if isinstance(one, OfCategories)}
    return [feature for feature in used(model) if feature not in sets]


def test_a_pair_is_known_by_its_name_unless_a_feature_has_that_name():
    model, _ = next(own for own in map(loaded, NAMES) if own[0].pairs)
    pair = model.pairs[0]
    name = model.term_names[model.n_features]
    assert model.without(name).digest() == model.without(pair.features).digest()
    names = [f"f{j}" for j in range(model.n_features)]
    named = replace(model, feature_names=tuple(names))
    names[0] = named.term_names[model.n_features]
    named = replace(model, feature_names=tuple(names))
    assert named.without(names[0]).digest() == model.without(0).digest()


@pytest.mark.parametrize("name", NAMES)
def test_without_a_term_the_other_terms_add_what_they_did(name, tmp_path):
    model, X = loaded(name)
    for feature in used(model):
        edited = model.without(feature)
        wanted = model.explain(X)
        wanted[..., feature] = 0.0
        assert np.array_equal(edited.explain(X), wanted)
        assert np.array_equal(edited.decision_function(X), wanted.sum(axis=-1))
        assert edited.digest() != model.digest()
        assert feature not in used(edited)
        for bag, before in zip(edited.bag_models, model.bag_models, strict=True):
            own = main_effects(before, X)
            own[..., feature] = 0.0
            assert np.array_equal(main_effects(bag, X), own)
    edited.save(tmp_path / "edited.json")
    again = StumpEnsemble.load(tmp_path / "edited.json")
    assert (again.digest(), again.edits) == (edited.digest(), edited.edits)
    assert again.edits.of == model.digest()
    assert np.array_equal(again.decision_function(X), edited.decision_function(X))


@pytest.mark.parametrize("name", NAMES)
def test_flat_over_a_range_every_value_counts_as_one_value_there(name, tmp_path):
    model, X = loaded(name)
    ranges = [(-math.inf, 0.5, 0.25), (-0.3, 1.0, 0.0), (0.0, math.inf, 0.75), (-1, 1.5, 1.5)]
    for feature in numeric(model):
        for above, upto, like in ranges:
            edit = {"term": feature, "edit": "flatten", "above": above, "upto": upto, "like": like}
            edited = model.edited([edit])
            column = X[:, feature]
            rows = X.copy()
            is_above = (column > above) | (above == -math.inf)
            rows[is_above & (column <= upto), feature] = like
            assert np.array_equal(by_features(edited, X), by_features(model, rows))
            for bag, before in zip(edited.bag_models, model.bag_models, strict=True):
                assert np.array_equal(by_features(bag, X), by_features(before, rows))
            edited.save(tmp_path / "edited.json")
            again = StumpEnsemble.load(tmp_path / "edited.json")
            assert again.edits == edited.edits
            assert again.digest() == edited.digest()
            *_, last = edited.staged_decision_function(X)
            assert np.array_equal(last, edited.decision_function(X))


def test_without_all_pairs_the_main_effects_stay_and_the_file_too(tmp_path):
    model, X = loaded("pairs-bags")
    edited = model
    for pair in model.pairs:
        edited = edited.without(pair.features)
    assert edited.pairs == ()
    assert np.array_equal(main_effects(edited, X), main_effects(model, X))
    edited.save(tmp_path / "edited.json")
    again = StumpEnsemble.load(tmp_path / "edited.json")
    assert np.array_equal(again.decision_function(X), edited.decision_function(X))
    assert len(again.edits.made) == len(model.pairs)
    *_, last = edited.staged_decision_function(X)
    assert np.array_equal(last, edited.decision_function(X))
    assert "edited" in edited._repr_html_()


FLAT = {"term": 0, "edit": "flatten"}
OF_ANOTHER = {"format": "gpustump edits", "model": "other", "edits": []}
WRONG: dict[str, tuple[str, Any, str]] = {
    "a feature without stumps": ("pairs", [{"term": 9, "edit": "without"}], "below 4"),
    "no such kind": ("pairs", [{"term": 0, "edit": "rise"}], "an edit must be of term and edit"),
    "another key": ("pairs", [{"term": 0, "edit": "without", "like": 1}], "must be of term and ed"),
    "no level": ("pairs", [FLAT | {"above": 1}], "like must be a finite number"),
    "a level outside": ("pairs", [FLAT | {"upto": 1, "like": 2}], "above < like <= upto"),
    "a pair": ("pairs", [FLAT | {"term": [2, 3], "like": 1}], "cannot be flattened"),
    "no such pair": ("pairs", [{"term": [0, 1], "edit": "without"}], "has no pair of 0 and 1"),
    "no pair": ("newton", [{"term": [0, 1], "edit": "without"}], "of 0 and 1; it has none"),
    "three features": ("pairs", [{"term": [0, 1, 2], "edit": "without"}], "one or two features"),
    "categories": ("categories-newton-bags", [FLAT | {"term": 2, "like": 1}], "has categories"),
    "another model": ("newton", OF_ANOTHER, "these edits are of the model 'other'"),
    "a number": ("newton", [3], "mapping with a term"),
    "no list": ("newton", 3, "edits must be an edit, several of them"),
    "no file": ("newton", "", "edits must be a file of edits; '' is a folder"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_edit_that_cannot_be_made_is_refused(name):
    kind, edits, message = WRONG[name]
    with pytest.raises((ValueError, TypeError), match=message):
        loaded(kind)[0].edited(edits)


FORGED = {
    "text": ("off", "edits: "),
    "no model": (
        {"of": 3, "made": [{"term": [0], "edit": "without"}]},
        "edits.of must be '3'; got 3",
    ),
    "a name": (
        {"of": "f00", "made": [{"term": "age", "edit": "without"}]},
        "edits: ",
    ),
    "too high": (
        {"of": "f00", "made": [{"term": [4], "edit": "without"}]},
        "features of the model",
    ),
    "a truth": ({"of": "f00", "made": [{"term": [True], "edit": "without"}]}, "edits.made[0]"),
    "no kind": ({"of": "f00", "made": [{"term": [0]}]}, "an edit must be of term and edit"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_file_with_other_edits_is_refused(name, tmp_path):
    edits, message = FORGED[name]
    document = document_of(loaded("newton")[0].without(0), tmp_path)
    assert message in refusal_of(document | {"edits": edits}, tmp_path)


def test_a_range_may_be_given_in_numbers_of_numpy():
    model = loaded("pairs")[0]
    given = FLAT | {"above": np.int64(-1), "like": np.float32(0.5), "upto": np.uint8(1)}
    wanted = FLAT | {"above": -1, "like": 0.5, "upto": 1}
    assert model.edited([given]).edits == model.edited([wanted]).edits
