"""The code of Python functions: fingerprints, and copies with all that they captured."""
