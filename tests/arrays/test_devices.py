"""Which devices can be used, and why the others cannot, in every state that CuPy may be in.

A module of the same name stands in for CuPy, so that all states can be tested without a GPU: not
installed, broken, without a driver, without a device, out of memory, computing wrongly, and well.
"""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import importlib.util
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpustump import Device, DeviceError, devices
from gpustump.arrays import devices as device_list
from gpustump.arrays import moving
from gpustump.arrays.devices import how_to_install
from gpustump.data import tables as validation
from gpustump.engines.cuda import device


class CUDARuntimeError(RuntimeError):
    """As CuPy's own of that name."""


class OutOfMemoryError(MemoryError):
    """As CuPy's own of that name."""


class FakeDevice:
    current = 0
    compute_capability = "90"

    def __init__(self, index: int | None = None) -> None:
        self.id = FakeDevice.current if index is None else index

    def __enter__(self) -> FakeDevice:
        self._before, FakeDevice.current = FakeDevice.current, self.id
        return self

    def __exit__(self, *error: object) -> None:
        FakeDevice.current = self._before


def fake_cupy(count: int | Exception = 1, total: int | Exception = 3) -> Any:
    """A CuPy with so many devices, on which 0 + 1 + 2 is `total`; or which fails there."""

    def answered(value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    cupy: Any = types.ModuleType("cupy")
    cupy.__spec__ = importlib.machinery.ModuleSpec("cupy", loader=None)
    cupy.arange = lambda n: types.SimpleNamespace(sum=lambda: answered(total))
    cupy.asarray = lambda x: ("on", FakeDevice.current, answered(total) and x)
    cupy.ndarray = type("ndarray", (), {})
    cupy.cuda = types.SimpleNamespace(
        Device=FakeDevice,
        runtime=types.SimpleNamespace(
            getDeviceCount=lambda: answered(count),
            getDeviceProperties=lambda index: {"name": f"Card {index}".encode()},
            memGetInfo=lambda: (3 * 2**30, 8 * 2**30),
        ),
    )
    return cupy


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Put a module in CuPy's place, or nothing at all."""
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.metadata, "packages_distributions", dict)  # it takes a second

    def put(module: Any) -> None:
        monkeypatch.setattr(
            importlib.util,
            "find_spec",
            lambda name, *rest: (
                getattr(module, "__spec__", None) if name == "cupy" else real(name, *rest)
            ),
        )
        if module is None:
            monkeypatch.delitem(sys.modules, "cupy", raising=False)
        else:
            monkeypatch.setitem(sys.modules, "cupy", module)

    FakeDevice.current = 0
    return put


def cuda() -> list[Device]:
    return [device for device in devices() if device.library == "cupy"]


def test_the_cpu_is_always_usable():
    first = devices()[0]
    assert (first.name, first.library, first.usable) == ("cpu", "numpy", True)
    assert first.version == np.__version__


def test_libraries_that_are_not_installed_are_named_as_such(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None)
    found = {device.library: device for device in devices()}
    for library in ("torch", "jax", "array_api_strict"):
        assert not found[library].usable
        assert found[library].version is None
        assert "not installed" in found[library].detail
    assert "CuPy is not installed: pip install" in found["cupy"].detail


