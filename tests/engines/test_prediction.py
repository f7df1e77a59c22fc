"""Scores by arrays, by the CPU's kernels and by CUDA's: sums of step functions, bit for bit.

Those of whole models, those that grow term by term, and what early stopping watches.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import cuda_on_cpu
import numpy as np
import pytest

pytest.importorskip("numba")

from cuda_on_cpu import OnCpu
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_models import member, region_member, rows

from gpustump import Interval, Split, Stump, StumpEnsemble
from gpustump.boosting.held_out.samples import HeldOut
from gpustump.boosting.held_out.scores import scorer
from gpustump.data.parameters import SCORINGS
from gpustump.engines.cpu.predict import held_out_sums, prediction, running_scores
from gpustump.engines.cpu.predict.held_out_sums import HeldOutSums
from gpustump.engines.cuda import prediction as on_cuda
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.engines.reference import prediction as on_arrays
from gpustump.engines.reference import running_scores as arrays_running
from gpustump.learners.hypothesis import Partition
from gpustump.learners.step_table import VOTE_UNIT, VOTES_LIMIT, StepTables
from gpustump.model.members import added_up

DTYPES = ["float16", "float32", "float64", "bool", "int8", "uint8", "int16", "uint16", "int32"]
DTYPES += ["uint32", "int64", "uint64"]
SEEDS = st.integers(0, 10**6)

needs_cuda = pytest.mark.skipif(bool(cuda_on_cpu.unusable()), reason=str(cuda_on_cpu.unusable()))


def by_cuda(X, constant, tables, threads=2):
    device = OnCpu(threads)
    found = on_cuda.scores(X, constant, tables, device)
    several = "" if len(constant) == 1 else "outputs_"
    assert device.launched == ([f"predict_{several}{X.dtype}"] if tables else [])
    return found


each_predictor = pytest.mark.parametrize(
    "scores",
    [
        pytest.param(lambda X, constant, tables, threads=1: on_arrays.scores(X, constant, tables),
                     id="arrays"),
        pytest.param(lambda *about, threads=2: prediction.scores(*about, threads), id="cpu"),
        pytest.param(by_cuda, marks=needs_cuda, id="cuda"),
    ],
)  # fmt: skip


def looked_up(X: np.ndarray, constant: np.ndarray, tables: StepTables) -> np.ndarray:
    """F(x), a look-up for each feature."""
    scores = np.tile(constant, (len(X), 1))
    for table in tables:
        scores = scores + table.look_up(X[:, table.feature])
    return scores


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "the first columns": lambda X: np.concatenate([X, X], axis=1)[:, : X.shape[1]],
}


@each_predictor
@settings(max_examples=120)
@given(
    SEEDS,
    st.sampled_from([0, 1, 3, 40, 300]),
    st.sampled_from(DTYPES),
    st.sampled_from([1, 2, 3, 5, 8]),
    st.sampled_from([1.0, 0.9, 0.0]),
    st.integers(1, 3),
    st.sampled_from(sorted(LAYOUTS)),
)
def test_scores_are_sums_of_step_functions_bit_for_bit(
    scores: Callable[..., np.ndarray], seed, n_splits, dtype, n_outputs, exact, threads, layout
):
    """Of a table of any layout, in pieces of its rows."""
    random = np.random.default_rng(seed)
    n_samples, n_features = int(random.integers(1, 900)), int(random.integers(1, 6))
    one = region_member(random, n_splits, n_features, n_outputs, exact=exact)
    if n_outputs == 1 and seed % 2:
        one = member(random, n_splits, n_features, exact=exact)
    constant, tables = added_up([one]).tables
    X = LAYOUTS[layout](rows(random, n_samples, n_features, dtype))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_arrays, "_AT_ONCE", 256)
        patch.setattr(prediction, "_PIECE", random.choice([70, prediction._PIECE]))
        found = scores(X, constant, tables, threads=threads)
    assert found.shape == (n_samples, n_outputs)
    assert found.tobytes() == looked_up(X, constant, tables).tobytes()


def test_layouts_are_kept_for_each_dtype_and_missing_values_are_noted():
    random = np.random.default_rng(2)
    constant, tables = added_up([region_member(random, 40, 6, 2)]).tables
    layouts: dict = {}
    for dtype in ("float64", "float32", "float64"):
        X = rows(random, 12, 6, dtype)
        X[:, 1:3] = np.nan_to_num(X[:, 1:3])
        lacking = np.zeros(len(tables), dtype=bool)
        found = on_arrays.scores(X, constant, tables, layouts, lacking)
        assert found.tobytes() == looked_up(X, constant, tables).tobytes()
        missing = np.isnan(X).any(axis=0)
        assert lacking.tolist() == [missing[table.feature] for table in tables]
    assert len(layouts) == 2


@pytest.mark.parametrize("copied", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy])
@pytest.mark.parametrize("kernels", ["reference", pytest.param("cuda", marks=needs_cuda)])
def test_a_copy_of_a_model_that_has_predicted_holds_nothing_of_that(monkeypatch, copied, kernels):
    random = np.random.default_rng(1)
    model = StumpEnsemble((region_member(random, 30, 4),), 4)
    X = rows(random, 50, 4, "float32")
    with monkeypatch.context() as patch:
        patch.setenv("GPUSTUMP_KERNELS", kernels)
        if kernels == "cuda":
            patch.setattr("gpustump.engines.cuda.device.device_of", lambda x: OnCpu())
        expected = model.decision_function(X)
    assert [name.split()[0] for name in model.additive._layouts] == ["float32"]
    again = copied(model)
    assert again == model
    assert set(vars(again.additive)) == {"parts"}  # what follows from them is made anew
    assert (again.decision_function(X) == expected).all()
    assert (
        again.truncated(3).decision_function(X) == model.truncated(3).decision_function(X)
    ).all()


def test_torch_rows_are_answered_in_torch(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("GPUSTUMP_KERNELS", "coded")
    random = np.random.default_rng(2)
    model = StumpEnsemble((member(random, 30, 4, exact=True),), 4)
    X = random.normal(size=(50, 4))
    found = model.decision_function(torch.asarray(X))
    assert isinstance(found, torch.Tensor)
    assert found.tolist() == model.decision_function(X).tolist()


def partition(random: np.random.Generator, n_features: int) -> Partition:
    """Any stump, split or interval; some ends are values that the rows have."""
    feature = int(random.integers(n_features))
    tiny = random.choice([5e-324, 1e-46, -1e-46, 3.5e38, -3.5e38])  # none of them a float32
    low = random.choice([random.normal(), np.round(random.normal()), -np.inf, 0.0, -0.0, tiny])
    high = low + random.exponential() if np.isfinite(low) else random.normal()
    high = max(high, np.nextafter(low, np.inf))
    kind = random.integers(3)
    if kind == 0:
        return Interval(feature, low, high, 1, -1, 0.25)
    threshold = random.choice([low, high, np.inf])
    return Stump(feature, threshold, -1, 1, 0.25) if kind == 1 else Split(feature, threshold)


@settings(max_examples=150)
@given(
    SEEDS,
    st.sampled_from(DTYPES),
    st.sampled_from(sorted(LAYOUTS)),
    st.booleans(),
    st.integers(1, 3),
)
def test_running_scores_of_kernels_and_arrays_have_the_same_bits(
    seed, dtype, layout, all_rows, threads
):
    random = np.random.default_rng(seed)
    n_samples, n_features = int(random.integers(1, 1400)), int(random.choice([1, 2, 4, 70]))
    X = LAYOUTS[layout](rows(random, n_samples, n_features, dtype))
    some = np.flatnonzero(random.random(n_samples) < 0.4)
    chosen = None if all_rows or not len(some) else some
    constant = random.normal(size=int(random.integers(1, 5))).tolist()
    keeps_values = bool(random.random() < 0.8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running_scores, "_PIECE", 500)
        ours = running_scores.RunningScores(X, chosen, constant, threads, keeps_values=keeps_values)
        theirs = arrays_running.RunningScores(X, chosen, constant)
        for _ in range(6):
            first = int(random.integers(len(constant)))
            n_outputs = int(random.integers(1, len(constant) - first + 1))
            votes = np.rint(random.normal(size=(3, n_outputs)) / VOTE_UNIT) * VOTE_UNIT
            votes[:, random.random(n_outputs) < 0.2] = 0.0  # none for some outputs
            term = partition(random, min(n_features, 3))
            copies = [own.copy() for own in (ours, theirs)]
            before = [own.tolist() for own in copies]
            ours.add(term, votes, first)
            theirs.add(term, votes, first)
            assert ours.now().tobytes() == theirs.now().tobytes()
            assert [own.tolist() for own in copies] == before  # a copy stays as it was


def validation(random: np.random.Generator, n_samples: int, n_outputs: int) -> list[HeldOut]:
    """Held-out samples, every class among them: without kernels, and with them."""
    n_classes = max(2, n_outputs)
    classes = random.integers(n_classes, size=n_samples)
    classes[:n_classes] = range(n_classes)
    spread = random.choice([0.0, 9.0])
    weights = IntegerWeights.of(np.exp(random.normal(scale=spread, size=n_samples)))
    kernels = HeldOutSums(classes, weights.values, n_classes, 2)
    return [HeldOut(classes, weights, n_outputs, lambda s=s: s) for s in (None, kernels)]


def any_scores(random: np.random.Generator, n_samples: int, n_outputs: int) -> np.ndarray:
    """Scores of any size that occur, with ties, zeros and the largest ones."""
    scale = random.choice([1e-9, 0.1, 3.0, 5e4])
    scores = np.rint(random.normal(size=(n_samples, n_outputs)) * scale / VOTE_UNIT) * VOTE_UNIT
    scores = np.clip(scores, VOTE_UNIT - VOTES_LIMIT, VOTES_LIMIT - VOTE_UNIT)
    scores[random.random(n_samples) < 0.2] = scores[0]
    scores[random.random(n_samples) < 0.1] = 0.0
    scores[-1] = VOTES_LIMIT - VOTE_UNIT
    return scores[:, 0] if n_outputs == 1 else scores


@settings(max_examples=100)
@given(
    SEEDS,
    st.sampled_from([1, 3, 6]),
    st.sampled_from(SCORINGS),
    st.sampled_from(["logistic", "softmax"]),
    st.sampled_from([held_out_sums._PIECE, 100]),
)
def test_scores_and_errors_of_held_out_samples_are_those_of_array_operations(
    seed, n_outputs, scoring, link, piece
):
    random = np.random.default_rng(seed)
    n_samples = int(random.integers(6, 300))
    link = "logistic" if n_outputs == 1 else link
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_out_sums, "_PIECE", piece)
        expected, found = validation(random, n_samples, n_outputs)
        scores = any_scores(random, n_samples, n_outputs)
        assert found.error(scores) == expected.error(scores)
        assert scorer(scoring, found, link)(scores) == scorer(scoring, expected, link)(scores)
