"""How good the models are: every contender on the same folds of real tables.

Three groups of contenders: `rounds` are boosted stumps of a fixed number of rounds, on tables of
classes; `glassbox` are glass boxes and boosters that stop early, on tables of classes, quantities,
counts and costs; `quantiles` learn three quantiles of quantities, each by a model of its own. All
run in this process, one after the other, fold by fold. Scores are those of held-out samples. For
classes: the error, the log-loss (probabilities below 1e-7 count as 1e-7, as some libraries answer
in float32) and the Brier score. For quantities the error is the root of the mean squared error over
the standard deviation of the targets; for counts and costs it is the mean deviance over that of
predicting the mean of the training samples; for quantiles the mean pinball loss over that of
predicting the training samples' quantile, and all that is measured is the mean over the three.
`python -m bench peers` measures speed with more care.

A table may be shuffled and cut into folds several times (--shuffles), as one draw says little of a
small table. It ends once a contender's fits have taken longer than --limit in all, but not before
each sample was held out once. All contenders have the same folds.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import importlib
import statistics
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bench.contenders import GROUPS, PATIENCE, SHARE, Contender, chosen
from bench.machine import usable_cores
from bench.real_tables import KINDS, TABLES, Source, Table
from bench.records import Result
from bench.timing import Found, UsageError, add_option, tell, whole
from bench.worker import WithdrawnError, side_by_side, timed

LEAST_PROBABILITY = 1e-7
_PREDICTIONS = 5  # calls of which the median counts
_ACCURACY_GROUPS = ("rounds", "glassbox", "quantiles")
_WITH_OWN_ROUNDS = (*GROUPS["glassbox"], *GROUPS["quantiles"])
_LEVELS = (0.1, 0.5, 0.9)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen on the command line."""
    about = "who takes part (default: rounds)"
    parser.add_argument("group", nargs="?", choices=_ACCURACY_GROUPS, default="rounds", help=about)
    add = functools.partial(add_option, parser)
    add("--sets", str, None, "tables", nargs="+", choices=[*KINDS, *TABLES])
    names = [each.name for group in _ACCURACY_GROUPS for each in GROUPS[group]]
    add("--only", str, None, "who of them", nargs="+", choices=list(dict.fromkeys(names)))
    add("--rounds", whole(1), 200, "rounds of boosting, of the group `rounds`")
    add("--folds", whole(2), 5, "folds, each held out once")
    add("--shuffles", whole(1), 1, "times that a table is cut into folds, if time allows")
    about = "seconds of a contender's fits after which a table ends"
    add("--limit", whole(1), None, about)
    add("--first", whole(1), None, "measure only so many of the folds")
    add("--threads", whole(1), min(2, usable_cores()), "of a contender")


def measure(options: argparse.Namespace, found: Found) -> tuple[Result, ...]:
    """Measure one table after the other; `found` gets what was measured, after each of them.

    Raises
    ------
    MissingDataError
        Before the first, if one of the tables cannot be had here.
    """
    who = chosen(GROUPS[options.group], options.only)
    asked = options.sets or KINDS
    names = [name for name in TABLES if name in asked or TABLES[name].kind in asked]
    sources = [TABLES[name] for name in names]
    if options.group == "quantiles":
        sources = [replace(own, kind="quantiles") for own in sources if own.kind == "quantities"]
    sources = [own for own in sources if any(_takes_part(each, own) for each in who)]
    if not sources:
        raise UsageError("nobody who was chosen takes part in these tables")
    tables = [source.read() for source in sources]
    warm_up(who, sources, options.threads)
    done: tuple[Result, ...] = ()
    for source, table in zip(sources, tables, strict=True):
        tell(f"measuring {source.name} ...")
        part = [each for each in who if _takes_part(each, source)]
        done += on_table(source, table, part, options)
        found(done)
    return done


def _takes_part(contender: Contender, source: Source) -> bool:
    return bool(contender.regressor) if source.loss else source.kind in contender.tables


