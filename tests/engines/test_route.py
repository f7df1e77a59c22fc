"""Where a table trains and by which engine: one decision, from what is known before training."""

from __future__ import annotations

import importlib.util
import logging
import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from gpustump import AdaBoostClassifier, DeviceError, boost
from gpustump.arrays.devices import how_to_install
from gpustump.engines import announcements, route
from gpustump.engines.contract import Resources, Task
from gpustump.engines.cpu import engine as cpu_engine
from gpustump.engines.cuda import device as cuda_device
from gpustump.engines.objective import Objective
from gpustump.engines.reference.table import HOST_BLOCK_BYTES

HAS_NUMBA = importlib.util.find_spec("numba") is not None
needs_numba = pytest.mark.skipif(not HAS_NUMBA, reason="numba is not installed")


def table(n_samples: int = 50, n_features: int = 3) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n_samples, n_features)).astype(np.float32)


def chosen(X, *, learner="stump", n_rounds=None, device=None, **resources) -> route.Route:
    task = Task(X, X.shape[0], Objective(learner=learner), n_rounds)
    return route.choose(task, Resources(**resources), device=device).route


def engine_of(X, **how) -> str:
    return chosen(X, **how).engine


@pytest.fixture
def fresh(monkeypatch):
    """As in a process that has not loaded Numba yet, nor waited for the reference."""
    monkeypatch.setattr(route, "_waited", 0.0)
    monkeypatch.setattr(cpu_engine.Kernels, "are_loaded", lambda self, *stages: False)


@pytest.fixture
def a_gpu(monkeypatch):
    """A GPU whose kernels can be used, as far as the route is told."""

    class Found:
        name = "cuda:0"

        def takes(self, x: object) -> bool:
            return False

    monkeypatch.setattr(cuda_device, "device_named", lambda place: Found())
    monkeypatch.setattr(cuda_device, "problem_of", lambda place: None)
    return Found


