"""LogitBoost as an estimator, Newton votes for the logistic loss; and a glass box of it.

The glass box has defaults that need no tuning, for models that can be drawn as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpustump.boosting.votes.settings import VoteSettings
from gpustump.data.parameters import GLASS_BOX, ClassScoring, MultiClass, check_real
from gpustump.estimators.boosters import BoostedClassifier


@dataclass(kw_only=True, eq=False, repr=False)
class LogitBoostClassifier(BoostedClassifier):
    """LogitBoost with exact decision stumps: good probabilities, and one model for all classes.

    Each round is a Newton step of the logistic loss: it finds the best split, and each region votes
    what the step asks for [Friedman, Hastie and Tibshirani 2000]. The scores start from the
    classes' shares of the sample weights. With more than two classes, by default every stump votes
    for all of them, and the loss is that of the softmax.

    The notes below say which estimator to use.

    Parameters
    ----------
    n_estimators : int or None
        The largest number of rounds: in all, or of each class with `multi_class="one_vs_rest"`.
        None stands for 200, or for 200 times the number of classes that share the stumps: as many
        stumps as other libraries make in 200 rounds.
    learning_rate : float
        Shrinks every vote; above 0.
    l2_regularization : float or None
        Shrinks the votes of regions with few samples; not negative. A region votes learning_rate/2
        * A/(B + l2_regularization) for a class. Let p be the probability that the model gives a
        sample for the class. B is the sum of weight * p * (1 - p) over the region's samples. A is
        the sum of weight * (1 - p) over those of the class, less the sum of weight * p over the
        others. The parameter is on the scale of the sample weights, as in XGBoost: B is at most a
        quarter of all weights, so with weights that sum to 1 a default made for weights of about 1
        all but stops learning. Divide such weights by their mean, or multiply the parameter by it;
        a fit warns where their mean is below 0.1 and the parameter above a fortieth of their sum. 0
        for none: A/B is never more than 4 in any case. None for 1, or 0.1 where several classes
        share the stumps, which suits fits that are stopped early.
    smoothing_rounds : int
        How many rounds at the beginning of each run choose among a few random cuts only. In such a
        round, sqrt(n_features) features, drawn at random, offer one cut each, at a random place
        among the feature's distinct values. So the first and large part of each shape function is
        smooth, which improves the probabilities if there are few samples (some thousands or less).
        The rounds that follow look at all cuts. Early stopping counts smoothing rounds, too, but
        does not end a run before they are over. The draws do not depend on `random_state` or on the
        order of the columns: they follow from the features' values, and each bag has draws of its
        own, the same in every fit. 0 for none.
    multi_class : "shared" or "one_vs_rest"
        With more than two classes: one run whose stumps vote for all classes at once, with the
        softmax loss; or a run for each class against the rest. For two classes both are the same.
    interactions : int, str or list of pairs
        Which pairs of features are learnt on what the single features leave: at most so many, those
        whose best cut into four quadrants gains most; "3x" for three times as many pairs as there
        are features; "auto" for "3x", but at most 100; or the pairs themselves, each of two indices
        or names: [("age", "income"), (0, 3)]. 0 for none. Pairs are learnt after the last round,
        also after a warm start or from a checkpoint. Features with monotone constraints take no
        part. The notes say how pairs are learnt. `model_.pairs` holds a table for each pair;
        `explain` and `contribution_importances` have a column, or an entry, for each, after those
        of the features. `feature_importances_` counts the votes of stumps only.
    categorical_features : None, "from_dtype", or array-like of bool, int or str
        Which features are categories: by a mask, indices or names; "from_dtype" takes the columns
        of a frame that hold text, or categories of pandas or polars. A stump sends a set of
        categories left; the notes say which. Categories are text or a frame's own categories, at
        most 1000 a feature, or whole numbers from 0 to 999. A value that is negative, NaN or
        unknown counts as missing.
    class_weight : dict, "balanced" or None
        As for `AdaBoostClassifier`. The probabilities are then those of data in which the classes
        have these weights. `l2_regularization` is on the scale of the multiplied weights.
    n_bags : int or None
        As for `AdaBoostClassifier`.
    random_state : int, RandomState or None
        As for `AdaBoostClassifier`.
    device : str
        As for `AdaBoostClassifier`.
    n_iter_no_change : int or None
        As for `AdaBoostClassifier`.
    validation_fraction : float
        As for `AdaBoostClassifier`.
    scoring : str
        The score of the held-out samples, as for `AdaBoostClassifier`; by default "neg_log_loss",
        the mean of ln P, where P is the probability of the sample's class.
    tol : float
        As for `AdaBoostClassifier`.
    warm_start : bool
        As for `AdaBoostClassifier`. The scores from which the first fit started are kept, even on
        other data. `learning_rate` and `l2_regularization` may change, `multi_class` and `scoring`
        may not.
    verbose : int
        As for `AdaBoostClassifier`.
    callback : callable or None
        Called with each `RegionRound`; if it returns something true, that run ends. `set_callbacks`
        takes scikit-learn's own callbacks, as for `AdaBoostClassifier`.
    monotonic_cst : array-like (n_features,) of int, dict or None
        As for `AdaBoostClassifier`.
    n_jobs : int or None
        As for `AdaBoostClassifier`.
    max_memory : int, str or None
        As for `AdaBoostClassifier`.
    block_bytes : int or None
        As for `AdaBoostClassifier`.
    checkpoint : None, str, path-like or Checkpoint
        As for `AdaBoostClassifier`.

    Attributes
    ----------
    model_ : StumpEnsemble
        The model itself, free of any array library: `digest()`, `save(path)`, `load(path)`. Its
        scores are half the log-odds: P(second class) = 1 / (1 + exp(-2 F)); the softmax is
        P_l = exp(2 F_l) / sum over m of exp(2 F_m).
    rounds_ : tuple of tuple of RegionRound
        For each run (one, or one for each class against the rest) the record of each round: the
        split, what its regions left, right and missing vote for each class, its gain as `score`,
        and the training error after it.
    n_estimators_ : int
        The largest number of rounds that a run was allowed.
    is_categorical_, classes_, n_classes_, device_, route_, stop_reasons_, n_iter_, held_out_scores_
        As for `AdaBoostClassifier`.
    held_out_errors_, evals_result_, feature_importances_, n_features_in_, feature_names_in_
        As for `AdaBoostClassifier`.

    Notes
    -----
    Take `LogitBoostClassifier` where probabilities matter, or where there are more than two
    classes. Take `AdaBoostClassifier` for stumps that vote +alpha or -alpha, for intervals, for
    bounds on the error, or to replace scikit-learn's. Both find the best split of every round
    exactly, and both give the same model on every device. A round of discrete votes takes less
    time, as it adds up only what has changed. `route_` says where a model was trained.

    With the default parameters and 5 folds, the log-loss on scikit-learn's breast-cancer data is
    0.08, on the wine data 0.08. With 200 rounds of `AdaBoostClassifier` it is 0.29 and 0.52, as its
    probabilities are too close to 0 and 1; the accuracies of the two estimators are within 0.01 of
    each other.

    "shared" means that one stump serves all classes: it cuts one feature at one threshold, and each
    side has a vote for every class. "one_vs_rest" means that each class has stumps of its own,
    which tell it from all others. A round of "shared" makes one stump, a round of "one_vs_rest" one
    for each class, so `n_estimators` has to be larger for "shared". With equally many stumps in
    all, "shared" mostly does better: on scikit-learn's digits, with 10 classes and 300 stumps, the
    accuracy (5 folds) is 0.96 with "shared" and 0.90 with "one_vs_rest", and the log-loss 0.16 and
    0.57.

    The defaults of learning_rate and l2_regularization (0.2 and 3) were chosen on 26 real tables
    with two classes and 11 with more, of up to 3000 rows, by cross-validation with three folds.
    After 200 rounds for two classes, the mean log-loss was 0.328 with 0.2 and 3 (error 0.140),
    0.329 with 0.2 and 1 (0.142), 0.334 with 0.3 and 1 (0.143), and 0.347 with 0.5 and 1 (0.144).
    After 200 rounds for each of more classes it was 0.518 with 0.2 and 3 (error 0.203), 0.523 with
    0.2 and 1 (0.202), and 0.533 with 0.3 and 1 (0.203). Many more rounds need a lower rate or early
    stopping. With many rows and little noise, a higher rate is better: on 3000 rows of the magic
    telescope's data the log-loss was 0.376 with the defaults, and 0.367 with 0.4 and 10.

    A stump of a categorical feature takes the best of all sets of categories. It is found by
    putting the categories in order of A/B (see `l2_regularization`): the best set is a prefix of
    that order [Fisher 1958; Breiman et al. 1984, 4.2.2]. If several classes share a stump, each
    class has an order of its own, and the best prefix of any of these orders is taken, which may
    not be the best set. All categories with fewer than 10 samples and less than 1% of the samples
    go to the same side.

    Pairs of features are boosted after the main effects of all bags [Lou, Caruana, Gehrke and
    Hooker 2013]. Each feature of a pair is cut into at most 31 bins of about equally many samples,
    and one for missing values; categories are in order of their main effect. In a turn each pair
    takes the best cut of these bins into four quadrants, and each quadrant votes a Newton step,
    shrunk by `learning_rate` or by 0.4, whichever is less. (Where `l2_regularization` is None, it
    is 1 for pairs, for any number of classes.) With smoothing rounds, the first 10
    turns choose among 5 random cuts. With early stopping a bag ends after 10 turns without a better
    score of its held-out samples, otherwise after 20. The tables are averaged over the bags. The
    weighted means of their rows and columns are moved into the main effects, so that a pair adds
    only what neither feature could add by itself [Lengerich, Tan, Chang, Hooker and Caruana 2020].
    The score does not change by that.

    Held-out samples must not judge pairs that they have chosen. So in a table of few rows, fewer
    than 100 for each pair that could be chosen, the number of turns is found with the pairs that
    the bag's other samples would choose, unless there is no choice. Where rows come in groups, such
    as several of a person, pairs can learn the groups, and held-out rows of the same groups do not
    show it: hold out whole groups with `X_val`, or take `interactions=0`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer, load_wine
    >>> from gpustump import LogitBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = LogitBoostClassifier(n_estimators=10, device="cpu").fit(X, y)
    >>> clf.model_.members[0].splits[0].feature
    20

    With three classes, the first stump votes for all three of them on each side:

    >>> wine = load_wine()
    >>> clf = LogitBoostClassifier(n_estimators=10, device="cpu").fit(wine.data, wine.target)
    >>> first = clf.rounds_[0][0]
    >>> wine.feature_names[first.stump.feature], round(first.stump.threshold, 3)
    ('proline', 755.0)
    >>> left, right, missing = first.votes
    >>> [round(vote, 2) for vote in left], [round(vote, 2) for vote in right]
    ([-0.13, 0.08, 0.05], [0.19, -0.12, -0.07])

    With the two pairs of features that gain most:

    >>> clf = LogitBoostClassifier(n_estimators=10, interactions=2, device="cpu").fit(X, y)
    >>> [pair.features for pair in clf.model_.pairs]
    [(21, 23), (21, 22)]
    >>> clf.explain(X).shape  # 30 features, 2 pairs and the intercept
    (569, 33)
    """

    n_estimators: int | None = None
    learning_rate: float = 0.2
    l2_regularization: float | None = 3.0
    smoothing_rounds: int = 0
    multi_class: MultiClass = "shared"
    interactions: Any = 0
    scoring: ClassScoring = "neg_log_loss"

    def _n_rounds_asked_for(self) -> int | None:
        return None if self.n_estimators is None else super()._n_rounds_asked_for()

    def _votes(self, learning_rate: float) -> VoteSettings:
        l2 = self.l2_regularization
        if l2 is not None:
            l2 = check_real(l2, "l2_regularization", least=0.0)
        return VoteSettings("newton", learning_rate, l2)


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
