"""Equal rows of a table are counted in its database, lot by lot, so that fewer of them have to come here.

What comes is each different row of a lot with its number as the weight. Engines add weights up exactly and in any
order, so how rows are cut into lots and counted moves no histogram: it changes the time alone, and so do the rules of
this file: no price, answer or refusal follows from them. They hold for plans over records. Of people a sample is drawn
by all columns of each record, so that records which differ in a column that no plan reads are not one.

PostgreSQL counts nothing: each pass over it compares a digest of all columns (`DataSet.batches`), so that rows could be
counted by all of them alone, and none be left out. The digest allows that, which gains where whole records repeat.

*When are two rows equal there that are not here?* Where a column compares its values by something else than what is
read of them, such as a collation that takes A for a. So groups are made of what is read, in types whose values are
equal where they are the same (`FINE` in `duckdb.py`, `selected` in `sqlite.py`), and texts byte by byte. That groups
are finer than needed does no harm.

*What fails?* A lot that cannot be counted, for lack of memory perhaps, is read. A lot leaves when all of it was
counted, so that no row of it comes twice. Nothing that is computed of a value is counted: a view, a query and a virtual
table are read as they are, with all of their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import polars as pl

from wpinq.core.records.batch import WEIGHT

MOST = 0.5
"""Where more than so many of a lot's rows are different, to count them takes longer than to read them."""
PAUSE, LONGEST = 8, 64
"""Lots that are read then before it is tried again, twice as many each time, and the most."""

Lot = TypeVar("Lot")


def counted(
    lots: Iterable[Lot],
    count: Callable[[Lot], pl.DataFrame | None],
    read: Callable[[Lot], Iterable[pl.DataFrame]],
    *,
    apart: bool,
) -> Iterator[pl.DataFrame]:
    """The rows of some lots, counted where that is quicker.

    Args:
        lots: The lots, whose rows together are those of the table.
        count: Gives the different rows of a lot with their numbers as `WEIGHT`; None where it fails.
        read: Gives the rows of a lot.
        apart: Whether rows are only read.
    """
    left, pause = 0, PAUSE
    for lot in lots:
        frame = None if left or apart else count(lot)
        if frame is None:
            left = max(left - 1, 0)
            yield from read(lot)
        elif frame.height:
            if frame.height > MOST * int(frame[WEIGHT].sum()):
                left, pause = pause, min(2 * pause, LONGEST)
            yield frame
