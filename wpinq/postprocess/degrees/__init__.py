"""Degrees: the CDF and the frequency sequence reconciled, and lists and graphs drawn from the result."""
