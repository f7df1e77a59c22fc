"""Benchmarks of gpustump, run with `python -m bench`.

`contenders` says who takes part, `data` and `real_tables` on what. `timing` has contenders take
turns, each in a `worker` process of its own; `accuracy` fits them fold by fold; `cluster` has them
lead Dask workers. A run leaves one file of `records`, with every single timing and score, from
which `tables` computes everything that is shown.
"""
