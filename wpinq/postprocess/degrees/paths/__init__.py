"""Shortest paths through the grid of a noisy CDF and a noisy sequence."""
