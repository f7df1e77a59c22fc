"""Small fits of every estimator, with what each gave when it was recorded: one change that moves
any of them is seen.

`python tests/test_recorded_fits.py` prints the present version's records as JSON. Record anew only
what a change moves on purpose. Real numbers are compared to 9 digits, as logarithms differ in the
last ones between machines; digests and decision values are compared to the last bit.
"""

from __future__ import annotations

import decimal
import hashlib
import json
import math
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_tables import _bells, _extreme, _few, _flags, _missing, _spread, _uniform

from gpustump import (
    AdaBoostClassifier,
    DecisionStumpClassifier,
    GlassBoxClassifier,
    GlassBoxRegressor,
    LogitBoostClassifier,
    StumpBoostingRegressor,
)
from gpustump.engines import handover, route
from gpustump.engines.cpu.engine import KERNELS

RECORD = Path(__file__).resolve().parent / "golden" / "fits.json"
N_SAMPLES, N_FEATURES = 140, 5
TABLES = {
    "bells": _bells, "spread": _spread, "few": _few, "missing": _missing, "extreme": _extreme,
    "flags": _flags,
}  # fmt: skip
EARLY = {"n_iter_no_change": 5, "random_state": 0}
ADA, LOGIT, GLASS = AdaBoostClassifier, LogitBoostClassifier, GlassBoxClassifier
QUANTITY, GLASS_QUANTITY = StumpBoostingRegressor, GlassBoxRegressor

