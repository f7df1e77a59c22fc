"""Models stay what they were: digests and files recorded with version 0.1.0."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import cuda_on_cpu
import pytest
from golden_tables import WEAK_LEARNERS, GoldenTable, digest_of, golden_tables

from gpustump import StumpEnsemble

GOLDEN = Path(__file__).resolve().parent / "golden"
DIGESTS = json.loads((GOLDEN / "digests.json").read_text())
TABLES = list(golden_tables())

FILES = {
    "five_classes.json": "7bf733d2c4d785d4d20572adce941c9231e83021d3436adfc290deec16299b96",
    "intervals.json": "74983148c6d425fff30bdb1d36d1694f23ccdfbd731f59369c809ba7a2b59f78",
    "two_classes.json": "3d0897ac1f3ab4a092341d8e822674235ed135fcad8acab084de81c935d9d13b",
}
"""Model files that version 0.1.0 wrote, and the digests that it gave them."""


def recorded() -> list[tuple[str, str, GoldenTable]]:
    """Which engine trains which weak learner on which table.

    Every engine of the host trains on all of them; the CUDA kernels, run on the CPU, on a third,
    and "auto", which chooses among the others, on a quarter.
    """
    engines = {"reference": TABLES, "sorted": TABLES, "coded": TABLES, "auto": TABLES[::4]}
    on_host = [
        (engine, weak_learner, table)
        for engine, tables in engines.items()
        for weak_learner in WEAK_LEARNERS
        for table in tables
    ]
    return on_host + [("cuda", "stump", table) for table in TABLES[::3]]


@pytest.mark.parametrize(
    ("kernels", "weak_learner", "table"),
    recorded(),
    ids=lambda value: value.name if isinstance(value, GoldenTable) else value,
)
def test_every_engine_trains_the_recorded_model(
    table: GoldenTable, kernels: str, weak_learner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernels in ("sorted", "coded"):
        pytest.importorskip("numba")
    with contextlib.ExitStack() as stack:
        if kernels == "cuda":
            if reason := cuda_on_cpu.unusable():
                pytest.skip(reason)
            device = stack.enter_context(cuda_on_cpu.as_cuda(monkeypatch, cuda_on_cpu.OnCpu()))
        monkeypatch.setenv("GPUSTUMP_KERNELS", kernels)
        assert digest_of(table, weak_learner) == DIGESTS[f"{weak_learner}: {table.name}"]
        assert kernels != "cuda" or device.launched


def test_every_recorded_digest_belongs_to_a_table() -> None:
    assert set(DIGESTS) == {f"{w}: {table.name}" for table in TABLES for w in WEAK_LEARNERS}


@pytest.mark.parametrize("name", FILES)
def test_files_of_the_first_version_load_with_their_digest(name: str, tmp_path: Path) -> None:
    model = StumpEnsemble.load(GOLDEN / name)
    assert model.digest() == FILES[name]
    model.save(tmp_path / name)
    assert (tmp_path / name).read_bytes() == (GOLDEN / name).read_bytes()
