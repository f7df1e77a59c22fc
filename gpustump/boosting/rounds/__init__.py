"""Rounds, runs and trainings: one run, several classes, bags."""
