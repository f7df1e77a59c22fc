"""One weak hypothesis without boosting: the best stump, or the best interval."""

from __future__ import annotations

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.rounds import checked_resources, prepared_samples
from gpustump.data.parameters import Learner
from gpustump.data.tables import check_table
from gpustump.engines.contract import Resources, hypothesis_at
from gpustump.learners.interval import Interval
from gpustump.learners.stump import Stump


def fit_stump(
    X: Array,
    y: Array,
    sample_weight: Array | None = None,
    *,
    block_bytes: int | None = None,
    n_jobs: int | None = None,
    max_memory: int | str | None = None,
) -> Stump:
    """The decision stump of least weighted error: over every feature, threshold and sign.

    Parameters
    ----------
    X : array (n_samples, n_features)
        Booleans, integers or floats of any array library; NaN means missing.
    y : array (n_samples,)
        Labels -1 and +1, both present.
    sample_weight : array (n_samples,), optional
        Finite and not negative, not all zero; only their ratios matter. Equal if not given.
    block_bytes : int, optional
        How many bytes of temporaries the reference scan may take.
    n_jobs : int, optional
        Threads for the CPU kernels; by default all that this process may use. The stump does not
        depend on it.
    max_memory : int or str, optional
        How many bytes this may take beside X, of the host's memory or of a GPU's: 2_000_000_000,
        "500 MB", "2 GiB".

    Returns
    -------
    Stump
        Of equally good ones that with the lowest feature, then the lowest threshold; a constant one
        only where it is strictly better than every split.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described; the message names it and what was found.
    DeviceError
        If a GPU's memory is too small; the message says how much is needed.

    Notes
    -----
    This is empirical risk minimisation over decision stumps [Shalev-Shwartz and Ben-David,
    Understanding Machine Learning, 10.1.1], in O(n_features * n_samples * log n_samples).
    """
    resources = checked_resources(n_jobs, max_memory, block_bytes)
    stump = _fitted(X, y, sample_weight, "stump", resources)
    assert isinstance(stump, Stump)
    return stump


def fit_interval(
    X: Array,
    y: Array,
    sample_weight: Array | None = None,
    *,
    block_bytes: int | None = None,
    n_jobs: int | None = None,
    max_memory: int | str | None = None,
) -> Stump | Interval:
    """The interval or stump of least weighted error: over every feature, pair of cuts and sign.

    Parameters and errors are those of `fit_stump`.

    Returns
    -------
    Interval or Stump
        A stump where no interval on its feature is strictly better. Of equally good ones that with
        the lowest feature, then the lowest first cut, then the lowest second one; a constant stump
        only where it is strictly better than all others.

    Notes
    -----
    The largest rise and the largest fall between two values of one cumulative sum a feature; see
    `interval_scan`.

    Examples
    --------
    >>> import numpy as np
    >>> from gpustump import fit_interval
    >>> X = np.asarray([[0.0], [1.0], [2.0], [3.0]])
    >>> found = fit_interval(X, [-1, 1, 1, -1])
    >>> found.low, found.high, found.polarity, found.error
    (0.5, 2.5, 1, 0.0)
    """
    resources = checked_resources(n_jobs, max_memory, block_bytes)
    return _fitted(X, y, sample_weight, "interval", resources)


def _fitted(
    X: Array, y: Array, sample_weight: Array | None, learner: Learner, resources: Resources
) -> Stump | Interval:
    """What a weak learner finds; see `fit_stump`."""
    X = check_table(X)
    with arrays.computing_on(X):
        table, labels, weights = prepared_samples(X, y, sample_weight, learner, 1, resources)
        state = table.start(labels, weights, learner)
        return hypothesis_at(table, state.best_cut(), state.totals)