# Estimator, its parameters, the table, the target (a number of classes, or a kind of quantity), and
# the further arguments of `fit`.
FITS: list[tuple[type, dict[str, Any], str, int | str, str]] = [
    (DecisionStumpClassifier, {}, "bells", 2, ""),
    (DecisionStumpClassifier, {}, "few", 3, "weights"),
    (ADA, {}, "bells", 2, ""),
    (ADA, {}, "few", 2, "weights"),
    (ADA, {}, "extreme", 2, ""),
    (ADA, {"weak_learner": "interval"}, "missing", 2, ""),
    (ADA, {"weak_learner": "interval", "learning_rate": 0.5}, "spread", 3, "weights"),
    (ADA, {"learning_rate": 1000.0, "n_estimators": 400}, "bells", 2, ""),
    (ADA, {"learning_rate": 1000.0, "n_estimators": 400, "multi_class": "shared"}, "few", 3, ""),
    (ADA, {"learning_rate": 30.0, "n_estimators": 400}, "flags", 2, ""),
    (ADA, {"n_estimators": 400}, "separable", 2, ""),
    (ADA, {}, "constant", 2, ""),
    (ADA, {"votes": "real"}, "missing", 2, ""),
    (ADA, {"votes": "real"}, "few", 4, ""),
    (ADA, {"votes": "real", "multi_class": "shared"}, "bells", 3, "weights"),
    (ADA, {"votes": "real", "n_estimators": 400}, "separable", 2, ""),
    (ADA, {"multi_class": "shared"}, "spread", 4, ""),
    (ADA, {"multi_class": "shared", "learning_rate": 2.0}, "missing", 3, ""),
    (ADA, EARLY, "bells", 2, ""),
    (ADA, EARLY | {"scoring": "accuracy", "multi_class": "shared"}, "few", 3, ""),
    (ADA, EARLY | {"scoring": "neg_log_loss", "votes": "real", "tol": 0.01}, "bells", 2, "weights"),
    (ADA, EARLY | {"n_bags": 3}, "missing", 2, ""),
    (ADA, {"class_weight": "balanced"}, "flags", 3, ""),
    (ADA, {"class_weight": {0: 1.0, 1: 5.0}}, "bells", 2, "validation"),
    (ADA, {"monotonic_cst": [1, 0, -1, 0, 1], "votes": "real"}, "bells", 2, ""),
    (ADA, {"monotonic_cst": [-1, 1, 0, 0, 0]}, "few", 2, ""),
    (ADA, {"categorical_features": [0, 3]}, "few", 2, ""),
    (ADA, {"categorical_features": [1], "votes": "real", "multi_class": "shared"}, "few", 3, ""),
    (ADA, {}, "bells", 2, "known scores"),
    (LOGIT, {"n_estimators": 60}, "bells", 2, ""),
    (LOGIT, {"n_estimators": 60}, "extreme", 3, "weights"),
    (LOGIT, {"n_estimators": 400, "l2_regularization": 0.0, "learning_rate": 1.0}, "few", 2, ""),
    (LOGIT, {"n_estimators": 400, "l2_regularization": 0.0}, "separable", 2, ""),
    (LOGIT, {"n_estimators": 40, "smoothing_rounds": 30, "random_state": 1}, "missing", 2, ""),
    (LOGIT, {"n_estimators": 40, "multi_class": "one_vs_rest"}, "spread", 3, ""),
    (LOGIT, {"n_estimators": 40, "learning_rate": 1e4}, "bells", 2, ""),
    (LOGIT, {"n_estimators": 30, "interactions": 3}, "bells", 2, ""),
    (LOGIT, {"n_estimators": 30, "interactions": [(0, 1), (2, 4)]}, "missing", 3, "weights"),
    (LOGIT, EARLY | {"n_bags": 2, "interactions": "1x"}, "few", 2, ""),
    (LOGIT, {"n_estimators": 20, "interactions": 3, "learning_rate": 1.0}, "bells", 2, ""),
    (LOGIT, EARLY | {"n_bags": 2, "interactions": 2}, "bells", 2, "known scores"),
    (LOGIT, EARLY | {"scoring": "roc_auc"}, "bells", 2, ""),
    (LOGIT, EARLY, "bells", 2, "validation"),
    (LOGIT, {"n_estimators": 40, "categorical_features": [0, 1, 2]}, "few", 3, ""),
    (LOGIT, {"n_estimators": 40, "monotonic_cst": [1, 1, -1, 0, 0]}, "missing", 2, ""),
    (LOGIT, {"n_estimators": 40}, "bells", 2, "known scores"),
    (GLASS, {"n_bags": 3, "n_estimators": 400, "random_state": 0}, "bells", 2, ""),
    (GLASS, {"n_bags": 2, "n_estimators": 60, "random_state": 5}, "missing", 3, "weights"),
    (GLASS, {"n_bags": 2, "n_estimators": 60, "random_state": 0, "interactions": 0,
             "categorical_features": [0]}, "few", 2, ""),
    (GLASS, {"n_bags": 1, "n_estimators": 60, "random_state": 0}, "constant", 2, ""),
    (QUANTITY, {"n_estimators": 60}, "bells", "any", ""),
    (QUANTITY, {"n_estimators": 60}, "extreme", "any", "weights"),
    (QUANTITY, {"n_estimators": 60, "l2_regularization": 2.0}, "few", "far apart", ""),
    (QUANTITY, {"n_estimators": 40, "smoothing_rounds": 30, "random_state": 1}, "bells", "any", ""),
    (QUANTITY, {"n_estimators": 60, "loss": "quantile", "quantile": 0.9}, "bells", "any", ""),
    (QUANTITY, {"n_estimators": 40, "loss": "quantile", "l2_regularization": 1.0}, "missing",
     "counts", "weights"),
    (QUANTITY, {"n_estimators": 40, "loss": "poisson"}, "missing", "counts", ""),
    (QUANTITY, {"n_estimators": 40, "loss": "poisson"}, "few", "counts", "exposure"),
    (QUANTITY, {"n_estimators": 40, "loss": "gamma"}, "bells", "positive", "weights"),
    (QUANTITY, {"n_estimators": 40, "learning_rate": 1.0}, "flags", "any", "known scores"),
    (QUANTITY, {"n_estimators": 40, "monotonic_cst": [1, -1, 0, 0, 0]}, "bells", "any", ""),
    (QUANTITY, {"n_estimators": 40, "categorical_features": [0, 1]}, "few", "any", ""),
    (QUANTITY, {"n_estimators": 30, "interactions": 2}, "bells", "any", ""),
    (QUANTITY, {}, "constant", "any", ""),
    (QUANTITY, EARLY, "spread", "any", "validation"),
    (QUANTITY, EARLY | {"loss": "gamma", "n_bags": 2}, "bells", "positive", ""),
    (GLASS_QUANTITY, {"n_bags": 3, "n_estimators": 900, "random_state": 0}, "bells", "any", ""),
    (GLASS_QUANTITY, {"n_bags": 2, "n_estimators": 60, "random_state": 0, "loss": "poisson"},
     "few", "counts", "exposure"),
]  # fmt: skip


def name_of(fit: tuple[type, dict[str, Any], str, int | str, str]) -> str:
    estimator, parameters, table, target, more = fit
    text = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
    return f"{estimator.__name__}({text}) on {table}, target {target} {more}".rstrip()


