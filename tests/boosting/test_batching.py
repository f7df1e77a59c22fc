"""Rounds made in batches are those that are made one by one, in everything that can be seen.

Fits on sorted tables are compared with the same fits where nothing is made in batches, and with the
reference's: digests, records, held-out scores and errors, what callbacks get, and checkpoints.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rounds import trainer

pytest.importorskip("numba")

from gpustump import AdaBoostClassifier, LogitBoostClassifier, StumpBoostingRegressor
from gpustump.boosting.rounds.batching import Batching
from gpustump.boosting.rounds.boosting import Boosting
from gpustump.boosting.votes import splits
from gpustump.boosting.votes.discrete import DiscreteVotes
from gpustump.boosting.votes.exponential import ExponentialVotes
from gpustump.boosting.votes.newton import NewtonVotes
from gpustump.boosting.votes.settings import VoteSettings
from gpustump.engines.batched_rounds import NEWTON, VoteRule
from gpustump.engines.cpu import engine
from gpustump.engines.cpu.rounds import batched_rounds
from gpustump.engines.cpu.rounds.batched_rounds import BatchedRounds
from gpustump.engines.cpu.table import sorted_table
from gpustump.engines.threads import Team


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSTUMP_KERNELS", "sorted")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """How many rounds each call made, and which rounds were handed out or ordinary."""
    found: list[tuple[str, int]] = []
    make, hand_out = BatchedRounds.make, Batching.next

    def making(self: BatchedRounds, n_rounds: int, *candidates: Any) -> Any:
        made = make(self, n_rounds, *candidates)
        found.append(("made", len(made.features)))
        return made

    def handing_out(self: Batching, *so_far: Any) -> Any:
        made = hand_out(self, *so_far)
        found.append(("ordinary", 1) if made is None else ("handed out", len(made)))
        return made

    monkeypatch.setattr(BatchedRounds, "make", making)
    monkeypatch.setattr(Batching, "next", handing_out)
    return found


def n_of(told: list[tuple[str, int]], what: str) -> int:
    return sum(number for name, number in told if name == what)


def without_batches(make: Callable[[], Any]) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Batching, "of", lambda *_: None)
        return make()


def by_the_reference(make: Callable[[], Any]) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUSTUMP_KERNELS", "reference")
        return make()


def table(
    seed: int = 0, n_classes: int = 2, shape: tuple[int, int] = (160, 4)
) -> tuple[np.ndarray, np.ndarray]:
    """Ties, a constant column, missing and infinite values."""
    random = np.random.default_rng(seed)
    X = random.normal(size=shape)
    X[:, 1] = np.round(X[:, 1])
    X[:, -1] = 2.0
    score = X[:, 0] + np.abs(X[:, 1]) + random.normal(size=len(X))
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    X[random.random(X.shape) < 0.1] = np.nan
    X[random.random(X.shape) < 0.02] = np.inf
    X[random.random(X.shape) < 0.02] = -np.inf
    return X, y


STOPPING = {
    "n_iter_no_change": 12, "validation_fraction": 0.3, "random_state": 0,
    "scoring": "neg_log_loss", "tol": 1e-4,
}  # fmt: skip


def seen(classifier: Any) -> tuple[Any, ...]:
    names = ("rounds_", "held_out_scores_", "held_out_errors_", "stop_reasons_", "n_iter_")
    rest = [repr(getattr(classifier, name)) for name in names]
    return (classifier.model_.digest(), classifier.model_.bags, *rest)


def fitted(*given: np.ndarray, is_seen: bool = True, **how: Any) -> tuple[Any, ...]:
    """All that can be seen of a fit, and what its callback got, if it has one."""
    records: list[Any] = []
    validation = {name: how.pop(name) for name in ("X_val", "y_val") if name in how}
    how = {"n_estimators": 90, "learning_rate": 0.3, "device": "cpu", **how}
    make = how.pop("make", LogitBoostClassifier)
    classifier = make(callback=records.append if is_seen else None, **how).fit(*given, **validation)
    return seen(classifier), repr(records)


CASES: dict[str, dict[str, Any]] = {
    "two classes": {},
    "stopped early": STOPPING,
    "stopped early, by the loss": {**STOPPING, "scoring": "loss"},
    "stopped early, by another score": {**STOPPING, "scoring": "balanced_accuracy"},
    "watched only": {**STOPPING, "n_iter_no_change": 1000},
    "patience of one round": {**STOPPING, "n_iter_no_change": 1, "learning_rate": 0.01},
    "constrained, stopped early": {**STOPPING, "monotonic_cst": [-1, 1, 0, 1]},
    "not regularised": {"l2_regularization": 0.0, "learning_rate": 1.0, "n_estimators": 150},
    "tiny votes": {"learning_rate": 1e-9},
    "votes that round to zero": {"learning_rate": 1e-10, "l2_regularization": 50.0},
    "huge votes": {"learning_rate": 40.0},
    "smoothed bags, stopped early": {**STOPPING, "n_bags": 3, "smoothing_rounds": 40},
    "smoothed, constrained": {"smoothing_rounds": 70, "monotonic_cst": [1, -1, -1, 0]},
    "smoothed with tiny votes": {"smoothing_rounds": 30, "learning_rate": 1e-10},
}
CLASSES = ["stopped early", "not regularised", "huge votes", "smoothed bags, stopped early"]
ADABOOST = [
    *("two classes", "stopped early", "patience of one round", "constrained, stopped early"),
    *("votes that round to zero", "huge votes"),
]
SEVERAL = [(3, "shared"), (5, "shared"), (3, "one_vs_rest")]
EXPONENTIAL = ("discrete", "real")


@pytest.mark.parametrize(
    ("case", "votes", "n_classes", "multi_class"),
    [
        *((case, "newton", 2, "shared") for case in CASES),
        *((case, "newton", *own) for case in CLASSES for own in SEVERAL),
        *((case, votes, 2, "shared") for case in ADABOOST for votes in EXPONENTIAL),
        *((case, votes, *own) for case in ("stopped early", "huge votes")
          for votes in EXPONENTIAL for own in SEVERAL),
    ],
)  # fmt: skip
def test_rounds_made_ahead_are_those_of_the_reference(told, case, votes, n_classes, multi_class):
    X, y = table(len(case), n_classes)
    weights = np.random.default_rng(1).random(len(X)) + 0.1
    how = {**CASES[case], "multi_class": multi_class}
    if votes in EXPONENTIAL:
        how = {k: v for k, v in how.items() if k != "l2_regularization"}
        how |= {"make": AdaBoostClassifier, "votes": votes}
    found = fitted(X, y, weights, **how)
    n_batched, n_ordinary = n_of(told, "handed out"), n_of(told, "ordinary")
    assert found == by_the_reference(lambda: fitted(X, y, weights, **how))
    assert found[0] == fitted(X, y, weights, is_seen=False, **how)[0]
    assert votes == "newton" or "votes" in case or n_batched > 3 * n_ordinary


@pytest.mark.usefixtures("in_bins")
@pytest.mark.parametrize("case", ["two classes", "stopped early", *CLASSES[1:], "tiny votes"])
@pytest.mark.parametrize("is_whole", [False, True])
def test_rounds_of_quantile_loss_are_those_of_the_reference(told, case, is_whole):
    """At a rate of 1/2 votes are often in the middle of two multiples. Whole targets are often
    predicted exactly."""
    X, y = table_with_categories(len(case))
    random = np.random.default_rng(len(case))
    y = y * 2.0 + random.normal(size=len(y))
    y, weights = np.round(y) if is_whole else y, random.random(len(y)) + 0.1
    how = {key: own for key, own in CASES[case].items() if key != "scoring"}
    how["learning_rate"] = min(0.5, how.get("learning_rate", 0.5))
    how |= {"make": StumpBoostingRegressor, "loss": "quantile", "quantile": 0.3}
    how |= {"categorical_features": [1, 2, 4, 5]}
    found = fitted(X, y, weights, **how)
    n_batched, n_ordinary = n_of(told, "handed out"), n_of(told, "ordinary")
    assert found == by_the_reference(lambda: fitted(X, y, weights, **how))
    assert n_batched > 3 * n_ordinary or is_whole or "tiny" in case


def table_with_categories(
    seed: int, n_classes: int = 2, n_samples: int = 260
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, and categories: many, some of them rare; two; one; none."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_samples, 6))
    X[:, 0] = np.round(X[:, 0], 1)
    X[:, 1] = np.minimum(random.geometric(0.15, n_samples), 40) * 3
    X[:, 2] = random.integers(0, 2, n_samples)
    X[:, 4], X[:, 5] = 7, np.nan
    effect = random.normal(size=121)
    score = X[:, 0] + 2 * effect[X[:, 1].astype(int)] + X[:, 2] + random.normal(size=n_samples)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    X[random.random(X.shape) < 0.1] = np.nan
    X[random.random(n_samples) < 0.05, 1] = -1
    return X, y


def categorical(how: dict[str, Any]) -> dict[str, Any]:
    """A case on these tables: no constraint is for categories."""
    own = {"monotonic_cst": [1, 0, 0, -1, 0, 0]} if "monotonic_cst" in how else {}
    return {**how, "categorical_features": [1, 2, 4, 5], **own}


@pytest.fixture(params=[False, True], ids=["whole", "in bins"])
def in_bins(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide no sorted table into bins, or every one."""
    if request.param:
        for name in ("BINNED_ADDITIONS", "BINNED_SAMPLES", "BINNED_SAMPLES_WITH_SIGNS"):
            monkeypatch.setattr(engine, name, 1)


