"""Synthetic bipartite graphs: numbers in, pairs out."""
