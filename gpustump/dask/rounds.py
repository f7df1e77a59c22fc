"""The samples of a cluster as `boosting` sees them: runs and judges, by messages to the workers.

The leading process, the one that calls `fit`, decides the cuts and the votes, and sends them to the
workers. The code in `boosting` is the same as on one machine.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gpustump.boosting.held_out.judging import Judgement, added_up, judgement
from gpustump.boosting.held_out.samples import HeldOut
from gpustump.boosting.held_out.scores import scorer
from gpustump.boosting.rounds.boosting import Boosting
from gpustump.boosting.rounds.smoothing import Candidates, CutPlaces
from gpustump.boosting.rounds.stopping import EarlyStopping
from gpustump.boosting.rounds.training import Run, Samples, Settings, Target
from gpustump.boosting.votes.newton import NewtonVotes
from gpustump.dask.shards import DaskShards
from gpustump.dask.worker_rows import Watch
from gpustump.engines.category_table import CategoryTable, with_sets
from gpustump.engines.cluster.state import start
from gpustump.engines.cluster.table import ClusterTable, unit_exponent
from gpustump.engines.contract import PreparedTable, Trainer
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.engines.route import Route
from gpustump.learners.hypothesis import Partition


class HeldOutUnits(NamedTuple):
    """The unit of the held-out samples' integer weights, 2**-exponent, their sum, and how many
    samples they are."""

    exponent: int
    total: int
    n_samples: int

    @classmethod
    def of(cls, shards: DaskShards, n_samples: int) -> HeldOutUnits:
        """From all weights."""
        ask = functools.partial(shards.ask, "of_held_out")
        exponent = unit_exponent(ask, n_samples)
        return cls(exponent, sum(ask("scaled_total", exponent)), n_samples)


@dataclass(frozen=True)
class ClusterSamples:
    """Samples on the workers of a cluster; see `boosting.rounds.training.Ground`.

    Attributes
    ----------
    route : Route
    cluster : ClusterTable
    shards : DaskShards
    n_classes : int
    held_out : HeldOutUnits or None
    sampled : ndarray (n_rows, n_features) or None
        The values between which smoothing rounds cut, if there are any.
    samples : Samples or None
        The targets and weights of all samples of a quantity.
    started : list of Boosting
        The runs so far.
    """

    route: Route
    cluster: ClusterTable
    shards: DaskShards
    n_classes: int
    held_out: HeldOutUnits | None
    sampled: np.ndarray | None = None
    samples: Samples | None = None
    started: list[Boosting] = field(default_factory=list)

    @functools.cached_property
    def trainer(self) -> Trainer:
        """It starts runs on the table."""
        return with_sets(Trainer(self.cluster, start), self.cluster.bins.categories)

    @property
    def table(self) -> PreparedTable:
        """The table that the rounds see."""
        return self.trainer.table

    @functools.cached_property
    def _places(self) -> CutPlaces | None:
        """Where smoothing rounds may cut."""
        if self.sampled is None:
            return None
        table = self.table
        return CutPlaces.of(self.sampled, table.groups if isinstance(table, CategoryTable) else {})

    def boosting(self, target: Target, settings: Settings, before: Run) -> Boosting:
        """A run, at its start."""
        labels: Any = target.positive
        weights, constant = None, before.constant
        if self.samples is not None:
            labels, weights = self.samples.classes, self.samples.weights
        elif not constant and isinstance(target.votes, NewtonVotes):
            constant = target.votes.constant_of(self._class_weights(target))
        boosting = Boosting(
            self.trainer,
            labels,
            weights,
            votes=target.votes,
            n_rounds=settings.n_rounds,
            learner=settings.learner,
            callback=settings.callback,
            constant=constant or None,
            candidates=Candidates.of(settings.smoothing, self._places, target.positive),
        )
        self.started.append(boosting)
        return boosting

    def watch(self, boosting: Boosting, target: Target, settings: Settings) -> EarlyStopping | None:
        """The early stopping of a run; None if no samples are held out."""
        if self.held_out is None or settings.stopping is None:
            return None
        about = Watch(
            settings.stopping.scoring, boosting.link, boosting.constant, target.positive,
            target.n_outputs, *self.held_out, is_quantity=target.is_quantity,
            level=target.votes.objective("stump").level,
        )  # fmt: skip
        kind = RankingJudge if about.scoring == "roc_auc" else ClusterJudge
        return EarlyStopping(kind(self.shards, about), settings.stopping)

    @property
    def mean_weight(self) -> tuple[float, int]:
        """The mean of the weights, and the number of samples."""
        if self.samples is not None:
            return self.samples.mean_weight
        n_samples = self.table.n_samples
        mean = math.ldexp(sum(self._by_class) / n_samples, -self.cluster.exponent())
        return mean, n_samples

    @functools.cached_property
    def _by_class(self) -> list[int]:
        """The integer weight of each class."""
        exponent = self.cluster.exponent()
        return added_up(self.shards.ask("class_weights", exponent, self.n_classes))

    def _class_weights(self, target: Target) -> list[int]:
        """The integer weight of each class, or of the labels -1 and +1."""
        found = self._by_class
        if target.n_outputs > 1:
            return found
        positive = found[target.positive]
        return [sum(found) - positive, positive]


class ClusterJudge:
    """Held-out samples on many workers; see `boosting.held_out.judging.Judge`.

    Parameters
    ----------
    shards : DaskShards
    about : Watch
    """

    def __init__(self, shards: DaskShards, about: Watch) -> None:
        self._shards, self._about = shards, about
        self._terms: list[tuple[Any, np.ndarray]] = []
        self._begin(shards.ask("watch", about))

    def _begin(self, totals: list[Any]) -> None:
        self._totals = added_up(totals)

    def add(self, hypothesis: Partition, region_votes: np.ndarray) -> None:
        """Add a hypothesis to the model; the workers learn of it with the next `judge`."""
        self._terms.append((hypothesis, region_votes))

    def judged(self) -> Judgement:
        """The score and the error of the model so far on all held-out samples."""
        terms, self._terms = tuple(self._terms), []
        parts = added_up(self._shards.ask("judge", terms))
        return judgement(self._about.scoring, parts, self._totals)


class RankingJudge(ClusterJudge):
    """The same for the area under the ROC curve, which compares pairs of samples of all workers.

    So here the scores of the held-out samples are sent in every round.
    """

    def _begin(self, totals: list[Any]) -> None:
        """Learn the classes and weights of all held-out samples, partition after partition."""
        about = self._about
        samples = self._shards.ask_by_part("held_out_samples", about.exponent)
        classes, units = map(np.concatenate, zip(*samples.values(), strict=True))
        weights = IntegerWeights(units, about.total)
        self._held_out = HeldOut.of(classes, weights, about.positive, about.n_outputs, None)
        self._scorer = scorer(about.scoring, self._held_out, about.link)

    def judged(self) -> Judgement:
        """The score and the error of the model so far on all held-out samples."""
        terms, self._terms = tuple(self._terms), []
        found = self._shards.ask_by_part("judge", terms)
        scores = np.concatenate(list(found.values()))
        own = scores[:, 0] if scores.shape[1] == 1 else scores
        return Judgement(self._scorer(own), self._held_out.error(own))
