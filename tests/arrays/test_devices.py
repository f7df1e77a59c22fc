"""Which devices can be used, why the others cannot, and how CuPy is called, without a GPU.

A module made here stands in for CuPy in all its states: not installed, broken, without a driver or
a device, out of memory, computing wrongly, too old for the kernels, and well.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.metadata
import importlib.util
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gpustump import Device, DeviceError, devices
from gpustump.arrays import devices as device_list
from gpustump.arrays import moving
from gpustump.arrays.devices import how_to_install
from gpustump.data.tables import as_array
from gpustump.engines.cuda import device
from gpustump.engines.cuda.layout import EFFECT, record

X = np.ones((2, 2))


class CUDARuntimeError(RuntimeError):
    """As CuPy's own of that name."""


class OutOfMemoryError(MemoryError):
    """As CuPy's own of that name."""


class FakeKernel:
    """As CuPy's RawKernel: called with a grid, a block and arguments, which it notes."""

    def __init__(self, name: str, calls: list[Any]) -> None:
        self.name, self.calls = name, calls
        self.max_dynamic_shared_size_bytes = 0

    def __call__(self, grid: Any, block: Any, arguments: Any, *, shared_mem: int) -> None:
        self.calls.append((self.name, grid, block, arguments, shared_mem))


def fake_cupy(
    count: int | Exception = 1, total: int | Exception = 3, capability: str = "90"
) -> Any:
    """A CuPy with so many devices, on which 0 + 1 + 2 is `total`; or which fails there."""

    def answered(value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    class FakeDevice:
        current = 0
        compute_capability = capability
        attributes = types.MappingProxyType({
            "MultiProcessorCount": 132, "MaxThreadsPerBlock": 1024,
            "MaxSharedMemoryPerBlockOptin": 232448,
        })  # fmt: skip

        def __init__(self, index: int | None = None) -> None:
            self.id = FakeDevice.current if index is None else index

        def __enter__(self) -> FakeDevice:
            self._before, FakeDevice.current = FakeDevice.current, self.id
            return self

        def __exit__(self, *error: object) -> None:
            FakeDevice.current = self._before

    class RawModule:
        def __init__(self, code: str, options: tuple[str, ...]) -> None:
            assert "#include" not in code
            cupy.calls.append(("compiled", options))

        def get_function(self, name: str) -> FakeKernel:
            return FakeKernel(name, cupy.calls)

    cupy: Any = types.ModuleType("cupy")
    cupy.__spec__ = importlib.machinery.ModuleSpec("cupy", loader=None)
    cupy.calls, cupy.RawModule, cupy.ndarray = [], RawModule, type("ndarray", (), {})
    cupy.arange = lambda n: types.SimpleNamespace(sum=lambda: answered(total))
    cupy.asarray = lambda x: ("on", FakeDevice.current, answered(total) and x)
    cupy.get_default_memory_pool = lambda: types.SimpleNamespace(free_bytes=lambda: 7)
    cupy.cuda = types.SimpleNamespace(
        Device=FakeDevice,
        memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        Stream=lambda **how: contextlib.nullcontext(),
        runtime=types.SimpleNamespace(
            CUDARuntimeError=CUDARuntimeError,
            getDeviceCount=lambda: answered(count),
            getDeviceProperties=lambda index: {"name": f"Card {index}".encode()},
            memGetInfo=lambda: (3 * 2**30, 8 * 2**30),
        ),
    )
    return cupy


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], Any]]:
    """Puts a module in CuPy's place and returns it; None: CuPy is not installed."""
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.metadata, "packages_distributions", dict)  # it takes a second

    def put(module: Any) -> Any:
        device._device.cache_clear()
        spec = getattr(module, "__spec__", None)
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, *r: spec if name == "cupy" else real(name, *r)
        )
        monkeypatch.setitem(sys.modules, "cupy", module)
        return module

    yield put
    device._device.cache_clear()


def cuda() -> list[Device]:
    return [one for one in devices() if one.library == "cupy"]


