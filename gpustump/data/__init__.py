"""What the caller gave, checked before anything is computed with it.

    input_arrays     anything as an array, and one number for each row of a table
    tables           X: a two-dimensional table of real numbers
    labels           labels of any kind, and the number of each one's class
    sign_labels      labels -1 and +1
    sample_weights   finite weights that are not negative, and the rows that have one
    class_weights    weights of classes, which multiply those of their samples
    parameters       single parameters: counts, real numbers, sizes in bytes, choices
    readable         sizes and names as people read them
    callers          the line of the caller, to which a warning points

An error names the argument, what was found in it and what is wanted. Arrays stay in their own
library and on their own device. Nothing here knows what the data is used for.
"""
