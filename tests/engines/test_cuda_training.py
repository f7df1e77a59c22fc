"""Training on a device from end to end: wherever the table lies, however small the memory is.

The device is the stand-in of `cuda_on_cpu`. Plain arrays count as its memory, memory maps as the
host's.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import cuda_on_cpu
import numpy as np
import pytest
from cuda_on_cpu import Interrupted, OnCpu
from engine_ways import cuda_budget, learner_of
from hard_cases import voting
from rounds import Case, check_level, trainer

from gpustump import AdaBoostClassifier, DeviceError, GlassBoxClassifier, GlassBoxRegressor
from gpustump.boosting.rounds.boosting import Boosting
from gpustump.data.readable import readable_bytes
from gpustump.engines import announcements, route
from gpustump.engines.contract import Resources, Task, discrete_step, hypothesis_at
from gpustump.engines.cuda import device_memory, sorting
from gpustump.engines.cuda import table as columns
from gpustump.engines.cuda.device import OutOfDeviceMemoryError
from gpustump.engines.cuda.orders import Orders
from gpustump.engines.cuda.source_table import SourceTable
from gpustump.engines.cuda.state import CudaState
from gpustump.engines.cuda.stump_search import StumpSearch
from gpustump.engines.objective import Objective
from gpustump.engines.reference.engine import REFERENCE

pytestmark = pytest.mark.skipif(bool(cuda_on_cpu.unusable()), reason=str(cuda_on_cpu.unusable()))


def problem(n_samples: int = 900, n_classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.normal(size=(n_samples, 5)).astype(np.float32)
    X[random.random(X.shape) < 0.05] = np.nan
    score = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) + random.normal(size=n_samples)
    return X, np.digitize(score, [0.0, 1.5][: n_classes - 1])


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> OnCpu:
    """A device by the name of "cuda", and of "cuda:0"."""
    made = OnCpu()
    monkeypatch.setattr("gpustump.engines.cuda.device.device_named", lambda place: made)
    monkeypatch.setattr("gpustump.engines.cuda.device.problem_of", lambda place: None)
    return made


@pytest.fixture
def mapped(tmp_path: Any) -> Any:
    """Puts a table into a file."""

    def put(X: np.ndarray) -> np.ndarray:
        np.save(tmp_path / "table.npy", X)
        return np.load(tmp_path / "table.npy", mmap_mode="r")

    return put


@pytest.mark.parametrize("loss", ["two classes", "three classes", "squared_error", "gamma"])
def test_a_glass_box_learns_main_effects_and_pairs_on_the_device(device, mapped, monkeypatch, loss):
    """From a file, with categories; the host gets a few numbers a round, and the steps of turns."""
    X, y = problem(n_samples=500, n_classes=3 if loss == "three classes" else 2)
    X[:, 4] = np.nan_to_num(np.floor(np.abs(3 * X[:, 4])))
    how = {"n_estimators": 60, "n_bags": 2, "categorical_features": [4], "random_state": 0}
    if loss in ("squared_error", "gamma"):
        target = np.exp(np.nan_to_num(X[:, 0] * X[:, 1]))
        expected, found = (GlassBoxRegressor(loss=loss, device=at, **how) for at in ("cpu", "cuda"))
    else:
        target = y ^ (np.nan_to_num(X[:, 2] * X[:, 4]) > 1)
        expected, found = (GlassBoxClassifier(device=at, **how) for at in ("cpu", "cuda"))
    expected.fit(X, target)
    monkeypatch.setattr("gpustump.engines.cuda.device.device_of", lambda x: device)
    monkeypatch.setattr("gpustump.engines.pair_runs.device_for", lambda x: device)
    found.fit(mapped(X), target)
    assert found.model_.digest() == expected.model_.digest()
    assert found.held_out_scores_ == expected.held_out_scores_
    assert found.model_.pairs
    n_rounds = sum(len(own) for bag in found.held_out_scores_ for own in np.atleast_2d(bag))
    assert device.launched.count("judge_int32") >= n_rounds > 0
    assert device.launched.count("decide_pair") > 20


def test_rows_to_watch_may_be_of_a_library_that_is_not_on_the_device(device):
    strict = pytest.importorskip("array_api_strict")
    X, y = problem(n_samples=300)
    kept, watched = slice(0, 200), slice(200, 300)
    found = [
        AdaBoostClassifier(n_estimators=30, n_iter_no_change=3, device=at).fit(
            to(X[kept]), to(y[kept]), X_val=to(X[watched]), y_val=to(y[watched])
        )
        for at, to in (("cpu", np.asarray), ("cuda", strict.asarray))
    ]
    assert found[0].model_.digest() == found[1].model_.digest()
    assert found[0].held_out_scores_ == found[1].held_out_scores_


@pytest.mark.parametrize("promises", [True, False])
def test_the_host_learns_the_pairs_for_which_a_device_has_no_room(device, monkeypatch, promises):
    """It says so if the device seemed to have it."""
    X, y = problem(n_samples=500)
    how = {"n_estimators": 20, "n_bags": 2, "random_state": 0}
    expected = GlassBoxClassifier(device="cpu", **how).fit(X, y)
    launch, takes_runs = device.launch, promises

    def failing(kernel, *about, **rest):
        nonlocal takes_runs
        if kernel == "decide_pair":
            takes_runs = False
            raise OutOfDeviceMemoryError("2 GB are wanted")
        launch(kernel, *about, **rest)

    monkeypatch.setattr(device, "launch", failing)
    monkeypatch.setattr("gpustump.engines.cuda.device.device_of", lambda x: device)
    monkeypatch.setattr(
        "gpustump.engines.pair_runs.device_for", lambda x: device if takes_runs else None
    )
    monkeypatch.setattr("gpustump.engines.pair_runs._COPIES", 4 if promises else 2**40)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = GlassBoxClassifier(device="cuda", **how).fit(X.view(np.memmap), y)
    assert found.model_.digest() == expected.model_.digest()
    said = [str(one.message) for one in caught if "host" in str(one.message)]
    text = "since the GPU failed: cuda:0 is out of memory: OutOfDeviceMemoryError: 2 GB are wanted"
    assert said == [f"pairs of features are learnt on the host, {text}"] * promises


@pytest.mark.parametrize(
    ("dtype", "n_jobs"), [("float32", 3), (">f8", 1), ("bool", None), ("float16", 3)]
)
def test_columns_of_a_host_table_arrive_whatever_its_layout(monkeypatch, dtype, n_jobs):
    """In pieces of some rows, some columns at a time."""
    monkeypatch.setattr("gpustump.engines.cuda.source_table._STAGED_BYTES", 1000)
    random = np.random.default_rng(2)
    X = (random.normal(size=(777, 9)) * 5).astype(dtype)
    for layout in (X, np.asfortranarray(X), X[::-1, ::-1]):
        for rows in (None, random.permutation(777)[:500]):
            given = SourceTable.of(layout.view(np.memmap), rows, OnCpu(), n_jobs)
            arrived = np.stack(list(given.columns(range(2, 8), 2 * 777 * X.itemsize)), axis=1)
            expected = layout[:, 2:8] if rows is None else layout[rows, 2:8]
            assert (arrived.astype(float) == expected.astype(float)).all()


def test_codes_that_do_not_fit_are_streamed_and_it_is_said(device, mapped, monkeypatch):
    X, y = problem()
    said: list[str] = []
    monkeypatch.setattr(announcements, "listeners", [lambda text, level: said.append(text)])
    monkeypatch.setattr(device_memory, "_LEAST_BUFFER", 1024)
    least = device_memory.least_bytes(*X.shape, Objective())
    classifier = AdaBoostClassifier(n_estimators=12, device="cuda", max_memory=least, verbose=1)
    found = classifier.fit(mapped(X), y)
    expected = AdaBoostClassifier(n_estimators=12, device="cpu").fit(X, y)
    assert found.model_.digest() == expected.model_.digest()
    note = "5.1 kB of codes streamed from the host's memory in every round"
    assert said == [f"the table's codes do not fit into cuda:0: {note}"]


def test_too_little_memory_is_refused_with_what_is_needed(device, mapped):
    X, y = problem()
    least = device_memory.least_bytes(*X.shape, Objective())
    with pytest.raises(DeviceError) as error:
        AdaBoostClassifier(device="cuda", max_memory=least - 1).fit(mapped(X), y)
    assert str(error.value) == (
        "cuda:0 has too little memory: training on 900 samples of 5 features takes at least "
        f"{readable_bytes(least)} of it beside the table, and "
        f"{readable_bytes(least - 1)} can be used."
    )


def test_memory_that_runs_out_is_tried_with_less_before_it_is_refused(monkeypatch):
    """Other programs take some meanwhile."""
    X, _ = problem(3000)
    seen: list[int] = []
    budget, sort = device_memory.device_budget, columns.sorted_feature

    def noted(
        n_samples: int, n_features: int, objective: Objective, n_available: int, device: str
    ) -> device_memory.DeviceBudget:
        seen.append(n_available)
        return budget(n_samples, n_features, objective, n_available, device)

    def fails_twice(column: np.ndarray) -> Any:
        if len(seen) < 3:
            raise MemoryError("out")
        return sort(column)

    def fails(column: np.ndarray) -> Any:
        raise MemoryError("out")

    monkeypatch.setattr(device_memory, "device_budget", noted)
    monkeypatch.setattr(columns, "sorted_feature", fails_twice)
    made = columns.prepare(X, None, OnCpu(), Resources(max_memory=10**9))
    assert seen == [10**9, 750_000_000, 562_500_000]
    assert made.n_samples == 3000
    monkeypatch.setattr(columns, "sorted_feature", fails)
    with pytest.raises(DeviceError, match=r"cuda:0 has too little memory: .* takes at least"):
        columns.prepare(X, None, OnCpu())


@contextlib.contextmanager
def as_on_device(monkeypatch: pytest.MonkeyPatch, library: str, device: OnCpu) -> Iterator[None]:
    """Within it, NumPy's arrays count as another library's on a device."""
    with cuda_on_cpu.as_cuda(monkeypatch, device), monkeypatch.context() as patch:
        patch.setattr("gpustump.arrays.on_host", lambda x: False)
        patch.setattr("gpustump.arrays.device_name", lambda x: "cuda:0")
        patch.setattr("gpustump.arrays.library_name", lambda x: library)
        yield


def test_arrays_of_other_libraries_train_by_the_reference_where_cupy_has_no_memory(monkeypatch):
    """JAX keeps most of a device's memory for itself."""
    X, _ = problem()
    little = device_memory.least_bytes(*X.shape, Objective()) // 2
    given = (("jax", None, REFERENCE), ("jax", little, None), ("cupy", None, None))
    for library, max_memory, fallback in given:
        resources = Resources(max_memory=max_memory)
        with as_on_device(monkeypatch, library, OnCpu(n_bytes=little)):
            chosen = route.choose(Task(X, len(X)), resources)
            assert (chosen.engine.name, chosen.fallback) == ("cuda", fallback)
            with pytest.raises(DeviceError, match="too little memory"):
                chosen.prepare()
    with as_on_device(monkeypatch, "jax", OnCpu(n_bytes=little)):
        chosen = route.choose(Task(X, len(X)))
    monkeypatch.setattr(route, "choose", lambda *given, **how: chosen)
    taken, ready = route.prepared(chosen.task, None, Resources())
    assert taken.engine == "reference"
    assert "cuda:0 has too little memory" in taken.reason
    assert type(ready.table) is type(REFERENCE.prepare(chosen.task, None, Resources()))


