"""Test a dataflow without noise: exact answers on records that are given by hand, and a search for broken stability.

Nothing here reads a protected source: the caller gives the records.

`README.md` says what each file knows.
"""

from wpinq.testing.evaluation import distance, evaluate, protected
from wpinq.testing.made_up import made_up
from wpinq.testing.neighbours import Neighbours, inputs, neighbours
from wpinq.testing.stability import check_stability

__all__ = ["Neighbours", "check_stability", "distance", "evaluate", "inputs", "made_up", "neighbours", "protected"]