@needs_numba
def test_small_tables_are_sorted_and_others_go_through_histograms():
    assert engine_of(table()) == "sorted"
    assert engine_of(table(route.SORTED_SAMPLES, 100)) == "sorted"
    assert engine_of(table(route.SORTED_SAMPLES + 1, 1)) == "coded"
    wide = route.SORTED_ELEMENTS // 2**14
    assert engine_of(table(2**14, wide)) == "sorted"
    assert engine_of(table(2**14, wide + 1)) == "coded"
    assert engine_of(table(2**12, 2 * route.SORTED_ELEMENTS // 2**12)) == "sorted"

    def engine(n_samples: int, objective: Objective) -> str:
        return route.choose(Task(table(n_samples, 64), n_samples, objective)).route.engine

    # More outputs make a table large earlier, and intervals are always found by a scan.
    shared = Objective.of(votes="newton", n_outputs=16)
    most = route.SORTED_ADDITIONS // 64 // 16
    assert (engine(most, shared), engine(most + 1, shared)) == ("sorted", "coded")
    assert engine(most + 1, Objective(learner="interval")) == "sorted"


@needs_numba
def test_kernels_train_on_as_many_samples_as_they_can_number(monkeypatch):
    for asked, n_samples, engine in (
        ("coded", 2**30 - 1, "coded"),
        ("coded", 2**30, "sorted"),
        ("sorted", 2**31 - 1, "sorted"),
        ("sorted", 2**31, "reference"),
    ):
        monkeypatch.setenv("GPUSTUMP_KERNELS", asked)
        X = np.broadcast_to(np.float32(0), (n_samples, 1))
        assert route.choose(Task(X, n_samples, Objective())).route.engine == engine


@needs_numba
def test_sorted_tables_that_gain_from_it_are_divided_into_bins():
    def has_bins(n_samples: int, n_features: int, **objective: Any) -> bool:
        task = Task(table(n_samples, n_features), n_samples, Objective.of(**objective))
        return cpu_engine.SORTED.prepare(task, None, Resources()).has_bins

    fewest, with_signs = cpu_engine.BINNED_SAMPLES, cpu_engine.BINNED_SAMPLES_WITH_SIGNS
    wide = cpu_engine.BINNED_ADDITIONS // fewest
    for votes in ("newton", "real"):
        assert has_bins(fewest, wide, votes=votes)
        assert has_bins(fewest, wide // 2, votes=votes, n_outputs=2)
        assert not has_bins(fewest, wide - 1, votes=votes)
        assert not has_bins(fewest - 1, 2 * wide, votes=votes)
    wide = cpu_engine.BINNED_ADDITIONS // with_signs
    assert has_bins(with_signs, wide)
    assert not has_bins(with_signs - 1, 2 * wide)
    assert not has_bins(with_signs, wide, learner="interval")


def test_every_backend_under_test_goes_to_the_kernels_it_is_named_for(backend):
    assert engine_of(backend.asarray(table())) == backend.kernels


@needs_numba
def test_arrays_that_kernels_do_not_take_go_to_the_reference_and_tensors_of_the_host_to_kernels():
    strict = pytest.importorskip("array_api_strict")
    found = chosen(strict.asarray(table()))
    assert found.engine == "reference"
    assert "do not take arrays of array_api_strict" in str(found)
    torch = pytest.importorskip("torch")
    assert engine_of(torch.asarray(table())) == "sorted"


def test_without_numba_the_reference_trains_and_an_unknown_choice_is_refused(monkeypatch):
    found = importlib.util.find_spec
    with monkeypatch.context() as patch:
        patch.setattr(
            importlib.util,
            "find_spec",
            lambda name, *a: None if name == "numba" else found(name, *a),
        )
        taken = chosen(table())
    assert taken.engine == "reference"
    assert how_to_install("cpu") in str(taken)
    monkeypatch.setenv("GPUSTUMP_KERNELS", "fastest")
    with pytest.raises(ValueError, match="GPUSTUMP_KERNELS must be one of auto, reference"):
        chosen(table())


@needs_numba
def test_a_numba_that_does_not_load_is_reported_once_and_done_without(monkeypatch):
    from gpustump.engines.cpu.runtime import compiling

    def broken(*stages: str) -> None:
        raise ImportError("libLLVM is missing")

    monkeypatch.setattr(compiling, "load", broken)
    monkeypatch.setattr(route, "KERNELS", cpu_engine.Kernels())
    monkeypatch.setattr(cpu_engine, "KERNELS", route.KERNELS)
    with pytest.warns(UserWarning, match="libLLVM is missing"):
        assert engine_of(table()) == "reference"
    assert engine_of(table()) == "reference"
    assert "libLLVM is missing" in str(chosen(table()))


@needs_numba
def test_kernels_are_loaded_once_the_reference_has_worked_long_enough(fresh, monkeypatch):
    engines = [engine_of(table(), n_rounds=200) for _ in range(10)]
    assert engines[0] == "reference"
    assert engines[-1] == "sorted"
    monkeypatch.setattr(route, "_waited", 0.0)
    assert engine_of(table(2000, 50), n_rounds=1000) == "sorted"  # long enough by itself
    monkeypatch.setattr(route, "_waited", 0.0)
    assert engine_of(table()) == "sorted"  # nobody knows how long


@needs_numba
def test_a_memory_limit_is_kept_by_whoever_can(fresh, monkeypatch):
    X = np.zeros((1_000_000, 7), dtype=np.float32)
    found = chosen(X, n_rounds=1, max_memory=130_000_000)
    assert found.engine == "coded"  # in a fresh process, too
    assert "max_memory" in found.reason
    monkeypatch.setattr(route, "_waited", math.inf)
    assert engine_of(table(1000)) == "sorted"
    found = chosen(table(1000), max_memory=200_000)
    assert found.engine == "reference"
    assert "200.0 kB" in found.reason


@pytest.mark.parametrize("learner", ["stump", "interval"])
@pytest.mark.parametrize("kernels", ["reference", "sorted", "coded"])
def test_too_little_memory_is_refused_with_what_is_needed_and_that_gives_the_same_model(
    monkeypatch, kernels, learner
):
    if kernels != "reference" and not HAS_NUMBA:
        pytest.skip("numba is not installed")
    monkeypatch.setenv("GPUSTUMP_KERNELS", kernels)
    X = table(20_000)
    how = {"y": np.where(np.abs(X[:, 0]) + X[:, 1] < 0.8, 1, -1), "weak_learner": learner}
    with pytest.raises(ValueError, match="takes at least") as refusal:
        boost(X, max_memory="10 kB", **how)
    needed = int(str(refusal.value).partition("at least ")[2].split()[0])
    whole, *limited = (
        list(boost(X, n_rounds=5, max_memory=limit, **how)) for limit in (None, needed, 2 * needed)
    )
    assert limited == [whole, whole]


def test_the_reference_takes_what_memory_is_left_for_its_blocks(monkeypatch):
    monkeypatch.setenv("GPUSTUMP_KERNELS", "reference")

    def block_bytes(limit: int | None) -> int:
        choice = route.choose(Task(table(1000), 1000), Resources(max_memory=limit))
        return choice.prepare().table.block_bytes

    assert block_bytes(16 * 10**9) == block_bytes(None) == HOST_BLOCK_BYTES
    assert block_bytes(1000 * (3 * 5 + 80 + 100)) == 100_000


LARGE = np.broadcast_to(np.float32(0), (route.least_elements(), 1))
"""It takes no memory."""


@pytest.mark.parametrize("votes", ["discrete", "newton"])
def test_auto_weighs_the_start_of_a_gpu_against_what_all_rounds_gain(a_gpu, votes):
    """A table is worth it in many rounds, or in few if it is large; and only then."""
    objective = Objective.of(votes=votes)
    gains = {
        (size, rounds): route.gains_from_gpu(Task(LARGE, size, objective, rounds))
        for size in (10**4, 10**6, 10**8, 10**9)
        for rounds in (1, 10, 100, 10_000)
    }
    for size, rounds in gains:
        assert gains[size, rounds] <= gains.get((10 * size, rounds), True)
        assert gains[size, rounds] <= gains[size, 10_000] or size < 10**8
    assert not gains[10**4, 10_000]  # a round there takes longer than here, however many there are
    assert gains[10**8, 100]
    assert not gains[10**6, 100]
    assert gains[10**9, 1]


def test_auto_takes_a_gpu_for_large_tables_only_and_says_why_not(a_gpu, monkeypatch):
    assert chosen(LARGE, device="auto").place == "cuda:0"
    assert chosen(LARGE, device="auto", learner="interval").engine == "cuda"

    def reason(X: np.ndarray, n_samples: int) -> str:
        found = route.choose(Task(X, n_samples), device="auto").route
        assert found.place == "cpu"
        return str(found)

    few = f"{len(LARGE) - 1} elements and 100 rounds are too few"
    assert few in str(chosen(LARGE[1:], device="auto"))
    quantiles = Task(LARGE, len(LARGE), Objective.of("newton", 1, "quantile"))
    assert "they do not find quantiles" in str(route.choose(quantiles, device="auto").route)
    assert "2147483648 samples are too many for positions of 31 bits" in reason(LARGE, 2**31)
    with monkeypatch.context() as patch:
        for kernels in ("reference", *(("sorted", "coded") if HAS_NUMBA else ())):
            patch.setenv("GPUSTUMP_KERNELS", kernels)
            assert (chosen(LARGE, device="auto").place, engine_of(LARGE)) == ("cpu", kernels)

    none = "CuPy finds no working CUDA driver: CUDARuntimeError: no device"
    monkeypatch.setattr(cuda_device, "problem_of", lambda place: none)
    found = reason(LARGE, 2**31)
    assert "not a GPU: CuPy finds no working CUDA driver" in found
    assert not found.endswith(".")


@needs_numba
@pytest.mark.parametrize(("value", "is_off"), [("1", True), ("0", False), ("", False)])
def test_a_numba_that_is_switched_off_is_not_used(value, is_off, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", value)
    found = str(chosen(LARGE, device="cpu"))
    assert ("NUMBA_DISABLE_JIT keeps Numba from compiling them" in found) == is_off


def test_the_host_is_tried_after_a_gpu_that_failed_with_a_warning(a_gpu, monkeypatch):
    from gpustump.engines.cuda.engine import CudaEngine

    def fail(self, task, rows, resources):
        raise DeviceError("cuda:0 has too little memory")

    monkeypatch.setattr(CudaEngine, "prepare", fail)
    monkeypatch.setattr(route, "gains_from_gpu", lambda task: True)
    X, y = table(), np.resize([0, 1], 50)
    with pytest.warns(UserWarning, match="goes on to the CPU, since the GPU failed: cuda:0 has"):
        classifier = AdaBoostClassifier(n_estimators=3).fit(X, y)
    assert classifier.device_ == "cpu"
    assert "not a GPU: cuda:0 has too little memory" in str(classifier.route_)
    with pytest.raises(DeviceError, match="too little memory"):
        AdaBoostClassifier(n_estimators=3, device="cuda").fit(X, y)


def test_a_gpu_that_fails_after_the_first_round_is_not_gone_on_from(a_gpu, monkeypatch):
    from gpustump.engines.cuda.engine import CudaEngine
    from gpustump.engines.reference.engine import REFERENCE

    monkeypatch.setattr(CudaEngine, "prepare", lambda self, *rest: REFERENCE.prepare(*rest))
    monkeypatch.setattr(CudaEngine, "start", lambda self, *rest: REFERENCE.start(*rest))
    monkeypatch.setattr(route, "gains_from_gpu", lambda task: True)

    def fail(record):
        raise DeviceError("cuda:0 was lost")

    with pytest.raises(DeviceError, match="cuda:0 was lost"):
        AdaBoostClassifier(callback=fail).fit(table(), np.resize([0, 1], 50))


def test_a_fitted_estimator_keeps_its_route_but_not_the_table_and_says_why(monkeypatch):
    X, y = table(), np.resize([0, 1], 50)
    classifier = AdaBoostClassifier(n_estimators=3).fit(X, y)
    assert classifier.route_.place == classifier.device_ == "cpu"
    assert all(isinstance(value, str | tuple) for value in vars(classifier.route_).values())
    heard: list[str] = []
    monkeypatch.setattr(announcements, "listeners", [lambda text, level: heard.append(text)])
    classifier.set_params(verbose=2).fit(X, y)
    assert heard == [f"trains on {classifier.route_}"]


def printed(program: str, *arguments: str, **environment: str) -> str:
    """What a program prints in a process of its own."""
    inherited = {k: v for k, v in os.environ.items() if k != "GPUSTUMP_KERNELS"}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        env=inherited | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


LOADED = """
import sys, numpy as np
from gpustump import AdaBoostClassifier
X = np.random.default_rng(0).normal(size=(100, 3))
model = AdaBoostClassifier(n_estimators=20).fit(X, X[:, 0] > 0)
model.predict(X)
heavy = {"numba", "torch", "jax", "cupy", "matplotlib"}
engines = {"gpustump.engines.cpu.sorted", "gpustump.engines.cpu.coded"}
print(*sorted((heavy if len(sys.argv) == 1 else engines) & set(sys.modules)))
"""


@needs_numba
def test_a_fit_loads_the_kernels_of_its_own_engine_only_and_a_small_one_no_compiler():
    assert printed(LOADED) == ""
    for engine in ("sorted", "coded"):
        found = printed(LOADED, "engines", GPUSTUMP_KERNELS=engine)
        assert found == f"gpustump.engines.cpu.{engine}"


LATE = """
import os
import numpy as np
import gpustump
from gpustump.engines.cpu import engine
from gpustump.engines.cpu.runtime import compiling
X = np.random.default_rng(0).normal(size=(3000, 3))
y = np.abs(X[:, 0] + np.random.default_rng(1).normal(size=3000))
late, asked_for, load = [], [], engine.KERNELS.load
compiling.listeners.append(lambda: asked_for or late.append("a kernel"))

def loading(*stages, waits=True):
    asked_for.append(stages)
    try:
        return load(*stages, waits=waits)
    finally:
        asked_for.clear()

engine.KERNELS.load = loading
regressor, boosts = gpustump.StumpBoostingRegressor, gpustump.AdaBoostClassifier
makes = [(boosts, "votes", votes, 1) for votes in ("discrete", "real")]
makes += [(boosts, "votes", "real", 2), (gpustump.LogitBoostClassifier, "l2_regularization", 1, 1)]
makes += [(gpustump.LogitBoostClassifier, "l2_regularization", 1, 2)]
quantities = ("squared_error", "quantile", "poisson", "gamma")
makes += [(regressor, "loss", loss, 0) for loss in quantities]
for estimator, name, value, most in makes:
    child = os.fork()
    if child == 0:
        labels = np.minimum(y.astype(int), most) if most else y
        estimator(n_estimators=30, **{name: value}).fit(X, labels)
        print(estimator.__name__, value, most, *late, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


@needs_numba
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("kernels", ["sorted", "coded"])
def test_no_kernel_is_loaded_or_compiled_in_the_middle_of_a_fit(kernels):
    found = printed(LATE, GPUSTUMP_KERNELS=kernels).splitlines()
    assert len(found) == 9
    assert not [line for line in found if "a kernel" in line]


JUDGED = """
import numpy as np
from gpustump import GlassBoxClassifier, GlassBoxRegressor
from gpustump.engines import route
from gpustump.engines.reference import running_scores

def never(*given):
    raise AssertionError("held-out rows were scored by the reference")

running_scores.RunningScores.__init__ = never
route.START_SECONDS = 1e-9  # any fit is worth loading the kernels
X = np.random.default_rng(0).normal(size=(250_000, 2))
for rows in (20_000, 250_000):
    y = X[:rows, 0] + np.random.default_rng(1).normal(size=rows)
    for estimator, target in ((GlassBoxClassifier, y > 0), (GlassBoxRegressor, y)):
        model = estimator(n_estimators=10, n_bags=2, interactions=0, device="cpu")
        print(model.fit(X[:rows], target).route_.engine)
"""


@needs_numba
def test_where_kernels_train_they_score_the_held_out_rows_too():
    assert printed(JUDGED).split() == ["sorted", "sorted", "coded", "coded"]


@needs_numba
def test_until_kernels_are_compiled_simpler_engines_train_unless_memory_is_limited(monkeypatch):
    asked_for: list[str] = []
    monkeypatch.setattr(route.KERNELS, "load", lambda *stages, waits=True: waits)
    monkeypatch.setattr(route.KERNELS, "have_compiled", lambda *stages: asked_for.extend(stages))
    monkeypatch.setattr(route, "are_compiled", lambda *stages: False)
    task = Task(np.zeros((10_000, 30)), 10_000, n_rounds=1000)
    chosen = route.choose(task)
    assert chosen.route.engine == "sorted"
    assert chosen.until_compiled == (route.REFERENCE, route.SCANNED)
    assert asked_for == ["scanned", "loss.exponential_loss"]
    assert "until its kernels are compiled, slower engines train" in str(chosen.route)
    limited = route.choose(task, Resources(max_memory=10**9))
    assert (limited.route.engine, limited.until_compiled) == ("sorted", ())
    intervals = Task(task.X, 10_000, Objective.of("discrete", learner="interval"), n_rounds=1000)
    assert route.choose(intervals).until_compiled == (route.REFERENCE,)


def test_an_announcement_goes_to_a_terminal_or_to_the_log(monkeypatch, capsys, caplog):
    caplog.set_level(logging.WARNING)  # a cluster of other tests may silence pytest's handler
    announcements.announce("training")
    announcements.announce_anywhere("compiling")
    assert capsys.readouterr().err == ""
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("WARNING", "gpustump: compiling")  # Python's own handler shows this, and no INFO
    ]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    announcements.announce("training")
    announcements.announce_anywhere("compiling")
    assert capsys.readouterr().err == "gpustump: training\ngpustump: compiling\n"
    monkeypatch.setattr(sys, "stderr", None)
    announcements.announce_anywhere("compiling")
    monkeypatch.setattr(announcements, "listeners", [])  # nobody listens
    caplog.clear()
    announcements.announce("training")
    announcements.announce_anywhere("compiling")
    assert (capsys.readouterr().err, caplog.records) == ("", [])
