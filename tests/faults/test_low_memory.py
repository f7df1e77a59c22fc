"""Too little memory is a MemoryError, or an error of one line from the command; the next fit works.

It is never a crash or a hang. The limit is the system's own, on a process's address space.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fault_counts import count
from forked_runs import COMMAND, KERNELS, LOADED, Forked, forked, forks, write_table

pytest.importorskip("numba")
pytestmark = [
    forks,
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the limit does not bind"),
]

NO_SPARE_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}
"""With these, the memory of larger arrays comes from the system, not from what was freed before."""

LIMITED = """
import os, resource, sys
def limit(n_bytes):
    taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + n_bytes, resource.RLIM_INFINITY))
limit(int(os.path.basename(os.getcwd())))
"""

FIT = """
import numpy as np
from gpustump import LogitBoostClassifier
draw = np.random.default_rng(0)
X = draw.normal(size=(40_000, 8))
y = (X[:, 0] + draw.normal(size=len(X)) > 0).astype(int)
def fitted():
    classifier = LogitBoostClassifier(n_estimators=4, n_jobs=3).fit(X, y)
    return classifier.model_.digest(), float(classifier.decision_function(X).sum())
"""

UNLIMITED = FIT + "print(*fitted())"

TWICE = (
    FIT
    + LIMITED
    + """
try:
    first = fitted()
except MemoryError:
    first = None
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
print(*fitted())
assert first is None or first == fitted()
print(first is not None)
"""
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    streams, loads = tmp_path_factory.mktemp("streams"), LOADED + "\n" + KERNELS
    with forked(streams, loads, "coded", **NO_SPARE_MEMORY) as found:
        yield found


def with_room(folder: Path, megabytes: float) -> Path:
    """A folder whose name is the limit in bytes, for the programs that run in it."""
    room = folder / str(int(megabytes * 1e6))
    room.mkdir()
    return room


def fits_at(runs: Forked, folder: Path, limits: list[float]) -> list[bool]:
    """Which limits are enough for a fit; each fit, and the one after it, is right or refused."""
    expected = runs.run(folder, program=UNLIMITED).out
    found = []
    for megabytes in limits:
        ended = runs.run(with_room(folder, megabytes), program=TWICE)
        assert ended.code == 0, (megabytes, ended)
        *same, enough = ended.out.splitlines(keepends=True)
        assert "".join(same) == expected
        assert "does not work" not in ended.err
        found.append(enough == "True\n")
    return found


def test_a_fit_with_too_little_memory_is_a_memory_error_and_the_next_one_works(runs, tmp_path):
    limits = np.concatenate([[1], np.geomspace(2, 300, count(3, 40))]).tolist()
    enough = fits_at(runs, tmp_path, limits)
    assert (enough[0], enough[-1]) == (False, True)


def test_where_the_kernels_have_no_room_the_reference_trains(without_kernels, tmp_path):
    limits = np.linspace(20, 900, count(2, 20)).tolist()
    assert fits_at(without_kernels, tmp_path, limits)[-1]


def test_a_command_with_too_little_memory_is_one_line(runs, tmp_path):
    write_table(tmp_path, 30_000, 12)
    table = tmp_path / "t.npz"
    train = ("train", table, "--target", "y", "--rounds", 5)
    assert runs.run(tmp_path, *train, "--quiet").code == 0
    predict = ("predict", tmp_path / "model.json", table, "-o", "result.csv")
    codes = []
    for megabytes in np.geomspace(0.5, 200, count(3, 30)).tolist():
        folder = with_room(tmp_path, megabytes)
        for arguments, name in (((*train, "--quiet"), "model.json"), (predict, "result.csv")):
            ended = runs.run(folder, *arguments, program=LIMITED + COMMAND)
            codes.append(ended.code)
            files = [path.name for path in folder.iterdir()]
            if ended.code == 0:
                assert files == [name]
                (folder / name).unlink()
                continue
            assert (ended.code, ended.out, files) == (2, "", []), ended
            assert ended.err.startswith("gpustump: error: not enough memory. ")
            assert ended.err.count("\n") == 1
    assert set(codes) == {0, 2}
