"""What is sent comes back, arrays of any size aligned; who is gone is not waited for."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any

import numpy as np
import pytest

pytest.importorskip("distributed")

from classifiers import drawn
from clusters import check_equal, fitted, fitted_here

from gpustump import AdaBoostClassifier
from gpustump.dask import messages as dask_messages
from gpustump.dask import worker
from gpustump.dask.messages import (
    Messages,
    accepted,
    connected,
    got,
    listening,
    put,
    unpacked,
)


def test_a_connection_brings_messages_of_any_size_and_says_when_it_is_closed():
    here, there = socket.socketpair()
    arrays = [np.arange(n, dtype=dtype) for n in (0, 3, 2**20) for dtype in ("u1", "i4", "f8")]
    with here, there:
        for message in (None, "text", {"arrays": arrays, "planes": np.arange(12).reshape(3, 4)}):
            sender = threading.Thread(target=put, args=(here, message))
            sender.start()  # a large message waits until it is read
            found = unpacked(got(there))
            sender.join()
            assert str(found) == str(message)
        for one, other in zip(found["arrays"], arrays, strict=True):
            assert one.flags.aligned
            assert one.dtype == other.dtype
            assert np.array_equal(one, other)
        here.close()
        with pytest.raises(ConnectionResetError):
            got(there)


@pytest.mark.parametrize("wrong", [None, 0, -1])
def test_only_a_caller_and_a_worker_with_the_same_secret_speak_to_each_other(wrong):
    """A byte is wrong in the half that the caller shows, or in that of the worker."""
    listener, secret = listening("127.0.0.1")
    place, known, found = (listener.getsockname()[1], secret), bytearray(secret), []
    if wrong is not None:
        known[wrong] ^= 1

    def wait() -> None:
        with contextlib.suppress(ConnectionRefusedError):
            found.append(accepted(listener, bytes(known), 10.0))

    worker = threading.Thread(target=wait)
    with listener:
        worker.start()
        here = connected("tcp://127.0.0.1:1", place)
        worker.join()
    if wrong is None:
        with here:
            put(here, "called")
            assert unpacked(got(found[0])) == "called"
    else:
        assert here is None
    for there in found:
        there.close()
    assert connected("tcp://127.0.0.1:1", place) is None  # nothing listens


def test_a_worker_that_does_not_know_the_fit_is_not_waited_for(processes, monkeypatch):
    monkeypatch.setattr(dask_messages, "_FIRST_WORD", 3600.0)  # a test that waits for it hangs
    there = Messages(processes, "gpustump-unknown")
    workers = list(there.workers())
    messages = [dask_messages.Message(own, "", "size") for own in workers]
    assert there.send(messages) == [dask_messages.GONE] * len(workers)
    there.close()


def test_a_worker_that_stalls_in_the_middle_of_an_answer_counts_as_lost(processes, monkeypatch):
    def stall_once() -> None:

        sent, numbers = worker.put, iter(range(10**6))

        def put_half(connection: socket.socket, message: Any) -> None:
            if next(numbers) < 15:
                sent(connection, message)
                return
            worker.put = sent
            connection.sendall(b"half")

        worker.put = put_half

    monkeypatch.setattr(dask_messages, "_STALLED", 0.5)
    stalls = min(processes.scheduler_info(n_workers=-1)["workers"])
    processes.run(stall_once, workers=[stalls])
    there = fitted(processes, AdaBoostClassifier(n_estimators=9), drawn())
    check_equal(there, fitted_here(there, drawn()))
    assert there.cluster_.n_lost == 1