def test_the_cpu_is_always_usable_and_libraries_that_are_not_installed_are_named(monkeypatch):
    first = devices()[0]
    assert (first.name, first.library, first.usable) == ("cpu", "numpy", True)
    assert first.version == np.__version__
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None)
    found = {one.library: one for one in devices()}
    for library in ("torch", "jax", "array_api_strict"):
        assert (found[library].usable, found[library].version) == (False, None)
        assert "not installed" in found[library].detail
    assert (found["cupy"].name, found["cupy"].usable) == ("cuda", False)
    wanted = f"CuPy is not installed: {how_to_install('cuda13')} (cuda12 "
    assert found["cupy"].detail.startswith(wanted)


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
    (found,) = cuda()
    assert not found.usable
    assert found.detail.startswith("CuPy is installed but does not load: ")
    assert said in found.detail
    assert "\n" not in found.detail


DRIVER = CUDARuntimeError("cudaErrorInsufficientDriver: too old")
MEMORY = OutOfMemoryError("Out of memory allocating 512 bytes")
UNUSABLE = (
    (None, "cuda", "CuPy is not installed: "),
    ({"count": DRIVER}, "cuda", f"CuPy finds no working CUDA driver: CUDARuntimeError: {DRIVER}"),
    ({"count": CUDARuntimeError()}, "cuda", "CuPy finds no working CUDA driver: CUDARuntimeError"),
    ({"count": 0}, "cuda", "CuPy finds a CUDA driver, but no device."),
    ({"total": MEMORY}, "cuda:0", f"cuda:0 does not compute: OutOfMemoryError: {MEMORY}"),
    ({"total": 4}, "cuda:0", "cuda:0 computes wrongly: 0 + 1 + 2 gave 4."),
)


@pytest.mark.parametrize(("state", "name", "said"), UNUSABLE)
def test_a_device_that_cannot_compute_is_not_usable_and_says_why(install, state, name, said):
    install(None if state is None else fake_cupy(**state))
    (found,) = cuda()
    assert (found.name, found.usable) == (name, False)
    assert found.detail.startswith(said)
    assert (device.problem_of("cuda") or "").startswith(said)


def test_devices_that_work_say_what_they_are_and_get_the_data_that_are_brought_there(install):
    cupy = install(fake_cupy(count=2))
    first, second = cuda()
    assert (first.name, first.usable) == ("cuda:0", True)
    assert (second.name, second.usable) == ("cuda:1", True)
    assert second.detail == "Card 1, compute capability 9.0, 3.0 of 8.0 GiB free"
    assert moving.moved_to_device(X, "cpu") is X
    assert moving.moved_to_device(X, "cuda")[:2] == ("on", 0)
    assert moving.moved_to_device(X, "cuda:1")[:2] == ("on", 1)
    assert cupy.cuda.Device.current == 0


def test_a_device_that_cannot_be_had_is_an_error_with_the_reason(install):
    for module, place, said in (
        (None, "cuda", "CuPy is not installed"),
        (fake_cupy(count=0), "cuda:0", "no device"),
        (fake_cupy(), "cuda:3", r"'cuda:3' is not there: CuPy finds 1, numbered from cuda:0\."),
    ):
        install(module)
        assert device.problem_of(place) is not None
        for use in (lambda at: moving.moved_to_device(X, at), device.device_named):
            with pytest.raises(DeviceError, match=said):
                use(place)
    install(fake_cupy(total=OutOfMemoryError("allocating 9 bytes")))
    with pytest.raises(DeviceError, match=r"cuda:0 is out of memory: .*allocating 9 bytes"):
        moving.moved_to_device(X, "cuda")
    assert device.device_named("cuda") is None


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
    for name in ("gpu", "CUDA", "cuda:", "cuda:-1", "cuda:x", "", "cpu ", None, 0, b"cpu"):
        wanted = ValueError if isinstance(name, str) else TypeError
        with pytest.raises(wanted, match=r"device must be 'auto', 'cpu', 'cuda'") as error:
            device_list.check_device(name)
        assert repr(name) in str(error.value)


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
    cupy = install(fake_cupy())
    cupy.asarray = cupy.from_dlpack = lambda x: ("the same memory as", x)
    there = OnGpu(way)
    assert as_array(there, "X") == ("the same memory as", there)
    install(None)
    with pytest.raises(DeviceError, match=r"X \(OnGpu\) is on a GPU, and CuPy is needed .*pip"):
        as_array(there, "X")


