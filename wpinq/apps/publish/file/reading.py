"""Release files, read strictly: what is unknown, missing or impossible is refused with its place, before any charge."""

from __future__ import annotations

import datetime as dt
import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args, get_type_hints
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import msgspec

from wpinq.apps.publish.file.declared import (
    Alerts,
    Budget,
    Checks,
    Data,
    File,
    Intake,
    Page,
    Person,
    Question,
    Records,
    Schedule,
    Sink,
    Stream,
    Table,
    Words,
)
from wpinq.core import Asked, Kind, declared_kinds
from wpinq.errors import ExactnessError, PlanError
from wpinq.exact import positive
from wpinq.sources.files import text_of

TABLES: dict[str, type[Table]] = {
    "data": Data, "data.unit": Person, "data.owners": Records, "budget": Budget, "period": Schedule,
    "question": Question, "sink": Sink, "checks": Checks, "words": Words, "stream": Stream, "intake": Intake,
    "alerts": Alerts, "page": Page,
}  # fmt: skip
LATER = ("rho", "mechanism", "within", "loss", "at_most")
"""Keys of a question that digests of older releases know nothing of."""
NEWER = ("through", "epsilon", "bins", "asking")
"""Keys of other tables that digests of older releases know nothing of."""
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
"""Names of releases and questions: they become names of files and tables."""


def read(path: Path) -> File:
    """Read a release file.

    Raises:
        SourceError: It cannot be read.
        PlanError: It is no TOML, or says what cannot be.
    """
    try:
        tables = _dates(tomllib.loads(text_of(path)))
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{path}: no TOML: {error}.") from None
    return decode(tables, str(path))


def _dates(value: Any) -> Any:
    """The same with dates as text, so that `first = 2026-01-01` is what it looks like."""
    if isinstance(value, dict):
        return {key: _dates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_dates(item) for item in value]
    return value.isoformat() if isinstance(value, (dt.date, dt.time)) else value


def decode(tables: object, call: str) -> File:
    """Check what a release file says.

    Args:
        tables: The file's tables.
        call: What messages call it.

    Raises:
        PlanError: It is no mapping, a key is unknown or missing, or a value is of another type or impossible.
    """
    if not isinstance(tables, Mapping):  # msgspec takes whatever has keys for a mapping, a data frame too
        raise PlanError(f"{call}: {type(tables).__name__} is no mapping of tables, as a release file's are.")
    refuse_nul(tables, call)
    try:
        file = msgspec.convert(tables, File)
    except UnicodeEncodeError:
        raise PlanError(f"{call}: holds a text that is none.") from None
    except msgspec.ValidationError as error:
        raise PlanError(f"{call}: {_plain(str(error))}") from None
    _check(file, call)
    return file


def refuse_nul(value: object, call: str) -> None:
    """Refuse a file that writes a NUL: no path, name or query may hold one, and the system would say so in its way.

    Raises:
        PlanError: It writes one.
    """
    if isinstance(value, str) and "\0" in value:
        raise PlanError(f"{call}: holds a NUL (\\u0000), which no text here may.")
    if isinstance(value, (dict, list, tuple)):
        for item in value.items() if isinstance(value, dict) else value:
            refuse_nul(item, call)


def _plain(message: str) -> str:
    """A message of the decoder in the words of the file, with the key that was likely meant."""
    what, _, place = message.partition(" - at `$")
    table = place.strip(".`")
    where = f"in {table}" if table else "at the top"
    unknown = re.search("unknown field `(.*)`", what)
    missing = re.search("missing required field `(.*)`", what)
    if missing:
        return f"key {missing[1]!r} is missing {where}."
    struct = TABLES.get(table.partition("[")[0], File)
    if unknown:
        fields = struct.__struct_fields__
        near = difflib.get_close_matches(unknown[1], sorted(fields), 1)
        return f"key {unknown[1]!r} is not known {where}{f'; {near[0]!r} is' if near else ''}."
    if what.startswith("Invalid enum value"):
        inside, _, key = table.rpartition(".")
        kind = get_type_hints(TABLES.get(inside.partition("[")[0], File)).get(key)
        return f"{table}: {what.partition('value ')[2]} is not known; there are {', '.join(_words(kind))}."
    return _typed(what, table) or f"{what[0].lower()}{what[1:]} {where}."


