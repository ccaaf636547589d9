"""Engines run plans. They see five shapes and never operators; they know nothing of budgets and draw nothing at random.

`reference` computes with dictionaries and fractions and is the oracle of every test; `flow` runs columns on bytewax.
"""
