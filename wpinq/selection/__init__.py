"""Bins that nobody named: which of them may be published, and under what names.

publish  the bins that there are
spread   how far one unit can move all bins, and how far one
naming   the names of bins that were chosen by identity
table    published bins as a table
select   bins that pass optimal partition selection, without their weights
"""

from wpinq.selection.publish import moves, names_of, present, private_threshold, probability
from wpinq.selection.select import Selection, select
from wpinq.selection.spread import Spread, spreads
from wpinq.selection.table import Release, by_name, ordered

__all__ = [
    "Release", "Selection", "Spread", "by_name", "moves", "names_of", "ordered", "present", "private_threshold",
    "probability", "select", "spreads",
]  # fmt: skip
