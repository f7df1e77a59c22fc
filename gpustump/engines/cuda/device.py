"""What the engine needs of a CUDA device, and how CuPy provides it: memory, copies, launches.

The engine uses a device only through `CudaDevice`. So tests can replace it by one that runs the
same kernels on the CPU. No other file of this folder knows CuPy. General array operations, such as
sorting, come from the device's array library (`xp`).

CuPy compiles the `.cu` files with NVRTC when a kernel is first used, and keeps the result on disk.
Contraction into fused multiply-adds is switched off, since it would round differently from the CPU.
"""

from __future__ import annotations

import contextlib
import functools
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays.devices import OLDEST, DeviceError, capability_of, check_usable, cupy_device
from gpustump.arrays.libraries import Array
from gpustump.data.readable import readable_bytes

FOLDER = Path(__file__).resolve().parent

KERNELS = {
    "codes": ("code_feature",),
    "categories": ("gather_categories",),
    "cells": ("add_cells",),
    "update_pass": ("mark", "advance", "add_staged", "add_32", "add_16"),
    "losses": (
        "follow_exponential", "follow_exponentials", "follow_logistic", "follow_softmax",
        "follow_squared_error", "follow_ratio",
        "begin_softmax",
    ),
    "search": ("weigh", "list_bins", "scan", "finish"),
    "intervals": ("weigh_pairs", "scan_pairs", "join_pieces", "pair_up", "finish_pairs"),
    "splits": (
        "weigh_discrete", "weigh_real", "weigh_newton", "sum_pieces", "bound_discrete",
        "bound_real", "bound_newton", "scan_discrete", "scan_real", "scan_newton", "finish_splits",
        "sum_cuts",
    ),
    "held_out": ("judge_int32", "judge_int64"),
    "pairs": ("pass_pairs", "decide_pair", "score_pairs", "vote_by_pairs"),
    "prediction": tuple(
        f"predict_{outputs}{dtype}"
        for outputs in ("", "outputs_")
        for dtype in (
            "float16", "float32", "float64", "bool", "int8", "uint8", "int16", "uint16", "int32",
            "uint32", "int64", "uint64",
        )
    ),
}  # fmt: skip
"""The kernels of each file."""

OPTIONS = ("-std=c++17", "--fmad=false")
"""Options for NVRTC."""

THREADS = 256
"""Threads of a block, except for kernels whose blocks are as large as the device allows."""

_BLOCKS_A_PROCESSOR = 8
"""How many blocks of `THREADS` a processor runs at once."""

_SHARED_FOR_ALL = 48 * 1024
"""Bytes of shared memory that a kernel gets without setting an attribute."""


class OutOfDeviceMemoryError(MemoryError):
    """The device has too little memory left."""


