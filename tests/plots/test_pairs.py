"""Pictures of pairs of features hold the numbers of the model's tables, and name what they show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawn import drawn, labels, legend, overlaps, saved, texts
from matplotlib import pyplot
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from gpustump import GlassBoxClassifier, RegionMember, Split, StumpEnsemble, plots
from gpustump.learners.pair_table import PairAxis, PairTable
from gpustump.model.encoding import NUMBERED, Encoding, InputColumn
from gpustump.model.pairs import shares_of_pairs

UNIT = 2.0**-36
NAMES = ("age", "income", "job", "hired")
COLUMNS = (
    InputColumn("age", 0, "number"),
    InputColumn("income", 1, "number"),
    InputColumn("job", 2, NUMBERED, ("nurse", "clerk", "smith", "judge")),
    InputColumn("hired", 3, "date"),
)
AGE = PairAxis(0, np.asarray([20.5, 30.5, 40.5, 50.5, np.inf]))
INCOME = PairAxis(1, np.asarray([1000.0, 2500.0, 3500.25, 60000.0, np.inf]))
JOB = PairAxis(2, groups=((1,), (0, 3), (2,)))
HIRED = PairAxis(3, np.asarray([15000.0, 17000.0, np.inf]))


def numbers(random: np.random.Generator, *shape: int) -> np.ndarray:
    """Whole multiples of the unit of votes."""
    return np.rint(random.normal(size=shape) / UNIT) * UNIT


def table(random: np.random.Generator, axes: tuple, n_outputs: int, lacking: bool) -> PairTable:
    shape = axes[0].n_bins, axes[1].n_bins
    weights = random.exponential(size=shape)
    weights[1, 2] = 0.0
    if not lacking:
        weights[-1] = weights[:, -1] = 0.0
    return PairTable(axes, numbers(random, *shape, n_outputs), weights / weights.sum())


def made(n_classes: int = 2, *, lacking: bool = True, seed: int = 0) -> StumpEnsemble:
    """A model of four features and three pairs; samples lacked values if `lacking`."""
    random = np.random.default_rng(seed)
    n_outputs = 1 if n_classes == 2 else n_classes
    splits = Split(0, 33.0), Split(1, 2000.0), Split(3, 16000.0)
    member = RegionMember(splits, numbers(random, 3, 3, n_outputs) / 8, np.zeros(n_outputs))
    moved = RegionMember((Split(0, 20.5),), numbers(random, 1, 3, n_outputs), np.zeros(n_outputs))
    pairs = tuple(
        table(random, axes, n_outputs, lacking)
        for axes in ((AGE, INCOME), (INCOME, JOB), (JOB, HIRED))
    )
    return StumpEnsemble(
        (member,),
        4,
        tuple("abcdefg"[:n_classes]),
        link="logistic" if n_classes == 2 else "softmax",
        feature_names=NAMES,
        details={"encoding": Encoding(COLUMNS, 4, True).as_details()},
        pairs=pairs,
        moved=(moved,),
    )


def rows(n_rows: int = 200) -> np.ndarray:
    random = np.random.default_rng(1)
    X = random.uniform((15, 0, 0, 14000), (60, 9000, 4, 18000), (n_rows, 4))
    X[:, 2] = np.floor(X[:, 2])
    X[random.random(X.shape) < 0.1] = np.nan
    return X


def meshes(ax, gid: str = "cells") -> np.ndarray:
    """The values in the cells, (along x, along y), with gaps before missing values; NaN if none."""
    (mesh,) = [one for one in ax.collections if one.get_gid() == gid]
    return np.ma.filled(mesh.get_array().T, np.nan)


def without_gaps(values: np.ndarray) -> np.ndarray:
    return np.delete(np.delete(values, -2, axis=0), -2, axis=1)


def hatched(ax) -> int:
    return sum(len(one.get_paths()) for one in ax.collections if one.get_gid() == "not learnt")


def test_each_cell_has_the_value_of_the_table_and_those_without_samples_are_hatched():
    model = made()
    for number, pair in enumerate(model.pairs):
        own = pair.output(0)
        figure = plots.pair(model, number)
        ax = figure.axes[0]
        found = without_gaps(meshes(ax))
        is_learnt = own.weights > 0.0
        assert_array_equal(found, np.where(is_learnt, own.values, np.nan))
        assert hatched(ax) == 1
        (mesh,) = [one for one in ax.collections if one.get_gid() == "cells"]
        largest = np.abs(own.values[is_learnt]).max()
        assert mesh.get_clim() == (-largest, largest)
        assert np.nanmax(meshes(figure.axes[2], "samples")) == pytest.approx(own.weights.max())
        saved(figure)


def test_missing_values_have_cells_only_if_samples_lack_them():
    model, lacking = made(lacking=False), rows()
    own = model.pairs[0].output(0)
    figure = plots.pair(model, 0)
    assert meshes(figure.axes[0]).shape == (5, 5)
    assert "missing" not in labels(figure.axes[0].xaxis) + labels(figure.axes[0].yaxis)
    figure = plots.pair(made(), 0)
    assert labels(figure.axes[0].xaxis)[-1] == labels(figure.axes[0].yaxis)[-1] == "missing"
    figure = plots.pair(model, 0, X=lacking)  # samples of X lack some, so they are shown
    assert without_gaps(meshes(figure.axes[0])).shape == own.weights.shape
    assert hatched(figure.axes[0]) == (own.weights == 0.0).sum()


def test_the_shares_of_the_samples_of_a_table_are_counted():
    model, X = made(), rows()
    weights = np.random.default_rng(2).integers(0, 4, len(X)).astype(float)
    pair = model.pairs[0]
    for sample_weight in (None, weights):
        figure = plots.pair(model, 0, X=X, sample_weight=sample_weight)
        found = without_gaps(meshes(figure.axes[2], "samples"))
        own = np.ones(len(X)) if sample_weight is None else sample_weight
        expected = np.zeros(pair.weights.shape)
        np.add.at(expected, tuple(axis.bins_of(X[:, axis.feature]) for axis in pair.axes), own)
        assert_allclose(found, expected / own.sum(), atol=1e-12)
        assert "samples of X" in figure.axes[2].get_title("left")


def test_lines_are_means_over_the_training_samples_beside_a_third_of_them():
    model = made()
    own = model.pairs[0].output(0)
    figure = plots.pair(model, 0)
    lines = figure.axes[1]
    beside = own.weights.sum(axis=0)
    middles = (np.cumsum(beside[:-1]) - beside[:-1] / 2) / beside[:-1].sum()
    thirds = [np.flatnonzero((middles >= k / 3) & (middles < (k + 1) / 3)) for k in range(3)]
    assert sum(map(len, thirds)) == 5
    names = legend(lines)
    assert names[-1] == "missing"
    assert len(names) == sum(len(bins) > 0 for bins in thirds) + 1
    assert names[0].startswith("up to ")
    assert names[-2].startswith("above ")
    for name, bins in zip(names, [*(bins for bins in thirds if len(bins)), [5]], strict=True):
        weights = own.weights[:, bins]
        expected = (weights * own.values[:, bins]).sum(axis=1) / weights.sum(axis=1)
        heights = drawn(lines, f"line of {name}")[:, 1]
        assert_allclose(heights[~np.isnan(heights)], np.repeat(expected, 2), atol=1e-12)


def test_a_pair_is_drawn_alike_with_the_rows_of_a_sparse_table():
    X = np.random.default_rng(0).integers(0, 4, (50, 4)) * [9, 900, 1, 6000]
    pictures = {saved(plots.pair(made(), 1, X=own)) for own in (X, csr_array(X))}
    assert len(pictures) == 1
    assert saved(plots.pair(made(), 1)) not in pictures


def test_a_pair_is_named_by_its_number_its_name_or_its_features():
    model = made()
    first = meshes(plots.pair(model, 0).axes[0])
    for name in ("age x income", ("age", "income"), (0, 1), (0, "income"), np.int64(0)):
        assert_array_equal(meshes(plots.pair(model, name).axes[0]), first)
    for name in ("income x age", ("income", "age"), [1, 0], np.asarray([1, 0])):
        ax = plots.pair(model, name).axes[0]
        assert_array_equal(meshes(ax), first.T)
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("income", "age")
        pyplot.close("all")


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("age x incme", "Did you mean 'age x income'"),
        (("age", "job"), r"pair is \('age', 'job'\).*'age x income'"),
        (("age", "nothing"), "feature 'nothing'"),
        (3, "pair is 3, which is none of .* no number below 3"),
        (1.5, "pair is 1.5, which is none"),
        (True, "pair is True, which is none"),
    ],
)
def test_what_is_no_pair_is_refused(pair, message):
    with pytest.raises(ValueError, match=message):
        plots.pair(made(), pair)
    with pytest.raises(ValueError, match=r"the model has no pairs .*interactions='auto'"):
        plots.pair(StumpEnsemble(made().members, 4), pair)


def test_of_several_classes_the_one_to_which_the_pair_adds_most_is_drawn():
    model = made(3)
    pair = model.pairs[1]
    sizes = (np.abs(pair.values) * pair.weights[..., np.newaxis]).sum(axis=(0, 1))
    strongest = int(np.argmax(sizes))
    for label, number in ((None, strongest), ("a", 0), ("c", 2)):
        figure = plots.pair(model, 1, label=label)
        found = without_gaps(meshes(figure.axes[0]))
        is_learnt = pair.weights > 0.0
        assert_array_equal(found[is_learnt], pair.values[is_learnt, number])
        bar = next(ax for ax in figure.axes if ax.get_ylabel().startswith("contribution"))
        assert bar.get_ylabel() == f"contribution to the score of {model.classes[number]}"
    with pytest.raises(ValueError, match="label"):
        plots.pair(model, 1, label="z")


def test_axes_name_categories_thresholds_and_dates():
    model = made(lacking=False)
    income, job = plots.pair(model, 1).axes[0], plots.pair(model, 2).axes[0]
    assert labels(income.xaxis) == ["1000", "2500", "3500", "60000"]
    assert income.get_xticks().tolist() == [1.0, 2.0, 3.0, 4.0]  # where one bin ends
    assert labels(income.yaxis) == ["clerk", "nurse, judge", "smith"]
    assert income.get_yticks().tolist() == [0.5, 1.5, 2.5]
    assert labels(job.yaxis) == ["2011-01-26", "2016-07-18"]
    assert job.get_ylabel() == "hired"


@pytest.fixture(scope="module")
def crossed():
    """A fitted classifier of two features that say nothing alone, and its table."""
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, (400, 3)).astype(np.float32)
    y = X[:, 0] * X[:, 1] > 0
    clf = GlassBoxClassifier(n_bags=3, random_state=0, device="cpu", interactions=2)
    return clf.fit(X, y), X, y


def test_bands_reach_one_standard_deviation_of_the_bags(crossed):
    clf = crossed[0]
    pair = clf.model_.pairs[0].output(0)
    figure = plots.pair(clf, 0)
    lines = figure.axes[1]
    assert "bands: ± 1 standard deviation" in figure.axes[2].get_xlabel()
    bands = [one for one in lines.collections if one.get_gid() == "band"]
    assert len(bands) == len(legend(lines)) == 3
    first = drawn(lines, f"line of {legend(lines)[0]}")[:, 1]
    beside = pair.weights.sum(axis=0)[:-1]
    middles = (np.cumsum(beside) - beside / 2) / beside.sum()
    bins = np.flatnonzero(middles < 1 / 3)
    weights = pair.weights[:-1, bins]
    means = (weights * pair.bags[:, :-1, bins]).sum(axis=2) / weights.sum(axis=1)
    deviations = np.repeat(means.std(axis=0, ddof=1), 2)
    corners = bands[0].get_paths()[0].vertices[:, 1]
    assert corners.max() == pytest.approx((first + deviations).max())
    assert corners.min() == pytest.approx((first - deviations).min())


def test_the_overview_draws_the_pairs_that_contribute_most():
    model, X = made(), rows()
    sizes = [(np.abs(p.values[..., 0]) * p.weights).sum() for p in model.pairs]
    assert_allclose(shares_of_pairs(model.pairs), np.asarray(sizes) / sum(sizes))
    for given, own in ((X, model.contribution_importances(X)[4:]), (None, np.asarray(sizes))):
        figure = plots.overview(model, given)
        assert "3 pairs" in figure.get_suptitle()
        cells = [ax for ax in figure.axes if any(c.get_gid() == "cells" for c in ax.collections)]
        found = [f"{ax.get_xlabel()} x {ax.get_ylabel()}" for ax in cells]
        assert found == [model.term_names[4 + k] for k in np.argsort(-own, kind="stable")]
        assert len({tuple(ax.collections[-1].get_clim()) for ax in cells}) == 1
        saved(figure)
    model = made(3)  # of several classes the titles say whose score is drawn
    assert {ax.get_title("left") for ax in plots.overview(model).axes} & {*model.classes}
    figure = plots.overview(model, label="b")
    assert {ax.get_title("left") for ax in figure.axes} == {""}
    saved(figure)


def test_pairs_have_a_share_of_the_contributions_and_none_of_the_votes():
    model, X = made(), rows()
    shares = dict(zip(model.term_names, model.contribution_importances(X), strict=True))
    ax = plots.importances(model, X)
    names = labels(ax.yaxis)
    assert set(names) == {name for name, share in shares.items() if share}
    contributions, votes = ax.containers[:2]
    assert_allclose([bar.get_width() for bar in contributions], [shares[name] for name in names])
    assert_array_equal(
        np.isnan([bar.get_width() for bar in votes]), [" x " in name for name in names]
    )
    assert "pairs have no votes" in ax.get_xlabel()
    assert "more features and pairs have" in plots.importances(model, X, n_features=2).get_xlabel()
    alone = plots.importances(model)
    assert not any(" x " in name for name in labels(alone.yaxis))


def test_margins_after_all_rounds_are_those_with_pairs(crossed):
    clf, X, y = crossed
    n_rounds = clf.model_.n_rounds
    names = legend(plots.margin_distribution(clf, X, y, rounds=[1, n_rounds]))
    assert {*names} == {"1 round", f"{n_rounds} rounds and pairs"}


def test_texts_of_a_pair_with_long_names_do_not_overlap():
    model = made()
    names = ("age of the person in years", "income of all sources", *NAMES[2:])
    long = replace(model, feature_names=names)
    for number in range(3):
        assert overlaps(plots.pair(long, number)) == []
        figure = pyplot.figure(figsize=(6.4, 3.6), layout="constrained")
        assert overlaps(plots.pair(model, number, figure=figure)) == []
    ax = plots.explanation(long, np.asarray([[33.0, 2600.0, 2.0, 16500.0]]))
    assert "age of …n years x income …sources = 33, 2600" in labels(ax.yaxis)
    assert texts(ax)
