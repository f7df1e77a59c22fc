"""Benchmarks of gpustump, run with `python -m bench`.

What each costs and how that grows, beside its peers and beside what the machine's memory allows.
The way of a figure: `data` -> `contenders`, each in a `worker` process of its own -> `timing`, in
turns -> `records`, the JSON of a run -> `summary` -> `tables` and `figures` -> `report`. Whatever
is shown is computed from a JSON file that holds every single timing.
"""
