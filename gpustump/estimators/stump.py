"""The one best decision stump as an estimator."""

from __future__ import annotations

from dataclasses import dataclass

from sklearn.utils.validation import check_is_fitted

from gpustump.arrays import Array
from gpustump.boosting.rounds.boosting import checked_resources
from gpustump.boosting.rounds.training import Settings
from gpustump.estimators.base import Data, DeviceName
from gpustump.estimators.classifiers import StumpClassifier
from gpustump.learners.stump import Stump


@dataclass(kw_only=True, eq=False, repr=False)
class DecisionStumpClassifier(StumpClassifier):
    """The one decision stump of least weighted error, as a classifier.

    For more than two classes, one stump for each class against the rest. See `fit_stump` for the
    stump as a plain value.

    Parameters
    ----------
    device : str
        As for `AdaBoostClassifier`.
    n_jobs : int or None
    max_memory : int, str or None
    block_bytes : int or None
        As for `AdaBoostClassifier`.

    Attributes
    ----------
    stump_ : Stump
        For two classes the stump; +1 stands for the second of `classes_`.
    model_ : StumpEnsemble
        One round of boosting; its vote gives `predict_proba`. It holds no stump if none is better
        than chance.
    n_estimators_ : int
        Always 1.
    classes_, n_classes_, device_, route_, feature_importances_, n_features_in_, feature_names_in_
        As for `AdaBoostClassifier`.

    Examples
    --------
    >>> from gpustump import DecisionStumpClassifier
    >>> X, y = [[1, 7], [2, 5], [3, 8], [4, 6]], ["no", "no", "yes", "yes"]
    >>> clf = DecisionStumpClassifier().fit(X, y)
    >>> clf.stump_
    Stump(feature=0, threshold=2.5, polarity=-1, missing=1, error=0.0)
    >>> clf.predict([[2.2, 9.0]]).tolist()
    ['no']
    """

    device: DeviceName = "auto"
    n_jobs: int | None = None
    max_memory: int | str | None = None
    block_bytes: int | None = None

    def fit(
        self, X: Array, y: Array, sample_weight: Array | None = None
    ) -> DecisionStumpClassifier:
        """Find the stump; X, y, sample_weight and errors as for `AdaBoostClassifier.fit`.

        Examples
        --------
        >>> from gpustump import DecisionStumpClassifier
        >>> clf = DecisionStumpClassifier().fit([[1], [2], [3]], [0, 1, 0], [1, 1, 3])
        >>> clf.stump_.threshold, clf.stump_.error
        (2.5, 0.2)
        """
        self._fit(Data(X, y, sample_weight), self._settings())
        return self

    def _settings(self) -> Settings:
        """The parameters, checked."""
        resources = checked_resources(self.n_jobs, self.max_memory, self.block_bytes)
        return Settings(n_rounds=1, resources=resources)

    @property
    def stump_(self) -> Stump:
        """The stump of a binary model.

        Raises
        ------
        AttributeError
            If there are more than two classes, or if no stump is better than chance.
        """
        check_is_fitted(self)
        stumps = self.model_.discrete_members[0].stumps
        if not self.model_.is_binary or not stumps:
            raise AttributeError(
                "stump_ needs two classes, and a stump better than chance; see model_.members"
            )
        assert isinstance(stumps[0], Stump)
        return stumps[0]
