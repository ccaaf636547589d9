"""Data sets as other processes are told of them: public facts, how to open files, and two keys; no secret."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from wpinq.core.plan.dataset import DataSet
from wpinq.core.records.reader import HeldReader, Reader
from wpinq.core.records.schema import Schema
from wpinq.distributed.values import Json, UnwritableError, from_json, to_json
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


def data_to_json(data: DataSet) -> Json:
    """A data set as JSON.

    Raises:
        PlanError: Its records come epoch by epoch.
    """
    if data.live:
        raise PlanError(f"{data.name}: comes epoch by epoch, which this process alone follows.")
    reader = data.reader
    parts = None
    if isinstance(reader, Recovered):
        parts = {"place": str(reader.folder.absolute()), "key": reader.key.hex(), "parts": reader.parts}
    way = (data.reader.schema, data.reader.name, data.reader.way)
    return {
        "opened": data.opened if travels(data) else None, "version of files": reader.version(), "kept": parts,
        "read": to_json(way, _refuse), "name": data.name, "version": data.version, "unit": to_json(data.unit, _refuse),
        "reading": data.reading, "before": list(data.before), "book": data.book,
        "keys": [data.identity_key.hex(), data.sampling_key.hex()],
    }  # fmt: skip


def data_from_json(message: Mapping[str, Json], ledger: Ledger | None = None) -> Lent:
    """The data set that was told.

    Args:
        message: See `data_to_json`.
        ledger: Where a script charges what it measures here, for nothing; by default nothing can be charged.

    Raises:
        SourceError: Its files are not as they were.
    """
    schema, name, way = from_json(message["read"], _nothing)
    reader: Reader = SentReader(schema, name, way)
    if message["opened"] is not None:
        reader = reopened(message["opened"], message["version of files"])
    if message["kept"] is not None:
        parts = message["kept"]
        reader = Recovered(reader, Path(parts["place"]), bytes.fromhex(parts["key"]), parts["parts"])
    identity, sampling = (bytes.fromhex(key) for key in message["keys"])
    return Lent(
        reader, cast("Ledger", ledger or NoLedger()), message["name"], message["version"],
        from_json(message["unit"], _nothing),
        lasting=False, reading=message["reading"], before=tuple(message["before"]), keys=(identity, sampling),
        of=message["book"],
    )  # fmt: skip


def opened(message: Mapping[str, Json]) -> Reader:
    """The records of a data set that a process was told."""
    return data_from_json(message).reader


def _refuse(value: object) -> Any:
    raise UnwritableError


def _nothing(value: object) -> NoReturn:
    raise InternalError("a data set holds what none can hold; please report this.")
