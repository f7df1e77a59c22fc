"""A round's integers sample by sample, and sums of them over the codes of columns.

A sample has one row. For one output it has 32 bytes: both integers, the first one again if it is
positive, and by how much it has grown since it was packed last. For several outputs it has both
integers of each output in turn, with zeros up to a multiple of 64 bytes, a line of the cache. A row
is added to a code's sums in vectors of 32 or 64 bytes, so each sample and its code are read once
for all outputs. A vector that lies across two lines of the cache takes twice as long, so rows and
sums are aligned.

If two successive samples have the same code, the second addition has to wait for the first one. So
four independent additions are in progress at a time: with one output to four columns, otherwise of
four samples that are far apart.

Bounds also need the sums of the positive gradients. With several outputs these are added one
number at a time, as a sample is positive for one output only.
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.cpu.runtime.intrinsics import adding

ONE_WIDTH = 4
"""Integers of a row of a single output."""

VECTOR = 8
"""Integers of a vector with several outputs."""


def row_width(n_outputs: int) -> int:
    """How many integers a row holds."""
    return ONE_WIDTH if n_outputs == 1 else _rounded_up(2 * n_outputs)


def positive_width(n_outputs: int) -> int:
    """How many sums of positive integers a code has besides; 0 with one output."""
    return 0 if n_outputs == 1 else _rounded_up(n_outputs)


def _rounded_up(n_integers: int) -> int:
    return -(-n_integers // VECTOR) * VECTOR


_add_row_of_one, _add_vector = adding(ONE_WIDTH), adding(VECTOR)
_add_two_vectors, _add_three_vectors = adding(2 * VECTOR), adding(3 * VECTOR)


@inner("UniTuple(int64, 2)(int64[::1], int64[::1], int64[::1])")
def pack_one(gradient, hessian, rows):  # type: ignore[no-untyped-def]
    """The rows of a single output; returns the sums of their last two integers.

    The Hessians are the absolute values of `hessian`.
    """
    all_positive, all_grown = 0, 0
    for i in range(len(gradient)):
        at, own = np.uint64(ONE_WIDTH * i), gradient[i]
        grown = max(own - rows[at], 0)
        rows[at] = own
        rows[at + np.uint64(1)] = abs(hessian[i])
        rows[at + np.uint64(2)] = max(own, 0)
        rows[at + np.uint64(3)] = grown
        all_positive += max(own, 0)
        all_grown += grown
    return all_positive, all_grown


@inner("void(int64[:, ::1], int64[:, ::1], uint16[::1], int64, int64[::1], int64[::1])")
def pack_several(gradient, hessian, classes, width, rows, positive):  # type: ignore[no-untyped-def]
    """The rows of several outputs, and each sample's positive gradient.

    `hessian` may be empty, as in `Terms`.
    """
    n_samples = gradient.shape[1]
    for k in range(len(gradient)):
        own, into = gradient[k], rows[2 * k :]
        other = hessian[k] if len(hessian) > 0 else own
        for i in range(n_samples):
            into[np.uint64(width * i)] = own[i]
            into[np.uint64(width * i + 1)] = abs(other[i])
    for i in range(n_samples):
        positive[i] = gradient[np.uint64(classes[i]), np.uint64(i)]


@inner("void(uint8[::1], int64[::1], int64[::1])")
def add_one(codes, rows, sums):  # type: ignore[no-untyped-def]
    """Add rows of a single output to the sums of a column's codes."""
    for i in range(len(codes)):
        place = np.uint64(ONE_WIDTH * i)
        _add_row_of_one(sums, np.uint64(codes[i]) << np.uint64(2), rows, place)


@inner("void(uint8[::1], uint8[::1], uint8[::1], uint8[::1], int64[::1], int64[::1])")
def add_one_to_four(c0, c1, c2, c3, rows, sums):  # type: ignore[no-untyped-def]
    """The same for four columns; `sums` holds one column after the other."""
    size = len(sums) // 4
    s0, s1, s2, s3 = sums[:size], sums[size:], sums[2 * size :], sums[3 * size :]
    two = np.uint64(2)
    for i in range(len(c0)):
        place = np.uint64(ONE_WIDTH * i)
        _add_row_of_one(s0, np.uint64(c0[i]) << two, rows, place)
        _add_row_of_one(s1, np.uint64(c1[i]) << two, rows, place)
        _add_row_of_one(s2, np.uint64(c2[i]) << two, rows, place)
        _add_row_of_one(s3, np.uint64(c3[i]) << two, rows, place)


@inner("void(int64[::1], int64, int64[::1], int64, int64)")
def add_row(sums, at, rows, place, width):  # type: ignore[no-untyped-def]
    """Add one row, of whole vectors or of a single output."""
    if width == ONE_WIDTH:
        _add_row_of_one(sums, np.uint64(at), rows, np.uint64(place))
    else:
        for k in range(width // VECTOR):
            _add_vector(sums, np.uint64(at + VECTOR * k), rows, np.uint64(place + VECTOR * k))


@inner("void(uint8[::1], int64[::1], int64, int64[::1])")
def add_several(codes, rows, width, sums):  # type: ignore[no-untyped-def]
    """Add rows of several outputs to the sums of a column's codes."""
    quarter = len(codes) // 4 if width <= 3 * VECTOR else 0
    c0, c1, c2, c3 = codes, codes[quarter:], codes[2 * quarter :], codes[3 * quarter :]
    step = quarter * width
    r0, r1, r2, r3 = rows, rows[step:], rows[2 * step :], rows[3 * step :]
    one, two, three = np.uint64(VECTOR), np.uint64(2 * VECTOR), np.uint64(3 * VECTOR)
    if width == VECTOR:
        for i in range(quarter):
            place = np.uint64(i) * one
            _add_vector(sums, np.uint64(c0[i]) * one, r0, place)
            _add_vector(sums, np.uint64(c1[i]) * one, r1, place)
            _add_vector(sums, np.uint64(c2[i]) * one, r2, place)
            _add_vector(sums, np.uint64(c3[i]) * one, r3, place)
    elif width == 2 * VECTOR:
        for i in range(quarter):
            place = np.uint64(i) * two
            _add_two_vectors(sums, np.uint64(c0[i]) * two, r0, place)
            _add_two_vectors(sums, np.uint64(c1[i]) * two, r1, place)
            _add_two_vectors(sums, np.uint64(c2[i]) * two, r2, place)
            _add_two_vectors(sums, np.uint64(c3[i]) * two, r3, place)
    elif width == 3 * VECTOR:
        for i in range(quarter):
            place = np.uint64(i) * three
            _add_three_vectors(sums, np.uint64(c0[i]) * three, r0, place)
            _add_three_vectors(sums, np.uint64(c1[i]) * three, r1, place)
            _add_three_vectors(sums, np.uint64(c2[i]) * three, r2, place)
            _add_three_vectors(sums, np.uint64(c3[i]) * three, r3, place)
    for i in range(4 * quarter, len(codes)):
        add_row(sums, np.int64(codes[i]) * width, rows, i * width, width)


@inner("void(uint8[::1], uint16[::1], int64[::1], int64, int64[::1])")
def add_positive(codes, classes, positive, width, sums):  # type: ignore[no-untyped-def]
    """Add each sample's positive gradient to its code's sum for its output."""
    for i in range(len(codes)):
        at = np.uint64(codes[i]) * np.uint64(width) + np.uint64(classes[i])
        sums[at] += positive[i]
