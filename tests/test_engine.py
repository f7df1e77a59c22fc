"""Who trains: chosen by what the arrays are and by what is worth its start, and without a trace."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gpustump import arrays, boost
from gpustump.data.parameters import check_bytes
from gpustump.engines import announcements as notices
from gpustump.engines import route as engine
from gpustump.engines.reference import table as columns

ROOT = Path(__file__).resolve().parent.parent
HAS_NUMBA = importlib.util.find_spec("numba") is not None
needs_numba = pytest.mark.skipif(not HAS_NUMBA, reason="numba is not installed")


def table(n_samples: int = 50, n_features: int = 3) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n_samples, n_features)).astype(np.float32)


def kind_of(X: object, **how: object) -> str:
    return type(engine.prepare(X, **how)).__name__


@needs_numba
def test_small_tables_are_scanned_directly_and_others_through_codes():
    assert kind_of(table()) == "DirectTable"
    assert kind_of(table(engine.DIRECT_SAMPLES + 1, 200)) == "CodedTable"
    assert kind_of(table(engine.DIRECT_ELEMENTS, 1)) == "DirectTable"


KINDS = {
    "reference": "Columns",
    "direct": "DirectTable",
    "coded": "CodedTable",
    "cuda": "CudaTable",
}


def test_every_backend_under_test_goes_to_the_kernels_it_is_named_for(backend):
    X = backend.asarray(table())
    with arrays.computing_on(X):
        assert kind_of(X) == KINDS[backend.kernels]


@needs_numba
def test_tensors_on_the_cpu_go_to_the_kernels_and_other_arrays_to_the_reference():
    torch = pytest.importorskip("torch")
    strict = pytest.importorskip("array_api_strict")
    assert kind_of(torch.asarray(table())) == "DirectTable"
    assert kind_of(strict.asarray(table())) == "Columns"


@needs_numba
def test_torch_and_numpy_train_the_same_model(monkeypatch):
    torch = pytest.importorskip("torch")
    X = table(300)
    y = np.where(X[:, 0] + X[:, 1] > 0.3, 1, -1)
    digests = set()
    for kernels in ("reference", "direct", "coded"):
        monkeypatch.setenv("GPUSTUMP_KERNELS", kernels)
        for given in ((X, y), (torch.asarray(X), torch.asarray(y))):
            run = boost(*given, n_rounds=8)
            list(run)
            digests.add(run.model.digest())
    assert len(digests) == 1


def test_without_numba_the_reference_trains(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "numba" else found(name, *a)
    )
    assert kind_of(table()) == "Columns"


@needs_numba
def test_a_numba_that_does_not_load_is_reported_once_and_done_without(monkeypatch):
    from gpustump.engines.cpu import compiling as jit

    def broken(*stages: str) -> None:
        raise ImportError("libLLVM is missing")

    monkeypatch.setattr(jit, "load", broken)
    monkeypatch.setattr(engine, "_is_broken", False)
    with pytest.warns(UserWarning, match="libLLVM is missing"):
        assert kind_of(table()) == "Columns"
    assert kind_of(table()) == "Columns"


def test_an_unknown_choice_of_kernels_is_refused(monkeypatch):
    monkeypatch.setenv("GPUSTUMP_KERNELS", "fastest")
    with pytest.raises(ValueError, match="GPUSTUMP_KERNELS must be one of auto, reference"):
        engine.prepare(table())


@needs_numba
def test_kernels_are_loaded_once_the_reference_has_worked_long_enough(monkeypatch):
    monkeypatch.setattr(engine, "_waited", 0.0)
    monkeypatch.setattr(engine, "_is_loaded", lambda: False)
    kinds = [kind_of(table(), n_rounds=200) for _ in range(10)]
    assert kinds[0] == "Columns"
    assert kinds[-1] == "DirectTable"
    monkeypatch.setattr(engine, "_waited", 0.0)
    assert kind_of(table(2000, 50), n_rounds=1000) == "DirectTable"  # long enough by itself
    monkeypatch.setattr(engine, "_waited", 0.0)
    assert kind_of(table()) == "DirectTable"  # nobody knows how long


SMALL_PROGRAM = """
import sys, numpy as np
from gpustump import AdaBoostClassifier
X = np.random.default_rng(0).normal(size=(100, 3))
model = AdaBoostClassifier(n_estimators=20, device="cpu").fit(X, X[:, 0] > 0)
model.predict(X)
print(*sorted({"numba", "torch", "jax", "cupy", "matplotlib"} & set(sys.modules)))
"""


def test_a_small_job_imports_no_compiler():
    environment = {k: v for k, v in os.environ.items() if k != "GPUSTUMP_KERNELS"}
    done = subprocess.run(
        [sys.executable, "-c", SMALL_PROGRAM],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("given", "found"),
    [(1000, 1000), ("2GB", 2 * 10**9), ("1.5 GiB", 3 * 2**29), (" 10 kb ", 10_000), ("7", 7)],
)
def test_sizes_may_be_numbers_or_text(given, found):
    assert check_bytes(given, "max_memory") == found


@pytest.mark.parametrize("bad", ["", "GB", "2 parsecs", "-1GB", "nanGB", "1e999", 0, -5])
def test_other_sizes_are_refused(bad):
    with pytest.raises(ValueError, match="max_memory must be"):
        check_bytes(bad, "max_memory")


@pytest.mark.parametrize("kernels", ["reference", "direct", "coded"])
def test_too_little_memory_is_refused_with_what_is_needed(monkeypatch, kernels):
    if kernels != "reference" and not HAS_NUMBA:
        pytest.skip("numba is not installed")
    monkeypatch.setenv("GPUSTUMP_KERNELS", kernels)
    X, y = table(1000), np.resize([1, -1], 1000)
    with pytest.raises(ValueError, match="takes at least") as refusal:
        boost(X, y, max_memory="10 kB")
    needed = int(str(refusal.value).partition("at least ")[2].split()[0])
    expected = boost(X, y, n_rounds=5)
    given = boost(X, y, n_rounds=5, max_memory=needed)
    assert list(given) == list(expected)


@pytest.mark.parametrize("bad", [0, -2, 1.5, "all"])
def test_bad_numbers_of_threads_are_refused(bad):
    with pytest.raises((ValueError, TypeError), match="n_jobs must be"):
        boost(table(), np.resize([1, -1], 50), n_jobs=bad)


@needs_numba
def test_a_limit_that_only_the_reference_keeps_is_kept_by_the_reference():
    assert kind_of(table(1000)) == "DirectTable"
    assert kind_of(table(1000), max_memory=200_000) == "Columns"


def test_a_generous_limit_does_not_make_the_reference_take_more(monkeypatch):
    monkeypatch.setenv("GPUSTUMP_KERNELS", "reference")
    assert engine.prepare(table(), max_memory="16 GB").block_bytes == columns.HOST_BLOCK_BYTES


def test_the_reference_takes_what_memory_is_left_for_its_blocks(monkeypatch):
    monkeypatch.setenv("GPUSTUMP_KERNELS", "reference")
    made = engine.prepare(table(1000), max_memory=1000 * (3 * 5 + 80 + 100))
    assert isinstance(made, columns.Columns)
    assert made.block_bytes == 100_000


@needs_numba
@pytest.mark.parametrize("can_be_kept", [True, False])
def test_compiling_is_announced_once(monkeypatch, can_be_kept):
    from gpustump.engines.cpu import compiling as jit

    if not can_be_kept:
        plain = jit._compiled

        def refusing(function, signatures, *, cache):
            if cache:
                raise RuntimeError("cannot cache function: no locator available")
            return plain(function, signatures, cache=False)

        monkeypatch.setattr(jit, "_compiled", refusing)
    monkeypatch.setattr(jit, "_has_compiled", False)
    heard: list[str] = []
    monkeypatch.setattr(notices, "listeners", [heard.append])

    def add(x, y):  # type: ignore[no-untyped-def]
        return x + y

    compiled = [jit.kernel("int64(int64, int64)")(add) for _ in range(2)]
    assert compiled[0](2, 3) == 5
    assert len(heard) == (0 if can_be_kept and not jit._has_compiled else 1)
    with pytest.raises(TypeError):
        compiled[0]("a", "b")


def test_an_announcement_goes_to_a_terminal_only(monkeypatch, capsys):
    notices.on_terminal("compiling")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    notices.on_terminal("compiling")
    assert capsys.readouterr().err == "gpustump: compiling\n"
    monkeypatch.setattr(sys, "stderr", None)
    notices.on_terminal("compiling")


@needs_numba
@pytest.mark.slow
def test_the_first_run_says_what_compiling_took_and_the_next_has_nothing_to_say(tmp_path):
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
        "GPUSTUMP_KERNELS": "direct",
    }
    program = "import sys; from gpustump.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "train", "--device", "cpu"]
    said = []
    for _ in range(2):
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True
        )
        said.append(done.stdout)
    assert "s of it to compile the kernels, once" in said[0]
    assert "compile" not in said[1]
    digests = {line.split()[1] for text in said for line in text.splitlines() if "digest" in line}
    assert len(digests) == 1
