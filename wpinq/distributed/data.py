"""Data sets as other processes are told of them: public facts, how to open files, and two keys; no secret."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from wpinq.core.plan.dataset import DataSet
from wpinq.core.records.reader import HeldReader, Reader
from wpinq.core.records.schema import Schema
from wpinq.distributed.values import Json, UntoldError, told, untold
from wpinq.errors import InternalError, PlanError
from wpinq.sources.opening import reopened
from wpinq.sources.recovered import Recovered

if TYPE_CHECKING:
    import polars as pl

    from wpinq.core.ledger import Ledger


@dataclass(frozen=True, eq=False, slots=True)
class Lent(DataSet):
    """A data set in a process without the secret, with the keys that identify and sample its records.

    Attributes:
        keys: They.
        of: Tells the ledger of the first process from all others.
    """

    keys: tuple[bytes, bytes] = field(default=(b"", b""), repr=False)
    of: str = ""

    @property
    def book(self) -> str:
        """Tells the ledger of the first process from all others."""
        return self.of

    @property
    def identity_key(self) -> bytes:
        """The key of the identities of its records."""
        return self.keys[0]

    @property
    def sampling_key(self) -> bytes:
        """The key of the sample that bounds each user's records."""
        return self.keys[1]


class NoLedger:
    """Stands for a ledger where there is none, so that nothing can be charged or drawn."""

    def __getattr__(self, name: str) -> NoReturn:
        raise InternalError("another process asked for the ledger, which it has not; please report this.")


@dataclass(frozen=True, slots=True)
class SentReader(HeldReader):
    """The records that the first process reads and sends: of those this one knows the columns."""

    schema: Schema
    name: str
    way: tuple[object, ...]

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """They are sent with each task."""
        raise InternalError(f"{self.name}: was not sent to the process that needs it; please report this.")


def travels(data: DataSet) -> bool:
    """Whether other processes read a data set themselves: files, whose state all can compare."""
    return data.opened is not None and not data.live


def data_told(data: DataSet) -> Json:
    """A data set as JSON.

    Raises:
        PlanError: Its records come epoch by epoch.
    """
    if data.live:
        raise PlanError(f"{data.name}: comes epoch by epoch, which this process alone follows.")
    reader = data.reader
    kept = None
    if isinstance(reader, Recovered):
        kept = {"place": str(reader.place.absolute()), "key": reader.key.hex(), "parts": reader.parts}
    way = (data.reader.schema, data.reader.name, data.reader.way)
    return {
        "opened": data.opened if travels(data) else None, "version of files": reader.version(), "kept": kept,
        "read": told(way, _untold), "name": data.name, "version": data.version, "unit": told(data.unit, _untold),
        "reading": data.reading, "before": list(data.before), "book": data.book,
        "keys": [data.identity_key.hex(), data.sampling_key.hex()],
    }  # fmt: skip


def data_untold(given: Mapping[str, Json], ledger: Ledger | None = None) -> Lent:
    """The data set that was told.

    Args:
        given: See `data_told`.
        ledger: Where a script charges what it measures here, for nothing; by default nothing can be charged.

    Raises:
        SourceError: Its files are not as they were.
    """
    schema, name, way = untold(given["read"], _nothing)
    reader: Reader = SentReader(schema, name, way)
    if given["opened"] is not None:
        reader = reopened(given["opened"], given["version of files"])
    if given["kept"] is not None:
        kept = given["kept"]
        reader = Recovered(reader, Path(kept["place"]), bytes.fromhex(kept["key"]), kept["parts"])
    identity, sampling = (bytes.fromhex(key) for key in given["keys"])
    return Lent(
        reader, cast("Ledger", ledger or NoLedger()), given["name"], given["version"], untold(given["unit"], _nothing),
        lasting=False, reading=given["reading"], before=tuple(given["before"]), keys=(identity, sampling),
        of=given["book"],
    )  # fmt: skip


def opened(told: Mapping[str, Json]) -> Reader:
    """The records of a data set that a process was told."""
    return data_untold(told).reader


def _untold(value: object) -> Any:
    raise UntoldError


def _nothing(given: object) -> NoReturn:
    raise InternalError("a data set holds what none can hold; please report this.")
