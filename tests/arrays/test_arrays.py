"""Keys that sort as floats do, thresholds rounded down, and names of devices and libraries.

Keys are proved against Python's own float comparison, for every float16 there is and for awkward
values of the wider types, in every library: XLA flushes subnormal numbers in comparisons, so that
comparing floats there would be wrong.
"""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from backends import Backend
from hypothesis import given
from hypothesis import strategies as st

from gpustump import Stump, arrays
from gpustump.learners.thresholds import rounded_down

WIDTHS = {"float16": 16, "float32": 32, "float64": 64}


def every_float16() -> np.ndarray:
    return np.arange(2**16, dtype=np.uint16).view(np.float16)


def awkward(dtype: str) -> np.ndarray:
    """Positive and negative values at every edge of a float dtype, and NaN of both signs."""
    info, one = np.finfo(dtype), np.asarray(1.0, dtype)
    up, down = np.asarray(np.inf, dtype), np.asarray(-np.inf, dtype)
    edges = [0.0, info.smallest_subnormal, 2 * info.smallest_subnormal, info.smallest_normal]
    edges += [np.nextafter(info.smallest_normal, down), np.nextafter(info.smallest_normal, up)]
    edges += [one, np.nextafter(one, up), np.nextafter(one, down), info.max, up, np.nan]
    values = np.asarray(edges, dtype=dtype)
    return np.concatenate([values, -values])


def keys_on(backend: Backend, values: np.ndarray) -> np.ndarray:
    x = backend.asarray(values)
    with arrays.computing_on(x):
        keys = arrays.order_keys(x)
    assert backend.dtype_of(keys) == f"int{WIDTHS[values.dtype.name]}"
    return backend.to_numpy(keys)


@pytest.mark.parametrize("dtype", WIDTHS)
def test_keys_compare_as_the_floats_do(backend: Backend, dtype: str):
    if dtype in backend.lacks:
        pytest.skip(f"{backend.name} has no {dtype}")
    values = awkward(dtype)
    keys = keys_on(backend, values).tolist()
    numbers = [float(value) for value in values]
    for a, key_a in zip(numbers, keys, strict=True):
        for b, key_b in zip(numbers, keys, strict=True):
            if math.isnan(a) or math.isnan(b):
                assert (key_a < key_b) == (math.isnan(b) and not math.isnan(a))
            else:
                assert (key_a < key_b, key_a == key_b) == (a < b, a == b)


def test_keys_of_every_float16_are_in_order(backend: Backend):
    if "float16" in backend.lacks:
        pytest.skip(f"{backend.name} has no float16")
    values = every_float16()
    keys = keys_on(backend, values).astype(np.int64)
    missing = np.isnan(values)
    assert set(keys[missing].tolist()) == {arrays.missing_key("float16")}
    assert keys[~missing].max() < arrays.missing_key("float16")
    distinct = np.unique(values[~missing].astype(np.float64))
    order = np.argsort(keys[~missing], kind="stable")
    steps = np.diff(keys[~missing][order]), np.diff(values[~missing][order].astype(np.float64))
    assert ((steps[0] > 0) == (steps[1] > 0)).all()
    assert (steps[1] >= 0).all()
    assert len(np.unique(keys[~missing])) == len(distinct)


@given(st.floats(), st.floats())
def test_keys_compare_as_any_two_floats_do(a, b):
    key_a, key_b = arrays.order_keys(np.asarray([a, b])).tolist()
    if math.isnan(a) or math.isnan(b):
        assert (key_a < key_b) == (math.isnan(b) and not math.isnan(a))
    else:
        assert (key_a < key_b, key_a == key_b) == (a < b, a == b)


def test_keys_of_nan_do_not_depend_on_its_sign_or_payload(backend: Backend):
    patterns = [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0xFFFFFFFFFFFFFFFF]
    values = np.asarray(patterns, dtype=np.uint64).view(np.float64)
    assert keys_on(backend, values).tolist() == [2**63 - 1] * 4


@given(st.floats(allow_nan=False), st.sampled_from(["float16", "float32", "float64"]))
def test_rounding_down_gives_the_largest_value_not_above(threshold, dtype):
    with np.errstate(over="ignore"):
        (rounded,) = rounded_down(np.asarray([threshold]), dtype)
        assert rounded.dtype == dtype
        assert float(rounded) <= threshold
        above = np.nextafter(rounded, np.asarray(np.inf, dtype=dtype))
    assert float(above) > threshold or rounded == np.inf


