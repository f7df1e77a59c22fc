"""A table as kernels read it: sorted whole, or as codes of bins."""
