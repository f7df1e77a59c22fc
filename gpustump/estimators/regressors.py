"""Boosted stumps for quantities, counts and costs, and a glass box of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.moving import moved_to_device_of
from gpustump.boosting.rounds.training import Samples, Settings
from gpustump.boosting.votes.newton import SquaredVotes
from gpustump.boosting.votes.quantile import QuantileVotes
from gpustump.boosting.votes.ratio import deviance_of_mean
from gpustump.boosting.votes.settings import VoteSettings
from gpustump.boosting.votes.votes import AnyRound, RegionRound
from gpustump.data.labels import check_targets
from gpustump.data.parameters import (
    GLASS_BOX_OF_QUANTITY,
    L2_OF_QUANTILES,
    RATIO_LOSSES,
    QuantityLoss,
    Scoring,
    check_quantity_loss,
    check_real,
)
from gpustump.data.readable import caller_level
from gpustump.data.weights import check_weights
from gpustump.engines.quantiles import level_of
from gpustump.estimators.base import Data
from gpustump.estimators.boosters import BoostedEstimator, Curve
from gpustump.estimators.callbacks import with_callbacks
from gpustump.estimators.held_out import Earlier, Validation
from gpustump.estimators.targets import Offset, Quantity, Scale, TargetDomain
from gpustump.learners.target_scale import TargetScale

_SCORING: dict[QuantityLoss, Scoring] = {
    "squared_error": "neg_mean_squared_error",
    "quantile": "neg_mean_pinball_loss",
    "poisson": "neg_mean_poisson_deviance",
    "gamma": "neg_mean_gamma_deviance",
}

_SMALL_TARGETS = 2.0**-23
"""Below this, targets as boosting learns them span few of the steps to which votes are rounded."""


@dataclass(kw_only=True, eq=False, repr=False)
class StumpBoostingRegressor(RegressorMixin, BoostedEstimator):
    """Boosting with exact decision stumps for a quantity: additive, and the same everywhere.

    Each round finds the split that lowers the loss most, and each region votes a step towards its
    minimum, shrunk by the learning rate. For the squared error that is the mean residual: L2Boost
    [Friedman 2001; Buehlmann and Yu 2003]. The scores start from the mean of the targets, under the
    quantile loss from their quantile. They are a sum of one step function for each feature and of
    one table for each pair of features, if there are `interactions`. They are the predictions, or
    for counts and costs the logarithms of these.

    Parameters
    ----------
    loss : "squared_error", "quantile", "poisson" or "gamma"
        What the rounds lower. "quantile" predicts a quantile of the target, by the pinball loss.
        "poisson" is the deviance of counts and rates, 0 or more; "gamma" that of costs, times and
        other amounts above 0, whose spread grows with their size. With these two, each feature
        multiplies the prediction by a factor.
    quantile : float
        Which quantile loss="quantile" predicts, between 0 and 1: of 0.9 nine tenths of the targets
        lie below. 0.5 is the median, with half of the mean absolute error as its loss. It is
        rounded down to a multiple of 2**-30, at least that. Where many targets are equal, as
        ratings are, a quantile may stay where it is: a run ends when the cut that the loss asks for
        moves none.
    n_estimators : int
        The largest number of rounds.
    learning_rate : float
        Shrinks every vote; above 0 and at most 1.
    l2_regularization : float or None
        Shrinks the votes of regions with few samples; not negative. None for 10 with
        loss="quantile", otherwise 0, or 1 in a `GlassBoxRegressor`. A region votes learning_rate *
        A/(B + l2_regularization), where A is the sum of weight * residual over its samples, and B
        that of the weights. So it is on the scale of the sample weights. For counts, A is the
        observed sum less the predicted one, and B the mean of both: a lambda of 1 counts like one
        more event that came as predicted. For costs the same holds of the sums of weight * target /
        prediction and of the weights. Under the quantile loss votes are not shrunk, but cuts beside
        few samples are made less often: a cut is worth the sum of A**2/(B + l2_regularization) over
        its regions, where A is the sum of the slopes of the loss.
    smoothing_rounds : int
        How many rounds at the beginning choose among a few random cuts only, which makes shape
        functions smoother; see `LogitBoostClassifier`. 0 for none.
    interactions : int, str or list of pairs
        Which pairs of features are learnt on what the single features leave: at most so many, those
        that gain most; a number a feature, such as "3x"; "auto" for "3x", but at most 100; or pairs
        of indices or names. 0 for none, as always with loss="quantile". Pairs are learnt after the
        last round, and features with monotone constraints take no part; see `LogitBoostClassifier`.
        `model_.pairs` holds a table for each pair; `explain` and `contribution_importances` have a
        column, or an entry, for each, after those of the features.
    categorical_features : None, "from_dtype", or array-like of bool, int or str
        Which features are categories: by a mask, indices or names; "from_dtype" takes the columns
        of a frame that hold text or categories. A stump sends the best set of categories left
        [Fisher 1958]. See `LogitBoostClassifier`.
    n_bags : int or None
        How many models are averaged, each trained on its own share of the samples. None for 12 with
        up to 100,000 samples, otherwise 6.
    random_state : int, RandomState or None
        Draws the samples that are held out. With None each fit draws others.
    device : str
        Where to train: "auto", "cpu", "cuda", "cuda:1". The model does not depend on it.
    n_iter_no_change : int or None
        Stop after this many rounds without a better score of the held-out samples. None for no
        early stopping.
    validation_fraction : float
        The share of the samples that is held out for early stopping, or that each bag leaves out.
    tol : float
        A held-out score counts as better if it is higher by more than this share of the error, or
        deviance, that the best single prediction has on the training targets; not negative.
    warm_start : bool
        Let the next `fit` go on from the rounds already made. `loss` and `quantile` may not change
        then, and the targets must lie in the range of the first fit.
    verbose : int
        1 shows a progress bar; 2 also says where the model is trained, and why.
    callback : callable or None
        Called with each `RegionRound`; if it returns something true, the run ends.
    monotonic_cst : array-like (n_features,) of int, dict or None
        Monotone constraints: 1 for a feature whose rise must not lower the prediction, -1 for one
        whose rise must not raise it, 0 for none. Not with loss="quantile".
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
        The model itself, free of any array library: `digest()`, `save(path)`, `load(path)`. All of
        its numbers are in the unit of the targets, or of their logarithms for counts and costs.
    rounds_ : tuple of tuple of RegionRound
        For each run (one, or one for each bag) the record of each round: the split, its votes, its
        gain as `score`, and the mean error, or mean deviance, after it as `training_error`.
    held_out_scores_, held_out_errors_ : tuple of tuple of float
        For each run minus the mean error, or mean deviance, of the held-out samples after each
        round, and that error: of squares, or under the quantile loss of pinball losses.
    is_categorical_, device_, route_, stop_reasons_, n_iter_, n_estimators_, evals_result_
        As for `AdaBoostClassifier`.
    feature_importances_, n_features_in_, feature_names_in_
        As for `AdaBoostClassifier`.

    Notes
    -----
    For the squared error, targets are rounded to whole multiples of a power of two, 2**-36 of their
    range or less (or the last digit that the largest of them has). Then residuals and votes are
    such multiples, too, and all sums are exact: every engine, device and number of threads gives
    the same model. A target that lies far from all others makes the range large, and the rounding
    with it.

    Under Poisson and gamma loss the sums of what is observed and what is predicted are sums of
    integers, too. A region's vote is a Newton step with the mean of the Hessians before and after
    it. So it is never longer than to the minimum, and no larger than 2: nothing needs to be
    clipped.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gpustump import StumpBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = StumpBoostingRegressor(n_estimators=100).fit(X, y)
    >>> round(reg.score(X, y), 3)
    0.574
    >>> first = reg.rounds_[0][0]
    >>> first.stump.feature, [round(vote, 3) for (vote,) in first.votes]
    (8, [-4.215, 4.102, 0.0])
    """

    loss: QuantityLoss = "squared_error"
    quantile: float = 0.5
    n_estimators: int = 200
    learning_rate: float = 0.1
    l2_regularization: float | None = None
    smoothing_rounds: int = 0
    interactions: Any = 0

    _usual_l2: ClassVar[float] = 0.0

    @with_callbacks
    def fit(
        self,
        X: Array,
        y: Array,
        sample_weight: Array | None = None,
        *,
        init_score: Array | None = None,
        exposure: Array | None = None,
        X_val: Array | None = None,
        y_val: Array | None = None,
        sample_weight_val: Array | None = None,
        init_score_val: Array | None = None,
        exposure_val: Array | None = None,
    ) -> Self:
        """Train on a table.

        Errors are those of `AdaBoostClassifier.fit`.

        Parameters
        ----------
        X, sample_weight, X_val, sample_weight_val
            As for `AdaBoostClassifier.fit`.
        y : array (n_samples,)
            Real numbers, finite and below 2**1000 in absolute value; for counts not negative, for
            costs above 0.
        init_score : array (n_samples,), optional
            What is known of each sample beforehand, added to its score: a logarithm, from -600 to
            600, for counts and costs, otherwise in the unit of y. The model learns the rest.
            Give it to `predict` as well.
        exposure : array (n_samples,), optional
            For counts: what each of them was counted over, above 0, such as the time insured or the
            number of people. The model then predicts the rate, and `predict` multiplies it by the
            exposure that it is given. It is the exponential of an `init_score`.
        y_val, init_score_val, exposure_val : array (n_val,), optional
            Targets, initial scores and exposures of the rows to watch.

        Returns
        -------
        self

        Examples
        --------
        >>> from gpustump import StumpBoostingRegressor
        >>> X, y = [[1], [2], [3], [4]], [1.0, 1.5, 3.0, 3.5]
        >>> reg = StumpBoostingRegressor(n_estimators=1, learning_rate=1.0).fit(X, y)
        >>> reg.predict([[0], [9]]).tolist()
        [1.25, 3.25]

        Claims of drivers who were insured for some years, by their age:

        >>> age, claims, years = [[20], [30], [40], [50]], [2, 1, 1, 1], [1.0, 2.0, 4.0, 5.0]
        >>> reg = StumpBoostingRegressor(loss="poisson", n_estimators=300)
        >>> reg.fit(age, claims, exposure=years).predict([[20], [50]]).round(2).tolist()
        [2.0, 0.2]
        """
        watched = Offset(init_score_val, exposure_val, "_val")
        offset = Offset(init_score, exposure)
        validation = Validation.of(X_val, y_val, sample_weight_val, watched, offset)
        settings, asked, earlier = self._asked_for(validation)
        self._fit(Data(X, y, sample_weight, asked, earlier, offset), settings)
        return self

    def predict(
        self, X: Array, *, init_score: Array | None = None, exposure: Array | None = None
    ) -> Array:
        """The predicted target of each sample, float64 (n_samples,), in X's library.

        Parameters
        ----------
        X : array or frame (n_samples, n_features)
        init_score, exposure : array (n_samples,), optional
            As for `fit`; by default scores start from 0, and exposures are 1.

        Raises
        ------
        ValueError, TypeError
            If X is not a table of numbers with the features seen in `fit`, or lacks a column.

        Examples
        --------
        >>> from gpustump import StumpBoostingRegressor
        >>> X, y = [[1], [2], [3], [4]], [1.0, 1.5, 3.0, 3.5]
        >>> reg = StumpBoostingRegressor(n_estimators=2, learning_rate=1.0).fit(X, y)
        >>> reg.predict(X).round(3).tolist()
        [1.0, 1.333, 3.333, 3.333]
        """
        check_is_fitted(self)
        table = self._table(X)
        predicted = self.model_.predict(table, n_jobs=self.n_jobs)
        (found,) = self._with_known(table, Offset(init_score, exposure), predicted)
        return found

    def staged_predict(
        self, X: Array, *, init_score: Array | None = None, exposure: Array | None = None
    ) -> Iterator[Array]:
        """`predict` after 1, 2, ... rounds.

        Examples
        --------
        >>> from gpustump import StumpBoostingRegressor
        >>> X, y = [[1], [2], [3], [4]], [1.0, 1.5, 3.0, 3.5]
        >>> reg = StumpBoostingRegressor(n_estimators=2).fit(X, y)
        >>> [predicted.round(3).tolist() for predicted in reg.staged_predict([[1], [4]])]
        [[2.15, 2.35], [2.06, 2.44]]
        """
        check_is_fitted(self)
        table, offset = self._table(X), Offset(init_score, exposure)
        for scores in self.model_.staged_decision_function(table, n_jobs=self.n_jobs):
            yield from self._with_known(table, offset, self.model_.quantities_of(scores))

    def predict_interval(
        self,
        X: Array,
        coverage: float = 0.9,
        *,
        init_score: Array | None = None,
        exposure: Array | None = None,
    ) -> tuple[Array, Array]:
        """For each prediction a range that holds the predictions of most bags.

        Parameters, result and errors are those of `StumpEnsemble.predict_interval`; X may be a
        frame, and `init_score` and `exposure` are those of `predict`.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from gpustump import GlassBoxRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> reg = GlassBoxRegressor(n_bags=4, n_estimators=20, random_state=0).fit(X, y)
        >>> low, high = reg.predict_interval(X[:3], coverage=1.0)
        >>> bool((low <= reg.predict(X[:3])).all() and (reg.predict(X[:3]) <= high).all())
        True
        """
        check_is_fitted(self)
        table = self._table(X)
        ends = self.model_.predict_interval(table, coverage)
        low, high = self._with_known(table, Offset(init_score, exposure), *ends)
        return low, high

    def _with_known(self, table: Array, offset: Offset, *predicted: Array) -> list[Array]:
        """Predictions for the rows of a checked table, with what is known of the rows."""
        with arrays.computing_on(table):
            known = offset.of_quantity(table, self._target.loss)
            if known is None:
                return [*predicted]
            known = moved_to_device_of(known, predicted[0])
            is_factor = self.model_.link == "log"
            return [own * known if is_factor else own + known for own in predicted]

    def score(
        self,
        X: Array,
        y: Array,
        sample_weight: Array | None = None,
        *,
        init_score: Array | None = None,
        exposure: Array | None = None,
    ) -> float:
        """The coefficient of determination, R2, of the predictions, as in scikit-learn.

        For the deviance of counts and costs see `sklearn.metrics.mean_poisson_deviance` and
        `mean_gamma_deviance`, or `d2_tweedie_score`; for quantiles `mean_pinball_loss`.

        Examples
        --------
        >>> from gpustump import StumpBoostingRegressor
        >>> X, y = [[1], [2], [3], [4]], [1.0, 1.5, 3.0, 3.5]
        >>> reg = StumpBoostingRegressor(n_estimators=50).fit(X, y)
        >>> round(reg.score(X, y), 4)
        0.9993
        """
        predicted = self.predict(X, init_score=init_score, exposure=exposure)
        with arrays.computing_on(predicted):
            given, targets = check_weights(sample_weight, predicted), check_targets(y, predicted)
            rows, weights = given.rows, arrays.to_host(given.values)
            true, own = (arrays.to_host(arrays.picked(x, rows)) for x in (targets, predicted))
        return float(r2_score(true, own, sample_weight=weights))

    @property
    def rounds_(self) -> tuple[tuple[AnyRound, ...], ...]:
        """For each run the records of its rounds; votes and errors are in the targets' unit."""
        scale = self._scale
        return tuple(tuple(_in_unit(one, scale) for one in run) for run in super().rounds_)

    @property
    def held_out_scores_(self) -> tuple[tuple[float, ...], ...]:
        """For each run minus the error of the held-out samples after each round."""
        return self._errors(super().held_out_scores_)

    @property
    def held_out_errors_(self) -> tuple[tuple[float, ...], ...]:
        """For each run the mean error, or deviance, of the held-out samples.

        With an exposure, or an `init_score` of counts, the deviance is that of the rates, each of
        which counts as often as its exposure says; so it depends on the exposures' unit.
        """
        return self._errors(super().held_out_errors_)

    @property
    def evals_result_(self) -> dict[str, dict[str, Curve]]:
        """The mean error, or mean deviance, of each round as curves, by data set.

        See `held_out_errors_` for deviances with an exposure.
        """
        scale = self._scale

        def curve(learnt: Curve) -> Curve:
            assert isinstance(learnt, list)
            return [error * scale.of_errors for error in learnt]

        found, error = super().evals_result_, _SCORING[self._target.loss].removeprefix("neg_")
        return {name: {error: curve(own["error"])} for name, own in found.items()}

    @property
    def _scale(self) -> Scale:
        """The scale of the targets."""
        check_is_fitted(self)
        found = self._target.scale
        assert found is not None
        return found

    def _errors(self, learnt: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
        """Errors for the targets as they are."""
        scale = self._scale
        return tuple(tuple(own * scale.of_errors for own in run) for run in learnt)

    def _samples_of(self, X: Array, data: Data) -> tuple[Samples, TargetDomain]:
        with arrays.computing_on(X):
            given = check_weights(data.sample_weight, X)
            quantity = Quantity.of(data.y, given, X, self.loss, data.offset)
            samples, target = self._learnt(quantity, X, data.earlier)
        return replace(samples, rows=given.rows), target

    def _learnt(
        self, quantity: Quantity, X: Array, earlier: Sequence[Earlier] | None
    ) -> tuple[Samples, TargetDomain]:
        """What boosting learns of targets, beside a table, and their scale."""
        if earlier is None:
            target = TargetDomain.of_quantity(quantity, self.loss)
        else:
            target = earlier[0].target
        learnt, weights = target.learnt(quantity, X)
        xp = arrays.namespace_of(learnt)
        largest = float(xp.max(xp.abs(learnt)))
        if isinstance(target.scale, TargetScale) and largest > 1.0:
            low, high = target.scale.range
            raise ValueError(
                "with warm_start=True the targets must lie in the range of the first fit, "
                f"{low:.6g} to {high:.6g}; y holds others. Fit anew with warm_start=False."
            )
        if isinstance(target.scale, TargetScale) and 0.0 < largest < _SMALL_TARGETS:
            warnings.warn(
                f"y spans {2.0 * largest * target.scale.size:.3g}, but is so far from 0 that votes "
                f"are rounded to multiples of {2.0**target.scale.step:.3g}. Subtract a constant "
                "from y first.",
                stacklevel=caller_level(),
            )
        return Samples(None, learnt, weights), target

    def _of_target(self, settings: Settings, samples: Samples, target: TargetDomain) -> Settings:
        """A callback is told of rounds as the targets are, `tol` is a share, and lambda is on the
        scale of the targets."""
        scale, callback, stopping = target.scale, settings.callback, settings.stopping
        assert scale is not None
        if callback is not None:
            settings = replace(settings, callback=lambda record: callback(_in_unit(record, scale)))
        if stopping is not None and stopping.tol:
            given = samples.classes, samples.weights
            if target.loss in RATIO_LOSSES:
                error = deviance_of_mean(*given, target.loss)
            elif target.loss == "quantile":
                error = QuantileVotes(level=settings.votes.level).error_of_constant(*given)
            else:
                error = SquaredVotes.variance(*given)
            tol = stopping.tol * error  # a share of the error if one number is predicted
            settings = replace(settings, stopping=replace(stopping, tol=tol))
        if target.loss == "poisson":
            votes = replace(settings.votes, unit_of_counts=scale.of_errors)
            settings = replace(settings, votes=votes)
        return settings

    def _scoring(self) -> Scoring:
        return _SCORING[self.loss]

    def _votes(self, learning_rate: float) -> VoteSettings:
        quantity = check_quantity_loss(self.loss)
        if learning_rate > 1.0:
            raise ValueError(
                f"learning_rate must be at most 1 for a quantity; got {learning_rate!r}."
            )
        l2 = L2_OF_QUANTILES if quantity == "quantile" else self._usual_l2
        if self.l2_regularization is not None:
            l2 = check_real(self.l2_regularization, "l2_regularization", least=0.0)
        level = check_real(self.quantile, "quantile", above=0.0)
        if level >= 1.0:
            raise ValueError(f"quantile must be below 1; got {self.quantile!r}.")
        return VoteSettings("newton", learning_rate, l2, quantity=quantity, level=level_of(level))


@dataclass(kw_only=True, eq=False, repr=False)
class GlassBoxRegressor(StumpBoostingRegressor):
    """`StumpBoostingRegressor` with bags, smoothing rounds and early stopping by default.

    The model is a sum of one step function for each feature and one table for each of some pairs of
    features, like interpret's Explainable Boosting Machine with its interactions [Lou, Caruana and
    Gehrke 2012; Lou, Caruana, Gehrke and Hooker 2013]. `plots.overview` draws it, with the spread
    of the bags, and `explain` says what each feature and each pair adds to each prediction.

    Parameters and attributes are those of `StumpBoostingRegressor`, where they are described; only
    the defaults differ. They were chosen by measurement on real tables; `bench/NOTES.md` has the
    figures. Rounds of a quantity take less time than those of classes, so there are more of them.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gpustump import GlassBoxRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = GlassBoxRegressor(random_state=0, device="cpu").fit(X, y)
    >>> reg.model_.n_bags, round(reg.score(X, y), 2)
    (12, 0.59)
    """

    n_estimators: int = GLASS_BOX_OF_QUANTITY.n_estimators
    learning_rate: float = GLASS_BOX_OF_QUANTITY.learning_rate
    smoothing_rounds: int = GLASS_BOX_OF_QUANTITY.smoothing_rounds
    interactions: Any = "auto"
    n_bags: int | None = None
    n_iter_no_change: int | None = GLASS_BOX_OF_QUANTITY.n_iter_no_change
    validation_fraction: float = GLASS_BOX_OF_QUANTITY.validation_fraction
    tol: float = GLASS_BOX_OF_QUANTITY.tol

    _usual_l2: ClassVar[float] = 1.0


def _in_unit(record: AnyRound, scale: Scale) -> RegionRound:
    """The record of a round for the targets as they are."""
    assert isinstance(record, RegionRound)
    size = scale.size
    votes: Any = tuple(tuple(vote * size for vote in own) for own in record.votes)
    return replace(
        record,
        votes=votes,
        score=record.score * scale.of_gains,
        training_error=record.training_error * scale.of_errors,
    )
