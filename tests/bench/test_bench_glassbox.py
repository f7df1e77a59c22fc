"""`python -m bench glassbox`: samples held out, bags averaged, equal folds for all, its tables."""

from __future__ import annotations

from argparse import Namespace

import numpy as np
import pytest
from fake_estimators import Slow
from made_up import glass_fold, glass_table, glassbox, machine
from msgspec.structs import replace
from scipy.special import logit, softmax
from sklearn.datasets import load_iris
from sklearn.metrics import brier_score_loss

from bench import glassbox as command
from bench import glassbox_records, records
from bench.__main__ import main
from bench.accuracy_data import Table
from bench.benchmarks import UsageError
from bench.contenders import Contender
from bench.glassbox import Job, brier_score, on_table, resumed, warm_up
from bench.glassbox_contenders import BAGS, CONTENDERS, MOST_ROUNDS, SHARE, Bags, GlassBox, Stopped
from bench.glassbox_tables import page

BY_NAME = {each.name: each for each in CONTENDERS}


def drawn(n_samples: int = 60, n_classes: int = 3) -> Table:
    random = np.random.default_rng(3)
    X = random.standard_normal((n_samples, 4)).astype(np.float32)
    return Table(X, np.arange(n_samples) % n_classes)


def fake(estimator: str = "Noter", name: str = "noter", **parameters) -> GlassBox:
    given = {"n_estimators": 7, **parameters}
    return GlassBox(Contender(name, ("fake_estimators",), estimator, given))


class Given:
    """Gives probabilities that were made beforehand; notes what it was fitted with."""

    def __init__(self, probabilities=None):
        self.probabilities = probabilities
        self.fitted = []

    def fit(self, X, y, **watched):
        self.fitted.append((X, y, watched))
        return self

    def predict_proba(self, X):
        return self.probabilities


def made_probabilities(n_samples: int, n_classes: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(n_classes), n_samples)


# ---- scores, shares and bags ------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_brier_score_is_that_of_scikit_learn_not_halved(n_classes):
    pytest.importorskip("sklearn", "1.7", reason="scikit-learn before 1.7 takes two classes only")
    given, y = made_probabilities(50, n_classes, 0), np.arange(50) % n_classes
    theirs = brier_score_loss(y, given, labels=range(n_classes), scale_by_half=False)
    assert brier_score(given, y) == pytest.approx(theirs)


def test_the_samples_to_watch_are_a_stratified_share_that_the_seed_alone_decides():
    table = drawn(300)

    def watched(seed: int) -> tuple[np.ndarray, np.ndarray]:
        model = Given()
        Stopped(model, lambda part: {"watched": part}, seed).fit(*table)
        ((X, y, told),) = model.fitted
        rows = {row.tobytes() for row in (*X, *told["watched"].X)}
        assert rows == {row.tobytes() for row in table.X}
        assert len(X) + len(told["watched"].X) == len(table.X)
        assert np.bincount(y).tolist() == [100 - round(100 * SHARE)] * 3
        return told["watched"]

    assert np.array_equal(watched(0).X, watched(0).X)
    assert not np.array_equal(watched(0).X, watched(1).X)


def test_bags_average_log_odds_of_two_classes_and_softmax_scores_of_more():
    X = np.zeros((20, 1))
    two = [made_probabilities(20, 2, seed) for seed in range(3)]
    mean = np.mean([logit(each[:, 1]) for each in two], axis=0)
    bags = Bags([Given(each) for each in two])
    assert logit(bags.predict_proba(X)[:, 1]) == pytest.approx(mean)
    assert np.array_equal(bags.predict(X), mean > 0)
    scores = np.random.default_rng(0).standard_normal((3, 20, 4))
    bags = Bags([Given(softmax(each, axis=1)) for each in scores])
    assert bags.predict_proba(X) == pytest.approx(softmax(scores.mean(axis=0), axis=1))


def test_a_probability_of_zero_does_not_spoil_the_mean_of_the_bags():
    sure = np.array([[1.0, 0.0]])
    (given,) = Bags([Given(sure), Given(1 - sure), Given(sure)]).predict_proba(np.zeros((1, 1)))
    assert given == pytest.approx([1, 0])


# ---- who takes part ---------------------------------------------------------------------------


def test_contenders_have_names_of_their_own():
    assert len(BY_NAME) == len(CONTENDERS)


EVAL_SET = "ignore:The argument 'eval_set' is deprecated"  # its successor is new in LightGBM 4.7


