"""What records are read with: the interface of every source, and the base of those that hold their records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

from wpinq.core.records.schema import Schema
from wpinq.errors import EngineError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import polars as pl


class DamagedError(EngineError):
    """What this process had written to read it again is not as it was written; it was removed, and is made anew."""


class Steady(Enum):
    """How to find out whether a source still holds the records that it held when it was opened."""

    FILES = "its files are compared whenever they are read, and `content` tells what they hold"
    MEMORY = "nobody can change it while this process holds it"
    UNKNOWN = "only reading it tells"


class Reader(Protocol):
    """A source of records that can be read as a stream of columns."""

    @property
    def schema(self) -> Schema:
        """All columns with their public kinds."""

    @property
    def name(self) -> str:
        """A default name for the data set: the file's name, or `records`."""

    @property
    def way(self) -> tuple[object, ...]:
        """How records are read, where the columns do not tell: the format, the table; text, numbers and tuples."""

    @property
    def path(self) -> Path | None:
        """The file, or the directory of a pattern, beside which a ledger may lie; None for objects."""

    @property
    def total_bytes(self) -> int | None:
        """The size of the files, for progress; None for objects."""

    @property
    def steady(self) -> Steady:
        """How it is known that it still holds the same records."""

    @property
    def title(self) -> str:
        """What a version of its records is called where nobody names it: what the curator wrote of the source."""

    def version(self) -> str | None:
        """Path, size and modification time of every file; None for objects. A run tells two readers apart by it."""

    def check(self) -> None:
        """Refuse files that are no longer as they were opened.

        Raises:
            ChangedError: One was changed, or is gone.
        """

    def state(self) -> str | None:
        """How the system shows the files now, with all that it sets at each change; None for objects.

        None for files, too, so soon after a change that another one may leave no trace.
        """

    def content(self, key: bytes = b"") -> bytes | None:
        """BLAKE2b-256 over the files' bytes, or under a key of 16 bytes GMAC, which is quicker.

        None where what is read must tell: of objects, and of databases, whose files change while their rows stay.
        """

    def prove(self, share: tuple[int, int] = (0, 1)) -> None:
        """Read what may turn out to be damaged, of all columns, so that it is found before any charge.

        A digest finds no damage. What is compressed as a whole was decompressed for it, and nothing else of lines can
        be damaged.

        Args:
            share: (i, n) proves the i-th of n shares, whose union is everything.

        Raises:
            SourceError: It is damaged; a record that is not as it should be is no damage.
        """

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of exactly these columns, in their canonical Polars types.

        Args:
            columns: Names out of the schema, at least one.
            share: (i, n) reads the i-th of n disjoint shares, whose union is everything.
            progress: Called with the number of bytes read since the last call; never with a number of rows.

        Raises:
            SourceError: A file vanished, changed or is damaged. The message holds nothing of its contents.
        """


class ObjectReader:
    """A reader of an object in memory: it has no path, size, version or content of its own.

    One whose records come with keys of their own has these as `secret`: identities, samples, digests and noise are then
    derived from it instead of the ledger's secret (`DataSet.secret`), so that they are gone when it is destroyed.
    """

    __slots__ = ()

    @property
    def title(self) -> str:
        """Objects have no name of their own."""
        return "records"

    @property
    def way(self) -> tuple[object, ...]:
        """The kind of object."""
        return (type(self).__name__,)

    @property
    def path(self) -> None:
        """There is no file."""

    @property
    def total_bytes(self) -> None:
        """Not known."""

    @property
    def steady(self) -> Steady:
        """Only reading shows whether its records are the same, since it may compute them anew; subclasses may know."""
        return Steady.UNKNOWN

    def version(self) -> None:
        """Objects have none that could be told without reading them."""

    def check(self) -> None:
        """Only reading shows whether it is as it was."""

    def state(self) -> None:
        """There is no file."""

    def content(self, key: bytes = b"") -> None:
        """There is no file."""

    def prove(self, share: tuple[int, int] = (0, 1)) -> None:
        """There is no file."""


class HeldReader(ObjectReader):
    """A reader of records that this process alone holds, in columns that never change."""

    __slots__ = ()

    @property
    def steady(self) -> Steady:
        """They cannot change."""
        return Steady.MEMORY


def passed(*names: str, by: str = "reader") -> tuple[Any, ...]:
    """Members of a class that reads what another reader reads: each is that one's own.

    Args:
        names: The members.
        by: The attribute that holds the other reader.
    """
    return tuple(property(_passed(f"{by}.{name}")) for name in names)


def _passed(path: str) -> Callable[[Any], Any]:
    """A function: since Python 3.14 a dataclass with slots takes no other getter."""
    look_up = attrgetter(path)

    def member(reader: Any) -> Any:
        return look_up(reader)

    return member


def wanted(schema: Schema, columns: Sequence[str], where: str) -> Schema:
    """The asked columns, in the asked order.

    Raises:
        SourceError: One of them is not there, or none is asked for.
    """
    missing = [name for name in columns if name not in schema]
    if missing or not columns:
        raise SourceError(f"{where}: no column {listed(missing)}; there are {listed(schema.names)}.")
    return Schema(tuple(schema[name] for name in columns))


def listed(names: Iterable[str], most: int = 20) -> str:
    """Names for a message, on one line, the first few of them."""
    quoted = [repr(name) for name in names]
    return ", ".join(quoted[:most]) + (f" and {len(quoted) - most} more" if len(quoted) > most else "")
