"""Straight Python functions as column expressions."""
