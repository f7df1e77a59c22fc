"""Compiling: kernels with declared types, kept on disk; and what they and the machine need."""