WANTED = {"object": "a table such as { key = 1 }", "array": "a list such as [1, 2]", "bool": "true or false",
          "str": "text in quotes", "int": "a whole number", "float": "a number"}  # fmt: skip
GOT = {"object": "a table", "array": "a list", "bool": "true or false", "str": "text", "int": "a whole number",
       "float": "a number with a point"}  # fmt: skip
"""Types of values as TOML has them."""


def _typed(what: str, path: str) -> str:
    """That a value is of another type, in the words of TOML; nothing where this is not what is wrong."""
    match = re.fullmatch("Expected `([^`]*)`(?:, got `([^`]*)`| (.*))", what)
    kinds = [] if match is None else [kind for kind in match[1].split(" | ") if kind != "null"]
    if match is None or not set(kinds) <= set(WANTED):
        return ""
    if path in ("question", "sink"):
        return f"{path}: write it as [[{path}]], once for each."
    if {"int", "float"} <= set(kinds):
        kinds.remove("int")
    wanted = " or ".join(WANTED[kind] for kind in kinds)
    got = f", and not {GOT.get(match[2], match[2])}" if match[2] else f" {match[3]}"
    return f"{path}: write {wanted}{got}."


def plain(message: str) -> str:
    """A message of the decoder about any file of TOML, whose tables are not those of a release.

    >>> plain("Expected `object`, got `array` - at `$.data.views`")
    'data.views: write a table such as { key = 1 }, and not a list.'
    """
    what, _, place = message.partition(" - at `$")
    return _typed(what, place.strip(".`")) or f"{message}."


def _words(kind: Any) -> Iterator[str]:
    """The words that a type allows."""
    for item in get_args(kind):
        yield from [item] if isinstance(item, str) else _words(item)


def named(name: str, call: str) -> str:
    """A name that can be a file's, and a table's.

    Raises:
        PlanError: It cannot.
    """
    if not NAME.fullmatch(name):
        raise PlanError(f"{call}: the name {name[:80]!r} becomes a file's: write letters, digits, - and _.")
    return name


def _check(file: File, call: str) -> None:
    """Refuse what the types alone do not."""
    names = [question.name for question in file.question]
    for name in [*names, *([file.name] if file.name else [])]:
        named(name, call)
    names += [f"{question.name}_loss" for question in file.question if question.loss is not None]
    if not names or len({name.lower() for name in names}) < len(names):
        raise PlanError(f"{call}: [[question]] is needed, each with a name of its own.")
    if not file.sink:
        raise PlanError(f"{call}: [[sink]] is needed: directory, sqlite, postgres or to.")
    try:
        ZoneInfo(file.period.zone)
    except (KeyError, ValueError, OSError):  # not found, no name of a file, a directory
        raise PlanError(f"{call}: period.zone: {file.period.zone[:40]!r} is no zone of time; write UTC or Europe/Berlin"
                        " for example.") from None  # fmt: skip
    for day in file.period.again:
        try:
            dt.date.fromisoformat(day)
        except ValueError:
            raise PlanError(f"{call}: period.again: {day[:40]!r} is no day; write [2026-12-05] for example.") from None
    _check_budget(file.budget, call)
    if file.budget.rho is None and file.budget.accounting == "pure" and any(question.rho for question in file.question):
        raise PlanError(f"{call}: no epsilon bounds Gaussian noise; give [budget] rho, or accounting = 'renyi' too.")
    for question in file.question:
        _check_question(question, f"{call}: question {question.name!r}")
    for sink in file.sink:
        places = {name: getattr(sink, name) for name in ("directory", "sqlite", "postgres", "to")}
        _one_of(places, f"{call}: [[sink]]")
    if file.alerts is not None:
        _check_alerts(file.alerts, call)
    if file.page is not None and not any((sink.directory or "").partition("{")[0].strip("./") for sink in file.sink):
        raise PlanError(f"{call}: [page] is written beside the directories of periods; give a sink such as directory ="
                        " 'out/{date}'.")  # fmt: skip
    if file.checks.totals is not False and not file.checks.totals > 0:
        raise PlanError(f"{call}: checks.totals: write a share above zero such as 0.5, or false.")
    if file.data.listen is not None:
        _check_intake(file, call)
    elif not file.data.source:
        raise PlanError(f"{call}: key 'source' is missing in data; or give listen, where records are sent.")
    elif file.intake != Intake():
        raise PlanError(f"{call}: [intake] goes with data.listen.")
    elif file.stream is not None:
        _check_stream(file.stream, file.data, file.period, call)
    elif file.data.source.startswith("kafka://"):
        raise PlanError(f"{call}: a topic is followed; say in [stream] which column is a record's time (at), and how"
                        " late it may come (lateness).")  # fmt: skip
    elif file.period.at is None and not any(
        "{" in text for text in (file.data.source, file.data.query or "", file.data.where or "")
    ):
        raise PlanError(f"{call}: every period would read the same records; say in [period] which column is a record's "
                        "time (at), or write {date} into data.source or data.query, or {start} and {end} into "
                        "data.where.")  # fmt: skip


