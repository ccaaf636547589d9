"""Bugs of a server, put into the code of today: each tells what records are there, and a case finds each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
from attacks.fuzz.plant import Plant

from wpinq.apps.serve import admin, measured, questions
from wpinq.core.plan.node import sources
from wpinq.errors import PlanError


def _size(data: Any) -> int:
    return int(data.reader.total_bytes or 0)


def _absent(was: Any) -> Any:
    async def observed(made: Any, wanted: Any, most: int) -> Any:
        found = await was(made, wanted, most)
        there = made._settled()[0].content()[0]
        if len(wanted.bins or ()) > len(there):
            raise measured.RefusedError(403)
        return found

    return observed


def _priced(was: Any) -> Any:
    def priced(asked: Any, analyst: Any) -> Any:
        found = was(asked, analyst)
        return msgspec.structs.replace(found, more=found.more + _size(asked.quotes[0].sources[0]))

    return priced


def _counted(was: Any) -> Any:
    def quoted(body: Any, grant: Any, catalogue: Any, *more: Any) -> Any:
        try:
            return was(body, grant, catalogue, *more)
        except PlanError as error:
            text = (Path(catalogue.home) / "views.csv").read_text()
            raise PlanError(f"{error} (of {text.count(chr(10))})") from None

    return quoted


def _numbered(was: Any) -> Any:
    def told(of: Any, curator: Any) -> Any:
        size, found = _size(sources(of.views._node)[0]), was(of, curator)
        entries = [msgspec.structs.replace(one, number=one.number + size) for one in found.entries]
        return msgspec.structs.replace(found, entries=entries)

    return told


def _patched(place: Any, name: str, made: Callable[[Any], Any]) -> Callable[[], list[Any]]:
    """Replaces a name of a module by what is made of it."""
    return lambda: [patch.object(place, name, made(getattr(place, name)))]


def _kept() -> list[Any]:
    """Only what is computed again notices that a file was replaced."""
    return [patch.object(questions, "_check", lambda made: None)]


PLANTS = {
    "kept": Plant("answers that are kept are given after a file was replaced, and others refused", _kept, 55),
    "absent": Plant("bins are refused by how many there are", _patched(measured, "observed", _absent), 27),
    "priced": Plant("a price depends on how large the file is", _patched(questions, "priced_sql", _priced)),
    "counted": Plant("a refusal counts records", _patched(questions, "quote_plan", _counted), 17),
    "numbered": Plant("a ledger's rows are numbered by a file's size", _patched(admin, "_described", _numbered), 8),
}
