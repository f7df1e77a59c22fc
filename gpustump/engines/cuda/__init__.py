"""The fused scan for CUDA devices: the same integers as the reference, at a histogram's cost.

    device        what is asked of a device, and CuPy's way of answering
    layout        how codes lie in memory, side by side
    memory        what stays on the device, and what is streamed or sorted again when needed
    table         the caller's table, on the device or brought over a few columns at a time
    sorting       a feature sorted, and cut into bins
    codes         each value as a byte: on the device, or streamed to it
    orders        the sorted orders of the features, as many as there is room for
    columns       all of that together: a table prepared for the rounds
    sweep         a round's pass over the samples: weights, scores, histograms
    search        from histograms to the best cut, and what of it comes to the host
    distribution  D_t: the two together, queued a round at a time
    prediction    the sum of step functions, a thread to a row

Kernels are CUDA C++ and stand beside the stage that launches them, in files of the same name, all
on `common.cuh`. Nothing here imports CuPy before `engine` finds an array on a GPU or is asked for
one.
"""
