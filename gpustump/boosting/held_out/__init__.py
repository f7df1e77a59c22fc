"""Scores and losses of held-out samples, the same on every device."""
