"""Kernels take the types that they declare, and groups of arrays by name."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pytest

pytest.importorskip("numba")

from gpustump.engines import announcements
from gpustump.engines.cpu.pairs import amounts, odds, probabilities, residuals
from gpustump.engines.cpu.runtime import compiling
from gpustump.engines.cpu.runtime.compiling import Integers, group, inner, kernel


@group
class _Line(NamedTuple):
    slopes: Annotated[np.ndarray, "KEY[::1]"]
    starts: Integers
    scale: float


@kernel("float64(_Line, int64)", KEY=("int32", "float64"))
def _at(line, x):  # type: ignore[no-untyped-def]
    return (line.starts[0] + line.slopes[0] * x) * line.scale


def test_a_kernel_takes_groups_in_each_of_its_versions():
    starts = np.asarray([1])
    for dtype in ("int32", "float64"):
        line = _Line(np.asarray([3], dtype=dtype), starts, 0.5)
        assert _at(line, 5) == 8.0
    for bad in (np.zeros(1, dtype=np.int16), np.zeros(4)[::2], [1.0]):
        with pytest.raises(TypeError):
            _at(_Line(bad, starts, 0.5), 5)


@inner("float64(float64)")
def _doubled(x):  # type: ignore[no-untyped-def]
    return 2.0 * x


@kernel("float64(float64)")
def _four_times(x):  # type: ignore[no-untyped-def]
    return _doubled(_doubled(x))


def test_kernels_call_inner_functions_and_python_cannot():
    assert _four_times(1.5) == 6.0
    with pytest.raises(TypeError, match="No matching definition"):
        _doubled(1.5)
    with pytest.raises(AttributeError, match="Unheard"):
        kernel("void(Unheard)")(lambda unheard: None)


def test_what_one_function_makes_for_several_losses_has_names_of_its_own():
    """Machine code is found by its name. Two processes may compile for one loss each, and a third
    one load both."""
    compiling.load()
    losses = (amounts, odds, probabilities, residuals)
    made = [loss.take_turns for loss in losses]
    names = [own.py_func.__qualname__ for own in made]
    assert len(set(names)) == len(losses)
    for name, own in zip(names, made, strict=True):
        (version,) = own.overloads.values()
        assert name in version.fndesc.unique_name


def test_the_stages_import_every_file_that_holds_kernels():
    compiling.load()
    folder = Path(compiling.__file__).parents[2]
    holding = [
        file for file in folder.rglob("*.py") if re.search(r"\n@(kernel|inner)\(", file.read_text())
    ]
    names = [".".join(file.relative_to(folder).with_suffix("").parts) for file in holding]
    assert len(names) > 5
    assert [name for name in names if f"gpustump.engines.{name}" not in sys.modules] == []


def test_a_bar_is_told_of_every_kernel_and_knows_their_number_even_without_asserts():
    program = """
from gpustump.engines.cpu.runtime import compiling, kernel_folder
told = []
compiling.listeners.append(lambda: told.append(1))
compiling.load()
print(len(told), kernel_folder.n_kernels())
"""
    done = subprocess.run([sys.executable, "-O", "-c", program], capture_output=True, text=True)
    n_told, n_known = done.stdout.split()
    assert n_told == n_known, done.stderr


def test_compiling_in_this_process_is_announced_once(monkeypatch):
    monkeypatch.setattr(compiling, "_has_compiled", False)
    heard: list[str] = []
    monkeypatch.setattr(announcements, "listeners", [lambda text, level: heard.append(text)])

    def add(x, y):  # type: ignore[no-untyped-def]
        return x + y

    compiled = [compiling.kernel("int64(int64, int64)")(add) for _ in range(2)]
    assert compiled[0](2, 3) == 5
    assert len(heard) == 1
    with pytest.raises(TypeError):
        compiled[0]("a", "b")
