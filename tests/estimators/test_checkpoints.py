"""Checkpoints: an interrupted fit that goes on ends with the model of an uninterrupted one.

Interruptions are exceptions in a callback at rounds that are drawn; signals and processes are in
tests/cli/test_cli_checkpoint.py, and clusters in tests/dask/test_models.py.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audited_fits import FITS, Interrupted, Interrupting, facts_of
from classifiers import drawn
from forged_files import forged
from sklearn.base import clone

from gpustump import AdaBoostClassifier, Checkpoint, LogitBoostClassifier
from gpustump.boosting.checkpoints import writing

STOPPING = {"n_iter_no_change": 4, "validation_fraction": 0.3, "random_state": 3}


def _data(n_classes: int = 2) -> tuple[tuple[np.ndarray, ...], dict[str, np.ndarray]]:
    """What a fit is given: rows with weights, and rows to watch."""
    X, y = drawn(n_classes, n_samples=160, missing=0.1)
    weights = np.random.default_rng(1).integers(0, 3, 160) * 0.7
    watched = {"X_val": X[120:], "y_val": y[120:], "sample_weight_val": weights[120:] + 0.1}
    return (X[:120], y[:120], weights[:120]), watched


def _rounds_in(path: Path) -> int:
    bags = json.loads(path.read_text())["bags"]
    return sum(len(run["rounds"]) for bag in bags for run in bag["runs"])


@pytest.mark.parametrize("name", FITS)
def test_an_interrupted_fit_ends_with_the_rounds_of_an_uninterrupted_one(name, tmp_path):
    """Interrupt a fit at drawn rounds until it is done; another fit takes all from the file."""
    recipe, path = FITS[name], tmp_path / "run.json"
    how = {"random_state": recipe.unfitted().random_state or 0, "checkpoint": path}
    whole = recipe.fitted(**how | {"checkpoint": None}).classifier
    n_made = sum(map(len, whole.held_out_scores_)) or sum(map(len, whole.rounds_))
    random, n_done = np.random.default_rng(n_made), 0
    for error in (KeyboardInterrupt, MemoryError, Interrupted):
        if n_done == n_made:
            break
        callback = Interrupting(int(random.integers(1, n_made - n_done + 1)), error)
        with pytest.raises(error):
            recipe.fitted(**how, callback=callback)
        n_done += len(callback.seen) - 1  # the interrupted round was not completed
        assert _rounds_in(path) == n_done
    callback = Interrupting(10**9)
    found = recipe.fitted(**how, callback=callback).classifier
    assert facts_of(found) == facts_of(whole)
    assert found.model_ == whole.model_
    assert len(callback.seen) == n_made - n_done
    again = recipe.fitted(**how, callback=Interrupting(1)).classifier
    assert facts_of(again) == facts_of(whole)


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(5)], ids=["none", "state"])
def test_samples_that_random_state_cannot_draw_again_are_those_of_the_checkpoint(
    random_state, tmp_path
):
    given, _ = _data()
    how = {**STOPPING, "n_estimators": 9, "n_bags": 2, "random_state": random_state}
    how["n_iter_no_change"] = 8  # whatever is drawn, the second bag is interrupted
    path = tmp_path / "run.json"
    with pytest.raises(Interrupted):
        LogitBoostClassifier(**how, checkpoint=path, callback=Interrupting(12)).fit(*given)
    seeds = [bag["seed"] for bag in json.loads(path.read_text())["bags"]]
    found = LogitBoostClassifier(**how, checkpoint=path).fit(*given)
    assert [split.seed for split in found._splits] == seeds

    class Known(np.random.RandomState):
        def randint(self, *limits):
            return seeds.pop(0)

    whole = LogitBoostClassifier(**(how | {"random_state": Known()})).fit(*given)
    assert facts_of(found) == facts_of(whole)


def test_a_warm_start_goes_on_from_the_model_and_from_the_checkpoint(tmp_path):
    given, watched = _data(3)
    how = {"n_iter_no_change": 5, "warm_start": True, "random_state": 0}
    first = LogitBoostClassifier(n_estimators=4, **how).fit(*given, **watched)
    whole = clone(first).fit(*given, **watched).set_params(n_estimators=15).fit(*given, **watched)
    own = {"n_estimators": 15, "checkpoint": tmp_path / "run.json"}
    first.set_params(**own, callback=Interrupting(5))
    with pytest.raises(Interrupted):
        first.fit(*given, **watched)
    assert _rounds_in(tmp_path / "run.json") == 4
    first.set_params(callback=None).fit(*given, **watched)
    assert facts_of(first) == facts_of(whole)
    assert first.n_iter_ > 4
    with pytest.raises(ValueError, match=r"model of the earlier fit was '.*, and is None now"):
        LogitBoostClassifier(**how, **own).fit(*given, **watched)


def test_every_file_that_was_ever_written_goes_on_to_the_same_model(monkeypatch, tmp_path):
    """As after a kill at any moment: only the last file that was written is left."""
    given, _ = _data(3)
    path, kept = tmp_path / "run.json", dict[bytes, None]()

    def ends_its_run(record):
        return record.number == 4

    how = {"n_estimators": 6, **STOPPING, "callback": ends_its_run}
    write = writing.write

    def noted(*given, **how):
        write(*given, **how)
        kept[path.read_bytes()] = None

    with monkeypatch.context() as patch:
        patch.setattr(writing, "write", noted)
        checkpoint = Checkpoint(path, every_rounds=1)
        whole = AdaBoostClassifier(**how, checkpoint=checkpoint).fit(*given)
    assert "callback" in whole.stop_reasons_
    assert len(kept) > 10
    for content in kept:
        path.write_bytes(content)
        assert facts_of(AdaBoostClassifier(**how, checkpoint=path).fit(*given)) == facts_of(whole)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The checkpoint of a fit that was interrupted."""
    (X, y, weights), watched = _data()
    path = tmp_path_factory.mktemp("checkpoint") / "run.json"
    with pytest.raises(Interrupted):
        _fit_of(path, callback=Interrupting(6)).fit(X, y, weights, **watched)
    return path.read_bytes()


