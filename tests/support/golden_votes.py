"""Tables whose models with votes of regions are recorded in `tests/golden/votes.json`.

They are made like those of `golden_tables`, from numbers that Python promises to keep. All have the
same shape, because JAX compiles anew for every shape. `python tests/support/golden_votes.py` prints
the digests of the present version as JSON. Record them anew only for a change that moves models on
purpose.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from backends import NUMPY, Backend
from golden_tables import VALUES, _labels, _uniform
from rounds import quantities, quantity_of
from vote_runs import Samples, boosting

from gpustump.boosting.votes.settings import VoteSettings

KINDS = {
    "real": ("real", (1,)),
    "newton": ("newton", (1,)),
    "shared discrete": ("discrete", (3, 11)),
    "shared real": ("real", (3, 11)),
    "shared newton": ("newton", (3, 11)),
    "squared": ("newton", (1,)),
    "poisson": ("newton", (1,)),
    "gamma": ("newton", (1,)),
}
"""Kinds of votes, and for how many outputs."""

SHAPE = (66, 4)
N_ROUNDS = 6


class VoteTable(NamedTuple):
    """A table and the votes that are trained on it."""

    name: str
    settings: VoteSettings
    samples: Samples


def vote_tables(kind: str) -> list[VoteTable]:
    """34 tables: two for every kind of values in every dtype."""
    return list(_tables(kind))


def _tables(kind: str) -> Iterator[VoteTable]:
    votes, outputs = KINDS[kind]
    quantity = quantity_of(kind)
    rates = itertools.cycle((1.0, 0.3, 1.0, 2.5 if quantity is None else 1.0, 0.5))
    lambdas = itertools.cycle((0.0, 1.0, 0.25)) if votes == "newton" else itertools.repeat(0.0)
    weights = itertools.cycle(("equal", "small", "far apart"))
    values = [(name, dtype) for name, (_, dtypes) in VALUES.items() for dtype in dtypes]
    for number, (name, dtype) in enumerate(values * 2):
        n_outputs = outputs[(number // len(values)) % len(outputs)]
        settings = VoteSettings(votes, next(rates), next(lambdas), quantity=quantity)
        yield _table(kind, settings, (name, dtype, n_outputs, next(weights), number))


def _table(kind: str, settings: VoteSettings, how: tuple[str, str, int, str, int]) -> VoteTable:
    values, dtype, n_outputs, weights, number = how
    name = f"{kind}: {number} {values} {dtype} {n_outputs} outputs {weights}"
    draw = random.Random(name)
    with np.errstate(all="ignore"):
        X = VALUES[values][0](draw, *SHAPE).astype(dtype)
    y = _labels(X, max(n_outputs, 2), draw)
    targets = 2.0 * y - 1.0 if n_outputs == 1 else y
    if settings.quantity is not None:
        targets = quantities(targets / 2 + _uniform(draw, SHAPE[0]) - 0.5, settings.quantity)
    return VoteTable(name, settings, Samples(X, targets, _weights(weights, draw), n_outputs))


def _weights(kind: str, draw: random.Random) -> np.ndarray:
    own = _uniform(draw, SHAPE[0])
    if kind == "equal":
        return np.ones(SHAPE[0])
    if kind == "small":
        return 1.0 + np.floor(own * 4.0)
    return np.ldexp(1.0 + own, (_uniform(draw, SHAPE[0]) * 200 - 100).astype(int))


def digest_of(table: VoteTable, backend: Backend = NUMPY, block_bytes: int | None = None) -> str:
    """The digest of the model that boosting makes, by the engine that the route takes."""
    run = boosting(
        table.settings, table.samples, n_rounds=N_ROUNDS, backend=backend,
        block_bytes=block_bytes, by_route=True,
    )  # fmt: skip
    for _ in run:
        pass
    return run.model.digest()


if __name__ == "__main__":
    found = {table.name: digest_of(table) for kind in KINDS for table in vote_tables(kind)}
    print(json.dumps(found, indent=1))
