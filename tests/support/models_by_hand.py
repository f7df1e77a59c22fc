"""Models of the awkward tables, and their scores worked out by hand."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from awkward_tables import Data, made
from backends import NUMPY, Backend

from gpustump import Interval, Member, RegionMember, Stump, StumpEnsemble, boost

N_ROUNDS = 12


def trained(
    backend: Backend, given: Data, n_rounds: int, block_bytes: int | None, **how: Any
) -> StumpEnsemble:
    weights = given.sample_weight
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUSTUMP_KERNELS", backend.kernels)
        records = list(
            boost(
                backend.asarray(given.X),
                backend.asarray(given.y),
                None if weights is None else backend.asarray(weights),
                learning_rate=given.learning_rate,
                n_rounds=n_rounds,
                block_bytes=block_bytes,
                **how,
            )
        )
    member = Member(tuple(r.stump for r in records), tuple(r.vote for r in records))
    return StumpEnsemble((member,), given.X.shape[1])


@functools.cache
def reference(name: str, weak_learner: str = "stump") -> StumpEnsemble:
    """The reference's model of a data set, on NumPy."""
    return trained(NUMPY, made(name), N_ROUNDS, None, weak_learner=weak_learner)


def skip_if_lacking(backend: Backend, given: Data) -> None:
    lacking = {given.X.dtype.name} & backend.lacks
    if lacking:
        pytest.skip(f"{backend.name} has no {', '.join(lacking)}")


def skip_if_costly(backend: Backend, number: int) -> None:
    """JAX compiles its operations anew for nearly every table: of such a row it takes a fifth."""
    if backend.name.startswith("jax") and number % 5:
        pytest.skip(f"{backend.name} takes every fifth of these cases")


def bits(values: np.ndarray) -> list[int]:
    assert values.dtype == np.float64
    return values.view(np.int64).tolist()


def predicted_by_hand(hypothesis: Stump | Interval, value: float) -> int:
    if math.isnan(value):
        return hypothesis.missing
    low = getattr(hypothesis, "low", None)
    high = hypothesis.threshold if isinstance(hypothesis, Stump) else hypothesis.high
    inside = value <= high and (low is None or value > low)
    return hypothesis.polarity if inside else -hypothesis.polarity


def scores_by_hand(model: StumpEnsemble, X: np.ndarray) -> np.ndarray:
    """F(x) of each row, its votes added one by one in plain Python."""
    member = model.members[0]
    rows = [
        math.fsum(
            vote * predicted_by_hand(stump, float(row[stump.feature]))
            for stump, vote in zip(member.stumps, member.votes, strict=True)
        )
        for row in X.tolist()
    ]
    return np.asarray(rows)


def exact_scores(one: Member | RegionMember, X: np.ndarray) -> np.ndarray:
    """Each score as a sum of rational numbers, rounded once at the end: (n_samples, n_outputs)."""
    found = []
    for row in X.tolist():
        sums = [Fraction(start) for start in one.constant.tolist()]
        for hypothesis, votes in zip(one.hypotheses, one.region_votes.tolist(), strict=True):
            value = row[hypothesis.feature]
            region = 2 if math.isnan(value) else 0 if value <= hypothesis.threshold else 1
            sums = [s + Fraction(vote) for s, vote in zip(sums, votes[region], strict=True)]
        found.append([float(s) for s in sums])
    return np.asarray(found)
