"""scikit-learn's own callbacks, where its version has them (1.9 and later).

`set_callbacks` comes from scikit-learn, and so do callbacks that measure or show a fit, such as
`sklearn.callback.ProgressBar` and `ScoringMonitor`. They see a fit as a tree of tasks: the fit;
with several runs a task for each class; and in it a task for each round. They get the table, the
labels and the weights as they were given, and the classifier as if the fit had stopped there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from gpustump.boosting.observing import SoFar
from gpustump.boosting.training import Trained

__all__ = ["CallbackSupportMixin", "FitTasks", "TaskData", "tasks_of", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _managed
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """In the place of scikit-learn's, which has `set_callbacks`."""

    def _managed(method: Any) -> Any:
        return method


_Method = TypeVar("_Method", bound=Callable[..., Any])


def with_callbacks(method: _Method) -> _Method:
    """A `fit` at whose end, however it ends, scikit-learn's callbacks are told so."""
    return cast(_Method, _managed(method))


class TaskData(NamedTuple):
    """What callbacks may ask for: X, y and the weights as they were given to `fit`."""

    X: Any
    y: Any
    sample_weight: Any

    @property
    def metadata(self) -> dict[str, Any] | None:
        return None if self.sample_weight is None else {"sample_weight": self.sample_weight}


def tasks_of(
    estimator: Any, data: TaskData, attributes: Callable[[Trained], dict[str, Any]]
) -> FitTasks | None:
    """Who tells an estimator's callbacks of the rounds; None if it has no callbacks."""
    return FitTasks(estimator, data, attributes) if hasattr(estimator, "_skl_callbacks") else None


class FitTasks:
    """An observer that tells scikit-learn's callbacks; see `boosting.observing.Observer`.

    Parameters
    ----------
    estimator : BoostedClassifier
        Which has callbacks.
    data : TaskData
    attributes : callable
        From a training to the attributes of the estimator that was fitted so.
    """

    def __init__(
        self, estimator: Any, data: TaskData, attributes: Callable[[Trained], dict[str, Any]]
    ) -> None:
        self._estimator, self._data, self._attributes = estimator, data, attributes
        self._open: list[Any] = []  # the contexts of tasks that have begun, the outermost first
        self._n_rounds: Sequence[int] = ()
        self._n_left = 0

    def training_begins(self, n_rounds: Sequence[int]) -> None:
        """Begin the task of the fit, unless it began on another device."""
        if self._open:
            return
        self._n_rounds = n_rounds
        n_tasks = len(n_rounds) if self._has_runs else n_rounds[0]
        self._begin(self._estimator._init_callback_context(max_subtasks=n_tasks))

    def run_begins(self, number: int) -> None:
        """Begin the task of a class, if classes have runs of their own."""
        if self._has_runs and len(self._open) == 1:
            n_rounds = self._n_rounds[number]
            self._begin(self._open[0].subcontext(task_name="class", max_subtasks=n_rounds))
        if not self._in_round:
            self._n_left = self._n_rounds[number]

    def round_begins(self, so_far: SoFar) -> None:
        """Begin the task of a round, if there may be one more."""
        if self._n_left and not self._in_round:
            self._n_left -= 1
            self._begin(self._open[-1].subcontext(task_name="round"), so_far)

    def round_ends(self, so_far: SoFar) -> bool:
        """End the task of a round; whether a callback wants the run to end."""
        return self._end(so_far)

    def run_ends(self, so_far: SoFar) -> None:
        """End the tasks of a run: a round that was not made, and the task of its class.

        Every class needs a run, so what callbacks answer here ends nothing.
        """
        if self._in_round:
            self._end(so_far)
        if self._has_runs:
            self._end(so_far)

    def training_ends(self, so_far: SoFar) -> None:
        """End the task of the fit."""
        self._end(so_far)

    @property
    def _has_runs(self) -> bool:
        return len(self._n_rounds) > 1

    @property
    def _in_round(self) -> bool:
        return len(self._open) > 1 + self._has_runs

    def _begin(self, context: Any, so_far: SoFar | None = None) -> None:
        self._open.append(context)
        context.call_on_fit_task_begin(**self._about(so_far))

    def _end(self, so_far: SoFar) -> bool:
        return bool(self._open.pop().call_on_fit_task_end(**self._about(so_far)))

    def _about(self, so_far: SoFar | None) -> dict[str, Any]:
        """What hooks may ask for; the attributes are worked out only for those that do."""
        known = None if so_far is None else lambda: self._attributes(so_far())
        return {
            "estimator": self._estimator,
            "X": self._data.X,
            "y": self._data.y,
            "metadata": self._data.metadata,
            "reconstruction_attributes": known,
        }
