"""Engines run plans. They see five shapes and never operators; they know nothing of budgets and draw nothing at random.

reference  dictionaries and fractions: the oracle of every test
flow       columns on bytewax, over a finite source
local      the same in a plain loop, over small files
live       the same, kept up and given one epoch after another
cluster    the same, on several processes
reading    a source in batches, ahead of the flow
sharing    what several plans have in common
linear     steps that remember nothing
shards, placement, exchange  who gets which records, and how they get there
edges      both ends of a dataflow
failures   what is told of a failure
"""
