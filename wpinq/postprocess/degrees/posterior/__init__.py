"""The posterior over all degree distributions, given released numbers."""
