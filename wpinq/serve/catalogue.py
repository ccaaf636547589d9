"""What a server serves: its data sets, opened, and the measurements of their scripts, charged and computed.

All is computed before the first request, so no request takes the time of a run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wpinq.errors import PlanError
from wpinq.measurements.measurement import Measurement
from wpinq.measurements.settle import settle
from wpinq.plan.node import sources
from wpinq.protection import protect
from wpinq.publish.records import LIMITLESS, unit_of
from wpinq.records.schema import Kind
from wpinq.scripts.script import load, rehearsed
from wpinq.serve.config import NAME, Config, Protected

if TYPE_CHECKING:
    from wpinq.collection import Collection
    from wpinq.ledger import Ledger

FORM = ("header", "format", "separator", "decimal", "encoding", "table", "tz")
AMOUNTS = ("budget", "delta", "rho", "accounting")
PLAN = 20_000
"""Bytes that a plan takes, about."""
PLACE = re.compile(r"(sqlite|duckdb):(?!/)|[a-z]+:")


@dataclass(frozen=True)
class Served:
    """A charged measurement that is served.

    Attributes:
        name: Its name in addresses.
        data: The data set that it is of.
        meaning: What it counts, in words.
        measurement: The measurement.
    """

    name: str
    data: str
    meaning: str
    measurement: Measurement

    @property
    def size(self) -> int:
        """Bytes that it takes, about. They follow from records."""
        return PLAN + self.measurement._size


@dataclass(frozen=True)
class Opened:
    """A data set that is served.

    Attributes:
        name: Its name in addresses and queries.
        views: Its records, protected.
        file: What the file of the server says of it.
    """

    name: str
    views: Collection
    file: Protected

    @property
    def ledger(self) -> Ledger:
        """Its ledger."""
        return sources(self.views._node)[0].ledger

    @property
    def protects(self) -> str:
        """Whom each answer protects, in words."""
        return sources(self.views._node)[0].unit.protects


@dataclass(frozen=True)
class Catalogue:
    """All that is served.

    Attributes:
        config: The file of the server.
        data: The data sets by name.
        measured: The measurements by name: that of the data set, a point, and the script's.
    """

    config: Config
    data: Mapping[str, Opened]
    measured: Mapping[str, Served] = field(default_factory=dict)

    @cached_property
    def home(self) -> Path:
        """The directory that relative paths start from."""
        return Path(self.config.home)


def opened(config: Config) -> Catalogue:
    """Open what a file says, charge its scripts, and compute them.

    Raises:
        WpinqError: It cannot be opened, read, charged or computed.
    """
    home = Path(config.home)
    data = {name: Opened(name, _protect(one, name, home), one) for name, one in config.data.items()}
    measured: dict[str, Served] = {}
    for name, one in data.items():
        if one.file.dataflow is not None:
            measured |= _measured(one, one.file.dataflow, home)
        elif one.file.meanings:
            raise PlanError(f"data.{name}.meanings: there is no dataflow whose measurements could mean it.")
    for name, fit in config.fit.items():
        for curve in (fit.cdf, fit.sequence):
            if f"{fit.data}.{curve}" not in measured:
                raise PlanError(f"fit.{name}: data set {fit.data!r} has no measurement {curve!r}.")
    return Catalogue(config, data, measured)


def _protect(file: Protected, name: str, home: Path) -> Collection:
    """Protect the records of a data set under its ledger, which is made where there is none."""
    place = home / file.ledger
    taken = FORM if place.exists() else (*FORM, *AMOUNTS)  # a ledger holds its own, which may have been raised
    words: dict[str, Any] = {word: getattr(file, word) for word in taken}
    return protect(
        located(file.source, home), ledger=place, name=name, columns=file.columns, unit=unit_of(file.unit),
        where=file.where, derive=file.derive or None, version=file.version, **words,
    )  # fmt: skip


def located(source: str, home: Path) -> str:
    """A source with its path from `home`, where it has one.

    >>> located("views.csv", Path("/srv")), located("sqlite:shop.db?table=views", Path("/srv"))
    ('/srv/views.csv', 'sqlite:/srv/shop.db?table=views')
    """
    found = PLACE.match(source)
    if found is None:
        return str(home / source)
    return f"{found[0]}{home / source[found.end() :]}" if found[1] else source


def _measured(data: Opened, dataflow: str, home: Path) -> dict[str, Served]:
    """The measurements of a script: rehearsed on no records, charged all or none, computed together."""
    own = home / dataflow
    script = load(str(own) if own.is_file() else dataflow)
    made = rehearsed(script, imagined(data.views)).charge(data.views)
    if wrong := [name for name in made if not NAME.fullmatch(name)]:
        raise PlanError(f"{dataflow}: the name {wrong[0][:80]!r} stands in addresses: write letters, digits, - and _.")
    if unknown := set(data.file.meanings) - set(made):
        raise PlanError(f"data.{data.name}.meanings: {min(unknown)!r} is no measurement; there are {', '.join(made)}.")
    for one in made.values():
        settle(one)
    meanings = {name: data.file.meanings.get(name, one.node.title) for name, one in made.items()}
    return {f"{data.name}.{name}": Served(f"{data.name}.{name}", data.name, meanings[name], one)
            for name, one in made.items()}  # fmt: skip


def imagined(views: Collection) -> Collection:
    """The same without records, in memory, with a budget that does not end: mistakes and prices show in it."""
    (data,) = sources(views._node)
    schema = views._node.schema
    kinds = {column.name: None if column.kind is Kind.ANY else column.kind.value for column in schema}
    return protect([], LIMITLESS, delta="0.5", columns=kinds, name=data.name, unit=data.unit)
