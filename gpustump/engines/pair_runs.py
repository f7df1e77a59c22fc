"""Starts a run of boosting by pairs of features, by the fastest engine available.

Pairs are learnt on the host, wherever the main effects were: bins are bytes, so sending them there
costs little beside the steps. Without Numba the array reference makes the steps, in NumPy.
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.contract import Beginning, Search
from gpustump.engines.integer_weights import in_units
from gpustump.engines.prediction import cpu_kernels_take
from gpustump.engines.quadrants import PairRun
from gpustump.engines.reference.pairs import ArrayPairRun
from gpustump.engines.reference.state import loss_of

_STEP_SECONDS, _SAMPLE_SECONDS = 2e-4, 2e-8
"""About how long the reference takes for a step of a pair, and for each sample in it."""


def pair_run(
    bins: np.ndarray,
    n_bins: tuple[int, ...],
    labels: np.ndarray,
    sample_weight: np.ndarray,
    search: Search,
    beginning: Beginning,
    n_steps: int,
) -> PairRun:
    """Begin a run from known scores.

    Parameters
    ----------
    bins : ndarray (n_features, n_samples) of uint8
        The samples' bins of some features.
    n_bins : tuple (n_features,) of int
        How many bins there are, that of missing values included.
    labels, sample_weight : ndarray (n_samples,)
        As for `contract.Engine.start`.
    search : Search
        For Newton votes.
    beginning : Beginning
    n_steps : int
        About how many steps of pairs it makes, or how many pairs it scores.
    """
    units = in_units(sample_weight, search.n_copies)
    seconds = n_steps * (_STEP_SECONDS + len(labels) * _SAMPLE_SECONDS)
    if not cpu_kernels_take(bins, seconds, "pairs"):
        return ArrayPairRun(bins, n_bins, loss_of(labels, units, search, beginning))
    from gpustump.engines.cpu.pairs import KernelPairRun

    return KernelPairRun(bins, n_bins, labels, units, search.loss, beginning)
