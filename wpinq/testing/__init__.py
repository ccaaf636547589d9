"""Test a dataflow without noise: exact answers on records that are given by hand, and searches for what breaks it.

Nothing here reads a protected source: the caller gives the records.
"""

from wpinq.testing.auditing import Audit, audit, recheck
from wpinq.testing.case import Case
from wpinq.testing.evaluation import distance, evaluate, made_up, protected
from wpinq.testing.neighbours import Neighbours, check_stability, inputs, neighbours

__all__ = [
    "Audit", "Case", "Neighbours", "audit", "check_stability", "distance", "evaluate", "inputs", "made_up",
    "neighbours", "protected", "recheck",
]  # fmt: skip