def test_a_run_that_does_not_fit_beside_the_orders_takes_their_place(monkeypatch):
    X, y = problem()
    made = columns.prepare(X, None, OnCpu())
    begin, n_failures = StumpSearch.__init__, 3

    def failing(self: StumpSearch, *given: Any) -> None:
        nonlocal n_failures
        begin(self, *given)
        if n_failures:
            n_failures -= 1
            raise MemoryError("out")

    monkeypatch.setattr(StumpSearch, "__init__", failing)
    ways = [("", made)]
    check_level(X, 2.0 * y - 1.0, None, ways, n_rounds=6)
    assert np.count_nonzero(made.orders.addresses) <= 2


def test_an_order_that_was_not_made_to_its_end_is_not_used():
    def interrupted(feature: int) -> np.ndarray:
        if feature == 1:
            raise KeyboardInterrupt
        return np.arange(4, dtype=np.int32)

    orders = Orders(OnCpu(), 3, 1, interrupted)
    orders.provide([0])
    with pytest.raises(KeyboardInterrupt):
        orders.provide([1])
    assert not orders.addresses.any()  # no address of the one that went


def with_one_order(X: np.ndarray, device: OnCpu) -> columns.CudaTable:
    return columns.prepare(X, None, device, Resources(max_memory=cuda_budget(*X.shape, 1)))


