"""Dataflows to run from the command line and to learn from: `wpinq run degree_cdf views.csv --budget 0.2`.

A dataflow script defines `dataflow(views)`, which is given the protected collection and returns its measurements by
name. The command line calls it once on a collection without records, to check it, and then on the real one.
"""
