"""Test a dataflow without noise: exact answers on records that are given by hand, and a search for broken stability.

given        collections that can be evaluated by hand, and the reference engine on them
neighbours   random inputs, and inputs that differ by one privacy unit; needs hypothesis
stability    whether a dataflow moves no further than it states; needs hypothesis

Nothing here reads a protected source: whoever evaluates a plan gives the records.
"""

from wpinq.testing.evaluation import distance, evaluate, protected
from wpinq.testing.neighbours import Neighbours, inputs, neighbours
from wpinq.testing.stability import check_stability

__all__ = ["Neighbours", "check_stability", "distance", "evaluate", "inputs", "neighbours", "protected"]
