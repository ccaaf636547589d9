"""Published releases: the periods of release files that `wpinq publish` has published, and their files."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from wpinq.errors import SourceError
from wpinq.publish.files import digest, found
from wpinq.publish.reading import read
from wpinq.publish.register import Register
from wpinq.remote.overseen import Content, Edition, Editions
from wpinq.serve.contract import Call, Operation
from wpinq.serve.refusals import RefusedError


async def release(call: Call[None]) -> Editions:
    """The published periods of a release, with the names of their files."""
    register = await asyncio.to_thread(_register, call)

    def listed() -> Editions:
        periods = [one for one, record in register.records().items() if record.stage == "published"]
        return Editions(periods=[Edition(period=one, files=sorted(_files(register, one))) for one in periods])

    return await asyncio.to_thread(listed)


async def published(call: Call[None]) -> Content:
    """One file of a published period."""

    def content() -> Content:
        register, period, name = _register(call), call.path["period"], call.path["file"]
        record = register.records().get(period)
        if record is None or record.stage != "published":
            raise RefusedError(403)
        files = _files(register, period)
        if digest(files) != record.facts.get("digest"):
            raise SourceError(f"{period}: its files were changed since they were published.")
        if name not in files:
            raise RefusedError(403)
        return Content(file=name, content=files[name])

    return await asyncio.to_thread(content)


def _register(call: Call[None]) -> Register:
    """The register of a release that a token is for."""
    config, name = call.site.catalogue.config, call.path["name"]
    one = config.release.get(name)
    if one is None or one.data not in call.grant.data:
        raise RefusedError(403)
    path = Path(config.home) / one.file
    file = read(path)
    return Register(path.parent / file.data.ledger, file.name or path.stem)


def _files(register: Register, period: str) -> Mapping[str, bytes]:
    """The files of a period, whose name the register has."""
    return found(register.files / period) or {}


RELEASES = (
    Operation("GET", "/api/releases/{name}", Editions, release),
    Operation("GET", "/api/releases/{name}/{period}/{file}", Content, published),
)
