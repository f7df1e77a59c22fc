"""The best split by brute force: every feature, every cut and the constant, in plain Python.

A sample has two integers for each output. The defined scores are computed here with Python's own
floats and integers from the formulas of the contract, and the exact ones with fractions or decimals
of 60 digits; no code is shared with the package. Problems to try it on have few values, ties, and
integers close to a power of two.
"""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

Pair = tuple[int, int]
"""Sums of the first and of the second integers."""

Regions = Sequence[tuple[Pair, Pair, Pair]]
"""For each output the sums over the left, the right and the missing region."""

Score = Callable[[Regions], Any]

EXACT = decimal.Context(prec=60, Emax=10**6, Emin=-(10**6))


class Problem(NamedTuple):
    """Rows of feature values, and for each output a pair of integers for each sample."""

    rows: Sequence[Sequence[float]]
    outputs: Sequence[Sequence[Pair]]


class Candidate(NamedTuple):
    """A cut, and the sums over its regions; the constant has no position."""

    feature: int
    position: int | None
    regions: Regions


def agreement(regions: Regions) -> int:
    return sum(abs(left[0] - right[0]) + abs(missing[0]) for left, right, missing in regions)


def half_normaliser(regions: Regions) -> float:
    """Minus the sum of sqrt(P * N), in floats, in the order of the contract."""
    return _added(regions, lambda pair: math.sqrt(float(_p(pair)) * float(_n(pair))), -1.0)


def gain(l2: float) -> Score:
    """The sum of first**2 / (second + l2), in floats, in the order of the contract."""

    def of_region(pair: Pair) -> float:
        first, below = float(pair[0]), float(pair[1]) + l2
        return first * first / max(below, 1.0)

    return lambda regions: _added(regions, of_region, 1.0)


def exact_half_normaliser(regions: Regions) -> Decimal:
    with decimal.localcontext(EXACT):
        roots = [(Decimal(_p(pair)) * _n(pair)).sqrt() for own in regions for pair in own]
        return -sum(roots, Decimal(0))


def exact_gain(l2: float) -> Score:
    def of_region(pair: Pair) -> Fraction:
        return Fraction(0) if pair[1] == 0 else Fraction(pair[0] ** 2) / (pair[1] + Fraction(l2))

    return lambda regions: sum((of_region(pair) for own in regions for pair in own), Fraction(0))


def score_of(votes: str, l2: float = 0.0) -> Score:
    """The score of the contract for a kind of votes."""
    return {"discrete": agreement, "real": half_normaliser, "newton": gain(l2)}[votes]


def exact_score_of(votes: str, l2: float = 0.0) -> Score:
    """The same without rounding."""
    return {"discrete": agreement, "real": exact_half_normaliser, "newton": exact_gain(l2)}[votes]


class Order(NamedTuple):
    """Monotone constraints: what votes grow with, by a region's sums, and features' directions.

    A cut is allowed if its direction times the difference of right and left is not negative.
    """

    level: Callable[[Pair], Any]
    directions: Sequence[int]

    def allows(self, one: Candidate) -> bool:
        ((left, right, _),) = one.regions
        if right[1] == 0:  # nothing is on the right
            return True
        low, high = self.level(left), self.level(right)
        direction = self.directions[one.feature]
        return not ((direction > 0 and high < low) or (direction < 0 and high > low))


def real_level(problem: Problem) -> Callable[[Pair], float]:
    """(P + s) / (N + s) in floats, in the order of the contract."""
    (samples,) = problem.outputs
    s = float(sum(second for _, second in samples)) / float(2 * len(samples))
    return lambda pair: (float(_p(pair)) + s) / (float(_n(pair)) + s)


def newton_level(l2: float) -> Callable[[Pair], float]:
    """first / (second + l2) in floats, in the order of the contract."""
    return lambda pair: float(pair[0]) / (float(pair[1]) + l2)


def best(problem: Problem, score: Score, order: Order | None = None) -> tuple[Any, Candidate]:
    """The largest score and its first candidate, in the order in which ties are broken.

    With an order, of the candidates that it allows.
    """
    *splits, constant = candidates(problem)
    splits = [one for one in splits if order is None or order.allows(one)]
    level = score(constant.regions)
    found: tuple[Any, Candidate] | None = None
    for one in splits:
        own = score(one.regions)
        if _parts_missing_from_present(problem, one) and not own > level:
            continue
        if found is None or own > found[0]:
            found = own, one
    return (level, constant) if found is None or level > found[0] else found