@pytest.fixture
def path(interrupted: bytes, tmp_path: Path) -> Path:
    """The file of that checkpoint."""
    found = tmp_path / "run.json"
    found.write_bytes(interrupted)
    return found


def _fit_of(path: Path, **own: Any) -> Any:
    how = {"n_estimators": 9, "n_iter_no_change": 4, "n_bags": 2, "random_state": 0}
    return AdaBoostClassifier(**(how | own), checkpoint=path)


def _refused(path: Path, *given: Any, estimator: Any = None, **watched: Any) -> str:
    """The message of a refused fit, which leaves the file as it was."""
    before = path.read_bytes()
    classifier = _fit_of(path) if estimator is None else estimator
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        classifier.fit(*given, **watched)
    assert path.read_bytes() == before
    assert not hasattr(classifier, "model_")
    assert str(path) in str(refused.value)
    assert "start anew" in str(refused.value)
    return str(refused.value)


OTHER_DATA: dict[str, tuple[Callable[..., None], str]] = {
    "a cell": (lambda X, y, w, v: X.__setitem__((7, 2), 99.0), "the values of feature 2 differ"),
    "a missing cell": (lambda X, y, w, v: X.__setitem__((7, 1), np.nan), "feature 1 differ"),
    "a label": (lambda X, y, w, v: y.__setitem__(5, 1 - y[5]), "the target differs"),
    "a weight": (lambda X, y, w, v: w.__setitem__(3, 9.0), "the sample weights differ"),
    "a watched row": (lambda X, y, w, v: v["X_val"].__setitem__((0, 0), 9.0), "in X_val, "),
    "no watched rows": (lambda X, y, w, v: v.clear(), "was given 'X', 'X_val', and this one 'X'"),
}
OTHER_SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "n_estimators": ({"n_estimators": 10}, " was 9, and is 10 now"),
    "votes": ({"votes": "real"}, " was 'discrete', and is 'real' now"),
    "random_state": ({"random_state": 1}, " draws other held-out samples"),
    "class_weight": ({"class_weight": {0: 2.0}}, " was None, and is [[0, 2.0]] now"),
    "monotonic_cst": ({"monotonic_cst": [1, 0, 0, 0]}, " was None, and is [1"),
    "categorical_features": ({"categorical_features": []}, " was None, and is [] now"),
    "l2_regularization": (None, ""),
}


