"""Synthetic data with fitted degrees."""
