"""The numbers of each round of a fit as named curves, in the form that other boosting libraries
use.

XGBoost's `evals_result()` and LightGBM's `evals_result_` are dicts from data sets to dicts from
metrics to lists. These have the same form. Their numbers are those that the rounds hold anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpustump.boosting.training import Run
from gpustump.data.parameters import Scoring

Curve = list[float] | dict[Any, list[float]]
"""A number for each round; with several runs such a list for each class, by its label."""


def curves_of(
    runs: Sequence[Run], labels: Sequence[Any], scoring: Scoring | None, n_bags: int = 1
) -> dict[str, dict[str, Curve]]:
    """The curves of a fit.

    Parameters
    ----------
    runs : sequence of Run
        One, or one for each class; with several bags, the runs of the first bag come first.
    labels : sequence (n_classes,)
    scoring : str or None
        The score of the watched samples, if any were watched.
    n_bags : int
        With several bags, each has data sets of its own: "training of bag 1".
    """
    found: dict[str, dict[str, Curve]] = {}
    n_runs = len(runs) // n_bags
    for bag in range(n_bags):
        own = runs[bag * n_runs : (bag + 1) * n_runs]
        of_bag = "" if n_bags == 1 else f" of bag {bag + 1}"
        training = [[one.training_error for one in run.rounds] for run in own]
        found[f"training{of_bag}"] = {"error": _curve(training, labels)}
        if scoring is not None and any(run.held_out_scores for run in own):
            found[f"validation{of_bag}"] = {
                scoring: _curve([list(run.held_out_scores) for run in own], labels),
                "error": _curve([list(run.held_out_errors) for run in own], labels),
            }
    return found


def _curve(by_run: list[list[float]], labels: Sequence[Any]) -> Curve:
    return by_run[0] if len(by_run) == 1 else dict(zip(labels, by_run, strict=True))