def blocks_for(n_items: int, device: CudaDevice) -> int:
    """How many blocks of `THREADS` work on `n_items`: at most as many as run at once."""
    return max(1, min(-(-n_items // THREADS), _BLOCKS_A_PROCESSOR * device.n_processors))


def source(file: str) -> str:
    """The text of a `.cu` file, its includes replaced by their text: NVRTC gets no folder."""
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
    except DeviceError:  # CuPy may not work here: PyTorch and JAX do not need it
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
    except DeviceError:
        return None


def usable_device(place: str) -> CudaDevice:
    """The same, or a DeviceError that says why the kernels cannot run there."""
    return _device(cupy_device(place)[1])


def problem_of(place: str) -> str | None:
    """Why the kernels cannot run on a device; None if they can."""
    try:
        usable_device(place)
    except DeviceError as error:
        return str(error)
    return None


@functools.cache
def _device(index: int) -> CudaDevice:
    check_usable(f"cuda:{index}")  # CuPy may be installed without what it needs to compile
    return CudaDevice(index)


class _Waiter:
    """Waits for all that has been queued so far: a call, or at the latest the object's deletion,
    as memory is reused then. A call returns the copy that was on its way to the host, if any."""

    def __init__(self, xp: Any, copy: np.ndarray | None = None) -> None:
        self._copy, self._done = copy, xp.cuda.Event(disable_timing=True)
        self._done.record()

    def __call__(self) -> Any:
        self._done.synchronize()
        return self._copy

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the device may be lost, or the process may be ending
            self._done.synchronize()


class CudaDevice:
    """A CUDA device that CuPy provides.

    Parameters
    ----------
    index : int

    Attributes
    ----------
    name : str
        "cuda:0", ...
    xp : module
        The array library whose arrays are the device's memory.
    n_processors : int
        How many streaming multiprocessors it has.
    most_threads : int
        The most threads of a block.
    most_shared : int
        The most bytes of shared memory of a block.

    Raises
    ------
    DeviceError
        If the device's compute capability is too low for the kernels.
    """

    def __init__(self, index: int) -> None:
        import cupy

        self.xp: Any = cupy
        self.name = f"cuda:{index}"
        self._device = cupy.cuda.Device(index)
        found = capability_of(self._device)
        if found < OLDEST:
            raise DeviceError(
                f"{self.name} has compute capability {found[0]}.{found[1]}, and the CUDA kernels "
                f"need {OLDEST[0]}.{OLDEST[1]} or higher"
            )
        with self._device:
            self._beside = cupy.cuda.Stream(non_blocking=True)
        self._out_of_memory = cupy.cuda.memory.OutOfMemoryError
        attributes = self._device.attributes
        self.n_processors: int = attributes["MultiProcessorCount"]
        self.most_threads: int = attributes["MaxThreadsPerBlock"]
        self.most_shared: int = attributes["MaxSharedMemoryPerBlockOptin"]
        self._kernels: dict[str, Any] = {}
        self._compiling = threading.Lock()
        self._shared: dict[str, int] = {}
        self._file_of = {name: file for file, names in KERNELS.items() for name in names}

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Within it, the array library computes on this device."""
        with self._device:
            try:
                yield
            except MemoryError as error:
                # CuPy raises its own class, sorting on the device a plain MemoryError. NumPy has
                # a class of its own, which means the host's memory.
                if type(error) is MemoryError or isinstance(error, self._out_of_memory):
                    raise OutOfDeviceMemoryError(str(error)) from error
                raise

    def beside(self) -> contextlib.AbstractContextManager[Any]:
        """What is queued within it does not wait for what is queued elsewhere, nor that for it."""
        beside: contextlib.AbstractContextManager[Any] = self._beside
        return beside

    def free_bytes(self) -> int:
        """How many bytes of memory are free."""
        with self._device:
            free, _ = self.xp.cuda.runtime.memGetInfo()
            return int(free) + int(self.xp.get_default_memory_pool().free_bytes())

    def takes(self, x: Array) -> bool:
        """Whether an array lies in this device's memory, so that it need not be copied."""
        return arrays.device_name(x) == self.name

    def array(self, x: Array) -> Array:
        """An array in the device's memory: the same one, if `takes` says so."""
        if self.takes(x) and arrays.library_name(x) != "cupy":
            return self.xp.from_dlpack(x)
        return self.xp.asarray(x if self.takes(x) else arrays.to_host(x))

    def pinned(self, n_bytes: int) -> np.ndarray:
        """Page-locked bytes of the host, from which copies to the device are fastest.

        They are not initialised.

        Raises
        ------
        DeviceError
            If the host cannot provide them.
        """
        # Not from CuPy's pool, which takes up to twice as much and keeps it.
        try:
            memory = self.xp.cuda.PinnedMemory(n_bytes)
        except self.xp.cuda.runtime.CUDARuntimeError as error:
            raise DeviceError(
                f"the host cannot provide {readable_bytes(n_bytes)} of page-locked memory for "
                f"copies to {self.name}: {error}"
            ) from error
        return np.frombuffer(self.xp.cuda.PinnedMemoryPointer(memory, 0), np.uint8, n_bytes)

    def address(self, x: Array) -> int:
        """The address of an array's first element in the device's memory."""
        return int(x.data.ptr)

    def launch(self, kernel: str, grid: int, block: int, *arguments: Any, shared: int = 0) -> None:
        """Queue a kernel on `grid` blocks of `block` threads with bytes of shared memory.

        Arguments are arrays of the device, which stand for their addresses; Python ints (int64),
        which may be addresses too; floats (float64); and records, structures that are passed by
        value: NumPy arrays (1,) of a record dtype.
        """
        function = self._kernels.get(kernel) or self._compiled(kernel)
        if shared > self._shared.get(kernel, _SHARED_FOR_ALL):
            function.max_dynamic_shared_size_bytes = self._shared[kernel] = shared
        function((grid,), (block,), arguments, shared_mem=shared)

    def upload(self, source: np.ndarray, target: Array) -> None:
        """Queue a copy of bytes from `pinned` memory into an array of equal size."""
        self._copy(self.address(target), source.ctypes.data, source.nbytes, "HostToDevice")

    def download(self, x: Array, target: np.ndarray) -> None:
        """Queue a copy of an array into `pinned` memory of equal size."""
        self._copy(target.ctypes.data, self.address(x), x.nbytes, "DeviceToHost")

    def _copy(self, target: int, source: int, n_bytes: int, kind: str) -> None:
        """Queue a copy. CuPy's own methods refuse to be recorded, page-locked memory or not."""
        runtime, stream = self.xp.cuda.runtime, self.xp.cuda.get_current_stream()
        runtime.memcpyAsync(target, source, n_bytes, getattr(runtime, f"memcpy{kind}"), stream.ptr)

    def waiter(self) -> Callable[[], None]:
        """A function that waits until all that has been queued so far is done."""
        return _Waiter(self.xp)

    def sent(self, x: Array) -> Callable[[], np.ndarray]:
        """Queue a copy of an array to the host; the returned function waits for it."""
        copy = np.frombuffer(self.xp.cuda.alloc_pinned_memory(x.nbytes), x.dtype, x.size)
        x.data.copy_to_host_async(copy.ctypes.data, x.nbytes)
        return _Waiter(self.xp, copy.reshape(x.shape))

    def recorded(self, queue: Callable[[], None]) -> Callable[[], None]:
        """Record what `queue` queues; each call of the returned function queues all of it again.

        `queue` must have been called before. Arguments and sizes are recorded; the data at the
        addresses may change.
        """
        stream = self.xp.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            try:
                queue()
            finally:
                graph = stream.end_capture()
        launch: Callable[[], None] = graph.launch
        return launch

    def _compiled(self, kernel: str) -> Any:
        """A kernel. It and the others of its file are compiled, or come from CuPy's disk cache."""
        file = self._file_of[kernel]
        with self._compiling:  # attributes are set once, and belong to a module
            if kernel not in self._kernels:
                module = self.xp.RawModule(code=source(file), options=OPTIONS)
                for name in KERNELS[file]:
                    self._kernels[name] = module.get_function(name)
        return self._kernels[kernel]
