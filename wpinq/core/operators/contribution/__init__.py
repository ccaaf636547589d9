"""Contribution bounding: how much weight one privacy unit may have in a collection."""
