"""Many fits in one process: memory, threads and open files stay level, and the process ends.

Where the system starts no thread, the caller's thread alone makes the same models.
"""

from __future__ import annotations

import sys
from itertools import pairwise

import pytest
from fault_counts import count
from forked_runs import forks

from gpustump.engines.threads import MOST_THREADS

pytest.importorskip("numba")
pytestmark = [forks, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc")]

FITS = """
import ctypes, gc, io, os, resource, sys, threading
import numpy as np
from gpustump import AdaBoostClassifier, LogitBoostClassifier, StumpEnsemble

draw = np.random.default_rng(0)
SIZES = [(40, 3), (700, 9), (12_000, 15)]
tables = []
for size in SIZES:
    X = draw.normal(size=size)
    tables.append((X, (X[:, 0] + draw.normal(size=len(X)) > 0).astype(int)))
kinds = [
    lambda: AdaBoostClassifier(n_estimators=10, n_jobs=3),
    lambda: AdaBoostClassifier(n_estimators=5, n_jobs=3, votes="real"),
    lambda: LogitBoostClassifier(n_estimators=5, n_jobs=3, n_iter_no_change=4, random_state=0),
    lambda: AdaBoostClassifier(n_estimators=3, n_jobs=3, weak_learner="interval"),
    lambda: AdaBoostClassifier(n_estimators=3, n_jobs=3, n_bags=2, random_state=0),
]

def level():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(open("/proc/self/statm").read().split()[1])
    taken = pages * resource.getpagesize()
    return taken, threading.active_count(), len(os.listdir("/proc/self/fd"))

def fit(number):
    X, y = tables[number % 3]
    classifier = kinds[number % 5]().fit(X, y)
    classifier.predict(X)
    classifier.model_.save("model.json")
    assert StumpEnsemble.load("model.json").digest() == classifier.model_.digest()

n_fits, levels = int(sys.argv[1]), []
for number in range(30):  # pools are filled, libraries loaded
    fit(number)
levels.append(level())
for part in range(4):
    for number in range(n_fits // 4):
        fit(number)
    levels.append(level())
print(levels)
"""


def test_memory_threads_and_open_files_stay_level(with_kernels, tmp_path):
    ended = with_kernels.start(tmp_path, count(60, 1_000), program=FITS).end(900.0)
    assert ended.code == 0, ended.err
    memory, threads, files = zip(*eval(ended.out), strict=True)
    assert len(set(files)) == 1
    assert threads[-1] <= MOST_THREADS + 1  # those of the pool, and the main one
    # A leak grows in every part. The allocator may keep a few MB more in one of them.
    assert min(late - early for early, late in pairwise(memory[1:])) < 1_000_000
    assert memory[-1] - memory[0] < 8_000_000


USED = """
import os, sys, threading, time
import numpy as np
from gpustump import AdaBoostClassifier
X = np.random.default_rng(0).normal(size=(20_000, 5))
fit = lambda: AdaBoostClassifier(n_estimators=5, n_jobs=4).fit(X, (X[:, 0] > 0).astype(int))
fit()
assert threading.active_count() > 1
"""

ENDS = {
    "at its last line": "",
    "by an exception": "raise ValueError('the end')",
    "beside daemon threads": (
        "for _ in range(3): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    ),
    "while a daemon thread fits": (
        "def fits():\n    while True: fit()\nthreading.Thread(target=fits, daemon=True).start()\n"
        "time.sleep(0.05)\n"
    ),
    "as a child": ("if os.fork():\n    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))\nfit()\n"),
}


@pytest.mark.parametrize("way", ENDS)
def test_a_process_that_has_a_pool_ends_by_itself(with_kernels, tmp_path, way):
    for _ in range(count(1, 5)):
        ended = with_kernels.run(tmp_path, program=f"{USED}\n{ENDS[way]}\n")  # fails if it hangs
        assert ended.code == (1 if "exception" in way else 0), ended.err


WITHOUT_THREADS = """
import threading
import numpy as np
from gpustump import AdaBoostClassifier, LogitBoostClassifier

draw = np.random.default_rng(0)
X = draw.normal(size=(30_000, 20))
y = (X[:, 0] + draw.normal(size=len(X)) > 0).astype(int)
KINDS = {
    "discrete": AdaBoostClassifier(n_estimators=6, n_jobs=4),
    "bags": AdaBoostClassifier(n_estimators=6, n_jobs=4, n_bags=3, random_state=0),
    "watched": LogitBoostClassifier(n_estimators=6, n_jobs=4, n_iter_no_change=5, random_state=0),
}
def digests():
    return [(kind.fit(X, y).model_.digest(), kind.predict(X).sum()) for kind in KINDS.values()]

threading.stack_size(2**46)  # larger than the address space: the system refuses a thread
try:
    threading.Thread(target=print).start()
    print("a thread was started")
except RuntimeError:
    pass
alone = digests()
assert threading.active_count() == 1
threading.stack_size(0)
assert digests() == alone
print(threading.active_count() > 1)
"""


def test_every_kind_of_fit_works_without_a_single_further_thread(without_kernels, tmp_path):
    ended = without_kernels.run(tmp_path, program=WITHOUT_THREADS)
    assert (ended.code, ended.out) == (0, "True\n"), ended.err
