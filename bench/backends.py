"""`python -m bench backends`: the same training job on every array library that works here.

The data are in the library, and on its device, before the clock starts. All must train the same
model: the digests are compared, and the command fails if they differ.
"""

from __future__ import annotations

import argparse
import functools

from bench.contenders import BACKENDS
from bench.data import load, require
from bench.options import add_data, add_turns, chosen
from bench.play import Entry, Plan

ROUNDS = (2, 12)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen on the command line."""
    add_data(parser, ["synthetic"], samples=200_000, features=30)
    add_turns(parser, BACKENDS, rounds=ROUNDS)


def plans(options: argparse.Namespace) -> list[Plan]:
    """A section for each data set."""
    found = []
    for name in options.data:
        require(name)
        data = functools.partial(load, name, options.samples, options.features)
        entries = [
            Entry(contender, data, options.rounds, options.threads)
            for contender in chosen(BACKENDS, options.only)
        ]
        found.append(Plan(name, tuple(entries)))
    return found
