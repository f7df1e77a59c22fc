"""Why the CUDA kernels cannot run on a device, in words; CuPy is played by a module made here."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gpustump import DeviceError
from gpustump.engines.cuda import device

Install = Callable[[Any], None]


class CUDARuntimeError(RuntimeError):
    """As CuPy's own of that name."""


class FakeDevice:
    """Device number 0, or the one asked for."""

    compute_capability = "90"
    attributes = types.MappingProxyType(
        {
            "MultiProcessorCount": 132,
            "MaxThreadsPerBlock": 1024,
            "MaxSharedMemoryPerBlockOptin": 232448,
        }
    )

    def __init__(self, index: int = 0) -> None:
        self.id = index

    __enter__ = __exit__ = lambda self, *error: None


def fake_cupy(count: int = 1, capability: str = "90", total: int | Exception = 3) -> Any:
    """A CuPy with so many devices, on which 0 + 1 + 2 is `total`, or fails with it."""

    def summed() -> int:
        if isinstance(total, Exception):
            raise total
        return total

    cupy: Any = types.ModuleType("cupy")
    cupy.__spec__ = importlib.machinery.ModuleSpec("cupy", loader=None)
    cupy.arange = lambda n: types.SimpleNamespace(sum=summed)
    cupy.ndarray = type("ndarray", (), {})
    cupy.cuda = types.SimpleNamespace(
        Device=type("Device", (FakeDevice,), {"compute_capability": capability}),
        memory=types.SimpleNamespace(OutOfMemoryError=MemoryError),
        runtime=types.SimpleNamespace(
            CUDARuntimeError=CUDARuntimeError,
            getDeviceCount=lambda: count,
            getDeviceProperties=lambda index: {"name": b"A card"},
            memGetInfo=lambda: (2**30, 2**33),
        ),
    )
    return cupy


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts a module in CuPy's place, or removes CuPy."""
    real = importlib.util.find_spec

    def put(module: Any) -> None:
        device._device.cache_clear()
        found = None if module is None else module.__spec__
        monkeypatch.setattr(
            importlib.util,
            "find_spec",
            lambda name, *r: found if name == "cupy" else real(name, *r),
        )
        monkeypatch.setitem(sys.modules, "cupy", module)

    yield put
    device._device.cache_clear()


@pytest.mark.parametrize("capability", ["70", "120"])
def test_devices_that_the_kernels_support_have_no_problem(install, capability):
    install(fake_cupy(capability=capability))
    assert device.problem_of("cuda") is None
    assert device.problem_of("cuda:0") is None
    found = device.device_named("cuda:0")
    assert (found.name, found.n_processors, found.most_threads) == ("cuda:0", 132, 1024)


PROBLEMS = [
    (
        {"capability": "61"},
        "cuda:0",
        "cuda:0 has compute capability 6.1, and the CUDA kernels need 7.0 or higher",
    ),
    ({"count": 2}, "cuda:5", "device 'cuda:5' is not there: CuPy finds 2, numbered from cuda:0."),
    ({"total": 4}, "cuda:0", "cuda:0 computes wrongly: 0 + 1 + 2 gave 4."),
    (
        {"total": CUDARuntimeError("no image")},
        "cuda:0",
        "cuda:0 does not compute: CUDARuntimeError: no image",
    ),
]


@pytest.mark.parametrize(("how", "place", "said"), PROBLEMS)
def test_why_a_device_cannot_be_used_is_told(install, how, place, said):
    install(fake_cupy(**how))
    assert device.problem_of(place) == said
    if place == "cuda:5":
        with pytest.raises(DeviceError, match="cuda:5"):
            device.device_named(place)
    else:
        assert device.device_named(place) is None
    if "capability" in how:
        with pytest.raises(device.TooOldError, match=r"need 7\.0 or higher"):
            device.CupyDevice(0)


def test_without_cupy_the_problem_says_what_to_install(install):
    install(None)
    assert device.problem_of("cuda").startswith("CuPy is not installed: pip install")


def test_page_locked_memory_that_the_host_cannot_provide_is_told_with_its_size(install):
    def refused(n_bytes: int) -> Any:
        raise CUDARuntimeError("out of memory")

    cupy = fake_cupy()
    cupy.cuda.PinnedMemory = refused
    install(cupy)
    with pytest.raises(DeviceError) as error:
        device.CupyDevice(0).pinned(3_000_000)
    assert str(error.value) == (
        "the host cannot provide 3.0 MB of page-locked memory for copies to cuda:0: out of memory"
    )


def test_records_are_passed_to_cupy_as_arrays_of_one_element(install):
    """CuPy passes such an array by value: its bytes are the kernel's structure."""
    from gpustump.engines.cuda.layout import EFFECT, record

    launched: list[Any] = []

    class RawModule:
        def __init__(self, code: str, options: tuple[str, ...]) -> None:
            pass

        def get_function(self, name: str) -> Any:
            return lambda *rest, **more: launched.append((name, *rest, more))

    cupy = fake_cupy()
    cupy.RawModule = RawModule
    install(cupy)
    signs = {"left": 1, "right": -1, "missing": 1}
    effect = record(EFFECT, **signs, vote=0.5, grown=1.5, kept=0.25, anew=True, halvings=2)
    device.CupyDevice(0).launch("advance", 2, 256, effect, shared=64)
    ((name, grid, block, arguments, more),) = launched
    assert (name, grid, block, more) == ("advance", (2,), (256,), {"shared_mem": 64})
    assert arguments[0] is effect
    assert effect.shape == (1,)
    numbers = np.asarray([0.5, 1.5, 0.25]).tobytes()
    numbers += np.asarray([1, 2]).tobytes()
    assert effect.tobytes() == np.asarray([1, -1, 1]).tobytes() + numbers
