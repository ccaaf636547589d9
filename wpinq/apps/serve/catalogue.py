"""What a server serves: its data sets, opened, and the measurements of their scripts, charged and computed.

All is computed before the first request, so no request takes the time of a run.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wpinq import Measurement
from wpinq.apps.publish.file.owners import CALL, hop, unit_of
from wpinq.apps.scripts.script import load, rehearsed
from wpinq.apps.serve.config import NAME, Config, Protected
from wpinq.core import Ledger, rendered, settle, sources
from wpinq.distributed import engine_of
from wpinq.errors import PlanError
from wpinq.protection import LIMITLESS, protect
from wpinq.sources.owned import read_way
from wpinq.sources.tables.tuples import NoRecords

if TYPE_CHECKING:
    from wpinq.apps.scripts.script import Dataflow
    from wpinq.collection import Collection

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
        script: Its dataflow, as it was when the server started.
        stopped: Whether the version that the clock names could not be opened, so that nothing of it is answered.
        named: The name of the version as the file says it, and the version of the table of owners, by which it was
            opened.
    """

    name: str
    views: Collection
    file: Protected
    script: Dataflow | None = None
    stopped: bool = False
    named: tuple[str | None, str | None] = (None, None)

    @property
    def ledger(self) -> Ledger:
        """Its ledger."""
        return sources(self.views._node)[0].ledger

    @property
    def version(self) -> str:
        """The name of its version."""
        return sources(self.views._node)[0].version

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

    @property
    def versions(self) -> tuple[str, ...]:
        """The names of all versions; what was answered for others is not taken for these."""
        return tuple(opened_data.version for opened_data in self.data.values())

    def having(self, data: Opened, measured: Mapping[str, Served]) -> Catalogue:
        """The same with another version of a data set, and its measurements."""
        return replace(self, data={**self.data, data.name: data}, measured={**self.measured, **measured})


def opened(config: Config) -> Catalogue:
    """Open what a file says, charge its scripts, and compute them.

    Raises:
        WpinqError: It cannot be opened, read, charged or computed.
    """
    home = Path(config.home)
    made: dict[str, Opened] = {}
    now = dt.datetime.now(dt.UTC)
    for name in ordered(config):
        file = config.data[name]
        named = wanted(name, file, made, now)
        made[name] = Opened(name, _protect(config, name, named[0], made), file, _script(file, home), named=named)
    data = {name: made[name] for name in config.data}
    measured: dict[str, Served] = {}
    for name, data_set in data.items():
        if data_set.script is None and data_set.file.meanings:
            raise PlanError(f"data.{name}.meanings: there is no dataflow whose measurements could mean it.")
        measured |= _measured(data_set)
    for name, fit in config.fit.items():
        for curve in (fit.cdf, fit.sequence):
            if f"{fit.data}.{curve}" not in measured:
                raise PlanError(f"fit.{name}: data set {fit.data!r} has no measurement {curve!r}.")
    return Catalogue(config, data, measured)


def renewed(catalogue: Catalogue, name: str, version: str | None) -> Catalogue:
    """Open the next version of a data set, charge its script, and compute it.

    Raises:
        WpinqError: It cannot be opened, read, charged or computed.
    """
    before = catalogue.data[name]
    views = _protect(catalogue.config, name, version, catalogue.data)
    owner = _owner(before.file, catalogue.data)
    named = version, None if owner is None else owner.version
    new = replace(before, views=views, stopped=False, named=named)
    return catalogue.having(new, _measured(new))


def wanted(name: str, file: Protected, data: Mapping[str, Opened], now: dt.datetime) -> tuple[str | None, str | None]:
    """The name of the version that the clock says, and the version of the table of owners that goes with it."""
    version = rendered(file.version, f"data.{name}.version", file.tz, now) or None
    owner = _owner(file, data)
    return version, None if owner is None else owner.version


def ordered(config: Config) -> list[str]:
    """The data sets, each after the one that a way leads from it to.

    Raises:
        PlanError: A way leads to none of them, or in a circle.
    """
    order: list[str] = []

    def visit(name: str) -> None:
        unit = config.data[name].unit
        unit_of(unit, config.data, (name,))
        if unit is not None and unit.through is not None:
            visit(hop(unit.through, config.data, (name,))[1])
        if name not in order:
            order.append(name)

    for name in config.data:
        visit(name)
    return order


def _owner(file: Protected, data: Mapping[str, Opened]) -> Opened | None:
    """The table of owners, where a way leads to one."""
    if file.unit is None or file.unit.through is None:
        return None
    return data[read_way(file.unit.through, CALL)[1]]


def _script(file: Protected, home: Path) -> Dataflow | None:
    """The dataflow of a data set, if it has one."""
    if file.dataflow is None:
        return None
    path = home / file.dataflow
    return load(str(path) if path.is_file() else file.dataflow)


def _protect(config: Config, name: str, version: str | None, data: Mapping[str, Opened]) -> Collection:
    """Protect the records of a data set under its ledger, which is made where there is none.

    Raises:
        PlanError: The table of its owners is stopped.
    """
    file, home = config.data[name], Path(config.home)
    path = Ledger.path(file.ledger, home)
    taken = () if Ledger.exists(path) else AMOUNTS  # a ledger holds its own, which may have been raised
    words: dict[str, Any] = {**file.form(), **{word: getattr(file, word) for word in taken}}
    unit, owner = unit_of(file.unit, config.data, (name,)), _owner(file, data)
    if owner is not None:
        if owner.stopped:
            raise PlanError(f"data.{name}: its owners are in {owner.name}, of which no version is open.")
        unit = replace(unit, owner=sources(owner.views._node)[0])
    return protect(
        located(file.source, home), ledger=path, name=name, columns=file.columns, unit=unit,
        where=file.where, derive=file.derive or None, version=version,
        engine=engine_of(file.processes), index=file.index or None, **words,
    )  # fmt: skip


def located(source: str, home: Path) -> str:
    """A source with its path from `home`, where it has one.

    >>> located("views.csv", Path("/srv")), located("sqlite:shop.db?table=views", Path("/srv"))
    ('/srv/views.csv', 'sqlite:/srv/shop.db?table=views')
    """
    scheme = PLACE.match(source)
    if scheme is None:
        return str(home / source)
    return f"{scheme[0]}{home / source[scheme.end() :]}" if scheme[1] else source


def _measured(data: Opened) -> dict[str, Served]:
    """The measurements of a script: rehearsed on no records, charged all or none, computed together."""
    if data.script is None:
        return {}
    made = rehearsed(data.script, imagined(data.views)).charge(data.views)
    if wrong := [name for name in made if not NAME.fullmatch(name)]:
        raise PlanError(
            f"{data.file.dataflow}: the name {wrong[0][:80]!r} stands in addresses: write letters, digits, - and _."
        )
    if unknown := set(data.file.meanings) - set(made):
        raise PlanError(f"data.{data.name}.meanings: {min(unknown)!r} is no measurement; there are {', '.join(made)}.")
    for measurement in made.values():
        settle(measurement)
    meanings = {name: data.file.meanings.get(name, measurement.quote.label) for name, measurement in made.items()}
    return {f"{data.name}.{name}": Served(f"{data.name}.{name}", data.name, meanings[name], measurement)
            for name, measurement in made.items()}  # fmt: skip


def imagined(views: Collection) -> Collection:
    """The same without records, in memory, with a budget that does not end: mistakes and prices show in it."""
    (data,) = sources(views._node)
    empty = NoRecords(views._node.schema)
    return protect(empty, LIMITLESS, delta="0.5", name=data.name, unit=replace(data.unit, choice=None))
