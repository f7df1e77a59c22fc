"""The CPU engines as `engines.route` sees them: scanned, sorted, coded for large tables, sparse.

They run kernels that Numba compiles. Importing this file imports neither Numba nor a kernel; that
happens when a table is prepared.
"""

from __future__ import annotations

import _imp
import contextlib
import importlib
import importlib.util
import os
import threading
import warnings
from typing import TYPE_CHECKING, Any

import array_api_compat
import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.devices import how_to_install
from gpustump.data.readable import readable_bytes
from gpustump.engines.announcements import announce_anywhere
from gpustump.engines.contract import Beginning, Engine, PreparedTable, Resources, State, Task
from gpustump.engines.cpu.loss import STAGE_OF
from gpustump.engines.cpu.runtime import host_memory
from gpustump.engines.cpu.runtime.building import Builders, wait_for
from gpustump.engines.cpu.runtime.host_memory import LOADING_BYTES, has_room
from gpustump.engines.cpu.runtime.kernel_folder import STAGES, are_compiled
from gpustump.engines.cpu.split import STAGE_OF as VOTES_OF
from gpustump.engines.objective import LossName, Objective
from gpustump.engines.threads import Team, threads_of

if TYPE_CHECKING:
    from gpustump.engines.cpu.table.sorted_table import SortedTable

BINNED_ADDITIONS, BINNED_SAMPLES, BINNED_SAMPLES_WITH_SIGNS = 2**15, 2**10, 2**13
"""Sorted tables of at least this many elements, times outputs, and samples are divided into bins.
The last number is for discrete votes of one output, which take less time to scan."""

MOST_CODED = 2**30
"""How many samples are too many for a coded table, whose numbers have two bits to spare."""

START_SECONDS = 0.5
"""About how many seconds it takes to load Numba and the compiled kernels."""

_MOST_FORK_SECONDS = 60.0
"""The longest that a fork waits for kernels that are being loaded or compiled."""


_CODED_OF: dict[LossName, tuple[str, ...]] = {
    "exponential": ("loss.exponential_loss",),
    "logistic": ("loss.logistic_loss",),
    "softmax": ("histogram.row_sums", "split.sums_of_rows"),
    "squared_error": ("histogram.residual_sums",),
    "quantile": ("loss.quantile_loss", "histogram.quantile_sums"),
    "poisson": ("histogram.amount_sums",),
    "gamma": ("histogram.amount_sums",),
}
"""The stages that a run on a coded table needs for its loss."""


class Kernels:
    """Loads the kernels in a thread of its own, so that Ctrl-C cannot leave half of Numba loaded.

    An interrupted import leaves modules that fail when they are imported again, so a working Numba
    would look broken. Therefore the import continues in its own thread if the thread that waits for
    it is interrupted, and the next caller waits for the same import. A fork waits for it, too:
    otherwise the child would have half of Numba, and locks that are never released.

    If memory is too short to load the kernels, the process goes on without them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loading: dict[tuple[str, ...], _Loading] = {}
        self._problem: str | None = None
        self._bytes_needed = LOADING_BYTES
        self._builders, self._has_announced = Builders(), False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._finish, after_in_child=self._start_anew)

    def refusal(self, X: Array) -> str | None:
        """Why the kernels cannot be used for an array; None if no reason is known."""
        if not (array_api_compat.is_numpy_array(X) or array_api_compat.is_torch_array(X)):
            return f"the CPU kernels do not take arrays of {arrays.library_name(X)}"
        if not arrays.on_host(X):
            return "the CPU kernels take arrays in the host's memory only"
        if importlib.util.find_spec("numba") is None:
            return f"Numba is not installed: {how_to_install('cpu')}"
        if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
            return "NUMBA_DISABLE_JIT keeps Numba from compiling them"
        if self._problem is None and not self.are_loaded() and not has_room(self._bytes_needed):
            return f"loading them takes {readable_bytes(self._bytes_needed)} of memory"
        return self._problem

    def are_loaded(self, *stages: str) -> bool:
        """Whether the kernels of some stages, by default any, can be used without loading."""
        return any(
            loading.is_done and (not known or {*stages} <= {*known})
            for known, loading in [*self._loading.items()]  # another thread may add one
        )

    def are_coming(self, *stages: str) -> bool:
        """Whether another process compiles the kernels of some stages, or has just done so."""
        return self._problem is None and self._builders.are_asked_for(*stages)

    def load(self, *stages: str, waits: bool = True) -> bool:
        """Load the kernels of some stages, by default all; returns whether they can be used now.

        If the kernels do not work, a warning says so once. If only memory was short, a later call
        tries again.

        Parameters
        ----------
        stages : str
        waits : bool
            Wait for kernels that have to be compiled first. Otherwise they are compiled by another
            process, and a later call finds them.
        """
        stages = stages or STAGES
        if self._problem is not None:
            return False
        if self.are_loaded(*stages):
            return True
        _release_import_lock()
        if not self.have_compiled(*stages, waits=waits):
            return False
        loading = self._loading.get(stages)  # without the lock: many calls ask, and one loads
        if loading is None:
            with self._lock:
                loading = self._loading.get(stages)
                if loading is None:
                    loading = self._loading[stages] = _Loading(stages)
        problem = loading.wait()
        if problem is None:
            return True
        if isinstance(problem, MemoryError):
            self._loading.pop(stages, None)
            self._bytes_needed *= 2
            return False
        self._refuse(f"{type(problem).__name__}: {problem}")
        return False

    def have_compiled(self, *stages: str, waits: bool = False) -> bool:
        """Have another process compile kernels that are not on disk.

        Returns whether they are there now, or no other process can compile them.
        """
        if are_compiled(*stages) or not self._builders.start(*stages):
            return True
        if not self._has_announced:
            self._has_announced = True
            announce_anywhere(
                "compiling the CPU kernels, once on this machine: up to a minute"
                + (" ..." if waits else "; until then slower engines train")
            )
        if waits:
            wait_for(self._builders, *stages)
        problem = self._builders.problem(*stages)
        if problem is not None and "MemoryError" not in problem:
            self._refuse(problem)
        elif problem is not None and waits:
            self._bytes_needed *= 2  # until `refusal` says so
        return are_compiled(*stages)

    def _refuse(self, reason: str) -> None:
        self._problem = f"Numba is installed but does not work: {reason}"
        warnings.warn(
            f"{self._problem}. The reference is used instead, which is slower.", stacklevel=3
        )

    def _finish(self) -> None:
        """Before a fork: wait for what is being loaded."""
        for loading in list(self._loading.values()):
            loading.wait(_MOST_FORK_SECONDS)

    def _start_anew(self) -> None:
        """In a forked child: drop the parent's locks and threads."""
        self._lock, self._builders = threading.Lock(), Builders()
        self._loading = {name: own for name, own in self._loading.items() if own.has_ended}


