"""A CUDA device as the engine sees it: memory, launches, and what shapes them.

Everything asked of the device passes through `CudaDevice`, so that tests can put another one in its
place, which runs the same kernels on the CPU; nothing else in this folder knows CuPy.
Array operations that are no business of ours, such as sorting, are the array library's (`xp`).

CuPy compiles the `.cu` files with NVRTC when a kernel is first used, and keeps the result on disk.
Contraction into fused multiply-adds is switched off: it would round differently from the CPU.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gpustump import arrays
from gpustump.arrays.devices import OLDEST, DeviceError, capability_of, check_usable, cupy_device
from gpustump.arrays.libraries import Array
from gpustump.data.readable import readable_bytes

FOLDER = Path(__file__).resolve().parent

KERNELS = {
    "codes": ("code_feature",),
    "sweep": ("mark", "advance", "add_32", "add_16", "add_8"),
    "search": ("weigh", "list_bins", "scan", "finish"),
    "prediction": tuple(
        f"predict_{outputs}{dtype}"
        for outputs in ("", "outputs_")
        for dtype in (
            "float16", "float32", "float64", "bool", "int8", "uint8", "int16", "uint16", "int32",
            "uint32", "int64", "uint64",
        )
    ),
}  # fmt: skip
"""Which file holds which kernels."""

OPTIONS = ("-std=c++17", "--fmad=false")
"""What NVRTC is told."""

THREADS = 256
"""Of a block, but for kernels whose blocks are as large as can be."""

_BLOCKS_A_PROCESSOR = 8
"""As many of `THREADS` as a processor runs at once."""

_SHARED_FOR_ALL = 48 * 1024
"""Bytes of shared memory that a kernel may have without asking."""


class OutOfDeviceMemoryError(MemoryError):
    """The device has not so much memory left."""


class CudaDevice(Protocol):
    """What the engine needs of a device.

    Attributes
    ----------
    name : str
        "cuda:0", ...
    xp : module
        The array library whose arrays are the device's memory.
    n_processors : int
        How many blocks run at once at least.
    most_threads : int
        Of a block.
    most_shared : int
        Bytes of shared memory that a block can have.
    """

    name: str
    xp: Any
    n_processors: int
    most_threads: int
    most_shared: int

    def active(self) -> contextlib.AbstractContextManager[Any]:
        """Within it, the array library computes on this device."""

    def free_bytes(self) -> int:
        """Memory that can still be had."""

    def takes(self, x: Array) -> bool:
        """Whether an array's memory is this device's, so that it need not be copied."""

    def array(self, x: Array) -> Array:
        """An array in the device's memory: the same one, if `takes` says so."""

    def pinned(self, n_bytes: int) -> np.ndarray:
        """Bytes of the host from which copies to the device are fastest; not initialised.

        Raises
        ------
        DeviceError
            If the host has not so many.
        """

    def upload(self, source: np.ndarray, target: Array) -> None:
        """Queue a copy of bytes from `pinned` memory into an array of equal size."""

    def clear(self, x: Array) -> None:
        """Queue the filling of an array with zeros."""

    def address(self, x: Array) -> int:
        """Where an array's first element lies, in the device's memory."""

    def launch(self, kernel: str, grid: int, block: int, *arguments: Any, shared: int = 0) -> None:
        """Queue a kernel on `grid` blocks of `block` threads with bytes of shared memory.

        Arguments are arrays of the device, which stand for their addresses; Python ints (int64),
        which may be addresses too; floats (float64); and records, structures that are passed by
        value: NumPy arrays (1,) of a record dtype.
        """

    def sent(self, x: Array) -> Callable[[], np.ndarray]:
        """Queue a copy of an array to the host; what is returned waits for it."""


