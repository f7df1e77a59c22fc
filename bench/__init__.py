"""Benchmarks of gpustump, run with `python -m bench`.

They measure what training costs and how that grows, beside other libraries and beside what the
machine's memory allows. `benchmarks` makes plans from `data` and `contenders`; `play` runs each
contender in a `worker` process of its own, in turns; `records` is the JSON of a run; `summary`,
`tables`, `figures` and `report` show it. Everything shown is computed from JSON that holds every
single timing.
"""
