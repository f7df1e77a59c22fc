"""One small pool does all work: from many threads at once, and within other work."""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustump.engines import threads
from gpustump.engines.threads import MOST_THREADS, Team, ranges


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_ranges_cover_all_once(total, size):
    size = max(size, total // 50)
    found = ranges(total, size)
    assert found[0][0] == 0
    assert found[-1][1] == total
    assert all(a[1] == b[0] for a, b in itertools.pairwise(found))
    assert all(0 < end - start <= size for start, end in found)


def test_an_error_in_one_thread_is_raised_and_any_number_of_jobs_leaves_few_threads_behind():
    done: list[int] = []

    def work(item: int) -> None:
        if item == 5:
            raise ZeroDivisionError("item 5")
        done.append(item)

    with pytest.raises(ZeroDivisionError, match="item 5"):
        Team(3).each(work, range(10_000))
    assert 5 not in done
    Team(3).each(work, range(6, 40))
    assert set(range(6, 40)) <= set(done)
    before = threading.active_count()
    for n_jobs in range(1, 41):
        Team(n_jobs).each(lambda _: time.sleep(0.001), range(2 * n_jobs))
    assert threading.active_count() <= before + MOST_THREADS


def counting() -> Callable[..., None]:
    """A kernel that counts how often it is called for each piece, and then does some work.

    It runs out of memory if a piece has a number below 0.
    """
    pytest.importorskip("numba")
    from gpustump.engines.cpu.runtime import crew

    threads.help_with(crew.serve)

    @crew.parallel("void(int64, int64[::1], int64)")
    def count(piece, counts, work):  # type: ignore[no-untyped-def]
        if counts[piece] < 0:
            raise MemoryError
        for _ in range(work):
            counts[piece] = counts[piece] ^ 1
        counts[piece] += 1

    return count


@pytest.mark.parametrize("n_cores", [1, 8])
def test_every_piece_of_a_kernel_is_done_once_whether_others_help_sleep_or_do_not_come(
    monkeypatch, n_cores
):
    monkeypatch.setattr(threads, "_n_cores", lambda: n_cores)
    count, team = counting(), Team(3)
    for pause in (0.0, 0.0001, 0.02):
        for _ in range(20):
            for n_pieces in (0, 1, 2, 7, 500):
                counts = np.zeros(n_pieces, dtype=np.int64)
                team.run(count, n_pieces, counts, 2000)
                assert counts.tolist() == [1] * n_pieces
            time.sleep(pause)


def test_a_kernel_that_runs_out_of_memory_says_so_when_all_pieces_are_done_and_runs_again():
    count, team = counting(), Team(2)
    for failing in range(40):
        counts = np.zeros(40, dtype=np.int64)
        counts[failing] = -1
        with pytest.raises(MemoryError, match="not enough memory"):
            team.run(count, 40, counts, 100)
        counts[failing] = 1
        assert counts.tolist() == [1] * 40
        team.run(count, 40, counts, 0)
        assert counts.tolist() == [2] * 40


def test_one_team_serves_several_threads_at_a_time():
    count, team, wrong = counting(), Team(3), list[int]()

    def train() -> None:
        for n_pieces in range(300):
            counts = np.zeros(n_pieces, dtype=np.int64)
            team.run(count, n_pieces, counts, 50)
            wrong.extend(own for own in counts.tolist() if own != 1)

    asking = [threading.Thread(target=train) for _ in range(4)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert not wrong


class Unscheduled:
    """A thread of the pool that the system does not let run."""

    def give(self, work: Callable[[], object]) -> None:
        self.work = work


def test_a_thread_that_does_not_get_to_run_keeps_nothing_of_the_work_that_others_did(monkeypatch):
    worker, done = Unscheduled(), list[int]()
    monkeypatch.setattr(threads._POOL, "idle_worker", lambda: worker)
    array = np.arange(3)
    alive = weakref.ref(array)
    Team(2).each(lambda i, own=array: done.append(int(own[i])), [0, 1, 2])
    assert done == [0, 1, 2]
    del array
    assert alive() is None
    assert worker.work() is None  # now it does get to run, and finds nothing to do


def test_work_within_work_ends_even_if_it_asks_for_more_threads_than_there_are():
    counts: list[int] = []

    def outer(_: int) -> None:
        Team(MOST_THREADS).each(middle, range(4))

    def middle(_: int) -> None:
        Team(MOST_THREADS).each(counts.append, range(5))

    worker = threading.Thread(
        target=lambda: Team(2 * MOST_THREADS).each(outer, range(3 * MOST_THREADS)), daemon=True
    )
    worker.start()
    worker.join(timeout=60)
    assert not worker.is_alive()
    assert len(counts) == 3 * MOST_THREADS * 4 * 5
