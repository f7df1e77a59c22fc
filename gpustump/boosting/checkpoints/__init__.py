"""The rounds so far in a file, from which a fit goes on."""