@np.errstate(all="ignore")
def made(fit: tuple[type, dict[str, Any], str, int | str, str]) -> dict[str, Any]:
    """The arguments of `fit`."""
    _, _, table, target, more = fit
    draw = random.Random(f"{table} {target} {more}")
    if table == "constant":
        X = np.ones((N_SAMPLES, N_FEATURES))
    else:
        X = TABLES.get(table, _bells)(draw, N_SAMPLES, N_FEATURES)
    clipped = np.nan_to_num(X).clip(-3.0, 3.0)
    signal = clipped[:, 0] + clipped[:, 1] * clipped[:, 2] / 2 + (X[:, 3] != X[:, 3])
    signal = X[:, 0] if table == "separable" else signal + _bells(draw, N_SAMPLES)
    if isinstance(target, int):
        place = np.argsort(np.argsort(signal, kind="stable"), kind="stable")
        y = place * target // N_SAMPLES
    else:
        scale = {"far apart": 1e12}.get(target, 1.0)
        kinds = {"counts": np.floor(abs(signal) * 1.5), "positive": 0.1 + signal**2}
        y = kinds.get(target, signal * scale)
    given: dict[str, Any] = {"X": X, "y": y}
    if more == "weights":
        given["sample_weight"] = 0.5 + np.floor(_uniform(draw, N_SAMPLES) * 3.0)
    if more == "known scores":
        given["init_score"] = clipped[:, 0] / 4
    if more == "exposure":
        given["exposure"] = 0.5 + _uniform(draw, N_SAMPLES)
    if more == "validation":
        half = N_SAMPLES // 2
        given = {"X": X[:half], "y": y[:half], "X_val": X[half:], "y_val": y[half:]}
    return given


def record(fit: tuple[type, dict[str, Any], str, int | str, str]) -> dict[str, Any]:
    """What a fit gives: its model, how it ended, its curves, and what it says of its samples."""
    estimator, parameters, *_ = fit
    given = made(fit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = estimator(**parameters).fit(**given)
        known = {key: given[key] for key in ("init_score", "exposure") if key in given}
        found = {"digest": fitted.model_.digest()}
        if hasattr(fitted, "decision_function"):
            values = fitted.decision_function(given["X"], **known)
            found["decision"] = hashlib.sha256(np.ascontiguousarray(values)).hexdigest()[:16]
            found["probabilities"] = rounded(fitted.predict_proba(given["X"], **known))
        else:
            found["predictions"] = rounded(fitted.predict(given["X"], **known))
        for name in ("n_iter_", "stop_reasons_"):
            if hasattr(fitted, name):
                found[name] = getattr(fitted, name)
        for name in ("evals_result_", "rounds_", "feature_importances_", "held_out_scores_"):
            if hasattr(fitted, name):
                found[name] = rounded(getattr(fitted, name))
        if getattr(fitted.model_, "n_rounds", 0):
            found["importances"] = rounded(fitted.model_.feature_importances())
    return json.loads(json.dumps(found))


def rounded(value: Any) -> str:
    """A digest of nested values, their real numbers to 9 digits."""
    return hashlib.sha256(repr(_plain(value)).encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if hasattr(value, "__dataclass_fields__"):
        return _plain({name: getattr(value, name) for name in value.__dataclass_fields__})
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return f"{value:.9g}" if isinstance(value, (float, np.floating)) else value


RECORDED = json.loads(RECORD.read_text()) if RECORD.exists() else {}


@pytest.mark.parametrize("fit", FITS, ids=name_of)
def test_a_fit_gives_what_was_recorded(fit):
    assert record(fit) == RECORDED[name_of(fit)]


@pytest.mark.parametrize("fit", FITS[::2], ids=name_of)
def test_a_fit_that_goes_over_to_the_kernels_in_the_middle_gives_the_same(fit, monkeypatch):
    pytest.importorskip("numba")
    draw = random.Random(name_of(fit))
    until_scan = [False] * draw.randrange(1, 12)
    until_engine = until_scan + [False] * draw.randrange(1, 30)
    load = KERNELS.load

    def loaded_later(*stages: str, waits: bool = True) -> bool:
        waiting = until_scan if "scanned" in stages else until_engine
        return waiting.pop() if waiting else load(*stages)

    monkeypatch.setattr(route, "_waited", math.inf)  # no job is too short
    monkeypatch.setattr(route, "are_compiled", lambda *stages: False)  # so a scan comes between
    monkeypatch.setattr(handover, "_SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(KERNELS, "load", loaded_later)
    monkeypatch.setattr(KERNELS, "are_coming", lambda *stages: True)
    assert record(fit) == RECORDED[name_of(fit)]


@pytest.mark.parametrize("fit", FITS[::5], ids=name_of)
def test_the_callers_decimal_context_and_error_state_change_nothing(fit):
    with decimal.localcontext(prec=5, rounding=decimal.ROUND_UP, Emax=3), np.errstate(all="raise"):
        assert record(fit) == RECORDED[name_of(fit)]


if __name__ == "__main__":
    print(json.dumps({name_of(fit): record(fit) for fit in FITS}, indent=1))
