"""`refine`, compiled for agreements, the scores of discrete votes."""

from __future__ import annotations

from gpustump.engines.cpu.split.compiled_refine import compiled

refine = compiled("int64")
