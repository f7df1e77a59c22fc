"""Models with votes of regions have the recorded digests in every library, in blocks of any size.

What engines do inside is compared in tests/engines/test_conformance.py; here are whole models.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from backends import BACKENDS, NUMPY, Backend
from golden_votes import KINDS, N_ROUNDS, VoteTable, digest_of, vote_tables
from models_by_hand import skip_if_costly
from rounds import quantities, quantity_of
from vote_runs import Samples, boosting

from gpustump.boosting.votes.settings import VoteSettings
from gpustump.engines.contract import Task
from gpustump.engines.route import choose

RECORDED = json.loads((Path(__file__).resolve().parent / "golden" / "votes.json").read_text())

each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
def test_every_library_trains_the_recorded_models(kind: str, backend: Backend):
    tables = [t for t in tables_for(backend, kind) if t.samples.X.dtype.name not in backend.lacks]
    skip_unless_it_trains(backend, tables[0])
    for table in tables:
        assert digest_of(table, backend) == RECORDED[table.name], table.name


def tables_for(backend: Backend, kind: str) -> list[VoteTable]:
    """Of a library a sixth, so that the kinds of votes share all; half as many for JAX, always of
    the same shapes.

    JAX compiles anew for nearly every table. Blocks of every size give the models of all of them
    below.
    """
    tables = vote_tables(kind)
    if backend.name.startswith("numpy"):
        return tables
    half = len(tables) // 2
    if backend.name.startswith("jax"):
        return [table for k, table in enumerate(tables) if (k + k // half) % 12 == 0]
    return tables[list(KINDS).index(kind) % 6 :: 6]


def skip_unless_it_trains(backend: Backend, table: VoteTable) -> None:
    """Kernels that make discrete votes only would leave all of this to the reference."""
    samples = table.samples
    votes = table.settings.votes(samples.weights, samples.n_outputs)
    task = Task(backend.asarray(samples.X), len(samples.y), votes.objective("stump"), N_ROUNDS)
    route = choose(task).route
    if route.engine != backend.kernels:
        pytest.skip(f"{backend.kernels} does not train this: {'; '.join(route.passed_over)}")


@each_kind
def test_blocks_of_every_size_give_the_recorded_models(kind: str):
    for table, block_bytes in zip(
        vote_tables(kind), itertools.cycle((3000, 20_000, 3000, 20_000, 400))
    ):
        assert digest_of(table, NUMPY, block_bytes) == RECORDED[table.name], table.name


def test_a_decimal_context_or_error_state_of_the_caller_changes_nothing():
    import decimal

    for kind in KINDS:
        table = vote_tables(kind)[-3]
        with decimal.localcontext(prec=5, rounding=decimal.ROUND_UP, Emax=3):
            assert digest_of(table) == RECORDED[table.name], table.name
        with np.errstate(all="raise"):
            assert digest_of(table) == RECORDED[table.name], table.name


def test_every_recorded_digest_belongs_to_a_table_and_the_models_differ():
    tables = [table for kind in KINDS for table in vote_tables(kind)]
    assert set(RECORDED) == {table.name for table in tables}
    assert all(len(vote_tables(kind)) >= 30 for kind in KINDS)
    assert len(set(RECORDED.values())) == len(tables)
    lengths = [len(list(boosting(t.settings, t.samples, n_rounds=N_ROUNDS))) for t in tables[::5]]
    assert sum(length == N_ROUNDS for length in lengths) > 0.8 * len(lengths)


def test_all_libraries_are_among_those_that_train():
    assert {"numpy", "torch", "jax", "array-api-strict"} <= {backend.name for backend in BACKENDS}


@pytest.mark.slow
@each_kind
def test_many_samples_give_the_same_model_in_every_library(kind: str, backend: Backend):
    """Enough for libraries to use several threads, or sums in parts."""
    votes, (n_outputs, *_) = KINDS[kind]
    random = np.random.default_rng(0)
    X = random.normal(size=(40_000, 2)).astype(np.float32)
    X[random.random(X.shape) < 0.1] = np.nan
    place = np.argsort(np.argsort(np.nan_to_num(X[:, 0]) + random.normal(size=len(X))))
    y = place * max(n_outputs, 2) // len(X)
    settings = VoteSettings(votes, 0.5, quantity=quantity_of(kind))
    weights = 10.0 ** random.uniform(-6, 6, size=len(X))
    targets = 2.0 * y - 1.0 if n_outputs == 1 else y
    if settings.quantity is not None:
        targets = quantities(targets, settings.quantity)
    table = VoteTable(kind, settings, Samples(X, targets, weights, n_outputs))
    skip_if_costly(backend, list(KINDS).index(kind))
    skip_unless_it_trains(backend, table)
    assert digest_of(table, backend) == digest_of(table, NUMPY, 10**6)
