"""The `.cu` files, compiled by NVRTC for every kind of architecture that the kernels support.

NVRTC is the compiler that CuPy uses; it comes in packages and needs no GPU and no driver. Two
versions may be installed side by side, because CUDA 13 no longer compiles for the oldest devices,
and the usual bindings load one only, so the libraries are loaded here. The compiled code must leave
registers for a full block, spill none, and contain only the floating-point operations that the
contract allows.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import re
from pathlib import Path

import pytest

from gpustump.arrays import devices as placement
from gpustump.engines.cuda import device


class Nvrtc:
    """One installed version.

    Parameters
    ----------
    library : Path

    Attributes
    ----------
    version : tuple of int
    architectures : list of int
        Compute capabilities that it compiles for: 70 for 7.0.
    """

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._do("Version", ctypes.byref(major), ctypes.byref(minor))
        self.version = (major.value, minor.value)
        count = ctypes.c_int()
        self._do("GetNumSupportedArchs", ctypes.byref(count))
        found = (ctypes.c_int * count.value)()
        self._do("GetSupportedArchs", found)
        self.architectures = list(found)

    def compiled(self, source: str, architecture: str, *options: str) -> tuple[bytes, str]:
        """PTX for "compute_70" or machine code for "sm_70", and the compiler's log."""
        program = ctypes.c_void_p()
        self._do(
            "CreateProgram", ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None
        )
        try:
            given = [option.encode() for option in (f"--gpu-architecture={architecture}", *options)]
            status = self._library.nvrtcCompileProgram(
                program, len(given), (ctypes.c_char_p * len(given))(*given)
            )
            log = self._text(program, "ProgramLog").decode().rstrip("\0")
            if status != 0:
                raise RuntimeError(log)
            kind = "CUBIN" if architecture.startswith("sm_") else "PTX"
            return self._text(program, kind), log
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _text(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._do(f"Get{what}Size", program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self._do(f"Get{what}", program, text)
        return text.raw

    def _do(self, function: str, *arguments: object) -> None:
        status = getattr(self._library, f"nvrtc{function}")(*arguments)
        if status != 0:
            raise RuntimeError(f"nvrtc{function} failed with status {status}")


@functools.cache
def installed() -> tuple[Nvrtc, ...]:
    """Every version that is installed as a package."""
    spec = importlib.util.find_spec("nvidia")
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    patterns = ("cuda_nvrtc/lib/libnvrtc.so.*", "cu*/lib/libnvrtc.so.*")
    libraries = {path for f in folders for p in patterns for path in Path(f).glob(p)}
    found = (Nvrtc(path) for path in sorted(libraries) if ".alt." not in path.name)
    return tuple(sorted(found, key=lambda nvrtc: nvrtc.version))


LEAST = 10 * placement.OLDEST[0] + placement.OLDEST[1]

NEWEST_FIRST = sorted(installed(), key=lambda compiler: compiler.version, reverse=True)

COMPILERS = {
    architecture: compiler
    for compiler in reversed(NEWEST_FIRST)
    for architecture in compiler.architectures
    if architecture >= LEAST
}
"""The newest compiler for each architecture."""

ALL = os.environ.get("GPUSTUMP_TESTED_ARCHITECTURES") == "all"

USUAL = (70, 90)
"""The oldest, and one that is in use; GPUSTUMP_TESTED_ARCHITECTURES=all compiles for all that a
compiler knows."""

TARGETS = [
    pytest.param(compiler, architecture, id=f"nvrtc {compiler.version[0]}-sm_{architecture}")
    for compiler in NEWEST_FIRST
    for architecture in sorted(COMPILERS)
    if (compiler is COMPILERS[architecture] and (ALL or architecture in USUAL))
    or (ALL and architecture in compiler.architectures and architecture in (80, 90, 100))
]
"""Where all are tested, older compilers make the code of some architectures, too."""

CUPYS_OWN = ("-ftz=true", "--device-as-default-execution-space")
"""Options that CuPy adds."""

needs_nvrtc = pytest.mark.skipif(not installed(), reason="NVRTC is not installed")


def floating_point_operations(ptx: bytes) -> set[str]:
    """The full names of the PTX instructions on floating-point numbers."""
    found = re.findall(rb"^\s*(?:@\S+\s+)?([a-z][\w.]*\.(?:f16|f32|f64)[\w.]*)", ptx, re.M)
    return {name.decode() for name in found}


MOVING = re.compile(
    r"(ld|st|mov|selp|setp|abs|neg|max|min)\b.*|cvt\.rpi\.f64\.f64|cvt\.rzi\.s64\.f64"
)
"""Instructions that round nothing, or round to a whole number."""


@needs_nvrtc
@pytest.mark.parametrize(("compiler", "architecture"), TARGETS)
def test_every_file_compiles_for_every_target_without_a_warning(compiler, architecture):
    for file in device.KERNELS:
        _, said = compiler.compiled(
            device.source(file),
            f"sm_{architecture}",
            *device.OPTIONS,
            *CUPYS_OWN,
            "--ptxas-options=-v",
        )
        warnings = [line for line in said.splitlines() if "warning" in line.lower()]
        assert [line for line in warnings if "are deprecated" not in line] == []
        kernels = re.findall(r"entry function '(\w+)'.*?Used (\d+) registers", said, re.S)
        assert sorted(name for name, _ in kernels) == sorted(device.KERNELS[file])
        for name, registers in kernels:  # the threads of a block share 65536
            full = name in ("finish", "finish_pairs") or name.startswith("add_")
            half = name == "finish_splits"
            assert int(registers) <= (64 if full else 128 if half else 255), name
        assert set(re.findall(r"(\d+) bytes spill", said)) == {"0"}


@needs_nvrtc
@pytest.mark.parametrize("compiler", installed(), ids=lambda compiler: compiler.version[0])
def test_nothing_is_rounded_but_what_the_contract_rounds(compiler):
    """Products and sums only, each rounded to nearest, none contracted."""
    architecture = f"compute_{max(LEAST, min(compiler.architectures))}"
    rounding: dict[str, set[str]] = {}
    for file in device.KERNELS:
        source = device.source(file)
        ptx, _ = compiler.compiled(source, architecture, *device.OPTIONS, *CUPYS_OWN)
        operations = floating_point_operations(ptx)
        assert not any("ftz" in name or "approx" in name for name in operations)
        rounding[file] = {name for name in operations if not MOVING.fullmatch(name)}
        # In machine code those would be loops of compare-and-swap.
        assert not re.search(rb"(atom|red)\.shared\.add\.[us]64", ptx)
    assert rounding["codes"] == rounding["categories"] == rounding["cells"] == set()
    products_and_sums = {"mul.f64", "mul.rn.f64", "add.f64", "add.rn.f64", "sub.f64", "sub.rn.f64"}
    assert rounding["update_pass"] <= products_and_sums
    assert rounding["search"] == rounding["intervals"] == set()
    from_integers = {"cvt.rn.f64.s64", "cvt.rn.f64.u64", "cvt.rn.f64.s32"}
    divided = {"div.rn.f64", "rcp.rn.f64"}
    to_whole = {"cvt.rni.f64.f64"}  # weight times residual, to the whole number beside it
    computed = products_and_sums | from_integers | divided | to_whole
    for file in ("losses", "pairs"):
        assert rounding[file] <= computed
    assert rounding["held_out"] <= computed | {"cvt.rmi.f64.f64"}  # to the whole number below
    assert rounding["splits"] <= computed | {"sqrt.rn.f64"}
    from_whole_numbers = re.compile(r"cvt\.rn\.f(32|64)\.[us](8|16|32|64)")
    added = {name for name in rounding["prediction"] if not from_whole_numbers.fullmatch(name)}
    assert added <= {"add.f64", "add.rn.f64"}


@needs_nvrtc
def test_contraction_would_be_seen():
    source = 'extern "C" __global__ void f(double* x) { x[0] = x[1] * x[2] + x[3]; }'
    compiler = installed()[0]
    contracted, _ = compiler.compiled(source, "compute_75", "--fmad=true")
    apart, _ = compiler.compiled(source, "compute_75", *device.OPTIONS)
    assert "fma.rn.f64" in floating_point_operations(contracted)
    assert floating_point_operations(apart) >= {"mul.rn.f64", "add.rn.f64"}
