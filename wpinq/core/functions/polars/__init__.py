"""Polars expressions as functions of one record."""
