"""`gpustump kernels`: where compiled CPU kernels are kept, which are there, and compiling them."""

from __future__ import annotations

import argparse
import importlib.util
import os

from gpustump.arrays.devices import how_to_install
from gpustump.boosting.rounds.progress import Bar
from gpustump.cli.errors import InputError
from gpustump.cli.wording import aligned_lines
from gpustump.data.readable import counted, readable_bytes
from gpustump.engines.cpu.runtime.kernel_folder import (
    SETTING,
    STAGES,
    are_compiled,
    kernel_folder,
    n_kernels,
)


def run(arguments: argparse.Namespace) -> None:
    """Compile what is missing if asked to; then print what is there."""
    if importlib.util.find_spec("numba") is None:
        raise InputError(f"the kernels need Numba: {how_to_install('cpu')}")
    folder = kernel_folder()
    if folder is None:
        place = os.environ.get(SETTING)
        where = f"in {place}, which {SETTING} names" if place else f"anywhere; set {SETTING}"
        raise InputError(f"cannot make a folder {where}")
    if arguments.build and not are_compiled(*STAGES):
        from gpustump.engines.cpu.runtime.building import build

        is_shown = importlib.util.find_spec("tqdm") is not None
        with Bar(n_kernels(), shown=is_shown, unit="kernel") as bar:
            build(told=bar.advance)
    files = [*folder.glob("*.kernel")]
    size = sum(file.stat().st_size for file in files)
    there = [stage for stage in STAGES if are_compiled(stage)]
    missing = [stage for stage in STAGES if stage not in there]
    rows = [
        ("folder", str(folder)),
        ("size", f"{readable_bytes(size)} in {counted(len(files), 'file')}"),
        ("compiled", (", ".join(there) or "nothing") if missing else "everything"),
    ]
    if missing and there:
        rows.append(("missing", ", ".join(missing)))
    if missing:
        rows.append(("to do", "gpustump kernels --build compiles the rest"))
    print("\n".join(aligned_lines(rows)))
