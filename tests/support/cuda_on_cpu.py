"""A stand-in for a CUDA device: the kernels built by the C++ compiler, NumPy's arrays as memory.

It takes the place of `engines.cuda.device.CudaDevice`. So tests run all of the engine but CuPy
itself where there is no GPU: the same `.cu` files, block by block, with several threads a block.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gpustump.engines import batched_rounds, powers, quadrants
from gpustump.engines import integer_weights as weights
from gpustump.engines.cuda import device, held_out, layout, pairs, search, sorting, steps
from gpustump.learners import step_table

HEADER = Path(__file__).with_suffix(".hpp")

COMPILER = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)

FLAGS = (
    "-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", "-Wall", "-Werror",
    "-Wno-unknown-pragmas",
    "-ffp-contract=off",
    "-Wl,-Bsymbolic",  # the C library has an `advance` too
)  # fmt: skip

PROBE = """
#include <atomic>
extern "C" int probe() { int x = 0; return std::atomic_ref(x).fetch_add(1); }
"""

MAIN = """
#include "cuda_on_cpu.hpp"
{includes}

__align__(16) unsigned char shared[MOST_SHARED + GUARD];

unsigned int emulator::next_noise() {{
  static unsigned int noise = 1;
  noise = noise * 1664525u + 1013904223u;
  return noise >> 8;
}}

// Shared memory, and the guard behind it, hold noise from a place of its own in every block.
static unsigned char some_noise[2 * (MOST_SHARED + GUARD)];
static const unsigned char* noise_of_block;

static bool make_noise() {{
  for (unsigned char& byte : some_noise) byte = emulator::next_noise() >> 8;
  return true;
}}

void emulator::fill_with_noise() {{
  [[maybe_unused]] static const bool is_made = make_noise();
  noise_of_block = some_noise + next_noise() % (MOST_SHARED + GUARD);
  std::memcpy(shared, noise_of_block, shared_size + GUARD);
}}

bool emulator::guard_is_whole() {{
  return std::memcmp(shared + shared_size, noise_of_block + shared_size, GUARD) == 0;
}}

{launchers}
"""

LAUNCHER = """
extern "C" int launch_{name}(unsigned int grid, unsigned int block, std::size_t shared,
                             void** arguments) {{
  return emulator::launch({name}, grid, block, shared, arguments);
}}
"""


NAMED_OTHERWISE = {"PIECE_OF_BIN": "Piece", "STEP_TABLES": "StepTables<int>"}

RECORDS = {
    NAMED_OTHERWISE.get(name, name.title().replace("_", "")): dtype
    for name, dtype in vars(layout).items()
    if isinstance(dtype, np.dtype)
}
"""The kernels' structures by name."""

AGREED = {
    **{f"sizeof({name})": dtype.itemsize for name, dtype in RECORDS.items()},
    **{f"offsetof({name}, {field})": dtype.fields[field][1] for name, dtype in RECORDS.items()
       for field in dtype.names or ()},
    "SPLIT_PIECE": layout.SPLIT_PIECE,
    "PLACE_BITS": layout.PLACE_BITS,
    "NO_SCORE": search.NO_SCORE,
    "MISSING": sorting.MOST_BINS,
    "ALL_LEFT": steps._ALL_LEFT,
    "OF_SAMPLES": steps._OF_SAMPLES,
    "OF_CODES": steps._OF_CODES,
    "SLOTS": layout.SLOTS,
    "LANE_BITS": layout.LANE_BITS,
    "RUN": layout.RUN,
    "LANES * RUN": layout.TILE_SAMPLES,
    "TOP": weights.TOP,
    "FLOOR": weights.FLOOR,
    "LEAST_PRODUCT": weights.LEAST_PRODUCT,
    "MOST_CELLS": pairs._MOST_CELLS,
    "N_QUADRANTS": quadrants.N_QUADRANTS,
    "NO_PAIR": pairs._NO_PAIR,
    "VOTE_UNIT": step_table.VOTE_UNIT,
    "LARGEST": powers.LARGEST,
    "LARGEST_SQUARE": batched_rounds.LARGEST_SQUARE,
    "UPPER_UNIT": 2.0**batched_rounds.LOW_BITS,
    "LARGEST_SCORE": batched_rounds.LARGEST_SCORE,
    "LARGEST_EXPONENT": batched_rounds.LARGEST_EXPONENT,
    "PLACE_BITS_OF_EXPONENT": batched_rounds.PLACE_BITS,
    "sizeof(BestCut)": pairs.BEST_CUT_BYTES,
    "sizeof(Judged)": held_out.JUDGED_BYTES,
}  # fmt: skip
"""Numbers of the kernels, by their expressions in C++, and what Python takes them for."""