@pytest.mark.parametrize("change", OTHER_DATA)
def test_other_data_are_refused_by_name(path, change):
    given, watched = _data()
    given, watched = tuple(map(np.copy, given)), {k: v.copy() for k, v in watched.items()}
    make, message = OTHER_DATA[change]
    make(*given, watched)
    assert message in _refused(path, *given, **watched)


@pytest.mark.parametrize("name", OTHER_SETTINGS)
def test_other_settings_and_another_estimator_are_refused_by_name(path, name):
    given, watched = _data()
    how, message = OTHER_SETTINGS[name]
    other = LogitBoostClassifier(n_bags=2, random_state=0, checkpoint=path)
    asked = other if how is None else _fit_of(path, **how)
    assert f"{name}{message}" in _refused(path, *given, estimator=asked, **watched)


def test_another_dtype_of_the_table_is_refused(path):
    """Thresholds are numbers of the table's own type."""
    (X, *given), watched = _data()
    message = _refused(path, X.astype(np.float32), *given, **watched)
    assert "dtype of X was 'float64', and is 'float32' now" in message


def test_another_contract_is_refused_and_another_version_is_not(path, tmp_path):
    given, watched = _data()
    document = json.loads(path.read_text())
    path.write_text(forged({**document, "gpustump": "0.0.9", "contract": 0}))
    message = _refused(path, *given, **watched)
    assert "gpustump 0.0.9" in message
    assert "is 0, and here it is 1" in message
    path.write_text(forged({**document, "gpustump": "99.0"}))
    found = _fit_of(path).fit(*given, **watched)
    assert facts_of(found) == facts_of(_fit_of(tmp_path / "new.json").fit(*given, **watched))


def _bag(document: dict[str, Any]) -> dict[str, Any]:
    return document["bags"][0]


def _run(document: dict[str, Any]) -> dict[str, Any]:
    return _bag(document)["runs"][0]


def _row(document: dict[str, Any]) -> list[Any]:
    return _run(document)["rounds"][1]


FORGERIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another format": lambda d: d.update(format="gpustump model"),
    "a later version": lambda d: d.update(version=2),
    "no settings": lambda d: d.pop("settings"),
    "settings of text": lambda d: d.update(settings="1"),
    "other fields": lambda d: d["fields"].reverse(),
    "a bag less": lambda d: d["bags"].pop(),
    "bags of numbers": lambda d: d.update(bags=[1, 2]),
    "a run too many": lambda d: _bag(d)["runs"].append(_run(d)),
    "another seed": lambda d: _bag(d).update(seed=1),
    "another reason": lambda d: _run(d).update(stop_reason="bored"),
    "another constant": lambda d: _run(d).update(constant=[1.0]),
    "no constant": lambda d: _run(d).update(constant=[]),
    "rounds of text": lambda d: _run(d).update(rounds="1"),
    "too many rounds": lambda d: _run(d).update(rounds=_run(d)["rounds"] * 4),
    "a row too short": lambda d: _row(d).pop(),
    "a feature that is not there": lambda d: _row(d).__setitem__(0, 4),
    "a threshold of text": lambda d: _row(d).__setitem__(2, "high"),
    "a vote off the grid": lambda d: _row(d).__setitem__(6, 0.1),
    "a set of categories": lambda d: _row(d).__setitem__(7, "1 2"),
    "no score": lambda d: _row(d).__setitem__(9, None),
    "an error that is a list": lambda d: _row(d).__setitem__(10, [0.5]),
    "a fingerprint of text": lambda d: d["data"].update(X="none"),
    "a deep part": lambda d: d["settings"].update(deep=json.loads("[" * 200 + "]" * 200)),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_checkpoint_is_refused(path, forgery):
    """One whose checksum is only computed anew is taken: see the test of another version."""
    document, (given, watched) = json.loads(path.read_text()), _data()
    FORGERIES[forgery](document)
    path.write_text(forged(document))
    _refused(path, *given, **watched)


