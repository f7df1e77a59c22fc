"""Audits: they confirm a model that follows from its data, or name the first round that does not.

A model is changed in its file, with a digest and a checksum that fit, as a forger would do it.
"""

from __future__ import annotations

import functools
import json
import math

import numpy as np
import pytest
from audited_fits import FITS, Fit
from awkward_tables import DATA, made
from backends import Backend
from classifiers import KINDS, drawn
from forged_files import forged

from gpustump import (
    AdaBoostClassifier,
    Audit,
    DecisionStumpClassifier,
    LogitBoostClassifier,
    StumpEnsemble,
    audit,
)
from gpustump.data.fingerprint import fingerprint_of
from gpustump.estimators.audit_result import Side

EVERY_FIT = pytest.mark.parametrize("name", FITS)
fit_named = functools.cache(lambda name: FITS[name]())


def audited(fit: Fit, model=None, **how) -> Audit:
    model = fit.classifier.model_ if model is None else model
    return audit(model, *fit.data, **{**fit.more, **how})


@EVERY_FIT
def test_a_fresh_model_is_the_one_that_the_data_give_on_another_engine(name, monkeypatch):
    fit = fit_named(name)
    monkeypatch.setenv("GPUSTUMP_KERNELS", "reference")
    found = audited(fit)
    assert found.same
    assert found.end_derived
    assert found.n_rounds == sum(map(len, fit.classifier.model_.members))
    first, *_ = str(found).splitlines()
    digest = fit.classifier.model_.digest()
    assert first == f"result      the same, {found.n_rounds} rounds, digest {digest}"


@pytest.mark.filterwarnings("ignore:the fit made no round", "ignore:the sample weights are small")
@pytest.mark.parametrize("kind", ["discrete", "real", "newton"])
@pytest.mark.parametrize(("number", "table"), list(enumerate(sorted(DATA))))
def test_awkward_tables_are_audited(number, table, kind, monkeypatch):
    """Ties, constants, missing values, extreme weights."""
    data = made(table)
    X, y, weights = data.X, data.y, data.sample_weight
    classifier = KINDS[kind](n_estimators=6, learning_rate=0.7).fit(X, y, weights)
    monkeypatch.setenv("GPUSTUMP_KERNELS", ("reference", "coded")[number % 2])
    assert audit(classifier.model_, X, y, weights).same


@pytest.mark.parametrize("name", ["discrete of 3 classes", "newton-shared", "early stopping"])
def test_every_library_says_the_same(backend: Backend, name):
    fit = fit_named(name)
    assert audited(Fit(fit.classifier, tuple(map(backend.asarray, fit.data)), fit.more)).same


