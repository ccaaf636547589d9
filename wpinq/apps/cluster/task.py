"""The task of a cluster: the facts that each process needs to rebuild the dataflow and compute its share."""

from __future__ import annotations

import contextlib
import hmac
import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wpinq.apps.cluster.recover import recovery_key
from wpinq.core.plan.dataset import DataSet
from wpinq.errors import PlanError, SourceError

if TYPE_CHECKING:
    from wpinq.core.measurements.measurement import Measurement


@dataclass(frozen=True)
class Task:
    """The task of a process.

    Attributes:
        script: The script.
        source: The input.
        columns: Names and types of columns, as they were written.
        words: What was said of the form of the input.
        name: The name of the data set.
        version: The version of its data.
        declared: Whether that was declared; otherwise the files must be the same ones.
        reading: How its files are read, where their columns do not tell.
        place: Path, size and time of change of its files, which are the same for all processes.
        ledger: Tells the ledger of the data set from all others.
        recover: Where what is read is kept.
        unit: Whom it protects: the fields of a `Unit`.
        where, derive: Steps before a person's records are bounded, as SQL.
        keys: Keys of identities, of samples and of what is kept, in hexadecimal digits.
    """

    script: str
    source: str
    columns: str | None
    words: dict[str, Any]
    name: str
    version: str
    declared: bool
    reading: str
    place: str | None
    ledger: str
    recover: str | None
    unit: dict[str, Any]
    where: str | None
    derive: dict[str, str]
    keys: tuple[str, str, str] = field(repr=False)

    @property
    def meeting(self) -> bytes:
        """The key that the processes of a run share, for authentication."""
        return hmac.digest(bytes.fromhex("".join(self.keys)), b"meeting", "blake2b")

    def mac(self, *parts: object) -> str:
        """A keyed digest, which reveals nothing without the key."""
        return hmac.new(self.meeting, repr(parts).encode(), "blake2b").hexdigest()[:32]


@dataclass(frozen=True, eq=False, slots=True)
class Lent(DataSet):
    """A data set in a process without the secret, with the keys of the task."""

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


def task(
    data: DataSet, *, script: Path, source: str, columns: str | None, words: dict[str, Any], recover: Path | None,
    where: str | None = None, derive: Mapping[str, str] | None = None, declared: bool = False,
) -> Task:  # fmt: skip
    """The task for the other processes; where the version is declared, their files need not lie in one place."""
    kept = b"" if recover is None else recovery_key(data, script)
    return Task(
        str(script.resolve()), str(Path(source).absolute()), columns, words, data.name, data.version, declared,
        data.reading, data.reader.version(), data.book, None if recover is None else str(recover.absolute()),
        asdict(data.unit), where, dict(derive or {}),
        (data.identity_key.hex(), data.sampling_key.hex(), kept.hex()),
    )  # fmt: skip


def write_task(told: Task, path: Path) -> None:
    """Write what the processes on other machines must know, whole or not at all, for its owner alone.

    Raises:
        SourceError: It cannot be written.
    """
    from wpinq.storage import write

    try:
        write(path, json.dumps(asdict(told)).encode())
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


def rebuilt(told: Task) -> dict[str, Measurement]:
    """The measurements of the script over a data set without a ledger; nothing is charged, and none can be observed.

    Raises:
        SourceError: The input is not that of the first process.
        PlanError: Not all processes could compute it alike.
    """
    from wpinq.apps.scripts.script import LIMITLESS, load
    from wpinq.collection import Collection
    from wpinq.core.ledger import Ledger
    from wpinq.core.ledger.open import Asked
    from wpinq.core.operators.contribution.preprocess import before
    from wpinq.core.operators.contribution.sample import bounded
    from wpinq.core.plan.node import Source
    from wpinq.core.plan.unit import Unit
    from wpinq.sources import open_source
    from wpinq.sources.columns import parse_columns
    from wpinq.sources.recovered import recovered

    reader = open_source(told.source, columns=parse_columns(told.columns), **told.words)
    if not told.declared and reader.version() != told.place:
        raise SourceError(
            f"{told.source}: is not the same for all processes; give each the same files, or name what they hold by "
            "--data-version."
        )
    identity, sampling, kept = (bytes.fromhex(key) for key in told.keys)
    if told.recover is not None:
        reader = recovered(reader, Path(told.recover), kept)
    fields: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in told.unit.items()}
    unit = Unit(**fields)
    book = Ledger.open(None, name=told.name, unit=unit.whom, asked=Asked.of("run", None, rho=LIMITLESS))
    data = Lent(reader, book, told.name, told.version, unit, False, told.reading,
                keys=(identity, sampling), of=told.ledger)  # fmt: skip
    entered = before(reader.schema, unit, told.where, told.derive, "run").over(Source(data))
    with contextlib.redirect_stdout(io.StringIO()):
        result = load(told.script)(Collection(bounded(entered)))
    _check(result)
    return result


def _check(measurements: Mapping[str, Measurement]) -> None:
    """Refuse measurements that a cluster cannot compute.

    Raises:
        PlanError: There is such a measurement.
    """
    from wpinq.core.measurements.continual import ContinualMeasurement
    from wpinq.core.measurements.windows import WindowedMeasurement
    from wpinq.core.plan.node import sources

    for name, measurement in measurements.items():
        if len(sources(measurement.node)) != 1 or not isinstance(sources(measurement.node)[0], Lent):
            raise PlanError("--processes: the dataflow reads other sources than INPUT; run it in one process.")
        if isinstance(measurement, (WindowedMeasurement, ContinualMeasurement)):
            raise PlanError(f"--processes: {name} is measured window by window or for ever; run it in one process.")
        if measurement.settled:
            raise PlanError(f"--processes: the dataflow observes {name} while it is made; run it in one process.")


def describe(told: Task, measurements: Mapping[str, Measurement], addresses: Sequence[str]) -> dict[str, str]:
    """What must be the same for all processes: public names, and keyed digests of all else."""
    import numpy as np
    import polars as pl

    from wpinq.core.plan.node import sources
    from wpinq.core.records import values
    from wpinq.sources.readers import FileReader
    from wpinq.sources.recovered import Recovered

    reader = sources(next(iter(measurements.values())).node)[0].reader
    kept = reader if isinstance(reader, Recovered) else None
    files = reader.reader if isinstance(reader, Recovered) else reader
    sizes = [file.size for file in files.found.files] if isinstance(files, FileReader) else []
    libraries = (sys.version_info[:2], _version("wpinq"), _version("bytewax"), pl.__version__, np.__version__)
    return {
        "addresses": ",".join(addresses),
        "libraries": repr((*libraries, values.FORMAT)),
        "columns": told.mac("columns", str(reader.schema)),
        "files": told.mac("files", sizes, told.version),
        "kept parts": told.mac("kept parts", kept.parts if kept else None),
        "dataflow": same_plans(told, measurements),
    }


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:  # run from a checkout
        return ""


def same_plans(told: Task, measurements: Mapping[str, Measurement]) -> str:
    """A keyed digest of all plans: of what they mean, or where that cannot be told, of the script."""
    from wpinq.core.plan.node import fingerprints

    script = Path(told.script).read_bytes()
    result: list[object] = []
    for name, measurement in measurements.items():
        plan = fingerprints(measurement.node)[measurement.node]
        result += [name, (plan or script).hex(), plan is None]
    return told.mac("dataflow", result)
