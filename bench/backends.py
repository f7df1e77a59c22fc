"""`python -m bench backends`: the same training job on every array library that works here.

The data are in the library, and on its device, before the clock starts. All must train the same
model: the digests are compared, and the command fails if they differ.
"""

from __future__ import annotations

import argparse

from bench.contenders import BACKENDS
from bench.options import add_data, add_turns
from bench.plan import Plan, plans_over_data

ROUNDS = (2, 42)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen on the command line."""
    add_data(parser, ["synthetic"], samples=200_000, features=30)
    add_turns(parser, BACKENDS, rounds=ROUNDS)


def plans(options: argparse.Namespace) -> list[Plan]:
    """A section for each data set."""
    return plans_over_data(options, BACKENDS, whole=False)
