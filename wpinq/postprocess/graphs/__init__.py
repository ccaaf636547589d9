"""Synthetic graphs that fit released numbers: a Markov chain over graphs with given degrees, and what it makes."""
