"""One file for each command; its `run` does what the options say.

`explain_rows` is a part of `explain`: what it does with --row.
"""
