"""What early stopping watches: the kernels give the numbers that array operations give."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from hypothesis import given, settings
from hypothesis import strategies as st

from gpustump.boosting.held_out.samples import HeldOut, HeldOutClasses, Watched
from gpustump.boosting.held_out.scores import scorer
from gpustump.data.parameters import SCORINGS
from gpustump.engines.cpu.predict import held_out_sums
from gpustump.engines.cpu.predict.held_out_sums import HeldOutSums
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.learners.step_table import VOTE_UNIT, VOTES_LIMIT


def watched(random: np.random.Generator, n_samples: int, n_outputs: int) -> list[Watched]:
    """Held-out samples, every class among them: without kernels, and with them."""
    n_classes = max(2, n_outputs)
    classes = random.integers(n_classes, size=n_samples)
    classes[:n_classes] = range(n_classes)
    weights = IntegerWeights.of(
        np.exp(random.normal(scale=random.choice([0.0, 9.0]), size=n_samples))
    )
    found: list[Watched] = []
    for sums in (None, HeldOutSums(classes, weights.values, n_classes, 2)):
        if n_outputs == 1:
            found.append(HeldOut(np.where(classes == 1, 1.0, -1.0), weights, sums=sums))
        else:
            found.append(HeldOutClasses(classes, weights, n_classes, sums=sums))
    return found


def any_scores(random: np.random.Generator, n_samples: int, n_outputs: int) -> np.ndarray:
    """Scores of any size that occur, with ties, zeros and the largest ones."""
    scale = random.choice([1e-9, 0.1, 3.0, 5e4])
    scores = np.rint(random.normal(size=(n_samples, n_outputs)) * scale / VOTE_UNIT) * VOTE_UNIT
    scores = np.clip(scores, VOTE_UNIT - VOTES_LIMIT, VOTES_LIMIT - VOTE_UNIT)
    scores[random.random(n_samples) < 0.2] = scores[0]
    scores[random.random(n_samples) < 0.1] = 0.0
    scores[-1] = VOTES_LIMIT - VOTE_UNIT
    return scores[:, 0] if n_outputs == 1 else scores


@settings(max_examples=100)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1, 3, 6]),
    st.sampled_from(SCORINGS),
    st.sampled_from(["logistic", "softmax"]),
)
def test_scores_and_errors_of_held_out_samples_are_those_of_array_operations(
    seed, n_outputs, scoring, link
):
    random = np.random.default_rng(seed)
    n_samples = int(random.integers(6, 300))
    link = "logistic" if n_outputs == 1 else link
    expected, found = watched(random, n_samples, n_outputs)
    scores = any_scores(random, n_samples, n_outputs)
    assert found.error(scores) == expected.error(scores)
    assert scorer(scoring, found, link)(scores) == scorer(scoring, expected, link)(scores)


@pytest.mark.parametrize("scoring", ["loss", "balanced_accuracy"])
def test_samples_in_many_pieces_are_each_counted_once(monkeypatch, scoring):
    monkeypatch.setattr(held_out_sums, "_PIECE", 100)
    random = np.random.default_rng(1)
    expected, found = watched(random, 1234, 3)
    scores = any_scores(random, 1234, 3)
    assert scorer(scoring, found)(scores) == scorer(scoring, expected)(scores)
