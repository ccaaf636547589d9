"""Polars frames as a place to begin: `frame.wpinq.protect(budget=1)`, after `import wpinq.tools.polars`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.protection import protect

if TYPE_CHECKING:
    from wpinq.collection import Collection


@pl.api.register_dataframe_namespace("wpinq")
@pl.api.register_lazyframe_namespace("wpinq")
class PolarsFrame:
    """What wpinq adds to each data frame and lazy frame, as `frame.wpinq`.

    Args:
        frame: The frame.
    """

    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        self._frame = frame

    def protect(self, *budget: Any, **options: Any) -> Collection:
        """Protect the frame's rows: `wpinq.protect(frame, ...)`, with the same arguments and errors.

        A lazy frame is computed anew for each run, and before each charge; rows other than those that were first
        charged under its version ("records", unless `version=` names it) are refused (privacy rule 2).

        >>> import polars as pl
        >>> import wpinq.tools.polars
        >>> visits = pl.LazyFrame({"user": ["ann", "bob"], "page": ["home", "home"]})
        >>> visits.wpinq.protect(budget=1)
        <protected collection (user: text, page: text) by protect(records)>
        """
        return protect(self._frame, *budget, **options)
