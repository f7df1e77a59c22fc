"""How good AdaBoost's probabilities are, and what gives better ones: log-loss and Brier score.

    python examples/probabilities.py

prints a table, for scikit-learn's own data and made-up tables: 300 rounds of AdaBoost as they are,
stopped early, and calibrated, and LogitBoost with its defaults, each judged by five folds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from gpustump import AdaBoostClassifier, LogitBoostClassifier

N_ROUNDS = 300


class Table(NamedTuple):
    """Samples (n_samples, n_features) and labels 0 and 1 (n_samples,)."""

    X: np.ndarray
    y: np.ndarray


def tables() -> dict[str, Table]:
    """Easy and hard tables, with rare classes and wrong labels among them."""
    digits, diabetes = datasets.load_digits(), datasets.load_diabetes()
    hastie_X, hastie_y = datasets.make_hastie_10_2(4000, random_state=0)
    rare = datasets.make_classification(
        3000, 20, n_informative=5, weights=[0.94], flip_y=0.01, random_state=0
    )
    flipped = datasets.make_classification(2000, 20, n_informative=5, flip_y=0.3, random_state=0)
    return {
        "breast cancer": Table(*datasets.load_breast_cancer(return_X_y=True)),
        "digits, 8 or not": Table(digits.data, (digits.target == 8).astype(int)),
        "diabetes, upper half": Table(
            diabetes.data, (diabetes.target > np.median(diabetes.target)).astype(int)
        ),
        "Hastie's ten normals": Table(hastie_X, (hastie_y > 0).astype(int)),
        "6% positive": Table(*rare),
        "labels flipped": Table(*flipped),
        "two moons": Table(*datasets.make_moons(2000, noise=0.3, random_state=0)),
    }


def contenders() -> dict[str, Callable[[], BaseEstimator]]:
    """What each column of the result is, as Python writes it."""
    return {
        "AdaBoost as it is": lambda: AdaBoostClassifier(n_estimators=N_ROUNDS),
        "`n_iter_no_change=10`": lambda: AdaBoostClassifier(
            n_estimators=N_ROUNDS, n_iter_no_change=10, random_state=0
        ),
        "`CalibratedClassifierCV(cv=5)`": lambda: CalibratedClassifierCV(
            AdaBoostClassifier(n_estimators=N_ROUNDS), cv=5
        ),
        "`LogitBoostClassifier()`": LogitBoostClassifier,
    }


def scores_of(estimator: BaseEstimator, table: Table) -> tuple[float, float]:
    """Log-loss and Brier score of the probabilities of rows that were held out."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    found = cross_val_predict(estimator, *table, cv=folds, method="predict_proba")[:, 1]
    return float(log_loss(table.y, found)), float(brier_score_loss(table.y, found))


def main() -> None:
    """Print the table in Markdown, with a row for the means."""
    names = list(contenders())
    print(f"| log-loss / Brier score | {' | '.join(names)} |")
    print("| --- |" + " ---: |" * len(names))
    rows = []
    for name, table in tables().items():
        rows.append([scores_of(make(), table) for make in contenders().values()])
        print(_line(name, rows[-1]))
    print(_line("mean", np.mean(rows, axis=0).tolist()))


def _line(name: str, scores: list[tuple[float, float]]) -> str:
    cells = (f"{loss:.3f} / {brier:.3f}" for loss, brier in scores)
    return f"| {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