def blocks_for(n_items: int, device: CudaDevice) -> int:
    """How many blocks of `THREADS` work on so many items: no more than keep the device busy."""
    return max(1, min(-(-n_items // THREADS), _BLOCKS_A_PROCESSOR * device.n_processors))


def source(file: str) -> str:
    """A `.cu` file with what it includes put in its place, for a compiler that sees no folder."""
    text = (FOLDER / f"{file}.cu").read_text()
    return re.sub(
        r'^#include "(.+)"$', lambda found: (FOLDER / found[1]).read_text(), text, flags=re.M
    )


def device_of(x: Array) -> CudaDevice | None:
    """The device that holds an array, if the kernels can run there; None otherwise."""
    name = arrays.device_name(x)
    if not name.startswith("cuda:"):
        return None
    try:
        return device_named(name)
    except DeviceError:  # PyTorch and JAX need no CuPy for their arrays
        return None


def device_named(place: str) -> CudaDevice | None:
    """The device "cuda:N", or CuPy's current one for "cuda"; None if the kernels cannot run there.

    Raises
    ------
    DeviceError
        If there is no such device.
    """
    index = cupy_device(place)[1]
    try:
        return _device(index)
    except (DeviceError, TooOldError):
        return None


def problem_of(place: str) -> str | None:
    """Why the kernels cannot run on a device; None if they can."""
    try:
        _device(cupy_device(place)[1])
    except (DeviceError, TooOldError) as error:
        return str(error)
    return None


@functools.cache
def _device(index: int) -> CudaDevice:
    check_usable(f"cuda:{index}")  # CuPy may be there and yet lack what it needs to compile
    return CupyDevice(index)


class TooOldError(RuntimeError):
    """A device that the kernels are not made for; the reference can use it."""


class _Arriving:
    """A copy on its way to the host: calling it waits.

    If nobody does, its memory must not be given to others before it has arrived.
    """

    def __init__(self, there: np.ndarray, done: Any) -> None:
        self._there, self._done = there, done

    def __call__(self) -> np.ndarray:
        self._done.synchronize()
        return self._there

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the device may be lost, or the process at its end
            self._done.synchronize()


class CupyDevice:
    """A CUDA device by way of CuPy.

    Parameters
    ----------
    index : int

    Raises
    ------
    TooOldError
        If the device is older than the kernels are made for.
    """

    def __init__(self, index: int) -> None:
        import cupy

        self.xp = cupy
        self.name = f"cuda:{index}"
        self._device = cupy.cuda.Device(index)
        self._out_of_memory = cupy.cuda.memory.OutOfMemoryError
        attributes = self._device.attributes
        if capability_of(self._device) < OLDEST:
            raise TooOldError(f"{self.name} is older than the kernels are made for")
        self.n_processors = attributes["MultiProcessorCount"]
        self.most_threads = attributes["MaxThreadsPerBlock"]
        self.most_shared = attributes["MaxSharedMemoryPerBlockOptin"]
        self._kernels: dict[str, Any] = {}
        self._shared: dict[str, int] = {}
        self._file_of = {name: file for file, names in KERNELS.items() for name in names}

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        with self._device:
            try:
                yield
            except MemoryError as error:
                # CuPy's own, or a plain one of sorting; NumPy's has a class of its own, too.
                if type(error) is MemoryError or isinstance(error, self._out_of_memory):
                    raise OutOfDeviceMemoryError(str(error)) from error
                raise

    def free_bytes(self) -> int:
        with self._device:
            free, _ = self.xp.cuda.runtime.memGetInfo()
            return int(free) + int(self.xp.get_default_memory_pool().free_bytes())

    def takes(self, x: Array) -> bool:
        return arrays.device_name(x) == self.name

    def array(self, x: Array) -> Array:
        if self.takes(x) and arrays.library_name(x) != "cupy":
            return self.xp.from_dlpack(x)
        return self.xp.asarray(x if self.takes(x) else arrays.to_host(x))

    def pinned(self, n_bytes: int) -> np.ndarray:
        # Not from CuPy's pool, which takes twice as much at worst, and keeps it.
        try:
            memory = self.xp.cuda.PinnedMemory(n_bytes)
        except self.xp.cuda.runtime.CUDARuntimeError as error:
            raise DeviceError(
                f"the host has no {readable_bytes(n_bytes)} of page-locked memory to send from to "
                f"{self.name}: {error}"
            ) from error
        return np.frombuffer(self.xp.cuda.PinnedMemoryPointer(memory, 0), np.uint8, n_bytes)

    def upload(self, source: np.ndarray, target: Array) -> None:
        target.data.copy_from_host_async(source.ctypes.data, source.nbytes)

    def clear(self, x: Array) -> None:
        x.data.memset_async(0, x.nbytes)

    def address(self, x: Array) -> int:
        return int(x.data.ptr)

    def launch(self, kernel: str, grid: int, block: int, *arguments: Any, shared: int = 0) -> None:
        function = self._kernels.get(kernel) or self._compiled(kernel)
        if shared > self._shared.get(kernel, _SHARED_FOR_ALL):
            function.max_dynamic_shared_size_bytes = self._shared[kernel] = shared
        function((grid,), (block,), arguments, shared_mem=shared)

    def sent(self, x: Array) -> Callable[[], np.ndarray]:
        there = np.frombuffer(self.xp.cuda.alloc_pinned_memory(x.nbytes), x.dtype, x.size)
        x.data.copy_to_host_async(there.ctypes.data, x.nbytes)
        done = self.xp.cuda.Event(disable_timing=True)
        done.record()
        return _Arriving(there.reshape(x.shape), done)

    def _compiled(self, kernel: str) -> Any:
        """All kernels of the file that holds this one, compiled or from CuPy's cache on disk."""
        file = self._file_of[kernel]
        module = self.xp.RawModule(code=source(file), options=OPTIONS)
        for name in KERNELS[file]:
            self._kernels[name] = module.get_function(name)
        return self._kernels[kernel]
