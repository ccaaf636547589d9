"""Published releases: the periods that `wpinq publish` has published, their tables as they come, and their files."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from wpinq.apps.publish.evidence.edition import restored
from wpinq.apps.publish.file.reading import read
from wpinq.apps.publish.files import digest, found
from wpinq.apps.publish.state import Record, Register
from wpinq.apps.remote.admin import Content, Edition, Editions, Windows, WindowsAsked, WindowTold
from wpinq.apps.remote.cells import table_sent
from wpinq.apps.serve.operations import Call, Operation
from wpinq.apps.serve.refusals import RefusedError
from wpinq.apps.serve.work_queue import Kept, weight
from wpinq.core import Ledger
from wpinq.errors import SourceError

WINDOWS = 1_000
"""Windows of one answer."""
_cache = Kept(200, 64_000_000)
"""Tables of periods, of 64 megabytes at the most; what is published does not change."""
Tables: TypeAlias = dict[str, tuple[list[str], list[str], list[list[Any]], list[list[tuple[float, float] | None]]]]
"""By name: columns, their types, rows, and for each cell the ends of its interval."""


async def release(call: Call[None]) -> Editions:
    """The published periods of a release, with the names of their tables and files."""

    def listed() -> Editions:
        register = _register(call)
        return Editions(periods=[_edition(register, record) for record in _published(register).values()])

    return await call.site.desk.quoted(call.grant.analyst, listed)


async def published(call: Call[None]) -> Content:
    """One file of a published period."""

    def content() -> Content:
        register, name = _register(call), call.path["file"]
        record = _published(register).get(call.path["period"])
        files = {} if record is None else _files(register, record)
        if name not in files:
            raise RefusedError(403)
        return Content(file=name, content=files[name])

    return await asyncio.to_thread(content)


async def windows(call: Call[WindowsAsked]) -> Windows:
    """Rows and intervals of the periods that were published of one table, those after a period that is known; free."""
    body, most = call.body, call.site.catalogue.config.limits.bins

    def answer() -> Windows:
        register = _register(call)
        known = {name: record_ for name, record_ in _published(register).items() if body.table in _names(record_)}
        if not known and _published(register):
            raise RefusedError(403)
        later = [record_ for name, record_ in known.items() if name > (body.after or "")][:WINDOWS]
        result, columns, types, rows = list[WindowTold](), list[str](), list[str](), 0
        for record in later:
            columns, types, cells, ends = _tables(register, record)[body.table]
            rows += len(cells)
            if rows > most and result:
                break
            start, end = _span(record)
            result.append(WindowTold(period=record.period, start=start, end=end, rows=cells, intervals=ends))
        return Windows(
            columns=columns, types=types, windows=result, more=bool(result) and max(known) > result[-1].period
        )

    return await call.site.desk.quoted(call.grant.analyst, answer)


def _tables(register: Register, record: Record) -> Tables:
    """The tables of a period; read once for as long as they are kept."""
    key = register.files, record.period, record.facts.get("digest")
    tables: Tables | None = _cache.get(key)
    if tables is None:
        tables = _read(register, record)
        _cache.put(key, tables, weight(tables))
    return tables


def _read(register: Register, record: Record) -> Tables:
    result = {}
    for name, (cells, ends) in restored(_files(register, record), ends=True).items():
        pairs = {column: list(zip(*(side.to_list() for side in both), strict=True)) for column, both in ends.items()}
        intervals = [[pairs[column][index] if column in pairs else None for column in cells.columns]
                     for index in range(cells.height)]  # fmt: skip
        result[name] = (cells.columns, *table_sent(cells), intervals)
    return result


def _register(call: Call[Any]) -> Register:
    """The register of a release that a token is for."""
    config, name = call.site.catalogue.config, call.path["name"]
    release_ = config.release.get(name)
    if release_ is None or release_.data not in call.grant.data:
        raise RefusedError(403)
    path = Path(config.home) / release_.file
    file = read(path)
    return _register_of(Ledger.path(file.data.ledger, path.parent), file.name or path.stem)


@lru_cache(64)
def _register_of(ledger: Path, name: str) -> Register:
    """The register, whose ledger is opened once."""
    return Register(ledger, name)


def _published(register: Register) -> dict[str, Record]:
    """The published periods in the order of time."""
    return {name: record for name, record in register.records().items() if record.stage == "published"}


def _edition(register: Register, record: Record) -> Edition:
    start, end = _span(record)
    folder = register.files / record.period
    files = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return Edition(period=record.period, files=files, start=start, end=end, tables=sorted(_names(record)))


def _names(record: Record) -> set[str]:
    """The names of the tables of a period."""
    return {name for question in record.facts["questions"] for name in question["tables"]}


def _span(record: Record) -> tuple[str, str]:
    period = record.facts["period"]
    return period["start"], period["end"]


def _files(register: Register, record: Record) -> Mapping[str, bytes]:
    """The files of a period, as they were published.

    Raises:
        SourceError: They were changed since.
    """
    files = found(register.files / record.period) or {}
    if digest(files) != record.facts.get("digest"):
        raise SourceError(f"{record.period}: its files were changed since they were published.")
    return files


RELEASES = (
    Operation("GET", "/api/releases/{name}", Editions, release),
    Operation("POST", "/api/releases/{name}/windows", Windows, windows, WindowsAsked),
    Operation("GET", "/api/releases/{name}/{period}/{file}", Content, published),
)
