"""Kernels whose pieces are taken by several threads, without Python in between.

A kernel declared by `parallel` is the work on one piece; `threads.Team.run` calls it for all of
them. The caller takes pieces until none are left. Threads that help poll for pieces in compiled
code (`serve`) and take them, too, so no thread waits for Python's global lock: handing over a piece
takes less than a microsecond, where waking a Python thread takes 50 to 100.

The *crew* is an array through which they meet. Its state is one word: the number of the call, how
many pieces it has, and how many are taken. A piece is taken by a compare-and-swap of the whole
word, so whoever takes one has read the function and the data of the same call. The data lie on the
caller's stack. The caller returns when all pieces are done, and waits only for those that another
thread has begun.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import sys
import textwrap
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic

from gpustump.engines.cpu.runtime.compiling import kernel
from gpustump.engines.threads import PIECES, help_with

_STATE, _FUNCTION, _DATA, _DONE, _ERRORS = 0, 8, 9, 16, 24
"""Places in the array (see `threads.CREW_SIZE`). What several threads write is apart, each in a
line of the cache of its own."""

_BITS = 20
"""Bits of the number of pieces, and of those that are taken."""

_SPINS, _YIELDS = 20_000, 10_000
"""A thread that waits looks so many times in a row, for 15 to 30 microseconds; then it lets other
threads of the system run before it looks again. A helper gives up after so many of these, some
milliseconds if no other thread wants to run."""

cgutils: Any = _cgutils

_WORD, _BYTES = ir.IntType(64), ir.IntType(8).as_pointer()
_PIECE = ir.FunctionType(_WORD, [_BYTES, _WORD])
"""What is called with the data and the number of a piece; returns whether it failed."""

ALONE = -1
"""In place of how many pieces there are: compiled code that calls a parallel kernel for its piece 0
does the work itself."""

_YIELD = "SwitchToThread" if sys.platform == "win32" else "sched_yield"

_names = (f"gpustump.piece.{number}" for number in itertools.count())


def _word(value: int) -> Any:
    return ir.Constant(_WORD, value)


class _Crew:
    """Writes the code that reads and changes a crew.

    Parameters
    ----------
    context, builder, signature, arguments
        Those of an intrinsic whose first argument is the array.
    """

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        array = context.make_array(signature.args[0])
        self._data, self._builder = array(context, builder, arguments[0]).data, builder

    def _at(self, place: int) -> Any:
        return self._builder.gep(self._data, [_word(place)])

    def load(self, place: int) -> Any:
        """A number, as other threads have written it last."""
        return self._builder.load_atomic(self._at(place), "seq_cst", 8)

    def store(self, place: int, value: Any) -> None:
        self._builder.store_atomic(value, self._at(place), "seq_cst", 8)

    def add(self, place: int, value: Any) -> None:
        self._builder.atomic_rmw("add", self._at(place), value, "seq_cst")

    def begin(self, function: Any, data: Any, n_pieces: Any) -> None:
        """Offer the pieces of a new call."""
        builder = self._builder
        self.store(_FUNCTION, builder.ptrtoint(function, _WORD))
        self.store(_DATA, builder.ptrtoint(data, _WORD))
        self.store(_DONE, _word(0))
        call = builder.add(builder.lshr(self.load(_STATE), _word(2 * _BITS)), _word(1))
        shifted = builder.shl(call, _word(2 * _BITS))
        self.store(_STATE, builder.or_(shifted, builder.shl(n_pieces, _word(_BITS))))

    def take_all(self, times: int) -> None:
        """Take pieces until there have been none for so many times."""
        builder = self._builder
        idle = cgutils.alloca_once_value(builder, _word(0))
        look, take, call, wait, end = (
            builder.append_basic_block(name) for name in ("look", "take", "call", "wait", "end")
        )
        builder.branch(look)

        builder.position_at_end(look)
        state, mask = self.load(_STATE), _word((1 << _BITS) - 1)
        piece = builder.and_(state, mask)
        n_pieces = builder.and_(builder.lshr(state, _word(_BITS)), mask)
        builder.cbranch(builder.icmp_unsigned("<", piece, n_pieces), take, wait)

        builder.position_at_end(take)
        function, data = self.load(_FUNCTION), self.load(_DATA)
        taken = builder.cmpxchg(
            self._at(_STATE), state, builder.add(state, _word(1)), "seq_cst", "seq_cst"
        )
        builder.cbranch(builder.extract_value(taken, 1), call, look)

        builder.position_at_end(call)
        function = builder.inttoptr(function, _PIECE.as_pointer())
        self.add(_ERRORS, builder.call(function, [builder.inttoptr(data, _BYTES), piece]))
        self.add(_DONE, _word(1))
        builder.store(_word(0), idle)
        builder.branch(look)

        builder.position_at_end(wait)
        is_early = builder.icmp_unsigned("<", self._count_up(idle), _word(times))
        builder.cbranch(is_early, look, end)
        builder.position_at_end(end)

    def _count_up(self, times: Any) -> Any:
        """Count how often a thread has waited, and let others run if that is often."""
        builder = self._builder
        count = builder.add(builder.load(times), _word(1))
        builder.store(count, times)
        with builder.if_then(builder.icmp_unsigned(">", count, _word(_SPINS)), likely=False):
            type_ = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, type_, _YIELD), [])
        return count

    def wait(self, n_pieces: Any) -> None:
        """Wait for the pieces that others have begun."""
        builder = self._builder
        spins = cgutils.alloca_once_value(builder, _word(0))
        look, spin, end = (builder.append_basic_block(name) for name in ("look", "spin", "end"))
        builder.branch(look)
        builder.position_at_end(look)
        builder.cbranch(builder.icmp_unsigned("<", self.load(_DONE), n_pieces), spin, end)
        builder.position_at_end(spin)
        self._count_up(spins)
        builder.branch(look)
        builder.position_at_end(end)


@intrinsic
def _serve(typing_context: Any, crew: Any) -> Any:
    """Take pieces until there have been none for a while."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _Crew(context, builder, signature, arguments).take_all(_SPINS + _YIELDS)
        return context.get_dummy_value()

    return types.void(crew), generate


