"""Benchmarks of gpustump, run with `python -m bench`: what it costs, where, and how that grows."""
