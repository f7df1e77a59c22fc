"""The parameters of an estimator that decide its model, as a file can hold them.

The other parameters say where and how fast it is trained, and what is shown or called meanwhile.
`random_state` is left out, too: it only decides the seed of each split, and these seeds are known
after the fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

_NOT_DECIDING = frozenset(
    {
        *("device", "n_jobs", "max_memory", "block_bytes", "verbose", "callback", "checkpoint"),
        *("random_state", "warm_start"),
        "estimator",  # it may only be a stump
    }
)


def deciding_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters that decide the model, with values that JSON has.

    Parameters
    ----------
    estimator : BaseEstimator
        One of this package.

    Returns
    -------
    dict of str
        In the order of their names. A mapping becomes a list of pairs, sorted by type and value of
        the keys, since labels may be numbers; arrays become lists; NumPy's numbers become Python's.
    """
    given = estimator.get_params(deep=False)
    return {name: plain(given[name]) for name in sorted(given) if name not in _NOT_DECIDING}


def plain(value: Any) -> Any:
    """A parameter's value as JSON has it."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        pairs = [[plain(key), plain(own)] for key, own in value.items()]
        return sorted(pairs, key=lambda pair: (type(pair[0]).__name__, pair[0]))
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [plain(own) for own in value]
    if isinstance(value, Real) and not isinstance(value, Integral):
        return float(value)  # as it is used; a fraction, for example
    return value
