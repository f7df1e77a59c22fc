"""Sums of step functions: predictions, running scores, and sums over held-out samples."""
