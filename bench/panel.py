"""The cases of `python -m bench panel`: who trains on what, how long.

They are fixed, so that runs on different days can be compared. Peers that are never the fastest are
left out where they would take most of the time: scikit-learn's AdaBoost and XGBoost's exact method
everywhere, CatBoost on the large table. Late rounds of classifiers are compared with hessboost
alone: on these tables its first hundred rounds take the least time, and what a round costs the
peers does not depend on how many came before. Cases on a GPU are compared with XGBoost alone, which
trains there from the same arrays, on the host and on the device. They are measured only if they are
named.
"""

from __future__ import annotations

import argparse
import functools
from typing import NamedTuple

from bench.contenders import FROM_CUPY, PEERS, SQUARED, VOTES, VOTES_ON_CUDA, chosen
from bench.data import FAMILIES, QUANTITIES, load
from bench.play import Plan
from bench.worker import Entry


class Case(NamedTuple):
    """What takes turns on each of some data sets."""

    data: tuple[str, ...]
    shape: tuple[int, int]
    """(n_samples, n_features), where the data can have any."""
    rounds: tuple[int, int]
    """Of the short and the long fit."""
    turns: int
    contenders: tuple[str, ...]


_LARGE, _SMALL = (1_000_000, 50), (200_000, 30)
_OURS = tuple(contender.name for contender in VOTES)
_FAST = (*_OURS, "XGBoost hist", "LightGBM", "hessboost")
_LARGEST, _ON_A_GPU = (10_000_000, 100), (2_000_000, 100)
_FROM_HOST = (*(contender.name for contender in VOTES_ON_CUDA), "XGBoost cuda")
_SQUARED, _AMOUNTS = tuple(contender.name for contender in SQUARED), tuple(QUANTITIES)
_CUDA = (*_FROM_HOST, *(contender.name for contender in FROM_CUPY))

CASES = {
    "large": Case(FAMILIES, _LARGE, (10, 100), 3, _FAST),
    "large-late": Case(FAMILIES, _LARGE, (100, 1000), 1, (*_OURS, "hessboost")),
    "small": Case(FAMILIES, _SMALL, (10, 100), 3, (*_FAST, "CatBoost")),
    "small-late": Case(FAMILIES, _SMALL, (100, 1000), 3, (*_OURS, "hessboost")),
    "tiny": Case(("breast_cancer",), _SMALL, (20, 200), 15, (*_FAST, "CatBoost")),
    "classes": Case(("ten_classes",), _SMALL, (10, 100), 3, _FAST[2:]),
    "squared-large": Case(_AMOUNTS, _LARGE, (10, 100), 3, _SQUARED),
    "squared-large-late": Case(_AMOUNTS, _LARGE, (100, 1000), 1, _SQUARED),
    "squared-small": Case(_AMOUNTS, _SMALL, (10, 100), 3, _SQUARED),
    "squared-small-late": Case(_AMOUNTS, _SMALL, (100, 1000), 3, _SQUARED),
    "cuda-large": Case(("synthetic",), _LARGEST, (10, 100), 3, _CUDA),
    "cuda": Case(("noise",), _ON_A_GPU, (10, 100), 3, _CUDA),
    "cuda-late": Case(("noise",), _ON_A_GPU, (100, 1000), 1, _CUDA),
}
"""Of `classes`, a round of LogitBoost is one stump for all ten; of the others, ten trees.
`squared` stands for regressions."""

ON_THE_CPU = [name for name in CASES if not name.startswith("cuda")]
"""The cases that are measured by default."""

_FEWEST = 500
"""Samples, of tables that were shrunk: enough that all ten classes have some."""

DATA = tuple(dict.fromkeys(name for case in CASES.values() for name in case.data))

WHO = chosen(
    (*PEERS, *SQUARED, *FROM_CUPY), {name for case in CASES.values() for name in case.contenders}
)
"""Who takes part in one case or another."""


def plans(options: argparse.Namespace) -> list[Plan]:
    """A plan for each data set of each case that was asked for, if anybody takes part."""
    planned = [
        _plan(name, data, options)
        for name in CASES
        for data in CASES[name].data
        if name in options.cases and data in options.data
    ]
    return [plan for plan in planned if plan.entries]


def _plan(name: str, data: str, options: argparse.Namespace) -> Plan:
    case = CASES[name]
    n_samples, n_features = case.shape
    made = functools.partial(load, data, max(n_samples // options.shrink, _FEWEST), n_features)
    entries = tuple(
        Entry(contender, made, case.rounds, options.threads)
        for contender in chosen(WHO, options.only)
        if contender.name in case.contenders
    )
    return Plan(f"{name} {data}", entries, min(case.turns, options.turns))
