"""What the caller gave, checked before anything is computed with it.

    input_arrays     anything as an array, and one number for each row of a table
    tables           X: a two-dimensional table of real numbers
    frames           frames of pandas, polars, pyarrow and others as columns
    columns          the columns of a table, whether from a frame, a file or an array
    temporal_text    dates, times and durations as text
    labels           labels of any kind, and the number of each one's class
    sign_labels      labels -1 and +1
    sample_weights   finite weights that are not negative, and the rows that have one
    class_weights    weights of classes, which multiply those of their samples
    monotone         monotone constraints on features
    parameters       single parameters: counts, real numbers, sizes in bytes, choices
    fingerprint      tells whether two tables, with labels and weights, are the same
    readable         sizes and names as people read them
    callers          the line of the caller, to which a warning points

An error names the argument, what was found in it and what is wanted. Arrays stay in their own
library and on their own device. Nothing here depends on what the data is used for.
"""
