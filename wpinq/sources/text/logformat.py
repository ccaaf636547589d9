"""Formats of logs: the strings by which nginx and Apache are told what to write, compiled to one regular expression.

    nginx   $remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent
    Apache  %h %l %u %t "%r" %>s %b

What stands between two variables separates them, the same for every line, so a line is read by itself. Names of columns
are those of the combined format where they mean the same, and those of the variables otherwise.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from wpinq.core.records.schema import Kind
from wpinq.errors import SourceError

QUOTED = r'(?:[^"\\]|\\.)*'
APACHE = {
    "common": '%h %l %u %t "%r" %>s %b',
    "combined": '%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"',
    "vhost_combined": '%v:%p %h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i"',
}
"""Formats that have a name."""
CLOCKS = {"clf": "[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}(?::[0-9]{2}){3} [+-][0-9]{4}", "iso": r"\S+", "epoch": r"[0-9.]+"}
"""How a time may be written: as 10/Oct/2000:13:55:36 -0700, as 2000-10-10T13:55:36-07:00, or in seconds since 1970."""
UNITS = {"sec": 1, "msec": 1000, "usec": 1000000}
_DIRECTIVE = re.compile(r"%(?:%|[!0-9,]*[<>]?(?:\{([^}]*)\})?(\^?[a-zA-Z]))")
_VARIABLE = re.compile(r"\$(?:\{([a-z_][a-z0-9_]*)\}|([a-z_][a-z0-9_]*))")
_LISTS = re.compile(r"upstream_|http_x_forwarded_for$|proxy_add_")
_INT, _FLOAT, _TEXT = Kind.INT, Kind.FLOAT, Kind.TEXT
NGINX: dict[str, tuple[str, Kind]] = {
    "remote_addr": ("host", _TEXT), "remote_user": ("user", _TEXT), "request_method": ("method", _TEXT),
    "request_uri": ("page", _TEXT), "uri": ("page", _TEXT), "server_protocol": ("protocol", _TEXT),
    "status": ("status", _INT), "body_bytes_sent": ("size", _INT), "bytes_sent": ("size", _INT),
    "http_referer": ("referrer", _TEXT), "http_user_agent": ("agent", _TEXT), "host": ("server", _TEXT),
    "server_name": ("server", _TEXT), "server_port": ("port", _INT), "request_time": ("request_time", _FLOAT),
    "request_length": ("request_length", _INT), "connection": ("connection", _INT),
}  # fmt: skip
LETTERS: dict[str, tuple[str, Kind, str]] = {
    "h": ("host", _TEXT, "remote_host"), "a": ("host", _TEXT, "remote_addr"), "l": ("identity", _TEXT, "logname"),
    "u": ("user", _TEXT, "remote_user"), "s": ("status", _INT, "status"), "b": ("size", _INT, "bytes"),
    "B": ("size", _INT, "bytes"), "O": ("size", _INT, "bytes_sent"), "I": ("bytes_received", _INT, "bytes_received"),
    "v": ("server", _TEXT, "server_name"), "V": ("server", _TEXT, "server_name"), "p": ("port", _INT, "server_port"),
    "m": ("method", _TEXT, "request_method"), "U": ("page", _TEXT, "url_path"), "H": ("protocol", _TEXT, "protocol"),
    "q": ("query", _TEXT, "query"), "D": ("microseconds", _INT, "microseconds"), "T": ("seconds", _FLOAT, "seconds"),
    "f": ("file", _TEXT, "file"), "k": ("keepalives", _INT, "keepalives"), "P": ("process", _INT, "process"),
    "A": ("server_addr", _TEXT, "server_addr"), "X": ("connection", _TEXT, "connection"), "L": ("log_id", _TEXT, "id"),
    "R": ("handler", _TEXT, "handler"),
}  # fmt: skip
HEADERS = {"referer": "referrer", "user_agent": "agent", "host": "server"}


@dataclass(frozen=True, slots=True)
class LogFormat:
    """What a line of a log is made of.

    Attributes:
        pattern: A regular expression of a whole line, with a group for each variable.
        kinds: The columns of the records, in the order of the line.
        clocks: How times are written, by column.
        scale: What a number of a time counts, in parts of a second, by column.
        paths: Of a log whose lines are objects of JSON where each column is; there is no pattern then.
        only: Of such a log a path, and a pattern of what is there in an object that is a record.
        comments: What a line begins with that is none, and that nobody needs to be told of.
    """

    pattern: str
    kinds: Mapping[str, Kind]
    clocks: Mapping[str, str]
    scale: Mapping[str, int]
    paths: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, str] = ("$", "")
    comments: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        """All that says which records a line gives, for fingerprints."""
        return (
            self.pattern,
            *(f"{name} {path}" for name, path in self.paths.items()),
            *(self.only if self.paths else ()),
        )


@dataclass(frozen=True, slots=True)
class _Variable:
    """A variable: the name of its column, or its own where that is taken, its kind, and how a time is written."""

    written: str
    name: str
    kind: Kind
    other: str
    clock: str = ""
    scale: int = 1


def compiled(text: str, others: Mapping[str, LogFormat] | None = None) -> LogFormat:
    """The format that a name or a string of nginx or Apache stands for.

    Args:
        text: It.
        others: Formats that have a name and no such string.

    Raises:
        SourceError: It is none, or its fields could not be told apart.

    >>> list(compiled('$remote_addr [$time_local] "$request" $status $request_time').kinds)
    ['host', 'time', 'method', 'page', 'protocol', 'status', 'request_time']
    """
    others = others or {}
    if text in others:
        return others[text]
    text = APACHE.get(text) or _unwrapped(text)
    parts = list(_nginx(text) if _VARIABLE.search(text) else _apache(text))
    if not any(isinstance(part, _Variable) for part in parts) or text.startswith("{"):
        raise SourceError(
            f"format={text!r}: is no format; there are {', '.join((*APACHE, *others))}, strings of nginx "
            "('$remote_addr ...') and Apache ('%h ...'), and 'json' for lines of JSON, with columns=."
        )
    taken: set[str] = {"method", "page", "protocol"} if any(_is_request(part) for part in parts) else set()
    pattern, kinds, clocks, scale = "", dict[str, Kind](), dict[str, str](), dict[str, int]()
    for index, part in enumerate(parts):
        if isinstance(part, str):
            pattern += _literal(part)
            continue
        before, after = (parts[at] if 0 <= at < len(parts) else "" for at in (index - 1, index + 1))
        if isinstance(before, _Variable) or isinstance(after, _Variable):
            raise SourceError(f"format=: nothing separates {part.written} from what stands beside it.")
        name = part.name if part.name not in taken else part.other
        if name in taken or not name[0].isalpha():
            raise SourceError(f"format=: {part.written} stands twice, or cannot name a column.")
        taken.add(name)
        pattern += f"(?P<{name}>{_field(part, str(before), str(after))})"
        kinds.update(dict.fromkeys(("method", "page", "protocol"), Kind.TEXT) if _is_request(part) else
                     {name: part.kind})  # fmt: skip
        if part.clock:
            clocks[name], scale[name] = part.clock, part.scale
    return LogFormat(rf"^{pattern}\s*$", kinds, clocks, scale)


def _unwrapped(text: str) -> str:
    """The string of a line of a configuration, `log_format main '...' '...';` or `LogFormat "..." name`."""
    text = text.strip()
    try:
        words = shlex.split(text.rstrip(";"))
    except ValueError:
        words = []
    if len(words) > 2 and words[0] == "log_format":
        return "".join(word for word in words[2:] if not word.startswith("escape="))
    if len(words) > 1 and words[0].lower() in ("logformat", "customlog"):
        return words[1 + (words[0].lower() == "customlog")].replace("\\t", "\t")
    return text.replace('\\"', '"').replace("\\t", "\t")


def _nginx(text: str) -> Iterator[str | _Variable]:
    end = 0
    for match in _VARIABLE.finditer(text):
        if match.start() > end:
            yield text[end : match.start()]
        end, name = match.end(), match[1] or match[2]
        clock = {"time_local": "clf", "time_iso8601": "iso", "msec": "epoch"}.get(name, "")
        plain_name = name.removeprefix("http_") if name.startswith("http_") and name != "http_host" else name
        if clock:
            yield _Variable(match[0], "time", Kind.INSTANT, name, clock)
        else:
            column, kind = NGINX.get(name, (plain_name, Kind.TEXT))
            yield _Variable(match[0], column, kind, name)
    if end < len(text):
        yield text[end:]


def _apache(text: str) -> Iterator[str | _Variable]:
    end, literal = 0, ""
    for match in _DIRECTIVE.finditer(text):
        literal += text[end : match.start()]
        end = match.end()
        if match[0] == "%%":
            literal += "%"
            continue
        bracket = "[" if match[2] == "t" and match[1] is None else ""
        if literal + bracket:
            yield literal + bracket
        yield _directive(match[0], match[2], match[1])
        literal = "]" if bracket else ""
    if literal + text[end:]:
        yield literal + text[end:]


def _directive(written: str, letter: str, argument: str | None) -> _Variable:
    if letter == "t" and argument is None:
        return _Variable(written, "time", Kind.INSTANT, "time_again", "clf")
    if letter == "t" and argument in UNITS:
        return _Variable(written, "time", Kind.INSTANT, f"time_{argument}", "epoch", UNITS[argument])
    if letter == "r":
        return _Variable(written, "request", Kind.TEXT, "request")
    if letter in "ioCen" and argument:
        name = re.sub(r"[^a-z0-9]+", "_", argument.lower()).strip("_")
        column = name if letter == "i" else f"{ {'o': 'sent', 'C': 'cookie', 'e': 'env', 'n': 'note'}[letter] }_{name}"
        return _Variable(written, HEADERS.get(name, column) if letter == "i" else column, Kind.TEXT, column)
    if letter not in LETTERS or (letter == "t"):
        raise SourceError(f"format=: {written} is not known; there are %{', %'.join(LETTERS)}, %r, %t and %{{Name}}i.")
    name, kind, other = LETTERS[letter]
    return _Variable(written, name, kind, other)


def _literal(text: str) -> str:
    """Text for a regular expression of Rust, which knows no escaped blanks."""
    return re.escape(text).replace("\\ ", " ").replace("\\\t", "\\t").replace("\\\n", "\\n")


def _is_request(part: str | _Variable) -> bool:
    return isinstance(part, _Variable) and part.name == "request"


def _field(part: _Variable, before: str, after: str) -> str:
    """What a variable may be, from what stands around it.

    Raises:
        SourceError: It may hold blanks, and nothing else separates it.
    """
    if (before[-1:], after[:1]) == ("[", "]"):
        return r"[^\]]*"
    if part.clock and after[:1] in ("", " "):
        return rf"{CLOCKS[part.clock]}|-"
    if before.endswith('"') and after.startswith('"'):
        return QUOTED
    if after[:1] not in ("", " "):
        return r"\S+" if after[0] == ":" else f"[^{_literal(after[0])}]*"
    if part.name in ("request", "agent", "referrer"):
        raise SourceError(f"format=: {part.written} may hold blanks and needs quotes around it.")
    if _LISTS.match(part.written.strip("${}")):
        return r"[^\s,]+(?:(?:, | : )[^\s,]+)*"
    return r"\S+" if after or before.endswith(" ") or not before else r".*?"
