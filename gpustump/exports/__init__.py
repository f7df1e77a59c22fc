"""A model in other languages: ONNX, C and SQL, with the scores of the model itself.

    tables   the columns that a model reads, and what each value adds, in whole numbers
    onnx     a graph for any ONNX runtime
    c        one header of C99, made of the parts of model.h
    sql      one SELECT

Votes are whole multiples of 2**-36. An export adds them up as integers, so a score is the same
number everywhere, and so is the label. Probabilities need an exponential, which differs in the last
bits from library to library.

Exports read the columns that the user has, not the features that the model makes of them: text
stays text. See docs/exports.md.
"""

from gpustump.exports.c import to_c
from gpustump.exports.onnx import to_onnx
from gpustump.exports.sql import to_sql

__all__ = ["to_c", "to_onnx", "to_sql"]
