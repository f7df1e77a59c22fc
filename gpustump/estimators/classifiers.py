"""What all classifiers share: labels, probabilities, and how they are scored."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.moving import moved_to_device_of
from gpustump.boosting.rounds.training import Samples
from gpustump.data.labels import check_labels, encode, warn_of_odd_classes
from gpustump.data.weights import check_class_weight, check_weights, weighted_by_class
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.estimators.base import Data, StumpEstimator
from gpustump.estimators.held_out import refuse_other_classes
from gpustump.estimators.targets import Offset, TargetDomain
from gpustump.model.classes import labels_at


class StumpClassifier(ClassifierMixin, StumpEstimator):
    """The base class of all classifiers: labels, probabilities, and their scores."""

    classes_: np.ndarray

    def decision_function(self, X: Array, *, init_score: Array | None = None) -> Array:
        """The score of each sample, the sum of the votes; see `StumpEnsemble.decision_function`.

        Parameters
        ----------
        X : array or frame (n_samples, n_features)
        init_score : array (n_samples,) or (n_samples, n_classes), optional
            As for `fit`: log-odds, half of which is added to the scores.

        Returns
        -------
        array of float64, (n_samples,) for two classes, otherwise (n_samples, n_classes)
            In the library and on the device of X; for frames and lists a NumPy array.

        Raises
        ------
        ValueError, TypeError
            If X is not a table of numbers with the features seen in `fit`, or lacks a column.

        Notes
        -----
        If X and the table seen in `fit` are frames with names, columns are found by name, in any
        order, and other columns are ignored. Otherwise they are matched by position.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> clf = AdaBoostClassifier(n_estimators=3).fit(X, y)
        >>> clf.decision_function(X).round(3).tolist()
        [-1.016, -1.016, 0.37, -0.929, 1.016]
        """
        check_is_fitted(self)
        table = self._table(X)
        scores = self.model_.decision_function(table, n_jobs=self.n_jobs)
        known = self._known(table, init_score)
        with arrays.computing_on(table):
            return scores if known is None else scores + known

    def predict(self, X: Array, *, init_score: Array | None = None) -> Array:
        """The label of each sample, (n_samples,), in X's library; text labels in NumPy.

        If a value is missing in a feature that had no missing values in training, the sample still
        gets a label, perhaps with a large score. A warning says so.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], ["no", "no", "yes", "no", "yes"]
        >>> clf = AdaBoostClassifier(n_estimators=3).fit(X, y)
        >>> clf.predict([[1.5], [4.9]]).tolist()
        ['no', 'yes']
        """
        return self._labels(self.decision_function(X, init_score=init_score))

    def predict_proba(self, X: Array, *, init_score: Array | None = None) -> Array:
        """Class probabilities (n_samples, n_classes); see `StumpEnsemble.probabilities_of`.

        After many rounds of AdaBoost they are too close to 0 and 1; the notes of
        `AdaBoostClassifier` say how to mend that. Those of `LogitBoostClassifier` are mostly good
        as they are.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], ["no", "no", "yes", "no", "yes"]
        >>> clf = LogitBoostClassifier(n_estimators=10).fit(X, y)
        >>> clf.classes_.tolist()
        ['no', 'yes']
        >>> clf.predict_proba([[1.5], [4.9]]).round(3).tolist()
        [[0.693, 0.307], [0.511, 0.489]]
        """
        scores = self.decision_function(X, init_score=init_score)
        return self.model_.probabilities_of(scores)

    def predict_log_proba(self, X: Array, *, init_score: Array | None = None) -> Array:
        """Logarithms of `predict_proba`.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> clf = LogitBoostClassifier(n_estimators=10).fit(X, y)
        >>> clf.predict_log_proba([[1.5], [4.9]]).round(3).tolist()
        [[-0.366, -1.182], [-0.671, -0.716]]
        """
        scores = self.decision_function(X, init_score=init_score)
        return self.model_.log_probabilities_of(scores)

    def staged_decision_function(
        self, X: Array, *, init_score: Array | None = None
    ) -> Iterator[Array]:
        """`decision_function` after 1, 2, ... rounds.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> clf = AdaBoostClassifier(n_estimators=3).fit(X, y)
        >>> for scores in clf.staged_decision_function([[1], [3]]):
        ...     print(scores.round(3).tolist())
        [-0.693, 0.693]
        [-1.666, -0.28]
        [-1.016, 0.37]
        """
        check_is_fitted(self)
        table = self._table(X)
        known = self._known(table, init_score)
        for scores in self.model_.staged_decision_function(table, n_jobs=self.n_jobs):
            if known is not None:
                with arrays.computing_on(table):
                    scores = scores + known
            yield scores  # not inside, as a caller may stop here

    def staged_predict(self, X: Array, *, init_score: Array | None = None) -> Iterator[Array]:
        """`predict` after 1, 2, ... rounds.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> clf = AdaBoostClassifier(n_estimators=3).fit(X, y)
        >>> [labels.tolist() for labels in clf.staged_predict(X)]
        [[0, 0, 1, 1, 1], [0, 0, 0, 0, 1], [0, 0, 1, 0, 1]]
        """
        yield from map(self._labels, self.staged_decision_function(X, init_score=init_score))

    def staged_predict_proba(self, X: Array, *, init_score: Array | None = None) -> Iterator[Array]:
        """`predict_proba` after 1, 2, ... rounds.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> clf = LogitBoostClassifier(n_estimators=3).fit(X, y)
        >>> for shares in clf.staged_predict_proba([[1]]):
        ...     print(shares.round(3).tolist())
        [[0.611, 0.389]]
        [[0.622, 0.378]]
        [[0.632, 0.368]]
        """
        for scores in self.staged_decision_function(X, init_score=init_score):
            yield self.model_.probabilities_of(scores)

    def score(
        self,
        X: Array,
        y: Array,
        sample_weight: Array | None = None,
        *,
        init_score: Array | None = None,
    ) -> float:
        """The (weighted) share of samples that `predict` gets right.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> clf = AdaBoostClassifier(n_estimators=1).fit(X, y)
        >>> clf.score(X, y)
        0.8
        >>> clf.score(X, y, sample_weight=[1, 1, 1, 4, 1])
        0.5
        """
        return self._accuracy(self.predict(X, init_score=init_score), y, sample_weight)

    def staged_score(
        self,
        X: Array,
        y: Array,
        sample_weight: Array | None = None,
        *,
        init_score: Array | None = None,
    ) -> Iterator[float]:
        """`score` after 1, 2, ... rounds.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> clf = AdaBoostClassifier(n_estimators=3).fit(X, y)
        >>> list(clf.staged_score(X, y))
        [0.8, 0.8, 1.0]
        """
        for predicted in self.staged_predict(X, init_score=init_score):
            yield self._accuracy(predicted, y, sample_weight)

    def predict_proba_interval(
        self, X: Array, coverage: float = 0.9, *, init_score: Array | None = None
    ) -> tuple[Array, Array]:
        """For each class probability a range that holds the probabilities of most bags.

        Parameters, result and errors are those of `StumpEnsemble.predict_proba_interval`; X may be
        a frame, and `init_score` is that of `decision_function`.

        Examples
        --------
        >>> from gpustump import GlassBoxClassifier
        >>> X = [[value] for value in range(20)]
        >>> y = [0, 1] * 3 + [0] * 4 + [1] * 10
        >>> clf = GlassBoxClassifier(n_estimators=5, random_state=0).fit(X, y)
        >>> low, high = clf.predict_proba_interval([[3], [15]], coverage=1.0)
        >>> low.shape, bool((low <= high).all())
        ((2, 2), True)
        """
        check_is_fitted(self)
        table = self._table(X)
        known = self._known(table, init_score)
        return self.model_.predict_proba_interval(table, coverage, known_scores=known)

    def _known(self, table: Array, init_score: Array | None) -> Array | None:
        """What is added to the scores of the rows of a checked table; None if that is nothing."""
        with arrays.computing_on(table):
            known = Offset(init_score).of_classes(table, len(self.classes_))
            return None if known is None else moved_to_device_of(known, table)

    def _labels(self, scores: Array) -> Array:
        return labels_at(self.classes_, self.model_.class_indices(scores))

    def _accuracy(self, predicted: Array, y: Array, sample_weight: Array | None) -> float:
        with arrays.computing_on(predicted):
            y = check_labels(y, predicted)
            if arrays.library_name(predicted) != arrays.library_name(y):  # text, or a list
                predicted, y = arrays.to_host(predicted), arrays.to_host(y)
                if arrays.is_array(sample_weight):
                    sample_weight = arrays.to_host(sample_weight)
            weights, rows = check_weights(sample_weight, y)
            return IntegerWeights.of(weights).share(arrays.picked(predicted == y, rows))

    def _samples_of(self, X: Array, data: Data) -> tuple[Samples, TargetDomain]:
        """The samples of a checked table that have a weight, and the classes."""
        with arrays.computing_on(X):
            given = check_weights(data.sample_weight, X)
            y = check_labels(data.y, X)
            class_weight = check_class_weight(self.class_weight)
            weights, rows = weighted_by_class(given, y, class_weight)
            if rows is not None:
                y = arrays.picked(y, moved_to_device_of(rows, y))
            classes, index = encode(y, weights)
            if data.earlier is not None:
                refuse_other_classes(classes, data.earlier[0])
            target = TargetDomain(classes)
            known = target.known(X, data.offset)
            offset = None if known is None else arrays.picked(known, rows)
        return Samples(rows, index, weights, offset), target

    def _warn_of_targets(self, target: TargetDomain, n_samples: int) -> None:
        warn_of_odd_classes(target.classes, n_samples)
