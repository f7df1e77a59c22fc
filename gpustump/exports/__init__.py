"""A model in other languages: ONNX, C and SQL, with the scores of the model itself.

    tables         the columns that a model reads, and what each value adds, in whole numbers
    header_lines   the lines at the top of every export
    onnx_graph     a graph for any ONNX runtime
    onnx_nodes     how such a graph is put together, node by node
    c_header       one header of C99
    c_functions    its functions, before a model is filled in
    c_text         names and text as C has them
    sql_select     one SELECT
    sql_dialects   where the databases' SQL differs
    sql_text       CASE expressions and sums that stay shallow

Votes are whole multiples of 2**-36. An export adds them up as integers, so a score is the same
number everywhere, and so is the label. Probabilities need an exponential, which differs in the last
bits from library to library.

Exports read the columns that the user has, not the features that the model makes of them: text
stays text. See docs/exports.md.
"""

from gpustump.exports.c_header import to_c
from gpustump.exports.onnx_graph import to_onnx
from gpustump.exports.sql_select import to_sql

__all__ = ["to_c", "to_onnx", "to_sql"]