@pytest.mark.filterwarnings(EVAL_SET)
@pytest.mark.parametrize(
    ("name", "rounds"),
    [
        ("LightGBM", lambda model: model.estimator.best_iteration_),
        ("XGBoost", lambda model: model.estimator.best_iteration),
        ("hessboost", lambda model: model.estimator.best_iteration),
        ("scikit-learn", lambda model: model.n_iter_),
    ],
)
def test_peers_stop_before_the_most_rounds_and_know_the_flowers(name, rounds):
    peer = BY_NAME[name]
    pytest.importorskip(peer.contender.needs[0], reason=f"{name} is not installed")
    X, y = load_iris(return_X_y=True)
    model = peer.make(1).fit(X[::2], y[::2])
    assert 5 < rounds(model) < MOST_ROUNDS - 1
    assert np.mean(model.predict_proba(X[1::2]).argmax(axis=1) == y[1::2]) > 0.9


@pytest.mark.parametrize(
    ("name", "own"), [("interpret EBM", {}), ("interpret EBM, no pairs", {"interactions": 0})]
)
def test_the_ebm_takes_part_with_its_defaults_with_and_without_pairs(name, own):
    peer = BY_NAME[name]
    pytest.importorskip(peer.contender.needs[0], reason="interpret-core is not installed")
    model = peer.make(1)
    assert model.get_params() == type(model)(n_jobs=1, **own).get_params()


@pytest.mark.filterwarnings(EVAL_SET)
def test_a_peer_in_bags_is_trained_on_draws_of_its_own():
    peer = BY_NAME[f"LightGBM, {BAGS} bags"]
    pytest.importorskip("lightgbm")
    bags = peer.make(1)
    table = drawn(60, 2)
    single = BY_NAME["LightGBM"].make(1).fit(*table).predict_proba(table.X)
    given = bags.fit(*table).predict_proba(table.X)
    assert given.shape == single.shape
    assert not np.allclose(given, single)
    assert peer.parameters["bags"] == BAGS


# ---- measuring --------------------------------------------------------------------------------


def test_all_contenders_are_given_the_same_samples_in_every_fold():
    Slow.fitted.clear()
    who = [fake("Slow", "a"), fake("Slow", "b")]
    found = on_table("iris", drawn(), who, Job(4, 1, 60.0))
    assert Slow.fitted[::2] == Slow.fitted[1::2]
    assert len(set(Slow.fitted)) == 4
    on_table("iris", drawn(), who, Job(4, 1, 60.0, shuffles=2))
    assert Slow.fitted[8::2] == Slow.fitted[9::2]
    assert Slow.fitted[8:16] == Slow.fitted[:8]  # the first folds are the same
    assert len(set(Slow.fitted)) == 8
    for each in (fold for result in found.results for fold in result.folds):
        assert (each.error, each.log_loss, each.brier) == pytest.approx((2 / 3, np.log(3), 2 / 3))


def test_everybody_who_can_makes_whole_fits_before_the_first_that_counts():
    Slow.fitted.clear()
    warm_up([fake("Refuser", "refuser"), fake("Slow", "slow")], Job(2, 1, 1.0))
    labels = [set(np.frombuffer(y, dtype=np.int64)) for _, _, y in Slow.fitted]
    assert labels == [{0, 1}, {0, 1, 2}]
    assert {rounds for rounds, *_ in Slow.fitted} == {7}


@pytest.mark.parametrize(("limit", "n_folds"), [(0.01, 4), (0.27, 5)])
def test_a_table_ends_for_all_once_one_has_used_its_time_and_each_sample_was_held_out(
    limit, n_folds
):
    who = [fake(), fake("Slow", "slow", seconds=0.06), fake("Refuser", "refuser")]
    found = on_table("iris", drawn(), who, Job(4, 1, limit, shuffles=2))
    done = {each.contender: (len(each.folds), each.reason) for each in found.results}
    assert done == {
        "noter": (n_folds, None),
        "slow": (n_folds, None),
        "refuser": (0, "ValueError: no such data, please"),
    }


@pytest.fixture
def fakes(monkeypatch):
    monkeypatch.setattr(command, "CONTENDERS", (fake(name="a"), fake(name="b")))


def test_a_run_that_was_cut_off_goes_on_where_it_was(fakes, tmp_path, capsys):
    target = tmp_path / "g.json"
    options = [
        "glassbox",
        "--folds",
        "3",
        "--shuffles",
        "1",
        "--threads",
        "1",
        "--resume",
        "-o",
        str(target),
    ]
    assert main([*options, "--sets", "iris"]) == 0
    (iris,) = glassbox_records.read(target).tables
    capsys.readouterr()
    assert main([*options, "--sets", "iris", "wine"]) == 0
    found = glassbox_records.read(target)
    assert [table.name for table in found.tables] == ["iris", "wine"]
    assert found.tables[0] == iris
    assert found.command == (
        "python -m bench glassbox --folds 3 --shuffles 1 --threads 1 --sets iris wine"
    )
    printed = capsys.readouterr().out
    assert printed == page(found) + "\n"
    assert main(["show", str(target)]) == 0
    assert capsys.readouterr().out == printed
    assert main(["report", str(tmp_path)]) == 0
    assert page(found) in (tmp_path / "report.md").read_text()


