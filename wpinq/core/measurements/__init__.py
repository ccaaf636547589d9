"""Measurements: queries that are charged first and then answered with noise. See README.md in this folder."""
