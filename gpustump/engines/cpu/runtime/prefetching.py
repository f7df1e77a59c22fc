"""Loading memory into the cache ahead of its use, for which Numba has no function."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_READ, _KEEP, _DATA = 0, 3, 1
"""Arguments of LLVM's `llvm.prefetch`: for reading, to be kept in all caches, not instructions."""


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Prefetch an element of an array of one dimension; the index may be outside the array."""

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
