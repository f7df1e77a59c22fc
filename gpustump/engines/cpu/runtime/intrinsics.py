"""What kernels need of the processor and Numba has no function for: vectors, prefetching,
reading where an array is, and calling kernels that are not linked: by their address or name.

A vector is a few neighbouring numbers that are computed at once. The compiler uses vectors by
itself only in loops that are longer than a row of the numbers of one sample. A vector that lies
across two lines of the cache takes twice as long, so rows should begin at multiples of their
vectors (see `columns.aligned`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic

from gpustump.engines.cpu.runtime.compiling import address_of

cgutils: Any = _cgutils

_INTEGER, _FLOAT = ir.IntType(64), ir.DoubleType()

_NOWHERE = 1
"""Stands for the address of code that is not called."""

_READ, _KEEP, _DATA = 0, 3, 1
"""Arguments of LLVM's `llvm.prefetch`: for reading, to be kept in all caches, not instructions."""


def adding(width: int) -> Any:
    """A function `(sums, at, rows, place)` that adds `width` integers of one array to another's."""
    return _operation(_INTEGER, width, lambda builder, own, more: builder.add(own, more))


def multiplying(width: int, least: float) -> Any:
    """A function `(numbers, at, factors, place)`: floats become their product, or `least` if that
    is not larger."""
    return _operation(_FLOAT, width, _above(least, "fmul"))


def dividing(width: int, least: float) -> Any:
    """The same for quotients."""
    return _operation(_FLOAT, width, _above(least, "fdiv"))


def _above(least: float, name: str) -> Callable[..., Any]:
    def operate(builder: Any, own: Any, more: Any) -> Any:
        found = getattr(builder, name)(own, more)
        floor = ir.Constant(found.type, [least] * found.type.count)
        return builder.select(builder.fcmp_ordered(">", found, floor), found, floor)

    return operate


def _operation(kind: Any, width: int, operate: Callable[..., Any]) -> Any:
    @intrinsic
    def apply(context, array, at, other, place):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            vector = ir.VectorType(kind, width)

            def pointer(which: int) -> Any:
                array = context.make_array(signature.args[which])(
                    context, builder, arguments[which]
                )
                found = builder.gep(array.data, [arguments[which + 1]])
                return builder.bitcast(found, vector.as_pointer())

            own, more = pointer(0), pointer(2)
            loaded = (builder.load(own, align=8), builder.load(more, align=8))
            builder.store(operate(builder, *loaded), own, align=8)
            return context.get_dummy_value()

        return types.void(array, at, other, place), generate

    return apply


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Load an element of an array of one dimension into the cache ahead of its use.

    The index may be outside the array.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        module = builder.module
        ask = module.globals.get("llvm.prefetch.p0") or ir.Function(
            module, kind, "llvm.prefetch.p0"
        )
        place = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(ask, [place, number(_READ), number(_KEEP), number(_DATA)])
        return context.get_dummy_value()

    return types.void(array, index), generate


def _reading(bits: int) -> Any:
    """A function of an address that reads the signed integer of so many bits there."""

    @intrinsic
    def read(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            return builder.sext(builder.load(pointer), _INTEGER)

        return types.int64(types.int64), generate

    return read


int32_at, int64_at = _reading(32), _reading(64)


@intrinsic
def call_at(typing_context: Any, address: Any, arguments: Any) -> Any:
    """Call the kernel at an address (`compiling.address_of`) with a tuple of exactly the types of
    arguments that it declares. It must return nothing."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds = list(signature.args[1])
        pointer = context.call_conv.get_function_type(types.void, kinds).as_pointer()
        kernel, own = builder.inttoptr(values[0], pointer), cgutils.unpack_tuple(builder, values[1])
        return _call(context, builder, kernel, kinds, own)

    return types.void(address, arguments), generate


def _call(context: Any, builder: Any, kernel: Any, kinds: Any, values: Any) -> Any:
    """Call machine code that returns nothing, and raise what it raises."""
    call = context.call_conv
    status, _ = call.call_function(builder, kernel, types.void, kinds, values)
    with cgutils.if_unlikely(builder, status.is_error):
        call.return_status_propagate(builder, status)
    return context.get_dummy_value()


def apart(compiled: Any) -> Any:
    """A function by which compiled code calls a kernel of a single version, which returns nothing.

    Numba links what a kernel calls into the kernel, and optimises it there once more. This leaves
    it apart, so a kernel that makes many calls takes less time to compile; a call takes some
    nanoseconds. What is small, or called often, is better linked.
    """
    name = f"{compiled.py_func.__module__}.{compiled.py_func.__qualname__}"
    # A process that only compiles has no code to call yet, and calls none.
    llvm.add_symbol(name, address_of(compiled) if compiled.overloads else _NOWHERE)
    (declared,) = compiled.declared

    @intrinsic
    def call(typing_context: Any, *arguments: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            given = cgutils.unpack_tuple(builder, values[0])
            pairs = zip(given, arguments, declared.args, strict=True)
            own = [context.cast(builder, value, one, other) for value, one, other in pairs]
            kind = context.call_conv.get_function_type(types.void, declared.args)
            kernel = cgutils.get_or_insert_function(builder.module, kind, name)
            return _call(context, builder, kernel, declared.args, own)

        tuples: Any = types.StarArgTuple
        return types.void(tuples.from_types(arguments)), generate

    return call
