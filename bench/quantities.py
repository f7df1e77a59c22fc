"""Quantities, counts and costs: the glass box, boosted stumps, and their peers on real tables.

The error of a quantity is the root of the mean squared error on held-out samples, over the standard
deviation of their targets; that of counts and costs is the mean deviance over that of predicting
the mean of the training samples. All contenders run in turn on the same folds, each with one thread
(but scikit-learn's, which takes all), and the seconds of a fit are those of the processor. The file
is written anew after each table.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from statistics import fmean, geometric_mean
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from bench.accuracy_tables import cells
from bench.benchmarks import whole
from bench.quantity_tables import TABLES, Loss, QuantityTable
from bench.records import Count, Machine, Record, Seconds
from bench.tables import markdown, number, origin

SHARE, PATIENCE, MOST_ROUNDS = 0.15, 50, 3000
"""Peers without bags hold out interpret's share of the training samples, and stop after 50 rounds
without a better loss."""

LOSSES = {"squared_error": "quantities", "poisson": "counts", "gamma": "costs"}
"""What tables of a loss are called."""

EBM, WITH_TREES = "interpret EBM", "LightGBM, 31 leaves"
"""What times are compared with, and the only contender that is no glass box."""


class QuantityFold(Record, frozen=True):
    """One contender, trained on all folds but one, on the samples of that one."""

    error: Annotated[float, Meta(ge=0)]
    fit: Seconds


class QuantityResult(Record, frozen=True):
    """One contender on one table."""

    contender: str
    folds: tuple[QuantityFold, ...] = ()
    reason: str | None = None
    """Why it could not be measured; None if all folds were."""


class QuantityResults(Record, frozen=True):
    """All contenders on one table."""

    name: str
    samples: Count
    features: Count
    loss: Loss
    results: Annotated[tuple[QuantityResult, ...], Meta(min_length=1)]


class Quantities(Record, frozen=True, tag_field="schema", tag=5):
    """A whole run."""

    benchmark: Literal["quantities"]
    command: str
    started: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
    seconds: Seconds
    machine: Machine
    folds: Annotated[int, Meta(ge=2)]
    tables: Annotated[tuple[QuantityResults, ...], Meta(min_length=1)]


class Watching(NamedTuple):
    """An estimator that is handed samples to watch: the arguments of `fit` that name them."""

    estimator: Any
    arguments: Callable[[np.ndarray, np.ndarray], dict[str, Any]]

    def fit(self, X: np.ndarray, y: np.ndarray) -> Watching:
        from sklearn.model_selection import train_test_split

        X, X_watched, y, y_watched = train_test_split(X, y, test_size=SHARE, random_state=0)
        self.estimator.fit(X, y, **self.arguments(X_watched, y_watched))
        return self

    def predict(self, X: np.ndarray) -> Any:
        return self.estimator.predict(X)


def _glass_box(loss: Loss, interactions: Any = "auto") -> Any:
    from gpustump import GlassBoxRegressor

    return GlassBoxRegressor(
        loss=loss, interactions=interactions, random_state=0, device="cpu", n_jobs=1
    )


def _stumps(loss: Loss) -> Any:
    from gpustump import StumpBoostingRegressor

    return StumpBoostingRegressor(loss=loss, random_state=0, device="cpu", n_jobs=1)


def _ebm(loss: Loss, **how: Any) -> Any:
    from interpret.glassbox import ExplainableBoostingRegressor

    objectives = {"squared_error": "rmse", "poisson": "poisson_deviance", "gamma": "gamma_deviance"}
    return ExplainableBoostingRegressor(objective=objectives[loss], n_jobs=1, random_state=0, **how)


def _scikit_learn(loss: Loss) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        loss=loss, max_leaf_nodes=2, max_iter=MOST_ROUNDS, early_stopping=True,
        validation_fraction=SHARE, n_iter_no_change=PATIENCE, random_state=0,
    )  # fmt: skip


def _xgboost(loss: Loss) -> Any:
    from xgboost import XGBRegressor

    objectives = {"squared_error": "reg:squarederror", "poisson": "count:poisson"}
    estimator = XGBRegressor(
        objective=objectives.get(loss, "reg:gamma"), max_depth=1, n_estimators=MOST_ROUNDS,
        early_stopping_rounds=PATIENCE, n_jobs=1,
    )  # fmt: skip
    return Watching(estimator, lambda X, y: {"eval_set": [(X, y)], "verbose": False})


def _lightgbm(loss: Loss, **how: Any) -> Any:
    from lightgbm import LGBMRegressor, early_stopping

    objective = "regression" if loss == "squared_error" else loss
    estimator = LGBMRegressor(
        objective=objective, n_estimators=MOST_ROUNDS, n_jobs=1, verbosity=-1, **how
    )
    callbacks = [early_stopping(PATIENCE, verbose=False)]
    return Watching(estimator, lambda X, y: {"eval_set": [(X, y)], "callbacks": callbacks})


CONTENDERS: Mapping[str, Callable[[Loss], Any]] = {
    "gpustump GlassBox": _glass_box,
    "gpustump GlassBox, no pairs": lambda loss: _glass_box(loss, 0),
    "gpustump stumps": _stumps,
    EBM: _ebm,
    "interpret EBM, no pairs": lambda loss: _ebm(loss, interactions=0),
    "scikit-learn stumps": _scikit_learn,
    "XGBoost stumps": _xgboost,
    "LightGBM stumps": lambda loss: _lightgbm(loss, num_leaves=2),
    WITH_TREES: _lightgbm,
}
"""Estimators by their names, for a loss. Ours and interpret's have their defaults, which learn
pairs of features, and take part without pairs, too."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen on the command line."""
    add = parser.add_argument
    about = f"tables (default: all), of: {', '.join(TABLES)}"
    add("--sets", nargs="+", choices=list(TABLES), default=list(TABLES), metavar="SET", help=about)
    names = list(CONTENDERS)
    about = f"who takes part (default: all), of: {'; '.join(names)}"
    add("--only", nargs="+", choices=names, default=names, metavar="NAME", help=about)
    about = "folds, each held out once (default: %(default)s)"
    add("--folds", type=whole(2), default=3, metavar="N", help=about)
    about = "measure only the first of the folds (default: all)"
    add("--first", type=whole(1), metavar="N", help=about)


