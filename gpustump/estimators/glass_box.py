"""LogitBoost with defaults that need no tuning, for models that can be drawn as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpustump.data.parameters import GLASS_BOX
from gpustump.estimators.logitboost import LogitBoostClassifier


@dataclass(kw_only=True, eq=False, repr=False)
class GlassBoxClassifier(LogitBoostClassifier):
    """`LogitBoostClassifier` with bags, smoothing rounds and early stopping by default.

    The model is a sum of one step function for each feature and one table for each of some pairs of
    features, like interpret's Explainable Boosting Machine with its interactions [Lou, Caruana and
    Gehrke 2012; Lou, Caruana, Gehrke and Hooker 2013]. `plots.overview` draws it, with the spread
    of the bags, and `explain` says what each feature and each pair adds to the score of each row.

    The parameters are those of :class:`LogitBoostClassifier`, where they are described in full;
    only the defaults differ. They were chosen by measurement on real tables; `bench/NOTES.md` has
    the figures. A fit takes about `n_bags` times as long as one of `LogitBoostClassifier` with
    early stopping. More bags make scores and their spread steadier, most on small tables.

    Attributes
    ----------
    model_ : StumpEnsemble
        The average, one additive model; `model_.bag_models` has the models of the bags, and
        `model_.pairs` the tables of the pairs.
    rounds_, stop_reasons_, held_out_scores_, classes_, route_
        As for `LogitBoostClassifier`, and so are all others.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpustump import GlassBoxClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = GlassBoxClassifier(random_state=0, device="cpu").fit(X, y)
    >>> clf.model_.n_bags
    12
    >>> low, high = clf.predict_proba_interval(X[:1])  # how far the bags differ
    >>> bool((low <= high).all())
    True
    """

    n_estimators: int | None = GLASS_BOX.n_estimators
    learning_rate: float = GLASS_BOX.learning_rate
    l2_regularization: float | None = None
    smoothing_rounds: int = GLASS_BOX.smoothing_rounds
    interactions: Any = "auto"
    n_bags: int | None = None
    n_iter_no_change: int | None = GLASS_BOX.n_iter_no_change
    validation_fraction: float = GLASS_BOX.validation_fraction
    tol: float = GLASS_BOX.tol