def warm_up(who: Sequence[Contender], sources: Sequence[Source], threads: int) -> None:
    """Load, compile and start what first fits need: whole fits for each kind of tables."""
    X = np.random.default_rng(0).standard_normal((600, 3)).astype(np.float32)
    labels = (X.sum(axis=1) + np.arange(600) % 3).astype(np.int64).clip(0, 2)
    for source in {source.kind: source for source in sources}.values():
        y = labels + 1.0 if source.loss else labels if source.kind == "more" else labels // 2
        for each in (each for each in who if _takes_part(each, source)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:  # if it fails, it fails again when it is measured, and is reported then
                    rounds = None if each in _WITH_OWN_ROUNDS else 100
                    level = _levels(source.loss)[0]
                    estimator(each, rounds, threads, source.loss, level).fit(X, y)
                except Exception as failure:
                    tell(f"  {each.name}: {failure}")


def on_table(
    source: Source, table: Table, who: Sequence[Contender], options: argparse.Namespace
) -> tuple[Result, ...]:
    """All contenders on one table: they take turns, fold by fold, until one has used its time."""
    folds: dict[str, list[dict[str, Any]]] = {each.name: [] for each in who}
    reasons: dict[str, str] = {}
    content = hashlib.sha256(table.X.tobytes() + table.y.tobytes())
    for number, held_out in enumerate(splits(table.y, options.folds, options.shuffles), 1):
        if number <= options.folds:
            content.update(held_out.data)
        parts = (
            Table(table.X[~held_out], table.y[~held_out]),
            Table(table.X[held_out], table.y[held_out]),
        )
        for each in (each for each in who if each.name not in reasons):
            try:
                folds[each.name].append(on_fold(each, *parts, source.loss, options))
            except WithdrawnError as failure:
                reasons[each.name] = str(failure)
        most = max(sum(fold["fit"] for fold in own) for own in folds.values())
        late = options.limit is not None and number >= options.folds and most > options.limit
        if late or number == options.first:
            break
    facts = {"missing": float(np.isnan(table.X).mean())}
    if not source.loss:
        facts["classes"] = np.bincount(table.y).tolist()
    return tuple(
        Result(
            case=KINDS[source.kind],
            contender=each.name,
            data=source.name,
            samples=len(table.X),
            features=table.X.shape[1],
            data_sha256=content.hexdigest(),
            threads=options.threads,
            rounds=() if each in _WITH_OWN_ROUNDS else (options.rounds * _per_class(each, table),),
            estimator=each.regressor if source.loss else each.estimator,
            parameters={**each.parameters, **({"held out": SHARE} if each.watches else {})},
            reason=reasons.get(each.name),
            facts=facts,
            values={} if each.name in reasons else side_by_side(folds[each.name]),
        )
        for each in who
    )


def _per_class(contender: Contender, table: Table) -> int:
    n_classes = int(table.y.max()) + 1
    return n_classes if contender.rounds_per_class and n_classes > 2 else 1


def splits(y: np.ndarray, folds: int, shuffles: int) -> Iterator[np.ndarray]:
    """Masks of the held-out samples: every fold of every shuffle, whose number is the seed.

    Folds of classes are stratified.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = KFold if y.dtype == np.float64 else StratifiedKFold
    for seed in range(shuffles):
        for _, test in kind(folds, shuffle=True, random_state=seed).split(y[:, None], y):
            yield np.isin(np.arange(len(y)), test)


def _levels(loss: str) -> Sequence[float | None]:
    """Which quantiles are learnt by a loss."""
    return _LEVELS if loss == "quantile" else (None,)


def on_fold(
    contender: Contender, train: Table, test: Table, loss: str, options: argparse.Namespace
) -> dict[str, Any]:
    """What one contender does on one fold, the mean over all quantiles.

    Raises
    ------
    WithdrawnError
        If its library is not installed, or raises anything.
    """
    if reason := contender.absent():
        raise WithdrawnError(reason)
    has_own = contender in _WITH_OWN_ROUNDS
    rounds = None if has_own else options.rounds * _per_class(contender, train)
    try:
        with warnings.catch_warnings(), threadpool_limits(limits=options.threads):
            warnings.simplefilter("ignore")  # they concern data and settings, the same for all
            found = [
                _on_level(
                    estimator(contender, rounds, options.threads, loss, level),
                    train, test, loss, level,
                )
                for level in _levels(loss)
            ]  # fmt: skip
    except Exception as failure:
        first_line = str(failure).partition("\n")[0]
        raise WithdrawnError(f"{type(failure).__name__}: {first_line}") from failure
    return {name: statistics.fmean(own[name] for own in found) for name in found[0]}


def _on_level(
    model: Any, train: Table, test: Table, loss: str, level: float | None
) -> dict[str, float]:
    """What one estimator does on one fold."""
    cpu = time.process_time()
    fit, _ = timed(lambda: model.fit(*train))
    took = {"fit": fit, "cpu": time.process_time() - cpu}
    scores = number_scores(model, train, test, loss, level) if loss else class_scores(model, test)
    predict = model.predict if loss else model.predict_proba
    seconds = [timed(lambda: predict(test.X))[0] for _ in range(_PREDICTIONS)]
    return {**scores, **took, "predict": statistics.median(seconds)}


def class_scores(model: Any, test: Table) -> dict[str, float]:
    """The error, log-loss and Brier score [Brier 1950: 0 to 2] of a fitted classifier.

    Raises
    ------
    ValueError
        If its probabilities have another shape than (n_samples, n_classes), or are not all finite.
    """
    given = np.asarray(model.predict_proba(test.X), dtype=np.float64)
    if given.shape != (len(test.X), len(model.classes_)) or not np.isfinite(given).all():
        raise ValueError(f"probabilities of shape {given.shape}, or NaN")
    given /= given.sum(axis=1, keepdims=True)
    right = given[np.arange(len(test.y)), test.y]
    wanted = np.arange(given.shape[1]) == test.y[:, None]
    predicted = np.asarray(model.predict(test.X)).reshape(-1)  # CatBoost: a column
    return {
        "error": float(np.mean(predicted != test.y)),
        "log_loss": float(-np.log(np.clip(right, LEAST_PROBABILITY, 1.0)).mean()) + 0.0,  # no -0.0
        "brier": float(np.square(given - wanted).sum(axis=1).mean()),
    }


def number_scores(
    model: Any, train: Table, test: Table, loss: str, level: float | None = None
) -> dict[str, float]:
    """The error of a fitted regressor, as a share of that of simple predictions."""
    from sklearn.metrics import mean_gamma_deviance, mean_pinball_loss, mean_poisson_deviance

    predicted = np.asarray(model.predict(test.X), dtype=np.float64)
    if loss == "squared_error":
        root = np.sqrt(np.mean((test.y - predicted) ** 2))
        return {"error": float(root / test.y.std())}
    if level is not None:
        simple = np.full(len(test.y), np.quantile(train.y, level))
        own, one = (mean_pinball_loss(test.y, by, alpha=level) for by in (predicted, simple))
        return {"error": float(own / one)}
    deviance = mean_poisson_deviance if loss == "poisson" else mean_gamma_deviance
    own = deviance(test.y, np.maximum(predicted, np.finfo(np.float64).tiny))
    return {"error": float(own / deviance(test.y, np.full(len(test.y), train.y.mean())))}


def estimator(
    contender: Contender, rounds: int | None, threads: int, loss: str, level: float | None = None
) -> Any:
    """A new estimator: one that is handed samples for early stopping, or that takes NaN."""
    made = contender.make(rounds, threads, loss, level)
    if contender.watches:
        return Stopped(made, contender.watches)
    if contender.takes_missing:
        return made
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    return make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), made)


class Stopped:
    """An estimator that stops early on a share of its samples, which it is handed."""

    def __init__(self, estimator: Any, watches: str) -> None:
        self.estimator, self.watches = estimator, watches

    def fit(self, X: np.ndarray, y: np.ndarray) -> Stopped:
        from sklearn.base import is_classifier
        from sklearn.model_selection import train_test_split

        strata = y if is_classifier(self.estimator) else None
        X, X_watched, y, y_watched = train_test_split(
            X, y, test_size=SHARE, stratify=strata, random_state=0
        )
        how: dict[str, Any] = {"verbose": False}
        if self.watches == "callbacks":
            lightgbm = importlib.import_module("lightgbm")
            how = {"callbacks": [lightgbm.early_stopping(PATIENCE, verbose=False)]}
        self.estimator.fit(X, y, eval_set=[(X_watched, y_watched)], **how)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: np.ndarray) -> Any:
        return self.estimator.predict(X)

    def predict_proba(self, X: np.ndarray) -> Any:
        return self.estimator.predict_proba(X)
