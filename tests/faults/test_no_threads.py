"""Where the system starts no thread: the same model, by the caller's thread alone.

The stack of a new thread is set larger than the address space, so the system itself refuses it.
"""

from __future__ import annotations

import sys

import pytest
from forked_runs import forks

pytest.importorskip("numba")
pytestmark = [forks, pytest.mark.skipif(sys.platform != "linux", reason="the size is Linux's")]

FITS = """
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

threading.stack_size(2**46)
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
    ended = without_kernels.run(tmp_path, program=FITS)
    assert (ended.code, ended.out) == (0, "True\n"), ended.err
