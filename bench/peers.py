"""`python -m bench peers`: gpustump beside the libraries that people come from.

All train on the same host arrays, with the same number of rounds and threads, through the API that
their users use. Each keeps its own defaults otherwise, its learning rate included: what a round
costs does not depend on that, what it is worth does. Only scikit-learn's AdaBoost minimises the
same loss; only gpustump, scikit-learn and XGBoost's exact method look at every threshold. They
predict host arrays too: gpustump on the CPU wherever it trained, XGBoost cuda on the GPU.
"""

from __future__ import annotations

import argparse

from bench.contenders import PEERS
from bench.options import add_data, add_turns
from bench.plan import Plan, plans_over_data

ROUNDS = (10, 100)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen on the command line."""
    add_data(parser, ["synthetic"], samples=200_000, features=30)
    add_turns(parser, PEERS, rounds=ROUNDS)


def plans(options: argparse.Namespace) -> list[Plan]:
    """A section for each data set."""
    return plans_over_data(options, PEERS, whole=True)