def measured(options: argparse.Namespace) -> Iterator[QuantityResults]:
    """Measure one table after the other.

    Raises
    ------
    MissingDataError
        Before the first, if one of the tables cannot be had here.
    """
    tables = {name: TABLES[name]() for name in options.sets}
    for loss in {table.loss for table in tables.values()}:  # compiles and imports what fits need
        X, y = np.arange(60.0)[:, np.newaxis].astype(np.float32), np.arange(60.0) + 1.0
        for name in options.only:
            _on_fold(name, (X, y, X, y), loss)
    for name, table in tables.items():
        yield on_table(name, table, options.only, options.folds, options.first)


def on_table(
    name: str, table: QuantityTable, contenders: list[str], folds: int, first: int | None = None
) -> QuantityResults:
    """All contenders on one table: they take turns, fold by fold, or in the first ones only."""
    from sklearn.model_selection import KFold

    X, y, loss = table
    found: dict[str, list[QuantityFold]] = {own: [] for own in contenders}
    reasons: dict[str, str] = {}
    parts = KFold(folds, shuffle=True, random_state=0).split(X)
    for train, test in itertools.islice(parts, first):
        for own in contenders:
            result = _on_fold(own, (X[train], y[train], X[test], y[test]), loss)
            if isinstance(result, str):
                reasons[own] = result
            else:
                found[own].append(result)
    results = [
        QuantityResult(own, () if own in reasons else tuple(found[own]), reasons.get(own))
        for own in contenders
    ]
    return QuantityResults(name, len(y), X.shape[1], loss, tuple(results))


def _on_fold(contender: str, part: tuple[np.ndarray, ...], loss: Loss) -> QuantityFold | str:
    """One contender on one fold, or why it failed."""
    X, y, X_test, y_test = part
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they concern data and settings, the same for all
        try:
            model, clock = CONTENDERS[contender](loss), time.process_time()
            model.fit(X, y)
            seconds = time.process_time() - clock
            predicted = np.asarray(model.predict(X_test), dtype=np.float64)
        except Exception as failure:
            first_line = str(failure).partition("\n")[0]
            return f"{type(failure).__name__}: {first_line}"
    return QuantityFold(error=error_of(y_test, predicted, float(y.mean()), loss), fit=seconds)


