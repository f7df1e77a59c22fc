"""Benchmarks of gpustump, run with `python -m bench`.

What each costs and how that grows, beside its peers and beside what the machine's memory allows.
The way of a figure: a `plan` of `data` and `contenders` -> `play`: each contender in a `worker`
process of its own, in turns (`timing`) -> `records`, the JSON of a run -> `summary` -> `tables`
and `figures` -> `report`. All that is shown is computed from JSON that holds every single timing.
"""
