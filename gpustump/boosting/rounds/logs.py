"""The rounds of a run so far: enough to make them again without a search.

`training` notes each round in the log of its run. If a log holds rounds already, it makes these
first. A checkpoint is the logs of all runs in a file; see `boosting.checkpoints`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
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


@dataclass
class RunLog:
    """The rounds of one run, in the order in which they were made.

    Each round is added in one step, so an interruption leaves a log without the round or with all
    of it.

    Attributes
    ----------
    rounds : list of LoggedRound
        Those that this fit made, whether or not the model keeps them; those of an earlier process
        come first. Rounds from which a warm start goes on are not among them.
    constant : tuple of float
        The scores from which the run started; empty if it has not begun.
    end : str
        Why the run is over, as in `Run`; empty if it is not, or if the last round says it.
    tell : callable
        Called after each round that is noted.
    """

    rounds: list[LoggedRound] = field(default_factory=list)
    constant: tuple[float, ...] = ()
    end: str = ""
    tell: Callable[[], None] = lambda: None

    @property
    def stop_reason(self) -> str:
        """Why the run is over; empty if it is not."""
        return self.so_far()[1]

    def so_far(self) -> tuple[list[LoggedRound], str]:
        """The rounds, and why the run is over; empty if it is not.

        Another thread may add rounds meanwhile; the reason belongs to the rounds that are returned.
        """
        reason = self.end  # first: rounds that follow do not belong to an earlier end
        rounds = self.rounds[:]
        return rounds, reason or (rounds[-1].stop_reason if rounds else "")

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
        self.tell()
