"""AdaBoost as an estimator: its parameters, checked in `fit`, and what is known of its rounds.

Attributes have the names that users of `sklearn.ensemble.AdaBoostClassifier` know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpustump.boosting.rounds.training import Settings
from gpustump.boosting.votes.settings import VoteSettings
from gpustump.data.parameters import (
    Learner,
    MultiClass,
    VoteKind,
    check_learner,
    check_vote_kind,
)
from gpustump.data.readable import listed
from gpustump.estimators.boosters import BoostedClassifier
from gpustump.estimators.stump import DecisionStumpClassifier
from gpustump.model.members import Member


@dataclass(kw_only=True, eq=False, repr=False)
class AdaBoostClassifier(BoostedClassifier):
    """AdaBoost with exact decision stumps, for CPUs and GPUs, with the same model on all of them.

    It can replace `sklearn.ensemble.AdaBoostClassifier` wherever that boosts stumps, its default.
    For two classes the boosting is the same, but the stump of each round is the one of least
    weighted error; scikit-learn's trees minimise the Gini impurity of the leaves. Votes are Freund
    and Schapire's alpha = 1/2 ln((1-e)/e), half of what scikit-learn calls an estimator's weight,
    and the decision function is their plain sum. For more classes this one fits one binary model
    per class against the rest; scikit-learn's uses SAMME. `votes` chooses other votes; with
    `multi_class="shared"` all classes share the stumps. Where probabilities matter, see
    `LogitBoostClassifier`, whose notes say when to use which.

    Parameters
    ----------
    estimator : None
        For compatibility: None, a `DecisionStumpClassifier`, or scikit-learn's
        `DecisionTreeClassifier` with `max_depth=1` or `max_leaf_nodes=2`. Nothing else is boosted
        here, so a tree's other parameters must be the defaults. Its `class_weight` would change the
        search of each round, but not the error that decides its vote; here `class_weight` of the
        classifier changes both.
    n_estimators : int
        The largest number of rounds: of each class with `multi_class="one_vs_rest"`, otherwise in
        all.
    learning_rate : float
        Shrinks every vote; above 0.
    votes : "discrete" or "real"
        What the regions of a stump vote. "discrete": +alpha or -alpha, with
        alpha = 1/2 ln((1-e)/e), for the stump of least weighted error [Freund and Schapire 1997].
        "real": half the log-odds of each region, smoothed, for the stump that minimises Z, the sum
        of the next weights [Schapire and Singer 1999, section 4]. The smoothing counts samples: for
        n of them it is 1/(2n) of all weights [ibid., section 4.2]. So a sample of weight 2 is not
        two samples, and scikit-learn's `check_sample_weight_equivalence_on_dense_data` fails; the
        scale of the weights does not matter.
    multi_class : "one_vs_rest" or "shared"
        With more than two classes: a run for each class against the rest; or one run whose stumps
        vote for all classes at once, AdaBoost.MH [Schapire and Singer 1999; with discrete votes
        Kegl 2013]. A shared round makes one stump in all, not one for each class, so it takes more
        rounds. For two classes both are the same.
    weak_learner : "stump" or "interval"
        What a round may choose from: "stump", or "interval" for stumps and intervals, which vote
        one way between two values of a feature and the other way elsewhere. Intervals are for
        discrete votes of one class against the rest. A warm start may change to the other one.
    categorical_features : None, "from_dtype", or array-like of bool, int or str
        Which features are categories: by a mask, indices or names; "from_dtype" takes the columns
        of a frame that hold text, or categories of pandas or polars. A stump sends a set of
        categories left; the notes say which. Categories are text or a frame's own categories, at
        most 1000 a feature, or whole numbers from 0 to 999. Negative whole numbers and NaN are
        missing values. `fit` refuses other numbers. Elsewhere a value that is no category of the
        training data counts as missing, and a warning says so.
    class_weight : dict, "balanced" or None
        Weights of classes, by which the weights of their samples are multiplied, as in
        scikit-learn: a dict from labels to weights, which are not negative (labels that it leaves
        out have weight 1); or "balanced" for n_samples / (n_classes * n_samples of the class),
        which counts every row of y, whatever its weight. A class of weight 0 takes no part.
    n_bags : int or None
        With more than 1, the model is the average of so many models, the bags. Each bag holds out
        samples of its own, a share `validation_fraction` drawn at random, and is trained on the
        others. If `n_iter_no_change` is given, the samples that it holds out decide when it stops.
        Votes are divided by `n_bags`, so the average is one additive model again;
        `model_.bag_models` has the models of the bags. With bags, when to stop depends less on
        chance, and the spread of the bags shows how sure the model is: see `shape_function` and
        `predict_proba_interval`. None for 12 bags with two classes and up to 100,000 samples,
        otherwise 6.
    random_state : int, RandomState or None
        Draws the samples that early stopping and bags hold out; nothing else is random.
    device : str
        Where to train: "auto" (where the data lie; a large table on the host goes to a GPU if
        CuPy works and the kernels there can train on it), "cpu", "cuda", "cuda:1". The model does
        not depend on it.
    n_iter_no_change : int or None
        Early stopping: hold out a share of the samples and stop after this many rounds without a
        better score of them. The rounds after the best one are dropped. If X_val and y_val are
        passed to `fit`, these rows are watched instead.
    validation_fraction : float
        The share of the samples that each of several bags holds out; and, without bags, early
        stopping if X_val is not given. It is stratified; a class with one sample is trained on.
    scoring : str
        The score of the held-out samples. "loss" is minus the mean of ln(1 + exp(-y * F)), where F
        is the decision function and y is -1 or 1. "neg_log_loss" has 2 * F in place of F, as
        `predict_proba` does. Others are "accuracy", "balanced_accuracy" and "roc_auc". Each class
        against the rest is scored by itself, so callables are refused; stumps that all classes
        share are scored on all of them. On 15 tables with 2% to 50% positive samples, the mean AUC
        on test samples, after stopping at 10 rounds without a gain, was 0.88 with the loss (as
        after 500 rounds without stopping), 0.87 with the log-loss and the AUC, 0.79 with the
        balanced accuracy, and 0.78 with the accuracy, which is often best after a single round if a
        class is rare.
    tol : float
        A held-out score counts as better if it is higher by more than this; not negative.
    warm_start : bool
        Let the next `fit` go on from the rounds already made. On the same data, and without early
        stopping, it makes the rounds that an uninterrupted fit would have made. With early stopping
        it watches the samples that the earlier fit held out, and refuses to go on if it cannot;
        X_val may hold other rows than before. `scoring`, `votes` and `multi_class` may not change;
        `learning_rate` may.
    verbose : int
        1 shows a progress bar with rounds, training error and rate on stderr, if that is a terminal
        or a notebook's; 2 also says where and by which engine the model is trained, and why.
    callback : callable or None
        Called with each `Round` (with each `RegionRound`, where regions vote numbers of their own).
        If it returns something true, that run ends. `set_callbacks` takes scikit-learn's own
        callbacks; see the notes.
    monotonic_cst : array-like (n_features,) of int, dict or None
        Monotone constraints, as in scikit-learn: 1 for a feature whose rise must not lower the
        score, and so the probability of the second of `classes_`; -1 for one whose rise must not
        raise it; 0 for none. A dict maps features to these numbers, by their indices or, if X is a
        frame, by their names; those that it leaves out are unconstrained. So are the votes for
        missing values. Each round takes the best stump among those allowed, and the model is the
        same on every device. For two classes, and for stumps only. A warm start may drop
        constraints, but not add any.
    n_jobs : int or None
        Threads on the CPU; None and -1 stand for all that this process may use. The model does not
        depend on it.
    max_memory : int, str or None
        How many bytes a fit may take besides X, of the host's memory or, if it trains on a GPU, of
        the GPU's: 2_000_000_000, "500 MB", "2 GiB". By default, most of what a GPU has free. What
        does not fit is computed or sent again when it is needed; the model does not depend on the
        limit. The reference engine (array operations only) keeps to it on the host only.
    block_bytes : int or None
        How many bytes of temporary arrays the reference engine may take at once; by default what
        suits the device.
    checkpoint : None, str, path-like or Checkpoint
        A file that keeps the rounds while they are made. If it exists, `fit` goes on from it. So
        the same script, run again after an interruption, ends with the model of an uninterrupted
        run, byte for byte. The file is written every 60 seconds, or as `gpustump.Checkpoint` says;
        at the end; and on Ctrl-C, SIGTERM or any error. A file of other data or parameters is
        refused. It is not removed at the end: the next `fit` returns the same model from it without
        a search, and calls no callback. See docs/checkpoints.md.

    Attributes
    ----------
    model_ : StumpEnsemble
        The model itself, free of any array library: `digest()`, `save(path)`, `load(path)`.
    is_categorical_ : ndarray (n_features,) of bool
        Which features are categorical.
    classes_ : ndarray (n_classes,)
    n_classes_ : int
    device_ : str
        Where it was trained.
    route_ : Route
        Where and by which engine, and why; `str(route_)` says it in words.
    rounds_ : tuple of tuple of Round, or of RegionRound
        For each run the records of its rounds: error, edge, vote, bound; or, where regions vote
        numbers of their own, split, votes, score, bound. There is one run for two classes or shared
        stumps, otherwise one for each class; with bags, the runs of the first bag come first.
    stop_reasons_ : tuple of str
        For each run why it ended: a reason that `Boosting` lists, or "early" for early stopping. A
        fit warns of "large votes", and of runs that made no round.
    n_estimators_ : int
        The largest number of rounds that a run was allowed.
    n_iter_ : int
        The number of rounds that the model keeps; the largest of several runs.
    held_out_scores_ : tuple of tuple of float
        With early stopping or X_val, for each run the score of the watched samples after each
        round, as `scoring` asks. Greater is better; losses are negative.
    held_out_errors_ : tuple of tuple of float
        With early stopping or X_val, for each run their error after each round.
    evals_result_ : dict
        The curves by round, in the form that XGBoost and LightGBM use:
        `evals_result_["training"]["error"]` is the training error after each round that the model
        keeps. If samples were watched, `evals_result_["validation"]` holds their score after each
        round that was made, by the name of `scoring`, and their "error": `held_out_scores_` and
        `held_out_errors_`. With several runs each list is replaced by a dict from labels to lists,
        as each class against the rest has curves of its own. With several bags the data sets are
        "training of bag 1", "validation of bag 1" and so on.
    estimator_weights_ : ndarray (n_estimators,) or (n_classes, n_estimators)
        The votes; 0 after a run's last round. Only for discrete votes that no classes share.
    estimator_errors_ : ndarray, shaped as `estimator_weights_`
        The weighted errors of the stumps; 1 after a run's last round. Only for the same votes.
    feature_importances_ : ndarray (n_features,)
        Each feature's share of the votes.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X was a frame whose column names are all text.

    Notes
    -----
    The probabilities are too close to 0 and 1, as boosting keeps raising the scores of samples that
    are classified correctly already [Niculescu-Mizil and Caruana 2005]. After 300 rounds on
    scikit-learn's breast-cancer data, 99% of the held-out probabilities are below 0.001 or above
    0.999, and their log-loss is 0.36. Where probabilities matter, take `LogitBoostClassifier`, or
    calibrate them: `sklearn.calibration.CalibratedClassifierCV(classifier, cv=5)` brings this
    log-loss to 0.10. On average over seven tables it went from 0.37 to 0.28 that way, and to 0.30
    with `n_iter_no_change=10`. A low `learning_rate` helps on some tables (0.10 on the
    breast-cancer data with 0.1), and needs more rounds on others.

    A stump of a categorical feature takes the best of all sets of categories. It is found by
    putting the categories in order of the weighted share of positive samples: the best set is a
    prefix of that order [Fisher 1958; Breiman et al. 1984, 4.2.2]. If several classes share a
    stump, each class has an order of its own, and the best prefix of any of these orders is taken,
    which may not be the best set. All categories with fewer than 10 samples and less than 1% of the
    samples go to the same side.

    Where scikit-learn has callbacks (1.9 and later), `set_callbacks(ScoringMonitor(...))` and the
    like work here, too. They see a fit as a tree of tasks. The task "fit" holds a task "bag" for
    each of several bags. The fit, or each bag, holds a task "class" for each of several runs. The
    lowest level has a task "round" for each round. After a round they get the classifier as it is
    then: later runs have no stumps yet, and the average is over the bags so far. A hook that
    returns true at the end of a round ends its run, as `callback` does.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpustump import AdaBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = AdaBoostClassifier(n_estimators=10, device="cpu").fit(X, y)
    >>> clf.model_.members[0].stumps[0].feature
    20
    """

    estimator: Any = field(default=None, kw_only=False)
    n_estimators: int = 50
    learning_rate: float = 1.0
    votes: VoteKind = "discrete"
    multi_class: MultiClass = "one_vs_rest"
    weak_learner: Learner = "stump"

    @property
    def estimators_(self) -> Any:
        """Left out: scikit-learn's are classifiers, of all classes at once.

        Raises
        ------
        AttributeError
            Always. It says what there is instead.
        """
        raise AttributeError(
            "there is no estimators_: a stump here votes -1 or +1 for one class or all of them, "
            "and is no classifier. model_.members hold the stumps in the order of the rounds, "
            "rounds_ their records, and n_iter_ is their number"
        )

    @property
    def estimator_weights_(self) -> np.ndarray:
        """The votes, 0 after the last round: (n_estimators,), or (n_classes, n_estimators)."""
        return self._by_round(lambda member: member.votes, 0.0)

    @property
    def estimator_errors_(self) -> np.ndarray:
        """The stumps' weighted errors, 1 after the last round; shaped as `estimator_weights_`."""
        return self._by_round(lambda member: [stump.error for stump in member.stumps], 1.0)

    def _by_round(self, values: Callable[[Member], Sequence[float]], fill: float) -> np.ndarray:
        check_is_fitted(self)
        if not self._objective.has_signs:
            raise AttributeError(
                "with these votes a stump has no single vote and no error, as its regions vote "
                "numbers of their own; see rounds_ and model_.members"
            )
        length = max(self.n_estimators_, self.model_.n_rounds)
        members = self.model_.discrete_members
        table = np.full((len(members), length), fill)
        for row, member in zip(table, members, strict=True):
            row[: len(member)] = values(member)
        return table[0] if self.model_.is_binary else table

    def _settings(self) -> Settings:
        """The parameters, checked."""
        _check_estimator(self.estimator)
        return super()._settings()

    def _votes(self, learning_rate: float) -> VoteSettings:
        return VoteSettings(check_vote_kind(self.votes, ("discrete", "real")), learning_rate)

    def _learner(self) -> Learner:
        learner = check_learner(self.weak_learner)
        if learner == "interval" and (self.votes, self.multi_class) != ("discrete", "one_vs_rest"):
            raise ValueError(
                "weak_learner='interval' is for votes='discrete' and multi_class='one_vs_rest'; "
                f"got votes={self.votes!r} and multi_class={self.multi_class!r}. Take "
                "weak_learner='stump'."
            )
        return learner


def _check_estimator(estimator: Any) -> None:
    """Refuse a base estimator other than a stump.

    A tree with two leaves has one split, whatever its depth, and one of depth 1 has two leaves. The
    random state decides between equally good splits only.
    """
    if estimator is None or isinstance(estimator, DecisionStumpClassifier):
        return
    from sklearn.tree import DecisionTreeClassifier

    others = []
    if isinstance(estimator, DecisionTreeClassifier):
        usual, free = DecisionTreeClassifier(), ("max_depth", "max_leaf_nodes", "random_state")
        others = [
            name
            for name, value in estimator.get_params().items()
            if name not in free and not np.array_equal(value, getattr(usual, name))
        ]
        if not others and (estimator.max_depth == 1 or estimator.max_leaf_nodes == 2):
            return
    own = f", with {listed(others)} of its own, which must be the default" if others else ""
    raise ValueError(
        "estimator must be None, DecisionStumpClassifier(), DecisionTreeClassifier(max_depth=1) or "
        "DecisionTreeClassifier(max_leaf_nodes=2), as only decision stumps are boosted here; "
        f"got {estimator!r}{own}."
    )
