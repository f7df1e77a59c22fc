"""`gpustump train --dask`: the table is in many files, and the workers of a cluster read them.

    files      DATA as files, and these as parts
    parts      a part of a file, read by a worker
    outlines   what workers report about their parts: columns, labels, weights
    table      the whole table: how it is encoded, which rows are held out, scores of its rows
    cluster    a client of the workers: those of a scheduler, or those started here
    processes  workers that are started here, and end with the command
    training   the fit, and the options that are refused with --dask

Only `train` imports this folder, and only if it is asked to: it needs what the extra `dask` brings.
The files are read with the same readers as on one machine, twice: once for the outlines, once for
the fit. (Columns of numbers in Parquet files are read only for the fit.) Labels
and weights of all rows are sent to the leading process, so that the same rows are held out as on
one machine. Features are never sent there.
"""
