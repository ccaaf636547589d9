"""The transformations of wPINQ and PINQ, one a file: its method, its stability, its definition, its column kernel.

Adding one is a new file here, one line in `collection.py` and one test. Everything else (engines, costs, `explain`,
the contract tests) follows from what the file says.
"""

from wpinq.operators.concat import concat
from wpinq.operators.distinct import distinct
from wpinq.operators.filter import filter
from wpinq.operators.intersect import intersect
from wpinq.operators.join import join
from wpinq.operators.map import map
from wpinq.operators.shave import shave
from wpinq.operators.subtract import subtract
from wpinq.operators.union import union

__all__ = ["concat", "distinct", "filter", "intersect", "join", "map", "shave", "subtract", "union"]
