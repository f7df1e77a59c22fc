"""What a run has made so far: enough to make it again without a search.

`training` notes each round in the log of its run, and makes the rounds first that a log holds
already. A checkpoint is the logs of all runs in a file; see `checkpoints`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gpustump.boosting.judging import Judgement
from gpustump.boosting.votes import Vote


class LoggedRound(NamedTuple):
    """A round that is done.

    Attributes
    ----------
    hypothesis : any kind of stump or split
    vote : Vote
    judged : Judgement or None
        What the watched samples say of the model up to this round; None if none are watched.
    stop_reason : str
        Why it was the last round of its run, where that is known with the round; otherwise empty.
    """

    hypothesis: Any
    vote: Vote
    judged: Judgement | None = None
    stop_reason: str = ""


class RunLog:
    """The rounds of one run, in the order in which they were made.

    An interruption between two statements leaves a log without a round or with it, never with a
    part of it: each is added in one step.

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
        self._tell: Callable[[], None] = _nobody

    @property
    def stop_reason(self) -> str:
        """Why the run is over; empty if it is not."""
        return self.so_far()[1]

    def so_far(self) -> tuple[list[LoggedRound], str]:
        """The rounds, and why the run is over; empty if it is not.

        Another thread may add rounds meanwhile: the reason is that of these rounds.
        """
        reason = self._stop_reason  # first: rounds that follow do not belong to an earlier end
        rounds = self.rounds[:]
        return rounds, reason or (rounds[-1].stop_reason if rounds else "")

    def tell(self, listener: Callable[[], None]) -> None:
        """Have a function called after each round that is noted."""
        self._tell = listener

    def begin(self, constant: tuple[float, ...]) -> None:
        """The run starts from these scores.

        Raises
        ------
        ValueError
            If the log is of a run that started from other ones.
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
        self._tell()

    def end(self, stop_reason: str) -> None:
        """There are no more rounds."""
        self._stop_reason = stop_reason


def _nobody() -> None: ...
