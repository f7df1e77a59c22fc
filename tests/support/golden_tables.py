"""Tables whose models are recorded in `tests/golden/digests.json`, made without NumPy's generators.

A recorded digest has to stay what it is, so its table has to stay what it is, too. Python promises
that `random.Random(seed).random()` gives the same numbers in every version; everything here is made
from those. `python tests/support/golden_tables.py` prints the digests of the present version as
JSON. Record them anew only for a change that moves models on purpose.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

WEAK_LEARNERS = ("stump", "interval")


@dataclass(frozen=True)
class GoldenTable:
    """A table, how it is trained on, and the classes in y (0, 1, ...)."""

    name: str
    X: np.ndarray
    y: np.ndarray
    sample_weight: np.ndarray | None
    learning_rate: float
    n_rounds: int


def _uniform(draw: random.Random, *shape: int) -> np.ndarray:
    return np.asarray([draw.random() for _ in range(math.prod(shape))]).reshape(shape)


def _bells(draw: random.Random, *shape: int) -> np.ndarray:
    """Sums of four uniform numbers about zero: no logarithm or cosine, whose last digits differ."""
    return _uniform(draw, *shape, 4).sum(axis=-1) - 2.0


def _spread(draw: random.Random, *shape: int) -> np.ndarray:
    """Fifth powers by products: NumPy's own have other last digits on some processors."""
    bells = _bells(draw, *shape)
    return bells * bells * bells * bells * bells * 100.0


def _few(draw: random.Random, *shape: int) -> np.ndarray:
    return np.floor(_uniform(draw, *shape) * 4.0)


def _missing(draw: random.Random, *shape: int) -> np.ndarray:
    return np.where(_uniform(draw, *shape) < 0.3, np.nan, _bells(draw, *shape))


def _extreme(draw: random.Random, *shape: int) -> np.ndarray:
    values = np.asarray(
        [-np.inf, -1e308, -1.0, -5e-324, 0.0, -0.0, 5e-324, 1.0, 1e308, np.inf, np.nan]
    )
    return values[(_uniform(draw, *shape) * len(values)).astype(int)]


def _flags(draw: random.Random, *shape: int) -> np.ndarray:
    return (_uniform(draw, *shape) < 0.3).astype(float)


VALUES: dict[str, tuple[Callable[..., np.ndarray], tuple[str, ...]]] = {
    "bells": (_bells, ("float16", "float32", "float64")),
    "spread": (_spread, ("float32", "float64", "int32")),
    "few": (_few, ("int8", "uint8", "int16", "int64", "float32")),
    "missing": (_missing, ("float16", "float32", "float64")),
    "extreme": (_extreme, ("float32", "float64")),
    "flags": (_flags, ("bool", "float32")),
}


def _labels(X: np.ndarray, n_classes: int, draw: random.Random) -> np.ndarray:
    """Classes that depend on the first two features, with noise."""
    with np.errstate(all="ignore"):
        clipped = np.nan_to_num(X[:, :2].astype(np.float64)).clip(-3.0, 3.0)
    score = clipped[:, 0] + clipped[:, -1] ** 2 / 2 + _bells(draw, len(X))
    place = np.argsort(np.argsort(score, kind="stable"), kind="stable")
    return (place * n_classes // len(X)).astype(np.int64)


def _weights(kind: str, draw: random.Random, n_samples: int) -> np.ndarray | None:
    if kind == "equal":
        return None
    if kind == "small":
        return np.floor(_uniform(draw, n_samples) * 4.0)
    return np.ldexp(
        1.0 + _uniform(draw, n_samples), (_uniform(draw, n_samples) * 60 - 30).astype(int)
    )


def golden_tables() -> Iterator[GoldenTable]:
    """All of them: every kind of values in every dtype, for two classes and more."""
    weights = itertools.cycle(("equal", "small", "far apart"))
    rates = itertools.cycle((1.0, 0.5, 1.0, 3.0, 1.0))
    shapes = itertools.cycle(((60, 4), (150, 3), (333, 7), (64, 1), (20, 40)))
    for (kind, (make, dtypes)), n_classes in itertools.product(VALUES.items(), (2, 3, 5, 2)):
        for dtype in dtypes:
            yield _golden(kind, make, dtype, n_classes, next(shapes), next(weights), next(rates))
    for make, dtype, n_classes in (
        (_bells, "float32", 2), (_spread, "float64", 3), (_missing, "float32", 2),
        (_few, "int16", 4),
    ):  # fmt: skip
        yield _golden(make.__name__[1:], make, dtype, n_classes, (5000, 6), "equal", 1.0)


def _golden(
    kind: str,
    make: Callable[..., np.ndarray],
    dtype: str,
    n_classes: int,
    shape: tuple[int, int],
    weights: str,
    learning_rate: float,
) -> GoldenTable:
    name = f"{kind} {dtype} {shape[0]}x{shape[1]} {n_classes} classes {weights} {learning_rate}"
    draw = random.Random(name)
    with np.errstate(all="ignore"):
        X = make(draw, *shape).astype(dtype)
    y = _labels(X, n_classes, draw)
    return GoldenTable(name, X, y, _weights(weights, draw, shape[0]), learning_rate, 12)


def digest_of(table: GoldenTable, weak_learner: str) -> str:
    """The digest of the model that the estimator trains on a table."""
    from gpustump import AdaBoostClassifier

    classifier = AdaBoostClassifier(
        n_estimators=table.n_rounds,
        learning_rate=table.learning_rate,
        weak_learner=weak_learner,
        device="cpu",
    )
    return str(classifier.fit(table.X, table.y, table.sample_weight).model_.digest())


if __name__ == "__main__":
    found = {
        f"{weak_learner}: {table.name}": digest_of(table, weak_learner)
        for table in golden_tables()
        for weak_learner in WEAK_LEARNERS
    }
    print(json.dumps(found, indent=1))
