"""Every kernel is compiled for its declared types when its file is imported, and kept on disk.

Because types are declared, nothing is compiled later, in the middle of a fit, and an array of
another type or layout is an error rather than one more version. The first import on a machine takes
up to a minute; a process of its own does that where it can (`building`).

A signature is text as Numba takes it. It may also use the names of *groups* of arrays:

    @group
    class Slope(NamedTuple):
        rise: Integers
        run: Annotated[np.ndarray, "KEY[::1]"]

    @kernel("void(Slope, int64)", KEY=("int32", "int64"))

An array's type is the text in its annotation. A name with several types, like KEY, makes a kernel
with several versions.

Python calls a `kernel`. What only kernels call is `inner`, as are two of three functions here: they
get no wrapper that takes Python's objects, which would take a tenth of a second to compile. They
are compiled, or read from disk, only when a kernel that calls them has to be compiled.

Numba takes some microseconds to find the type of a group that comes from Python. So kernels for
tables so small that a round takes less than a hundred microseconds are given plain arrays.

A kernel that Python calls returns numbers, or a plain tuple of them. To return a group or an array,
Numba looks up its Python class, and does not check whether that succeeded: if Ctrl-C interrupts it,
the process ends with a segmentation fault. Kernels may return groups to each other.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import numba
import numpy as np
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from gpustump.data.collector import collector_paused
from gpustump.engines.announcements import announce_anywhere
from gpustump.engines.cpu.runtime.host_memory import COMPILING_BYTES, has_room
from gpustump.engines.cpu.runtime.kernel_folder import (
    STAGES,
    kernel_folder,
    module_of,
    target,
)

Integers = Annotated[np.ndarray, "int64[::1]"]
Floats = Annotated[np.ndarray, "float64[::1]"]
Bytes = Annotated[np.ndarray, "uint8[::1]"]
"""Annotations of the arrays that most groups hold."""

Group = TypeVar("Group", bound=type)

_groups: dict[str, type] = {}

_has_compiled = False

listeners: list[Callable[[], None]] = []
"""Called after each kernel that is compiled, or found on disk; not after inner functions."""

_put_off: dict[bool, list[Callable[[], None]]] | None = None
"""In `compile_from_behind`: what compiles the functions declared so far; inner ones are apart."""


def load(*stages: str) -> None:
    """Import kernels, compiling those that are not on disk."""
    for stage in stages or STAGES:
        importlib.import_module(module_of(stage))


def compile_from_behind(*stages: str) -> None:
    """Compile what `load` does from the other end, for a process that does so meanwhile.

    That one compiles a kernel after the other, with the inner functions that each calls. Here inner
    functions come first, from the last one on, then kernels. What is on disk by then is read.
    """
    global _put_off
    _put_off = {True: [], False: []}
    load(*stages)
    declared, _put_off = _put_off, None
    for finish in (*reversed(declared[True]), *reversed(declared[False])):
        finish()


def loaded() -> list[str]:
    """The stages that this process has imported."""
    return [stage for stage in STAGES if module_of(stage) in sys.modules]


def group(cls: Group) -> Group:
    """Allow this NamedTuple in signatures; its annotations give the types of its fields."""
    known = _groups.setdefault(cls.__name__, cls)  # outside of the assert, which -O removes
    assert known is cls, f"two groups are named {cls.__name__}"
    return cls


def kernel(*signatures: str, **versions: tuple[str, ...]) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that Python calls for these types; it runs without Python's global lock.

    Indices are never checked: the shapes of a kernel's arguments must fit.

    Parameters
    ----------
    signatures : str
    versions : tuple of str
        For each name with several types that the signatures use, its types in the order of the
        versions.
    """
    return _compiling(signatures, versions, no_cfunc_wrapper=True)


def inner(*signatures: str, **versions: tuple[str, ...]) -> Callable[[Callable[..., Any]], Any]:
    """Declare a function that only kernels call, and other inner functions; see `kernel`.

    Python cannot call it: that is a TypeError.
    """
    return _compiling(signatures, versions, no_cfunc_wrapper=True, no_cpython_wrapper=True)


def address_of(compiled: Any) -> int:
    """Where the machine code of a kernel of a single version is; see `intrinsics.call_at`.

    Code that calls it there is compiled without it, and serves all kernels of these arguments.
    """
    (version,) = compiled.overloads.values()
    found: int = version.library.get_pointer_to_function(version.fndesc.llvm_func_name)
    return found


def _compiling(
    signatures: Sequence[str], versions: dict[str, tuple[str, ...]], **options: bool
) -> Callable[[Callable[..., Any]], Any]:
    def compiled(function: Callable[..., Any]) -> Any:
        types = [names.type_of(text) for text in signatures for names in _versions(versions)]
        if made_for := _made_for(function):
            # Machine code is found by its name; two processes may give one name to two functions.
            name = hashlib.sha256(repr(made_for).encode()).hexdigest()[:8]
            function.__qualname__ = f"{function.__qualname__}_{name}"
        njit: Any = numba.njit
        dispatcher = njit(nogil=True, boundscheck=False, error_model="numpy", **options)(function)
        dispatcher.declared = types
        folder = kernel_folder()
        if folder is not None and function.__module__.startswith("gpustump."):
            dispatcher._cache = KernelCache(folder, function)  # it knows no other sources
        is_inner = "no_cpython_wrapper" in options
        if is_inner or _put_off is not None:
            finish = _compile_when_called(dispatcher, types)
            if _put_off is not None:
                _put_off[is_inner].append(finish)
        else:
            _compile(dispatcher, types)
            for listener in listeners:
                listener()
        return dispatcher

    return compiled


