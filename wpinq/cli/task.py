"""What the processes of a cluster must know to compute their shares, and how they rebuild the dataflow from it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from wpinq.dataset import DataSet
from wpinq.errors import PlanError, SourceError

if TYPE_CHECKING:
    from wpinq.measurement import Measurement


@dataclass(frozen=True)
class Task:
    """What a process must know to compute its share.

    Attributes:
        script: The script.
        source: The input.
        columns: Names and types of columns, as they were written.
        header: Whether the first line of text names the columns.
        name: The name of the data set.
        version: The version of its data.
        declared: Whether that was declared; otherwise the files must be the same ones.
        keys: Keys of identities and of samples, in hexadecimal digits.
    """

    script: str
    source: str
    columns: str | None
    header: bool
    name: str
    version: str
    declared: bool
    keys: tuple[str, str] = field(repr=False)


@dataclass(frozen=True, eq=False, slots=True)
class Lent(DataSet):
    """A data set in a process that has no secret: with the keys that were lent to it."""

    keys: tuple[bytes, bytes] = field(default=(b"", b""), repr=False)

    @property
    def identity_key(self) -> bytes:
        """The key of the identities of its records."""
        return self.keys[0]

    @property
    def sampling_key(self) -> bytes:
        """The key of the sample that bounds each user's records."""
        return self.keys[1]


def task(measurements: Mapping[str, Measurement], script: Path, source: str, columns: str | None, header: bool) -> Task:
    """What to tell the other processes.

    Raises:
        PlanError: The dataflow reads more than its input, or what it measures cannot be computed by all alike.
    """
    from wpinq.plan import sources
    from wpinq.windowed import WindowedMeasurement

    homes = {data for one in measurements.values() for data in sources(one.node)}
    if len(homes) != 1:
        raise PlanError("--processes: the dataflow reads other sources than INPUT; run it in one process.")
    if any(isinstance(one, WindowedMeasurement) for one in measurements.values()):
        raise PlanError("--processes: windows are measured one by one; run them in one process.")
    (data,) = homes
    keys = (data.identity_key.hex(), data.sampling_key.hex())
    place = str(Path(source).absolute())
    return Task(str(script.resolve()), place, columns, header, data.name, data.version, data.declared, keys)


def write_task(told: Task, path: Path) -> None:
    """Write what the processes on other machines must know, for its owner alone.

    Raises:
        SourceError: It cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123
            os.fchmod(descriptor, 0o600)
            file.write(json.dumps(asdict(told)))
    except OSError as error:
        raise SourceError(f"--keys {path}: {error.strerror}; give a place that can be written.") from None


def read_task(text: str) -> Task:
    """Read what `asdict` and JSON made of a task.

    Raises:
        SourceError: It is something else.
    """
    try:
        content = json.loads(text)
        return Task(**{**content, "keys": tuple(content["keys"])})
    except (ValueError, TypeError, KeyError):
        raise SourceError("the file of a cluster's keys is damaged; write it again with process 0.") from None


def rebuilt(told: Task) -> list[Measurement]:
    """The measurements of the script over a data set without a ledger; nobody is charged, and none can be observed."""
    from wpinq.cli.columns import parse_columns
    from wpinq.cli.dataflow import LIMITLESS, load
    from wpinq.collection import Collection
    from wpinq.ledger import Ledger
    from wpinq.plan import Source
    from wpinq.sources import open_source
    from wpinq.unit import Unit

    reader = open_source(told.source, columns=parse_columns(told.columns), header=told.header)
    if not told.declared and reader.version() != told.version:
        raise SourceError(f"{told.source}: is not the same for all processes; give each the same files.")
    book = Ledger.open(None, name=told.name, unit=Unit().text, budget=Fraction(LIMITLESS))
    identity, sampling = (bytes.fromhex(key) for key in told.keys)
    data = Lent(reader, book, told.name, told.version, Unit(), told.declared, keys=(identity, sampling))
    return list(load(told.script)(Collection(Source(data))).values())
