"""LogitBoost with defaults that need no tuning, for models that can be drawn as a whole."""

from __future__ import annotations

from typing import Any

from gpustump.boosting.rounds.boosting import Callback
from gpustump.data.parameters import GLASS_BOX, ClassScoring, MultiClass
from gpustump.estimators.base import DeviceName
from gpustump.estimators.checkpointing import CheckpointName
from gpustump.estimators.logitboost import LogitBoostClassifier


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

    Parameters
    ----------
    n_estimators : int or None
        The largest number of rounds of each bag; early stopping mostly ends a bag before. None as
        for `LogitBoostClassifier`.
    learning_rate : float
        Shrinks every vote; above 0.
    l2_regularization : float or None
        Shrinks the votes of regions with few samples; not negative, and on the scale of the sample
        weights. None for 1, or 0.1 for stumps that several classes share.
    smoothing_rounds : int
        How many rounds at the beginning of each run choose among a few random cuts, which makes
        shape functions smoother. 0 for none.
    multi_class : "shared" or "one_vs_rest"
        With more than two classes: stumps that vote for all classes at once, or a run for each
        class against the rest.
    interactions : int, str or list of pairs
        Which pairs of features are learnt after the step functions: "auto" for those three times as
        many as features, but at most 100, that gain most; a number; a number a feature, such as
        "3x"; or pairs of indices or names. 0 for none. Features with monotone constraints take no
        part.
    categorical_features : None, "from_dtype", or array-like of bool, int or str
        Which features are categories: by a mask, indices or names; "from_dtype" takes the columns
        of a frame that hold text or categories.
    class_weight : dict, "balanced" or None
        Weights of classes, by which the weights of their samples are multiplied.
    n_bags : int or None
        How many models are averaged, each trained on its own share of the samples. None for 12 with
        two classes and up to 100,000 samples, otherwise 6.
    random_state : int, RandomState or None
        Draws the samples that each bag holds out. With None each fit gives another model.
    device : str
        Where to train: "auto", "cpu", "cuda", "cuda:1". The model does not depend on it.
    n_iter_no_change : int or None
        A bag stops after this many rounds without a better score of its held-out samples. None for
        no early stopping.
    validation_fraction : float
        The share of the samples that each bag holds out.
    scoring : str
        The score that early stopping watches; "neg_log_loss" is the mean of ln P, where P is the
        probability of the sample's class.
    tol : float
        A held-out score counts as better if it is higher by more than this; not negative.
    warm_start : bool
        Let the next `fit` go on from the rounds already made.
    verbose : int
        1 shows a progress bar; 2 also says where the model is trained, and why.
    callback : callable or None
        Called with each `RegionRound` of each bag; with a callback one bag is trained at a time.
    monotonic_cst : array-like (n_features,) of int, dict or None
        Monotone constraints: 1 for a feature whose rise must not lower the score, -1 for one whose
        rise must not raise it, 0 for none. For two classes.
    n_jobs : int or None
        Threads on the CPU; None and -1 stand for all that this process may use.
    max_memory : int, str or None
        How many bytes a fit may take besides X: 2_000_000_000, "500 MB", "2 GiB".
    block_bytes : int or None
        How many bytes of temporary arrays the reference engine may take at once.
    checkpoint : None, str, path-like or Checkpoint
        A file that keeps the rounds while they are made; if it exists, `fit` goes on from it.

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

    def __init__(
        self,
        *,
        n_estimators: int | None = GLASS_BOX.n_estimators,
        learning_rate: float = GLASS_BOX.learning_rate,
        l2_regularization: float | None = None,
        smoothing_rounds: int = GLASS_BOX.smoothing_rounds,
        multi_class: MultiClass = "shared",
        interactions: Any = "auto",
        categorical_features: Any = None,
        class_weight: Any = None,
        n_bags: int | None = None,
        random_state: Any = None,
        device: DeviceName = "auto",
        n_iter_no_change: int | None = GLASS_BOX.n_iter_no_change,
        validation_fraction: float = GLASS_BOX.validation_fraction,
        scoring: ClassScoring = "neg_log_loss",
        tol: float = GLASS_BOX.tol,
        warm_start: bool = False,
        verbose: int = 0,
        callback: Callback | None = None,
        monotonic_cst: Any = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
        block_bytes: int | None = None,
        checkpoint: CheckpointName = None,
    ) -> None:
        self._take_parameters(locals())
