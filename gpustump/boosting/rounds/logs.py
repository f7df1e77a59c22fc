"""The rounds of a run so far: enough to make them again without a search.

`training` notes each round in the log of its run. If a log holds rounds already, it makes these
first. A checkpoint is the logs of all runs in a file; see `boosting.checkpoints`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gpustump.boosting.held_out.judging import Judgement
from gpustump.boosting.votes.votes import Vote


class LoggedRound(NamedTuple):
    """A round that is done.

    Attributes
    ----------
    hypothesis : any kind of stump or split
    vote : Vote
    judged : Judgement or None
        The model's score and error on the watched samples after this round; None if none are
        watched.
    stop_reason : str
        Why it was the last round of its run, if that is known with the round; otherwise empty.
    """

    hypothesis: Any
    vote: Vote
    judged: Judgement | None = None
    stop_reason: str = ""


class RunLog:
    """The rounds of one run, in the order in which they were made.

    Each round is added in one step, so an interruption leaves a log without the round or with all
    of it.

    Parameters
    ----------
    rounds : sequence of LoggedRound
        Those of an earlier process.
    constant : tuple of float
        The scores from which the run started; empty if it has not begun.
    stop_reason : str
        Why the run is over, as in `Run`; empty if it is not.

    Attributes
    ----------
    rounds : list of LoggedRound
        Those that this fit made, whether or not the model keeps them. Rounds from which a warm
        start goes on are not among them.
    constant : tuple of float
    """

    def __init__(
        self,
        rounds: Sequence[LoggedRound] = (),
        constant: tuple[float, ...] = (),
        stop_reason: str = "",
    ) -> None:
        self.rounds = list(rounds)
        self.constant = constant
        self._stop_reason = stop_reason
        self._tell: Callable[[], None] | None = None

    @property
    def stop_reason(self) -> str:
        """Why the run is over; empty if it is not."""
        return self.so_far()[1]

    def so_far(self) -> tuple[list[LoggedRound], str]:
        """The rounds, and why the run is over; empty if it is not.

        Another thread may add rounds meanwhile; the reason belongs to the rounds that are returned.
        """
        reason = self._stop_reason  # first: rounds that follow do not belong to an earlier end
        rounds = self.rounds[:]
        return rounds, reason or (rounds[-1].stop_reason if rounds else "")

    def tell(self, listener: Callable[[], None]) -> None:
        """Set the function to be called after each round that is noted."""
        self._tell = listener

    def begin(self, constant: tuple[float, ...]) -> None:
        """The run starts from these scores.

        Raises
        ------
        ValueError
            If the log is of a run that started from other scores.
        """
        if self.constant and self.constant != constant:
            raise ValueError(
                f"the checkpoint's run starts from the scores {self.constant}, but these data give "
                f"{constant}. Remove the checkpoint to start anew."
            )
        self.constant = constant

    def note(self, done: LoggedRound) -> None:
        """One more round is done."""
        self.rounds.append(done)
        if self._tell is not None:
            self._tell()

    def end(self, stop_reason: str) -> None:
        """There are no more rounds."""
        self._stop_reason = stop_reason