class _Loading:
    """An import of kernels in a thread; in the caller's if no other can be started.

    Ctrl-C may interrupt the start of the thread, too. So every caller that waits starts a thread if
    none has begun; the first thread to begin does the work.
    """

    def __init__(self, stages: tuple[str, ...]) -> None:
        self._stages = stages
        self._problem: Exception | None = None
        self._begun, self._ended = threading.Lock(), threading.Event()

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    @property
    def is_done(self) -> bool:
        return self.has_ended and self._problem is None

    def wait(self, seconds: float | None = None) -> Exception | None:
        """Wait for the end, at most `seconds`; returns what went wrong, or None."""
        if not self._begun.locked():
            try:
                threading.Thread(target=self._load, name="gpustump loads", daemon=True).start()
            except RuntimeError:
                self._load()
        if not self.has_ended:
            self._ended.wait(seconds)
        return self._problem

    def _load(self) -> None:
        if not self._begun.acquire(blocking=False):
            return
        try:
            compiling = importlib.import_module("gpustump.engines.cpu.runtime.compiling")
            compiling.load(*self._stages)
        except Exception as error:  # of any kind: Numba or LLVM may be missing, broken or too new
            self._problem = error
        except BaseException:  # Ctrl-C, in the caller's thread: the next caller tries again
            self._begun.release()
            raise
        self._ended.set()


def _release_import_lock() -> None:
    """Release Python's lock of all imports if this thread holds it although it imports nothing.

    If Ctrl-C interrupts an import, and a second Ctrl-C interrupts Python's cleaning up, the thread
    may keep the lock: every import in another thread would wait for ever.
    """
    with contextlib.suppress(RuntimeError):  # this thread does not have it
        while True:
            _imp.release_lock()


KERNELS = Kernels()


class _KernelEngine:
    """What the engines have in common: a file with the run's class, which is named like it.

    Attributes
    ----------
    most_samples, numbers
        How many samples are too many, and for what.
    finds_intervals
    """

    name: str
    most_samples, numbers = 2**31, "positions of 31 bits"
    finds_intervals = False

    def refusal(self, task: Task) -> str | None:
        """Why it cannot train this; None if it can."""
        if task.objective.learner == "interval" and not self.finds_intervals:
            return "it finds no intervals"
        if task.n_samples >= self.most_samples:
            return f"{task.n_samples} samples are too many for {self.numbers}"
        return "the table is sparse" if arrays.is_sparse(task.X) else KERNELS.refusal(task.X)

    def start(
        self,
        table: Any,
        labels: Array,
        sample_weight: Array,
        objective: Objective,
        beginning: Beginning | None = None,
    ) -> State:
        """Begin a run; see `engines.contract.Engine`."""
        module = importlib.import_module(f"gpustump.engines.cpu.{self.name}")
        known = None if beginning is None else Beginning(*map(arrays.to_host, beginning))
        samples = arrays.to_host(labels), arrays.to_host(sample_weight)
        run: State = getattr(module, f"{self.name.title()}State")(table, *samples, objective, known)
        return run


