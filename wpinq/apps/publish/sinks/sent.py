"""Places that the answers of streams go to, for periods: a row for each number, as a window of a stream has them."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wpinq.apps.publish.evidence.edition import FACTS, restored
from wpinq.apps.publish.file.periods import Period
from wpinq.apps.publish.sinks.place import Edition
from wpinq.core import LEVEL, PURE
from wpinq.errors import SourceError
from wpinq.streaming.sinks import Release, open_sink, row_key


class Sent:
    """See `Place`. A row that arrived twice is told by its key, which names the release, the period and the bin.

    Args:
        to: As `open_sink` reads it: `json:FILE`, `parquet:DIR`, `http://...`, `postgresql://...?table=NAME` or
            `kafka://HOST:PORT/TOPIC`.
        home: Where relative paths start.

    Raises:
        SourceError: It is none of these, or its client is not installed.
    """

    def __init__(self, to: str, home: Path) -> None:
        scheme, _, rest = to.partition(":")
        try:
            self._sink = open_sink(f"{scheme}:{home / rest}" if rest and scheme in ("json", "parquet") else to)
        except SourceError as error:  # which speaks of the option of commands
            raise SourceError(str(error).replace("--to ", "[[sink]] to = ", 1)) from None
        self.name = f"to {self._sink.name}"

    def check(self, period: Period, *, fresh: bool) -> None:
        """Nothing: it is not reached for before there is something to deliver."""

    def deliver(self, edition: Edition) -> None:
        """See `Place.deliver`; that nothing else is there for the period cannot be asked."""
        start = edition.period.start.replace(tzinfo=dt.UTC)
        self._sink.deliver(Release(edition.release, int(start.timestamp()), list(rows(edition))))

    def differs(self, edition: Edition) -> str | None:
        """Never: what is there cannot be asked."""
        return None


def rows(edition: Edition) -> Iterator[dict[str, Any]]:
    """One for each number that was released: the columns of `Release`, with the period as its window.

    The epoch is the seconds from 1970 to the start of the period, on the clocks of its zone.
    """
    period, facts = edition.period, json.loads(edition.files[FACTS])
    span = {"window_start": period.start.isoformat(), "window_end": period.end.isoformat()}
    epoch = int(period.start.replace(tzinfo=dt.UTC).timestamp())
    for table, (cells, ends) in restored(edition.files, ends=True).items():
        about = json.loads(edition.files[f"{table}.json"])
        cost, beside = about["cost"], "; ".join(about.get("beside noise", ()))
        named = {
            "unit": facts["unit"], "protects": facts["protects"], "beside_noise": beside, "level": float(LEVEL),
            "epsilon": None if "rho" in cost else float(cost["epsilon"]), "stream": edition.release,
            **({} if facts["budget"]["accounting"] == PURE else {"rho": float(cost.get("rho", 0))}),
        }  # fmt: skip
        bins = cells.drop(list(ends)).rows()
        for column, (low, high) in ends.items():
            measurement = table if len(ends) == 1 else f"{table}.{column}"
            for bin_, value, least, most in zip(bins, cells[column], low, high, strict=True):
                item = bin_[0] if len(bin_) == 1 else list(bin_)
                yield {
                    "epoch": epoch, "key": row_key(edition.release, measurement, period.name, item),
                    "measurement": measurement, "bin": item, "value": value, **span, **named,
                    "half_width": None if value is None else float(max(value - least, most - value)),
                }  # fmt: skip