def test_a_broken_checkpoint_is_refused(interrupted, path):
    given, watched = _data()
    random = np.random.default_rng(0)
    broken = [b"{", b"[]", b"null", b"\xff\xfe\x00", b"[" * 10**5, b'{"format": 1, "format": 1}']
    broken += [interrupted[:size] for size in random.integers(1, len(interrupted) - 2, 15)]
    for at in random.integers(0, len(interrupted), 40):
        flipped = bytearray(interrupted)
        flipped[at] ^= 1 << random.integers(0, 7)
        broken.append(bytes(flipped))
    n_refused = 0
    for content in broken:
        path.write_bytes(content)
        if content.split() != interrupted.split():  # a blank for another says the same
            _refused(path, *given, **watched)
            n_refused += 1
    assert n_refused > 50


@pytest.mark.parametrize(
    ("how", "n_rounds"),
    [
        ({"every_rounds": 3, "every_seconds": None}, [0, 3, 6, 9, 10]),
        ({"every_seconds": 4.0}, [0, 4, 8, 10]),
        # at last, why there are no more
        ({"every_rounds": 3, "every_seconds": 2.0}, [0, 2, 4, 6, 8, 10, 10]),
        ({"every_seconds": None}, [0, 10]),
        ({}, [0, 10]),
    ],
)
def test_a_checkpoint_is_written_as_often_as_it_says(how, n_rounds, monkeypatch, tmp_path):
    """Each round takes a second."""
    sizes, now, write = list[int](), [0.0], writing.write

    def noted(path, *rest, **more):
        write(path, *rest, **more)
        sizes.append(_rounds_in(Path(path)))

    monkeypatch.setattr(writing, "write", noted)
    monkeypatch.setattr(writing.time, "monotonic", lambda: now[0])
    wait = lambda record: now.__setitem__(0, now[0] + 1.0)  # noqa: E731
    checkpoint = Checkpoint(tmp_path / "run.json", **how)
    AdaBoostClassifier(n_estimators=10, checkpoint=checkpoint, callback=wait).fit(*_data()[0])
    assert sizes == n_rounds


def test_a_finished_checkpoint_is_not_written_again(tmp_path):
    given, _ = _data()
    path = tmp_path / "run.json"
    how = {"n_estimators": 5, "checkpoint": path}
    AdaBoostClassifier(**how).fit(*given)
    before = path.stat().st_ino, path.stat().st_mtime_ns
    assert json.loads(path.read_text())["is_finished"] is True
    AdaBoostClassifier(**how).fit(*given)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == before


def test_a_file_that_cannot_be_written_is_refused_before_the_first_round(tmp_path):
    given, _ = _data()
    callback = Interrupting(1)
    how = {"n_estimators": 5, "callback": callback}
    for path in (tmp_path / "none" / "run.json", tmp_path):
        with pytest.raises(OSError, match=str(path)):
            AdaBoostClassifier(**how, checkpoint=path).fit(*given)
    assert not callback.seen


def test_a_callback_may_change_the_working_folder(monkeypatch, tmp_path):
    given, _ = _data()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)

    def moving(record):
        os.chdir(tmp_path / "elsewhere")
        if record.number == 4:
            raise Interrupted

    checkpoint = Checkpoint("run.json", every_rounds=2)
    with pytest.raises(Interrupted):
        AdaBoostClassifier(checkpoint=checkpoint, callback=moving).fit(*given)
    assert os.listdir(tmp_path / "elsewhere") == []
    assert _rounds_in(tmp_path / "run.json") == 3


