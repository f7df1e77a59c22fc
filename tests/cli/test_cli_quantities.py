"""The command line on quantities: `train` chooses the loss, and all commands know the models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command import command_fixture, numbers, parts  # noqa: F401
from sklearn.metrics import (
    mean_absolute_error,
    mean_gamma_deviance,
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_squared_error,
    r2_score,
)

from gpustump import (
    AdaBoostClassifier,
    LogitBoostClassifier,
    StumpBoostingRegressor,
    StumpEnsemble,
)

polars = pytest.importorskip("polars")

N_ROWS = 300


def frame() -> polars.DataFrame:
    """Claims of people, with the years that they were insured, and costs."""
    random = np.random.default_rng(4)
    age = random.integers(18, 80, N_ROWS)
    years = np.round(random.uniform(0.1, 3.0, N_ROWS), 2)
    rate = np.exp(0.5 - 0.02 * (age - 40))
    return polars.DataFrame(
        {
            "age": age,
            "size": np.round(random.normal(170, 10, N_ROWS), 1),
            "years": years,
            "known": np.round(np.log(years), 3),
            "claims": random.poisson(rate * years),
            "cost": np.round(np.exp(5 + 0.02 * age) * random.gamma(2.0, 0.5, N_ROWS), 2) + 1.0,
            "weight": random.integers(1, 4, N_ROWS),
            "code": random.integers(0, 3, N_ROWS),
        }
    )


FEATURES = ["age", "size"]
OTHERS = [name for name in frame().columns if name not in FEATURES]


@pytest.fixture
def table(command):
    found = frame()
    found.write_csv("table.csv")
    return found


def trained(command, target: str, *options: object):
    """The outcome of a training on the two features."""
    named = {target, *map(str, options)}
    dropped = ",".join(name for name in OTHERS if name not in named)
    asked = ("train", "table.csv", "--target", target, "--drop", dropped, "--rounds", 30)
    return command.succeeds(*asked, *options)


def both(table: polars.DataFrame, by: str | None = None) -> list[polars.DataFrame]:
    """The rows that the command trains on, and those that it holds out, of classes in a column."""
    return [table[own] for own in parts(len(table), None if by is None else table[by].to_numpy())]


def test_numbers_with_fractions_train_a_regressor_whose_figures_are_scikit_learns(command, table):
    outcome = trained(command, "cost")
    train, test = both(table)
    reg = StumpBoostingRegressor(n_estimators=30, device="cpu").fit(train[FEATURES], train["cost"])
    assert outcome.row("digest") == reg.model_.digest()
    assert StumpEnsemble.load("model.json") == reg.model_
    true, predicted = test["cost"], reg.predict(test[FEATURES])
    mean = np.full(len(test), true.mean())
    root = [np.sqrt(mean_squared_error(true, own)) for own in (predicted, mean)]
    assert numbers(outcome.row("held-out RMSE")) == pytest.approx(root, rel=1e-5)
    absolute = [mean_absolute_error(true, own) for own in (predicted, mean)]
    assert numbers(outcome.row("held-out MAE")) == pytest.approx(absolute, rel=1e-5)
    assert numbers(outcome.row("held-out R2"))[0] == pytest.approx(
        r2_score(true, predicted), abs=1e-4
    )
    of_training = np.sqrt(mean_squared_error(train["cost"], reg.predict(train[FEATURES])))
    assert numbers(outcome.row("training RMSE"))[0] == pytest.approx(of_training, rel=1e-5)
    assert outcome.row("estimator") == "StumpBoostingRegressor"
    assert outcome.row("target").startswith("a quantity, from ")


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_deviances_and_totals_are_those_of_the_held_out_rows(command, table, loss):
    target = "claims" if loss == "poisson" else "cost"
    outcome = trained(command, target, "--loss", loss, "--weight", "weight")
    train, test = both(table)
    reg = StumpBoostingRegressor(loss=loss, n_estimators=30, device="cpu")
    reg.fit(train[FEATURES], train[target], train["weight"].cast(float))
    assert outcome.row("digest") == reg.model_.digest()
    deviance = mean_poisson_deviance if loss == "poisson" else mean_gamma_deviance
    weights, predicted = test["weight"].to_numpy(), reg.predict(test[FEATURES])
    mean = np.full(len(test), np.average(test[target], weights=weights))
    wanted = [deviance(test[target], own, sample_weight=weights) for own in (predicted, mean)]
    assert numbers(outcome.row("held-out deviance")) == pytest.approx(wanted, rel=1e-5)
    assert outcome.row("held-out deviance").endswith(", weighted")
    explained = numbers(outcome.row("held-out D2"))[0]
    assert explained == pytest.approx(1.0 - wanted[0] / wanted[1], abs=1e-4)


@pytest.mark.parametrize("options", [(), ("--glass-box", "--bags", 2)])
def test_a_quantile_is_predicted_and_its_figures_are_those_of_the_held_out_rows(
    command, table, options
):
    outcome = trained(command, "cost", "--quantile", 0.8, *options)
    train, test = both(table)
    reg = StumpEnsemble.load("model.json")
    predicted, true = reg.predict(test[FEATURES].to_numpy()), test["cost"].to_numpy()
    alone = np.full(len(test), np.quantile(true, 0.8, method="inverted_cdf"))
    wanted = [mean_pinball_loss(true, own, alpha=0.8) for own in (predicted, alone)]
    assert numbers(outcome.row("held-out pinball")) == pytest.approx(wanted, rel=1e-5)
    below = outcome.row("held-out share at or below")
    assert below == f"{np.mean(true <= predicted):.4f}, asked for 0.8"
    if not options:
        own = StumpBoostingRegressor(loss="quantile", quantile=0.8, n_estimators=30)
        digest = own.fit(train[FEATURES], train["cost"]).model_.digest()
        assert outcome.row("digest") == digest
    assert "\npairs" not in outcome.out


def test_an_exposure_means_counts_and_predict_finds_its_column(command, table):
    outcome = trained(command, "claims", "--exposure", "years")
    train, test = both(table)
    reg = StumpBoostingRegressor(loss="poisson", n_estimators=30, device="cpu")
    reg.fit(train[FEATURES], train["claims"], exposure=train["years"])
    assert outcome.row("digest") == reg.model_.digest()
    rates, mean = reg.predict(test[FEATURES]), test["claims"].sum() / test["years"].sum()
    wanted = [
        mean_poisson_deviance(test["claims"] / test["years"], own, sample_weight=test["years"])
        for own in (rates, np.full(len(test), mean))
    ]
    assert numbers(outcome.row("held-out deviance")) == pytest.approx(wanted, rel=1e-5)
    expected = float((rates * test["years"].to_numpy()).sum())
    totals = numbers(outcome.row("held-out total"))
    assert totals == pytest.approx([expected, test["claims"].sum()], rel=1e-5)
    assert json.loads(Path("model.json").read_text())["details"]["exposure"] == "years"
    for options, exposure in (((), table["years"]), (("--exposure", "age"), table["age"])):
        command.succeeds("predict", "model.json", "table.csv", "-o", "out.npz", *options)
        with np.load("out.npz") as found:
            assert found.files == ["row", "prediction"]
            of_rows = reg.predict(table[FEATURES], exposure=exposure)
            assert np.array_equal(found["prediction"], of_rows)
    table.drop("years").write_csv("other.csv")
    outcome = command("predict", "model.json", "other.csv", "-o", "rates.csv")
    assert outcome.code == 0
    assert "other.csv: there is no 'years'; it is 1 for every row" in outcome.err
    found = polars.read_csv("rates.csv")["prediction"].to_numpy()
    assert np.array_equal(found, reg.predict(table[FEATURES]))
    table[:0].write_csv("nobody.csv")
    assert command.succeeds("predict", "model.json", "nobody.csv").out == "row,prediction\n"


def test_initial_scores_of_a_quantity_are_added_in_training_and_in_predictions(command, table):
    outcome = trained(command, "cost", "--loss", "gamma", "--init-score", "known")
    train, _ = both(table)
    reg = StumpBoostingRegressor(loss="gamma", n_estimators=30, device="cpu")
    reg.fit(train[FEATURES], train["cost"], init_score=train["known"])
    assert outcome.row("digest") == reg.model_.digest()
    command.succeeds("predict", "model.json", "table.csv", "-o", "out.npz")
    with np.load("out.npz") as found:
        wanted = reg.predict(table[FEATURES], init_score=table["known"])
        assert np.array_equal(found["prediction"], wanted)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_initial_scores_of_two_classes_are_added_everywhere(command, table, loss):
    labels = np.where(table["claims"] > 0, "yes", "no")
    table = table.with_columns(any=polars.Series(labels))
    table.write_csv("table.csv")
    options = ("--loss", loss, "--init-score", "known")
    outcome = trained(command, "any", *options, "--drop", ",".join(set(OTHERS) - {"known"}))
    train, held_out = both(table, "any")
    kind = LogitBoostClassifier if loss == "logistic" else AdaBoostClassifier
    clf = kind(n_estimators=30, device="cpu")
    clf.fit(train[FEATURES], train["any"], init_score=train["known"])
    assert outcome.row("digest") == clf.model_.digest()
    right = clf.score(held_out[FEATURES], held_out["any"], init_score=held_out["known"])
    assert f"{right:.4f}" in outcome.row("held-out accuracy")
    command.succeeds("predict", "model.json", "table.csv", "--proba", "-o", "out.npz")
    with np.load("out.npz") as found:
        wanted = clf.predict_proba(table[FEATURES], init_score=table["known"])
        assert np.array_equal(found["probability"], wanted)
    assert command("audit", "model.json", "table.csv").code == 0


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("claims", "--exposure years"),
        ("cost", "--loss squared_error --init-score known"),
        ("cost", "--loss gamma --init-score known --bags 2"),
    ],
)
def test_a_row_is_explained_with_what_is_known_of_it(command, table, target, options):
    trained(command, target, *options.split())
    command.succeeds("predict", "model.json", "table.csv", "-o", "out.npz")
    with np.load("out.npz") as found:
        predicted = found["prediction"][6]
    outcome = command.succeeds(
        "explain", "model.json", "table.csv", "--row", 7, "--plot", "row.svg"
    )
    assert float(outcome.row("predicted")) == pytest.approx(predicted, rel=1e-4)
    known = table["known"][6] if "init" in options else np.log(table["years"][6])
    assert float(outcome.row("(known beforehand)").split()[0]) == pytest.approx(known, abs=0.006)
    assert "known beforehand" in Path("row.svg").read_text()
    assert ("log of the prediction\n" in outcome.out) == ("squared" not in options)
    one = ("explain", "model.json", "table.csv", "--row", 3, "--class", "a")
    assert "--class is for classes" in command.refuses(*one)
    command.succeeds("explain", "model.json", "table.csv", "-o", "parts.npz")
    X, model = table[FEATURES].to_numpy().astype(np.float64), StumpEnsemble.load("model.json")
    with np.load("parts.npz") as found:  # of the score without what is known
        assert found.files == ["contributions", "score", "features"]
        assert np.array_equal(found["contributions"], model.explain(X))
        assert np.array_equal(found["score"], model.decision_function(X))


def test_options_say_whether_few_whole_numbers_are_classes(command, table):
    trained(command, "code", "--votes", "real")
    assert StumpEnsemble.load("model.json").classes == (0, 1, 2)
    trained(command, "code", "--loss", "squared_error")
    assert StumpEnsemble.load("model.json").is_regression


REFUSED = {
    ("cost", "--votes real"): "Unknown label type: continuous",
    ("cost", "--loss poisson --votes real"): "--votes is for classes, not for --loss poisson",
    ("cost", "--loss gamma --exposure years"): "--exposure is for counts, --loss poisson",
    ("cost", "--glass-box --loss exponential"): "takes no --loss exponential",
    ("claims", "--loss gamma"): "y must be above 0 for loss='gamma'; got 0.0 at index",
    ("claims", "--exposure claims"): "--exposure and --target both name 'claims'",
    ("claims", "--exposure year"): "has no column 'year'",
    ("claims", "--exposure text"): "which is not numbers, but of type text",
    ("claims", "--exposure zero"): "exposure must be above 0; got 0.0 at index 0",
    ("text", "--loss gamma"): "holds text; a quantity, which options ask for, is numbers",
    ("text", "--exposure age"): "holds text; a quantity, which options ask for, is numbers",
    ("code", "--loss logistic --exposure age"): "--exposure is for counts",
    ("code", "--loss logistic --init-score age"): "must have a column for each of the 3 classes",
    ("infinite", ""): "y contains infinity, the first at index 7",
    ("cost", "--learning-rate 2"): "learning_rate must be at most 1 for a quantity",
}


def test_what_makes_no_sense_is_refused_and_nothing_is_written(command, table):
    rows = np.arange(N_ROWS)
    table.with_columns(
        text=polars.Series(np.where(rows % 2, "a", "b")),
        zero=polars.Series(np.minimum(rows, 1)),
        infinite=polars.Series(np.where(rows == 7, np.inf, rows + 0.5)),
    ).write_csv("table.csv")
    for (target, options), said in REFUSED.items():
        asked = ("train", "table.csv", "--target", target, *options.split())
        assert said in command.refuses(*asked)


def test_options_of_predict_are_for_models_that_have_them(command, table):
    trained(command, "cost")
    predict = ("predict", "model.json", "table.csv")
    message = command.refuses(*predict, "--exposure", "years")
    assert "exposure is for counts" in message
    trained(command, "cost", "--loss", "gamma", "--init-score", "known")
    for value in ("", "inf"):
        known = polars.Series([value, *["0.5"] * (N_ROWS - 1)])
        table.with_columns(known=known).write_csv("table.csv")
        assert "init_score must be finite" in command.refuses(*predict)
    trained(command, "code", "--loss", "logistic")
    message = command.refuses(*predict, "--init-score", "age")
    assert "must have a column for each of the 3 classes" in message
    assert "exposure is for counts" in command.refuses(*predict, "--exposure", "age")