def changed(fit: Fit, tmp_path, change) -> StumpEnsemble:
    """The model of a fit after a change of its document, with a digest and checksum that fit."""
    fit.classifier.model_.save(tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    change(document)
    (tmp_path / "model.json").write_text(forged(document))
    return StumpEnsemble.load(tmp_path / "model.json")


def in_row(run: int, number: int, field: str, change):
    """A change of one number of a round."""

    def apply(document):
        place = document["model"]["stump_fields"].index(field)
        row = document["model"]["members"][run][number]
        row[place] = change(row[place])

    return apply


def check_found(found: Audit, what: str, number: int, run: int = 0) -> None:
    """The difference is found in its round, and the data's side is what the fit recorded."""
    difference = found.difference
    assert (difference.what, difference.number, difference.run) == (what, number, run)
    assert not found.same
    assert isinstance(difference.file, Side)
    assert isinstance(difference.data, Side)
    assert f"round {number}" in str(found)
    assert repr(difference.data.score) in str(found)


THRESHOLDS = ["discrete", "discrete of 3 classes", "real-shared", "newton", "class_weight"]
THRESHOLDS += ["quantity", "counts with exposures"]


@pytest.mark.parametrize("name", THRESHOLDS)
@pytest.mark.parametrize("number", [0, 3, 7])
def test_a_changed_threshold_is_found_in_its_round(name, number, tmp_path):
    fit = fit_named(name)
    run = len(fit.classifier.model_.members) - 1
    model = changed(fit, tmp_path, in_row(run, number, "threshold", lambda t: float(t) + 0.3))
    found = audited(fit, model)
    check_found(found, "stump", number + 1, run)
    expected = fit.classifier.rounds_[run][number]
    assert found.difference.data.hypothesis == expected.stump
    assert found.difference.data.vote == expected.vote


@pytest.mark.parametrize("name", ["discrete", "real"])
def test_a_threshold_that_is_off_by_one_bit_is_found(name, tmp_path):
    fit = fit_named(name)
    off = in_row(0, 2, "threshold", lambda t: math.nextafter(t, math.inf))
    check_found(audited(fit, changed(fit, tmp_path, off)), "stump", 3)


def test_the_other_end_of_an_interval_is_found_in_its_round(tmp_path):
    fit = fit_named("intervals")
    stumps = fit.classifier.model_.members[0].hypotheses
    number = next(k for k, one in enumerate(stumps[:-1]) if len(one.thresholds) == 2)
    off = in_row(0, number, "low", lambda t: math.nextafter(t, math.inf))
    check_found(audited(fit, changed(fit, tmp_path, off)), "stump", number + 1)


def test_a_category_that_no_sample_has_is_found_in_its_round(tmp_path):
    fit = fit_named("categories, newton")
    hypotheses = fit.classifier.model_.members[0].hypotheses
    number = next(k for k, one in enumerate(hypotheses[:-1]) if hasattr(one, "left"))

    def add(document):
        document["model"]["members"][0][number][-1] += " 77"

    check_found(audited(fit, changed(fit, tmp_path, add)), "stump", number + 1)


def test_swapped_sides_of_a_set_are_found_in_their_round(tmp_path):
    """It says the same of every sample, and the file is another one."""
    fit = fit_named("categories")
    hypotheses = fit.classifier.model_.members[0].hypotheses
    number = next(k for k, one in enumerate(hypotheses[:-1]) if hasattr(one, "left"))

    def swap(document):
        row = document["model"]["members"][0][number]
        row[-2:] = row[:-3:-1]
        at = document["model"]["stump_fields"].index("polarity")
        row[at] = -row[at]

    check_found(audited(fit, changed(fit, tmp_path, swap)), "stump", number + 1)


@pytest.mark.parametrize("name", ["discrete", "newton", "real-shared"])
def test_another_feature_is_found_in_its_round(name, tmp_path):
    fit = fit_named(name)
    model = changed(fit, tmp_path, in_row(0, 4, "feature", lambda j: (j + 1) % 4))
    check_found(audited(fit, model), "stump", 5)


@pytest.mark.parametrize("field", ["polarity", "missing"])
@pytest.mark.parametrize("name", ["discrete", "intervals", "monotone", "categories"])
def test_another_sign_is_found_in_its_round(name, field, tmp_path):
    fit = fit_named(name)
    model = changed(fit, tmp_path, in_row(0, 2, field, lambda sign: -sign))
    check_found(audited(fit, model), "stump", 3)


@pytest.mark.parametrize(
    ("name", "field"),
    [("discrete", "vote"), ("real", "missing"), ("newton-shared", "right 2"), ("bags", "vote")],
)
def test_a_vote_that_is_off_by_one_unit_is_found_in_its_round(name, field, tmp_path):
    fit = fit_named(name)
    n_bags = fit.classifier.model_.n_bags
    model = changed(fit, tmp_path, in_row(0, 3 * n_bags, field, lambda vote: vote + 2.0**-36))
    found = audited(fit, model)
    check_found(found, "votes", 4)
    assert found.difference.file.hypothesis == found.difference.data.hypothesis


def test_an_error_that_is_off_by_one_bit_is_found_in_its_round(tmp_path):
    fit = fit_named("discrete")
    off = in_row(0, 3, "error", lambda error: math.nextafter(error, 1.0))
    check_found(audited(fit, changed(fit, tmp_path, off)), "error", 4)


@pytest.mark.parametrize("name", ["categories", "categories, newton", "categories, shared"])
def test_another_set_of_categories_is_found_in_its_round(name, tmp_path):
    fit = fit_named(name)
    hypotheses = fit.classifier.model_.members[0].hypotheses
    number = next(k for k, one in enumerate(hypotheses) if hasattr(one, "left"))

    def swap(document):
        row = document["model"]["members"][0][number]
        left, right = row[-2].split(), row[-1].split()
        row[-2:] = [" ".join(sorted([*left, right[0]], key=int)), " ".join(right[1:])]

    check_found(audited(fit, changed(fit, tmp_path, swap)), "stump", number + 1)


@pytest.mark.parametrize("name", ["discrete", "real", "newton-shared"])
def test_rounds_in_another_order_are_found_at_the_first_of_them(name, tmp_path):
    fit = fit_named(name)
    stumps = fit.classifier.model_.members[0].hypotheses
    number = next(k for k in range(3, 8) if stumps[k].thresholds != stumps[2].thresholds)

    def swap(document):
        rows = document["model"]["members"][0]
        rows[2], rows[number] = rows[number], rows[2]

    check_found(audited(fit, changed(fit, tmp_path, swap)), "stump", 3)


@pytest.mark.parametrize("name", ["newton", "newton-shared", "bags, 3 classes", "quantity"])
def test_another_constant_is_found_before_the_first_round(name, tmp_path):
    fit = fit_named(name)

    def raise_it(document):
        document["model"]["constants"][0][0] += 2.0**-36
        if "bags" in document:
            document["bags"]["constants"][0][0][0] += 2.0**-35

    found = audited(fit, changed(fit, tmp_path, raise_it))
    assert (found.difference.what, found.difference.number) == ("constant", 0)
    assert found.difference.file != found.difference.data
    assert repr(found.difference.data[0]) in str(found)


def test_a_constant_of_the_average_that_the_bags_do_not_make_is_found_by_the_digest(tmp_path):
    fit = fit_named("bags, 3 classes")

    def raise_it(document):
        document["model"]["constants"][0][0] += 2.0**-36

    found = audited(fit, changed(fit, tmp_path, raise_it))
    assert found.difference.what == "digest"
    assert found.difference.data == fit.classifier.model_.digest()


@pytest.mark.parametrize("name", ["bags", "glass box"])
def test_a_changed_bag_is_named(name, tmp_path):
    fit = fit_named(name)
    model = changed(fit, tmp_path, in_row(0, 1, "threshold", lambda t: t + 0.3))
    found = audited(fit, model)
    check_found(found, "stump", 1)
    assert found.difference.bag == 1
    assert "bag 2" in str(found)


@pytest.mark.parametrize("name", ["discrete", "newton-shared", "early stopping", "X_val"])
def test_a_model_that_lacks_its_last_round_ends_too_early(name, tmp_path):
    fit = fit_named(name)
    model = changed(fit, tmp_path, lambda document: document["model"]["members"][0].pop())
    found, n_rounds = audited(fit, model), len(fit.classifier.rounds_[0])
    assert (found.difference.what, found.difference.number) == ("end", n_rounds)
    assert found.difference.file is None
    assert found.difference.data.hypothesis == fit.classifier.rounds_[0][-1].stump
    assert "which the file does not have" in str(found)


def test_a_longer_run_than_the_parameters_allow_is_found():
    fit = fit_named("discrete")
    longer = AdaBoostClassifier(n_estimators=9).fit(*fit.data)
    found = audited(fit, longer.model_, estimator=AdaBoostClassifier(n_estimators=8))
    assert (found.difference.what, found.difference.number) == ("end", 9)
    assert found.difference.data is None
    assert found.difference.reason == "limit"
    assert "the most rounds that the parameters allow" in str(found)


def test_rounds_after_the_end_of_early_stopping_are_found():
    fit = fit_named("early stopping")
    parameters = fit.classifier.get_params()
    whole = LogitBoostClassifier(**parameters | {"n_iter_no_change": 20}).fit(*fit.data)
    n_kept = fit.classifier.n_iter_
    assert whole.n_iter_ > n_kept
    found = audited(fit, whole.model_, estimator=fit.classifier)
    assert (found.difference.what, found.difference.number) == ("end", n_kept + 1)
    assert found.difference.reason == "early"


def test_a_fit_with_a_checkpoint_records_the_fingerprint_that_it_knows(tmp_path):
    X, y = drawn(n_samples=60)
    weights = np.linspace(0, 1, 60)
    how = {"n_estimators": 3, "checkpoint": tmp_path / "run.json"}
    model = LogitBoostClassifier(**how).fit(X, y, weights).model_
    assert model.details["fingerprint"] == fingerprint_of(X, y, weights).as_details()
    assert audit(model, X, y, weights).data_differences == ()
    (text,) = audit(model, X, y, weights + 1).data_differences
    assert text.startswith("the sample weights differ")


def test_a_changed_cell_is_found_by_the_fingerprint_and_in_the_rounds(tmp_path):
    fit = fit_named("discrete")
    X, y = fit.data
    print_of = fingerprint_of(X, y).as_details()
    model = changed(fit, tmp_path, lambda own: own["details"].update(fingerprint=print_of))
    assert audit(model, X, y).data_differences == ()
    other = X.copy()
    worst = fit.classifier.rounds_[0][0].stump
    values = other[:, worst.feature]
    values[np.nanargmin(np.abs(values - worst.threshold))] = worst.threshold + 0.01
    found = audit(model, other, y)
    assert found.data_differences == (f"the values of feature {worst.feature} differ",)
    assert found.difference.number == 1
    assert f"not those of the fit: the values of feature {worst.feature}" in str(found)


def test_data_that_differ_where_no_threshold_is_give_the_same_model(tmp_path):
    """The digest decides; the difference of the fingerprints is only reported."""
    fit = fit_named("discrete")
    X, y = fit.data
    print_of = fingerprint_of(X, y).as_details()
    model = changed(fit, tmp_path, lambda own: own["details"].update(fingerprint=print_of))
    other = X.copy()
    other[np.nanargmax(other[:, 0]), 0] += 1.0
    found = audit(model, other, y)
    assert found.same
    assert found.data_differences == ("the values of feature 0 differ",)


def test_other_classes_and_features_are_found():
    fit = fit_named("discrete")
    X, y = fit.data
    model = fit.classifier.model_
    assert audit(model, X, y.astype(bool)).difference.what == "classes"
    assert audit(model, X, y + 1).difference.what == "classes"
    assert audit(model, X[:, :3], y).difference.what == "features"


def test_another_kind_of_votes_is_found():
    fit = fit_named("discrete")
    found = audited(fit, estimator=AdaBoostClassifier(n_estimators=8, votes="real"))
    assert found.difference.what == "kind"
    assert "the kind of votes" in str(found)


def test_frames_are_audited_by_their_columns_names_and_categories(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = drawn(2)
    frame = pandas.DataFrame(X, columns=["height", "width", "age", "price"])
    frame["width"] = np.where(X[:, 1] > 0.5, "wide", np.where(X[:, 1] > -0.5, "usual", "small"))
    fit = Fit(
        LogitBoostClassifier(n_estimators=6, categorical_features="from_dtype").fit(frame, y),
        (frame, y),
    )
    model = fit.classifier.model_
    assert audited(fit).same
    renamed = frame.rename(columns={"age": "years"})
    assert audit(model, renamed, y).difference.what == "names"

    def swap(document):
        values = document["details"]["encoding"]["columns"][1]["values"]
        values.reverse()

    assert audited(fit, changed(fit, tmp_path, swap)).difference.what == "categories"


def test_a_single_stump_is_audited():
    X, y = drawn(3)
    model = DecisionStumpClassifier().fit(X, y).model_
    assert audit(model, X, y).same
    assert not audit(model, X + (y == 2)[:, np.newaxis], y).same


def test_rows_that_were_passed_to_fit_decide_the_end_only():
    fit = fit_named("X_val")
    found = audit(fit.classifier.model_, *fit.data)
    assert found.same
    assert not found.end_derived
    assert "needs X_val and y_val" in str(found)


def test_an_end_that_a_callback_decided_is_not_derived():
    X, y = drawn(2)
    classifier = AdaBoostClassifier(n_estimators=9, callback=lambda record: record.number == 3)
    found = audit(classifier.fit(X, y).model_, X, y)
    assert found.same
    assert not found.end_derived
    assert "a callback decided it" in str(found)


def test_a_warm_start_with_other_parameters_is_noted():
    X, y = drawn(2)
    classifier = AdaBoostClassifier(n_estimators=3, warm_start=True).fit(X, y)
    model = classifier.set_params(n_estimators=6, learning_rate=0.5).fit(X, y).model_
    found = audit(model, X, y)
    assert found.difference.number == 1
    assert "went on from an earlier one" in str(found)


def test_a_model_without_a_record_needs_its_estimator(tmp_path):
    fit = fit_named("bags")
    model = changed(fit, tmp_path, lambda own: own["details"].clear())
    with pytest.raises(ValueError, match="holds no record of its estimator"):
        audited(fit, model)
    estimator = AdaBoostClassifier(n_bags=3, n_estimators=5)
    with pytest.raises(ValueError, match="random_state of the fit"):
        audited(fit, model, estimator=estimator)
    again = estimator.set_params(random_state=4).fit(*fit.data)
    model = changed(Fit(again, ()), tmp_path, lambda own: own["details"].clear())
    assert audited(fit, model, estimator=estimator).same
    with pytest.raises(ValueError, match="3 bags, but its estimator makes 1"):
        audited(fit, model, estimator=AdaBoostClassifier())


def test_a_model_of_the_command_line_says_how_to_audit_it(tmp_path):
    fit = fit_named("discrete")
    model = changed(fit, tmp_path, lambda own: own.update(details={"training": {}}))
    with pytest.raises(ValueError, match="gpustump audit MODEL DATA"):
        audited(fit, model)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda own: own.update(name="os.system"), "estimator must be one of"),
        (lambda own: own.update(name=["x"]), "estimator must be one of"),
        (lambda own: own.update(parameters=[1]), "parameters must be an object"),
        (lambda own: own["parameters"].update(device="cuda"), "no parameter 'device'"),
        (lambda own: own["parameters"].update(learning_rate="fast"), "learning_rate must be"),
        (
            lambda own: own["parameters"].update(learning_rate=[[]]),
            "learning_rate has a value of a wrong type",
        ),
        (lambda own: own["parameters"].update(learning_rate=10**400), "learning_rate must be"),
        (lambda own: own["parameters"].update(n_estimators=0.5), "n_estimators must be"),
        (lambda own: own["parameters"].update(class_weight=[1, 2]), "class_weight must be a list"),
        (lambda own: own["parameters"].update(class_weight=[[0, "a"]]), "class_weight"),
        (
            lambda own: own["parameters"].update(class_weight={"0": 1}),
            "class_weight has a value of a wrong type",
        ),
        (lambda own: own["parameters"].update(categorical_features=[[0]]), "categorical_features"),
        (lambda own: own["parameters"].update(monotonic_cst=["up"]), "monotonic_cst"),
        (lambda own: own["parameters"].update(monotonic_cst=7), "monotonic_cst"),
        (lambda own: own["parameters"].update(n_bags=10**9), "bags"),
        (lambda own: own.update(seeds=[-1]), "seeds must be"),
        (lambda own: own.update(seeds=[1, 2]), "2 seeds for 1 bags"),
        (lambda own: own.update(passed="yes"), "passed must be true or false"),
    ],
)
def test_a_record_that_no_fit_made_is_refused(change, problem, tmp_path):
    fit = fit_named("early stopping")
    model = changed(fit, tmp_path, lambda own: change(own["details"]["estimator"]))
    with pytest.raises(ValueError, match=problem):
        audited(fit, model)