@pytest.mark.usefixtures("in_bins")
@pytest.mark.parametrize(
    ("case", "n_classes", "multi_class"),
    [
        *((case, 2, "shared") for case in ("two classes", "constrained, stopped early", *CLASSES)),
        ("smoothed with tiny votes", 2, "shared"),
        *(("smoothed bags, stopped early", *own) for own in SEVERAL),
    ],
)
def test_sets_of_categories_are_learnt_in_the_same_rounds(told, case, n_classes, multi_class):
    how = {**categorical(CASES[case]), "multi_class": multi_class}
    X, y = table_with_categories(len(case), n_classes)
    found = fitted(X, y, **how)
    n_batched, n_ordinary = n_of(told, "handed out"), n_of(told, "ordinary")
    assert found == by_the_reference(lambda: fitted(X, y, **how))
    if "votes" not in case:
        assert n_batched > n_ordinary
        assert "CategorySplit" in found[1]
    if case == "stopped early":
        of_sets, how["categorical_features"] = X[:, [1, 2, 5]], [0, 1, 2]
        assert fitted(of_sets, y, **how) == by_the_reference(lambda: fitted(of_sets, y, **how))


@pytest.mark.filterwarnings("ignore:votes became too large")
def test_votes_of_sets_count_towards_the_limit_as_in_the_reference(monkeypatch):
    """Missing values lie between categories, so their votes count as far as they are apart."""
    for module in ("batching", "boosting"):
        monkeypatch.setattr(f"gpustump.boosting.rounds.{module}.VOTES_LIMIT", 2.0)
    random = np.random.default_rng(0)
    X = random.integers(0, 6, size=(400, 2)).astype(float)
    X[random.random(X.shape) < 0.3] = np.nan
    y = np.nan_to_num(X[:, 0], nan=9) % 4 + 2 * random.normal(size=400) > 1.5
    how = {"categorical_features": [0, 1], "learning_rate": 0.05, "n_estimators": 400}
    found = fitted(X, y, **how)
    assert found == by_the_reference(lambda: fitted(X, y, **how))
    assert "large votes" in repr(found)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int16", "int64"])
