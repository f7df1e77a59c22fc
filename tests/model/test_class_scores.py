"""Probabilities of scores, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from backends import Backend
from scipy.special import expit, log_softmax, softmax

from gpustump.model.class_scores import log_probabilities, probabilities

SCORES = np.asarray(
    [
        [0.0, 0.0, 0.0],
        [1.0, -2.0, 0.5],
        [-30.0, 0.25, -29.0],
        [1e5, -1e5, 0.0],
        [1e5, 1e5, -1e5],
        [-1e5, -1e5, -1e5],
        [131072.0, -131072.0, 131071.5],
    ]
)


def test_softmax_is_scipys_for_twice_the_scores(backend: Backend):
    found = probabilities(backend.asarray(SCORES), "softmax")
    assert backend.owns(found)
    np.testing.assert_allclose(
        backend.to_numpy(found), softmax(2 * SCORES, axis=1), rtol=1e-13, atol=0
    )
    logs = backend.to_numpy(log_probabilities(backend.asarray(SCORES), "softmax"))
    assert np.isfinite(logs).all()
    np.testing.assert_allclose(logs, log_softmax(2 * SCORES, axis=1), rtol=1e-13, atol=1e-15)


def test_logistic_divides_each_classes_probability_by_their_sum(backend: Backend):
    """The sum of the first rows does not underflow, so it can be worked out plainly."""
    alone = expit(2 * SCORES[:3])
    expected = alone / alone.sum(axis=1, keepdims=True)
    found = backend.to_numpy(probabilities(backend.asarray(SCORES)))
    np.testing.assert_allclose(found[:3], expected, rtol=1e-13, atol=0)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
    assert (probabilities(SCORES, "logistic") == probabilities(SCORES)).all()
    assert np.isfinite(backend.to_numpy(log_probabilities(backend.asarray(SCORES)))).all()


@pytest.mark.parametrize("score", [0.0, 0.3, -7.0, 1e5, -1e5])
def test_two_classes_have_the_logistic_function_of_their_score(score):
    found = probabilities(np.asarray([score]))
    np.testing.assert_allclose(found, [[expit(-2 * score), expit(2 * score)]], rtol=1e-13)
