"""From data files to what a model takes: read the table, choose the target, encode the columns."""
