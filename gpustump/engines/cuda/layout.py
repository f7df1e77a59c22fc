"""How things lie in the device's memory: codes, features side by side, and what the kernels note.

`codes.cu` says what a group of features looks like, and `add` in `sweep.cu` why.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpustump.engines.cuda.device import CudaDevice

TILE_SAMPLES = 512
"""Samples that codes are padded to: a whole tile of any width."""

LANE_BITS = 5
"""A group has 2**5 features at most."""

_LEAST_COLUMN_BITS = 3

_COLUMN_BYTES = 4096
"""Of shared memory for a column of the histograms' table: 512 sums of eight bytes."""

_SAMPLES_OF_BLOCK = 1024
"""Fewer are not worth another block, whose table has to be cleared and added up. A guess, so far:
`python -m bench profile --shapes` tells on a small table."""

PIECE, MOST_PIECES = 2048, 32
"""The samples of a bin that a block scans, and how many pieces a bin is cut into at most."""

BIN, FEATURE, PROFILE, EDGE, COUNTS, LISTED, PIECE_WORDS, EXTREMES = 4, 3, 8, 5, 3, 2, 1, 5
RESULT, TABLE, BEST, BEST_EDGE, SUMS, GROUP = 14, 5, 4, 3, 4, 5
"""Words of eight bytes in the structures of `search.cu` and `sweep.cu`, which explain them."""


def _record(*fields: str | tuple[str, Any]) -> np.dtype:
    """A record dtype; a field is an integer of eight bytes unless a dtype follows its name."""
    named = [(field, np.int64) if isinstance(field, str) else field for field in fields]
    return np.dtype(named)


STEP_TABLES = _record(
    "features", "starts", "thresholds", "values", "constant", "n_tables", "n_outputs"
)
ROWS = _record("values", "row_stride", "column_stride", "n_rows")

RECORDS = {"StepTables<int>": STEP_TABLES, "Rows": ROWS}
"""The structures of the kernels, which explain them. Addresses are integers of eight bytes."""


def record(dtype: np.dtype, **values: Any) -> np.ndarray:
    """One record with these values: a kernel's argument, passed by value."""
    made = np.zeros(1, dtype=dtype)
    made[0] = tuple(values[name] for name in dtype.names or ())
    return made


class Group(NamedTuple):
    """Features that lie side by side in the codes: 2**width_bits lanes, not all of them in use."""

    first: int
    n_features: int
    width_bits: int
    first_byte: int


def padded(n_samples: int) -> int:
    """Samples up to whole tiles."""
    return -(-n_samples // TILE_SAMPLES) * TILE_SAMPLES


def groups_of(n_features: int, n_samples: int, widest: int = LANE_BITS) -> tuple[Group, ...]:
    """Groups of up to 2**widest features; the last ones leave at most a quarter of the lanes empty.

    `n_samples` is padded.
    """
    groups: list[Group] = []
    first = 0
    while first < n_features:
        left = n_features - first
        bits = min(widest, (left - 1).bit_length())
        if left < 1 << bits and 4 * left < 3 << bits:
            bits -= 1
        n_here = min(left, 1 << bits)
        groups.append(Group(first, n_here, bits, n_bytes(tuple(groups), n_samples)))
        first += n_here
    return tuple(groups)


def n_bytes(groups: tuple[Group, ...], n_samples: int) -> int:
    """Of the codes of some groups."""
    return sum(n_samples << group.width_bits for group in groups)


def column_bits(device: CudaDevice) -> int:
    """How many columns the histograms' table in shared memory has, as a power of two."""
    bits = LANE_BITS
    while bits > _LEAST_COLUMN_BITS and table_bytes(bits) > device.most_shared:
        bits -= 1
    return bits


def table_bytes(column_bits: int) -> int:
    """The size of that table."""
    return _COLUMN_BYTES << column_bits


def described(
    device: CudaDevice,
    groups: tuple[Group, ...],
    n_samples: int,
    samples_of_block: int = _SAMPLES_OF_BLOCK,
) -> tuple[np.ndarray, int]:
    """Groups as `add` takes them, and how many blocks are to work on them.

    A processor has room for one block's table. Each group gets a block; the other processors go,
    one by one, to the group whose blocks have most to do.
    """
    most = max(1, -(-n_samples // samples_of_block))
    n_blocks = [1] * len(groups)
    for _ in range(device.n_processors - len(groups)):
        shares = [
            (1 << group.width_bits) / n if n < most else 0.0
            for group, n in zip(groups, n_blocks, strict=True)
        ]
        n_blocks[shares.index(max(shares))] += max(shares) > 0
    table = np.zeros((len(groups) + 1, GROUP), dtype=np.int64)
    for row, group in zip(table, groups, strict=False):
        row[:4] = (group.first, group.n_features, group.width_bits, group.first_byte)
    table[1:, 4] = np.cumsum(n_blocks)
    return table, sum(n_blocks)
