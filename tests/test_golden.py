"""Models stay what they were: digests recorded with version 0.1.0."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import cuda_on_cpu
import pytest
from golden_tables import WEAK_LEARNERS, GoldenTable, digest_of, golden_tables

DIGESTS = json.loads((Path(__file__).resolve().parent / "golden" / "digests.json").read_text())
TABLES = list(golden_tables())


def recorded() -> list[tuple[str, str, GoldenTable]]:
    """Which engine trains which weak learner on which table.

    The reference trains on all of them, every other engine on a third: the conformance suite
    proves that it has the reference's rounds. "auto" chooses among the engines of the host.
    """
    thirds = {"sorted": TABLES[::3], "coded": TABLES[1::3], "auto": TABLES[2::3]}
    on_host = [
        (engine, weak_learner, table)
        for engine, tables in {"reference": TABLES, **thirds}.items()
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