def test_without_cupy_the_message_says_how_to_install_it(install):
    install(None)
    (device,) = cuda()
    assert (device.name, device.usable, device.version) == ("cuda", False, None)
    assert device.detail.startswith(f"CuPy is not installed: {how_to_install('cuda13')} (cuda12 ")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("raise ImportError('libcudart.so.12: cannot open shared object file')", "libcudart.so.12"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_cupy_that_does_not_load_is_quoted(tmp_path, monkeypatch, line, said):
    (tmp_path / "cupy").mkdir()
    (tmp_path / "cupy" / "__init__.py").write_text(line + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    (device,) = cuda()
    assert not device.usable
    assert device.detail.startswith("CuPy is installed but does not load: ")
    assert said in device.detail
    assert "\n" not in device.detail


DRIVER = CUDARuntimeError("cudaErrorInsufficientDriver: too old")
MEMORY = OutOfMemoryError("Out of memory allocating 512 bytes")


@pytest.mark.parametrize(
    ("state", "name", "detail"),
    [
        (
            {"count": DRIVER},
            "cuda",
            f"CuPy finds no working CUDA driver: CUDARuntimeError: {DRIVER}",
        ),
        ({"count": 0}, "cuda", "CuPy finds a CUDA driver, but no device."),
        ({"total": MEMORY}, "cuda:0", f"cuda:0 does not compute: OutOfMemoryError: {MEMORY}"),
        ({"total": 4}, "cuda:0", "cuda:0 computes wrongly: 0 + 1 + 2 gave 4."),
    ],
)
def test_a_device_that_cannot_compute_is_not_usable_and_says_why(install, state, name, detail):
    install(fake_cupy(**state))
    (device,) = cuda()
    assert (device.name, device.usable, device.detail) == (name, False, detail)
    install(fake_cupy(count=CUDARuntimeError()))  # an error without words is named
    assert "CUDARuntimeError" in cuda()[0].detail


def test_devices_that_work_say_what_they_are(install):
    install(fake_cupy(count=2))
    first, second = cuda()
    assert (first.name, second.name) == ("cuda:0", "cuda:1")
    assert first.usable
    assert second.usable
    assert second.detail == "Card 1, compute capability 9.0, 3.0 of 8.0 GiB free"
    assert FakeDevice.current == 0


X = np.ones((2, 2))


def test_data_are_brought_to_the_device_that_was_asked_for(install):
    install(fake_cupy(count=2))
    assert moving.moved_to_device(X, "cpu") is X
    assert moving.moved_to_device(X, "cuda")[:2] == ("on", 0)
    assert moving.moved_to_device(X, "cuda:1")[:2] == ("on", 1)
    assert FakeDevice.current == 0


def test_a_device_that_cannot_be_had_is_an_error_with_the_reason(install):
    install(None)
    with pytest.raises(DeviceError, match="CuPy is not installed"):
        moving.moved_to_device(X, "cuda")
    install(fake_cupy(count=0))
    with pytest.raises(DeviceError, match="no device"):
        moving.moved_to_device(X, "cuda:0")
    install(fake_cupy(count=1))
    with pytest.raises(DeviceError, match=r"'cuda:3' is not there: CuPy finds 1"):
        moving.moved_to_device(X, "cuda:3")
    install(fake_cupy(total=OutOfMemoryError("allocating 9 bytes")))
    with pytest.raises(DeviceError, match=r"cuda:0 is out of memory: .*allocating 9 bytes"):
        moving.moved_to_device(X, "cuda")


def test_errors_of_a_gpu_library_are_explained_and_others_left_alone():
    for error, said in (
        (CUDARuntimeError("lost"), r"cuda:0 failed: CUDARuntimeError: lost"),
        (device.OutOfDeviceMemoryError("512 bytes"), r"cuda:0 is out of memory: .*512 bytes"),
    ):
        failed = pytest.raises(DeviceError, match=said)
        with failed, device_list.explained_errors("cuda:0"):
            raise error
    with pytest.raises(ZeroDivisionError), device_list.explained_errors("cuda:0"):
        raise ZeroDivisionError


def test_names_of_devices_are_accepted_and_others_refused():
    for name in ("auto", "cpu", "cuda", "cuda:0", "cuda:12"):
        assert device_list.check_device(name) == name
    for name in ("gpu", "CUDA", "cuda:", "cuda:-1", "cuda:x", "", "cpu "):
        with pytest.raises(ValueError, match=r"device must be 'auto', 'cpu', 'cuda'") as error:
            device_list.check_device(name)
        assert repr(name) in str(error.value)
    for value in (None, 0, b"cpu"):
        with pytest.raises(TypeError, match=r"device must be .* got"):
            device_list.check_device(value)


class OnGpu:
    """An object that describes memory of a GPU, in one of the two ways."""

    def __init__(self, way: str) -> None:
        if way == "interface":
            self.__cuda_array_interface__ = {"shape": (2, 2)}
        else:
            self.__dlpack__ = lambda **how: None
            self.__dlpack_device__ = lambda: (2, 0)


@pytest.mark.parametrize("way", ["interface", "dlpack"])
def test_an_object_that_describes_memory_of_a_gpu_becomes_a_cupy_array_without_a_copy(install, way):
    cupy = fake_cupy()
    cupy.asarray = lambda x: ("the same memory as", x)
    cupy.from_dlpack = lambda x: ("the same memory as", x)
    install(cupy)
    there = OnGpu(way)
    assert validation.as_array(there, "X") == ("the same memory as", there)
    install(None)
    with pytest.raises(DeviceError, match=r"X \(OnGpu\) is on a GPU, and CuPy is needed .*pip"):
        validation.as_array(there, "X")


def test_an_object_that_describes_memory_of_the_host_becomes_a_numpy_array_without_a_copy():
    values = np.arange(6.0).reshape(2, 3)

    class OnHost:
        def __dlpack__(self, **how: Any) -> Any:
            return values.__dlpack__(**how)

        def __dlpack_device__(self) -> Any:
            return values.__dlpack_device__()

    found = validation.as_array(OnHost(), "X")
    assert np.shares_memory(found, values)


EARLY, LATE = "61", "120"
"""Compute capabilities, as CuPy tells them."""


class FakeKernel:
    """As CuPy's RawKernel: called with a grid, a block and arguments."""

    def __init__(self, name: str, calls: list[Any]) -> None:
        self.name, self.calls = name, calls
        self.allowed: list[int] = []

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "max_dynamic_shared_size_bytes":
            self.allowed.append(value)
        super().__setattr__(name, value)

    def __call__(self, grid: Any, block: Any, arguments: Any, *, shared_mem: int) -> None:
        self.calls.append((self.name, grid, block, arguments, shared_mem))


def cupy_with_kernels(capability: str, calls: list[Any]) -> Any:
    """A CuPy whose modules hold kernels that note how they are called."""
    cupy = fake_cupy()
    attributes = {
        "MultiProcessorCount": 132,
        "MaxThreadsPerBlock": 1024,
        "MaxSharedMemoryPerBlockOptin": 232448,
    }

    class DeviceWithAttributes(FakeDevice):
        @property
        def attributes(self) -> dict[str, int]:
            return attributes

        compute_capability = capability

    class RawModule:
        def __init__(self, code: str, options: tuple[str, ...]) -> None:
            calls.append(("compiled", code[:40], options))
            assert "#include" not in code

        def get_function(self, name: str) -> FakeKernel:
            return FakeKernel(name, calls)

    cupy.RawModule = RawModule
    cupy.cuda.Device = DeviceWithAttributes
    cupy.cuda.memory = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
    cupy.get_default_memory_pool = lambda: types.SimpleNamespace(free_bytes=lambda: 7)
    return cupy


def test_kernels_are_compiled_a_file_at_a_time_and_launched(install):
    calls: list[Any] = []
    install(cupy_with_kernels(LATE, calls))
    one = device.CupyDevice(0)
    assert (one.name, one.n_processors, one.most_shared) == ("cuda:0", 132, 232448)
    assert one.free_bytes() == 3 * 2**30 + 7
    one.launch("mark", 5, 256, 1, 2.0)
    one.launch("add_32", 7, 1024, 3, shared=131072)
    one.launch("add_32", 7, 1024, 4, shared=131072)
    (compiled, _, options), *launched = calls
    assert (compiled, options) == ("compiled", device.OPTIONS)
    assert launched == [
        ("mark", (5,), (256,), (1, 2.0), 0),
        ("add_32", (7,), (1024,), (3,), 131072),
        ("add_32", (7,), (1024,), (4,), 131072),
    ]
    assert one._kernels["add_32"].allowed == [131072]  # asked for once
    assert one._kernels["mark"].allowed == []


def test_devices_older_than_the_kernels_are_left_to_the_reference(install, monkeypatch):
    install(cupy_with_kernels(EARLY, []))
    device._device.cache_clear()
    assert device.device_named("cuda:0") is None
    with pytest.raises(device.TooOldError, match=r"cuda:0 has compute capability 6\.1"):
        device.CupyDevice(0)
    (old,) = cuda()
    assert old.usable
    assert "compute capability 6.1" in old.detail
    assert "too old for the kernels: the reference scan trains there" in old.detail
    install(cupy_with_kernels(LATE, []))
    device._device.cache_clear()
    assert device.device_named("cuda").name == "cuda:0"
    device._device.cache_clear()


def test_a_copy_that_nobody_waits_for_keeps_its_memory_until_it_is_there(install):
    cupy, waited = cupy_with_kernels(LATE, []), []
    cupy.cuda.alloc_pinned_memory = lambda n_bytes: bytearray(n_bytes)
    cupy.cuda.Event = lambda **how: types.SimpleNamespace(
        record=lambda: None, synchronize=lambda: waited.append("arrived")
    )
    install(cupy)
    data = types.SimpleNamespace(copy_to_host_async=lambda address, n_bytes: None)
    there = types.SimpleNamespace(
        data=data, nbytes=16, size=2, dtype=np.dtype(np.int64), shape=(2, 1)
    )
    sent = device.CupyDevice(0).sent(there)
    assert waited == []
    del sent
    assert waited == ["arrived"]
    assert device.CupyDevice(0).sent(there)().shape == (2, 1)


class HostMemoryError(MemoryError):
    """As NumPy's own."""


def test_running_out_of_memory_has_one_name_whatever_the_library_calls_it(install):
    install(cupy_with_kernels(LATE, []))
    for error in (OutOfMemoryError("allocating 512 bytes"), MemoryError("bad_alloc of 512 bytes")):
        fails = pytest.raises(device.OutOfDeviceMemoryError, match="512")
        with fails, device.CupyDevice(0).active():
            raise error
    with pytest.raises(HostMemoryError), device.CupyDevice(0).active():
        raise HostMemoryError  # the host's memory is not the device's
