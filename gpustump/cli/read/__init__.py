"""From data files to tables of named columns."""
