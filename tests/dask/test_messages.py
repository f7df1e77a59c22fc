"""What is sent comes back, arrays of any size aligned; who is gone is not waited for."""

from __future__ import annotations

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


def test_only_a_caller_and_a_worker_with_the_same_secret_speak_to_each_other():
    listener, secret = listening("127.0.0.1")
    port, found = listener.getsockname()[1], []
    other = secret[:-1] + bytes([secret[-1] ^ 1])
    with listener:
        worker = threading.Thread(target=lambda: found.append(accepted(listener, secret, 10.0)))
        worker.start()
        assert connected("tcp://127.0.0.1:1", (port, bytes(len(secret)))) is None  # turned away
        here = connected("tcp://127.0.0.1:1", (port, secret))
        worker.join()
        with here, found[0] as there:
            put(here, "called")
            assert unpacked(got(there)) == "called"
        worker = threading.Thread(target=lambda: accepted(listener, other, 10.0).close())
        worker.start()
        assert connected("tcp://127.0.0.1:1", (port, secret)) is None
        worker.join()
    assert connected("tcp://127.0.0.1:1", (port, secret)) is None  # nothing listens


def test_a_worker_that_does_not_know_the_fit_is_not_waited_for(processes, monkeypatch):
    monkeypatch.setattr(dask_messages, "_FIRST_WORD", 3600.0)  # a test that waits for it hangs
    there = Messages(processes, "gpustump-unknown")
    workers = list(there.workers())
    messages = [dask_messages.Message(own, "", "size") for own in workers]
    assert there.send(messages) == [dask_messages.GONE] * len(workers)
    there.close()


def test_a_host_that_is_closed_closes_its_connections(processes):
    name = "gpustump-closing"

    def open_host(dask_worker):
        from gpustump.dask.worker import _HOSTS, Host

        _HOSTS.setdefault(dask_worker, {})[name] = Host(dask_worker, name, None)

    processes.run(open_host)
    there = Messages(processes, name)
    workers = list(there.workers())
    messages = [dask_messages.Message(own, "", "size") for own in workers]
    assert there.send(messages) == [dask_messages.GONE] * len(workers)  # it has no shard
    assert all(there._connections[own] is not None for own in workers)
    processes.run(worker.close_host, name)
    assert there.send(messages) == [dask_messages.GONE] * len(workers)
    assert not any(there._connections.values())
    there.close()


def test_a_worker_that_stalls_in_the_middle_of_an_answer_counts_as_lost(processes, monkeypatch):
    def stall_once() -> None:
        from gpustump.dask import worker

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
