"""How data are laid out in the device's memory: groups of features' codes, and kernels' records.

`codes.cu` says how the codes of a group of features are stored, and `add` in `update_pass.cu` says
why.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpustump.arrays.libraries import Array
from gpustump.engines.cuda.device import CudaDevice

TILE_SAMPLES = 512
"""Codes are padded to a multiple of this number of samples: whole tiles for any group's width."""

LANE_BITS = 5
"""A group has at most 2**5 features."""

LANES = 1 << LANE_BITS
"""How many lanes a tile has: as many as a warp has threads."""

RUN = TILE_SAMPLES // LANES
"""How many samples of a feature are neighbours in a tile."""

N_CODES, NO_CODE = 256, 255
"""How many codes a byte holds, and that of missing values."""

SLOTS = 2 * N_CODES
"""How many sums a feature's histogram has: one for each code and label."""

_COLUMN_BYTES = 8 * SLOTS
"""Bytes of shared memory for a column of the histograms' table."""

_NARROW = 2.0
"""How many times as long a lane of a narrow group takes, whose tiles are not staged; on an H100."""

STAGED_BYTES = 4 * (512 + 128)
"""Bytes of shared memory for the codes and changes of a warp's next tiles in `add_staged`."""

_SAMPLES_OF_BLOCK = 1024
"""The fewest samples for another block, whose table must be cleared and added up. A guess, not
measured yet."""

SIGNED_PIECE = 2048
"""The fewest samples of a bin's piece in the searches for classic stumps and intervals. A block
searches a piece at a time."""

SPLIT_PIECE = 512
"""The same in the search for splits, where smaller pieces have closer bounds."""

MOST_PIECES = 32
"""The most pieces of a bin in the searches for classic stumps and intervals, which combine them one
by one."""


def _record(*fields: str | tuple[Any, ...]) -> np.dtype:
    """A record dtype; a field is an integer of eight bytes unless a dtype follows its name."""
    return np.dtype([(field, np.int64) if isinstance(field, str) else field for field in fields])


# The kernels' structures, by the files that define them and say what the fields mean. An address is
# an integer of eight bytes.

# Of `common.cuh`.
SUMS = _record("signed_weight", "weight", "error", "smallest")
STEP = _record(
    "codes", "width_bits", "feature", "first_sample", "n_samples", "regions", "cut_bin",
    "is_inside", "low_bin", "is_low_inside", "round", "marks", "order", "begin", "end", "low_begin",
    "low_end", "clears",
)  # fmt: skip

LAYERS = _record("change", "histograms", "n_padded", "n_features", "n_layers")

# Of `search.cuh`.
BIN = _record("offset", "n_inside", "feature", "has_cuts")
FEATURE = _record("first", "n_bins", "n_present")
EDGE = _record("score", "position", "polarity", "present", "missing")
BEST = _record("score", "feature", "position", "detail")
BEST_EDGE = _record("score", "position", "polarity")
COUNTS = _record("n_pieces", "n_listed", "n_wanted")
LISTED = _record("bin", "first_piece")
PIECE_OF_BIN = _record(("bin", np.int32), ("number", np.int32))
NEIGHBOURS = _record(("samples", np.int64, 2), ("values", np.uint8, 16))
RESULT = _record(("best", BEST), "missing", "n_wanted", ("sums", SUMS), ("beside", NEIGHBOURS, 2))
SOURCE_TABLE = _record("values", "row_stride", "column_stride", "item_size", "rows")
PREPARED_TABLE = _record("features", "bins", "orders", "source", "n_features", "n_bins")
SIZES = _record("least", "most")
ROUND = _record(
    "bounds", "edges", "wanted", "result", "counts", "sums", ("pieces", SIZES), "directions"
)

PLACE_BITS = 31
"""Both cuts of an interval are packed into one integer: the lower cut is above this many bits."""

# Of `profiles.cuh`.
PROFILE = _record("positive", "negative", "rise", "fall", "positive_then", "negative_then", "left")
EXTREMES = _record("sum", "high", "low", "high_at", "low_at")

# Of `intervals.cu`.
SLOPES = _record(("reached", EXTREMES), "rise", "rise_place", "fall", "fall_place")
RANGE = _record("low", "high")
PAIRS = _record("profiles", "bins", "pieces", "looked", "signed_weights", "rescale_exponent")

# Of `update_pass.cu`.
SAMPLES = _record(
    "signed_weights", "scores", "first_weights", "equal_weight", "sums", ("layers", LAYERS)
)  # fmt: skip
EFFECT = _record(
    "left", "right", "missing", ("vote", np.float64), ("grown", np.float64), ("kept", np.float64),
    "anew", "rescale_exponent",
)  # fmt: skip
GROUP = _record("first_feature", "n_features", "width_bits", "first_byte", "first_block")

# Of `integers.cuh`.
LOSSES = ("exponential", "logistic", "softmax", "squared_error", "poisson", "gamma")
LOSS_SAMPLES = _record(
    "numbers", "fixed", "scores", "first_weights", "equal_weight", "sums", ("layers", LAYERS),
    "n_samples", "n_outputs", "loss",
)  # fmt: skip

# Of `losses.cu`.
MOTION = _record("votes", "factors")