@pytest.mark.parametrize("validation_dtype", ["float32", "float64"])
def test_values_of_other_types_lie_on_the_same_side(dtype, validation_dtype):
    """Watched values next to thresholds, of the same dtype or of another one."""
    random = np.random.default_rng(4)
    X = (random.integers(-9, 9, size=(120, 3)) * 7).astype(dtype)
    y = (X[:, 0] + random.normal(scale=20, size=120) > 0).astype(int)
    X_val = np.nextafter(random.choice(np.unique(X), (60, 3)) + 3.5, 0).astype(validation_dtype)
    how = {**STOPPING, "X_val": X_val, "y_val": np.arange(60) % 2, "n_estimators": 40}
    assert fitted(X, y, **how) == by_the_reference(lambda: fitted(X, y, **how))


def test_nearly_all_rounds_are_made_ahead_and_few_beyond_the_last(told):
    X, y = table(shape=(300, 4))
    fitted(X, y, **STOPPING, n_estimators=1000)
    n_made, n_taken = n_of(told, "made"), n_of(told, "handed out")
    assert n_made - n_taken < 4  # as early stopping is bound to wait for the others
    assert n_of(told, "ordinary") < n_taken / 10
    assert n_taken > 25


def test_no_record_is_made_before_it_is_read(monkeypatch):
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a record was made")

    X, y = table()
    with monkeypatch.context() as patch:
        patch.setattr(splits, "RegionRound", refuse)
        found = LogitBoostClassifier(n_bags=2, n_estimators=40, device="cpu", **STOPPING).fit(X, y)
        with pytest.raises(AssertionError, match="a record"):
            repr(found.rounds_)
    numbers = [[record.number for record in own] for own in found.rounds_]
    assert numbers == [list(range(1, len(own) + 1)) for own in found.rounds_]
    kept = pickle.loads(pickle.dumps(found))
    assert seen(kept) == seen(found)
    assert kept.rounds_ == found.rounds_


