"""Forks: a child fits the same model, whatever threads its parent has, and ends without delay."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fault_counts import count
from forked_runs import Forked, forks

pytest.importorskip("numba")
pytestmark = [forks, pytest.mark.skipif(sys.platform != "linux", reason="macOS forbids such forks")]

COMMON = """
import multiprocessing, os, signal, sys, threading, time, warnings
import numpy as np
from gpustump import AdaBoostClassifier

warnings.simplefilter("ignore")  # of forks in a process that has threads
n_children = int(sys.argv[1])
draw = np.random.default_rng(0)
X = draw.normal(size=(20_000, 10))
y = (X[:, 0] + draw.normal(size=len(X)) > 0).astype(int)
def digest(number=0):
    return AdaBoostClassifier(n_estimators=10, n_jobs=4).fit(X, y).model_.digest()

def children(expected=None):
    for _ in range(n_children):
        child = os.fork()
        if child == 0:
            signal.alarm(250)  # a child that hangs is killed
            sys.exit(0 if digest() == expected else 3)  # by the way of any process
        assert os.waitpid(child, 0)[1] == 0
"""

AFTER_A_FIT = """
expected = digest()
assert threading.active_count() > 1
children(expected)
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert set(pool.map(digest, range(4))) == {expected}
print("done", expected)
"""

DURING_A_FIT = """
expected, is_over = digest(), threading.Event()
def fit():
    while not is_over.is_set():
        digest()
fitting = threading.Thread(target=fit)
fitting.start()
children(expected)
is_over.set()
fitting.join()
print("done", expected)
"""

WHILE_KERNELS_ARE_LOADED = """
from gpustump.engines.cpu.engine import KERNELS
pipe = os.pipe()
loading = threading.Thread(target=KERNELS.load)
loading.start()
time.sleep(float(sys.argv[2]))
child = os.fork()
if child == 0:
    signal.alarm(250)
    os.write(pipe[1], digest().encode())
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
loading.join()
assert os.read(pipe[0], 64).decode() == digest()
print("done", digest())
"""


def done(runs: Forked, program: str, folder: Path, *arguments: object) -> None:
    ended = runs.start(folder, *arguments, program=COMMON + program).end(300.0)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("done ")


@pytest.mark.parametrize("program", [AFTER_A_FIT, DURING_A_FIT], ids=["after", "during"])
def test_a_child_of_a_process_with_threads_fits_the_same_model_and_ends(
    with_kernels, tmp_path, program
):
    done(with_kernels, program, tmp_path, count(1, 100))


def test_a_fork_while_kernels_are_loaded_waits_for_them(without_kernels, tmp_path):
    for number in range(count(1, 10)):
        done(without_kernels, WHILE_KERNELS_ARE_LOADED, tmp_path, 1, 0.05 * number + 0.1)
