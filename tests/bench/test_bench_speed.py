"""The memory's speed and its peak: on the host, and on GPUs that are simulated here."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from bench import speed
from bench.memory import peak_memory


@pytest.mark.parametrize("threads", [1, 2])
def test_the_host_copies_and_gathers_as_many_bytes_as_it_says(threads, monkeypatch):
    monkeypatch.setattr(speed, "_FEWEST_GATHERED", 2_500)
    targets, fetched = [], []
    copyto, take = np.copyto, np.take

    def spied_copy(target: np.ndarray, source: np.ndarray) -> None:
        copyto(target, source)
        targets.append(target)

    def spied_take(vector: np.ndarray, order: np.ndarray, *, out: np.ndarray, mode: str) -> None:
        take(vector, order, out=out, mode=mode)
        fetched.append((order.copy(), out.copy()))

    monkeypatch.setattr(np, "take", spied_take)
    monkeypatch.setattr(np, "copyto", spied_copy)
    probe = speed.host_probe(1000, threads, copy_bytes=1 << 16)
    probe.warm_up()
    assert sum(target.nbytes for target in targets) * 2 == probe.copied
    assert sum(len(out) for _, out in fetched) == probe.gathered >= 2_500
    assert all(np.array_equal(order, out) for order, out in fetched)
    assert all(len(set(order)) == 1000 for order, _ in fetched)


def test_every_measure_is_one_timing_of_each():
    probe = speed.host_probe(1000, 1, copy_bytes=1 << 16)
    probe.measure()
    probe.measure()
    found = probe.speed()
    assert (len(found.copy), len(found.gather), found.device) == (2, 2, "cpu")
    assert min(found.copy + found.gather) > 0


def test_no_gpu_is_no_probe(monkeypatch):
    monkeypatch.setattr(speed, "gpus", lambda: ())
    assert speed.gpu_probe(1000) is None


def test_a_gpu_is_measured_by_the_first_library_that_works_there(monkeypatch, capsys):
    broken = SimpleNamespace(__spec__=object())  # installed, and nothing in it works
    monkeypatch.setattr(speed, "gpus", lambda: ("a GPU",))
    monkeypatch.setattr(speed, "synchronise", lambda: None)
    monkeypatch.setattr(speed, "release", lambda: None)
    monkeypatch.setitem(sys.modules, "torch", broken)
    monkeypatch.setitem(sys.modules, "cupy", np)  # NumPy has the same names
    probe = speed.gpu_probe(1000, 1 << 16)
    probe.warm_up()
    probe.measure()
    found = probe.speed()
    assert (found.device, found.copied) == ("cuda:0", 2 << 16)
    assert found.gathered >= 1 << 24
    monkeypatch.setitem(sys.modules, "cupy", broken)
    assert speed.gpu_probe(1000, 1 << 16) is None
    assert capsys.readouterr().err.count("the GPU's memory cannot be measured by") == 2


class PlayedGPU:
    """NVIDIA's management library, as far as it is used, over a number of bytes."""

    NVMLError = RuntimeError

    def __init__(self, broken: bool = False, count: int = 1):
        self.used, self.broken, self.count = 1_000, broken, count
        self.__spec__ = object()

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return self.count

    def nvmlInit(self) -> None:  # noqa: N802
        if self.broken:
            raise RuntimeError("no driver")

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetMemoryInfo(self, _: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(used=self.used)


def test_the_peak_on_a_gpu_is_seen_though_it_passes(monkeypatch):
    gpu = PlayedGPU()
    monkeypatch.setitem(sys.modules, "pynvml", gpu)
    with peak_memory() as peak:
        gpu.used = 5_000
        time.sleep(0.1)
        gpu.used = 2_000
    assert peak.device == 4_000


@pytest.mark.parametrize("gpu", [PlayedGPU(broken=True), PlayedGPU(count=2)])
def test_without_a_driver_or_with_two_gpus_there_is_no_figure(gpu, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", gpu)
    with peak_memory() as peak:
        pass
    assert peak.device is None


def test_an_error_inside_passes_through_and_ends_the_watching(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", PlayedGPU())
    with pytest.raises(KeyError), peak_memory():
        raise KeyError
