"""The search for the best cut, in sums over bins, parts of bins and samples."""

from gpustump.data.parameters import VoteKind

STAGE_OF: dict[VoteKind, str] = {
    "discrete": "split.discrete_cells",
    "real": "split.real_cells",
    "newton": "split.newton_cells",
}
"""The file that evaluates cells for each kind of votes, as `runtime.kernel_folder` names it."""
