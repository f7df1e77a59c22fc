"""The scan finds the stump, or interval, of least error: proved against brute force in rationals.

The data are drawn to be awkward: few distinct values, so that ties abound; missing values,
infinities, subnormal numbers, neighbours among the floats, values whose sum overflows; every dtype.
The weights are small integers times powers of two, which the package's integers hold exactly, so
the two must agree exactly: feature, threshold, both signs, error and predictions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from backends import NUMPY, Backend
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Best, best_stump

from gpustump import Interval, Stump, boost, fit_interval, fit_stump

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
WORKING = {"int32": "float64", "uint32": "float64", "int64": "float64", "uint64": "float64"}
WORKING |= dict.fromkeys(("bool", "int8", "uint8", "int16", "uint16"), "float32")
EXAMPLES = {"numpy-sorted": 60, "numpy-coded": 60, "jax": 6}
"""How many problems are drawn where every library is tried; 30 for the others.

NumPy has tests of its own here, and the conformance suite compares the others with it.
"""


def awkward_floats(dtype: str) -> st.SearchStrategy[float]:
    """Values of a float dtype that are likely to meet again, to be neighbours, or to overflow."""
    info = np.finfo(dtype)
    tiny, top, one = float(info.smallest_subnormal), float(info.max), float(info.eps)
    pool = [0.0, -0.0, 1.0, 1 + one, 1 + 2 * one, 1 - one / 2, -1.0, 2.0, 3.0, math.nan]
    pool += [tiny, 2 * tiny, 3 * tiny, -tiny, float(info.smallest_normal), -2 * tiny]
    pool += [top, float(np.nextafter(info.max, info.dtype.type(0))), -top, math.inf, -math.inf]
    return st.sampled_from(pool) | st.floats(width=int(dtype.removeprefix("float")))


def awkward_values(dtype: str) -> st.SearchStrategy[float | int | bool]:
    if dtype == "bool":
        return st.booleans()
    if dtype in FLOATS:
        return awkward_floats(dtype)
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    few = st.integers(0, 3)
    ends = st.sampled_from([low, low + 1, high - 1, high])
    wide = st.integers(low, high)
    if high > 2**53:
        few |= st.integers(2**53 - 2, 2**53 + 5)
    return few | ends | wide


@st.composite
def weights(draw: st.DrawFn, n_samples: int) -> list[float] | None:
    """None, or small integers times powers of two within 2**40 of each other, in any unit."""
    kind = draw(st.sampled_from(["none", "ones", "few", "dyadic"]))
    if kind == "none":
        return None
    if kind == "ones":
        return [1.0] * n_samples
    if kind == "few":
        return draw(
            st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0]), min_size=n_samples, max_size=n_samples)
        )
    unit = draw(st.sampled_from([2.0**-1000, 2.0**-300, 1.0, 2.0**960]))
    one = st.builds(math.ldexp, st.integers(0, 1023), st.integers(-15, 15)).map(lambda w: w * unit)
    return draw(st.lists(one, min_size=n_samples, max_size=n_samples))


@st.composite
def problems(draw: st.DrawFn, dtypes: tuple[str, ...], shape: tuple[int, int] | None = None):
    """A table, labels of both signs among the samples that weigh anything, and weights."""
    n_samples, n_features = shape or (draw(st.integers(2, 9)), draw(st.integers(1, 4)))
    dtype = draw(st.sampled_from(dtypes))
    pool = draw(st.lists(awkward_values(dtype), min_size=1, max_size=5))
    value = st.sampled_from(pool) if draw(st.booleans()) else awkward_values(dtype)
    flat = draw(st.lists(value, min_size=n_samples * n_features, max_size=n_samples * n_features))
    X = np.asarray(flat, dtype=dtype).reshape(n_samples, n_features)
    y = draw(st.lists(st.sampled_from([-1, 1]), min_size=n_samples, max_size=n_samples))
    w = draw(weights(n_samples))
    for at, label in ((0, 1), (1, -1)):
        y[at] = label
        if w is not None and w[at] == 0.0:
            w[at] = max(w) or 1.0
    return X, y, w


def as_floats(X: np.ndarray) -> list[list[float]]:
    """The rows as Python floats: what each value stands for when it is compared."""
    return [[float(value) for value in row] for row in X.tolist()]


def as_found(best: Best) -> Stump | Interval:
    rest = (best.polarity, best.missing, float(best.error))
    if best.low is None:
        return Stump(best.feature, best.threshold, *rest)
    return Interval(best.feature, best.low, best.threshold, *rest)


def check(
    backend: Backend,
    X: np.ndarray,
    y: list[int],
    w: list[float] | None,
    find: Callable[..., Stump | Interval] = fit_stump,
    **how,
) -> None:
    dtype = WORKING.get(X.dtype.name, X.dtype.name)
    expected = best_stump(as_floats(X), y, w, dtype=dtype, intervals=find is fit_interval)
    table = backend.asarray(X)
    given_weights = None if w is None else backend.asarray(np.asarray(w))
    found = find(table, backend.asarray(np.asarray(y)), given_weights, **how)
    assert found == as_found(expected)
    assert all(math.copysign(1.0, at) == 1.0 for at in found.thresholds if at == 0.0)
    predicted = backend.to_numpy(found.predict(table)).tolist()
    assert predicted == [expected.predict(row) for row in as_floats(X)]


NAN, INF = math.nan, math.inf
EDGES = [
    pytest.param(fit_stump, np.asarray([[5e-324], [0.0]]), None, id="subnormal"),
    pytest.param(fit_stump, np.asarray([[-5e-324], [0.0], [-0.0]]), 1, id="zeros"),
    pytest.param(fit_stump, np.asarray([[5e-324], [-1e-323]]), None, id="no minus zero"),
    pytest.param(fit_stump, np.asarray([[1.7e308], [1.6e308]]), None, id="overflow"),
    pytest.param(fit_stump, np.asarray([[-INF], [INF], [NAN]]), None, id="infinite"),
    pytest.param(fit_stump, np.asarray([[NAN], [1.0], [NAN]]), None, id="one value"),
    pytest.param(fit_stump, np.asarray([[NAN], [NAN], [NAN]]), None, id="no value"),
    pytest.param(fit_stump, np.asarray([[2**53], [2**53 + 1]]), None, id="one float, so no split"),
    pytest.param(fit_stump, np.asarray([[2**64 - 1], [2**63]], np.uint64), None, id="uint64"),
    pytest.param(fit_interval, np.asarray([[-INF], [-1e308], [INF], [NAN]]), None, id="inside"),
    pytest.param(fit_interval, np.asarray([[5e-324], [0.0], [-5e-324]]), 1, id="about zero"),
]


@pytest.mark.parametrize(("find", "X", "block_bytes"), EDGES)
def test_at_the_ends_of_a_dtype_it_is_the_oracles(find, X, block_bytes):
    check(NUMPY, X, [1, -1, 1, -1][: len(X)], None, find=find, block_bytes=block_bytes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtypes", "find"),
    [(FLOATS, fit_stump), ((*INTEGERS, "bool"), fit_stump), (FLOATS, fit_interval)],
    ids=["floats", "integers", "intervals"],
)
@settings(max_examples=200)
@given(data=st.data(), block_bytes=st.sampled_from([None, 1, 200, 1000]))
def test_what_is_found_is_the_oracles_in_blocks_of_any_size(dtypes, find, data, block_bytes):
    check(NUMPY, *data.draw(problems(dtypes)), find=find, block_bytes=block_bytes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtypes", "find", "share"),
    [
        pytest.param(FLOATS, fit_stump, 1.0, id="floats"),
        pytest.param(
            ("bool", "int8", "uint8", "int16", "int32", "int64"), fit_stump, 0.6, id="integers"
        ),
        pytest.param((*FLOATS, "int8", "int64"), fit_interval, 1 / 3, id="intervals"),
    ],
)
def test_what_is_found_is_the_oracles_in_every_library(backend: Backend, dtypes, find, share):
    """Problems of one shape, as JAX compiles anew for every shape."""

    @settings(max_examples=int(share * EXAMPLES.get(backend.name, 30)))
    @given(problems(tuple(d for d in dtypes if d not in backend.lacks), shape=(7, 3)))
    def what_is_found_is_the_oracles(problem):
        check(backend, *problem, find=find)

    what_is_found_is_the_oracles()


@pytest.mark.parametrize("dtype", ["uint16", "uint64"])
def test_wide_unsigned_integers_are_accepted_by_every_library(backend: Backend, dtype: str):
    top = int(np.iinfo(dtype).max)
    X = np.asarray([[0, 3], [1, top], [2, top - 1], [top, 0]], dtype=dtype)
    for w in ([1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 1.0, 4.0]):
        check(backend, X, [1, -1, 1, -1], w)


@settings(max_examples=100)
@given(
    problems(("float64", "int8"), shape=(8, 2)),
    st.sampled_from([1.0, 0.5]),
    st.sampled_from(["stump", "interval"]),
)
def test_every_round_takes_the_oracles_choice_under_its_own_integer_weights(
    problem, learning_rate, weak_learner
):
    X, y, w = problem
    run = boost(X, y, w, learning_rate=learning_rate, n_rounds=6, weak_learner=weak_learner)
    is_interval = weak_learner == "interval"
    kept = range(len(y)) if w is None else [i for i, one in enumerate(w) if one > 0]
    rows = [as_floats(X)[i] for i in kept]
    labels = [y[i] for i in kept]
    while True:
        integers = [math.ceil(Fraction(one)) for one in run.weights.tolist()]
        record = next(run, None)
        if record is None:
            return
        dtype = WORKING.get(X.dtype.name, X.dtype.name)
        expected = best_stump(rows, labels, integers, dtype=dtype, intervals=is_interval)
        assert record.stump == as_found(expected)
