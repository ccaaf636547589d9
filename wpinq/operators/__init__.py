"""The transformations of wPINQ and PINQ, one in each file: method, stability, definition and columnar kernel.

Adding one is a new file here, a line in `collection.py` and in `README.md`, and a line in each of three tests that try
every operator; `docs/contributing.md` says how. Everything else (engines, costs, `explain`) follows from the file.

Files without a method of collections: `contribution/` (contribution bounding and weights of a source), and `align`,
`dither`, `keys`, `pairs` and `parallel`, which several operators use.
"""

from wpinq.operators.concat import concat
from wpinq.operators.distinct import distinct
from wpinq.operators.filter import filter
from wpinq.operators.flat_map import flat_map
from wpinq.operators.group_by import group_by
from wpinq.operators.intersect import intersect
from wpinq.operators.join import join
from wpinq.operators.join_rows import join_rows
from wpinq.operators.map import map
from wpinq.operators.partition import partition
from wpinq.operators.semijoin import antijoin, limit, semijoin
from wpinq.operators.shave import shave
from wpinq.operators.subtract import subtract
from wpinq.operators.union import union
from wpinq.operators.window import window

__all__ = [
    "antijoin",
    "concat",
    "distinct",
    "filter",
    "flat_map",
    "group_by",
    "intersect",
    "join",
    "join_rows",
    "limit",
    "map",
    "partition",
    "semijoin",
    "shave",
    "subtract",
    "union",
    "window",
]
