"""What boosting estimators share: how a fit starts and ends, and what is known of its rounds."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gpustump.arrays import Array
from gpustump.boosting.checkpoints.writing import check_checkpoint
from gpustump.boosting.rounds.boosting import Callback, checked_resources
from gpustump.boosting.rounds.smoothing import Smoothing
from gpustump.boosting.rounds.stopping import Stopping
from gpustump.boosting.rounds.training import Run, Samples, Settings
from gpustump.boosting.votes.settings import VoteSettings
from gpustump.boosting.votes.votes import AnyRound
from gpustump.data.labels import plain_labels
from gpustump.data.parameters import (
    MANY_BAGS,
    MONOTONE,
    MOST_BAGS,
    ClassScoring,
    Constraints,
    Learner,
    Scoring,
    check_count,
    check_form,
    check_monotone,
    check_multi_class,
    check_real,
    check_scoring,
)
from gpustump.data.readable import caller_level
from gpustump.engines.objective import Objective
from gpustump.estimators.base import Data, DeviceName, Learnt, StumpEstimator
from gpustump.estimators.callbacks import CallbackSupportMixin, with_callbacks
from gpustump.estimators.checkpointing import CheckpointName
from gpustump.estimators.classifiers import StumpClassifier
from gpustump.estimators.held_out import (
    Asked,
    Earlier,
    Validation,
    refuse_bad_random_state,
)
from gpustump.estimators.targets import Offset, TargetDomain
from gpustump.learners.step_table import VOTES_LIMIT

Curve = list[float] | dict[Any, list[float]]
"""A number for each round; with several runs such a list for each class, by its label."""


@dataclass(kw_only=True, eq=False, repr=False)
class BoostedEstimator(CallbackSupportMixin, StumpEstimator):
    """The base class of all boosting estimators; a subclass says what the regions vote.

    The fields are the parameters that all of them have. (There is no `from __future__ import
    annotations` here, so that `typing.get_type_hints` finds their types in subclasses, too.)
    """

    n_estimators: int | None = None
    learning_rate: float = 1.0
    categorical_features: Any = None
    n_bags: int | None = 1
    random_state: Any = None
    device: DeviceName = "auto"
    n_iter_no_change: int | None = None
    validation_fraction: float = 0.1
    tol: float = 0.0
    warm_start: bool = False
    verbose: int = 0
    callback: Callback | None = None
    monotonic_cst: Any = None
    n_jobs: int | None = None
    max_memory: int | str | None = None
    block_bytes: int | None = None
    checkpoint: CheckpointName = None

    multi_class = "shared"  # these two where they are no parameters
    smoothing_rounds = 0

    def _asked_for(
        self, validation: Validation | None = None
    ) -> tuple[Settings, Asked, Sequence[Earlier] | None]:
        """The checked parameters, what the fit watches, and for each bag the earlier fit that a
        warm start goes on from (None without one)."""
        settings = self._settings()
        n_bags, scoring = self._most_bags(), self._scoring()
        holds_out = n_bags > 1 or (settings.stopping is not None and validation is None)
        if validation is not None:
            stopping = settings.stopping or Stopping(None, scoring=scoring)
            settings = replace(settings, stopping=stopping)  # rows are watched in any case
        asked = Asked(
            scoring,
            self._checked_fraction() if holds_out else None,
            check_random_state(self.random_state),  # all bags draw from one generator
            (None,) * n_bags,
            validation,
            is_usual=self.n_bags is None and not self._goes_on,
        )
        earlier = self._earlier(n_bags)
        if earlier is not None:
            self._refuse_other_votes(settings, earlier[0])
            n_done = max(len(run.rounds) for run in self._runs)
            n_rounds = settings.n_rounds_of(earlier[0].target.n_classes)
            if n_rounds < n_done:
                raise ValueError(
                    f"n_estimators={n_rounds} is less than the {n_done} rounds already "
                    "made; with warm_start=True it can only grow."
                )
        return settings, asked, earlier

    def _most_bags(self) -> int:
        """The number of bags; the largest one that n_bags=None may stand for."""
        if self.n_bags is not None:
            return check_count(self.n_bags, "n_bags", most=MOST_BAGS)
        return len(self._splits) if self._goes_on else MANY_BAGS

    def _refuse_other_votes(self, settings: Settings, earlier: Earlier) -> None:
        """Refuse a warm start with another loss or kind of votes, or for other outputs."""
        n_classes = earlier.target.n_classes
        objectives = earlier.objective, settings.objective(n_classes)
        found, wanted = (_described(own, n_classes) for own in objectives)
        if found != wanted:
            raise ValueError(
                f"warm_start=True goes on from rounds of {found}, but now the parameters ask for "
                f"{wanted}. Keep them as they were, or fit anew with warm_start=False."
            )

    def _earlier(self, n_bags: int) -> list[Earlier] | None:
        """For each bag the earlier fit; None if this fit starts from the beginning."""
        if not self._goes_on:
            return None
        if n_bags != len(self._splits):
            raise ValueError(
                f"n_bags is {n_bags}, but with warm_start=True it must be {len(self._splits)}, as "
                "in the earlier fit."
            )
        return [
            Earlier(runs, self._target, split, self._objective)
            for runs, split in zip(self._runs_by_bag, self._splits, strict=True)
        ]

    @property
    def _runs_by_bag(self) -> list[tuple[Run, ...]]:
        """The runs of each bag: one, or one for each class."""
        n_runs = len(self._runs) // len(self._splits)
        return [self._runs[at : at + n_runs] for at in range(0, len(self._runs), n_runs)]

    @property
    def n_iter_(self) -> int:
        """The number of rounds that the model keeps; the largest of several runs."""
        check_is_fitted(self)
        return max(len(run.rounds) for run in self._runs)

    @property
    def rounds_(self) -> tuple[tuple[AnyRound, ...], ...]:
        """For each run the records of its rounds; with bags, the runs of the first bag come
        first."""
        check_is_fitted(self)
        return tuple(tuple(run.rounds) for run in self._runs)

    @property
    def stop_reasons_(self) -> tuple[str, ...]:
        """For each run why it ended; see `Boosting`."""
        check_is_fitted(self)
        return tuple(run.stop_reason for run in self._runs)

    @property
    def held_out_scores_(self) -> tuple[tuple[float, ...], ...]:
        """For each run the score of the held-out samples after each round; see `scoring`."""
        check_is_fitted(self)
        return tuple(run.held_out_scores for run in self._runs)

    @property
    def held_out_errors_(self) -> tuple[tuple[float, ...], ...]:
        """For each run the held-out error after each round."""
        check_is_fitted(self)
        return tuple(run.held_out_errors for run in self._runs)

    @property
    def evals_result_(self) -> dict[str, dict[str, Curve]]:
        """The numbers of each round as curves, by data set and metric; see `AdaBoostClassifier`."""
        check_is_fitted(self)
        labels = plain_labels(self._target.classes)

        def curve(by_run: list[list[float]]) -> Curve:
            return by_run[0] if len(by_run) == 1 else dict(zip(labels, by_run, strict=True))

        found: dict[str, dict[str, Curve]] = {}
        for bag, (runs, split) in enumerate(zip(self._runs_by_bag, self._splits, strict=True)):
            of_bag = "" if len(self._splits) == 1 else f" of bag {bag + 1}"
            training = [[one.training_error for one in run.rounds] for run in runs]
            found[f"training{of_bag}"] = {"error": curve(training)}
            if split is not None and any(run.held_out_scores for run in runs):
                found[f"validation{of_bag}"] = {
                    split.scoring: curve([list(run.held_out_scores) for run in runs]),
                    "error": curve([list(run.held_out_errors) for run in runs]),
                }
        return found

    def _take_over(self, learner: StumpEstimator, learnt: Learnt, settings: Settings) -> None:
        n_outputs = settings.n_outputs(learnt.target.n_classes)
        runs = [run for bag in learnt.trained for run in bag.runs]
        if learnt.pairs is None or any(run.rounds for run in runs):
            for text in _unwanted_ends(runs, settings.votes, n_outputs):
                warnings.warn(text, stacklevel=caller_level())
        super()._take_over(learner, learnt, settings)

    def _settings(self) -> Settings:
        """The parameters, checked."""
        check_checkpoint(self.checkpoint)
        check_form(self.interactions)
        refuse_bad_random_state(self.random_state)
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback must be callable or None; got {self.callback!r}.")
        is_flag = isinstance(self.verbose, bool)
        verbose = int(self.verbose) if is_flag else check_count(self.verbose, "verbose", least=0)
        n_smoothing = check_count(self.smoothing_rounds, "smoothing_rounds", least=0)
        return Settings(
            n_rounds=self._n_rounds_asked_for(),
            votes=self._votes(check_real(self.learning_rate, "learning_rate", above=0.0)),
            multi_class=check_multi_class(self.multi_class),
            learner=self._learner(),
            stopping=self._stopping(n_smoothing),
            callback=self.callback,
            resources=checked_resources(self.n_jobs, self.max_memory, self.block_bytes),
            show_progress=verbose > 0,
            announces_route=verbose > 1,
            smoothing=Smoothing(n_smoothing) if n_smoothing else None,
        )

    def _constrained(self, settings: Settings, earlier: Sequence[Earlier] | None) -> Settings:
        """The settings with the features' constraints."""
        names = getattr(self, "feature_names_in_", None)
        constraints = check_monotone(self.monotonic_cst, self.n_features_in_, names)
        if constraints is None:
            return settings
        if settings.learner == "interval":
            raise ValueError(
                f"{MONOTONE} is for stumps: an interval rises and falls again. Take "
                f"weak_learner='stump', or leave {MONOTONE} out."
            )
        if settings.votes.quantity == "quantile":
            raise ValueError(
                f"{MONOTONE} is not for loss='quantile': it cuts by shares of samples, and the "
                f"quantiles beside them may have another order. Leave {MONOTONE} out."
            )
        if earlier is not None:
            _refuse_tighter(constraints, earlier[0].objective.monotone)
        return replace(settings, votes=replace(settings.votes, monotone=constraints))

    def _votes(self, learning_rate: float) -> VoteSettings:
        """What regions vote; the other parameters of votes are checked here."""
        raise NotImplementedError

    def _n_rounds_asked_for(self) -> int | None:
        """The largest number of rounds of a run; None if the number of classes decides it."""
        return check_count(self.n_estimators, "n_estimators")

    def _scoring(self) -> Scoring:
        """What early stopping watches."""
        raise NotImplementedError

    def _learner(self) -> Learner:
        """The hypotheses that a round may choose from."""
        return "stump"

    def _stopping(self, n_smoothing: int) -> Stopping | None:
        """When to stop early; the score and `tol` are checked even where they are not used."""
        scoring = self._scoring()
        tol = check_real(self.tol, "tol", least=0.0)
        if self.n_iter_no_change is None:
            return None
        patience = check_count(self.n_iter_no_change, "n_iter_no_change")
        self._checked_fraction()
        return Stopping(patience, tol, scoring, n_smoothing)

    def _checked_fraction(self) -> float:
        """The share that is held out."""
        share = check_real(self.validation_fraction, "validation_fraction", above=0.0)
        if share >= 1.0:
            raise ValueError(f"validation_fraction must be above 0 and below 1; got {share!r}.")
        return share


