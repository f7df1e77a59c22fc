"""The data that benchmarks train on: drawn from one fixed generator, so that runs can be compared.

The label depends on a few features through steps, a product and noise, so that no stump is perfect
and boosting has something to do in every round.
"""

from __future__ import annotations

import numpy as np


def synthetic(n_samples: int, n_features: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A float32 table (n_samples, n_features), n_features >= 3, and labels 0 and 1."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_samples, n_features), dtype=np.float32)
    signal = (X[:, 0] > 0.3) + X[:, 1] * X[:, 2] + 0.5 * X[:, -1]
    noise = random.standard_normal(n_samples, dtype=np.float32)
    return X, (signal + noise > 0.5).astype(np.int64)
