"""Logs of Caddy, CloudFront and Traefik, by their names. Their columns have the names of the combined format.

Source: caddyserver.com/docs/logging (an object of JSON for each request); Standard logging reference, Amazon CloudFront
Developer Guide (fields between tabs, of which old logs have the first twelve alone); doc.traefik.io, Access Logs (the
common format with four fields more, or JSON). Texts stay as the server wrote them, so those of CloudFront keep `%20`.
"""

from __future__ import annotations

from wpinq.core.records.schema import Kind
from wpinq.sources.text.logformat import QUOTED, LogFormat, compiled

_INT, _FLOAT, _TEXT, _INSTANT = Kind.INT, Kind.FLOAT, Kind.TEXT, Kind.INSTANT
CADDY = {
    "host": ('$["request"]["remote_ip"]', _TEXT), "client": ('$["request"]["client_ip"]', _TEXT),
    "user": ('$["user_id"]', _TEXT), "time": ('$["ts"]', _INSTANT), "method": ('$["request"]["method"]', _TEXT),
    "page": ('$["request"]["uri"]', _TEXT), "protocol": ('$["request"]["proto"]', _TEXT),
    "status": ('$["status"]', _INT), "size": ('$["size"]', _INT),
    "referrer": ('$["request"]["headers"]["Referer"][0]', _TEXT),
    "agent": ('$["request"]["headers"]["User-Agent"][0]', _TEXT), "server": ('$["request"]["host"]', _TEXT),
    "seconds": ('$["duration"]', _FLOAT), "bytes_received": ('$["bytes_read"]', _INT),
}  # fmt: skip
TRAEFIK = {
    "host": ('$["ClientHost"]', _TEXT), "user": ('$["ClientUsername"]', _TEXT), "time": ('$["StartUTC"]', _INSTANT),
    "method": ('$["RequestMethod"]', _TEXT), "page": ('$["RequestPath"]', _TEXT),
    "protocol": ('$["RequestProtocol"]', _TEXT), "status": ('$["DownstreamStatus"]', _INT),
    "size": ('$["DownstreamContentSize"]', _INT), "referrer": ('$["request_Referer"]', _TEXT),
    "agent": ('$["request_User-Agent"]', _TEXT), "server": ('$["RequestHost"]', _TEXT),
    "router": ('$["RouterName"]', _TEXT), "nanoseconds": ('$["Duration"]', _INT),
}  # fmt: skip
CLOUDFRONT = {
    "edge": _TEXT, "size": _INT, "host": _TEXT, "method": _TEXT, "distribution": _TEXT, "page": _TEXT, "status": _INT,
    "referrer": _TEXT, "agent": _TEXT, "query": _TEXT, "cookie": _TEXT, "result": _TEXT, "request_id": _TEXT,
    "server": _TEXT, "scheme": _TEXT, "bytes_received": _INT, "seconds": _FLOAT, "forwarded_for": _TEXT,
    "tls": _TEXT, "cipher": _TEXT, "response_result": _TEXT, "protocol": _TEXT,
}  # fmt: skip
FIRST = 10
"""Fields after the time that a line of CloudFront has at the least."""


def named(name: str) -> LogFormat:
    """The format of a name or a string.

    Raises:
        SourceError: It is none.

    >>> list(named("traefik").kinds)[-4:]
    ['requests', 'router', 'service', 'milliseconds']
    """
    return compiled(name, FORMATS)


def _objects(columns: dict[str, tuple[str, Kind]], clock: str, only: tuple[str, str]) -> LogFormat:
    kinds = {name: kind for name, (_, kind) in columns.items()}
    paths = {name: path for name, (path, _) in columns.items()}
    return LogFormat("", kinds, {"time": clock}, {"time": 1}, paths, only)


def _cloudfront() -> LogFormat:
    fields = [f"\\t(?P<{name}>[^\\t]*)" for name in CLOUDFRONT]
    rest = ""
    for field in reversed(fields[FIRST:]):
        rest = f"(?:{field}{rest})?"
    pattern = r"^(?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2}\t[0-9]{2}:[0-9]{2}:[0-9]{2})" + "".join(fields[:FIRST]) + rest
    return LogFormat(
        rf"{pattern}(?:\t[^\t]*)*\s*$", {"time": _INSTANT, **CLOUDFRONT}, {"time": "tab"}, {"time": 1}, comments="#"
    )


def _traefik() -> LogFormat:
    pattern = (
        r'^(?P<host>\S+) - (?P<user>\S+) \[(?P<time>[^\]]*)\] "'
        rf'(?P<request>{QUOTED})" (?P<status>[0-9]{{3}}|-) (?P<size>[0-9]+|-) "(?P<referrer>{QUOTED})" '
        rf'"(?P<agent>{QUOTED})" (?P<requests>[0-9]+) "(?P<router>{QUOTED})" "(?P<service>{QUOTED})" '
        r"(?P<milliseconds>[0-9]+)ms\s*$"
    )
    kinds = {
        "host": _TEXT, "user": _TEXT, "time": _INSTANT, "method": _TEXT, "page": _TEXT, "protocol": _TEXT,
        "status": _INT, "size": _INT, "referrer": _TEXT, "agent": _TEXT, "requests": _INT, "router": _TEXT,
        "service": _TEXT, "milliseconds": _INT,
    }  # fmt: skip
    return LogFormat(pattern, kinds, {"time": "clf"}, {"time": 1})


FORMATS = {
    "caddy": _objects(CADDY, "either", ('$["logger"]', r"^http\.log\.access")),
    "cloudfront": _cloudfront(),
    "traefik": _traefik(),
    "traefik_json": _objects(TRAEFIK, "iso", ('$["RequestMethod"]', ".")),
}
"""By their names. Caddy writes what it does itself into the same file: of its lines those of requests are records."""