@dataclass(kw_only=True, eq=False, repr=False)
class BoostedClassifier(BoostedEstimator, StumpClassifier):
    """The base class of all boosting classifiers."""

    class_weight: Any = None
    scoring: ClassScoring = "loss"

    @with_callbacks
    def fit(
        self,
        X: Array,
        y: Array,
        sample_weight: Array | None = None,
        *,
        init_score: Array | None = None,
        X_val: Array | None = None,
        y_val: Array | None = None,
        sample_weight_val: Array | None = None,
        init_score_val: Array | None = None,
    ) -> Self:
        """Train on a table.

        Parameters
        ----------
        X : array or frame (n_samples, n_features)
            Of any array library, or a frame of pandas, polars or pyarrow. NaN means missing.
        y : array (n_samples,)
            Classes: whole numbers, booleans or text. Python objects count as what they are. If all
            are one class, a warning says so, and that class is predicted for every sample.
        sample_weight : array (n_samples,), optional
            Finite, not negative, not all zero. Samples of weight zero take no part. Their scale
            matters where there is an `l2_regularization`: a fit warns where it makes all votes
            small, as with weights that sum to 1. `votes="real"` counts the samples, too.
        init_score : array (n_samples,) or (n_samples, n_classes), optional
            What is known of each sample beforehand, from -600 to 600: the log-odds of the second
            class; with more than two classes the logarithm of each class's probability, up to a
            constant (with `multi_class="one_vs_rest"` its log-odds). The model learns the rest, so
            give `predict` the scores of its rows, too. AdaBoost counts such a sample exp(-y *
            init_score / 2) times, for y = +1 and -1, and the numbers of its rounds are those of a
            fit with these weights; with more than two classes it needs
            `multi_class="one_vs_rest"`.
        X_val : array or frame (n_val, n_features), optional
            Rows to watch: they are scored after each round. All of X is then trained on, and
            nothing of it is held out (but each of several bags is trained on its share). If
            `n_iter_no_change` is given, these rows decide when to stop early. If it is None, all
            rounds are made and kept. `held_out_scores_` and `held_out_errors_` hold the results. An
            array has to be on the device of X; it may be of another library. Columns of a frame are
            matched by name. A warm start may watch other rows than the earlier fit: they are scored
            after the earlier rounds, too. Make sure that none of them was trained on.
        y_val : array (n_val,), optional
            Their labels. All of them have to be classes of y.
        sample_weight_val : array (n_val,), optional
            Their weights, which `class_weight` does not change.
        init_score_val : array (n_val,) or (n_val, n_classes), optional
            Their initial scores.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data or a parameter is not as described; the message names it and what was found. A
            `CheckpointError`, if the file of `checkpoint` is not of such a fit, is a ValueError.
        DeviceError
            If `device` asks for a GPU that cannot be used.
        OSError
            If the file of `checkpoint` cannot be read or written.

        Warns
        -----
        UserWarning
            If y holds so many different values that it looks like a quantity. If a class has one
            sample, and a share of the samples is held out: this sample is trained on.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4], [5]], ["no", "no", "yes", "no", "yes"]
        >>> clf = AdaBoostClassifier(n_estimators=3).fit(X, y, [1, 1, 2, 1, 1])
        >>> clf.score(X, y)
        1.0

        With rows to watch, their error after each round:

        >>> clf = AdaBoostClassifier(n_estimators=3)
        >>> clf.fit(X, y, X_val=[[0.5], [3.5]], y_val=["no", "no"]).held_out_errors_
        ((0.5, 0.0, 0.5),)
        """
        watched = Offset(init_score_val, suffix="_val")
        offset = Offset(init_score)
        validation = Validation.of(X_val, y_val, sample_weight_val, watched, offset)
        settings, asked, earlier = self._asked_for(validation)
        self._fit(Data(X, y, sample_weight, asked, earlier, offset), settings)
        return self

    def _of_target(self, settings: Settings, samples: Samples, target: TargetDomain) -> Settings:
        if settings.votes.monotone is not None and target.n_classes > 2:
            raise ValueError(
                f"{MONOTONE} is for two classes, as it constrains the probability of the second "
                f"one; y holds {target.n_classes} classes. Leave it out, or fit two of them."
            )
        is_shared = settings.n_outputs(target.n_classes) > 1
        if samples.offset is not None and settings.votes.kind != "newton" and is_shared:
            raise ValueError(
                "init_score with votes that several classes share is for LogitBoostClassifier and "
                "GlassBoxClassifier. Take one of them, or multi_class='one_vs_rest'."
            )
        return settings

    def _scoring(self) -> ClassScoring:
        return check_scoring(self.scoring)