YEAR = 366 * 86_400
"""Seconds that a stream may wait at the most."""
TAKEN = (Kind.INT, Kind.FLOAT, Kind.TEXT, Kind.BOOL, Kind.DATE, Kind.TIME, Kind.INSTANT)
"""Types of columns that JSON can say."""


def _check_intake(file: File, call: str) -> None:
    """Refuse what does not go with records that are sent."""
    data, host = file.data, (file.data.listen or "").rpartition(":")
    if not host[0] or not host[2].isdigit() or int(host[2]) > 65_535:
        raise PlanError(f"{call}: data.listen: write an address and a port, such as '127.0.0.1:8232'.")
    if data.source or data.query or data.table or file.period.at or "{" in (data.where or ""):
        raise PlanError(f"{call}: data.listen: records are sent, so leave out source, query, table, period.at and"
                        " {start} in where; [stream] says which column is a record's time.")  # fmt: skip
    if not isinstance(data.columns, dict):
        raise PlanError(f"{call}: data.columns: name those of a record with their types, such as {{ install = 'text',"
                        " feature = 'text' }.")  # fmt: skip
    kinds = {name: kind or Kind.TEXT for name, kind in declared_kinds(data.columns, "data")}
    for name, kind in kinds.items():
        if kind not in TAKEN:
            raise PlanError(f"{call}: data.columns: {name} is a {kind.value}, which JSON cannot say; take text.")
    if data.unit is not None and data.unit.through is None and data.unit.column not in kinds:
        raise PlanError(f"{call}: data.unit.column: {data.unit.column!r} is no column; there are {', '.join(kinds)}.")
    if data.processes > 1:
        raise PlanError(f"{call}: data.processes: this process alone can read what was sent; leave it out.")
    stream = file.stream or Stream()
    if stream.at is not None and kinds.get(stream.at) not in (Kind.TIME, Kind.INSTANT):
        raise PlanError(f"{call}: stream.at: {stream.at!r} is no column of times; there are {', '.join(kinds)}.")
    if stream.late != "drop" or stream.keep is not None:
        raise PlanError(f"{call}: [stream]: records that are sent are destroyed, and none is counted in another period;"
                        " leave out keep and late.")  # fmt: skip
    _check_seconds(stream, call)


def _check_stream(stream: Stream, data: Data, period: Schedule, call: str) -> None:
    if period.at is not None:
        raise PlanError(f"{call}: of a stream [stream] says which column is a record's time (at); leave period.at out.")
    units = [table.unit for table in (data, *data.owners.values()) if table.unit is not None]
    lengths = [unit.period for unit in units if unit.period]
    if stream.late == "next" and lengths:
        raise PlanError(f"{call}: stream.late = 'next' counts records of one period in another, where a person in one"
                        f" {lengths[0]} would be in both; leave late or unit.period out.")  # fmt: skip
    if data.query is not None or data.table is not None or "{" in data.source:
        raise PlanError(f"{call}: a stream is a topic of Kafka or files that grow; no query, table or {{date}}.")
    if (stream.keep or 0) < 0:
        raise PlanError(f"{call}: [stream]: keep is not negative.")
    _check_seconds(stream, call)


def _check_seconds(stream: Stream, call: str) -> None:
    if not (0 <= stream.lateness <= YEAR and 0 < stream.every <= YEAR):
        raise PlanError(f"{call}: [stream]: lateness is from 0 to {YEAR:,} seconds, which is a year, and every is above"
                        " zero and no more.")  # fmt: skip