class SortedEngine(_KernelEngine):
    """Scans sorted features, or searches the small bins that may hold the best cut."""

    name = "sorted"
    summary = "CPU kernels, sorted features"
    finds_intervals = True

    def least_bytes(self, task: Task, resources: Resources) -> int:
        """The least memory beside X with which it can train this."""
        threads, has_bins = threads_of(resources.n_jobs), gains_from_bins(task)
        return host_memory.least_of_sorted(_size_of(task), threads, has_bins) + task.category_bytes

    def prepare(self, task: Task, rows: Array | None, resources: Resources) -> PreparedTable:
        """Sort every feature, and divide it into bins if the table is large enough."""
        table = _sorted(task, rows, resources)
        if not gains_from_bins(task):
            return table
        from gpustump.engines.cpu.table import small_bins

        limits = small_bins.OF_ONE_OUTPUT if task.objective.n_outputs == 1 else ()
        return small_bins.divided(table, *limits)


class ScannedEngine(SortedEngine):
    """Scans sorted features: few kernels, which train while those of other engines are compiled."""

    name = "scanned"
    summary = "CPU kernels, sorted features, scanned whole"
    finds_intervals = False

    def prepare(self, task: Task, rows: Array | None, resources: Resources) -> SortedTable:
        """Sort every feature."""
        return _sorted(task, rows, resources)


def _sorted(task: Task, rows: Array | None, resources: Resources) -> SortedTable:
    from gpustump.engines.cpu.table import sorted_table

    table, team = arrays.to_host(task.X), Team(threads_of(resources.n_jobs))
    return sorted_table.prepare(table, _host_rows(rows), team, task.categorical)


def gains_from_bins(task: Task) -> bool:
    """Whether a sorted table is faster with bins than scanned whole."""
    fewest = BINNED_SAMPLES_WITH_SIGNS if task.objective.has_signs else BINNED_SAMPLES
    is_large = task.n_elements * task.objective.n_outputs >= BINNED_ADDITIONS
    return is_large and task.n_samples >= fewest and task.objective.learner != "interval"


class CodedEngine(_KernelEngine):
    """Adds up histograms of bins, and searches the few bins that may hold a better cut."""

    name = "coded"
    summary = "CPU kernels, histograms"
    most_samples, numbers = MOST_CODED, "numbers of 30 bits"

    def least_bytes(self, task: Task, resources: Resources) -> int:
        """The least memory beside X with which it can train this."""
        return host_memory.least_of_coded(_size_of(task)) + task.category_bytes

    def prepare(self, task: Task, rows: Array | None, resources: Resources) -> PreparedTable:
        """Code every value as a byte, or two if memory allows."""
        from gpustump.engines.cpu.table import codes

        KERNELS.load("split.compiled_refine", waits=False)

        table, rows = arrays.to_host(task.X), _host_rows(rows)
        threads = threads_of(resources.n_jobs)
        if resources.max_memory is None:
            return codes.prepare(table, rows, Team(threads), categorical=task.categorical)
        limit = resources.max_memory - task.category_bytes
        budget = host_memory.coded_budget(_size_of(task), limit, threads)
        room = codes.Room(budget.finely, budget.parted)
        return codes.prepare(
            table, rows, Team(budget.threads), room=room, categorical=task.categorical
        )


class SparseEngine(_KernelEngine):
    """Reads the values that a sparse table lists."""

    name = "sparse"
    summary = "CPU kernels, sparse columns"

    def refusal(self, task: Task) -> str | None:
        """Why it cannot train this; None if it can."""
        if not arrays.is_sparse(task.X):
            return "the table is not sparse"
        if task.n_samples >= self.most_samples:
            return f"{task.n_samples} samples are too many for {self.numbers}"
        return KERNELS.refusal(task.X.values)

    def least_bytes(self, task: Task, resources: Resources) -> int:
        """The least memory beside X with which it can train this."""
        return host_memory.least_of_sparse(_size_of(task), task.n_elements)

    def prepare(self, task: Task, rows: Array | None, resources: Resources) -> PreparedTable:
        """Sort what every feature lists."""
        from gpustump.engines.cpu.table import sparse_table

        return sparse_table.prepare(task.X, _host_rows(rows), Team(threads_of(resources.n_jobs)))


def _size_of(task: Task) -> host_memory.Size:
    return host_memory.Size(task.n_samples, task.n_features, task.objective.n_outputs)


def _host_rows(rows: Array | None) -> np.ndarray | None:
    if rows is None:
        return None
    return np.ascontiguousarray(arrays.to_host(rows), dtype=np.int64)


SCANNED, SORTED = ScannedEngine(), SortedEngine()
CODED, SPARSE = CodedEngine(), SparseEngine()


def stages_of(engine: Engine, task: Task) -> tuple[str, ...]:
    """The stages with the kernels that one of these engines needs for a task."""
    objective = task.objective
    if engine is not CODED:
        return engine.name, STAGE_OF[objective.loss]
    of_signs = ("histogram.update_pass",) if objective.has_signs else ()
    return "coded", *_CODED_OF[objective.loss], VOTES_OF[objective.gain], *of_signs
