"""Who takes part in `python -m bench glassbox`: glass boxes, with pairs of features and without.

Ours and interpret's take part with their own defaults, which learn pairs, and without pairs. The
others are boosters whose users choose the settings: of depth 1, and with the 31 leaves that they
have by default, which are no glass boxes any more. They stop early: after 50 rounds without a
better log-loss of 0.15 of the samples, interpret's share, or after 3000 rounds. Libraries that do
not hold samples out by themselves are handed a stratified share, drawn in the same way for all of
them. The learning rate and all else is left as each library sets it: 0.3 for XGBoost and hessboost,
0.1 for LightGBM and scikit-learn. On one fold of 38 tables, the mean log-loss of the first three
was lower at depth 1 with their own rate than with the other one.

Bags lower the log-loss of any of these models. So two of the peers also take part with as many bags
as ours: each is trained on its own draw, and their scores are averaged. Ours also takes part with
one bag, and with half of its default number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bench.accuracy_data import Table
from bench.contenders import Contender
from gpustump.data.parameters import FEW_BAGS

SHARE = 0.15
"""Of the training samples, held out for early stopping. It is interpret's default, too."""
PATIENCE = 50
MOST_ROUNDS = 3000
BAGS = FEW_BAGS

Watching = Callable[[Table], Mapping[str, Any]]
"""Makes the arguments of `fit` that name the samples to watch."""


class Stopped:
    """An estimator that stops early on a share of its samples, drawn with a seed.

    Labels are 0, 1, ..., n_classes - 1.
    """

    def __init__(self, estimator: Any, watching: Watching, seed: int) -> None:
        self.estimator = estimator
        self._watching = watching
        self._seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> Stopped:
        from sklearn.model_selection import train_test_split

        kept, watched = train_test_split(
            np.arange(len(y)), test_size=SHARE, stratify=y, random_state=self._seed
        )
        self.estimator.fit(X[kept], y[kept], **self._watching(Table(X[watched], y[watched])))
        return self

    def predict(self, X: np.ndarray) -> Any:
        return self.estimator.predict(X)

    def predict_proba(self, X: np.ndarray) -> Any:
        return self.estimator.predict_proba(X)


class Bags:
    """Estimators that are trained one after the other; their scores are averaged.

    Scores are logarithms of probabilities: two classes' log-odds, or what goes into a softmax,
    differ from them by a number that is the same for all classes.
    """

    def __init__(self, members: Sequence[Any]) -> None:
        self._members = members

    def fit(self, X: np.ndarray, y: np.ndarray) -> Bags:
        for member in self._members:
            member.fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        labels: np.ndarray = self.predict_proba(X).argmax(axis=1)
        return labels

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        given = [np.asarray(each.predict_proba(X), dtype=np.float64) for each in self._members]
        smallest = np.finfo(np.float32).tiny  # a zero has no logarithm
        scores = np.mean([np.log(np.maximum(each, smallest)) for each in given], axis=0)
        shares: np.ndarray = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return shares


@dataclass(frozen=True)
class GlassBox:
    """A contender, and how it stops early if it does not do so by itself."""

    contender: Contender
    watching: Watching | None = None
    bags: int = 1

    @property
    def name(self) -> str:
        """What the tables call it."""
        return self.contender.name

    @property
    def parameters(self) -> dict[str, Any]:
        """What its estimator is given beside the threads, and what is done around it."""
        around: dict[str, Any] = {}
        if self.watching is not None:
            around["held out"] = SHARE
        if self.bags > 1:
            around["bags"] = self.bags
        return {**self.contender.parameters, **around}

    def make(self, threads: int) -> Any:
        """A new estimator."""
        if self.watching is None:
            return self.contender.make(None, threads)
        members = [
            Stopped(self.contender.make(None, threads), self.watching, seed)
            for seed in range(self.bags)
        ]
        return Bags(members) if self.bags > 1 else members[0]