def test_an_object_that_describes_memory_of_the_host_becomes_a_numpy_array_without_a_copy():
    values = np.arange(6.0).reshape(2, 3)

    class OnHost:
        def __dlpack__(self, **how: Any) -> Any:
            return values.__dlpack__(**how)

        def __dlpack_device__(self) -> Any:
            return values.__dlpack_device__()

    assert np.shares_memory(as_array(OnHost(), "X"), values)


def test_kernels_are_compiled_a_file_at_a_time_and_launched_with_arguments_by_value(install):
    """A record is an array of one element, which CuPy passes by value: the kernel's structure."""
    cupy = install(fake_cupy())
    one = device.CudaDevice(0)
    assert (one.name, one.n_processors, one.most_threads) == ("cuda:0", 132, 1024)
    assert (one.most_shared, one.free_bytes()) == (232448, 3 * 2**30 + 7)
    signs = {"left": 1, "right": -1, "missing": 1}
    effect = record(EFFECT, **signs, vote=0.5, grown=1.5, kept=0.25, anew=True, rescale_exponent=2)
    one.launch("mark", 5, 256, 1, effect)
    one.launch("add_32", 7, 1024, 3, shared=131072)
    compiled, *launched = cupy.calls
    assert compiled == ("compiled", device.OPTIONS)
    assert launched == [
        ("mark", (5,), (256,), (1, effect), 0),
        ("add_32", (7,), (1024,), (3,), 131072),
    ]
    assert effect.shape == (1,)
    parts = ([1, -1, 1], [0.5, 1.5, 0.25], [1, 2])
    assert effect.tobytes() == b"".join(np.asarray(part).tobytes() for part in parts)
    assert one._kernels["add_32"].max_dynamic_shared_size_bytes == 131072
    assert one._kernels["mark"].max_dynamic_shared_size_bytes == 0


def test_devices_older_than_the_kernels_are_left_to_the_reference(install):
    install(fake_cupy(capability="61"))
    assert device.device_named("cuda:0") is None
    said = "cuda:0 has compute capability 6.1, and the CUDA kernels need 7.0 or higher"
    assert device.problem_of("cuda:0") == said
    with pytest.raises(DeviceError, match=r"6\.1, and the CUDA kernels need 7\.0"):
        device.CudaDevice(0)
    (old,) = cuda()
    assert old.usable
    assert "compute capability 6.1" in old.detail
    assert "too old for the kernels: the reference scan trains there" in old.detail
    for capability in ("70", "120"):
        install(fake_cupy(capability=capability))
        assert device.problem_of("cuda") is device.problem_of("cuda:0") is None
        assert device.device_named("cuda").name == "cuda:0"


def test_a_copy_that_nobody_waits_for_keeps_its_memory_until_it_is_there(install):
    cupy, waited = install(fake_cupy()), []
    cupy.cuda.alloc_pinned_memory = lambda n_bytes: bytearray(n_bytes)
    cupy.cuda.Event = lambda **how: types.SimpleNamespace(
        record=lambda: None, synchronize=lambda: waited.append("arrived")
    )
    data = types.SimpleNamespace(copy_to_host_async=lambda address, n_bytes: None)
    there = types.SimpleNamespace(
        data=data, nbytes=16, size=2, dtype=np.dtype(np.int64), shape=(2, 1)
    )
    sent = device.CudaDevice(0).sent(there)
    assert waited == []
    del sent
    assert waited == ["arrived"]
    assert device.CudaDevice(0).sent(there)().shape == (2, 1)


class HostMemoryError(MemoryError):
    """As NumPy's own."""


def test_running_out_of_memory_has_one_name_and_tells_what_was_wanted(install):
    cupy = install(fake_cupy())
    for error in (OutOfMemoryError("allocating 512 bytes"), MemoryError("bad_alloc of 512 bytes")):
        fails = pytest.raises(device.OutOfDeviceMemoryError, match="512")
        with fails, device.CudaDevice(0).active():
            raise error
    with pytest.raises(HostMemoryError), device.CudaDevice(0).active():
        raise HostMemoryError  # the host's memory is not the device's

    def refused(n_bytes: int) -> Any:
        raise CUDARuntimeError("out of memory")

    cupy.cuda.PinnedMemory = refused
    with pytest.raises(DeviceError) as failed:
        device.CudaDevice(0).pinned(3_000_000)
    said = "the host cannot provide 3.0 MB of page-locked memory for copies to cuda:0"
    assert str(failed.value) == f"{said}: out of memory"
