"""The samples that a seed sets aside are those of scikit-learn's own function."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from gpustump.estimators.stratified import Strata


def both(classes: np.ndarray, share: float, seed: int) -> list[list[list[int]] | None]:
    """The samples kept and set aside here and by scikit-learn; None for an error.

    scikit-learn gets the samples of classes with two or more; the others are kept.
    """
    is_lone = np.bincount(classes)[classes] == 1

    def by_scikit_learn() -> tuple[np.ndarray, np.ndarray]:
        index = np.flatnonzero(~is_lone)
        kept, apart = train_test_split(
            index, test_size=share, stratify=classes[index], random_state=seed
        )
        return np.sort([*kept, *np.flatnonzero(is_lone)]), np.sort(apart)

    found: list[list[list[int]] | None] = []
    for draw in (lambda: Strata.of(classes).drawn(share, seed), by_scikit_learn):
        try:
            found.append([own.tolist() for own in draw()])
        except ValueError:
            found.append(None)
    return found


@settings(max_examples=300)
@given(
    sizes=st.lists(st.one_of(st.integers(0, 4), st.integers(2, 60)), min_size=2, max_size=12),
    share=st.one_of(st.floats(0.001, 0.999), st.sampled_from([0.1, 0.15, 0.2, 0.25, 0.5, 0.9])),
    seed=st.integers(0, 2**32 - 1),
)
def test_classes_of_any_sizes_are_drawn_alike(sizes, share, seed):
    classes = np.repeat(np.arange(len(sizes)), sizes)
    np.random.default_rng(seed).shuffle(classes)
    if len(classes):
        ours, theirs = both(classes, share, seed)
        assert ours == theirs


def test_many_samples_are_drawn_alike():
    random = np.random.default_rng(0)
    for n_samples in (1000, 54_321):
        classes = random.choice(5, size=n_samples, p=[0.5, 0.3, 0.15, 0.04, 0.01])
        ours, theirs = both(classes, 0.15, 7)
        assert ours == theirs


def test_too_few_samples_are_refused_with_their_numbers():
    with pytest.raises(ValueError, match="every class has one sample only"):
        Strata.of(np.arange(5)).drawn(0.5, 0)
    with pytest.raises(
        ValueError, match=r"of 4 samples .* 1 would be set aside and 3 kept.* all 2"
    ):
        Strata.of(np.asarray([0, 0, 1, 1])).drawn(0.1, 0)


def test_a_class_of_one_sample_is_kept_and_changes_nothing_else():
    classes = np.arange(40) % 2
    kept, apart = Strata.of(classes).drawn(0.25, 3)
    with_lone = Strata.of(np.concatenate([classes, [2], [4]])).drawn(0.25, 3)
    assert with_lone[0].tolist() == [*kept.tolist(), 40, 41]
    assert with_lone[1].tolist() == apart.tolist()
