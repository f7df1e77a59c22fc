"""The CUDA kernels under the thread sanitizer: the threads of a block must not race.

Here the stand-in device runs them as threads of the operating system, so a missing barrier is a
race in shared memory that the sanitizer finds.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import cuda_on_cpu
import pytest
from fault_counts import count

from gpustump.engines.cuda import device

HERE = Path(__file__).resolve().parents[1]

BARRIER = "__syncthreads();"

BARRIERS = (
    ("common.cuh", "combine", (0,)),
    ("update_pass.cu", "add", (0, 1)),
    ("profiles.cuh", "read_weights", (1,)),
    ("intervals.cu", "weigh_pairs", (0, 1)),
    ("splits.cu", "weigh_splits", (1,)),
    ("splits.cu", "sum_of_earlier", (0,)),
    ("splits.cu", "scan_splits", (0, 2)),
    ("pairs.cu", "clear_words", (0,)),
    ("pairs.cu", "pass_pairs", (0, 1)),
    ("pairs.cu", "run_up", (0, 1)),
    ("pairs.cu", "decide_pair", (0, 1, 3)),
    ("pairs.cu", "score_pairs", (0, 1)),
)
"""Files, functions in them, and which of a function's barriers are taken out, one at a time."""

TAKEN_OUT = [(file, function, k) for file, function, numbers in BARRIERS for k in numbers]

WATCHED = ("-DSYSTEM_THREADS", "-fsanitize=thread", "-fno-inline")

NOT_OURS = "race:_dl_deallocate_tls"
"""The C library frees a thread's own memory when it ends, in an order that the sanitizer does not
see."""

WILD = "SEGV on unknown address"
MOST_TRIES = 10
"""A thread that reads too early may take what it finds for an index. In one of thirty runs it ends
the program so, before the write arrives that would show the race; such a run is repeated."""


@functools.cache
def sanitizer() -> str | None:
    """The run-time library, which has to be loaded first; None if there is none that works here."""
    if cuda_on_cpu.unusable() or not sys.platform.startswith("linux"):
        return None
    done = subprocess.run(
        [cuda_on_cpu.COMPILER, "-print-file-name=libtsan.so"], capture_output=True, text=True
    )
    found = Path(done.stdout.strip())
    if not found.is_absolute() or not found.exists():
        return None
    environment = os.environ | {"LD_PRELOAD": str(found)}
    tried = subprocess.run([sys.executable, "-c", ""], env=environment, capture_output=True)
    return str(found) if tried.returncode == 0 else None


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sanitizer(), reason="there is no thread sanitizer that works"),
]


def watched(library: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run all kernels of a library that was built with the sanitizer."""
    suppressed = folder / "suppressed"
    suppressed.write_text(NOT_OURS + "\n")
    variables = {
        "GPUSTUMP_KERNEL_LIBRARY": str(library),
        "LD_PRELOAD": str(sanitizer()),
        "TSAN_OPTIONS": f"exitcode=66 halt_on_error=1 suppressions={suppressed}",
        "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE / "support")]),
    }
    return subprocess.run(
        [sys.executable, str(HERE / "support" / "run_kernels.py")],
        capture_output=True,
        text=True,
        env=os.environ | variables,
        timeout=300,
    )


def test_the_thread_sanitizer_finds_nothing(tmp_path):
    done = watched(cuda_on_cpu.build(*WATCHED), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("file", "function", "number"), TAKEN_OUT[: count(1, len(TAKEN_OUT))])
def test_a_missing_barrier_is_found(file, function, number, tmp_path):
    text = (device.FOLDER / file).read_text()
    begin = re.search(rf"^[^/\n]*\b{function}\(", text, re.M).end()
    at = [found.start() for found in re.finditer(re.escape(BARRIER), text[begin:])][number] + begin
    body, without = text[begin:], text[begin:at] + text[at + len(BARRIER) :]

    def changed(source: str) -> str:
        return source.replace(body, without)

    assert any(changed(device.source(name)) != device.source(name) for name in device.KERNELS)
    library = cuda_on_cpu.build(*WATCHED, change=changed)
    for _ in range(MOST_TRIES):
        done = watched(library, tmp_path)
        if WILD not in done.stderr:
            break
    assert done.returncode == 66
    assert "data race" in done.stderr
    assert re.search(rf"#\d+ .*\b{function}\b", done.stderr), done.stderr
