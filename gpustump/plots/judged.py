"""Samples with known labels, and a model's predictions for them.

The pictures of a model's quality draw these: ROC curves, reliability, the confusion matrix.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.data.labels import class_numbers
from gpustump.model.ensemble import Label, StumpEnsemble, model_of
from gpustump.plots import inputs, style
from gpustump.plots.shapes import output_indices


class JudgedClass(NamedTuple):
    """One class against the rest.

    Attributes
    ----------
    name : str
    look : dict
        The look of its line, as Matplotlib takes it.
    is_it : ndarray (n_samples,) of bool
        Which samples are of the class.
    ranking : ndarray (n_samples,) of float64
        The score of two classes, or the probability; larger for samples more likely of the class.
    probability : ndarray (n_samples,) of float64
        The model's probability that the sample is of the class.
    predicted : ndarray (n_samples,) of bool
        Which samples the model predicts to be of the class.
    """

    name: str
    look: dict[str, Any]
    is_it: np.ndarray
    ranking: np.ndarray
    probability: np.ndarray
    predicted: np.ndarray

    @property
    def has_both(self) -> bool:
        """Whether some samples are of the class, and some are not."""
        return bool(self.is_it.any()) and not bool(self.is_it.all())


@dataclass(frozen=True)
class JudgedSamples:
    """Samples on the host; those of weight 0 are left out.

    Attributes
    ----------
    model : StumpEnsemble
    true : ndarray (n_samples,) of int64
        The numbers of their classes.
    predicted : ndarray (n_samples,) of int64
        The numbers of the classes that the model predicts.
    scores : ndarray (n_samples,) or (n_samples, n_classes) of float64
    probabilities : ndarray (n_samples, n_classes) of float64
    weights : ndarray (n_samples,) of float64, or None
        They add up to 1; None if none were given.
    """

    model: StumpEnsemble
    true: np.ndarray
    predicted: np.ndarray
    scores: np.ndarray
    probabilities: np.ndarray
    weights: np.ndarray | None

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, sample_weight: Any) -> JudgedSamples:
        """Check samples, and compute the model's scores, probabilities and predictions.

        Raises
        ------
        ValueError, TypeError
            If they are not valid.
        """
        ensemble = model_of(model)
        ensemble.refuse_quantity()
        X = inputs.table_of(model, X)
        true = class_numbers(ensemble.classes, y, X)
        units = inputs.weights_of(sample_weight, X)
        counts = units.values > 0
        # Scores are the same in every library; computed on the host, probabilities are so, too.
        scores = arrays.to_host(ensemble.decision_function(X))[counts]
        return cls(
            ensemble,
            true[counts],
            ensemble.class_indices(scores),
            scores,
            ensemble.probabilities_of(scores),
            None if sample_weight is None else units.values[counts] / units.total,
        )

    @property
    def shares(self) -> np.ndarray:
        """Each sample's share of the weight, (n_samples,)."""
        n_samples = len(self.true)
        return np.full(n_samples, 1 / n_samples) if self.weights is None else self.weights

    @property
    def class_shares(self) -> np.ndarray:
        """Each class's share of the weight, (n_classes,)."""
        return np.bincount(self.true, self.shares, minlength=len(self.model.classes))

    @property
    def accuracy(self) -> float:
        """The share of the weight that is predicted right."""
        return float(self.shares[self.true == self.predicted].sum())

    def classes(self, label: Label | Iterable[Label] | None) -> list[JudgedClass]:
        """The second of two classes; of more, those with these labels, or the most frequent ones.

        Raises
        ------
        ValueError
            If there is no such class, or there are too many labels.
        """
        numbers = output_indices(self.model, label)
        if self.model.is_binary:
            numbers = [1]
        elif len(numbers) > style.CLASSES:
            order = np.argsort(-self.class_shares, kind="stable")[: style.CLASSES]
            numbers = sorted(order.tolist())
        looks = style.class_looks(len(numbers))
        return [self._class(number, look) for number, look in zip(numbers, looks, strict=True)]

    def _class(self, number: int, look: dict[str, Any]) -> JudgedClass:
        probability = self.probabilities[:, number]
        return JudgedClass(
            inputs.class_name(self.model.classes[number]),
            look,
            self.true == number,
            self.scores if self.model.is_binary else probability,
            probability,
            self.predicted == number,
        )

    def choice(self, classes: list[JudgedClass]) -> str | None:
        """What a legend says if not all classes are drawn."""
        n_classes = len(self.model.classes)
        if self.model.is_binary or len(classes) == n_classes:
            return None
        return f"{len(classes)} of {n_classes} classes, each against the rest"
