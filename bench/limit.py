"""`python -m bench limit`: what part of the memory's own speed each backend reaches.

Before every turn the memory is measured: how fast it copies, how fast it gathers in random order.
Two yardsticks come from that: a round that moved one byte an element and 16 a sample, as fast as a
copy, and a round that gathered once an element, as a scan in sorted order does. Neither is a proof:
a scan over histograms may beat the second, one that skips elements or packs codes even the first.
"""

from __future__ import annotations

import argparse
import functools

from bench.contenders import BACKENDS
from bench.data import synthetic
from bench.options import add_shape, add_turns, whole
from bench.plan import Entry, Plan, chosen
from bench.speed import COPY_BYTES, Probe, gpu_probe, host_probe

ROUNDS = (2, 42)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen on the command line."""
    add_shape(parser, samples=1_000_000, features=20)
    parser.add_argument(
        "--copy-bytes",
        type=whole(1 << 16),
        default=COPY_BYTES,
        metavar="N",
        help="size of the buffer that is copied (default: %(default)s)",
    )
    add_turns(parser, BACKENDS, rounds=ROUNDS)


def plans(options: argparse.Namespace) -> list[Plan]:
    """One section."""
    data = functools.partial(synthetic, options.samples, options.features)
    entries = [
        Entry(contender, data, options.rounds, options.threads)
        for contender in chosen(BACKENDS, options.only)
    ]
    return [Plan("limit", tuple(entries))]


def probes(options: argparse.Namespace) -> list[Probe]:
    """The host's memory, and the GPU's if there is one."""
    host = host_probe(options.samples, options.threads, options.copy_bytes)
    found = [host, gpu_probe(options.samples, options.copy_bytes)]
    ready = [probe for probe in found if probe is not None]
    for probe in ready:
        probe.warm_up()
    return ready
