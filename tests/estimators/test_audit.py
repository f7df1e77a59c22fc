"""Audits: they confirm a model that follows from its data, or name the first round that does not.

A model is changed in its file, with a digest and a checksum that fit, as a forger would do it.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
import pytest
from audited_fits import FITS, Fit
from backends import Backend
from classifiers import drawn
from forged_files import document_of, forged
from scipy.sparse import csr_matrix

from gpustump import (
    AdaBoostClassifier,
    Audit,
    DecisionStumpClassifier,
    LogitBoostClassifier,
    StumpEnsemble,
    audit,
)
from gpustump.data.fingerprint import fingerprint_of
from gpustump.estimators.recorded import deciding_parameters

fit_named = functools.cache(lambda name: FITS[name].fitted())


def audited(fit: Fit, model=None, **how) -> Audit:
    model = fit.classifier.model_ if model is None else model
    return audit(model, *fit.data, **{**fit.more, **how})


@pytest.mark.parametrize("name", FITS)
def test_a_fresh_model_is_the_one_that_the_data_give_on_another_engine(name, monkeypatch):
    fit = fit_named(name)
    monkeypatch.setenv("GPUSTUMP_KERNELS", "reference")
    found = audited(fit)
    assert (found.difference, found.notes) == (None, ())
    n_rounds, digest = sum(map(len, found.model.members)), fit.classifier.model_.digest()
    assert found.derived.digest() == digest
    assert str(found).startswith(f"result      the same, {n_rounds} rounds, digest {digest}\n")


def test_every_library_and_a_file_say_the_same(backend: Backend, tmp_path):
    for name in ("newton-shared", "early stopping"):
        fit = fit_named(name)
        fit.classifier.model_.save(tmp_path / f"{name}.json")
        data = tuple(map(backend.asarray, fit.data))
        assert audited(Fit(None, data, fit.more), tmp_path / f"{name}.json").same


def saved(document, tmp_path) -> StumpEnsemble:
    """The model of a document, with a digest and checksum that fit."""
    (tmp_path / "model.json").write_text(forged(document))
    return StumpEnsemble.load(tmp_path / "model.json")


def changed(fit: Fit, tmp_path, change) -> StumpEnsemble:
    """The model of a fit after a change of its document."""
    document = document_of(fit.classifier.model_, tmp_path)
    change(document)
    return saved(document, tmp_path)


def in_row(place, field: str, change):
    """A change of one number of a round, the place-th or the first one that `place` accepts."""

    def apply(document):
        rows = document["model"]["members"][-1]
        at = document["model"]["stump_fields"].index(field)
        number = place if isinstance(place, int) else next(k for k in range(99) if place(rows[k]))
        rows[number][at] = change(rows[number][at])
        return number

    return apply


def bit_more(number):
    return math.nextafter(float(number), math.inf)


def unit_more(vote):
    return vote + 2.0**-36


def has_set(row) -> bool:
    return isinstance(row[-1], str) and bool(row[-1])


def with_another_set(document) -> int:
    rows = document["model"]["members"][-1]
    number = next(k for k, row in enumerate(rows) if has_set(row))
    left, right = rows[number][-2].split(), rows[number][-1].split()
    rows[number][-2:] = [" ".join(sorted([*left, right[0]], key=int)), " ".join(right[1:])]
    return number


def with_swapped_sides(document) -> int:
    """It says the same of every sample, and the file is another one."""
    rows = document["model"]["members"][-1]
    number = next(k for k, row in enumerate(rows) if has_set(row))
    rows[number][-2:] = rows[number][:-3:-1]
    rows[number][document["model"]["stump_fields"].index("polarity")] *= -1
    return number


def without_the_last(document) -> int:
    document["model"]["members"][-1].pop()
    return len(document["model"]["members"][-1])


STUMP, ERROR, VOTES = "another stump", "another error of the same stump", "other votes of the same"
HIGHER = in_row(3, "threshold", lambda threshold: float(threshold) + 0.3)
SHORTER = "which the file does not have"


CATEGORIES = "categories, newton"
CHANGES = [
    (["discrete", "discrete of 3 classes", "real-shared", "newton", "class_weight"], HIGHER, STUMP),
    (["quantity", "counts with exposures"], HIGHER, STUMP),
    (["discrete", "real"], in_row(0, "threshold", bit_more), STUMP),
    (["intervals"], in_row(lambda row: isinstance(row[1], float), "low", bit_more), STUMP),
    ([CATEGORIES], in_row(has_set, "other categories", lambda own: own + " 77"), STUMP),
    (["categories", CATEGORIES, "categories, shared"], with_another_set, STUMP),
    (["categories"], with_swapped_sides, STUMP),
    (["discrete", "newton-shared"], in_row(4, "feature", lambda j: (j + 1) % 4), STUMP),
    (["discrete", "intervals", "categories"], in_row(2, "polarity", lambda own: -own), STUMP),
    (["monotone"], in_row(2, "missing", lambda own: -own), STUMP),
    (["discrete"], in_row(3, "vote", unit_more), VOTES),
    (["real"], in_row(3, "missing", unit_more), VOTES),
    (["newton-shared"], in_row(3, "right 2", unit_more), VOTES),
    (["discrete"], in_row(3, "error", lambda error: math.nextafter(error, 1.0)), ERROR),
    (["discrete", "newton-shared", "early stopping", "X_val"], without_the_last, SHORTER),
]


@pytest.mark.parametrize(("names", "change", "what"), CHANGES)
def test_a_change_is_found_in_its_round_and_the_data_say_what_the_fit_recorded(
    names, change, what, tmp_path
):
    for name in names:
        fit = fit_named(name)
        document = document_of(fit.classifier.model_, tmp_path)
        number = change(document)
        found = audited(fit, saved(document, tmp_path))
        n_runs = len(found.model.members)
        of = f" of class {n_runs - 1}" if n_runs > 1 else ""
        assert found.difference.what.startswith(f"round {number + 1}{of}, {what}"), name
        assert f"differs: {found.difference.what}" in str(found)
        stump = fit.classifier.rounds_[-1][number].stump
        if not hasattr(stump, "left") and math.isfinite(stump.thresholds[0]):
            assert repr(stump.thresholds[0]) in found.difference.data, name
        assert found.difference.file != found.difference.data, name
        assert (found.difference.file == "no further round") == (what == SHORTER)


def raised(**units: int):
    """A change of the first constant of the model, and perhaps of its first bag, by units."""

    def apply(document):
        document["model"]["constants"][0][0] += units["model"] * 2.0**-36
        if "bag" in units and "bags" in document:
            document["bags"]["constants"][0][0][0] += units["bag"] * 2.0**-36

    return apply


@pytest.mark.parametrize("name", ["newton", "newton-shared", "bags, 3 classes", "quantity"])
def test_another_constant_is_found_before_the_first_round(name, tmp_path):
    fit = fit_named(name)
    difference = audited(fit, changed(fit, tmp_path, raised(model=1, bag=2))).difference
    assert difference.what.startswith("the scores from which it starts")
    assert difference.file != difference.data


def test_a_constant_of_the_average_that_the_bags_do_not_make_is_found_by_the_digest(tmp_path):
    fit = fit_named("bags, 3 classes")
    difference = audited(fit, changed(fit, tmp_path, raised(model=1))).difference
    assert difference.what == "the digest, although all rounds are the same"
    assert difference.data == fit.classifier.model_.digest()


def test_a_changed_bag_and_its_class_are_named(tmp_path):
    fit = fit_named("glass box")
    model = changed(fit, tmp_path, in_row(1, "threshold", lambda t: t + 0.3))
    assert audited(fit, model).difference.what == "round 1 of bag 2, another stump"
    X, y = drawn(3)
    names = np.array(["a", "b", "c"])[y]
    bags = LogitBoostClassifier(n_estimators=3, n_bags=2, multi_class="one_vs_rest", random_state=0)
    fit = Fit(bags.fit(X, names), (X, names))
    model = changed(fit, tmp_path, in_row(5, "threshold", lambda t: t + 0.3))
    assert audited(fit, model).difference.what == "round 3 of class 'c' in bag 2, another stump"


def test_rounds_after_the_end_are_found():
    fit = fit_named("discrete")
    longer = AdaBoostClassifier(n_estimators=9).fit(*fit.data).model_
    found = audited(fit, longer, estimator=AdaBoostClassifier(n_estimators=8)).difference
    assert found.what.startswith("round 9, which the data do not give")
    assert "'limit'" in found.what
    assert found.data == "no further round"
    fit = fit_named("early stopping")
    patient = LogitBoostClassifier(**fit.classifier.get_params() | {"n_iter_no_change": 20})
    whole, n_kept = patient.fit(*fit.data), fit.classifier.n_iter_
    assert whole.n_iter_ > n_kept
    found = audited(fit, whole.model_, estimator=fit.classifier).difference
    assert found.what.startswith(f"round {n_kept + 1}, which the data do not give")
    assert "'early'" in found.what


@pytest.mark.parametrize("name", ["discrete", "quantity"])
def test_changed_data_are_told_by_the_fingerprint_and_the_digest_decides(name, tmp_path):
    fit = fit_named(name)
    X, y, *weights = fit.data
    known = fingerprint_of(X, y, *weights, of_quantity=name == "quantity").as_details()
    model = changed(fit, tmp_path, lambda own: own["details"].update(fingerprint=known))
    assert audit(model, *fit.data).data_differences == ()
    far, near = X.copy(), X.copy()
    far[np.nanargmax(X[:, 0]), 0] += 1.0  # no threshold is there
    found = audit(model, far, y, *weights)
    assert (found.same, found.data_differences) == (True, ("the values of feature 0 differ",))
    first = fit.classifier.rounds_[0][0].stump
    values = near[:, first.feature]
    values[np.nanargmin(np.abs(values - first.threshold))] = first.threshold + 0.01
    found = audit(model, near, y, *weights)
    assert found.data_differences == (f"the values of feature {first.feature} differ",)
    assert found.difference.what.startswith("round 1,")
    assert f"not those of the fit: {found.data_differences[0]}" in str(found)
    if name == "quantity":
        found = audit(model, X, np.where(np.arange(len(y)) == 5, y + 1.0, y), *weights)
        assert (found.same, found.data_differences) == (False, ("the target differs",))


def test_what_differs_before_the_first_round_is_named(tmp_path):
    fit = fit_named("discrete")
    (X, y), model = fit.data, fit.classifier.model_
    assert audit(model, X, y.astype(bool)).difference.what == "the classes"
    assert audit(model, X, y + 1).difference.what == "the classes"
    assert audit(model, X[:, :3], y).difference == ("the number of features", "4", "3")
    real = AdaBoostClassifier(n_estimators=8, votes="real")
    assert audited(fit, estimator=real).difference.what == "the kind of votes"
    missing = np.where(np.arange(len(X))[:, np.newaxis] % 9 == 5, np.nan, np.nan_to_num(X))
    plain = AdaBoostClassifier(n_estimators=1).fit(np.nan_to_num(X), y).model_
    assert any("had missing values" in note for note in audit(plain, missing, y).notes)


def test_frames_are_audited_by_their_columns_names_and_categories(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = drawn(2)
    frame = pandas.DataFrame(X, columns=["height", "width", "age", "price"])
    frame["width"] = np.where(X[:, 1] > 0.5, "wide", np.where(X[:, 1] > -0.5, "usual", "small"))
    classifier = LogitBoostClassifier(n_estimators=6, categorical_features="from_dtype")
    fit = Fit(classifier.fit(frame, y), (frame, y))
    others = frame[frame.columns[::-1]].assign(note="text")
    assert audited(fit).same
    assert audit(classifier.model_, others, y).same
    renamed = frame.rename(columns={"age": "years"})
    assert audit(classifier.model_, renamed, y).difference.what == "the names of the features"
    swapped = changed(
        fit, tmp_path, lambda own: own["details"]["encoding"]["columns"][1]["values"].reverse()
    )
    assert audited(fit, swapped).difference.what.startswith("the categories of a column")


def test_a_single_stump_is_audited():
    X, y = drawn(3)
    model = DecisionStumpClassifier().fit(X, y).model_
    assert audit(model, X, y).same
    assert not audit(model, X + (y == 2)[:, np.newaxis], y).same


def test_a_warm_start_is_audited_as_one_fit_and_noted():
    X, y = drawn(2)
    how = {"n_iter_no_change": 3, "random_state": 1, "warm_start": True}
    for make, parameters in ((AdaBoostClassifier, {}), (LogitBoostClassifier, how)):
        classifier = make(n_estimators=3, **{"warm_start": True, **parameters}).fit(X, y)
        found = audit(classifier.set_params(n_estimators=6).fit(X, y).model_, X, y)
        assert found.same
        assert "went on from an earlier one" in found.notes[0]
    other = classifier.set_params(n_estimators=9, learning_rate=0.5).fit(X, y).model_
    assert audit(other, X, y).difference.what.startswith("round 1,")


def test_an_end_that_cannot_be_derived_is_noted_and_all_rounds_are_compared(tmp_path):
    fit = fit_named("X_val")
    found = audit(fit.classifier.model_, *fit.data)
    assert found.same
    assert "needs X_val and y_val" in found.notes[0]
    X, y = drawn(2, n_samples=200)
    called = {"callback": lambda record: record.number == 3, "n_estimators": 9}
    for how in ({}, {"n_bags": 2}, {"n_iter_no_change": 5, "interactions": 1}):
        make = LogitBoostClassifier if "interactions" in how else AdaBoostClassifier
        fit = Fit(make(**called, **how).fit(X, y), (X, y))
        found = audited(fit)
        assert found.same
        assert "a callback decided it" in found.notes[0]
        forged_one = changed(fit, tmp_path, in_row(0, "threshold", lambda t: float(t) + 0.3))
        assert audited(fit, forged_one).difference.what.startswith("round 1")


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
    assert not audited(fit, model, estimator=estimator.set_params(random_state=5)).same
    with pytest.raises(ValueError, match="3 bags, but its estimator makes 1"):
        audited(fit, model, estimator=AdaBoostClassifier())
    with pytest.raises(TypeError, match="estimator must be a classifier or regressor of gpustump"):
        audited(fit, model, estimator=fit.data)
    of_command = changed(fit, tmp_path, lambda own: own.update(details={"training": {}}))
    with pytest.raises(ValueError, match="gpustump audit MODEL DATA"):
        audited(fit, of_command)
    X, y = fit.data[:2]
    with pytest.raises(ValueError, match="its fit was given no X_val"):
        audited(fit, X_val=X, y_val=y)


def parameter(**given):
    return lambda own: own["parameters"].update(given)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda own: own.update(name="os.system"), "estimator must be one of"),
        (lambda own: own.update(parameters=[1]), "parameters must be an object"),
        (lambda own: own.update(seeds=[-1]), "seeds must be"),
        (lambda own: own.update(seeds=[1, 2]), "2 seeds for 1 bags"),
        (lambda own: own.update(passed="yes"), "passed must be true or false"),
        (lambda own: own.update(dtype="int8"), "dtype must be"),
        (parameter(device="cuda"), "no parameter 'device'"),
        (parameter(class_weight=[[[], 1]]), "cannot be used"),
        (parameter(n_bags=10**9), "bags"),
        *((parameter(**{name: value}), f"{name}( must be)?") for name, value in {
            "learning_rate": "fast", "n_estimators": 0.5, "class_weight": [1, 2],
            "interactions": [[0]], "categorical_features": [[0]], "monotonic_cst": ["up"],
        }.items()),
        (parameter(learning_rate=10**400), "learning_rate must be"),
    ],
)  # fmt: skip
def test_a_record_that_no_fit_made_is_refused(change, problem, tmp_path):
    fit = fit_named("early stopping")
    model = changed(fit, tmp_path, lambda own: change(own["details"]["estimator"]))
    with pytest.raises((ValueError, TypeError), match=problem):
        audited(fit, model)


def test_a_fingerprint_that_is_none_is_refused(tmp_path):
    fit = fit_named("discrete")
    for value in (7, {}, {"rows": 3}, None):
        model = changed(fit, tmp_path, lambda own, it=value: own["details"].update(fingerprint=it))
        with pytest.raises(ValueError, match="fingerprint"):
            audited(fit, model)


def test_parameters_are_recorded_as_json_has_them(tmp_path):
    found = deciding_parameters(
        AdaBoostClassifier(
            class_weight={np.int64(2): np.float32(0.5), "a": Fraction(1, 4), 0: 1},
            monotonic_cst=np.array([1, -1, 0]),
            learning_rate=Fraction(1, 2),
            device="cpu",
            n_jobs=3,
            warm_start=True,
        )
    )
    assert found["class_weight"] == [[0, 1], [2, 0.5], ["a", 0.25]]
    assert (found["monotonic_cst"], found["learning_rate"]) == ([1, -1, 0], 0.5)
    assert not {"device", "n_jobs", "warm_start", "random_state", "callback"} & set(found)
    assert list(found) == sorted(found)
    X, y = drawn(2)
    model = AdaBoostClassifier(n_estimators=2, validation_fraction=object()).fit(X, y).model_
    assert model.details == {}  # no file can hold this parameter, which the fit does not use
    model.save(tmp_path / "model.json")
    named = LogitBoostClassifier(n_estimators=2, interactions=[(0, 1)], class_weight={0: 2, 1: 1})
    assert audit(named.fit(X, y).model_, X, y).same


def test_a_parameter_may_be_an_array_of_any_library(backend: Backend):
    X, y = drawn(2)
    rising = backend.asarray(np.ones(X.shape[1], dtype=np.int64))
    classifier = AdaBoostClassifier(n_estimators=3, monotonic_cst=rising).fit(X, y)
    assert audit(classifier.model_, X, y).same


def test_the_dtype_of_the_fit_decides_the_thresholds():
    X, y = drawn(2)
    model = AdaBoostClassifier(n_estimators=8).fit(X.astype(np.float32), y).model_
    rounded = X.astype(np.float32).astype(np.float64)
    assert AdaBoostClassifier(n_estimators=8).fit(rounded, y).model_ != model
    found = audit(model, rounded, y)
    assert (found.same, found.notes) == (True, ())
    found = audit(model, X, y)
    assert found.same
    assert "rounded to float32" in str(found)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_sparse_table_is_audited_in_the_dtype_of_the_fit(dtype):
    X, y = drawn(2)
    X = csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0).astype(np.float32))
    model = AdaBoostClassifier(n_estimators=8).fit(X.astype(dtype), y).model_
    for given in (X, X.astype(np.float64)):
        assert audit(model, given, y).same


def test_what_was_known_beforehand_decides_the_model():
    fit = fit_named("counts with exposures")
    found = audit(fit.classifier.model_, *fit.data)
    assert found.difference.what == "the scores from which it starts"
    with pytest.raises(ValueError, match="exposure is for counts"):
        audited(fit_named("costs"), exposure=fit.more["exposure"])