def error_of(true: np.ndarray, predicted: np.ndarray, mean: float, loss: str) -> float:
    """The error of held-out samples, as a share of that of simple predictions.

    Parameters
    ----------
    true, predicted : ndarray (n_samples,)
    mean : float
        Of the training samples; simple predictions of counts and costs are all equal to it.
    loss : str
    """
    from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance

    if loss == "squared_error":
        return float(np.sqrt(np.mean((true - predicted) ** 2)) / true.std())
    deviance = mean_poisson_deviance if loss == "poisson" else mean_gamma_deviance
    positive = np.maximum(predicted, np.finfo(np.float64).tiny)
    return float(deviance(true, positive) / deviance(true, np.full(len(true), mean)))


class Summary(NamedTuple):
    """The tables of a loss, and the means of each contender over those that all of them did.

    Attributes
    ----------
    title : str
        What the tables are called.
    tables : list of QuantityResults
    n_common : int
        How many of them all contenders did.
    errors, seconds : dict of str to float
        Means over these; empty if there are none.
    shares : dict of str to float
        Geometric means of the seconds as shares of the EBM's; empty without an EBM.
    """

    title: str
    tables: list[QuantityResults]
    n_common: int
    errors: dict[str, float]
    seconds: dict[str, float]
    shares: dict[str, float]


def summaries(found: Quantities) -> list[Summary]:
    """One for each loss of which there are tables."""
    return [
        _summary(title, tables)
        for loss, title in LOSSES.items()
        if (tables := [table for table in found.tables if table.loss == loss])
    ]


def _summary(title: str, tables: list[QuantityResults]) -> Summary:
    names = [own.contender for own in tables[0].results]
    common = [table for table in tables if all(own.folds for own in table.results)]
    errors = [_means(table, lambda fold: fold.error) for table in common]
    seconds = [_means(table, lambda fold: fold.fit) for table in common]
    if not common:
        return Summary(title, tables, 0, {}, {}, {})
    shares = {}
    if EBM in names:
        shares = {name: geometric_mean([own[name] / own[EBM] for own in seconds]) for name in names}
    return Summary(
        title,
        tables,
        len(common),
        {name: fmean(own[name] for own in errors) for name in names},
        {name: fmean(own[name] for own in seconds) for name in names},
        shares,
    )


def page(found: Quantities, *, only_means: bool = False) -> str:
    """All that a run says, as Markdown, or the means alone, without machine and command."""
    parts = []
    for summary in summaries(found):
        parts.append(_means_as_text(summary, found.folds))
        if not only_means:
            parts.append(_by_table(summary))
    if not only_means:
        parts.append(origin(found.machine, found.started, found.command))
    return "\n\n".join(parts)


def _means(table: QuantityResults, of: Callable[[QuantityFold], float]) -> dict[str, float]:
    """The mean over the folds of each contender that was measured."""
    return {own.contender: fmean(map(of, own.folds)) for own in table.results if own.folds}


def _means_as_text(summary: Summary, folds: int) -> str:
    """A row for each contender."""
    heading = (
        f"**{summary.title.capitalize()}**: means over {summary.n_common} of "
        f"{len(summary.tables)} tables, {folds} folds; seconds of the processor"
    )
    rows = [
        [name, f"{error:.4f}", number(summary.seconds[name]), number(summary.shares.get(name))]
        for name, error in summary.errors.items()
    ]
    columns = ["", "error", "fit, s", "x EBM's"]
    return f"{heading}\n\n{markdown(columns, rows)}" if rows else heading


def _by_table(summary: Summary) -> str:
    """A row for each table, a column for each contender; the best in bold."""
    names = tuple(own.contender for own in summary.tables[0].results)
    rows = [
        [
            f"{table.name}, {table.samples} x {table.features}",
            *cells(names, _means(table, lambda fold: fold.error), "{:.4f}".format),
        ]
        for table in summary.tables
    ]
    return f"**Error, {summary.title}**\n\n{markdown(['', *names], rows)}"
