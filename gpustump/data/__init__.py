"""What the caller gave, checked before anything is computed with it.

    input_arrays     anything as an array, and one number for each row of a table
    tables           X: a two-dimensional table of real numbers
    frames           frames of pandas, polars, pyarrow and others as columns
    columns          the columns of a table, whether from a frame, a file or an array
    labels           labels of any kind with the number of each one's class, -1 and +1, targets
    weights          weights of samples, and weights of classes, which multiply them
    parameters       single parameters: counts, sizes, choices, constraints, pairs of features
    fingerprint      tells whether two tables, with labels and weights, are the same
    collector        Python's garbage collector, paused while millions of objects are made
    readable         text for people, and the line of the caller, to which a warning points

An error names the argument, what was found in it and what is wanted. Arrays stay in their own
library and on their own device. Nothing here depends on what the data is used for.
"""
