"""The engine for CUDA devices: the same integers as the reference, at the cost of histograms.

    device        what the engine needs of a device, and how CuPy provides it
    layout        how data lie in the device's memory: groups of codes, records of the kernels
    device_memory what stays on the device, and what is streamed or sorted again when needed
    source_table  the caller's table, on the device or copied to it some columns at a time
    sorting       a feature sorted, and cut into bins
    codes         each value as a byte: on the device, or streamed to it
    orders        the sorted orders of the features, as many as there is room for
    table         all of these together: a table prepared for the rounds
    sweep         a round's pass over the samples: scores, weights, histograms
    search        from histograms to the best cut, and the result that the host reads
    state         a run of boosting: sweep and search, queued together once a round
    engine        what `engines.route` knows of all this
    prediction    the sum of step functions, a thread for each row

Kernels are CUDA C++ and stand beside the stage that launches them, in files of the same name; all
include `common.cuh`. Nothing here imports CuPy before an array on a GPU is found or a device is
asked for.
"""
