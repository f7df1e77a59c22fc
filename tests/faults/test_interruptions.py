"""Ctrl-C at any moment, and at once a second time: in `fit`, and in the command line.

A kernel that returned a named tuple to Python once ended the process with a segmentation fault, if
Ctrl-C came while the tuple was made. So kernels that Python calls return numbers or plain tuples.
"""

from __future__ import annotations

import json
import random
import re
import signal
import sys
import time

import pytest
from fault_counts import count
from forked_runs import COMMAND, forks, rounds_in, wait_until, write_table

pytestmark = [forks, pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")]

FITS = """
import json, os, random, signal, sys, threading, time, warnings
import numpy as np
from gpustump import AdaBoostClassifier, LogitBoostClassifier

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores it
n_times, cold, seed = int(sys.argv[1]), sys.argv[2] == "cold", int(sys.argv[3])
draw, moment = np.random.default_rng(0), random.Random(seed)
X = draw.normal(size=(6_000, 8))
y = (X[:, 0] + draw.normal(size=len(X)) > 0).astype(int)
three = y + (X[:, 1] > 1)
make = {
    "discrete": lambda: (AdaBoostClassifier(n_estimators=40, n_jobs=3), y),
    "intervals": lambda: (AdaBoostClassifier(
        n_estimators=20, n_jobs=3, weak_learner="interval"), y),
    "watched": lambda: (LogitBoostClassifier(
        n_estimators=20, n_jobs=3, n_iter_no_change=19, random_state=0), y),
    "classes": lambda: (LogitBoostClassifier(
        n_estimators=20, n_jobs=3, multi_class="shared"), three),
    "bags": lambda: (AdaBoostClassifier(n_estimators=9, n_jobs=3, n_bags=3, random_state=0), y),
}

def interrupted(classifier, labels, seconds):
    def send():
        os.kill(os.getpid(), signal.SIGINT)
        if moment.random() < 0.5:  # and at once a second time
            time.sleep(moment.random() * 0.002)
            os.kill(os.getpid(), signal.SIGINT)
    timer = threading.Timer(moment.random() * seconds, send)
    was_hit, signals = False, signal.getsignal(signal.SIGINT)
    try:
        try:
            try:
                timer.start()
                classifier.fit(X, labels)
            except KeyboardInterrupt:
                was_hit = True
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        except KeyboardInterrupt:  # the second one, or the first one after the fit
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:  # the second one after the fit
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    timer.cancel()
    timer.join()
    signal.signal(signal.SIGINT, signals)
    return was_hit

found = {}
for kind in ["discrete"] if cold else make:
    classifier, labels = make[kind]()
    small = slice(0, 300)
    seconds = 2.0
    if not cold:
        expected = classifier.fit(X, labels).model_.digest()
        started = time.monotonic()
        classifier.fit(X, labels)
        seconds = time.monotonic() - started
    n_hit, wholes, number = 0, [], 0
    while number < n_times or not (n_hit or cold):
        number += 1
        classifier, labels = make[kind]()
        if not cold:
            classifier.fit(X[small], labels[small])
            before = classifier.model_.digest()
        if interrupted(classifier, labels, seconds):
            n_hit += 1
        else:
            seconds *= 0.8  # the fit was done before: one is hit at last on any machine
        if not cold:
            wholes.append(classifier.model_.digest() in (before, expected))
    time.sleep(0.05)
    classifier, labels = make[kind]()
    again = classifier.fit(X, labels).model_.digest()
    if not cold:
        wholes.append(again == expected)
    found[kind] = [n_hit, all(wholes), again]
print(json.dumps([found, sorted({thread.name for thread in threading.enumerate()})]))
"""


def test_an_interrupted_fit_ends_and_the_next_one_gives_the_same_model(with_kernels, tmp_path):
    n_times = count(4, 100)
    for part in range(0, n_times, 20):
        given = min(20, n_times - part), "warm", part
        ended = with_kernels.start(tmp_path, *given, program=FITS).end(300.0)
        assert ended.code == 0, ended.err
        found, threads = json.loads(ended.out)
        for kind, (n_made, are_whole, _) in found.items():
            assert are_whole, kind
            assert n_made > 0, kind
        assert set(threads) <= {"MainThread", "gpustump", "gpustump loads"}


def test_a_fit_that_is_interrupted_while_kernels_are_loaded_works_the_next_time(
    without_kernels, tmp_path
):
    """As in the first process, where nobody interrupts it."""
    pytest.importorskip("numba")
    digests = set()
    for number in range(1 + count(1, 20)):
        given = 4 if number else 0, "cold", number
        ended = without_kernels.start(tmp_path, *given, program=FITS).end(300.0)
        assert ended.code == 0, ended.err
        ((*_, digest),) = json.loads(ended.out)[0].values()
        digests.add(digest)
        assert "does not work" not in ended.err
    assert len(digests) == 1


TRAIN = ("train", "t.npz", "--target", "y", "--rounds", 1_500, "--jobs", 2)

TELLS_THAT_IT_HAS_BEGUN = (
    """
import signal
import gpustump.cli as cli
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores it
run = cli._run
def begun(argv):
    open("begun", "w").close()  # what is sent earlier, Python itself answers
    return run(argv)
cli._run = begun
"""
    + COMMAND
)


def test_the_command_ends_with_130_and_one_line_wherever_it_is_interrupted(with_kernels, tmp_path):
    write_table(tmp_path, 3_000, 5)
    started = time.monotonic()
    assert with_kernels.run(tmp_path, *TRAIN).code == 0
    usual, model = time.monotonic() - started, tmp_path / "model.json"
    expected = model.read_bytes()
    number, n_interrupted, begun = 0, 0, tmp_path / "begun"
    while number < count(6, 200) or n_interrupted == 0:
        assert number < 200, "every run was done before it was interrupted"
        model.unlink(missing_ok=True)
        begun.unlink(missing_ok=True)
        run = with_kernels.start(tmp_path, *TRAIN, program=TELLS_THAT_IT_HAS_BEGUN)
        wait_until(begun.exists)
        waited = random.uniform(0.0, usual)
        time.sleep(waited)
        run.send(signal.SIGINT)
        ended = run.end()
        said = [line for line in ended.err.splitlines() if line]
        assert ended.code in (0, 130), ended.err
        if ended.code == 130:
            assert said[-1:] == ["gpustump: interrupted"]
            assert len(said) == 1, ended.err
            n_interrupted += 1
        else:
            usual = min(usual, waited)  # the machine is faster by now
        number += 1
        assert {path.name for path in tmp_path.iterdir()} <= {"t.npz", "model.json", "begun"}
        assert not model.exists() or model.read_bytes() == expected


def test_kernels_that_python_calls_return_numbers_or_plain_tuples():
    """For anything else, Numba looks up a class, and does not check whether that failed."""
    pytest.importorskip("numba")
    from numba.core import types

    from gpustump.engines.cpu.runtime import compiling

    compiling.load()
    kernels = [
        own
        for name, module in list(sys.modules.items())
        if name.startswith("gpustump.engines.cpu.")
        for own in vars(module).values()
        if hasattr(own, "nopython_signatures") and "no_cpython_wrapper" not in own.targetoptions
    ]
    assert kernels
    for kernel in kernels:
        for signature in kernel.nopython_signatures:
            returned = signature.return_type
            assert not isinstance(returned, types.BaseNamedTuple | types.Array), kernel


SLOWED = (
    """
import time
from gpustump.boosting.rounds.logs import RunLog
note = RunLog.note
def slow(self, done):
    note(self, done)
    time.sleep(0.005)  # a signal then comes while there are rounds to make
RunLog.note = slow
"""
    + TELLS_THAT_IT_HAS_BEGUN
)


def test_after_a_signal_the_same_command_goes_on_to_the_model_of_an_uninterrupted_run(
    without_kernels, tmp_path
):
    write_table(tmp_path, 200)
    train = ("train", "t.npz", "--target", "y", "--rounds", 150, "--device", "cpu")
    reference = "import os\nos.environ['GPUSTUMP_KERNELS'] = 'reference'\n"  # it loads nothing
    assert without_kernels.run(tmp_path, *train, program=reference + COMMAND).code == 0
    model, checkpoint = tmp_path / "model.json", tmp_path / "run.json"
    whole, keep = model.read_bytes(), ("--checkpoint", "run.json", "--checkpoint-every", "7 rounds")
    made = 0
    for which, more, code, how, again in (
        (signal.SIGINT, (), 130, "interrupted", " with --resume"),
        (signal.SIGTERM, ("--resume",), -signal.SIGTERM, "ended by SIGTERM", ""),
    ):
        run = without_kernels.start(tmp_path, *train, *keep, *more, program=reference + SLOWED)
        wait_until(lambda least=made + 20: rounds_in(checkpoint) >= least)
        run.send(which)
        ended = run.end()
        made = rounds_in(checkpoint)
        assert (ended.code, ended.out) == (code, "")
        assert ended.err == (
            f"gpustump: {how} after {made} rounds, kept in run.json; to go on, run the same "
            f"command{again}\n"
        )
    ended = without_kernels.run(tmp_path, *train, *keep, "--resume", program=reference + COMMAND)
    assert re.search(rf"^went on +from {made} rounds of run.json$", ended.out, re.M)
    assert model.read_bytes() == whole
    assert {path.name for path in tmp_path.iterdir()} == {"t.npz", "model.json", "begun"}
