"""Sparse tables: what is particular to their columns, their scan on any library, and the bounds by
which most features need not be read. That every engine has the same rounds on a sparse table as on
the dense one is proved by the conformance suite."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import scipy.sparse
from backends import TESTED, Backend
from engine_ways import no_numba

from gpustump import (
    AdaBoostClassifier,
    DeviceError,
    GlassBoxClassifier,
    LogitBoostClassifier,
    StumpBoostingRegressor,
    arrays,
)
from gpustump.arrays import SparseTable
from gpustump.data.tables import check_table
from gpustump.engines.gain import Sums
from gpustump.engines.objective import Objective
from gpustump.engines.reference.integers import Integers
from gpustump.engines.reference.sparse_scan import SparseCells, best_split
from gpustump.engines.sparse_order import sorted_columns
from gpustump.engines.threads import Team


def words(n_samples: int, n_features: int, seed: int = 0) -> scipy.sparse.csr_array:
    """Counts of words, the first ones frequent, and a few values below 0 and missing ones."""
    random = np.random.default_rng(seed)
    dense = random.poisson(3.0 / np.arange(1, n_features + 1) ** 0.7, (n_samples, n_features))
    X = dense * random.choice([1.0, 1.5], dense.shape)
    X[random.random(X.shape) < 0.01] = np.nan
    X[random.random(X.shape) < 0.01] = -1.0
    return scipy.sparse.csr_array(X)


def labels(X: scipy.sparse.csr_array, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    scores = np.nan_to_num(X.toarray()) @ random.normal(size=X.shape[1])
    return (scores + random.normal(size=len(scores)) * scores.std() > np.median(scores)).astype(int)


FORMS: dict[str, Callable[[np.ndarray], object]] = {
    **{
        form: lambda X, form=form: scipy.sparse.coo_matrix(X).asformat(form)
        for form in ("bsr", "coo", "csc", "csr", "dok", "lil")
    },
    "an array": scipy.sparse.csr_array,
    "with zeros that are stored": lambda X: _stored_zeros(X),
    "in parts that add up": lambda X: _in_parts(X),
    "out of order": lambda X: _out_of_order(X),
    "with long indices": lambda X: _long(scipy.sparse.csc_matrix(X)),
}
"""The same table in the forms that SciPy has."""


def _stored_zeros(X: np.ndarray) -> object:
    found = scipy.sparse.csr_matrix(np.where(X == 0, 7.0, X))
    found.data[found.data == 7.0] = np.where(np.arange((found.data == 7.0).sum()) % 2, 0.0, -0.0)
    return found


def _in_parts(X: np.ndarray) -> object:
    rows, columns = np.nonzero(X)
    values = X[rows, columns]
    both = (np.tile(rows, 2), np.tile(columns, 2))
    return scipy.sparse.coo_array((np.tile(values / 2, 2), both), shape=X.shape)


def _out_of_order(X: np.ndarray) -> object:
    found = scipy.sparse.csc_matrix(X)
    for start, end in zip(found.indptr[:-1], found.indptr[1:], strict=True):
        found.indices[start:end] = found.indices[start:end][::-1].copy()
        found.data[start:end] = found.data[start:end][::-1].copy()
    found.has_sorted_indices = False
    return found


def _long(X: scipy.sparse.csc_matrix) -> object:
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@pytest.mark.parametrize("form", FORMS)
def test_a_table_is_the_same_in_all_forms_and_the_callers_matrix_is_not_changed(form):
    dense = words(40, 6).toarray()
    given = FORMS[form](dense)
    before = scipy.sparse.csr_matrix(given).toarray()
    table = check_table(given)
    assert isinstance(table, SparseTable)
    assert np.array_equal(table.dense(), dense, equal_nan=True)
    assert (table.values != 0).all()
    for feature in range(table.shape[1]):
        rows, _ = table.listed(feature)
        assert (np.diff(rows) > 0).all()
    assert np.array_equal(scipy.sparse.csr_matrix(given).toarray(), before, equal_nan=True)
    for rows in (np.array([3, 1, 20]), np.arange(0, 40, 3), slice(5, 9)):
        assert np.array_equal(table[rows].dense(), dense[rows], equal_nan=True)
        assert np.array_equal(table[rows, 2], dense[rows, 2], equal_nan=True)


@pytest.mark.parametrize("backend", TESTED, ids=lambda backend: backend.name)
def test_the_scan_finds_the_same_cut_on_every_library(backend: Backend):
    if backend.reason is not None or backend.kernels != "reference":
        pytest.skip(backend.reason or "the scan has no kernels")
    random = np.random.default_rng(1)
    table = sorted_columns(check_table(words(60, 8)), None, Team(1))
    first = random.integers(-(2**40), 2**40, size=(2, 60))
    second = random.integers(1, 2**40, size=(2, 60))
    objective = Objective.of(votes="newton", n_outputs=2, l2=5.0)

    def found(asarray: Callable[[np.ndarray], object]) -> object:
        own = [Sums(asarray(a), asarray(b)) for a, b in zip(first, second, strict=True)]
        with arrays.computing_on(own[0].gradient):
            integers = Integers.of(own)
            return best_split(SparseCells.of_table(table, own[0].gradient), integers, objective)

    assert found(backend.asarray) == found(np.asarray)


def searches(X: object, y: np.ndarray, estimator: object) -> Iterator[tuple[object, ...]]:
    """After each search of a fit: the search, the terms and the totals, and what it found."""
    from gpustump.engines.cpu.split import sparse_splits

    seen: list[tuple[object, ...]] = []

    class Watched(sparse_splits.SparseSearch):
        def best_cut(self, terms, totals):  # type: ignore[no-untyped-def]
            before = self._bounds.seen.copy()
            cut = super().best_cut(terms, totals)
            n_read = int((self._bounds.seen != before).sum())
            fresh = sparse_splits.SparseSearch(self._table, self._objective)
            best = fresh.best_cut(terms, totals)
            seen.append((cut, best, self._bounds.roots.copy(), fresh._bounds.roots, n_read))
            return cut

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpustump.engines.cpu.sparse.SparseSearch", Watched)
        patch.setenv("GPUSTUMP_KERNELS", "sorted")
        estimator.fit(X, y)
    yield from seen


@pytest.mark.parametrize(
    ("estimator", "classes", "most_read"),
    [
        (LogitBoostClassifier(n_estimators=120, learning_rate=0.1), 2, 0.6),
        (LogitBoostClassifier(n_estimators=60, learning_rate=1.0, l2_regularization=0.0), 2, 1.0),
        (LogitBoostClassifier(n_estimators=40), 3, 1.0),
        (StumpBoostingRegressor(n_estimators=60), 0, 0.75),
        (StumpBoostingRegressor(n_estimators=60, loss="poisson"), 0, 0.75),
        (StumpBoostingRegressor(n_estimators=60, loss="gamma"), 0, 0.75),
    ],
    ids=str,
)
@pytest.mark.skipif(no_numba() is not None, reason=str(no_numba()))
def test_bounds_hold_in_every_round_and_leave_features_unread(estimator, classes, most_read):
    """Against a search without memory, which reads all features."""
    X = words(700, 60)
    y = labels(X)
    if classes == 3:
        y = y + labels(X, seed=1)
    if classes == 0:
        y = y + np.random.default_rng(0).exponential(size=len(y))
    n_read, n_rounds = 0, 0
    for cut, best, bounds, roots, read in searches(X, y, estimator):
        assert cut == best
        assert (bounds >= roots * (1 - 2.0**-20)).all()
        n_read, n_rounds = n_read + read, n_rounds + 1
    assert n_rounds >= 40
    assert n_read <= most_read * n_rounds * X.shape[1]


@pytest.mark.skipif(no_numba() is not None, reason=str(no_numba()))
def test_a_search_after_an_interrupted_one_finds_the_best_cut():
    """Bounds that have not followed the samples would hide it."""
    from gpustump.engines.cpu.loss.terms import Terms
    from gpustump.engines.cpu.split import sparse_splits
    from gpustump.engines.cpu.table.sparse_table import prepare

    table = prepare(check_table(words(300, 20)), None, Team(1))
    objective = Objective.of(votes="newton", l2=5.0)
    own, random = sparse_splits.SparseSearch(table, objective), np.random.default_rng(0)
    for _ in range(4):
        for is_interrupted in (False, True, False):
            if is_interrupted or not own._is_searching:
                first = random.integers(-(2**40), 2**40, size=(1, 300))
                terms = Terms(first, np.abs(first) + 1)
                totals = np.stack([part.sum(axis=1) for part in terms], axis=1)
            with pytest.MonkeyPatch.context() as patch:
                if is_interrupted:
                    patch.setattr(sparse_splits, "_best_split", _interrupted)
                    with pytest.raises(KeyboardInterrupt):
                        own.best_cut(terms, totals)
                    continue
            fresh = sparse_splits.SparseSearch(table, objective)
            assert own.best_cut(terms, totals) == fresh.best_cut(terms, totals)


def _interrupted(*arguments: object) -> None:
    raise KeyboardInterrupt


def test_no_table_is_ever_made_dense():
    """Memory stays within a small multiple of what is stored and of the samples; the dense table
    would take 320 MB."""
    n_samples, n_features = 4000, 20_000
    random = np.random.default_rng(0)
    places = random.integers(n_samples, size=40_000), random.integers(n_features, size=40_000)
    X = scipy.sparse.coo_array((np.ones(40_000, dtype=np.float32), places), (n_samples, n_features))
    y = (np.asarray(X.tocsr()[:, :2000].sum(axis=1)) > 0).astype(int)
    estimators = (
        AdaBoostClassifier(n_estimators=4),
        GlassBoxClassifier(n_estimators=4, n_bags=2, interactions=1, random_state=0),
    )
    for estimator in estimators:
        tracemalloc.start()
        try:
            estimator.fit(X, y)
            estimator.predict_proba(X)
            estimator.explain(X)
            estimator.contribution_importances(X)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 100e6, estimator


REFUSED = {
    "a GPU": (AdaBoostClassifier(device="cuda"), "sparse tables are trained on the host"),
    "intervals": (AdaBoostClassifier(weak_learner="interval"), "weak_learner='interval' needs"),
    "categories": (AdaBoostClassifier(categorical_features=[1]), "categorical_features names 1,"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_sparse_tables_cannot_have_is_refused_by_name(what):
    X = words(40, 4)
    estimator, message = REFUSED[what]
    with pytest.raises((ValueError, DeviceError), match=message):
        estimator.fit(X, labels(X))
    assert not hasattr(estimator, "model_")


@pytest.mark.parametrize(("form", "what"), [("csr", "4 columns"), ("csc", "40 rows")])
@pytest.mark.parametrize("index", [-1, 40])
def test_an_index_that_the_matrix_does_not_have_is_refused(form: str, what: str, index: int):
    X = words(40, 4).asformat(form)
    X.indices[3] = index
    model = AdaBoostClassifier(n_estimators=2).fit(words(40, 4), labels(words(40, 4)))
    for method in (lambda: model.fit(X, labels(words(40, 4))), lambda: model.predict(X)):
        with pytest.raises(ValueError, match=f"X has {what}, but its indices list .* {index};"):
            method()


def test_a_route_says_that_a_table_is_sparse_and_keeps_to_max_memory():
    X = words(300, 20)
    fitted = LogitBoostClassifier(n_estimators=3, max_memory="1MB").fit(X, labels(X))
    assert "the table is sparse" in str(fitted.route_)
    with pytest.raises(ValueError, match="takes at least"):
        LogitBoostClassifier(n_estimators=3, max_memory="20kB").fit(X, labels(X))
