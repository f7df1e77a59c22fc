"""`python -m bench quantities`: real tables, equal folds for all, errors of held-out samples."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold

pytest.importorskip("msgspec")
pytest.importorskip("tabulate")

from made_up import machine

from bench import quantities
from bench.__main__ import main
from bench.data import MissingDataError
from bench.quantities import QuantityFold, QuantityResult, QuantityResults, error_of, on_table
from bench.quantity_tables import TABLES, QuantityTable
from bench.report import page_of, read
from bench.tables import markdown


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_of_the_kind_that_its_loss_is_for(name):
    try:
        X, y, loss = TABLES[name]()
    except MissingDataError as error:
        pytest.skip(str(error))
    assert X.dtype == np.float32
    assert X.shape == (len(y), X.shape[1])
    assert 240 <= len(y) <= 5000
    assert X.shape[1] > 1
    assert np.isfinite(y).all()
    if loss == "poisson":
        assert (y >= 0).all()
        assert (y == np.round(y)).all()
    if loss == "gamma":
        assert (y > 0).all()
    told = [abs(np.corrcoef(np.nan_to_num(column), y)[0, 1]) for column in X.T if column.std() > 0]
    assert max(told) < 0.99  # no column is the target itself


def test_errors_are_shares_of_those_of_simple_predictions():
    true, predicted = np.asarray([1.0, 2.0, 6.0]), np.asarray([2.0, 2.0, 4.0])
    assert error_of(true, predicted, 3.0, "squared_error") == pytest.approx(
        np.sqrt(5 / 3) / np.std([1, 2, 6])
    )
    own = 2 * (true * np.log(true / predicted) - true + predicted).sum()
    simple = 2 * (true * np.log(true / 2.5) - true + 2.5).sum()
    assert error_of(true, predicted, 2.5, "poisson") == pytest.approx(own / simple)
    own = 2 * (np.log(predicted / true) + true / predicted - 1).sum()
    simple = 2 * (np.log(2.5 / true) + true / 2.5 - 1).sum()
    assert error_of(true, predicted, 2.5, "gamma") == pytest.approx(own / simple)


def test_all_contenders_have_the_same_folds_and_a_failure_is_reported(monkeypatch):
    seen: dict[str, list[np.ndarray]] = {}

    class Mean:
        def __init__(self, name):
            self.name = name

        def fit(self, X, y):
            if self.name == "broken":
                raise RuntimeError("out of order\nmore")
            seen.setdefault(self.name, []).append(y)
            self.mean = y.mean()
            return self

        def predict(self, X):
            return np.full(len(X), self.mean)

    made = {name: (lambda loss, name=name: Mean(name)) for name in ("a", "b", "broken")}
    monkeypatch.setattr(quantities, "CONTENDERS", made)
    X, y = np.arange(30.0)[:, np.newaxis], np.arange(30.0) + 1.0
    found = on_table("own", QuantityTable(X, y, "gamma"), ["a", "b", "broken"], 3)
    wanted = [y[train] for train, _ in KFold(3, shuffle=True, random_state=0).split(X)]
    for name in ("a", "b"):
        assert [own.tolist() for own in seen[name]] == [own.tolist() for own in wanted]
    one, other, broken = found.results
    assert [fold.error for fold in one.folds] == [fold.error for fold in other.folds]
    assert [fold.error for fold in one.folds] == pytest.approx([1.0] * 3)  # the mean itself
    assert (broken.folds, broken.reason) == ((), "RuntimeError: out of order")


def test_means_are_over_the_tables_that_all_contenders_did():
    def result(name, *errors, reason=None):
        return QuantityResult(name, tuple(QuantityFold(e, 10 * e) for e in errors), reason)

    ebm = quantities.EBM
    tables = (
        QuantityResults(
            "one", 300, 4, "squared_error", (result("a", 0.25, 0.75), result(ebm, 0.5, 1.5))
        ),
        QuantityResults(
            "two", 400, 5, "squared_error", (result("a", 0.1), result(ebm, reason="no"))
        ),
    )
    found = quantities.Quantities(
        "quantities", "python -m bench quantities", "2026-01-01T00:00:00Z", 1.0, machine(), 2,
        tables,
    )  # fmt: skip
    text = quantities.page(found)
    columns = ["", "error", "fit, s", "x EBM's"]
    rows = [["a", "0.5000", "5.00", "0.500"], [ebm, "1.0000", "10.0", "1.00"]]
    assert "means over 1 of 2 tables" in text
    assert markdown(columns, rows) in text
    assert "two, 400 x 5" in text
    assert "two, 400 x 5" not in quantities.page(found, only_means=True)


def test_a_run_is_written_and_shown(tmp_path, capsys):
    target = tmp_path / "own.json"
    asked = ["--sets", "diabetes", "--folds", "2", "--only", "gpustump stumps"]
    asked += ["scikit-learn stumps", "-o", str(target)]
    assert main(["quantities", *asked]) == 0
    shown = capsys.readouterr().out
    assert page_of(target) in shown
    (table,) = read(target).tables
    assert (table.name, table.samples, table.features) == ("diabetes", 442, 10)
    for own in table.results:
        assert len(own.folds) == 2
        assert all(0.5 < fold.error < 1.0 for fold in own.folds)