ENDINGS = (
    "ended well",
    "takes more than {shared} bytes of shared memory",
    "has a barrier at which only some threads of a block arrive",
)
"""By what a launch returns."""


@functools.cache
def unusable() -> str | None:
    """Why the kernels cannot be built here; None if they can. They need the threads of C++20."""
    if COMPILER is None:
        return "there is no C++ compiler"
    with tempfile.TemporaryDirectory() as folder:
        command = [COMPILER, *FLAGS, "-x", "c++", "-", "-o", f"{folder}/probe.so"]
        done = subprocess.run(command, input=PROBE, capture_output=True, text=True)
    return f"{COMPILER} does not know C++20 well enough" if done.returncode else None


def program(source: str, kernels: Iterable[str]) -> str:
    """A source and a function to launch each of its kernels."""
    launchers = "".join(LAUNCHER.format(name=name) for name in kernels)
    return MAIN.format(includes=source, launchers=launchers)


def build(*options: str, change: Callable[[str], str] = str) -> Path:
    """The package's kernels, and the numbers of `AGREED`, as a shared library."""
    source = "\n".join(change(device.source(file)) for file in device.KERNELS)
    names = [name for names in device.KERNELS.values() for name in names]
    values = ", ".join(f"double({expression})" for expression in AGREED)
    numbers = f'extern "C" {{ extern const double numbers[] = {{ {values} }}; }}\n'
    return compiled(program(source, names) + numbers, *options)