def _compile(dispatcher: Any, signatures: Sequence[Any]) -> None:
    dispatcher.disable_compile(False)
    for signature in signatures:
        with collector_paused():  # Numba makes millions of objects
            dispatcher.compile(signature)
        _notice(dispatcher)
    dispatcher.disable_compile()


def _compile_when_called(dispatcher: Any, signatures: Sequence[Any]) -> Callable[[], None]:
    """Compile a function as soon as Numba asks for its types, to compile one that calls it.

    Returns what compiles it now.
    """
    template_of = dispatcher.get_call_template

    def finish() -> None:
        if len(dispatcher.overloads) < len(signatures):
            _compile(dispatcher, signatures)
            dispatcher._clear()  # what Python would call; kernels find the compiled versions

    def get_call_template(args: Any, kws: Any) -> Any:
        finish()
        return template_of(args, kws)

    dispatcher.get_call_template = get_call_template
    dispatcher._can_compile = False
    return finish


class KernelCache(NullCache):
    """Numba's cache of one function: a file for each signature.

    A file is written whole before it gets its name, and one name always stands for the same
    kernel. So processes may read and write at the same time.

    Parameters
    ----------
    folder : Path
    function : callable
        Not compiled yet.
    """

    def __init__(self, folder: Path, function: Callable[..., Any]) -> None:
        self._folder, self._made_for = folder, _made_for(function)
        self._name = f"{function.__module__}.{function.__qualname__.replace('<locals>.', '')}"

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(self._folder)

    def load_overload(self, sig: object, target_context: Any) -> Any:
        """The kernel for these types from disk; None if this process must compile it.

        Raises
        ------
        MemoryError
            If it must, and there is not enough memory.
        """
        target_context.refresh()
        with contextlib.suppress(FileNotFoundError):
            made_for, kept = pickle.loads(self._file(sig).read_bytes())
            # Where no other process could compile, this one has, for its very CPU.
            own = target_context.codegen().magic_tuple()
            if made_for in (own, (own[0], *target())):
                return CompileResult._rebuild(target_context, *kept)  # type: ignore[no-untyped-call]
        if not has_room(COMPILING_BYTES):
            raise MemoryError("There is not enough memory to compile the CPU kernels.")
        return None

    def save_overload(self, sig: object, data: Any) -> None:
        """Keep a compiled kernel, if there is a folder with room for it."""
        content, file = dumps((data.codegen.magic_tuple(), data._reduce())), self._file(sig)  # type: ignore[no-untyped-call]
        whole = file.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        with contextlib.suppress(OSError):
            whole.write_bytes(content)
            whole.replace(file)

    def _file(self, sig: object) -> Path:
        version = hashlib.sha256(f"{sig!r}{self._made_for}".encode()).hexdigest()[:12]
        return self._folder / f"{self._name}-{version}.kernel"


def _made_for(function: Callable[..., Any]) -> list[Any]:
    """The functions that a function was made to call, which are not in its source."""
    called = [cell.cell_contents.py_func for cell in function.__closure__ or ()]
    return [(own.__module__, own.__qualname__, _made_for(own)) for own in called]


def _notice(dispatcher: Any) -> None:
    """Announce that kernels are compiled, the first time that one does not come from disk."""
    global _has_compiled
    if not _has_compiled and (dispatcher.stats.cache_misses or not dispatcher.stats.cache_path):
        _has_compiled = True
        announce_anywhere("compiling the CPU kernels, once on this machine: up to a minute ...")


class _Names(dict[str, Any]):
    """The types of the names in a signature: Numba's types, groups, and a version's names.

    A group's type is computed each time, because it may depend on the version.
    """

    def __missing__(self, name: str) -> Any:
        if name not in _groups:
            return getattr(numba.types, name)
        annotations = get_type_hints(_groups[name], include_extras=True).values()
        fields = [self._type_of_field(annotation) for annotation in annotations]
        return numba.types.BaseTuple.from_types(fields, _groups[name])  # type: ignore[no-untyped-call]

    def type_of(self, text: str) -> Any:
        """The Numba type of a text."""
        return eval(text, {}, self)

    def _type_of_field(self, annotation: Any) -> Any:
        if hasattr(annotation, "__metadata__"):
            return self.type_of(annotation.__metadata__[0])
        return {int: numba.int64, float: numba.float64, bool: numba.boolean}[annotation]


def _versions(versions: dict[str, tuple[str, ...]]) -> Iterator[_Names]:
    """The names of each version; a single one without names if there are none."""
    for types in zip(*versions.values(), strict=True) if versions else [()]:
        names = dict(zip(versions, types, strict=True))
        yield _Names({name: getattr(numba.types, type_) for name, type_ in names.items()})
