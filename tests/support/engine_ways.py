"""Every engine, and every way in which it can prepare a table, in one list.

A new engine is compared with the reference on everything once it has an entry in `ENGINES`:
tests/engines/test_conformance.py runs all its ways over all cases. The first way of an entry is the
one that the route takes. With GPUSTUMP_TESTED_WAYS=first, it is the only one that is tested.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import cuda_on_cpu
import numpy as np
import pytest
from backends import BACKENDS, TESTED, Backend
from cuda_on_cpu import OnCpu
from rounds import KINDS, Case, Way, check_facts, facts_of
from spread_tables import Spread, SpreadTable

from gpustump import arrays
from gpustump.data.parameters import Learner
from gpustump.engines.contract import Engine, PreparedTable, Resources, Task
from gpustump.engines.objective import Objective
from gpustump.engines.reference.engine import REFERENCE
from gpustump.engines.threads import Team

FIRST_WAY_ONLY = os.environ.get("GPUSTUMP_TESTED_WAYS") == "first"

Rows = np.ndarray | None

ALL_KINDS = ("interval", *KINDS)
"""Kinds of votes, for stumps and splits; "interval" is discrete votes for intervals."""


NO_QUANTILES = tuple(kind for kind in ALL_KINDS if kind != "quantile")
"""What GPUs train."""

WITH_GPUS = ("three GPUs", "shared values, one row", "ranges cut in two")
"""Names of ways of clusters."""


def learner_of(kind: str) -> Learner:
    """What votes of a kind are for, but for signs and regions."""
    return "interval" if kind == "interval" else "stump"


@dataclass(frozen=True)
class EngineUnderTest:
    """An engine and its ways."""

    name: str
    make: Callable[[np.ndarray, Rows, tuple[int, ...]], Iterator[Way]]
    """From a table, rows and categorical features, on NumPy, to each way in turn."""
    reason: Callable[[], str | None] = lambda: None
    """Why it cannot be used here; None if it can."""
    kinds: tuple[str, ...] = ALL_KINDS
    """Which of `ALL_KINDS` it knows."""
    backend: Backend | None = None
    """The array library that its tables and labels are of; None for NumPy."""
    compiles_for_every_shape: bool = False
    """Then it is given the awkward tables only, and tables of one shape where they are drawn."""
    n_ways_of_intervals: int | None = None
    """Only the first so many are tried with intervals; stumps are tried in all of them."""

    @property
    def is_library(self) -> bool:
        """Whether it differs from the reference on NumPy in its array library only."""
        backend = self.backend
        return backend is not None and backend.kernels == "reference" and backend.name != "numpy"

    @property
    def lacks(self) -> Collection[str]:
        """Dtypes that it does not take; SciPy has no sparse matrices of float16."""
        if self.backend is not None:
            return self.backend.lacks
        return ("float16",) if self.name == "sparse" else ()

    @property
    def has_many_ways(self) -> bool:
        return self.name in ("cluster", "coded", "cuda") and not FIRST_WAY_ONLY

    def ways(
        self,
        X: np.ndarray,
        rows: Rows = None,
        categorical: tuple[int, ...] = (),
        kind: str = "discrete",
    ) -> Iterator[Way]:
        """The ways that are to be tested. A way must be done with before the next one is taken."""
        made = self.make(X, rows, categorical)
        able = (way for way in made if kind != "quantile" or way[0] not in WITH_GPUS)
        return itertools.islice(able, 1 if FIRST_WAY_ONLY else None)

    def asarray(self, x: np.ndarray) -> Any:
        return x if self.backend is None else self.backend.asarray(x)

    def to_numpy(self, x: Any) -> np.ndarray:
        if arrays.is_sparse(x):
            return x.dense()
        return np.asarray(x) if self.backend is None else self.backend.to_numpy(x)

    def check(
        self,
        case: Case,
        kind: str = "discrete",
        n_ways: int | None = None,
        third: int | None = None,
    ) -> None:
        """Check that every way has the reference's facts in every round.

        With `n_ways` only the first ways are checked; with `third`, for an engine of many ways,
        every third one from that number on.
        """
        learner = learner_of(kind)
        if learner == "interval" and n_ways is None:
            n_ways = self.n_ways_of_intervals
        facts = facts_of(case, learner)
        y, weights = self.asarray(case.y), self.asarray(case.weights)
        objective = case.votes_of_run().objective(learner)
        first, step = (0, 1) if third is None or not self.has_many_ways else (third % 3, 3)
        ways = self.ways(case.X, case.rows, case.categorical, kind)
        for name, table in itertools.islice(ways, first, n_ways, step):
            with arrays.computing_on(y):
                run = (y, weights, objective, case.beginning(self.asarray))
                check_facts(facts, (name, case.with_sets(table)), run, self.to_numpy)

    def skip_if_unusable(self, dtype: str = "float64") -> None:
        if reason := self.reason():
            pytest.skip(reason)
        if dtype in self.lacks:
            pytest.skip(f"{self.name} has no {dtype}")

    def __str__(self) -> str:
        return self.name


def as_routed(
    engine: Engine, X: Any, rows: Any, n_jobs: int | None = None, categorical: tuple[int, ...] = ()
) -> PreparedTable:
    """A table as the route has it prepared."""
    task = Task(X, X.shape[0] if rows is None else rows.shape[0], categorical=categorical)
    return engine.prepare(task, rows, Resources(n_jobs=n_jobs))


def on_arrays(
    X: np.ndarray, rows: Rows, categorical: tuple[int, ...] = (), *, backend: Backend
) -> Iterator[Way]:
    """The reference on one array library, in blocks of several sizes.

    An element takes 48 bytes. NumPy takes small tables in blocks of ten samples, too, and the
    smallest sample by sample.
    """
    from gpustump.engines.reference import table as reference

    x = backend.asarray(X)
    index = None if rows is None else backend.asarray(rows)
    sizes = [5000, 500] + [1] * (X.size <= 40)
    if X.size > 500:
        sizes = [10 * X.size]
    elif backend.name != "numpy":
        sizes = []  # slower, and where a block ends is decided on the host
    with arrays.computing_on(x):
        table = as_routed(REFERENCE, x, index, categorical=categorical)
    yield backend.name, table
    for size in sizes:
        with arrays.computing_on(x):
            table = reference.prepare(x, rows=index, block_bytes=size, categorical=categorical)
        yield f"{backend.name} in blocks of {size} bytes", table


class ManyPieces(Team):
    """A team that takes even a few things in several pieces."""

    def pieces(self, total: int, least: int) -> tuple[int, int]:
        """Whole chunks of samples stay whole."""
        return super().pieces(total, least if least == 8192 else min(least, 1 + total // 7))


def sorted_whole(X: np.ndarray, rows: Rows, categorical: tuple[int, ...] = ()) -> Iterator[Way]:
    """Scanned whole, in one piece or in many; in bins, some or all of which hold several values."""
    from gpustump.engines.cpu.engine import SORTED
    from gpustump.engines.cpu.split import scan, small_bins, sorted_intervals
    from gpustump.engines.cpu.table import small_bins as bins
    from gpustump.engines.cpu.table import sorted_table

    def divided(n_threads: int, *limits: int) -> Any:
        table = sorted_table.prepare(X, rows, ManyPieces(n_threads), categorical)
        return bins.divided(table, *limits)

    yield "scanned", as_routed(SORTED, X, rows, 1, categorical)
    yield "in bins", divided(1)
    with pytest.MonkeyPatch.context() as patch:
        for own in (sorted_table, sorted_intervals, bins):
            patch.setattr(own, "ELEMENTS_AT_ONCE", 64)
        patch.setattr(scan, "_ELEMENTS_AT_ONCE", 64)
        yield "scanned, 3 threads", sorted_table.prepare(X, rows, ManyPieces(3), categorical)
        patch.setattr(small_bins, "_ADDITIONS_AT_ONCE", 1)
        yield "small bins, 3 threads", divided(3, 254, 1)
        yield "3 bins, 2 threads", divided(2, 3)
    yield "2 bins", divided(1, 2)


def coded(X: np.ndarray, rows: Rows, categorical: tuple[int, ...] = ()) -> Iterator[Way]:
    """With many bins and with few, with and without the second byte, with nothing kept.

    Compiled code refines the bins of features in order, Python all others.
    """
    from gpustump.engines.cpu.engine import CODED, KERNELS
    from gpustump.engines.cpu.table import codes

    assert KERNELS.load("split.compiled_refine")

    coarsely = codes.Room(finely=False, parted=False)
    sparingly = codes.Room(parted=False)
    yield "coded", as_routed(CODED, X, rows, 1, categorical)
    prepare = functools.partial(codes.prepare, X, rows, categorical=categorical)
    at_once = codes.Room(patience=0)
    yield "coded, 3 threads", prepare(ManyPieces(3), room=at_once, max_cuts=16)
    yield "8 cuts", prepare(Team(1), room=at_once, max_cuts=8)
    yield "coarsely", prepare(ManyPieces(2), room=coarsely, max_cuts=32)
    yield "one cut, coarsely", prepare(Team(1), room=coarsely, max_cuts=1)
    yield "nothing kept", prepare(ManyPieces(2), room=sparingly, max_cuts=16)


def sparse(X: np.ndarray, rows: Rows, categorical: tuple[int, ...] = ()) -> Iterator[Way]:
    """The table as a sparse one, in few parts and in many; by the reference, too."""
    import scipy.sparse

    from gpustump.data.tables import check_table
    from gpustump.engines.cpu.engine import SPARSE
    from gpustump.engines.cpu.split import sparse_splits

    given = scipy.sparse.csc_array(X)
    for own in (given.data, given.indices, given.indptr):  # of which the table keeps some
        own.flags.writeable = False
    table = check_table(given)
    yield "sparse", as_routed(SPARSE, table, rows, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_splits, "_SAMPLES_AT_ONCE", 16)
        patch.setattr(sparse_splits, "_ENTRIES_AT_ONCE", 16)
        patch.setattr(sparse_splits, "_FEW", 1)
        yield "sparse, 3 threads", as_routed(SPARSE, table, rows, 3)
    yield "sparse by the reference", as_routed(REFERENCE, table, rows)


def cuda_budget(n_samples: int, n_features: int, n_orders: int) -> int:
    """Bytes that leave room for the codes and so many orders."""
    from gpustump.engines.cuda import device_memory

    codes_and_orders = device_memory._of_codes(n_samples, n_features) + 4 * n_samples * (
        n_orders - 1
    )
    return device_memory._without_codes(n_samples, n_features, Objective()) + codes_and_orders


def cuda(X: np.ndarray, rows: Rows, categorical: tuple[int, ...] = ()) -> Iterator[Way]:
    """With several threads a block, little memory of each kind, and the table on the host."""
    from gpustump.engines.cuda import device_memory, search, sorting, table
    from gpustump.engines.cuda.engine import CudaEngine

    host = X.view(np.memmap)  # anything but a plain array counts as the host's
    shape = (len(X) if rows is None else len(rows), X.shape[1])
    one = cuda_budget(*shape, 1)

    def way(name: str, device: OnCpu, X: np.ndarray = X, **how: int) -> Way:
        resources = Resources(**how)
        return name, table.prepare(X, rows, device, resources, categorical=categorical)

    yield "two threads", as_routed(CudaEngine(OnCpu()), X, rows, categorical=categorical)
    yield way("one thread", OnCpu(threads=1))
    yield way("one order at a time", OnCpu(), max_memory=one)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "MOST_BINS", 3)
        three = way("three bins", OnCpu())
        patch.setattr(sorting, "MOST_BINS", 1)
        whole = way("one bin, small pieces", OnCpu(threads=3))
    yield three
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "OF_SIGNS", search.Sizes(least=100, most=7))
        yield whole
    yield way("three threads", OnCpu(threads=3))
    yield way("nothing staged", OnCpu(most_shared=160 * 1024))
    yield way("little shared memory", OnCpu(most_shared=64 * 1024))
    yield way("host table", OnCpu(), host)
    yield way("host table, one order at a time", OnCpu(), host, max_memory=one)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_memory, "_LEAST_BUFFER", 1024)
        least = device_memory.least_bytes(*shape, Objective())
        yield way("streamed", OnCpu(), host, max_memory=least)
        patch.setattr(device_memory, "_MOST_BUFFER", 1024)
        yield way("streamed in blocks", OnCpu(), host, max_memory=least)


def cuda_on_gpu(
    X: np.ndarray, rows: Rows, categorical: tuple[int, ...] = (), *, backend: Backend
) -> Iterator[Way]:
    """On a GPU: the table there, on the host, and streamed from the host in every round."""
    from gpustump.engines.cuda import device_memory, table
    from gpustump.engines.cuda.device import device_of
    from gpustump.engines.cuda.engine import CudaEngine

    there = backend.asarray(X)
    device = device_of(there)
    assert device is not None
    own = None if rows is None else backend.asarray(rows)
    yield "on the GPU", as_routed(CudaEngine(device), there, own, None, categorical)
    spread = Spread(("cuda", "cuda"), max_cuts=254)
    yield "two shards on the GPU", SpreadTable(X, rows, spread, categorical)
    yield "host table", as_routed(CudaEngine(device), X, rows, None, categorical)
    shape = (len(X) if rows is None else len(rows), X.shape[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_memory, "_LEAST_BUFFER", 1024)
        least = Resources(max_memory=device_memory.least_bytes(*shape, Objective()))
        yield "streamed", table.prepare(X, rows, device, least, categorical=categorical)


def spread_out(X: np.ndarray, rows: Rows, categorical: tuple[int, ...] = ()) -> Iterator[Way]:
    """Rows spread over CPUs and GPUs, in bins and units of several sizes."""
    from gpustump.engines.cluster import shards, state, sums_source
    from gpustump.engines.cpu.table import codes

    has_gpus = not cuda_on_cpu.unusable()
    kernels, mixed = ("cpu",) * 3, ("cpu", "cuda" if has_gpus else "cpu", "cpu")

    def way(name: str, *devices: str, **how: Any) -> Way:
        return name, SpreadTable(X, rows, Spread(devices, **how), categorical)

    yield way("three shards", *kernels)
    with pytest.MonkeyPatch.context() as patch:
        if has_gpus:
            patch.setattr(shards, "usable_device", lambda place: OnCpu())
            yield way("three GPUs", "cuda", "cuda", "cuda", max_cuts=254)
            shape = (len(X) if rows is None else len(rows), X.shape[1])
            small = OnCpu(threads=3, n_bytes=cuda_budget(*shape, 1) * 10 // 9 + 10)
            patch.setattr(shards, "usable_device", lambda place: small)
        yield way("shared values, one row", *mixed, max_cuts=1, lone=1, shares_values=True)
        patch.setattr(sums_source, "_LISTED", 3)
        patch.setattr(sums_source, "_UNIT_BITS", 1)
        yield way("ranges cut in two", *mixed, max_cuts=3)
        patch.setattr(codes, "SHARD", codes.SHARD._replace(patience=0))
        yield way("samples in order, two threads", "cpu", max_cuts=2, n_threads=2)
        patch.setattr(state, "_LEAST_CODES", 0)
        patch.setattr(state, "_LARGEST_MINORITY", 1.0)
        yield way("steps followed", *kernels, max_cuts=5)


def no_numba() -> str | None:
    return next(b.reason for b in BACKENDS if b.name == "numpy-coded")


def on_library(backend: Backend) -> EngineUnderTest:
    return EngineUnderTest(
        f"reference on {backend.name}",
        functools.partial(on_arrays, backend=backend),
        lambda: backend.reason,
        backend=backend,
        compiles_for_every_shape=backend.name.startswith("jax"),
    )


def kernels_on(backend: Backend) -> EngineUnderTest:
    return EngineUnderTest(
        f"kernels on {backend.name.partition('-')[0]}",
        functools.partial(cuda_on_gpu, backend=backend),
        lambda: backend.reason,
        kinds=NO_QUANTILES,
        backend=backend,
    )


ENGINES = (
    *(on_library(backend) for backend in TESTED if backend.kernels == "reference"),
    EngineUnderTest("sorted", sorted_whole, no_numba),
    EngineUnderTest("coded", coded, no_numba, tuple(KINDS)),
    EngineUnderTest("sparse", sparse, no_numba, tuple(KINDS)),
    EngineUnderTest("cluster", spread_out, no_numba, tuple(KINDS)),
    EngineUnderTest("cuda", cuda, cuda_on_cpu.unusable, NO_QUANTILES, n_ways_of_intervals=5),
    *(kernels_on(backend) for backend in TESTED if backend.name == "cupy-kernels"),
)
