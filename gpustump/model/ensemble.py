"""The finished model: stumps and votes as plain data, to predict with, save and compare.

A `StumpEnsemble` holds nothing on a device. Its results are in the library and on the device of the
table that it is given, and its decision values are the same numbers on all of them.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Any, TypeGuard

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.moving import moved_to_device_of
from gpustump.data import readable
from gpustump.data.frames import columns_of
from gpustump.data.parameters import LINKS, QUANTITY_LINKS, Link, check_count, check_real
from gpustump.data.readable import caller_level, counted, listed
from gpustump.data.tables import check_table
from gpustump.data.weights import check_weights
from gpustump.learners.kinds import OfCategories
from gpustump.learners.pair_table import PairTable
from gpustump.learners.step_table import Categories, CategoryTable, StepTable
from gpustump.model import classes, document, explanation, summary
from gpustump.model.additive import AdditiveModel, is_constant
from gpustump.model.bags import Bags
from gpustump.model.classes import Label as Label
from gpustump.model.classes import label_array
from gpustump.model.edits import Edit, Edits, edit_of, edited_parts, listed_edits
from gpustump.model.encoding import (
    Encoding,
    plain_encoding,
    stored_encoding,
    told_features_of,
    unseen_numbers,
    unseen_text,
)
from gpustump.model.members import AnyMember, Member, Members, RegionMember, added_up
from gpustump.model.pairs import check_pairs, with_moved

INTERCEPT = "(intercept)"
"""The name of the constant part of a score; in parentheses, as it is no feature."""


@dataclass(frozen=True, repr=False)
class StumpEnsemble:
    """A model of boosted stumps: a classifier, or a regression of a quantity.

    Attributes
    ----------
    members : tuple of Member, or tuple of RegionMember
        For two classes one, whose score is positive for the second class. Otherwise one for each
        class against the rest, or a single `RegionMember` with an output for each class: then all
        classes share its splits. For a quantity one `RegionMember`.
    n_features : int
    classes : tuple of bool, int, float or str
        The labels, in the order of the outputs; (-1, +1) by default. Empty for a quantity.
    feature_names : tuple of str, or None
    link : "logistic", "softmax", "identity" or "log"
        Keyword only. How probabilities follow from scores; see `probabilities_of`. "softmax" is for
        more than two classes, and for members of type `RegionMember`. "identity" and "log" are for
        a quantity, whose prediction is the score, or its exponential.
    missing_learnt : tuple of bool, or None
        Keyword only. For each feature whether values were missing in training, so that the votes
        for missing values there were learnt; None if unknown. Not part of the digest.
    bags : Bags or None
        Keyword only. If the model is an average of several, which of them each term is from. Not
        part of the digest, as it changes no score.
    pairs : tuple of PairTable
        Keyword only. What pairs of features add to the scores, beside the stumps; with values (k,
        m, n_outputs).
    moved : tuple of RegionMember
        Keyword only. For each member what was moved from the pairs into the functions of single
        features, so that the pairs' tables are pure: splits that are no rounds of boosting. Empty
        if there are no pairs.
    edits : Edits or None
        Keyword only. What was edited after training, if anything was; see `edited`. Not part of the
        digest, as the edited terms are.
    details : mapping
        More data for the file, in types that JSON has. Not part of the digest.

    Raises
    ------
    ValueError
        If members, classes, feature names, features and link do not fit together.
    TypeError
        If members are of different types.

    Examples
    --------
    >>> from gpustump import AdaBoostClassifier
    >>> X = [[1], [2], [3], [4], [5]]
    >>> y = ["no", "no", "yes", "no", "yes"]
    >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y).model_
    >>> model
    StumpEnsemble of 3 stumps on 1 feature for classes no, yes; digest 8c35cb66980f
    >>> model.predict([[0], [9]]).tolist()
    ['no', 'yes']

    A model can also be made by hand, of stumps and their votes:

    >>> from gpustump import Member, Stump, StumpEnsemble
    >>> stump = Stump(0, threshold=2.5, polarity=-1, missing=1, error=0.0)
    >>> member = Member((stump,), (0.5,))
    >>> StumpEnsemble((member,), n_features=1).predict([[1], [3]]).tolist()
    [-1, 1]
    """

    members: Members
    n_features: int
    classes: tuple[Label, ...] = (-1, 1)
    feature_names: tuple[str, ...] | None = None
    link: Link = field(default="logistic", kw_only=True)
    missing_learnt: tuple[bool, ...] | None = field(default=None, compare=False, kw_only=True)
    bags: Bags | None = field(default=None, compare=False, kw_only=True)
    pairs: tuple[PairTable, ...] = field(default=(), kw_only=True)
    moved: tuple[RegionMember, ...] = field(default=(), kw_only=True)
    edits: Edits | None = field(default=None, compare=False, kw_only=True)
    details: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        _check_members(self.members, len(self.classes))
        _check_link(self)
        if self.feature_names is not None and len(self.feature_names) != self.n_features:
            raise ValueError(
                f"feature_names must name {self.n_features} features; got "
                f"{len(self.feature_names)}."
            )
        if self.missing_learnt is not None:
            object.__setattr__(self, "missing_learnt", tuple(map(bool, self.missing_learnt)))
            if len(self.missing_learnt) != self.n_features:
                raise ValueError(
                    f"missing_learnt must say true or false for {self.n_features} features; got "
                    f"{len(self.missing_learnt)}."
                )
        if self.bags is not None:
            self.bags.check(self.members)
        check_pairs(self.pairs, self.moved, self.members, self.n_features)
        features = [one.feature for member in self.members for one in member.hypotheses]
        if features and not 0 <= min(features) <= max(features) < self.n_features:
            raise ValueError(
                f"stumps use features {min(features)} to {max(features)}, but n_features is "
                f"{self.n_features}."
            )

    def __repr__(self) -> str:
        return summary.line_of(self)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return summary.html_of(self)

    @cached_property
    def effects(self) -> Members:
        """The members, with what was moved from the pairs as further terms."""
        return self.members if not self.moved else with_moved(self.members, self.moved)

    @cached_property
    def additive(self) -> AdditiveModel:
        """The scores without those of the pairs as one additive model, with all outputs."""
        return added_up(self.effects)

    @cached_property
    def in_rounds(self) -> AdditiveModel:
        """The rounds of boosting alone, as one additive model with the outputs of all members."""
        return self.additive if not self.moved else added_up(self.members)

    @property
    def discrete_members(self) -> tuple[Member, ...]:
        """The members, if their votes are discrete: each stump votes +vote or -vote.

        Raises
        ------
        TypeError
            If every region of a split has votes of its own.
        """
        if not _are_discrete(self.members):
            raise TypeError(
                'the model must have discrete votes, as votes="discrete" gives; it holds '
                f"{self.members[0]!r}, whose regions have votes of their own."
            )
        return self.members

    @property
    def is_shared(self) -> bool:
        """Whether more than two classes share the splits of one member."""
        return self.members[0].n_outputs > 1

    @cached_property
    def encoding(self) -> Encoding:
        """How the columns of a frame become the features.

        Raises
        ------
        ValueError
            If the details hold one that does not fit the model.
        """
        stored = stored_encoding(self.details, self.n_features, self.feature_names)
        return stored or plain_encoding(self.n_features, self.feature_names)

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes, and so one output."""
        return len(self.classes) == 2

    @property
    def is_regression(self) -> bool:
        """Whether a quantity is predicted, and there are no classes."""
        return self.link in QUANTITY_LINKS

    @property
    def has_one_score(self) -> bool:
        """Whether a sample has one score, and not one for each class."""
        return self.is_binary or self.is_regression

    @property
    def used_features(self) -> frozenset[int]:
        """The features of all pairs, and of all stumps that are not constant."""
        of_pairs = (pair.features for pair in self.pairs)
        return frozenset().union(*(member.used_features for member in self.effects), *of_pairs)

    @property
    def n_outputs(self) -> int:
        """The number of scores of a sample: one for each class; 1 for two, and for a quantity."""
        return sum(member.n_outputs for member in self.members)

    @property
    def class_array(self) -> np.ndarray:
        """The labels (n_classes,) in a dtype that holds them exactly."""
        return label_array(self.classes)

    @property
    def n_rounds(self) -> int:
        """The largest number of rounds of any member."""
        return max(len(member) for member in self.members)

    def decision_function(self, X: Array, *, n_jobs: int | None = None) -> Array:
        """The score F(x) of each sample: the sum of the votes.

        Parameters
        ----------
        X : array or frame (n_samples, n_features)
            An array of any library, its columns in the order of training; or a frame of pandas,
            polars or pyarrow. If the frame and the model have names, columns are found by name, in
            any order, and other columns are ignored; otherwise by position. A model that the
            command line trained takes a table like the one that it was trained on, with its text
            and dates. NaN is missing.
        n_jobs : int, optional
            Threads for the CPU kernels; by default all that this process may use.

        Returns
        -------
        array of float64, in the library and on the device of X
            (n_samples,) for two classes, positive if the second one is predicted. For more,
            (n_samples, n_classes). For a quantity the predictions, (n_samples,).

        Raises
        ------
        ValueError, TypeError
            If X is not a table of numbers with `n_features` columns, or lacks a column, or holds
            another kind of values than in training.

        Warns
        -----
        UserWarning
            If a value is missing in a feature where none was missing in training. The stumps vote
            for such values, too, but these votes were not learnt: a row without any value may get a
            large score that means nothing. Also if a column of text or a categorical feature has
            values that were not in training. A model that knows no names of a feature's categories
            takes those of its splits for all that were in training; if it does not use the feature,
            there is no warning.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y).model_
        >>> model.decision_function(X).round(3).tolist()
        [-1.016, -1.016, 0.37, -0.929, 1.016]
        """
        X = self.checked(X)
        lacking = None
        if self.missing_learnt is not None and not all(self.missing_learnt):
            lacking = np.zeros(len(self.additive.tables[1]), dtype=bool)
        with arrays.computing_on(X):
            scores = self._scores(X, n_jobs, lacking)
        if lacking is not None and lacking.any():
            self._warn_of_missing(lacking)
        return scores

    def predict(self, X: Array, *, n_jobs: int | None = None) -> Array:
        """The predicted label, or quantity, of each sample, (n_samples,); see `labels_of`.

        If a value is missing in a feature that had no missing values in training, the sample still
        gets a label, perhaps with a large score. A warning says so. X, errors and warnings are
        those of `decision_function`.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], ["no", "no", "yes", "no", "yes"]
        >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y).model_
        >>> model.predict([[1.5], [4.9]]).tolist()
        ['no', 'yes']
        """
        scores = self.decision_function(X, n_jobs=n_jobs)
        return self.quantities_of(scores) if self.is_regression else self.labels_of(scores)

    def predict_proba(self, X: Array) -> Array:
        """Class probabilities (n_samples, n_classes), float64. See `probabilities_of`.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], ["no", "no", "yes", "no", "yes"]
        >>> model = LogitBoostClassifier(n_estimators=10).fit(X, y).model_
        >>> model.predict_proba([[1.5], [4.9]]).round(3).tolist()
        [[0.693, 0.307], [0.511, 0.489]]
        """
        return self.probabilities_of(self.decision_function(X))

    def staged_decision_function(self, X: Array, *, n_jobs: int | None = None) -> Iterator[Array]:
        """`decision_function` after 1, 2, ... rounds; the last equals it exactly.

        A model without rounds has no such step. The score of a member with fewer rounds than others
        stays the same after its last round. If there are pairs of features, one more step adds all
        of them.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y).model_
        >>> for scores in model.staged_decision_function([[1], [3]]):
        ...     print(scores.round(3).tolist())
        [-0.693, 0.693]
        [-1.666, -0.28]
        [-1.016, 0.37]
        """
        X = self.checked(X)
        for scores in self.in_rounds.staged_scores(X, n_jobs):
            yield self._read(scores)
        if self.pairs or self.moved:
            with arrays.computing_on(X):
                scores = self._scores(X, n_jobs)
            yield scores  # not inside, as a caller may stop here

    def staged_predict(self, X: Array) -> Iterator[Array]:
        """`predict` after 1, 2, ... rounds.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y).model_
        >>> [labels.tolist() for labels in model.staged_predict(X)]
        [[0, 0, 1, 1, 1], [0, 0, 0, 0, 1], [0, 0, 1, 0, 1]]
        """
        stages = self.staged_decision_function(X)
        return map(self.quantities_of if self.is_regression else self.labels_of, stages)

    def staged_predict_proba(self, X: Array) -> Iterator[Array]:
        """`predict_proba` after 1, 2, ... rounds.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> model = LogitBoostClassifier(n_estimators=3).fit(X, y).model_
        >>> for shares in model.staged_predict_proba([[1]]):
        ...     print(shares.round(3).tolist())
        [[0.611, 0.389]]
        [[0.622, 0.378]]
        [[0.632, 0.368]]
        """
        return map(self.probabilities_of, self.staged_decision_function(X))

    def labels_of(self, scores: Array) -> Array:
        """The labels that belong to decision values, (n_samples,).

        Numeric labels are in the library and on the device of the scores, text in a NumPy array. If
        two classes have the same score, or the score of a binary model is 0, the first one is
        predicted.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], ["no", "no", "yes", "no", "yes"]
        >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y).model_
        >>> scores = model.decision_function(X)
        >>> model.labels_of(scores).tolist()
        ['no', 'no', 'yes', 'no', 'yes']
        >>> model.labels_of(scores - 1.0).tolist()  # "yes" only above a score of 1
        ['no', 'no', 'no', 'no', 'yes']
        """
        index = self.class_indices(scores)
        return classes.labels_at(self.class_array, index)

    def quantities_of(self, scores: Array) -> Array:
        """The predictions of a quantity that belong to scores, float64 (n_samples,).

        These are the scores; with the link "log" their exponentials.

        Raises
        ------
        TypeError
            If the model predicts classes.

        Examples
        --------
        >>> import numpy as np
        >>> from gpustump import StumpBoostingRegressor
        >>> reg = StumpBoostingRegressor(loss="poisson", n_estimators=1).fit([[1], [2]], [2, 4])
        >>> reg.model_.quantities_of(np.asarray([0.0, 1.0])).round(3).tolist()
        [1.0, 2.718]
        """
        if not self.is_regression:
            raise TypeError("this model predicts classes, not a quantity.")
        if self.link == "identity":
            return scores
        with arrays.computing_on(scores):
            return arrays.namespace_of(scores).exp(scores)

    def class_indices(self, scores: Array) -> Array:
        """The indices into `classes`, int64 (n_samples,), that belong to decision values.

        Examples
        --------
        >>> import numpy as np
        >>> from gpustump import Member, Stump, StumpEnsemble
        >>> member = Member((Stump(0, 2.5, -1, 1, 0.0),), (0.5,))
        >>> model = StumpEnsemble((member,), n_features=1, classes=("no", "yes"))
        >>> model.class_indices(np.asarray([-0.5, 0.0, 0.5])).tolist()
        [0, 0, 1]
        """
        self.refuse_quantity()
        return classes.class_indices(scores)

    def probabilities_of(self, scores: Array) -> Array:
        """The class probabilities that belong to decision values, (n_samples, n_classes).

        With the link "logistic", P(second class) = 1 / (1 + exp(-2 F)) [Friedman, Hastie and
        Tibshirani 2000, section 4.1]. With more classes, this is computed for each score and
        divided by the sum. With the link "softmax", P_l = exp(2 F_l) / sum_m exp(2 F_m).

        Examples
        --------
        >>> import numpy as np
        >>> from gpustump import Member, Stump, StumpEnsemble
        >>> member = Member((Stump(0, 2.5, -1, 1, 0.0),), (0.5,))
        >>> model = StumpEnsemble((member,), n_features=1)
        >>> model.probabilities_of(np.asarray([-0.5, 0.0, 2.0])).round(3).tolist()
        [[0.731, 0.269], [0.5, 0.5], [0.018, 0.982]]
        """
        self.refuse_quantity()
        return classes.probabilities(scores, self.link)

    def log_probabilities_of(self, scores: Array) -> Array:
        """Logarithms of `probabilities_of`, also finite where a probability underflows to 0.

        Examples
        --------
        >>> import numpy as np
        >>> from gpustump import Member, Stump, StumpEnsemble
        >>> member = Member((Stump(0, 2.5, -1, 1, 0.0),), (0.5,))
        >>> model = StumpEnsemble((member,), n_features=1)
        >>> model.log_probabilities_of(np.asarray([0.0, 1000.0])).round(3).tolist()
        [[-0.693, -0.693], [-2000.0, 0.0]]
        """
        self.refuse_quantity()
        return classes.log_probabilities(scores, self.link)

    def refuse_quantity(self) -> None:
        """Refuse a question about classes if there are none.

        Raises
        ------
        TypeError
            If the model predicts a quantity.

        Examples
        --------
        >>> from gpustump import StumpBoostingRegressor
        >>> model = StumpBoostingRegressor(n_estimators=1).fit([[1], [2]], [0.5, 1.5]).model_
        >>> model.refuse_quantity()
        Traceback (most recent call last):
        TypeError: this model predicts a quantity: it has no classes and no probabilities.
        """
        if self.is_regression:
            raise TypeError(
                "this model predicts a quantity: it has no classes and no probabilities."
            )

    @property
    def intercepts(self) -> tuple[float, ...]:
        """For each output the part of the score that depends on no feature.

        It is what the score starts from, plus the votes of stumps that vote the same for all
        values.
        """
        return tuple(constant for constant, _ in self._step_tables)

    def shape_function(
        self, feature: int | str, *, label: Label | None = None
    ) -> StepTable | CategoryTable:
        """A feature's contribution to the score as a function of its value.

        The score of a sample is the sum of the intercept and of all features' shape functions at
        the sample's values. The sum is exact in any order.

        Parameters
        ----------
        feature : int or str
            Its index, or its name if the model has names.
        label : bool, int, float or str, optional
            With more than two classes, the class whose score it is.

        Returns
        -------
        StepTable
            `thresholds` (k,), `values` (k,) and the vote for `missing` values. A feature without
            stumps has one step of height 0. For a bagged model `bags` (n_bags, k + 1) holds the
            values of each bag, so the table has `deviations` and `quantiles`.
        CategoryTable
            Of a categorical feature: `categories` (k,) and `values` (k,) in place of steps.

        Raises
        ------
        ValueError, TypeError
            If there is no such feature or class, or if the label is missing with more than two
            classes.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> model = LogitBoostClassifier(n_estimators=10).fit(X, y).model_
        >>> table = model.shape_function(0)
        >>> table.thresholds.tolist()
        [2.5, inf]
        >>> table.values.round(3).tolist()
        [-0.205, 0.18]
        """
        wanted = self.feature_index(feature)
        table = explanation.step_table_of(self, wanted, label)
        return explanation.by_category(table, self._categories.get(wanted))

    @cached_property
    def _categories(self) -> Mapping[int, Categories]:
        """Of each categorical feature its categories: names, or else numbers; see `CategoryTable`.

        Models do not know which features are categorical if they neither know names nor use them.
        """
        named = ((j, self.encoding.categories(j)) for j in self.encoding.categorical_features)
        return self._numbers | {j: names for j, names in named if names is not None}

    @cached_property
    def _numbers(self) -> dict[int, tuple[int, ...]]:
        """Of each feature that is used in sets of categories only, the numbers of all these sets.

        Each split knows all categories that its training samples had; bags may have had others.
        """
        found: dict[int, set[int]] = {}
        for member in self.effects:
            for one in member.hypotheses:
                if isinstance(one, OfCategories):
                    found.setdefault(one.feature, set()).update(one.left, one.right)
        if not found:
            return {}
        terms = (zip(own.hypotheses, own.region_votes, strict=True) for own in self.effects)
        others = {
            one.feature
            for one, votes in itertools.chain.from_iterable(terms)
            if not isinstance(one, OfCategories) and not is_constant(one, votes)
        }
        return {j: tuple(sorted(own)) for j, own in found.items() if j not in others}

    def explain(self, X: Array) -> Array:
        """Each feature's contribution to each sample's score.

        Parameters
        ----------
        X : array or frame (n_samples, n_features)
            As for `decision_function`.

        Returns
        -------
        array of float64, in the library and on the device of X
            (n_samples, n_features + n_pairs + 1): the features, then the pairs, and the intercept
            in the last column. With more than two classes (n_samples, n_classes, n_features +
            n_pairs + 1). The sum over the last axis is `decision_function(X)`, bit for bit. For a
            sparse matrix a sparse array of SciPy: contributions are what a value adds against 0,
            and the intercept is the score of a row of zeros. With more than two classes it is a
            list of such arrays, one for each class.

        Raises
        ------
        ValueError, TypeError
            If X is not a table of numbers with `n_features` columns.

        Notes
        -----
        The layout is that of XGBoost's `pred_contribs`, with the pairs before the intercept. Here a
        contribution is the sum of the feature's votes. In a model without pairs, features do not
        interact, so the contribution minus its mean over a table is exactly the feature's
        interventional Shapley value with that table as background, for the score [Lundberg and Lee
        2017].

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X, y = [[1, 9], [2, 5], [3, 8], [4, 6], [5, 7]], [0, 0, 1, 0, 1]
        >>> model = LogitBoostClassifier(n_estimators=10).fit(X, y).model_
        >>> parts = model.explain([[4.5, 5.5]])  # two features and the intercept
        >>> parts.round(3).tolist()
        [[0.096, -0.109, -0.203]]
        >>> float(parts.sum()) == float(model.decision_function([[4.5, 5.5]])[0])
        True
        """
        X = self.checked(X)
        with arrays.computing_on(X):
            tables = self.additive.tables
            parts = explanation.contributions(X, *tables, self.pairs, self.n_features)
            if arrays.is_sparse(X):
                return parts[0] if self.has_one_score else parts
            return parts[:, 0, :] if self.has_one_score else parts

    @property
    def contribution_names(self) -> tuple[str, ...]:
        """Names for the contributions of `explain` as columns: the features', then those of pairs,
        such as "age x income", then "(intercept)".

        With more than two classes there is such a set for each class: "label: feature".
        """
        parts = (*self.term_names, INTERCEPT)
        if self.has_one_score:
            return parts
        return tuple(f"{label}: {part}" for label in self.classes for part in parts)

    @property
    def term_names(self) -> tuple[str, ...]:
        """The names of the features, "x0", "x1", ... if they have none, then those of the pairs."""
        names = self.feature_names or tuple(f"x{j}" for j in range(self.n_features))
        pairs = (f"{names[j]} x {names[k]}" for j, k in (pair.features for pair in self.pairs))
        return (*names, *pairs)

    def feature_importances(self) -> np.ndarray:
        """Each feature's share of the absolute votes of stumps, (n_features,).

        If the regions of a split have votes of their own, half the difference between the largest
        and the smallest vote counts, added up over the outputs. For a stump that votes +vote or
        -vote that is the absolute vote. The shares add up to 1, or to 0 if the model uses no
        feature.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1, 9], [2, 5], [3, 8], [4, 6], [5, 7]], [0, 0, 1, 0, 1]
        >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y).model_
        >>> model.feature_importances().round(3).tolist()
        [0.565, 0.435]
        """
        weight = np.zeros(self.n_features)
        for member in self.members:
            features = [one.feature for one in member.hypotheses]
            np.add.at(weight, np.asarray(features, dtype=np.int64), member.term_importances)
        total = weight.sum()
        return weight / total if total else weight

    def contribution_importances(self, X: Array, sample_weight: Array | None = None) -> np.ndarray:
        """The share of each feature, and of each pair, in how the scores of a table's rows differ.

        Many votes on one feature may cancel out, or concern few samples. This measures their
        effect: the mean absolute deviation of the feature's contributions from their mean (the mean
        absolute Shapley value), as a share of the sum over all features.

        Parameters
        ----------
        X : array or frame (n_samples, n_features)
            As for `decision_function`.
        sample_weight : array (n_samples,), optional

        Returns
        -------
        ndarray (n_features + n_pairs,)
            In the order of `term_names`. The sum is 1, or 0 if every row has the same score. The
            same numbers on every device.

        Raises
        ------
        ValueError, TypeError
            If X or sample_weight is not as described.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X, y = [[1, 9], [2, 5], [3, 8], [4, 6], [5, 7]], [0, 0, 1, 0, 1]
        >>> model = LogitBoostClassifier(n_estimators=10).fit(X, y).model_
        >>> model.contribution_importances(X).round(3).tolist()
        [0.5, 0.5]
        """
        X = self.checked(X)
        with arrays.computing_on(X):
            weights, rows = check_weights(sample_weight, X)
            tables = [tables for _, tables in self._step_tables]
            counted = None if sample_weight is None else weights
            return explanation.importances(X, rows, counted, tables, self.pairs, self.n_features)

    def feature_index(self, feature: int | str) -> int:
        """A feature's index, from its index or its name.

        Raises
        ------
        ValueError, TypeError
            If there is no such feature.

        Examples
        --------
        >>> from gpustump import Member, Stump, StumpEnsemble
        >>> member = Member((Stump(1, 50.0, -1, 1, 0.0),), (0.5,))
        >>> model = StumpEnsemble((member,), 2, feature_names=("age", "income"))
        >>> model.feature_index("income"), model.feature_index(0)
        (1, 0)
        """
        if isinstance(feature, str):
            if self.feature_names is None:
                raise ValueError(
                    f"feature {feature!r}: this model has no feature names; give an index."
                )
            if feature not in self.feature_names:
                hint = readable.suggestion(feature, self.feature_names)
                if feature in self.term_names:
                    hint = " It is a pair, which model.pairs holds and plots.pair draws."
                raise ValueError(f"feature {feature!r} is none of the model's features.{hint}")
            return self.feature_names.index(feature)
        index = check_count(feature, "feature", least=0)
        if index >= self.n_features:
            raise ValueError(
                f"feature must be below {self.n_features}, the number of features; got {feature!r}."
            )
        return index

    def output_index(self, label: Label | None) -> int:
        """The index of the output that is a label's score; errors as for `shape_function`.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], ["low", "low", "mid", "top", "top"]
        >>> model = LogitBoostClassifier(n_estimators=3).fit(X, y).model_
        >>> model.output_index("top")
        2
        """
        if self.is_regression:
            if label is not None:
                raise ValueError(
                    f"label must be left out, as this model predicts a quantity; got {label!r}."
                )
            return 0
        if self.is_binary:
            if label is not None and label != self.classes[1]:
                raise ValueError(
                    f"label must be {self.classes[1]!r}, whose score is the only one with two "
                    f"classes, or left out; got {label!r}."
                )
            return 0
        if label is None and len(self.classes) == 1:
            return 0
        if label not in self.classes:
            raise ValueError(
                f"label must be one of {listed(self.classes)}, as each class has a score of its "
                f"own; got {label!r}."
            )
        return self.classes.index(label)

    def output_tables(self, number: int) -> tuple[float, tuple[StepTable | CategoryTable, ...]]:
        """One output's score as a sum of step functions.

        Parameters
        ----------
        number : int
            From 0; see `output_index`.

        Returns
        -------
        float
            The part of the score that depends on no feature.
        tuple of StepTable or CategoryTable
            One for each feature that the score depends on, with values (k,). With one class against
            the rest, a table has the thresholds of its own class only.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y).model_
        >>> constant, tables = model.output_tables(0)
        >>> constant, tables
        (0.0, (StepTable of feature 0 with 4 steps,))
        """
        constant, tables = self._step_tables[number]
        categories = self._categories
        return constant, tuple(
            explanation.by_category(table, categories.get(table.feature)) for table in tables
        )

    @cached_property
    def _step_tables(self) -> tuple[tuple[float, tuple[StepTable, ...]], ...]:
        """Of each output the constant part, and a step function for each feature in use."""
        every = self.effects
        parts = [added_up([one]) for one in every] if len(every) > 1 else [self.additive]
        return tuple(
            (float(constant[output]), tuple(table.output(output) for table in tables))
            for constant, tables in (part.tables for part in parts)
            for output in range(len(constant))
        )

    def output_member(self, number: int) -> Member | RegionMember:
        """A member with the votes of one output only; `number` counts the outputs from 0.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], ["low", "low", "mid", "top", "top"]
        >>> model = LogitBoostClassifier(n_estimators=3).fit(X, y).model_
        >>> model.members
        (RegionMember of 3 splits, n_outputs=3,)
        >>> model.output_member(2)
        RegionMember of 3 splits, n_outputs=1
        """
        first = self.members[0]
        if self.is_shared and isinstance(first, RegionMember):
            return first.of_output(number)
        return self.members[number]

    def member_index(self, label: Label | None) -> int:
        """The index of the member that a label's score is from; errors as for `shape_function`.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], ["low", "low", "mid", "top", "top"]
        >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y).model_
        >>> model.members[model.member_index("mid")]
        Member of 3 stumps
        """
        number = self.output_index(label)
        return 0 if self.is_shared else number

    @property
    def n_bags(self) -> int:
        """How many models were averaged; 1 if the model is no average."""
        return 1 if self.bags is None else self.bags.n_bags

    @cached_property
    def bag_models(self) -> tuple[StumpEnsemble, ...]:
        """The models whose average a bagged model is; none for any other model.

        The average of their scores is the model's score, except that the constant of each output,
        and the table of each pair of features, were rounded: by at most half a unit of the votes
        each, 2**-37 for classes. What was moved from the tables into the functions of single
        features is the same in every bag; so only the average's tables are pure.
        """
        if self.bags is None:
            return ()
        found = []
        for bag in range(self.bags.n_bags):
            members: Any = tuple(
                self.bags.member_of(member, number, bag)
                for number, member in enumerate(self.members)
            )
            pairs = tuple(pair.of_bag(bag) for pair in self.pairs)
            model = replace(self, members=members, bags=None, pairs=pairs)
            vars(model)["_numbers"] = self._numbers  # what any bag was trained on is known
            found.append(model)
        return tuple(found)

    def predict_proba_interval(
        self, X: Array, coverage: float = 0.9, *, known_scores: Array | None = None
    ) -> tuple[Array, Array]:
        """For each class probability a range that holds the probabilities of most bags.

        Its width shows how much the probability depends on which samples were drawn for training,
        not how often the class is right. With 8 bags it is a rough measure. The model averages the
        bags' scores, so with few bags its own probability may lie a little outside.

        Parameters
        ----------
        X : array or frame (n_samples, n_features)
            As for `decision_function`.
        coverage : float
            Above 0 and at most 1; 1 for the smallest and the largest probability of any bag. The
            ends are the quantiles (1 - coverage) / 2 and (1 + coverage) / 2 over the bags,
            interpolated between two bags.
        known_scores : array (n_samples,) or (n_samples, n_outputs), optional
            What is added to the scores of the rows, in the library and on the device of X.

        Returns
        -------
        array of float64 (n_samples, n_classes)
            The lower ends, in the library and on the device of X.
        array of float64 (n_samples, n_classes)
            The upper ends.

        Raises
        ------
        ValueError, TypeError
            If the model is not bagged, or X or coverage is not as described.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X = [[value] for value in range(20)]
        >>> y = [0, 1] * 3 + [0] * 4 + [1] * 10
        >>> clf = LogitBoostClassifier(n_estimators=5, n_bags=3, random_state=0)
        >>> model = clf.fit(X, y).model_
        >>> low, high = model.predict_proba_interval([[3], [15]], coverage=1.0)
        >>> low.shape, bool((low <= high).all())
        ((2, 2), True)
        """
        self.refuse_quantity()
        known = 0.0 if known_scores is None else known_scores
        return self._ends(X, coverage, lambda own: self.probabilities_of(own + known))

    def predict_interval(self, X: Array, coverage: float = 0.9) -> tuple[Array, Array]:
        """For each prediction of a quantity a range that holds the predictions of most bags.

        Its width shows how much the prediction depends on which samples were drawn for training. It
        says nothing of how far a target lies from its prediction. With 8 bags it is a rough
        measure.

        Parameters
        ----------
        X, coverage
            As for `predict_proba_interval`.

        Returns
        -------
        array of float64 (n_samples,)
            The lower ends, in the library and on the device of X.
        array of float64 (n_samples,)
            The upper ends.

        Raises
        ------
        ValueError, TypeError
            If the model is not bagged or has classes, or X or coverage is not as described.

        Examples
        --------
        >>> from gpustump import GlassBoxRegressor
        >>> X, y = [[value] for value in range(20)], [value % 7 for value in range(20)]
        >>> reg = GlassBoxRegressor(n_bags=3, n_estimators=5, random_state=0).fit(X, y)
        >>> low, high = reg.model_.predict_interval([[3], [15]])
        >>> low.shape, bool((low <= high).all())
        ((2,), True)
        """
        if not self.is_regression:
            raise TypeError(
                "this model predicts classes; predict_proba_interval has the range of each "
                "probability."
            )
        return self._ends(X, coverage, self.quantities_of)

    def _ends(
        self, X: Array, coverage: float, predicted: Callable[[Array], Array]
    ) -> tuple[Array, Array]:
        """The quantiles, over the bags, of what is predicted from their scores."""
        if self.bags is None:
            raise ValueError("intervals need a bagged model; train with n_bags=8, for instance.")
        share = check_real(coverage, "coverage", above=0.0)
        if share > 1.0:
            raise ValueError(f"coverage must be above 0 and at most 1; got {coverage!r}.")
        X = self.checked(X)
        with arrays.computing_on(X):
            scores = [bag._scores(X) for bag in self.bag_models]
            found = [arrays.to_host(predicted(own)) for own in scores]
            ends = np.quantile(np.stack(found), [(1 - share) / 2, (1 + share) / 2], axis=0)
            low, high = (moved_to_device_of(end, X) for end in ends)
            return low, high

    def truncated(self, n_rounds: int) -> StumpEnsemble:
        """The model as it was after some rounds. It keeps the constants of the scores.

        Pairs of features are learnt after the last round, so a model of fewer rounds has none.

        Of a bagged model each member keeps its first `n_rounds` terms; the bags take turns in them.

        Raises
        ------
        ValueError, TypeError
            If n_rounds is negative, or no whole number.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y).model_
        >>> first = model.truncated(1)
        >>> model.n_rounds, first.n_rounds
        (3, 1)
        >>> first.predict(X).tolist()
        [0, 0, 1, 1, 1]
        """
        check_count(n_rounds, "n_rounds", least=0)
        bags = None if self.bags is None else self.bags.truncated(n_rounds)
        members = tuple(m.truncated(n_rounds) for m in self.members)
        if n_rounds >= self.n_rounds:
            return replace(self, members=members, bags=bags)
        return replace(self, members=members, bags=bags, pairs=(), moved=())

    def without(self, term: int | str | Sequence[int | str]) -> StumpEnsemble:
        """The model without one term: the feature, or the pair, adds nothing to any score.

        Parameters
        ----------
        term : int, str or two of them
            A feature's index or name. For a pair of features both, ("age", "income"), or its name
            in `term_names`. Pairs stay when one of their features is switched off by itself.

        Returns
        -------
        StumpEnsemble
            With a digest of its own, and with `edits`.

        Raises
        ------
        ValueError, TypeError
            If the model has no such term.

        Notes
        -----
        What a term adds need not be 0 on average, so scores may move as a whole; `edited` can make
        a term flat at one of its own levels instead.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X, y = [[1, 9], [2, 5], [3, 8], [4, 6], [5, 7]], [0, 0, 1, 0, 1]
        >>> model = LogitBoostClassifier(n_estimators=10).fit(X, y).model_
        >>> edited = model.without(1)
        >>> edited.explain(X)[:, 1].tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0]
        >>> edited.digest() == model.digest(), edited.edits.of == model.digest()
        (False, True)
        """
        return self.edited([Edit(self._term(term))])

    def edited(self, edits: Any) -> StumpEnsemble:
        """The model with some of its terms switched off, or flat over a range.

        Parameters
        ----------
        edits : path, or list of mapping
            The file that a page saves (`to_html`), or the edits themselves, applied in their order:
            {"term": "age", "edit": "without"} switches a term off, see `without`. {"term": "age",
            "edit": "flatten", "above": 40, "upto": 60, "like": 50} makes what a feature adds flat:
            for 40 < x <= 60 it is what it is for 50. Without "above" and "upto" the range has no
            ends there.

        Returns
        -------
        StumpEnsemble
            With a digest of its own. `edits` and its file say what was edited, and the digest of
            the model as it was trained.

        Raises
        ------
        ValueError, TypeError
            If an edit is not as described, is of a term that the model does not have, or flattens a
            pair or a categorical feature; or if a file was saved by the page of another model.
        OSError
            If the file cannot be read.

        Notes
        -----
        To flatten, the thresholds inside the range are moved to its ends. Votes do not change, so
        scores stay exact; in a bagged model each bag becomes flat at its own level. A vote for
        missing values stays as it is.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> model = LogitBoostClassifier(n_estimators=20).fit(X, y).model_
        >>> model.decision_function(X).round(2).tolist()
        [-0.56, -0.56, -0.0, -0.0, 0.11]
        >>> flat = model.edited([{"term": 0, "edit": "flatten", "above": 2.5, "like": 5}])
        >>> flat.decision_function(X).round(2).tolist()
        [-0.56, -0.56, 0.11, 0.11, 0.11]
        """
        model, trained = self, self.digest() if self.edits is None else self.edits.of
        for given in listed_edits(edits, (self.digest(), trained)):
            edit = given if isinstance(given, Edit) else self._edit(given)
            parts = edited_parts(model.members, model.moved, model.pairs, model.bags, edit)
            made = () if model.edits is None else model.edits.made
            model = replace(model, **parts, edits=Edits(trained, (*made, edit)))
        return model

    def _edit(self, given: Any) -> Edit:
        if not isinstance(given, Mapping) or "term" not in given:
            raise TypeError(f"an edit must be a mapping with a term; got {given!r}.")
        return edit_of(given, self._term(given["term"]))

    def _term(self, term: Any) -> tuple[int, ...]:
        """The features of a term, from one or two indices or names."""
        is_one = isinstance(term, str) or not isinstance(term, Sequence)
        if isinstance(term, str) and term in self.term_names:
            place = self.term_names.index(term)  # a feature's name comes first
            if place >= self.n_features:
                return self.pairs[place - self.n_features].features
        found = sorted(self.feature_index(own) for own in ([term] if is_one else term))
        if not 1 <= len(found) <= 2:
            raise ValueError(f"a term must be of one or two features; got {term!r}.")
        return tuple(found)

    def to_html(
        self,
        path: str | PathLike[str] | None = None,
        X: Array | None = None,
        y: Any = None,
        *,
        known_scores: Array | None = None,
    ) -> str:
        """A page on which people explore the model; see `gpustump.plots.page`.

        Parameters
        ----------
        path : str or path, optional
            The file to write, whole or not at all; none by default.
        X : array or frame (n_samples, n_features), optional
            Rows to show and to choose from, best such that the model was not trained on.
        y : array (n_samples,), optional
            Their labels or targets.
        known_scores : array (n_samples,) or (n_samples, n_outputs), optional
            What is known of them beforehand; see `gpustump.plots.page`.

        Returns
        -------
        str
            The whole document.

        Raises
        ------
        ValueError, TypeError
            If X or y is not as described.
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y).model_
        >>> model.to_html(X=X, y=y)[:15]
        '<!doctype html>'
        """
        from gpustump.page import page

        found = page(self, X, y, known_scores=known_scores)
        if path is not None:
            found.save(path)
        return found.html

    def digest(self) -> str:
        """SHA-256 of the model's canonical bytes, hexadecimal.

        Equal for models with equal stumps, votes, constants, pairs of features, links, numbers of
        features and labels.
        Feature names and details are not part of it.

        Examples
        --------
        >>> import numpy as np
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = np.asarray([[1.0], [2.0], [3.0], [4.0], [5.0]]), [0, 0, 1, 0, 1]
        >>> first = AdaBoostClassifier(n_estimators=3, n_jobs=1).fit(X, y).model_
        >>> second = AdaBoostClassifier(n_estimators=3, n_jobs=2).fit(X, y).model_
        >>> first.digest() == second.digest(), len(first.digest())
        (True, 64)
        """
        return document.digest_of(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a JSON file, whole or not at all.

        Raises
        ------
        ValueError, TypeError
            If `load` would refuse the file. That is possible for models made by hand: their votes
            may be no whole multiples of 2**-36, for instance. The message says what is wanted.
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> from gpustump import AdaBoostClassifier, StumpEnsemble
        >>> model = AdaBoostClassifier().fit([[1], [2], [3]], [0, 1, 1]).model_
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model.json")
        ...     again = StumpEnsemble.load(f"{folder}/model.json")
        >>> again.digest() == model.digest()
        True
        """
        document.write(self, path)

    @staticmethod
    def load(path: str | PathLike[str]) -> StumpEnsemble:
        """Read a model that `save` wrote.

        Raises
        ------
        ModelFileError
            If the file is truncated, was edited, is not a model, or has another version. It is a
            ValueError.
        OSError
            If the file cannot be read.

        Examples
        --------
        >>> import tempfile
        >>> from gpustump import AdaBoostClassifier, StumpEnsemble
        >>> clf = AdaBoostClassifier().fit([[1], [2], [3]], ["no", "yes", "yes"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     clf.model_.save(f"{folder}/model.json")
        ...     model = StumpEnsemble.load(f"{folder}/model.json")
        >>> model.predict([[1], [9]]).tolist()
        ['no', 'yes']
        """
        return document.read(path, StumpEnsemble)

    def checked(self, X: Array) -> Array:
        """The features of X's rows as an array, after checking that X is what the model takes.

        Parameters
        ----------
        X : array or frame
            As for `decision_function`.

        Returns
        -------
        array (n_samples, n_features)

        Raises
        ------
        ValueError, TypeError
            If X is something else.

        Warns
        -----
        UserWarning
            If a categorical feature has values that were not in training.

        Examples
        --------
        >>> from gpustump import Member, Stump, StumpEnsemble
        >>> member = Member((Stump(0, 2.5, -1, 1, 0.0),), (0.5,))
        >>> model = StumpEnsemble((member,), n_features=1)
        >>> model.checked([[1], [2]]).shape
        (2, 1)
        """
        frame = columns_of(X)
        if frame is not None:
            X = told_features_of(self.encoding, frame)
        try:
            X = check_table(X)
        except TypeError as error:
            if frame is not None or "encoding" not in self.details:
                raise
            raise TypeError(
                f"{error} Or pass a frame of pandas, polars or pyarrow, such as the training "
                "table: this model finds its columns by name and encodes them itself."
            ) from error
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"X has {X.shape[1]} features, but this model is expecting {self.n_features} "
                "features as input"
            )
        self._warn_of_unseen(X)
        return X

    def _warn_of_unseen(self, X: Array) -> None:
        """Warn of values of categorical features that were not in training."""
        for feature, unseen in unseen_numbers(X, self._numbers).items():
            number, names = float(unseen.example), self.encoding.categories(feature) or ()
            if number in range(len(names)):
                unseen = unseen._replace(example=names[int(number)])
            text = unseen_text(self.encoding.shown_names[feature], unseen)
            warnings.warn(text, stacklevel=caller_level())

    def _warn_of_missing(self, lacking: np.ndarray) -> None:
        """Warn of values that are missing in features where none was missing in training.

        `lacking` (n_tables,) says for each step table of the model whether its feature lacks a
        value.
        """
        assert self.missing_learnt is not None
        tables = itertools.compress(self.additive.tables[1], lacking)
        unknown = [table.feature for table in tables if not self.missing_learnt[table.feature]]
        if unknown:
            names = self.feature_names
            shown = [feature if names is None else names[feature] for feature in unknown]
            warnings.warn(
                f"values are missing in features where none was missing in training: "
                f"{readable.listed(shown)}. The model's votes for them were not learnt.",
                stacklevel=caller_level(),
            )

    def _scores(
        self, X: Array, n_jobs: int | None = None, lacking: np.ndarray | None = None
    ) -> Array:
        """The decision values of a checked table; see `AdditiveModel.scores`."""
        return self._read(self.additive.scores(X, n_jobs, lacking, self.pairs))

    def _read(self, scores: Array) -> Array:
        """Decision values from the additive model's outputs (n_samples, n_outputs)."""
        return scores[:, 0] if self.has_one_score else scores


def _check_members(members: Sequence[AnyMember], n_classes: int) -> None:
    """Check that members are of one type and have the outputs that the classes need."""
    kinds = sorted({type(member).__name__ for member in members})
    if len(kinds) > 1:
        raise TypeError(f"members must be of one type; got {' and '.join(kinds)}.")
    wanted = 1 if n_classes in (0, 2) else n_classes
    outputs = [member.n_outputs for member in members]
    if outputs not in ([1] * wanted, [wanted]):
        outputs_found = "" if set(outputs) <= {1} else f" with {listed(outputs)} outputs"
        raise ValueError(
            f"members must be {wanted} for {n_classes} classes; got {len(members)}{outputs_found}."
        )


def _check_link(model: StumpEnsemble) -> None:
    link = model.link
    if link not in LINKS:
        raise ValueError(f"link must be 'logistic', 'softmax', 'identity' or 'log'; got {link!r}.")
    if model.is_regression != (not model.classes):
        raise ValueError(
            "link must be 'identity' or 'log' for a quantity, which has no classes, and only for "
            f"that; got {link!r} and {counted(len(model.classes), 'class', 'classes')}."
        )
    if model.is_regression and _are_discrete(model.members):
        raise ValueError("members must be of type RegionMember for a quantity.")
    if link == "softmax" and model.is_binary:
        raise ValueError(
            "link must be 'logistic' for two classes, which have one score; got 'softmax'."
        )
    if link == "softmax" and _are_discrete(model.members):
        raise ValueError(
            "link must be 'logistic' for members with discrete votes; got 'softmax'. Use "
            "RegionMember for other votes."
        )


def _are_discrete(members: Members) -> TypeGuard[tuple[Member, ...]]:
    return all(isinstance(member, Member) for member in members)


def model_of(model: Any) -> StumpEnsemble:
    """The ensemble of an estimator, or the ensemble itself.

    Raises
    ------
    TypeError
        If it is neither.
    sklearn.exceptions.NotFittedError
        If it is an estimator without a model yet.
    """
    if isinstance(model, StumpEnsemble):
        return model
    if hasattr(model, "__sklearn_is_fitted__"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(model)
    found = getattr(model, "model_", None)
    if not isinstance(found, StumpEnsemble):
        raise TypeError(
            f"model must be a StumpEnsemble or a fitted estimator of gpustump; got {model!r}."
        )
    return found