@pytest.mark.parametrize("dtype", WIDTHS)
def test_rounding_down_at_the_ends_of_a_dtype_is_silent(dtype):
    info = np.finfo(dtype)
    ends = [float(info.max), -float(info.max), float(info.smallest_subnormal), 0.0, -0.0]
    ends += [-float(info.smallest_subnormal), np.inf, -np.inf, 1.7e308, -1.7e308, 5e-324, -5e-324]
    rounded = rounded_down(np.asarray(ends), dtype).astype(float).tolist()
    assert all(low <= end for low, end in zip(rounded, ends, strict=True))
    assert rounded[:2] == ends[:2]


def test_every_float16_is_compared_with_a_float64_threshold_as_real_numbers(backend: Backend):
    if "float16" in backend.lacks:
        pytest.skip(f"{backend.name} has no float16")
    values = every_float16()
    X = backend.asarray(values.reshape(-1, 1))
    wide = values.astype(np.float64)
    for threshold in (0.1, -0.1, 1e-9, -1e-9, 65504.0, 65503.9, 65519.9, 1e9, -1e9, -np.inf):
        predicted = backend.to_numpy(Stump(0, threshold, 1, -1, 0.0).predict(X))
        expected = np.where(wide <= threshold, 1, -1)  # NaN: not <=, and `missing` is -1 as well
        assert (predicted == expected).all(), threshold


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "bool", "float32"])
def test_any_dtype_is_compared_with_a_float64_threshold_as_real_numbers(
    backend: Backend, dtype: str
):
    values = np.asarray([0, 1, 100, 3, 2], dtype=dtype)
    X = backend.asarray(values.reshape(-1, 1))
    for threshold in (0.1, np.nextafter(0.0, -1.0), 1.0, 2.9999999999999996, 3.0, 99.99999999):
        predicted = backend.to_numpy(Stump(0, threshold, -1, 1, 0.0).predict(X)).tolist()
        assert predicted == [-1 if float(v) <= threshold else 1 for v in values]


def test_large_integers_count_as_the_float64_they_round_to(backend: Backend):
    values = [2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, 2**62 + 255, 2**62 + 257, 2**63 - 1]
    X = backend.asarray(np.asarray(values, dtype=np.int64).reshape(-1, 1))
    for threshold in (2.0**53 - 1, 2.0**53, 2.0**53 + 2, 2.0**62, 2.0**62 + 1024):
        predicted = backend.to_numpy(Stump(0, threshold, 1, 1, 0.0).predict(X)).tolist()
        assert predicted == [1 if float(v) <= threshold else -1 for v in values]


def test_names_of_the_library_and_the_device(backend: Backend):
    x = backend.asarray(np.zeros(2, dtype=np.float32))
    name = arrays.library_name(x).replace("_", "-")
    assert backend.name.startswith(name)
    assert arrays.device_name(x) == ("cuda:0" if backend.on_gpu else "cpu")
    assert arrays.on_host(x) != backend.on_gpu
    assert arrays.dtype_name(x) == "float32"


def test_values_reach_the_host_unchanged(backend: Backend):
    values = awkward("float64")
    host = arrays.to_host(backend.asarray(values))
    assert isinstance(host, np.ndarray)
    assert host.view(np.int64).tolist() == values.view(np.int64).tolist()


def test_jax_is_left_as_it_was_set():
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    x = jax.numpy.zeros(3, dtype="float32")
    with arrays.computing_on(x):
        assert jax.config.jax_enable_x64
    assert jax.config.jax_enable_x64 == before


def test_float32_tables_train_in_jax_without_64_bit_types(backend: Backend):
    """A table made in JAX's usual mode; everything 64-bit is switched on only inside."""
    if not backend.name.startswith("jax"):
        pytest.skip("about JAX")
    import jax

    from gpustump import Member, StumpEnsemble, boost

    X = np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
    y = np.resize([1, -1, 1], 30)
    narrow = jax.numpy.asarray(X)
    records = list(boost(narrow, y, n_rounds=3))
    assert records == list(boost(X, y, n_rounds=3))
    member = Member(tuple(r.stump for r in records), tuple(r.vote for r in records))
    model = StumpEnsemble((member,), 2)
    expected = model.decision_function(X).tolist()
    assert np.asarray(model.decision_function(narrow)).tolist() == expected
    *_, last = model.staged_decision_function(narrow)
    assert np.asarray(last).tolist() == expected
    assert np.asarray(model.predict(narrow)).tolist() == model.predict(X).tolist()


def test_importing_the_package_imports_no_other_array_library():
    heavy = ["sklearn", "torch", "jax", "cupy", "numba", "matplotlib", "array_api_strict", "scipy"]
    code = (
        "import sys, gpustump; gpustump.boost, gpustump.StumpEnsemble, gpustump.devices;"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
