"""One file for each command; its `run` does what the options say."""
