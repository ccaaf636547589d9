"""Topics of Kafka as they are named: the brokers, what a message holds, and which columns it can fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from wpinq.arguments import MAPPING, NAME, NAMES, NOTHING, takes
from wpinq.core.records.schema import Kind, Schema
from wpinq.errors import SourceError

if TYPE_CHECKING:
    from wpinq.sources.text.logformat import LogFormat


@dataclass(frozen=True)
class Topic:
    """A topic of Kafka, for `Live.follow`; see `kafka`."""

    brokers: tuple[str, ...]
    topic: str
    form: str
    arrived: str | None
    config: tuple[tuple[str, str], ...]


@takes(brokers=NAMES, topic=NAME, form=NAME, arrived=NAME | NOTHING, config=MAPPING | NOTHING)
def kafka(
    brokers: str | Sequence[str],
    topic: str,
    *,
    form: str = "json",
    arrived: str | None = None,
    config: Mapping[str, str] | None = None,
) -> Topic:
    """Name a topic of Kafka, to be followed by a live source: `views.follow(wpinq.kafka("broker:9092", "views"))`.

    Args:
        brokers: host:port of one or more brokers.
        topic: The topic, all partitions of it, from the first message that the broker holds.
        form: What a message holds: "json" (an object, whose values are read as fields of a CSV file are), "csv" or
            "tsv" (the columns of the source in their order, all of them), or "log" (a line of a web log in the common
            or combined format), or the name or string of another format of a log, as `protect(format=)` takes it.
        arrived: A column of the source, of the type "timestamp with time zone", that is filled with the time at which
            the broker got the message; null unless the topic has `message.timestamp.type=LogAppendTime`.
        config: Further settings of librdkafka, such as `security.protocol`.

    Raises:
        SourceError: There is no such form, or no broker.

    >>> from wpinq import kafka
    >>> kafka("localhost:9092", "views", form="csv").brokers
    ('localhost:9092',)
    """
    named = tuple(brokers.split(",") if isinstance(brokers, str) else brokers)
    if form not in ("json", "csv", "tsv", "log"):
        try:
            log_of(form)
        except SourceError as error:
            raise SourceError(f"kafka(form=...): there are json, csv, tsv, log, and formats of logs: {error}") from None
    if not topic or not all(named):
        raise SourceError("kafka(...): name a broker, as host:port, and a topic.")
    return Topic(named, topic, form, arrived, tuple((config or {}).items()))


def from_url(url: str) -> Topic:
    """The topic of `kafka://host:port,host:port/topic?form=csv&security.protocol=SSL`.

    Raises:
        SourceError: It names none.
    """
    parts = urlsplit(url)
    words = dict(parse_qsl(parts.query))
    form, arrived = words.pop("form", "json"), words.pop("arrived", None)
    if wrong := [word for word in words if "." not in word]:
        raise SourceError(f"kafka://: no setting {wrong[0]!r}; there are form, arrived, and those of librdkafka.")
    return kafka(parts.netloc, unquote(parts.path.strip("/")), form=form, arrived=arrived, config=words)


def check_columns(topic: Topic, schema: Schema) -> Schema:
    """The columns that are read from messages, of those that are wanted.

    Raises:
        SourceError: There is one that no message can fill.
    """
    from wpinq.sources.text.json import check_keys

    fields = Schema(tuple(column for column in schema if column.name != topic.arrived))
    where = f"kafka topic {topic.topic!r}"
    if any(column.kind is Kind.ANY for column in schema):
        raise SourceError(f"{where}: columns of messages need types; write columns={{'user': 'text', ...}}.")
    if topic.arrived is not None and (topic.arrived not in schema or schema[topic.arrived].kind is not Kind.INSTANT):
        raise SourceError(f"{where}: arrived={topic.arrived!r} is no column of the type 'timestamp with time zone'.")
    if not len(fields):
        raise SourceError(f"{where}: there is no column beside the time of arrival.")
    if topic.form == "json":
        check_keys(fields, where)
    log = log_of(topic.form)
    if log is not None and any(log.kinds.get(column.name) is not column.kind for column in fields):
        raise SourceError(
            f"{where}: the columns of these logs are {', '.join(log.kinds)}, with the types that they have."
        )
    return fields


def log_of(form: str) -> LogFormat | None:
    """What a line of a log is made of; None where messages are of another form.

    Raises:
        SourceError: There is no such form.
    """
    from wpinq.sources.text.servers import named
    from wpinq.sources.text.weblog import EITHER

    if form in ("json", "csv", "tsv"):
        return None
    return EITHER if form == "log" else named(form)