def _check_alerts(alerts: Alerts, call: str) -> None:
    if urlsplit(alerts.webhook).scheme not in ("http", "https") or not urlsplit(alerts.webhook).hostname:
        raise PlanError(f"{call}: alerts.webhook: write http://host/path or https://host/path.")
    if not 0 < alerts.below < 1:
        raise PlanError(f"{call}: alerts.below: write a share of the budget between 0 and 1, such as 0.2.")


def _check_budget(budget: Budget, call: str) -> None:
    if (budget.epsilon is None) is (budget.rho is None) or (budget.rho is not None and budget.accounting != "pure"):
        raise PlanError(f"{call}: [budget] needs epsilon (with accounting, if need be), or rho alone instead.")
    try:
        Asked.of(call, budget.epsilon, budget.delta, budget.rho, None if budget.rho is not None else budget.accounting)
    except ExactnessError as error:
        raise PlanError(f"{call}: [budget]: {str(error).partition(': ')[2]}") from None


def _check_price(question: Question, call: str) -> None:
    gaussian = question.mechanism == "gaussian" or (question.mechanism is None and question.rho is not None)
    if question.within is not None:
        if question.epsilon is not None or gaussian or question.rho is not None:
            raise PlanError(f"{call}: within chooses epsilon; leave epsilon and rho out.")
        positive(question.within, f"{call}: within")
        return
    if question.epsilon is None and question.rho is None:
        raise PlanError(f"{call}: epsilon is missing, or rho or within; only a dataflow script says its own.")
    if gaussian is (question.rho is None) or gaussian is (question.epsilon is not None):
        raise PlanError(f"{call}: Gaussian noise costs rho and no epsilon, and other noise epsilon; give one of them.")
    positive(question.epsilon if question.rho is None else question.rho, f"{call}: {'rho' if gaussian else 'epsilon'}")


def _check_question(question: Question, call: str) -> None:
    kinds = {"sql": question.sql, "counts": question.counts, "degrees": question.degrees, "dataflow": question.dataflow}
    kind = _one_of(kinds, call)
    if kind != "dataflow":
        _check_price(question, call)
    elif question.epsilon is not None or question.rho is not None or question.mechanism is not None:
        raise PlanError(f"{call}: a dataflow script says its own epsilon, rho and mechanism; leave them out here.")
    always = {"keys", "delta", "within", "loss", "at_most"}
    allowed = {"sql": always | {"bounds"}, "counts": always | {"above"}, "degrees": set[str](),
               "dataflow": {"keys", "delta"}}[kind]  # fmt: skip
    for name in ("keys", "delta", "bounds", "above", "within", "loss", "at_most"):
        if name not in allowed and getattr(question, name) not in (None, {}):
            raise PlanError(f"{call}: {name} does not go with {kind}.")
    if question.keys is not None and question.delta is not None:
        raise PlanError(f"{call}: give keys, or delta to publish those above a threshold, and not both.")
    if question.expect is not None and question.keys is None and question.delta is None:
        raise PlanError(f"{call}: expect speaks of keys; there are none.")
    if question.delta is not None:
        positive(question.delta, f"{call}: delta")


def _one_of(choices: dict[str, Any], call: str) -> str:
    names = [name for name, value in choices.items() if value]
    if len(names) != 1:
        raise PlanError(f"{call}: give one of {', '.join(choices)}; {' and '.join(names) or 'none'} is given.")
    return names[0]


def definition(file: File, home: Path) -> str:
    """A digest of what is asked, and of the files that say it."""
    questions = [msgspec.to_builtins(question) for question in file.question]
    known = [{key: value for key, value in each.items() if key not in LATER or value is not None} for each in questions]
    data = file.data
    at = [] if file.period.at is None else [file.period.at]
    unit = None if data.unit is None else _said(data.unit)
    owners = [{name: _said(owner) for name, owner in sorted(data.owners.items())}] if data.owners else []
    result = sha256(msgspec.json.encode([known, unit, data.where, data.derive, data.query, *at, *owners]))
    for question in file.question:
        for part in (question.keys, question.dataflow):
            path = home / part if isinstance(part, str) else None
            if path is not None and path.is_file():
                result.update(sha256(path.read_bytes()).digest())
    return result.hexdigest()


def _said(table: Table) -> dict[str, Any]:
    """What a table of the file says, by its keys."""
    return {key: value for key, value in msgspec.to_builtins(table).items() if key not in NEWER or value is not None}