@intrinsic
def _share(typing_context: Any, crew: Any, n_pieces: Any) -> Any:
    """Let the function that calls this be called once for each piece.

    The function's first two arguments are those of this one. Called for a piece, it has minus the
    piece's number, minus 1, in place of how many there are; then this returns the piece's number.
    Otherwise it makes all these calls, by several threads, and returns -1. A MemoryError in any of
    them is raised after all of them.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        n_pieces, caller = values[1], builder.function
        found = cgutils.alloca_once_value(builder, builder.sub(_word(-1), n_pieces))
        with builder.if_then(builder.icmp_signed(">=", n_pieces, _word(0))):
            # Arguments of Numba's functions: room for the result and for an error; then their own.
            given = caller.args[2:]
            number = len(context.get_arg_packer([signature.args[0]]).argument_types)
            kept = ir.LiteralStructType([own.type for own in given])
            data = cgutils.alloca_once(builder, kept)
            for place, own in enumerate(given):
                builder.store(own, cgutils.gep_inbounds(builder, data, 0, place))
            piece = ir.Function(builder.module, _PIECE, name=next(_names))
            piece.linkage = "internal"
            inside = ir.IRBuilder(piece.append_basic_block("entry"))
            loaded = inside.load(inside.bitcast(piece.args[0], kept.as_pointer()))
            again = [inside.extract_value(loaded, place) for place in range(len(given))]
            again[number] = inside.sub(_word(-1), piece.args[1])
            rooms = [cgutils.alloca_once(inside, own.type.pointee) for own in caller.args[:2]]
            status = inside.call(caller, [*rooms, *again])
            inside.ret(inside.zext(inside.icmp_signed("!=", status, status.type(0)), _WORD))

            crew = _Crew(context, builder, signature, values)
            crew.begin(piece, data, n_pieces)
            crew.take_all(1)
            crew.wait(n_pieces)
            has_failed = builder.icmp_unsigned("!=", crew.load(_ERRORS), _word(0))
            with builder.if_then(has_failed, likely=False):
                crew.store(_ERRORS, _word(0))
                text = ("There is not enough memory for what the CPU kernels need.",)
                context.call_conv.return_user_exc(builder, MemoryError, text)
            builder.store(_word(-1), found)
        return builder.load(found)

    return types.int64(crew, n_pieces), generate


@intrinsic
def claim(typing_context: Any, numbers: Any) -> Any:
    """The next whole number from 0 on, of an array whose only item several threads count up."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.atomic_rmw("add", data, _word(1), "seq_cst")

    return types.int64(numbers), generate


@kernel("UniTuple(int64, 2)(int64, int64, int64)")
def pieces(threads, total, least):  # type: ignore[no-untyped-def]
    """The same as `Team.pieces`, for compiled code."""
    size = total if threads == 1 else -(-total // (PIECES * threads))
    size = max(1, -(-size // least)) * least
    return max(1, -(-total // size)), size


@kernel("void(int64[::1])")
def serve(crew):  # type: ignore[no-untyped-def]
    """Help with the calls of a crew, until there have been none for a while."""
    _serve(crew)


help_with(serve)


def parallel(
    *signatures: str, **versions: tuple[str, ...]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the work on one piece: a function of the piece's number and of more arguments.

    What it becomes is a kernel that does so for all pieces: instead of the number it takes a crew,
    and how many pieces there are. Arguments are those of `compiling.kernel`.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        (own,) = tree.body
        assert isinstance(own, ast.FunctionDef)
        piece = own.args.args[0].arg
        own.decorator_list.clear()
        own.args.args[:1] = [ast.arg("crew"), ast.arg("n_pieces")]
        own.body[:0] = ast.parse(f"{piece} = _share(crew, n_pieces)\nif {piece} < 0: return").body
        names = {**function.__globals__, "_share": _share}
        file = inspect.getfile(function)
        exec(compile(ast.fix_missing_locations(tree), file, "exec"), names)
        of_crew = [own.replace("int64", "int64[::1], int64", 1) for own in signatures]
        return kernel(*of_crew, **versions)(names[function.__name__])

    return compiled
