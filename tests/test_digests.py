"""One model from one data set: the same digest on every array library and every engine.

NumPy's model by the reference is what the others are compared with: their digests and their
decision values, bit for bit. The values are also compared with the stumps' votes added one by one
in plain Python. What the engines do inside, in blocks of every size, is compared in
tests/engines/test_conformance.py; here the models come from `boost`, as users get them.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from awkward_tables import ABOUT_LIBRARIES, Data, made, noisy, table
from backends import BACKENDS, NUMPY, Backend
from models_by_hand import (
    N_ROUNDS,
    bits,
    reference,
    scores_by_hand,
    skip_if_costly,
    skip_if_lacking,
    trained,
)

from gpustump import boost

NAMES = (*ABOUT_LIBRARIES, "float32_weights", "integer_weights", "learning_rate_three")
CASES = [(name, "stump") for name in NAMES] + [(name, "interval") for name in NAMES[::5]]


@pytest.mark.parametrize(("name", "weak_learner"), CASES)
def test_models_and_scores_are_the_same_in_every_library_and_by_hand(
    backend: Backend, name: str, weak_learner: str
):
    given, expected = made(name), reference(name, weak_learner)
    skip_if_lacking(backend, given)
    decision = expected.decision_function(backend.asarray(given.X))
    assert backend.owns(decision)
    assert bits(backend.to_numpy(decision)) == bits(scores_by_hand(expected, given.X))
    skip_if_costly(backend, CASES.index((name, weak_learner)))
    model = trained(backend, given, N_ROUNDS, None, weak_learner=weak_learner)
    assert model.members == expected.members
    assert model.digest() == expected.digest()


@pytest.mark.slow
def test_digest_of_many_samples_is_the_same_in_every_library(backend: Backend):
    given = many_samples()
    expected = trained(NUMPY, given, 8, 10**6)
    for block_bytes in (None,) if backend.name == "jax" else (None, 3 * 10**6):
        model = trained(backend, given, 8, block_bytes)
        assert model.digest() == expected.digest()
    decision = backend.to_numpy(expected.decision_function(backend.asarray(given.X)))
    assert bits(decision) == bits(NUMPY.to_numpy(expected.decision_function(given.X)))


@functools.cache
def many_samples() -> Data:
    """Enough for libraries to use several threads, or sums in parts."""
    rng = np.random.default_rng(0)
    X = table(rng, (70_000, 4)).astype(np.float32)
    return noisy(X, rng, sample_weight=10.0 ** rng.uniform(-6, 6, size=len(X)))


def test_digest_does_not_depend_on_the_number_of_threads():
    torch = pytest.importorskip("torch")
    before, given = torch.get_num_threads(), many_samples()
    backend = next(b for b in BACKENDS if b.name == "torch")
    try:
        digests = set()
        for n_threads in (1, 2, 3):
            torch.set_num_threads(n_threads)
            digests.add(trained(backend, given, 4, None).digest())
    finally:
        torch.set_num_threads(before)
    assert len(digests) == 1


def test_a_processor_told_to_flush_subnormals_changes_nothing_where_there_are_none():
    """A mode that PyTorch offers, and that some libraries set for everyone when they load."""
    torch, name = pytest.importorskip("torch"), "weights_over_12_orders_of_magnitude"
    expected, given = reference(name), made(name)
    scores = bits(expected.decision_function(given.X))
    if not torch.set_flush_denormal(True):
        pytest.skip("the processor has no such mode")
    try:
        model = trained(NUMPY, given, N_ROUNDS, None)
        flushed = bits(expected.decision_function(given.X))
    finally:
        torch.set_flush_denormal(False)
    assert model.digest() == expected.digest()
    assert flushed == scores


def test_arrays_of_one_device_never_meet_those_of_another():
    """array-api-strict has devices that refuse to mix: whatever is made must be made beside X."""
    strict = pytest.importorskip("array_api_strict")
    device = strict.Device("device1")
    for name in ("missing", "zero_weights", "full_of_ties"):
        given = made(name)
        weights = given.sample_weight
        X, y = (strict.asarray(np.array(a), device=device) for a in (given.X, given.y))
        if weights is not None:
            weights = strict.asarray(np.array(weights), device=device)
        records = list(boost(X, y, weights, n_rounds=4, block_bytes=5000))
        assert tuple(r.stump for r in records) == reference(name).members[0].stumps[:4]
        decision = reference(name).decision_function(X)
        assert decision.device == device
        assert reference(name).predict(X).device == device
        for stage in reference(name).staged_decision_function(X):
            assert stage.device == device
