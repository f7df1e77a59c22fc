"""Keys that sort as floats do, thresholds rounded down, and names of devices and libraries.

Keys are proved against Python's own float comparison, for every float16 there is and for awkward
values of the wider types, in every library: XLA flushes subnormal numbers in comparisons, so that
comparing floats there would be wrong.
"""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from backends import BACKENDS, TESTED, Backend
from hypothesis import given
from hypothesis import strategies as st

from gpustump import Stump, arrays
from gpustump.arrays.libraries import square_root
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
    order = np.argsort(keys[~missing], kind="stable")
    steps = np.diff(keys[~missing][order]), np.diff(values[~missing][order].astype(np.float64))
    assert ((steps[0] > 0) == (steps[1] > 0)).all()
    assert (steps[1] >= 0).all()
    # nor do keys depend on the sign or payload of NaN
    patterns = [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0xFFFFFFFFFFFFFFFF]
    values = np.asarray(patterns, dtype=np.uint64).view(np.float64)
    assert keys_on(backend, values).tolist() == [2**63 - 1] * 4


ENDS = st.sampled_from(
    [65504.0, -65504.0, 3.4028234663852886e38, 5e-324, -5e-324, 1.7e308, math.inf]
)


@given(st.floats(allow_nan=False) | ENDS, st.sampled_from(["float16", "float32", "float64"]))
def test_rounding_down_gives_the_largest_value_not_above_in_silence(threshold, dtype):
    (rounded,) = rounded_down(np.asarray([threshold]), dtype)
    assert rounded.dtype == dtype
    assert float(rounded) <= threshold
    with np.errstate(over="ignore"):
        above = np.nextafter(rounded, np.asarray(np.inf, dtype=dtype))
    assert float(above) > threshold or rounded == np.inf


NARROW = np.asarray([0, 1, 100, 3, 2])
AROUND = (0.1, np.nextafter(0.0, -1.0), 1.0, 2.9999999999999996, 3.0, 99.99999999)
WIDE = np.asarray([2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, 2**62 + 255, 2**62 + 257, 2**63 - 1])
ENDS_OF_FLOAT16 = (65504.0, 65503.9, 65519.9, -np.inf)


@pytest.mark.parametrize(
    ("values", "thresholds"),
    [
        (every_float16(), (0.1, -0.1, 1e-9, -1e-9, 1e9, -1e9, *ENDS_OF_FLOAT16)),
        *((NARROW.astype(own), AROUND) for own in ("int8", "int32", "int64", "bool", "float32")),
        (WIDE, (2.0**53 - 1, 2.0**53, 2.0**53 + 2, 2.0**62, 2.0**62 + 1024)),
    ],
    ids=["float16", "int8", "int32", "int64", "bool", "float32", "wide int64"],
)
def test_values_and_thresholds_are_compared_as_the_float64_that_they_are(
    backend: Backend, values: np.ndarray, thresholds: tuple[float, ...]
):
    if str(values.dtype) in backend.lacks:
        pytest.skip(f"{backend.name} has no {values.dtype}")
    X = backend.asarray(values.reshape(-1, 1))
    for threshold in thresholds:
        predicted = backend.to_numpy(Stump(0, threshold, 1, -1, 0.0).predict(X))
        # NaN: not <=, and `missing` is -1 as well
        expected = np.where(values.astype(np.float64) <= threshold, 1, -1)
        assert (predicted == expected).all(), threshold


def test_names_of_the_library_and_the_device(backend: Backend):
    x = backend.asarray(np.zeros(2, dtype=np.float32))
    name = arrays.library_name(x).replace("_", "-")
    assert backend.name.startswith(name)
    assert arrays.device_name(x) == ("cuda:0" if backend.on_gpu else "cpu")
    assert arrays.on_host(x) != backend.on_gpu
    assert arrays.dtype_name(x) == "float32"
    values = awkward("float64")
    host = arrays.to_host(backend.asarray(values))
    assert isinstance(host, np.ndarray)
    assert host.view(np.int64).tolist() == values.view(np.int64).tolist()


def test_float32_tables_train_in_jax_without_64_bit_types(backend: Backend):
    """A table made in JAX's usual mode; everything 64-bit is switched on only inside."""
    if not backend.name.startswith("jax"):
        pytest.skip("about JAX")
    import jax

    from gpustump import Member, StumpEnsemble, boost

    X = np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
    y = np.resize([1, -1, 1], 30)
    before = jax.config.jax_enable_x64
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
    assert jax.config.jax_enable_x64 == before


def test_importing_the_package_imports_no_other_array_library_and_nothing_heavy():
    code = (
        "import sys, gpustump, gpustump.plots, gpustump.theory; gpustump.boost, gpustump.devices;"
        "heavy = {'sklearn', 'torch', 'jax', 'cupy', 'numba', 'matplotlib', 'array_api_strict',"
        "'scipy', 'pandas', 'polars', 'tqdm'}; print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


SIZES = np.random.default_rng(0).integers(0, 62, (2, 20_000))


def test_square_roots_are_correctly_rounded_in_every_library(backend: Backend):
    random = np.random.default_rng(0)
    one, other = (random.integers(0, 2**62, 20_000) >> own for own in SIZES)
    anything = np.ldexp(random.uniform(1, 2, 20_000), random.integers(-1000, 1000, 20_000))
    x = np.concatenate([one.astype(np.float64) * other.astype(np.float64), anything])
    here = backend.asarray(x)
    with arrays.computing_on(here):
        found = square_root(here)
        assert backend.owns(found)
        root = backend.to_numpy(found)
        shapes = [square_root(backend.asarray(np.full(s, 2.25))).shape for s in ((), (0,), (1, 3))]
    assert root.dtype == np.float64
    assert np.array_equal(root, [math.sqrt(one) for one in x.tolist()])
    assert [tuple(shape) for shape in shapes] == [(), (0,), (1, 3)]
    for own in x[::400].tolist():  # and Python's root is: compare squares, exactly
        for end in (math.nextafter(math.sqrt(own), to) for to in (0.0, math.inf)):
            middle = (Fraction(math.sqrt(own)) + Fraction(end)) / 2
            assert (middle**2 <= Fraction(own)) == (end < math.sqrt(own)) or own == 0.0


@pytest.mark.parametrize("listed", BACKENDS, ids=str)
def test_a_backend_computes(listed):
    if listed.reason:
        (pytest.fail if listed.is_required else pytest.skip)(listed.reason)
    assert listed in TESTED
    x = listed.asarray(np.arange(3.0))
    assert listed.to_numpy(x + x).tolist() == [0.0, 2.0, 4.0]