def _as_xgboost(watched: Table) -> Mapping[str, Any]:
    return {"eval_set": [(watched.X, watched.y)], "verbose": False}


def _as_lightgbm(watched: Table) -> Mapping[str, Any]:
    from lightgbm import early_stopping

    callbacks = [early_stopping(PATIENCE, verbose=False)]
    return {"eval_set": [(watched.X, watched.y)], "callbacks": callbacks}


class _Peer(NamedTuple):
    """A library's estimator, its name, and how it is told which samples to watch."""

    name: str
    module: str
    estimator: str
    watching: Watching | None


_LIKE_XGBOOST: Mapping[str, Any] = {
    "max_depth": 1,
    "n_estimators": MOST_ROUNDS,
    "early_stopping_rounds": PATIENCE,
}
_LIKE_LIGHTGBM: Mapping[str, Any] = {
    "num_leaves": 2,
    "n_estimators": MOST_ROUNDS,
    "verbosity": -1,
}

_XGBOOST = _Peer("XGBoost", "xgboost", "XGBClassifier", _as_xgboost)
_LIGHTGBM = _Peer("LightGBM", "lightgbm", "LGBMClassifier", _as_lightgbm)
_HESSBOOST = _Peer("hessboost", "hessboost.sklearn", "HessboostClassifier", _as_xgboost)


def _peer(peer: _Peer, parameters: Mapping[str, Any], bags: int = 1) -> GlassBox:
    name = peer.name if bags == 1 else f"{peer.name}, {bags} bags"
    contender = Contender(name, (peer.module,), peer.estimator, parameters, threads="n_jobs")
    return GlassBox(contender, peer.watching, bags)


def _ours(name: str, parameters: Mapping[str, Any]) -> GlassBox:
    given = {"device": "cpu", "random_state": 0, **parameters}
    contender = Contender(name, ("gpustump",), "GlassBoxClassifier", given, threads="n_jobs")
    return GlassBox(contender)


def _ebm(name: str, parameters: Mapping[str, Any]) -> GlassBox:
    made = ("interpret.glassbox",), "ExplainableBoostingClassifier"
    return GlassBox(Contender(name, *made, parameters, threads="n_jobs"))


EBM = _ebm("interpret EBM", {})
"""By default it takes 14 bags, holds out 0.15 of each, and learns three pairs for each feature."""


def _scikit_learn(name: str, leaves: int) -> GlassBox:
    """It holds samples out by itself. Its threads are those of the process: see `glassbox`."""
    given = {
        "max_leaf_nodes": leaves,
        "max_iter": MOST_ROUNDS,
        "early_stopping": True,
        "validation_fraction": SHARE,
        "n_iter_no_change": PATIENCE,
        "random_state": 0,
    }
    made = ("sklearn.ensemble",), "HistGradientBoostingClassifier"
    return GlassBox(Contender(name, *made, given))


CONTENDERS: tuple[GlassBox, ...] = (
    _ours("gpustump GlassBox", {}),
    _ours("gpustump GlassBox, no pairs", {"interactions": 0}),
    _ours("gpustump GlassBox, 1 bag", {"n_bags": 1}),
    _ours(f"gpustump GlassBox, {BAGS} bags", {"n_bags": BAGS}),
    EBM,
    _ebm("interpret EBM, no pairs", {"interactions": 0}),
    _peer(
        _LIGHTGBM._replace(name="LightGBM, 31 leaves"),
        {"n_estimators": MOST_ROUNDS, "verbosity": -1},
    ),
    _peer(_LIGHTGBM, _LIKE_LIGHTGBM),
    _peer(_LIGHTGBM, _LIKE_LIGHTGBM, BAGS),
    _peer(_XGBOOST, _LIKE_XGBOOST),
    _scikit_learn("scikit-learn", 2),
    _scikit_learn("scikit-learn, 31 leaves", 31),
    _peer(_HESSBOOST, _LIKE_XGBOOST),
    _peer(_HESSBOOST, _LIKE_XGBOOST, BAGS),
)
