"""The search for the best cut, in sums over bins, parts of bins and samples."""
