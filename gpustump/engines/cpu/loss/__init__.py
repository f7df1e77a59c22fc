"""The samples of a run: losses, scores, the integers of a round, the regions of a step."""
