"""Which devices can be used here, why others cannot, and bringing data to the one wanted.

Data already on a device stays there. Host data goes to a CUDA GPU where CuPy works, and is trained
on the CPU otherwise. Asking for "cuda" outright gets the actual reason if it cannot be had, rather
than a silent CPU run.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpustump import arrays
from gpustump.arrays.libraries import Array

_CUPY_WANTED = "pip install 'gpustump[cuda13]' (or 'gpustump[cuda12]' for a CUDA 12 driver)"

OLDEST = (7, 0)
"""The least compute capability that the CUDA kernels are made for."""


class DeviceError(RuntimeError):
    """A device that was asked for and cannot be used; the message says why."""


@dataclass(frozen=True)
class Device:
    """One way to compute.

    Attributes
    ----------
    name : str
        What the `device` parameter takes: "cpu", "cuda:0", ...
    library : str
        The array library that computes there.
    version : str or None
        Its version; None if it is not installed.
    usable : bool
    detail : str
        What it is, or why it cannot be used and what to do.
    """

    name: str
    library: str
    version: str | None
    usable: bool
    detail: str


def devices() -> tuple[Device, ...]:
    """What is usable on this machine, and why the rest is not.

    Libraries for arrays on the CPU are looked up, not imported. CuPy is imported and made to
    compute something on each GPU.
    """
    host = [Device("cpu", "numpy", _version("numpy"), True, "trains host data"), _numba()]
    for library in ("torch", "jax", "array_api_strict"):
        version = _version(library)
        found = "takes and answers in its arrays" if version else "not installed (optional)"
        host.append(Device("cpu", library, version, version is not None, found))
    return (*host, *_cuda_devices())


def _numba() -> Device:
    version = _version("numba")
    if version is None:
        how = (
            "not installed: pip install 'gpustump[cpu]' makes training on the CPU many times faster"
        )
        return Device("cpu", "numba", None, False, how)
    return Device("cpu", "numba", version, True, "compiles the CPU kernels for host data")


def _cuda_devices() -> list[Device]:
    version = _version("cupy")
    try:
        cupy = working_cupy()
        count = cupy.cuda.runtime.getDeviceCount()
    except DeviceError as error:
        return [Device("cuda", "cupy", version, False, str(error))]
    found = []
    for index in range(count):
        try:
            found.append(Device(f"cuda:{index}", "cupy", version, True, _tried(cupy, index)))
        except DeviceError as error:
            found.append(Device(f"cuda:{index}", "cupy", version, False, str(error)))
    return found


def _version(library: str) -> str | None:
    if importlib.util.find_spec(library) is None:
        return None
    for distribution in importlib.metadata.packages_distributions().get(library, []):
        return importlib.metadata.version(distribution)
    return "unknown"


def working_cupy() -> Any:
    """CuPy, if it is installed, loads, finds a driver and at least one device."""
    if importlib.util.find_spec("cupy") is None:
        raise DeviceError(f"CuPy is not installed: {_CUPY_WANTED}.")
    try:
        import cupy
    except Exception as error:  # a broken installation may raise anything
        raise DeviceError(f"CuPy is installed but does not load: {_line(error)}") from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        raise DeviceError(f"CuPy finds no working CUDA driver: {_line(error)}") from error
    if count == 0:
        raise DeviceError("CuPy finds a CUDA driver, but no device.")
    return cupy


def _tried(cupy: Any, index: int) -> str:
    """Compute on a device, and say what it is."""
    try:
        with cupy.cuda.Device(index):
            total = int(cupy.arange(3).sum())
            version = capability_of(cupy.cuda.Device(index))
            name = cupy.cuda.runtime.getDeviceProperties(index)["name"].decode()
            free, all_bytes = cupy.cuda.runtime.memGetInfo()
    except Exception as error:
        raise DeviceError(f"cuda:{index} does not compute: {_line(error)}") from error
    if total != 3:
        raise DeviceError(f"cuda:{index} computes wrongly: 0 + 1 + 2 gave {total}.")
    memory = f"{free / 2**30:.1f} of {all_bytes / 2**30:.1f} GiB free"
    major, minor = version
    old = "" if version >= OLDEST else ", too old for the kernels: the reference scan trains"
    return f"{name}, compute capability {major}.{minor}, {memory}{old}"


def capability_of(device: Any) -> tuple[int, int]:
    """The compute capability of a device of CuPy's: (9, 0)."""
    text = str(device.compute_capability)
    return int(text[:-1]), int(text[-1])


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"


def check_device(device: Any) -> str:
    """One of "auto", "cpu", "cuda" or "cuda:N"."""
    if not isinstance(device, str):
        raise TypeError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:N'; got {device!r}.")
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
        raise ValueError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:N'; got {device!r}.")
    return device


def places_to_train(x: Array, device: str) -> tuple[str, ...]:
    """The devices to try for data, best first: one, unless "auto" leaves the choice.

    Parameters
    ----------
    x : array
    device : str
        As `check_device` allows.
    """
    here = arrays.device_name(x)
    if device != "auto":
        return (here if device == "cuda" and here.startswith("cuda") else device,)
    return (here,) if here != "cpu" or not _has_cuda() else ("cuda", "cpu")


def check_usable(device: str) -> None:
    """Refuse a device that cannot be had, before any data is read.

    Raises
    ------
    DeviceError
        That says why.
    """
    if device.startswith("cuda"):
        _tried(*cupy_device(device))


def cupy_device(place: str) -> tuple[Any, int]:
    """CuPy and the number of a device: the one named, or CuPy's current one for plain "cuda"."""
    cupy = working_cupy()
    count = cupy.cuda.runtime.getDeviceCount()
    index = int(place.partition(":")[2] or cupy.cuda.Device().id)
    if index >= count:
        raise DeviceError(f"device 'cuda:{index}' is not there: CuPy finds {count}, from cuda:0.")
    return cupy, index


@contextlib.contextmanager
def explained_errors(place: str) -> Iterator[None]:
    """Turn a GPU library's own errors into a DeviceError that says what happened where."""
    try:
        yield
    except Exception as error:
        kind = type(error)
        if kind.__name__ in ("OutOfMemoryError", "OutOfDeviceMemoryError"):
            raise DeviceError(f"{place} is out of memory: {_line(error)}") from error
        names = ("CUDA", "Cuda", "NVRTC", "Compile", "Accelerator")
        if kind.__name__.startswith(names) or str(error).startswith("CuPy failed to load"):
            raise DeviceError(f"{place} failed: {_line(error)}") from error
        raise


@functools.cache
def _has_cuda() -> bool:
    try:
        check_usable("cuda")  # it may be found and yet lack a library it needs to compute
    except DeviceError:
        return False
    return True