def test_where_no_more_can_be_written_one_warning_says_so_and_the_earlier_file_stays(tmp_path):
    given, _ = _data()
    path = tmp_path / "run.json"
    held, limits = list[bytes](), resource.getrlimit(resource.RLIMIT_FSIZE)

    def no_room_from_the_fifth_round_on(record):
        if record.number == 5:
            held.append(path.read_bytes())
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))

    how = {"n_estimators": 12, "checkpoint": Checkpoint(path, every_rounds=2)}
    fit = AdaBoostClassifier(**how, callback=no_room_from_the_fifth_round_on).fit
    try:
        with pytest.warns(UserWarning, match="cannot be written: File too large") as warned:
            found = fit(*given)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(warned) == 1
    assert path.read_bytes() == held[0]
    assert _rounds_in(path) == 4
    assert os.listdir(tmp_path) == ["run.json"]
    whole = AdaBoostClassifier(n_estimators=12).fit(*given)
    assert facts_of(found) == facts_of(AdaBoostClassifier(**how).fit(*given)) == facts_of(whole)


def test_a_checkpoint_refuses_bad_arguments():
    for how, message in (
        ({"path": 3}, "path must be the name of a file; got 3"),
        ({"path": ""}, "path must be the name of a file; got an empty one"),
        ({"every_rounds": 0}, "every_rounds must be at least 1; got 0"),
        ({"every_rounds": 1.5}, "every_rounds must be a whole number"),
        ({"every_seconds": -1.0}, "every_seconds must be a finite number of at least 0"),
        ({"every_seconds": "60"}, "every_seconds must be a finite number"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            Checkpoint(**({"path": "run.json"} | how))


ENDED = """
import os, signal, sys
import numpy as np
from gpustump import AdaBoostClassifier
from gpustump.boosting.checkpoints import writing

write, n_signals = writing.write, 2

def signalled(*given, **how):
    global n_signals
    n_signals -= 1
    if n_signals >= 0:
        writing.write = signalled  # another signal comes while the file is written
        os.kill(os.getpid(), signal.SIGTERM)
    write(*given, **how) if given else None

X = np.random.default_rng(0).normal(size=(100, 3))
how = {"n_estimators": 8, "device": "cpu", "checkpoint": sys.argv[1]}
on_round = lambda record: signalled() if record.number == 5 else None
AdaBoostClassifier(**how, callback=on_round).fit(X, X[:, 0] + X[:, 1] > 0)
print("the fit came to its end")
"""


def test_sigterm_writes_the_rounds_and_ends_the_process_as_it_would_have(tmp_path):
    path = tmp_path / "run.json"
    ended = subprocess.run([sys.executable, "-c", ENDED, path], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGTERM, "", "")
    assert _rounds_in(path) == 4
    assert os.listdir(tmp_path) == ["run.json"]


def test_the_handler_of_sigterm_is_put_back_and_one_of_the_caller_s_is_left_alone(tmp_path):
    """In the middle of a fit with a checkpoint it is another one."""
    found: list[Any] = []

    def handler_in_a_fit(**how: Any) -> Any:
        look = lambda record: found.append(signal.getsignal(signal.SIGTERM))  # noqa: E731
        AdaBoostClassifier(n_estimators=1, callback=look, **how).fit(*_data()[0])
        return found[-1]

    default = signal.getsignal(signal.SIGTERM)
    assert default is signal.SIG_DFL
    how = {"checkpoint": tmp_path / "first.json", "callback": Interrupting(1)}
    with pytest.raises(Interrupted):
        AdaBoostClassifier(**how).fit(*_data()[0])
    assert signal.getsignal(signal.SIGTERM) is handler_in_a_fit() is default
    assert handler_in_a_fit(checkpoint=tmp_path / "run.json") is not default
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        assert handler_in_a_fit(checkpoint=tmp_path / "other.json") is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, default)
