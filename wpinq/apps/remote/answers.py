"""What a server has answered: prices, measurements to observe, and tables, with the faces that Python's own have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from wpinq.apps.remote import wire
from wpinq.apps.remote.cells import bins_sent, table_received
from wpinq.apps.remote.transport import PIECE, Transport, quoted
from wpinq.core import Column, Kind, Schema
from wpinq.errors import PlanError, SourceError
from wpinq.exact import Amount, exact
from wpinq.html import numbers as shown


class RemoteQuote:
    """What a measurement on a server would cost; `str` tells it for people.

    Attributes:
        price: All that the server says of it.
    """

    def __init__(self, price: wire.Priced) -> None:
        self.price = price

    def __repr__(self) -> str:
        cost = ", ".join(f"{name} {amount}" for name, amount in self.price.cost.items() if amount != "0")
        lines = ["free: it was charged before" if self.price.free else f"costs {cost}"]
        for column in self.price.expected:
            half = (
                ""
                if column.half_width is None
                else f", within {column.half_width:g} with probability {self.price.level:g}"
            )
            lines.append(f"  {column.column}: {column.mechanism} noise of scale {column.scale:g}{half}")
        if self.price.threshold is not None:
            lines.append(f"  {shown.of_threshold(self.price.threshold)}")
        for now, after in zip(self.price.now, self.price.after, strict=True):
            capped = f", {after.own} of the own cap {after.cap}" if after.cap is not None else ""
            lines.append(f"  afterwards {after.left} of {now.budget} is left of {now.data!r}{capped}")
        short = "  which is more than is left: it would be refused"
        return "\n".join([*lines, f"  and {self.price.more} more of this kind" if self.price.fits else short])


class RemoteMeasurement:
    """A measurement on a server, observed bin by bin like one of Python's.

    Attributes:
        name: Its name on the server.
        about: What the server says of it.
        scale: The scale of its noise.
    """

    def __init__(self, transport: Transport, about: wire.Described, again: Callable[[], wire.Described] | None) -> None:
        self.name, self.about, self.scale = about.name, about, exact(about.scale, "scale")
        self.rho = exact(about.cost.get("rho", 0), "rho")
        self._schema = Schema(tuple(Column(column.name, Kind(column.type)) for column in about.columns))
        self._transport, self._again = transport, again

    def observe(self, bin: Any) -> int | float:  # noqa: A002
        """The noisy weight of one bin, whether it exists or not.

        Raises:
            BinError: The collection could never hold such a bin.
            PlanError: It would be another bin on its way.
            SourceError: The server cannot be reached.
        """
        value: int | float = self.observe_many([bin])[0].item()
        return value

    def observe_many(self, bins: Any) -> np.ndarray:
        """The noisy weights of many bins, in their order.

        Raises:
            BinError, PlanError, SourceError: See `observe`.
        """
        if isinstance(bins, range) and bins.step == 1 and len(bins):
            ranges = [bins[at : at + PIECE] for at in range(0, len(bins), PIECE)]
            requests = [wire.Observe(range=wire.Range(first=part[0], last=part[-1])) for part in ranges]
        else:
            listed = bins_sent(bins, self._schema)
            requests = [wire.Observe(bins=listed[at : at + PIECE]) for at in range(0, len(listed), PIECE)]
        return np.array([value for request in requests for value in self._ask(request).values])

    def interval(self, level: Amount = 0.95) -> float:
        """Half the width of the interval around an answer that holds the true weight with this probability."""
        return self._ask(wire.Observe(bins=[], level=str(exact(level, "interval(level=...)")))).half_width

    def _ask(self, request: wire.Observe) -> wire.Observed:
        path = f"/api/measurements/{quoted(self.name)}/observe"
        try:
            return self._transport.ask(path, wire.Observed, request)
        except SourceError:
            if self._again is None:
                raise
            self._again()  # a server that was started anew does not know it, and charges nothing again
            return self._transport.ask(path, wire.Observed, request)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{column.name}: {column.type}" for column in self.about.columns)
        return f"<measurement {self.name!r} ({kinds}), scale {self.about.scale:g}, at {self._transport.url}>"

    __iter__ = None
    __contains__ = None


class RemoteAnswer:
    """The answer to a query, as a table.

    Attributes:
        columns: The names of its columns.
        rows: Its rows.
        intervals: For each cell the interval around it; None where it is no noisy number.
        about: What describes it.
    """

    def __init__(self, answered: wire.Answered) -> None:
        self.columns = tuple(answered.columns or ())
        self._cells = table_received(self.columns, answered.types or (), answered.rows or ())
        self.rows = tuple(self._cells.rows())
        self.intervals = tuple(tuple(row) for row in answered.intervals or ())
        self.about = answered.about or {}

    @property
    def frame(self) -> pl.DataFrame:
        """The rows as a Polars frame, each noisy number with the ends of its interval, `low` and `high`."""
        return shown.framed(self._cells, self._ends)

    @property
    def value(self) -> Any:
        """The number, where there is one.

        Raises:
            PlanError: There are several; use `frame`.
        """
        if len(self.rows) != 1 or len(self.columns) != 1:
            raise PlanError("an answer by groups, or of several numbers, has many values; use frame.")
        return self.rows[0][0]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)

    def interval(self) -> tuple[float, float]:
        """The interval that holds, but for noise, the one true number with the probability that `about` says.

        Raises:
            PlanError: There are several numbers, or it follows from several and has none.
        """
        self.value  # noqa: B018  refuses several
        ((ends,),) = self.intervals
        if ends is None:
            raise PlanError("it follows from several noisy numbers, and has no interval; ask for each of them.")
        return ends

    @property
    def _ends(self) -> dict[str, tuple[pl.Series, pl.Series]]:
        """For each column of noisy numbers, where the interval around each of them begins and ends."""
        ends = {}
        for index, name in enumerate(self.columns):
            cells = [row[index] for row in self.intervals]
            if any(cells):
                low, high = (
                    [None if interval is None else float(interval[end]) for interval in cells] for end in (0, 1)
                )
                ends[name] = (pl.Series(low, dtype=pl.Float64), pl.Series(high, dtype=pl.Float64))
        return ends

    def __repr__(self) -> str:
        return "\n".join([f"<{shown.heading(self._described)}>", *shown.lines(self._cells, self._ends),
                          *shown.footnotes(self._described)])  # fmt: skip

    def _repr_html_(self) -> str:
        return shown.html(self._described, self._cells, self._ends)

    @property
    def _described(self) -> dict[str, Any]:
        """What describes it; of a published window, which period it is."""
        window = {"query": self.about.get("period", "an answer"), "data set": "", "threshold": None, "beside noise": ()}
        return {**window, "intervals are of": None, **self.about}