# Of `splits.cu`.
TRIPLE = _record("positive", "negative", "hessian")
SKEW = _record(*((name, np.float64) for name in ("positive", "negative", "rise", "fall")))
MOVEMENT = _record("most", "of_majority", "is_one_way", "low", "high")
SPLITS = _record(
    ("samples", LOSS_SAMPLES), "left", "noted", ("movement", MOVEMENT), "piece_sums",
    "piece_before", "piece_skew", "piece_bounds", "piece_best", "least", "regions", "has_hessians",
    "most_pieces", ("l2", np.float64),
)  # fmt: skip

# Of `cells.cu`.
CELL_SUMS = _record(
    "bins", "ranges", "places", "integers", "n_bins", "n_ranges", "n_places", "n_samples",
    "n_outputs", "n_kinds",
)  # fmt: skip

# Of `held_out.cu`.
HELD_OUT = _record(
    "keys", "scores", "classes", "units", "weights", "targets", "nodes", "drops", "exponentials",
    ("most", np.float64), "n_samples", "n_outputs", "n_nodes", "node_bits", "bits", "loss",
)  # fmt: skip
VOTES = _record("ends", "votes")

# Of `powers.cuh` and `pairs.cu`.
POWERS = _record("whole", "parts", ("doubt", np.float64))
PAIR_SAMPLES = _record("bins", "n_bins", ("own", LOSS_SAMPLES))
PAIR_STEP = _record("first", "second", "cut", "other_cut")
PAIR_MOTION = _record("step", "votes", "factors")
VOTE_RULE = _record(
    ("scale", np.float64), ("doubt", np.float64), ("l2", np.float64),
    ("largest_step", np.float64), "loss",
)  # fmt: skip
PAIR_TURN = _record("pairs", "candidates", "n_candidates", "places", "votes", "n_made", "cells")

# Of `prediction.cu`.
STEP_TABLES = _record(
    "features", "starts", "thresholds", "values", "constant", "n_tables", "n_outputs"
)
ROWS = _record("values", "row_stride", "column_stride", "n_rows")


def record(dtype: np.dtype, **values: Any) -> np.ndarray:
    """One record with these values: a kernel's argument, passed by value."""
    made = np.zeros(1, dtype=dtype)
    made[0] = tuple(values[name] for name in dtype.names or ())
    return made


def zeros(device: CudaDevice, n_records: int, dtype: np.dtype) -> Array:
    """Records of zeros on the device, (n_records, words): CuPy has no record dtypes."""
    return device.xp.zeros((n_records, dtype.itemsize // 8), dtype=np.int64)


def on_device(device: CudaDevice, records: np.ndarray) -> Array:
    """Records (n_records,) copied to the device, (n_records, words)."""
    return device.array(records.view(np.int64).reshape(len(records), -1))


def read(words: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The records (n_records,) that words (n_records, words) from the device hold."""
    return words.view(dtype)[:, 0]


class Group(NamedTuple):
    """Features that are neighbours in the codes, in 2**width_bits lanes; some may be unused."""

    first: int
    n_features: int
    width_bits: int
    first_byte: int


def padded(n_samples: int) -> int:
    """The number of samples, rounded up to whole tiles."""
    return -(-n_samples // TILE_SAMPLES) * TILE_SAMPLES


def groups_of(n_features: int, n_samples: int, widest: int = LANE_BITS) -> tuple[Group, ...]:
    """Groups of up to 2**widest features; in each, at most a quarter of the lanes is unused.

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
    """How many bytes the codes of some groups take; `n_samples` is padded."""
    return sum(n_samples << group.width_bits for group in groups)


def column_bits(device: CudaDevice) -> int:
    """The histograms' table in shared memory has 2**this columns: a lane has one, or two share it.

    Every device that is new enough has room for that: 64 KiB.
    """
    return LANE_BITS if table_bytes(LANE_BITS) <= device.most_shared else LANE_BITS - 1


def table_bytes(column_bits: int) -> int:
    """The size of that table in bytes."""
    return _COLUMN_BYTES << column_bits


def adding_kernel(device: CudaDevice) -> tuple[str, int]:
    """The kernel that adds changes to histograms, and the bytes of shared memory that it takes."""
    bits = column_bits(device)
    staged = table_bytes(LANE_BITS) + device.most_threads // LANES * STAGED_BYTES
    if staged <= device.most_shared:
        return "add_staged", staged
    return f"add_{1 << bits}", table_bytes(bits)


def described(device: CudaDevice, groups: tuple[Group, ...], n_samples: int) -> tuple[Array, int]:
    """Groups as `add` takes them, on the device, and how many blocks work on them.

    The first is (n_groups + 1, words) of int64: records `GROUP`.

    The shared memory of a processor holds one block's table. Each group gets one block. Further
    blocks, up to one for each processor, go one by one to the group whose blocks have the most
    work.
    """
    most = max(1, -(-n_samples // _SAMPLES_OF_BLOCK))
    # The time of a group's tiles, relative to that of one lane of a group as wide as a tile.
    costs = [
        (1 << group.width_bits) * (1.0 if group.width_bits == LANE_BITS else _NARROW)
        for group in groups
    ]
    n_blocks = [1] * len(groups)
    for _ in range(device.n_processors - len(groups)):
        shares = [cost / n if n < most else 0.0 for cost, n in zip(costs, n_blocks, strict=True)]
        n_blocks[shares.index(max(shares))] += max(shares) > 0
    table = np.zeros(len(groups) + 1, dtype=GROUP)
    begins = np.cumsum(n_blocks) - n_blocks
    for number, (group, begin) in enumerate(zip(groups, begins, strict=True)):
        table[number] = (*group, begin)
    table["first_block"][-1] = sum(n_blocks)
    return on_device(device, table), sum(n_blocks)
