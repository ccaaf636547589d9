"""Engines run plans. They see five shapes, not operators; they know no budgets and draw no random numbers.

reference  dictionaries and fractions: the oracle of every test
flow       columns on bytewax, over a finite source
local      the same in a plain loop, over small files
live       the same, over a live source, epoch by epoch
cluster    the same, on several processes
reading    a source in batches, ahead of the flow
sharing    what several plans have in common
linear     stateless steps
shards, placement, exchange  which worker gets which records, and how they are sent
edges      both ends of a dataflow
"""
