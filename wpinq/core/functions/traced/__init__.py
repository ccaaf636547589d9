"""Traced functions: Python functions without branches and loops, as column expressions."""
