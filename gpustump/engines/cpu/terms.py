"""The two integers of each sample and output in a round, as the kernels take them."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from gpustump.engines.cpu.compiling import group


@group
class Terms(NamedTuple):
    """What a round adds up; see `gpustump.engines.worth`.

    Attributes
    ----------
    first : ndarray (n_outputs, n_samples) of int64
        Signed.
    second : ndarray (n_outputs, n_samples) of int64
        Empty, (0, 0), if the second integers are the absolute first ones.
    """

    first: Annotated[np.ndarray, "int64[:, ::1]"]
    second: Annotated[np.ndarray, "int64[:, ::1]"]
