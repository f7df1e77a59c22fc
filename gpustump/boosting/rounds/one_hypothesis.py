"""One weak hypothesis without boosting: the best stump, or the best interval."""

from __future__ import annotations

from typing import Any, NamedTuple

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.rounds.boosting import checked_resources, trainer_of
from gpustump.boosting.votes.settings import VoteSettings
from gpustump.boosting.votes.splits import SplitVotes
from gpustump.data.parameters import Learner, VoteKind
from gpustump.data.tables import check_table
from gpustump.data.weights import check_weighted_signs
from gpustump.engines.contract import Resources, hypothesis_at
from gpustump.learners.interval import Interval
from gpustump.learners.kinds import AnyStump
from gpustump.learners.split import Split
from gpustump.learners.stump import Stump


class VotedSplit(NamedTuple):
    """The best split for votes of its regions, as `fit_stump` returns it.

    Attributes
    ----------
    split : Split
    votes : (float, float, float)
        The votes of the left region, of the right one, and of missing values.
    score : float
        What the split is worth; see `RegionRound.score`.

    Examples
    --------
    >>> from gpustump import fit_stump
    >>> found = fit_stump([[0], [1], [2], [3]], [-1, -1, 1, 1], votes="newton")
    >>> found.split, found.votes, found.score
    (Split(feature=0, threshold=1.5), (-1.0, 1.0, 0.0), 4.0)
    """

    split: Split
    votes: tuple[float, float, float]
    score: float


def fit_stump(
    X: Array,
    y: Array,
    sample_weight: Array | None = None,
    *,
    votes: VoteKind = "discrete",
    l2_regularization: float = 0.0,
    block_bytes: int | None = None,
    n_jobs: int | None = None,
    max_memory: int | str | None = None,
) -> Any:
    """The best decision stump: over every feature and threshold, with signs or with votes.

    With discrete votes, the default, it is the stump of least weighted error. Other votes are those
    of the first round of boosting from scores of 0.

    Parameters
    ----------
    X : array (n_samples, n_features)
        Booleans, integers or floats of any array library; NaN means missing.
    y : array (n_samples,)
        Labels -1 and +1, both present.
    sample_weight : array (n_samples,), optional
        Finite and not negative, not all zero; equal if not given. Only their ratios matter, except
        for Newton votes with l2_regularization.
    votes : "discrete", "real" or "newton"
        "real": half the log-odds of each region, smoothed, for the split of the smallest Z
        [Schapire and Singer 1999]. "newton": a Newton step of the logistic loss in each region
        [Friedman, Hastie and Tibshirani 2000].
    l2_regularization : float
        For Newton votes only: shrinks the votes of regions with few samples; not negative. See
        `LogitBoostClassifier`, whose default is larger.
    block_bytes : int, optional
        How many bytes of temporary arrays the reference engine may take at once.
    n_jobs : int, optional
        Threads for the CPU kernels; by default all that this process may use. The stump does not
        depend on it.
    max_memory : int or str, optional
        How many bytes this may take besides X, of the host's memory or of a GPU's: 2_000_000_000,
        "500 MB", "2 GiB".

    Returns
    -------
    Stump, or VotedSplit if votes are not discrete
        Of equally good ones the one with the lowest feature, then the lowest threshold; a constant
        one only if it is strictly better than every split.

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

    Examples
    --------
    >>> import numpy as np
    >>> from gpustump import fit_stump
    >>> X = np.asarray([[0.0], [1.0], [2.0], [3.0]])
    >>> fit_stump(X, [-1, -1, 1, 1])
    Stump(feature=0, threshold=1.5, polarity=-1, missing=1, error=0.0)
    >>> found = fit_stump(X, [-1, -1, 1, 1], votes="newton")
    >>> found.split, found.votes
    (Split(feature=0, threshold=1.5), (-1.0, 1.0, 0.0))
    """
    settings = VoteSettings.checked(votes, l2_regularization=l2_regularization)
    resources = checked_resources(n_jobs, max_memory, block_bytes)
    return _best(check_table(X), y, sample_weight, settings, "stump", resources)


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
        A stump if no interval on its feature is strictly better. Of equally good ones the one with
        the lowest feature, then the lowest first cut, then the lowest second one; a constant stump
        only if it is strictly better than all others.

    Notes
    -----
    The best interval of a feature is the largest rise, or the largest fall, between two values of
    one cumulative sum; see `engines/reference/interval_scan.py`.

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
    found = _best(check_table(X), y, sample_weight, VoteSettings(), "interval", resources)
    assert isinstance(found, Stump | Interval)  # no feature is categorical here
    return found


def _best(
    X: Array,
    y: Array,
    sample_weight: Array | None,
    settings: VoteSettings,
    learner: Learner,
    resources: Resources,
) -> AnyStump | VotedSplit:
    """The best hypothesis for these votes, from scores of 0."""
    with arrays.computing_on(X):
        samples = check_weighted_signs(y, sample_weight, X)
        votes = settings.votes(samples.weights)
        objective = votes.objective(learner)
        trainer = trainer_of(X, samples, objective, 1, resources)
        state = trainer.start(samples.labels, samples.weights, objective)
        if not isinstance(votes, SplitVotes):
            return hypothesis_at(trainer.table, state.best_cut(), state.totals)
        taken = votes.best(trainer.table, state)
    assert isinstance(taken.hypothesis, Split)
    (left,), (right,), (missing,) = taken.region_votes
    score = votes.recorded(votes.gain(taken), taken.totals.weight)
    return VotedSplit(taken.hypothesis, (left, right, missing), score)
