"""Problems for the oracle of scores: few values, ties, and integers close to a power of two."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from worth_oracle import Problem

from gpustump.engines.contract import Search

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


def problem_of(draw: Draw, search: Search) -> Problem:
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
    most_bits = 58 - search.n_outputs.bit_length()  # all outputs' sums stay below 2**62
    draw = draw._replace(bits=min(draw.bits, most_bits))
    outputs = [_pairs(draw, search.votes, random) for _ in range(search.n_outputs)]
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
