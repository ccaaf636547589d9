"""What a stream answers at an epoch, and the interface of the places that it goes to.

Only released numbers, public names and costs come here. A row is told from every other one, and a repeated row from
none, by its key: the stream, the measurement, the epoch or window, and the bin.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

from wpinq.html.written import json_text

if TYPE_CHECKING:
    import polars as pl

TEXTS = ("key", "stream", "measurement", "bin", "window_start", "window_end", "unit", "protects", "beside_noise")
NUMBERS = ("value", "half_width", "level", "epsilon")
COLUMNS = {"epoch": "BIGINT", **dict.fromkeys(TEXTS, "TEXT"), **dict.fromkeys(NUMBERS, "DOUBLE PRECISION")}
"""The columns of a table of answers, with their SQL types; the key is unique."""


@dataclass(frozen=True)
class Release:
    """The answers of one epoch of a stream.

    Attributes:
        stream: A code for the stream, the same for as long as it is recovered.
        epoch: The epoch that brought them.
        rows: One for each answer: `COLUMNS` by name; a bin is a value or several, a window's bounds are null elsewhere.
    """

    stream: str
    epoch: int
    rows: Sequence[Mapping[str, Any]]

    @property
    def key(self) -> str:
        """Tells it from other epochs and streams: whoever gets it twice can leave out the second."""
        return f"{self.stream}-{self.epoch}"

    @property
    def columns(self) -> dict[str, str]:
        """`COLUMNS`, and rho where the ledger adds up more than epsilons."""
        return COLUMNS | ({"rho": "DOUBLE PRECISION"} if self.rows and "rho" in self.rows[0] else {})

    def lines(self) -> bytes:
        """One JSON object for each answer, each on a line of its own."""
        return b"".join(json_text(row).encode() + b"\n" for row in self.rows)

    def frame(self) -> pl.DataFrame:
        """The answers as a table; a bin is its JSON text there."""
        import polars as pl

        types = {"BIGINT": pl.Int64, "TEXT": pl.String, "DOUBLE PRECISION": pl.Float64}
        rows = [{**row, "bin": json_text(row["bin"])} for row in self.rows]
        return pl.DataFrame(rows, {name: types[kind] for name, kind in self.columns.items()}, strict=False)


def row_key(stream: str, measurement: str, when: str, item: Any) -> str:
    """The key of an answer: the same whenever the same answer is given again.

    >>> row_key("a", "pages", "epoch 1", "home") == row_key("a", "pages", "epoch 1", "home")
    True
    """
    text = json.dumps([stream, measurement, when, item], default=str)
    return blake2b(text.encode(), digest_size=16).hexdigest()


class Sink(Protocol):
    """A place that the answers of a stream go to.

    Attributes:
        name: What messages call it; without passwords.
    """

    name: str

    def deliver(self, release: Release) -> None:
        """Hand over the answers of an epoch, all of them, and return when they are safe there.

        It may be called again with answers that have arrived already, all or some of them, after a failure or a
        restart; a sink that can leaves out rows whose key it has.

        Raises:
            SourceError: They may not have arrived; they are handed over again.
        """

    def close(self) -> None:
        """Let go of the place."""