def test_a_run_does_not_go_on_in_another_way(tmp_path, monkeypatch):
    plain = [GlassBox(Contender(name, ("fake_estimators",), "Noter")) for name in "ab"]
    monkeypatch.setattr(command, "CONTENDERS", plain)
    target, folds = tmp_path / "g.json", (glass_fold(),)
    records.write(glassbox(glass_table("iris", a=folds, b=folds)), target)
    alike = {"folds": 3, "limit": 10, "threads": 1, "shuffles": 1, "only": ["a", "b"]}
    asked = {"resume": True, "output": target, **alike}
    assert resumed(Namespace(**asked), machine()) == glassbox_records.read(target)
    for change, other in (
        ({"folds": 2}, "--folds"),
        ({"shuffles": 2}, "--shuffles"),
        ({"limit": 7}, "--limit"),
        ({"threads": 2}, "--threads"),
        ({"only": ["a"]}, "contenders"),
    ):
        with pytest.raises(UsageError, match=f"with other {other}; choose another file"):
            resumed(Namespace(**{**asked, **change}), machine())
    edited = replace(machine(), source_sha256="6" * 64)
    with pytest.raises(UsageError, match="with other sources; choose another file"):
        resumed(Namespace(**asked), edited)
    with pytest.raises(UsageError, match="--resume needs the file to go on with"):
        resumed(Namespace(**{**asked, "output": None}), machine())


# ---- what is shown ----------------------------------------------------------------------------


def example() -> glassbox_records.Glassbox:
    """Two tables of two classes: an EBM of 4 s and of 1 s, another of 1 s; someone who failed."""
    return glassbox(
        glass_table(
            "first",
            a=(glass_fold(0.5, 0.30), glass_fold(1.5, 0.20)),
            interpret_EBM=(glass_fold(4.0, 0.30, predict=0.02), glass_fold(4.0, 0.30)),
            lost="TypeError: no such thing",
        ),
        glass_table(
            "second",
            a=(glass_fold(1.0, 0.40),),
            interpret_EBM=(glass_fold(1.0, 0.30),),
            lost="TypeError: no such thing",
        ),
        glass_table("third", (40, 30, 30), a=(glass_fold(log_loss=0.7),)),
    )


def cells(text: str, title: str) -> list[list[str]]:
    """The rows of the table under a title, without the line below the head."""
    under = text.partition(f"**{title}")[2].partition("\n\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in under.splitlines()]
    return [rows[0], *rows[2:]]


def test_times_are_compared_with_the_ebm_of_the_same_table_by_geometric_means():
    rows = cells(page(example()), "Two classes**")
    assert rows[0][4:] == ["rank, log-loss", "fit, s", "x EBM's", "most", "predict, x EBM's"]
    assert rows[1] == ["a", "10.00", "0.3250", "0.2000", "1.50", "1.00", "0.500", "1.00", "0.816"]
    assert rows[2][4:] == ["1.50", "2.50", "1.00", "1.00", "1.00"]


def test_a_table_has_a_row_for_each_set_with_its_folds_and_the_best_in_bold():
    assert cells(page(example()), "Log-loss, two classes") == [
        ["", "a", "interpret EBM"],
        ["first, 100 x 4, 2 folds", "**0.2500**", "0.3000"],
        ["second, 100 x 4, 1 fold", "0.4000", "**0.3000**"],
        ["mean", "0.3250", "**0.3000**"],
    ]


def test_without_an_ebm_there_are_no_ratios_and_who_failed_is_named():
    text = page(example())
    assert cells(text, "More than two classes**")[1][4:] == ["1.00", "1.00", "-", "-", "-"]
    assert "Not measured, two classes: lost on all (TypeError: no such thing)." in text


def test_the_means_can_be_shown_alone():
    alone = page(example(), only_means=True)
    assert cells(alone, "Two classes**") == cells(page(example()), "Two classes**")
    assert "**Log-loss, two classes**" not in alone


def test_contenders_with_unequal_folds_are_refused(tmp_path):
    path = tmp_path / "g.json"
    folds = (glass_fold(),)
    records.write(glassbox(glass_table("first", a=folds, b=2 * folds)), path)
    with pytest.raises(records.FormatError, match="on first have 1, 2 folds; all must have the"):
        glassbox_records.read(path)
    records.write(example(), path)
    assert glassbox_records.read(path) == example()
