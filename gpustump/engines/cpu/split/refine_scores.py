"""`refine`, compiled for the scores of real and Newton votes."""

from __future__ import annotations

from gpustump.engines.cpu.split.compiled_refine import compiled

refine = compiled("float64")