@pytest.mark.parametrize("value", [7, {}, {"rows": 3}, None])
def test_a_fingerprint_that_is_none_is_refused(value, tmp_path):
    fit = fit_named("discrete")
    model = changed(fit, tmp_path, lambda own: own["details"].update(fingerprint=value))
    with pytest.raises(ValueError, match="fingerprint"):
        audited(fit, model)


def test_a_record_of_parameters_that_a_file_cannot_hold_is_left_out(tmp_path):
    X, y = drawn(2)
    model = AdaBoostClassifier(n_estimators=2, validation_fraction=object()).fit(X, y).model_
    assert model.details == {}
    model.save(tmp_path / "model.json")


def test_a_model_is_audited_from_its_file(tmp_path):
    fit = fit_named("real")
    fit.classifier.model_.save(tmp_path / "model.json")
    assert audit(tmp_path / "model.json", *fit.data).same


def test_the_dtype_of_the_fit_decides_the_thresholds():
    X, y = drawn(2)
    model = AdaBoostClassifier(n_estimators=8).fit(X.astype(np.float32), y).model_
    rounded = X.astype(np.float32).astype(np.float64)
    assert AdaBoostClassifier(n_estimators=8).fit(rounded, y).model_ != model
    found = audit(model, rounded, y)
    assert found.same
    assert not found.notes
    found = audit(model, X, y)
    assert found.same
    assert "rounded to float32" in str(found)


def test_what_was_known_beforehand_decides_the_model():
    fit = fit_named("counts with exposures")
    found = audit(fit.classifier.model_, *fit.data)
    assert found.difference.what == "constant"
    with pytest.raises(ValueError, match="exposure is for counts"):
        audited(fit_named("costs"), exposure=fit.more["exposure"])


def test_a_fingerprint_of_a_quantity_is_compared(tmp_path):
    fit = fit_named("quantity")
    print_of = fingerprint_of(*fit.data, of_quantity=True).as_details()
    model = changed(fit, tmp_path, lambda own: own["details"].update(fingerprint=print_of))
    X, y, weights = fit.data
    assert audit(model, X, y, weights).data_differences == ()
    other = np.where(np.arange(len(y)) == 5, y + 1.0, y)
    found = audit(model, X, other, weights)
    assert found.data_differences == ("the target differs",)
    assert not found.same
