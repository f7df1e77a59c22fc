"""Sums of integers over the bins of all features, exact or estimated."""
