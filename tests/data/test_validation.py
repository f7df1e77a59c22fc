"""Bad inputs are refused in every library; the message names the argument and what was found."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from backends import Backend

from gpustump import Member, Stump, StumpBoostingRegressor, StumpEnsemble, boost, fit_stump
from gpustump.data.parameters import check_bytes, check_monotone

X = np.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
y = np.asarray([1.0, -1.0, 1.0, -1.0])
STUMP = Stump(1, 3.0, 1, -1, 0.25)
MODEL = StumpEnsemble((Member((STUMP,), (1.0,)),), 2)
PREDICTING = [STUMP.predict, MODEL.predict, lambda X: list(MODEL.staged_decision_function(X))]
nan, inf = np.nan, np.inf


def refusal(error: type[Exception], call, *arguments) -> str:
    with pytest.raises(error) as caught:
        call(*arguments)
    message = str(caught.value)
    assert type(caught.value) is error
    assert message.endswith((".", "input")), message
    return message


BAD_TABLES = {
    "1-D": (X[:, 0], ValueError, ["X must have two dimensions", "(4,)", "Reshape your data"]),
    "3-D": (X[np.newaxis], ValueError, ["X must have two dimensions", "(1, 4, 2)"]),
    "0-D": (np.asarray(1.0), ValueError, ["X must have two dimensions", "()"]),
    "no samples": (X[:0], ValueError, ["X has 0 sample(s)", "(0, 2)"]),
    "no features": (X[:, :0], ValueError, ["X has 0 feature(s)", "(4, 0)"]),
    "complex": (X + 1j, ValueError, ["Complex data not supported", "X", "complex128"]),
}
BAD_HOST_TABLES = {
    "object": (X.astype(str).astype(object), TypeError, ["X has dtype object"]),
    "text": (X.astype(str), TypeError, ["X has dtype <U32", "Encode text"]),
    "dates": (X.astype("M8[s]"), TypeError, ["X has dtype datetime64", "Turn dates and durations"]),
    "records": (np.zeros((2, 1), dtype=[("a", "f8")]), TypeError, ["structured_to_unstructured"]),
    "long double": (X.astype(np.longdouble), TypeError, ["Convert it to float64"]),
    "ragged": ([[1.0, 2.0], [3.0]], ValueError, ["X cannot be made into an array"]),
    "None": (None, TypeError, ["X has dtype object"]),
}


def check_refusal(bad, call, *others) -> None:
    """Check that a call refuses its first argument, with these words."""
    value, error, phrases = bad
    message = refusal(error, call, value, *others)
    assert all(phrase in message for phrase in phrases), message


def test_bad_tables_are_refused_in_training_and_predicting(backend: Backend):
    for cases, asarray, labels in (
        (BAD_TABLES, backend.asarray, backend.asarray(y)),
        (BAD_HOST_TABLES, lambda value: value, y),
    ):
        for value, *expected in cases.values():
            bad = (asarray(value), *expected)
            for train in (fit_stump, boost):
                check_refusal(bad, train, labels)
            for predict in PREDICTING:
                check_refusal(bad, predict)


BAD_LABELS = {
    "too few": (y[:3], ValueError, ["X and y", "4 and 3"]),
    "only +1": (np.abs(y), ValueError, ["y holds the label +1 only"]),
    "only -1": (-np.abs(y), ValueError, ["y holds the label -1 only"]),
    "0 and 1": (np.asarray([0, 1, 0, 1]), ValueError, ["y must hold the labels -1 and +1", "0."]),
    "a third": (np.asarray([1, -1, 7, 1]), ValueError, ["y must hold", "also holds 7"]),
    "fraction": (np.asarray([1, -1, 0.5, 1]), ValueError, ["y must hold", "0.5"]),
    "booleans": (y > 0, ValueError, ["y must hold the labels -1 and +1", "0."]),
    "NaN": (np.asarray([1, -1, nan, 1]), ValueError, ["y contains NaN"]),
    "infinite": (np.asarray([1, -1, inf, 1]), ValueError, ["y must hold", "inf"]),
    "2-D": (y[:, np.newaxis], ValueError, ["y must have one dimension", "(4, 1)", "reshape(-1)"]),
    "0-D": (np.asarray(1.0), ValueError, ["y must have one dimension", "()"]),
    "complex": (y + 0j, TypeError, ["y has dtype complex128"]),
}
BAD_HOST_LABELS = {
    "text": (["+", "-", "+", "-"], TypeError, ["y has dtype <U1"]),
    "object": (y.astype(str).astype(object), TypeError, ["y has dtype object"]),
    "None": (None, TypeError, ["y has dtype object"]),
    "ragged": ([[1], [1, -1], [1], [1]], ValueError, ["y cannot be made into an array"]),
    "a number": (1, ValueError, ["y must have one dimension", "()"]),
}


def test_bad_labels_are_refused_beside_any_table(backend: Backend):
    table = backend.asarray(X)
    for cases, asarray in ((BAD_LABELS, backend.asarray), (BAD_HOST_LABELS, lambda value: value)):
        for kind, (value, *expected) in cases.items():
            if backend.on_gpu and kind == "object":
                continue  # arrays on the host are refused for being there
            for train in (fit_stump, boost):
                bad = (asarray(value), *expected)
                check_refusal(bad, lambda labels, own=train: own(table, labels))


BAD_WEIGHTS = {
    "too few": (np.ones(3), ValueError, ["X and sample_weight", "4 and 3"]),
    "2-D": (np.ones((4, 1)), ValueError, ["sample_weight must have one dimension", "(4, 1)"]),
    "NaN": (np.asarray([1, 2, nan, nan]), ValueError, ["sample_weight contains NaN", "index 2"]),
    "inf": (np.asarray([1, inf, 1, 1]), ValueError, ["sample_weight", "infinite", "index 1"]),
    "negative": (np.asarray([1, 1, 1, -0.5]), ValueError, ["sample_weight", "negative", "index 3"]),
    "zeros": (np.zeros(4), ValueError, ["sample_weight is zero for every sample"]),
    "all false": (np.zeros(4, dtype=bool), ValueError, ["sample_weight is zero"]),
    "one class": (np.asarray([1, 0, 1, 0]), ValueError, ["y, where sample_weight is not zero,"]),
    "complex": (np.ones(4) * 1j, TypeError, ["sample_weight has dtype complex128"]),
}


BAD_HOST_WEIGHTS = {
    "text": (["a"] * 4, TypeError, ["sample_weight has dtype <U1"]),
    "object": (np.full(4, "1", dtype=object), TypeError, ["sample_weight has dtype object"]),
    "one NaN": (nan, ValueError, ["sample_weight contains NaN"]),
    "below zero": (-1, ValueError, ["sample_weight contains negative"]),
    "one zero": (0.0, ValueError, ["sample_weight is zero for every sample"]),
}


def test_bad_weights_are_refused(backend: Backend):
    for cases, asarray in ((BAD_WEIGHTS, backend.asarray), (BAD_HOST_WEIGHTS, lambda own: own)):
        given = asarray(X), asarray(y)
        for value, *expected in cases.values():
            for train in (fit_stump, boost):
                call = functools.partial(train, *given)
                check_refusal((asarray(value), *expected), call)


def test_numbers_lists_and_numpys_arrays_are_taken_beside_any_table(backend: Backend):
    table, labels, weights = backend.asarray(X), backend.asarray(y), np.arange(1.0, 5.0)
    assert fit_stump(table, labels, 2) == fit_stump(table, labels) == fit_stump(X, y, [4] * 4)
    assert fit_stump(table, y.tolist(), [1, 2, 3, 4]) == fit_stump(X, y, weights)
    if not backend.on_gpu:
        assert fit_stump(table, y, weights) == fit_stump(X, y, weights)
        assert fit_stump(X, labels) == fit_stump(X, y)


@pytest.mark.parametrize("name", ["y", "sample_weight"])
def test_arrays_on_another_device_are_refused(name: str):
    strict = pytest.importorskip("array_api_strict")
    arrays = {"X": X, "y": y, "sample_weight": np.ones(4)}
    on = {key: strict.asarray(value) for key, value in arrays.items()}
    on[name] = strict.asarray(arrays[name], device=strict.Device("device1"))
    message = refusal(ValueError, fit_stump, *on.values())
    assert f"X is on cpu but {name} is on" in message
    assert "device1" in message
    there = {key: strict.asarray(v, device=strict.Device("device1")) for key, v in arrays.items()}
    there[name] = arrays[name]  # a NumPy array is not moved to a device unasked either
    message = refusal(ValueError, fit_stump, *there.values())
    assert f"but {name} is on cpu" in message


def test_bad_options_are_refused():
    for option, value, error in (
        ("learning_rate", 0.0, ValueError),
        ("learning_rate", 1j, TypeError),
        ("n_rounds", 0, ValueError),
        ("n_rounds", True, TypeError),
        ("block_bytes", 0, ValueError),
        ("block_bytes", 1.5, TypeError),
    ):
        with pytest.raises(error, match=f"{option}.*{value!r}"):
            boost(X, y, **{option: value})
    for bad in ("", "GB", "2 parsecs", "-1GB", "nanGB", "1e999", 0, -5):
        with pytest.raises(ValueError, match="max_memory must be"):
            check_bytes(bad, "max_memory")


@pytest.mark.parametrize(
    ("given", "found"),
    [(1000, 1000), ("2GB", 2 * 10**9), ("1.5 GiB", 3 * 2**29), (" 10 kb ", 10_000), ("7", 7)],
)
def test_sizes_may_be_numbers_or_text(given, found):
    assert check_bytes(given, "max_memory") == found


@pytest.mark.parametrize("n_features", [1, 3])
def test_another_number_of_features_is_refused_by_the_model(backend: Backend, n_features: int):
    table = backend.asarray(np.ones((4, n_features)))
    for predict in (MODEL.predict, MODEL.decision_function, MODEL.predict_proba):
        message = refusal(ValueError, predict, table)
        assert message.startswith(f"X has {n_features} features, but")
        assert "expecting 2 features" in message


def test_a_stump_needs_the_table_to_hold_its_feature(backend: Backend):
    message = refusal(ValueError, STUMP.predict, backend.asarray(np.ones((4, 1))))
    assert message == "X has 1 features, but at least 2 are needed here."
    assert STUMP.predict(backend.asarray(np.ones((4, 5)))).shape == (4,)


def test_nothing_given_is_changed(backend: Backend):
    before = X, y, np.asarray([1.0, 0.0, 2.0, 3.0])
    given = [backend.asarray(own) for own in before]
    list(boost(*given, n_rounds=3))
    for own, found in zip(before, given, strict=True):
        np.testing.assert_array_equal(backend.to_numpy(found), own)


def test_a_tensor_that_takes_gradients_is_accepted():
    torch = pytest.importorskip("torch")
    arguments = [torch.tensor(np.array(a), requires_grad=True) for a in (X, y, np.arange(1.0, 5.0))]
    assert fit_stump(*arguments) == fit_stump(X, y, np.arange(1.0, 5.0))
    assert MODEL.predict(arguments[0]).tolist() == MODEL.predict(X).tolist()


def test_numbers_among_pythons_objects_are_numbers_in_arrays_too():
    random = np.random.default_rng(0)
    X, y, weights = random.normal(size=(50, 2)), random.normal(size=50), random.random(50)
    expected = StumpBoostingRegressor(n_estimators=5).fit(X, y, weights, init_score=X[:, 0])
    own = (array.astype(object) for array in (X, y, weights))
    found = StumpBoostingRegressor(n_estimators=5).fit(*own, init_score=X[:, 0].astype(object))
    assert found.model_.digest() == expected.model_.digest()
    with pytest.raises(TypeError, match="y must hold real numbers"):
        StumpBoostingRegressor().fit(X, np.asarray(["1.5"] * 50, dtype=object))


def test_masked_arrays_are_refused_with_the_way_to_make_their_values_missing():
    hidden = np.ma.masked_array(X, mask=X == 1.0)
    assert "pass X.filled(numpy.nan)" in refusal(TypeError, fit_stump, hidden, y)


def test_names_are_looked_up_not_searched_for():
    class Counted(str):
        __slots__ = ()
        n_compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other):
            Counted.n_compared += 1
            return str.__eq__(self, other)

    names = [f"c{j}" for j in range(500)]
    wanted = {Counted(name): j % 3 - 1 for j, name in enumerate(names)}
    assert check_monotone(wanted, 500, names) == tuple(wanted.values())
    assert Counted.n_compared < 5 * 500