def compiled(text: str, *options: str) -> Path:
    """A program as a shared library, built again if it or the header has changed."""
    command = [str(COMPILER), *FLAGS, f"-I{HEADER.parent}", *options, "-x", "c++", "-"]
    key = hashlib.sha256((text + HEADER.read_text() + str(command)).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"gpustump-kernels-{os.getuid()}"
    folder.mkdir(exist_ok=True, mode=0o700)
    library = folder / f"{key}.so"
    if not library.exists():
        made = folder / f"{key}.{os.getpid()}"
        subprocess.run([*command, "-o", str(made)], input=text, text=True, check=True)
        made.replace(library)  # at once: several processes may build it
    return library


_ONE_LAUNCH = threading.Lock()
"""The library has one block's shared memory."""


class OnCpu:
    """A `CudaDevice` without a device; memory maps count as the host's memory.

    Every block has so many threads, whatever the launch asks for, or fewer if it asks for fewer.
    `n_bytes` is the memory that it pretends to have.
    """

    name = "cuda:0"
    xp = np

    def __init__(
        self, threads: int = 2, n_bytes: int = 2**40, most_shared: int = 227 * 1024
    ) -> None:
        self._library = loaded()
        self._threads = threads
        self._n_bytes = n_bytes
        self.n_processors = 3
        self.most_threads = 1024
        self.most_shared = most_shared
        votes = ("discrete", "real", "newton")
        self._shared_of_threads = {
            **dict.fromkeys(("follow_exponentials", "begin_softmax"), layout.SUMS.itemsize),
            **{f"follow_{loss}": layout.SUMS.itemsize for loss in layout.LOSSES},
            **{f"weigh_{kind}": layout.BEST_EDGE.itemsize for kind in votes},
            **{f"bound_{kind}": 2 * layout.TRIPLE.itemsize for kind in votes},
            **{f"scan_{kind}": 2 * layout.TRIPLE.itemsize for kind in votes},
            **dict.fromkeys(("weigh_pairs", "scan_pairs", "pair_up"), layout.SLOPES.itemsize),
            **dict.fromkeys(
                ("list_bins", "finish", "finish_pairs", "finish_splits"), layout.BEST.itemsize
            ),
            **dict.fromkeys(("judge_int32", "judge_int64"), held_out.JUDGED_BYTES),
            **dict.fromkeys(("decide_pair", "score_pairs"), pairs.BEST_CUT_BYTES),
            "advance": layout.SUMS.itemsize,
            "weigh": layout.BEST_EDGE.itemsize,
            "scan": layout.EXTREMES.itemsize,
            "sum_pieces": layout.TRIPLE.itemsize,
        }
        self.launched: list[str] = []
        self._noted: list[tuple[Any, ...]] = []
        self.n_transfers = 0

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        try:
            yield
        except MemoryError as error:
            raise device.OutOfDeviceMemoryError(str(error)) from error

    def beside(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def free_bytes(self) -> int:
        return self._n_bytes

    def takes(self, x: Any) -> bool:
        return isinstance(x, np.ndarray) and not isinstance(x, np.memmap)

    def array(self, x: Any) -> np.ndarray:
        return x if self.takes(x) else np.array(x)

    def pinned(self, n_bytes: int) -> np.ndarray:
        return np.empty(n_bytes, dtype=np.uint8)

    def upload(self, source: np.ndarray, target: np.ndarray) -> None:
        assert source.nbytes == target.nbytes
        assert source.flags.c_contiguous
        target.reshape(-1).view(np.uint8)[:] = source.reshape(-1).view(np.uint8)

    def address(self, x: np.ndarray) -> int:
        return int(x.ctypes.data)

    def launch(self, kernel: str, grid: int, block: int, *arguments: Any, shared: int = 0) -> None:
        assert grid >= 1
        assert 1 <= block <= self.most_threads
        assert shared <= self.most_shared
        self.launched.append(kernel)
        values = [_value(argument) for argument in arguments]
        self._noted.append((kernel, grid, block, shared, *map(_bytes_of, values)))
        pointers = (ctypes.c_void_p * len(values))(*map(_address_of, values))
        function = getattr(self._library, f"launch_{kernel}")
        # Shared memory for the threads that run, not for all that the launch asks for: otherwise a
        # launch with too little of it would go unnoticed.
        n_threads = min(block, self._threads)
        of_threads = self._shared_of_threads.get(kernel, 0)
        given = shared - of_threads * (block - n_threads)
        if kernel == "add_staged":  # these threads are one warp
            given -= layout.STAGED_BYTES * (block // layout.LANES - 1)
        with _ONE_LAUNCH:
            wrong = function(grid, n_threads, ctypes.c_size_t(given), pointers)
        assert not wrong, f"{kernel} {ENDINGS[wrong].format(shared=shared)}"

    def download(self, x: np.ndarray, target: np.ndarray) -> None:
        self.n_transfers += 1
        self.upload(x, target)

    def waiter(self) -> Callable[[], None]:
        return lambda: None

    def recorded(self, queue: Callable[[], None]) -> Callable[[], None]:
        """Queues it all again, and makes sure that it is the same as the first time."""
        first: list[tuple[Any, ...]] = []

        def again() -> None:
            self._noted = []
            queue()
            if not first:
                first.extend(self._noted)
            assert self._noted == first, "a launch differs from the recorded one"

        return again

    def sent(self, x: np.ndarray) -> Callable[[], np.ndarray]:
        self.n_transfers += 1
        copy = x.copy()
        return lambda: copy


class Interrupted(OnCpu):
    """A device that calls a function with the name of each kernel before it is launched."""

    before: Callable[[str], object] = str

    def launch(self, kernel: str, *about: Any, **how: Any) -> None:
        self.before(kernel)
        super().launch(kernel, *about, **how)


def _value(argument: Any) -> Any:
    """An argument as the bytes that a kernel takes: eight of them, or a record."""
    if isinstance(argument, np.ndarray) and argument.dtype.names:
        assert argument.shape == (1,)
        return argument
    if isinstance(argument, np.ndarray):
        assert argument.flags.c_contiguous or argument.flags.f_contiguous or argument.ndim == 2
        return ctypes.c_void_p(argument.ctypes.data)
    if isinstance(argument, float):
        return ctypes.c_double(argument)
    assert isinstance(argument, int), type(argument)
    return ctypes.c_int64(argument)


def _bytes_of(value: Any) -> bytes:
    return value.tobytes() if isinstance(value, np.ndarray) else bytes(value)


def _address_of(value: Any) -> int:
    is_record = isinstance(value, np.ndarray)
    return int(value.ctypes.data) if is_record else ctypes.addressof(value)


@functools.cache
def loaded() -> ctypes.CDLL:
    """The library: the one named in GPUSTUMP_KERNEL_LIBRARY, or a fresh build."""
    return ctypes.CDLL(os.environ.get("GPUSTUMP_KERNEL_LIBRARY") or str(build()))


def numbers() -> dict[str, float]:
    """What the expressions of `AGREED` are in C++."""
    found = (ctypes.c_double * len(AGREED)).in_dll(loaded(), "numbers")
    return dict(zip(AGREED, found, strict=True))


@contextlib.contextmanager
def as_cuda(patch: Any, made: OnCpu) -> Iterator[OnCpu]:
    """Within it, NumPy's arrays count as a CUDA device's."""
    with patch.context() as patched:
        patched.setattr(device, "device_of", lambda x: made if made.takes(x) else None)
        patched.setenv("GPUSTUMP_KERNELS", "cuda")
        yield made