@pytest.mark.parametrize("kind", ["discrete", "interval", "real", "newton"])
def test_a_run_that_was_interrupted_goes_on_as_if_it_had_not_been_or_is_refused(monkeypatch, kind):
    """Orders are fetched one at a time, and the interruption may come at any step of that."""
    monkeypatch.setattr(sorting, "MOST_BINS", 7)  # wide ones, which have to be looked into
    X, y = problem()
    case = voting(Case.of(X, 2.0 * y - 1.0), kind)

    def boosting(device: OnCpu) -> Boosting:
        return Boosting(
            trainer(with_one_order(X, device)), case.y, case.weights, votes=case.votes_of_run(),
            n_rounds=8, learner=learner_of(kind),
        )  # fmt: skip

    def goes_on(at: int) -> bool:
        device, n_left = Interrupted(), at

        def interrupt(kernel: str) -> None:
            nonlocal n_left
            n_left -= 1
            if n_left == 0:
                raise KeyboardInterrupt

        run = boosting(device)
        device.before = interrupt
        with pytest.raises(KeyboardInterrupt):
            list(run)
        try:
            list(run)
        except RuntimeError:  # it was in the middle of a round
            with pytest.raises(RuntimeError, match="start anew"):
                run.resume([], [])
            return False
        assert run.model == whole.model
        return True

    device = OnCpu()
    whole = boosting(device)
    device.launched.clear()
    assert len(list(whole)) == 8
    went_on = [goes_on(at) for at in range(4, len(device.launched), len(device.launched) // 14)]
    assert any(went_on) or kind == "discrete"  # its search is queued with the step before it
    assert not all(went_on)


def test_a_round_whose_result_is_never_read_has_no_effect_on_the_next_one():
    X, y = problem()
    signs = 2.0 * y - 1.0
    one, other = (
        CudaState(with_one_order(X, OnCpu()), signs, np.ones(900), Objective()) for _ in "ab"
    )
    for number in range(6):
        cut = one.best_cut()
        stump = hypothesis_at(one._table, cut, one.totals)
        step = discrete_step(stump, 0.5, 1.5, 1, cut)
        for _ in range(2):
            one.advance(step)
            assert one.totals.weight
            other.advance(step)  # twice, without reading the result
        assert other.best_cut() == one.best_cut(), number