def _unwanted_ends(runs: Sequence[Run], votes: VoteSettings, n_outputs: int) -> Iterator[str]:
    """What to warn of: votes that became too large, and runs that made no round at all.

    Other runs end because nothing is left to learn, or because the caller asked for it.
    """
    done = [len(run.rounds) for run in runs if run.stop_reason == "large votes"]
    if done:
        n_rounds = f"{max(done)}" if min(done) == max(done) else f"{min(done)} to {max(done)}"
        yield (
            f"votes became too large: {_some(len(done), runs)} ended after {n_rounds} rounds, as "
            f"the sum of absolute votes may not exceed {VOTES_LIMIT:g}. Take a smaller "
            f"learning_rate than {votes.learning_rate:g}."
        )
    ends = [run.stop_reason for run in runs if not run.rounds]
    is_quantile = votes.quantity == "quantile"  # whose votes no lambda shrinks
    if small := ends.count("small vote"):
        l2 = ""
        if votes.kind == "newton" and not is_quantile:
            own = votes.l2_of(n_outputs)
            l2 = f", or l2_regularization={own:g} too large for the sample weights"
        y = "" if votes.quantity is None else ", or y varies too little for its size"
        yield (
            f"{_some(small, runs)} made no round, as all votes round to 0: learning_rate="
            f"{votes.learning_rate:g} is too small{l2}{y}."
        )
    if nothing := ends.count("no edge"):
        is_of_classes = votes.quantity is None
        does = "tells the classes apart" if is_of_classes else "lowers the error"
        does = "moves a quantile" if is_quantile else does
        yield (
            f"{_some(nothing, runs)} made no round, as no cut of any feature {does}: the scores "
            f"are the same for all rows. Check that {'' if is_of_classes else 'y and '}the "
            "features vary, and that their rows are in the order of y."
        )


def _some(number: int, runs: Sequence[Run]) -> str:
    return "the fit" if len(runs) == 1 else f"{number} of {len(runs)} runs"


def _refuse_tighter(asked: Constraints, before: Constraints | None) -> None:
    """Refuse new constraints in a warm start: the earlier rounds need not obey them."""
    before = before or (0,) * len(asked)
    for feature, (now, then) in enumerate(zip(asked, before, strict=True)):
        if now not in (0, then):
            raise ValueError(
                f"warm_start=True goes on from rounds in which {MONOTONE} was {then} for feature "
                f"{feature}, and they need not obey {now}. Constraints may be dropped, but not "
                "added: keep them as they were, or fit anew with warm_start=False."
            )


def _described(objective: Objective, n_classes: int) -> str:
    if objective.is_of_quantity:
        level = f" of {objective.level:.4g}" if objective.loss == "quantile" else ""
        return f"loss={objective.loss!r}{level}"
    name = "Newton" if objective.gain == "newton" else objective.gain
    if n_classes <= 2:
        return f"{name} votes"
    how = "shared" if objective.n_outputs > 1 else "one_vs_rest"
    return f"{name} votes with multi_class={how!r}"
