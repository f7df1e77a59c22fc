"""Memory: what a fit takes beside the table, by the kernel's own count of the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fault_counts import count

pytest.importorskip("numba")

from gpustump import AdaBoostClassifier

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc"),
]

COMMON = """
import os, resource, sys
import numpy as np
from gpustump import AdaBoostClassifier, LogitBoostClassifier

def status(field):
    for line in open("/proc/self/status"):
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024

def drawn(n_samples, n_features):
    random = np.random.default_rng(0)
    X = random.standard_normal((n_samples, n_features), dtype=np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + random.standard_normal(n_samples) > 0).astype(np.int64)
    return X, y

KINDS = {
    "discrete": AdaBoostClassifier(), "newton": LogitBoostClassifier(),
}

def fitted(X, y, limit=None, n_rounds=4, kind="discrete"):
    place = dict(device="cpu", n_jobs=2, max_memory=limit)
    return KINDS[kind].set_params(n_estimators=n_rounds, **place).fit(X, y)

small = drawn(5000, 30)
fitted(*small, n_rounds=3).predict(small[0])  # loads the libraries and starts the threads
"""

PEAKS = """
import ctypes

kind, limits = sys.argv[1], map(int, sys.argv[4:])
X, y = drawn(*map(int, sys.argv[2:4]))
fitted(*small, n_rounds=3, kind=kind)
for limit in limits:
    ctypes.CDLL(None).malloc_trim(0)  # what the last fit has given back is not there for this one
    open("/proc/self/clear_refs", "w").write("5")
    before = status("VmRSS")
    digest = fitted(X, y, limit or None, kind=kind).model_.digest()
    print(before, status("VmHWM") - before, digest)
"""

FROM_DISK = """
file, allowed, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
X = np.load(file, mmap_mode="r")
y = np.load(file.replace("X.npy", "y.npy"))
resource.setrlimit(resource.RLIMIT_DATA, (status("VmData") + allowed,) * 2)
try:
    np.array(X)
    print("the table fits", end=" ")
except MemoryError:
    print("too large", end=" ")
print(fitted(X, y, limit or None).model_.digest())
"""


def run(program: str, *arguments: object) -> list[str]:
    environment = os.environ | {"GPUSTUMP_KERNELS": "coded", "MALLOC_ARENA_MAX": "2"}
    done = subprocess.run(
        [sys.executable, "-c", COMMON + program, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("kind", ["newton", "discrete"][: count(1, 2)])
def test_a_fit_takes_less_than_six_bytes_an_element_and_obeys_its_limit(kind):
    n_samples, n_features, limit = 400_000, 40, 105_000_000
    found = run(PEAKS, kind, n_samples, n_features, limit, 0)
    before, (limited, free) = ([int(own) for own in found[k::3]] for k in (0, 1))
    assert max(before) - min(before) < 3_000_000
    assert limited <= limit
    assert free <= 6 * n_samples * n_features + 80 * n_samples
    assert len(set(found[2::3])) == 1


@pytest.mark.parametrize("order", ["C", "F"][: count(1, 2)])
def test_a_table_larger_than_memory_trains_from_disk(tmp_path, order):
    """The system refuses the process more memory than a part of the table takes."""
    n_samples, n_features = 150_000, 200
    random = np.random.default_rng(0)
    X = random.standard_normal((n_samples, n_features), dtype=np.float32)
    y = (X[:, 0] + X[:, 1] + random.standard_normal(n_samples) > 0).astype(np.int64)
    np.save(tmp_path / "X.npy", np.asarray(X, order=order))
    np.save(tmp_path / "y.npy", y)
    limit = 100_000_000
    assert limit < X.nbytes
    verdict = run(FROM_DISK, tmp_path / "X.npy", limit + 10_000_000, limit)
    unlimited = AdaBoostClassifier(n_estimators=4, device="cpu").fit(X, y).model_
    assert verdict == ["too", "large", unlimited.digest()]
