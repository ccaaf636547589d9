"""The file of a server: what it serves, to whom and where; read strictly.

Every table of the file is one class here, and its keys are the class's fields. What is unknown or missing is refused
with its place, before anything is opened or charged.
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from pathlib import Path
from typing import Annotated

import msgspec

from wpinq.apps.publish.file.declared import Number, Source
from wpinq.apps.publish.file.reading import plain, refuse_nul
from wpinq.errors import PlanError
from wpinq.exact import positive
from wpinq.sources.files import text_of

__all__ = ["Config", "Fitted", "Limits", "Protected", "Published", "Server"]

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
"""Names of data sets, measurements and fits: they stand in addresses."""


class Table(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A table of the file."""


class Limits(Table, frozen=True):
    """What one request, or one plan, may ask of the machine. None of them depends on data.

    Attributes:
        body: Bytes of a request.
        bins: Bins of one observation.
        seconds: How long a client may take to send one request.
        requests: Requests in a minute by one token.
        connections: Open connections, as far as the system lets one process have files open.
        each: Open connections of one address, where there is no proxy in front; of IPv6 a network of 64 bits is one.
        waiting: Questions that wait to be computed, of all analysts together.
        held: Questions whose answers are kept, and measurements that can be observed further.
        memory: Bytes that their answers, counts and tables may take in memory, all together.
        steps: Steps of a plan.
        depth: Steps that follow each other, and operations of an expression that do.
        operations: Operations of all expressions of a plan together.
        joins: Joins of a plan.
        partners: Records of one key that a join may take, times those of the joins before it.
        gain: How far one unit may move what is measured, as a multiple of its bound.
        query: Characters of an SQL query.
        delta: Delta that one question may cost, of published groups or of Gaussian noise. With 0 groups are given.
        least: Epsilon that one question costs at least, and of rho half its square: a ledger keeps a row of each, for
            ever, so that whoever asked for next to nothing could fill it.
    """

    body: int = 65_536
    bins: int = 10_000
    seconds: float = 10.0
    requests: int = 6_000
    connections: int = 1_000
    each: int = 200
    waiting: int = 16
    held: int = 256
    memory: int = 256_000_000
    steps: int = 40
    depth: int = 16
    operations: int = 400
    joins: int = 2
    partners: int = 1_000
    gain: int = 1_000
    query: int = 10_000
    delta: Number = 0
    least: Number = "1e-5"


class Server(Table, frozen=True):
    """Where the server listens.

    Attributes:
        tokens: The file of tokens.
        host: The address; one that other machines reach needs `certificate` and `key`, or `proxy`.
        port: The port; 0 takes a free one.
        certificate: The certificate chain, for TLS.
        key: Its private key.
        proxy: Whether a proxy in front of it does TLS.
        names: Host names that it is asked by, beside its address.
        agents: Whether agents may ask at `/mcp`.
        agents_per_minute: New questions that one token may pay there in a minute.
    """

    tokens: str = "tokens"
    host: str = "127.0.0.1"
    port: int = 8200
    certificate: str | None = None
    key: str | None = None
    proxy: bool = False
    names: tuple[str, ...] = ()
    agents: bool = False
    agents_per_minute: Annotated[int, msgspec.Meta(ge=0)] = 10


class Protected(Source, frozen=True, kw_only=True):
    """One data set: the arguments of `wpinq.protect`, and what is served of it.

    Attributes:
        dataflow: A script; its measurements are charged when the server starts, once for each version.
        meanings: What they mean, in words, by their names.
        questions: Whether analysts may ask questions of their own.
        bounds: Bounds of columns, for sums and ranks in SQL.
        processes: In how many processes answers are computed, which changes none.
        index: Whether records by person are kept in a file beside the ledger, for the next start of the server.
        version: The name of the version of its records; `{date}` in it is the day by the clock of `tz`, and so are
            `{hour}`, `{week}`, `{month}` and `{year}`. When the clock says another, the data are opened under that
            name. Data that are replaced in place need one, for other records under a name that was charged are not
            opened.
    """

    ledger: str
    budget: Number | None = None
    delta: Number | None = None
    rho: Number | None = None
    accounting: str | None = None
    where: str | None = None
    derive: dict[str, str] = msgspec.field(default_factory=dict)
    version: str | None = None
    dataflow: str | None = None
    meanings: dict[str, str] = msgspec.field(default_factory=dict)
    questions: bool = True
    bounds: dict[str, tuple[Number, Number]] = msgspec.field(default_factory=dict)
    processes: Annotated[int, msgspec.Meta(ge=1, le=256)] = 1
    index: bool = False


class Fitted(Table, frozen=True):
    """A degree distribution that is fitted to two measurements of one data set."""

    data: str
    cdf: str
    sequence: str
    meaning: str = ""


class Published(Table, frozen=True):
    """A release file, whose published periods are served to the analysts of one data set."""

    file: str
    data: str


class Config(Table, frozen=True):
    """A whole file.

    Attributes:
        home: The directory that relative paths start from.
    """

    data: dict[str, Protected]
    server: Server = Server()
    limits: Limits = Limits()
    public: dict[str, str] = {}
    fit: dict[str, Fitted] = {}
    release: dict[str, Published] = {}
    home: str = "."


def read(path: Path) -> Config:
    """Read the file of a server.

    Raises:
        SourceError: It cannot be read.
        PlanError: It is no TOML, or says what cannot be.
    """
    try:
        table = tomllib.loads(text_of(path))
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{path}: no TOML: {error}.") from None
    refuse_nul(table, str(path))
    if "home" in table:
        raise PlanError(f"{path}: home is the directory of the file itself; leave it out.")
    try:
        config = msgspec.convert({**table, "home": str(path.parent)}, Config)
    except msgspec.ValidationError as error:
        raise PlanError(f"{path}: {plain(str(error)).removesuffix('.')}.") from None
    _check(config, str(path))
    return config


def _check(config: Config, call: str) -> None:
    """Refuse what the types alone do not."""
    for name in (*config.data, *config.public, *config.fit, *config.release):
        if not NAME.fullmatch(name):
            raise PlanError(f"{call}: the name {name[:80]!r} stands in addresses: write letters, digits, - and _.")
    if not config.data:
        raise PlanError(f"{call}: there is nothing to serve; write [data.NAME].")
    if twice := set(config.data) & set(config.public):
        raise PlanError(f"{call}: {min(twice)!r} names a data set and a public table; give each its own.")
    for what, table in (("fit", config.fit), ("release", config.release)):
        for name, entry in table.items():
            if entry.data not in config.data:
                raise PlanError(f"{call}: {what}.{name}: no data set {entry.data!r}.")
    for name, data in config.data.items():
        if data.budget is not None:
            positive(data.budget, f"{call}: data.{name}.budget")
    _check_address(config.server, call)


def _check_address(server: Server, call: str) -> None:
    """Tokens go over a network only where it is encrypted."""
    if (server.certificate is None) is not (server.key is None):
        raise PlanError(f"{call}: server.certificate and server.key go together.")
    if not 0 <= server.port < 65_536:
        raise PlanError(f"{call}: server.port: {server.port} is no port.")
    if not (loopback(server.host) or server.certificate or server.proxy):
        raise PlanError(
            f"{call}: server.host {server.host!r} is reached from other machines, and tokens would go there in clear "
            "text; give certificate and key, or proxy = true where a proxy in front does TLS."
        )


def loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

    >>> loopback("127.0.0.1"), loopback("::1"), loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