def candidates(problem: Problem) -> Iterator[Candidate]:
    """By feature and threshold; the threshold above all values where some are missing; constant."""
    for feature in range(len(problem.rows[0])):
        column = [row[feature] for row in problem.rows]
        values = sorted({value for value in column if not math.isnan(value)})
        has_missing = any(map(math.isnan, column))
        for value in values[: len(values) if has_missing else -1]:
            region = [2 if math.isnan(own) else int(own > value) for own in column]
            yield Candidate(feature, region.count(0) - 1, _sums(problem, region))
    yield Candidate(0, None, _sums(problem, [0] * len(problem.rows)))


def _parts_missing_from_present(problem: Problem, one: Candidate) -> bool:
    assert one.position is not None
    present = sum(not math.isnan(row[one.feature]) for row in problem.rows)
    return one.position + 1 == present


def _sums(problem: Problem, region: Sequence[int]) -> Regions:
    found = []
    for samples in problem.outputs:
        sums = [[0, 0], [0, 0], [0, 0]]
        for own, (first, second) in zip(region, samples, strict=True):
            sums[own][0] += first
            sums[own][1] += second
        left, right, missing = ((first, second) for first, second in sums)
        found.append((left, right, missing))
    return found


def _added(regions: Regions, of_region: Callable[[Pair], float], sign: float) -> float:
    parts = [
        sign * ((of_region(left) + of_region(right)) + of_region(missing))
        for left, right, missing in regions
    ]
    return list(itertools.accumulate(parts))[-1]


def _p(pair: Pair) -> int:
    return (pair[1] + pair[0]) // 2


def _n(pair: Pair) -> int:
    return (pair[1] - pair[0]) // 2


VALUES = (0.0, 1.0, 2.0, 3.0, math.inf)


class Draw(NamedTuple):
    """What decides a problem: a seed, its size, and the size of its integers."""

    seed: int
    n_samples: int
    n_features: int
    bits: int


DRAWS = st.builds(
    Draw,
    st.integers(0, 10**9),
    st.integers(2, 14),
    st.integers(1, 5),
    st.sampled_from([1, 2, 6, 30, 52, 54, 57]),
)


def problem_of(draw: Draw, votes: str, n_outputs: int = 1) -> Problem:
    """Few values, columns that mirror each other, and integers close to a power of two."""
    random = np.random.default_rng(draw.seed)
    shape = draw.n_samples, draw.n_features
    base = random.choice(VALUES[: random.integers(1, 6)], size=shape)
    base[random.random(shape) < random.choice([0.0, 0.3])] = math.nan
    for feature in range(1, draw.n_features):
        other = base[:, random.integers(feature)]
        kind = random.choice(["own", "copy", "mirror", "swapped"])
        if kind == "copy":
            base[:, feature] = other
        elif kind == "mirror":
            base[:, feature] = -other
        elif kind == "swapped":  # nearly the same partition
            base[:, feature] = np.roll(other, 1)
    bits = min(draw.bits, 58 - n_outputs.bit_length())  # all outputs' sums stay below 2**62
    draw = draw._replace(bits=bits)
    outputs = [_pairs(draw, votes, random) for _ in range(n_outputs)]
    return Problem(base.tolist(), outputs)


def _pairs(draw: Draw, votes: str, random: np.random.Generator) -> list[tuple[int, int]]:
    """Integers of 2**bits and little more."""
    most = random.choice([1, 4])  # equal integers half of the time: ties
    sizes = [(1 << draw.bits) + int(extra) for extra in random.integers(0, most, draw.n_samples)]
    signs = random.choice([-1, 1], draw.n_samples).tolist()
    if votes != "newton":
        return [(sign * size, size) for sign, size in zip(signs, sizes, strict=True)]
    shares = random.integers(0, 4, draw.n_samples).tolist()
    return [
        (sign * size, max(1, size >> share))
        for sign, size, share in zip(signs, sizes, shares, strict=True)
    ]
