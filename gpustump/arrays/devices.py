"""Which devices can be used on this machine, and why others cannot.

If a user asks for "cuda" and no GPU works, the error says why. Which device a table trains on is
decided in `engines.route`.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

OLDEST = (7, 0)
"""The lowest compute capability that the CUDA kernels support."""


class DeviceError(RuntimeError):
    """A device was asked for and cannot be used; the message says why.

    Examples
    --------
    >>> from gpustump import AdaBoostClassifier, DeviceError
    >>> try:
    ...     AdaBoostClassifier(device="cuda:999").fit([[1], [2]], [0, 1])
    ... except DeviceError:
    ...     print("There is no such GPU.")
    There is no such GPU.
    """


@dataclass(frozen=True)
class Device:
    """A device, and an array library that computes on it.

    Attributes
    ----------
    name : str
        The value for the `device` parameter: "cpu", "cuda:0", ...
    library : str
        The array library that computes there.
    version : str or None
        Its version; None if it is not installed.
    usable : bool
    detail : str
        A description; or why the device or library cannot be used, and what to do.

    Examples
    --------
    >>> from gpustump import devices
    >>> first = devices()[0]
    >>> first.name, first.library, first.usable
    ('cpu', 'numpy', True)
    """

    name: str
    library: str
    version: str | None
    usable: bool
    detail: str


def devices() -> tuple[Device, ...]:
    """Every device and library on this machine, usable or not.

    Libraries for arrays on the CPU are looked up without importing them. CuPy is imported, and
    computes something on each GPU.

    Returns
    -------
    tuple of Device
        Those that cannot be used say why in `detail`.

    Examples
    --------
    >>> from gpustump import devices
    >>> usable = [device for device in devices() if device.usable]
    >>> usable[0].name, usable[0].library
    ('cpu', 'numpy')
    """
    host = [Device("cpu", "numpy", _version("numpy"), True, "trains host data")]
    faster = f"not installed: it makes training many times faster; {how_to_install('cpu')}"
    about = {"numba": ("compiles the CPU kernels for host data", faster)}
    for library in ("torch", "jax", "array_api_strict"):
        about[library] = ("accepts and returns its arrays", "not installed (optional)")
    for library, (use, lack) in about.items():
        version = _version(library)
        found = lack if version is None else use
        host.append(Device("cpu", library, version, version is not None, found))
    return (*host, *_cuda_devices())


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
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(library)
    # CuPy's packages are named after the CUDA that they are for. Looking through all that is
    # installed takes most of a second.
    for distribution in importlib.metadata.packages_distributions().get(library, []):
        return importlib.metadata.version(distribution)
    return "unknown"


def working_cupy() -> Any:
    """CuPy, after checking that it loads and finds a device.

    Raises
    ------
    DeviceError
        If CuPy is not installed, does not load, or finds no driver or no device.
    """
    if importlib.util.find_spec("cupy") is None:
        raise DeviceError(
            f"CuPy is not installed: {how_to_install('cuda13')} (cuda12 for a CUDA 12 driver)."
        )
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
    """A description of a device, after computing something on it."""
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
    old = "" if version >= OLDEST else ", too old for the kernels: the reference scan trains there"
    return f"{name}, compute capability {major}.{minor}, {memory}{old}"


def capability_of(device: Any) -> tuple[int, int]:
    """The compute capability of a CuPy device, such as (9, 0)."""
    text = str(device.compute_capability)
    return int(text[:-1]), int(text[-1])


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"


def check_device(device: Any) -> str:
    """The `device` parameter: "auto", "cpu", "cuda" or "cuda:N".

    Raises
    ------
    TypeError, ValueError
        If it is anything else.
    """
    if isinstance(device, str) and re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
        return device
    kind = ValueError if isinstance(device, str) else TypeError
    raise kind(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:N'; got {device!r}.")


def check_usable(device: str) -> None:
    """Refuse a device that cannot be used, before any data is read.

    Raises
    ------
    DeviceError
        If it cannot be used; the message says why.
    """
    if device.startswith("cuda"):
        _tried(*cupy_device(device))


def cupy_device(place: str) -> tuple[Any, int]:
    """CuPy and the number of a device: that of "cuda:N", or CuPy's current one for "cuda".

    Raises
    ------
    DeviceError
        If there is no such device, or CuPy does not work.
    """
    cupy = working_cupy()
    count = cupy.cuda.runtime.getDeviceCount()
    index = int(place.partition(":")[2] or cupy.cuda.Device().id)
    if index >= count:
        raise DeviceError(
            f"device 'cuda:{index}' is not there: CuPy finds {count}, numbered from cuda:0."
        )
    return cupy, index


@contextlib.contextmanager
def explained_errors(place: str) -> Iterator[None]:
    """Turn a GPU library's errors into a DeviceError that names the device and the cause."""
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


def how_to_install(extra: str) -> str:
    """The command that installs what an extra of gpustump brings, as a part of a sentence."""
    return f"pip install '.[{extra}]' in a checkout of gpustump"  # the package is on no index
