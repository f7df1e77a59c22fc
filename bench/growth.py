"""`python -m bench growth`: how the cost of a round, and of preparing, grows with the problem.

One thing grows at a time, the rest is held. On a perfect machine the exponent in samples and in
features is 1, in rounds and in distinct values 0, in threads -1.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable

from bench.contenders import BACKENDS, PEERS
from bench.data import DataSet, synthetic
from bench.options import UsageError, add_axis, add_turns
from bench.plan import Entry, Plan, chosen
from bench.summary import AXES

ROUNDS = (5, 25)
CONTENDERS = (*BACKENDS, *PEERS)
DEFAULT = ["gpustump numba", "gpustump numpy"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen on the command line."""
    add_axis(parser, "--samples", [25_000, 100_000, 400_000, 1_600_000], least=16)
    add_axis(parser, "--features", [10, 20, 40, 80, 160], least=3)
    add_axis(parser, "--round-counts", [25, 50, 100], least=3, what="long fits of that axis")
    add_axis(parser, "--distinct", [2, 16, 256, 4096], least=2, what="and all of them distinct")
    add_axis(parser, "--thread-counts", [], least=1, what="default: 1, 2, 4, ... and all cores")
    parser.add_argument(
        "--axes", nargs="+", choices=list(AXES), default=list(AXES), help="default: all"
    )
    add_turns(parser, CONTENDERS, rounds=ROUNDS, only=DEFAULT)


def plans(options: argparse.Namespace) -> list[Plan]:
    """A section for each axis; samples are held at the middle of theirs, features at the least."""
    middle, least = options.samples[(len(options.samples) - 1) // 2], options.features[0]
    short = options.rounds[0]
    if min(options.round_counts) <= short:
        least_count = min(options.round_counts)
        raise UsageError(
            f"--round-counts {least_count}: more than the short fit's {short} are needed"
        )
    threads = options.thread_counts or _doubled_up_to(options.threads)
    held = (_drawn(middle, least), options.rounds, options.threads)
    points = {
        "samples": [(_drawn(m, least), *held[1:]) for m in options.samples],
        "features": [(_drawn(middle, d), *held[1:]) for d in options.features],
        "rounds": [(held[0], (short, long), held[2]) for long in options.round_counts],
        "distinct": [
            (_drawn(middle, least, distinct), *held[1:]) for distinct in [*options.distinct, None]
        ],
        "threads": [(*held[:2], count) for count in threads],
    }
    return [
        Plan(
            axis,
            tuple(
                Entry(contender, *point)
                for contender in chosen(CONTENDERS, options.only)
                for point in points[axis]
            ),
        )
        for axis in options.axes
    ]


def _drawn(n_samples: int, n_features: int, distinct: int | None = None) -> Callable[[], DataSet]:
    return functools.partial(synthetic, n_samples, n_features, distinct)


def _doubled_up_to(most: int) -> list[int]:
    """1, 2, 4, ... and the most."""
    return sorted({*(1 << k for k in range(most.bit_length())), most})
