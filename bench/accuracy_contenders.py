"""Who takes part in `python -m bench accuracy`, and how the stumps in a fitted model are counted.

Every library is used as its users use it: its defaults, but for trees of one split, the number of
rounds and the threads. The learning rate decides much after 200 rounds, so a library whose own is
not 0.3 takes part with 0.3, too. Both form a group; the tables show the better one beside ours.

A library whose stumps vote for all K classes at once makes one a round where others make K. So it
takes part with K times the rounds, too ("x K"): as many stumps as the others have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bench.contenders import HESSBOOST, Contender


@dataclass(frozen=True)
class Candidate:
    """A contender, and the tables that it takes part in."""

    contender: Contender
    group: str
    """Those of a group differ in the learning rate only."""
    for_two: bool = True
    """Whether it takes part where there are two classes."""
    for_more: bool = True
    """Whether it takes part where there are more."""
    rounds_per_class: bool = False
    """Whether it makes the given rounds for each class, where there are more than two."""
    takes_missing: bool = True
    """If not, NaN becomes the median of the feature in the training samples."""

    @property
    def name(self) -> str:
        """What the tables call it."""
        return self.contender.name

    def takes_part(self, n_classes: int) -> bool:
        """Whether it takes part in tables with this number of classes."""
        return self.for_two if n_classes == 2 else self.for_more

    def rounds(self, rounds: int, n_classes: int) -> int:
        """How many rounds it makes, where the command says `rounds`."""
        return rounds * n_classes if self.rounds_per_class and n_classes > 2 else rounds

    def make(self, rounds: int, threads: int) -> Any:
        """A new estimator."""
        estimator = self.contender.make(rounds, threads)
        if self.takes_missing:
            return estimator
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline

        median = SimpleImputer(strategy="median", keep_empty_features=True)
        return make_pipeline(median, estimator)


def _ours(name: str, estimator: str, parameters: Mapping[str, Any], **others: Any) -> Candidate:
    contender = Contender(
        f"gpustump {name}",
        ("gpustump",),
        estimator,
        {"device": "cpu", **parameters},
        threads="n_jobs",
    )
    return Candidate(contender, contender.name, **others)


def _with_rate(candidate: Candidate, rate: float) -> Candidate:
    """The same with another learning rate, in the same group."""
    old = candidate.contender
    parameters = {**old.parameters, "learning_rate": rate}
    named = replace(old, name=f"{old.name}, rate {rate}", parameters=parameters)
    return replace(candidate, contender=named)


def _with_more_rounds(candidate: Candidate) -> Candidate:
    """The same with K times the rounds: a group of its own, for more than two classes."""
    name = f"{candidate.name} x K"
    named = replace(candidate.contender, name=name)
    return replace(candidate, contender=named, group=name, for_two=False, rounds_per_class=True)


_REAL: Mapping[str, Any] = {"votes": "real"}
_SHARED: Mapping[str, Any] = {"multi_class": "shared"}
_MORE: Any = {"for_two": False}

OURS = (
    _ours("discrete", "AdaBoostClassifier", {}),
    _ours("real", "AdaBoostClassifier", _REAL),
    _ours(
        "discrete shared",
        "AdaBoostClassifier",
        {"votes": "discrete", **_SHARED},
        rounds_per_class=True,
        **_MORE,
    ),
    _ours(
        "real shared", "AdaBoostClassifier", {**_REAL, **_SHARED}, rounds_per_class=True, **_MORE
    ),
    _ours("LogitBoost", "LogitBoostClassifier", {}, rounds_per_class=True),
    _ours(
        "LogitBoost one-vs-rest", "LogitBoostClassifier", {"multi_class": "one_vs_rest"}, **_MORE
    ),
)
"""Ours. LogitBoost shares its stumps among the classes by default."""


def _peer(
    name: str,
    module: str,
    estimator: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    takes_missing: bool = True,
    **options: Any,
) -> Candidate:
    contender = Contender(name, (module,), estimator, parameters or {}, **options)
    return Candidate(contender, name, takes_missing=takes_missing)


_SKLEARN = _peer(
    "scikit-learn AdaBoost", "sklearn.ensemble", "AdaBoostClassifier", takes_missing=False
)
_XGBOOST = _peer("XGBoost", "xgboost", "XGBClassifier", {"max_depth": 1}, threads="n_jobs")
_LIGHTGBM = _peer(
    "LightGBM",
    "lightgbm",
    "LGBMClassifier",
    {"num_leaves": 2, "verbosity": -1},
    threads="n_jobs",
)
_CATBOOST = _peer(
    "CatBoost",
    "catboost",
    "CatBoostClassifier",
    {"depth": 1, "verbose": False, "allow_writing_files": False},
    rounds="iterations",
    threads="thread_count",
)
_HESSBOOST = Candidate(HESSBOOST, HESSBOOST.name)
_SHARING = tuple(_with_more_rounds(peer) for peer in (_SKLEARN, _CATBOOST))

PEERS = (
    *(_SKLEARN, _with_rate(_SKLEARN, 0.3)),
    _XGBOOST,
    *(_LIGHTGBM, _with_rate(_LIGHTGBM, 0.3)),
    *(_CATBOOST, _with_rate(_CATBOOST, 0.3)),
    _HESSBOOST,
    *(each for peer in _SHARING for each in (peer, _with_rate(peer, 0.3))),
)
"""The others. The learning rates of XGBoost and hessboost are 0.3, scikit-learn's is 1, LightGBM's
0.1, and CatBoost finds its own."""

CANDIDATES = (*OURS, *PEERS)


def count_stumps(model: Any) -> int:
    """How many stumps a fitted model really holds: trees with a split, whatever they vote for.

    XGBoost, LightGBM and hessboost grow one tree for each class in a round; LightGBM ends early
    where no split reduces the loss. A constant of ours is not counted, either.
    """
    model = model[-1] if hasattr(model, "named_steps") else model
    for attribute, count in _COUNTS.items():
        if hasattr(model, attribute):
            return int(count(model))
    raise TypeError(f"it is not known how to count the stumps of {type(model).__name__}")


def _count_ours(model: Any) -> int:
    return sum(not term.is_constant for term in model.model_.additive.terms)


def _count_xgboost(model: Any) -> int:
    """Of trees of one split: the number of splits, as the booster counts them per feature."""
    return int(sum(model.get_booster().get_score(importance_type="weight").values()))


_COUNTS: Mapping[str, Callable[[Any], int]] = {
    "model_": _count_ours,
    "get_booster": _count_xgboost,  # and hessboost
    "booster_": lambda model: int(np.sum(model.booster_.feature_importance("split"))),
    "get_tree_leaf_counts": lambda model: int(np.sum(model.get_tree_leaf_counts() > 1)),
    "estimators_": lambda model: sum(tree.get_n_leaves() > 1 for tree in model.estimators_),
}
"""How the stumps of each library are counted, by an attribute of its fitted models."""
