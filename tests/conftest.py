"""Fixtures of all tests: the backends, and how Hypothesis looks for counterexamples.

On CI the examples are the same in every run, so that a failure there can be repeated anywhere;
elsewhere each run tries new ones.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from pathlib import Path

# Python keeps what it has compiled, for the processes that tests start and for later runs, whatever
# the environment says: compiling tests with their assertions takes longer than collecting them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Read by SciPy when it is first imported: without it, scikit-learn leaves out some of its checks.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# JAX compiles every operation for every shape and dtype, which takes most of the time of its tests.
# It keeps the results here, for other processes and later runs.
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR",
    str(Path(tempfile.gettempdir()) / f"gpustump-jax-{getattr(os, 'getuid', int)()}"),
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

# Read by OpenMP, which PyTorch and others use: without it, their threads spin while they wait for
# each other. Where the cores are busy with other tests, that takes many times the work itself.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import math

import pytest
from backends import TESTED, Backend
from hypothesis import HealthCheck, settings

sys.dont_write_bytecode = False

settings.register_profile(
    "gpustump",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("gpustump")


WITH_JAX = (
    *("tests/arrays", "tests/data", "tests/engines", "tests/learners", "tests/test_digests"),
    "tests/estimators/test_every_kind.py",
)
"""Where every run tests JAX: its arrays, the engines on them, and whole models by their digests."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave JAX out elsewhere, where what follows from the same arrays is tested once more.

    Compiling takes most of the time of its tests. With GPUSTUMP_TESTED_LIBRARIES=all, or where JAX
    is required, nothing is left out.
    """
    everywhere = os.environ.get("GPUSTUMP_TESTED_LIBRARIES") == "all"
    left_out = [] if everywhere else [item for item in items if _is_one_more_of_jax(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not _is_one_more_of_jax(item)]


def _is_one_more_of_jax(item: pytest.Item) -> bool:
    backend = getattr(item, "callspec", None) and item.callspec.params.get("backend")
    is_jax = isinstance(backend, Backend) and backend.name == "jax" and not backend.is_required
    return is_jax and not item.nodeid.startswith(WITH_JAX)


def pytest_collection_finish() -> None:
    """Thousands of tests live until the end: the garbage collector need not look at them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend's own kernels; in other tests those that many fits in one process end up with."""
    wanted = "auto"
    if "backend" in request.fixturenames:
        backend = request.getfixturevalue("backend")
        wanted = backend.kernels
        if backend.device is not None:
            in_its_place = backend.device()
            monkeypatch.setattr("gpustump.engines.cuda.device.device_of", lambda x: in_its_place)
    monkeypatch.setenv("GPUSTUMP_KERNELS", wanted)
    monkeypatch.setattr("gpustump.engines.route._waited", math.inf)


@pytest.fixture(scope="session", params=TESTED, ids=str)
def backend(request: pytest.FixtureRequest) -> Backend:
    """Each array library in turn; skipped, with the reason, where it cannot be used.

    Those named in GPUSTUMP_REQUIRED_BACKENDS fail instead.
    """
    if request.param.reason:
        (pytest.fail if request.param.is_required else pytest.skip)(request.param.reason)
    return request.param