@pytest.mark.filterwarnings("ignore:.* made no round")
@pytest.mark.parametrize("votes", ["discrete", "real"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weight", [1.0, 1e-300, 1e9])
def test_a_perfect_round_or_none_better_than_chance_ends_adaboost_as_before(
    votes, n_classes, weight
):
    """Separable classes, with some weights far from the others; and labels by chance."""
    random = np.random.default_rng(n_classes)
    X = random.integers(0, 12, size=(80, 2)).astype(float)
    y = np.digitize(X[:, 0], np.arange(1, n_classes) * 4)
    weights = np.where(np.arange(len(X)) % 9 == 0, weight, 1.0)
    how = {"make": AdaBoostClassifier, "votes": votes, "multi_class": "shared"}
    found = fitted(X, y, weights, **how)
    assert by_the_reference(lambda: fitted(X, y, weights, **how)) == found
    assert "perfect" in repr(found) or n_classes > 2
    X, y = np.asarray([[0.0], [1.0]] * 20), np.arange(40) // 2 % 2
    found = fitted(X, y, **how)
    assert by_the_reference(lambda: fitted(X, y, **how)) == found
    assert "no edge" in repr(found)


def _rough(plain: Any) -> property:
    """A rule whose votes may be off by a share of a unit; those of Newton are computed twice."""

    def rough(votes: Any) -> VoteRule:
        rule = plain.fget(votes)
        return rule._replace(doubt=2.0**10 if rule.kind == NEWTON else 2.0**-37)

    return property(rough)


def fewer_digits(patch: pytest.MonkeyPatch, what: str, votes: str) -> None:
    """Doubts in every few rounds; discrete votes have one factor each, others many."""
    if what == "factors":
        doubt = 2.0**-56 if votes == "discrete" else 2.0**-59
        tables = batched_rounds.powers()._replace(doubt=doubt)
        patch.setattr(batched_rounds, "powers", lambda: tables)
    else:
        for cls in (ExponentialVotes, NewtonVotes, DiscreteVotes):
            patch.setattr(cls, "plain", _rough(cls.plain))


@pytest.mark.parametrize("votes", ["newton", "discrete", "real"])
@pytest.mark.parametrize("what", ["factors", "votes"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_doubt_is_left_to_an_ordinary_round_and_the_next_rounds_are_made_ahead(
    monkeypatch, told, what, n_classes, votes
):
    X, y = table(n_classes, n_classes)
    of_votes = {} if votes == "newton" else {"make": AdaBoostClassifier, "votes": votes}
    how = {**STOPPING, **of_votes, "n_estimators": 40}
    expected = without_batches(lambda: fitted(X, y, **how))
    with monkeypatch.context() as patch:
        fewer_digits(patch, what, votes)
        assert fitted(X, y, **how) == expected
    assert n_of(told, "ordinary") > 2
    assert n_of(told, "handed out") > 2


def test_where_every_round_is_in_doubt_ever_fewer_are_tried(told):
    X, y = table()
    expected = without_batches(lambda: fitted(X, y, learning_rate=40.0))
    told.clear()
    assert fitted(X, y, learning_rate=40.0) == expected
    calls = [number for name, number in told if name == "made"]
    assert 3 <= len(calls) <= 8
    assert not any(calls)


@pytest.mark.parametrize("at", [1, 8, 11, 25])
def test_a_callback_ends_a_run_in_the_middle_of_what_was_made(at):
    X, y = table()

    def run() -> tuple[Any, ...]:
        records: list[Any] = []
        stop = lambda record: records.append(record) or record.number == at  # noqa: E731
        how = {**STOPPING, "n_iter_no_change": 1000}
        classifier = LogitBoostClassifier(callback=stop, device="cpu", **how).fit(X, y)
        return seen(classifier), repr(records)

    assert run() == without_batches(run)


def test_a_memory_limit_leaves_no_room_for_batches(told):
    X, y = table()
    limited = fitted(X, y, max_memory="1 GiB")
    assert told == []
    assert limited == fitted(X, y)
    assert told != []


@pytest.fixture
def boosting() -> Boosting:
    X, y = table()
    labels = np.where(y > 0, 1.0, -1.0)
    votes = VoteSettings("newton", 0.3, 1.0).votes(np.ones(len(X)))
    made = sorted_table.prepare(X, None, Team(1))
    return Boosting(trainer(made), labels, np.ones(len(X)), votes=votes, n_rounds=20)


def test_a_boosting_that_looks_ahead_refuses_weights_and_resume_until_it_is_in_step(boosting):
    other = copy.deepcopy(boosting)
    boosting.make_batches()
    first = next(boosting)
    for ask in (lambda: boosting.weights, lambda: boosting.resume([], [])):
        with pytest.raises(RuntimeError, match="has made rounds ahead"):
            ask()
    assert [first, *boosting] == list(other)
    assert boosting.n_done == 20
    assert boosting.stop_reason == other.stop_reason == "limit"
    assert boosting.model.digest() == other.model.digest()
    assert boosting.weights.tolist() == other.weights.tolist()
    boosting.resume([], [])


def test_an_interruption_while_rounds_are_made_ends_the_boosting(monkeypatch, boosting):
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    boosting.make_batches()
    with monkeypatch.context() as patch:
        patch.setattr(BatchedRounds, "make", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(boosting)
    with pytest.raises(RuntimeError, match="start anew"):
        next(boosting)
