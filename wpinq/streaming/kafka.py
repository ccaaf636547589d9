"""Topics of Kafka, read by one consumer of all their partitions.

A message holds one record: a JSON object, a line of comma- or tab-separated fields, or a line of a web log. What cannot
be read as one is dropped, by itself and uncounted, and what is not of its column's type is null, as in files.

Windows of a topic are closed by the clock, like those of any live source. They can be cut by the time at which the
broker got a message, in a column of its own (`arrived`), never by the times of the messages that were read last: one
message more or less must not move a window (privacy rule 13). A time that the producer set is not the broker's, and
is null.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import polars as pl

from wpinq.core.records.schema import Schema
from wpinq.errors import SourceError, needs
from wpinq.streaming.messages import read_as
from wpinq.streaming.topic import Topic, check_columns

MESSAGES_PER_CALL = 10_000
"""Messages that are asked of the client at a time."""
BROKER_TIMEOUT = 10.0
"""Seconds in which a broker must answer."""
POLL = 0.05
"""Seconds that the client collects messages before it hands them over."""
QUIET = 1.0
"""Seconds that a look waits for messages that partitions seem to hold, once the broker has sent any to this process.
Where `BROKER_TIMEOUT` of them went by, or that much at first, they are those of a transaction that is still open."""
CONFIG = {
    "group.id": "wpinq",  # of no group: what was read is known here alone
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": "100",
    "queued.max.messages.kbytes": "16384",
    "log_level": "2",
}
LOG_APPEND = 2


class Followed:
    """Reads the messages of a topic that have come since the last look.

    Args:
        topic: The topic.
        schema: The columns that are wanted, each with a type.
        positions: The offset of the next message of each partition, as `positions` told it.

    Attributes:
        offered: How many messages were read; for the curator alone.
    """

    def __init__(self, topic: Topic, schema: Schema, positions: Mapping[str, int] | None = None) -> None:
        self._topic, self._schema, self._read = topic, schema, read_as(topic.form)
        self._fields = check_columns(topic, schema)
        self._offsets = dict(positions or {})
        self._consumer, self._watch = _connect(topic), _connect(topic)  # one that reads makes its other questions wait
        self._partitions: dict[int, str] = {}
        self._only: frozenset[str] | None = None
        self._silent: dict[str, tuple[int, float]] = {}
        self._heard = False
        self.offered = 0

    def partitions(self) -> list[str]:
        """The partitions that the topic has by now.

        Raises:
            SourceError: The broker does not answer, or holds no such topic.
        """
        with _said(self._topic):
            return [self._name(number) for number in _partitions(self._topic, self._watch)]

    def assign(self, positions: Mapping[str, int | None]) -> None:
        """Read these partitions alone from now on, each from an offset on; None is its first message."""
        self._only = frozenset(positions)
        self._offsets = {name: offset for name, offset in positions.items() if offset is not None}
        self._partitions, self._silent = {}, {}

    def positions(self) -> dict[str, int]:
        """The offset of the next message of each partition."""
        return dict(self._offsets)

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()
        self._watch.close()

    def take(self) -> Iterator[pl.DataFrame]:
        """Frames of the records of all messages that the broker has by now.

        Raises:
            SourceError: The broker does not answer, or holds no such topic, or no longer the next message.
        """
        from confluent_kafka import KafkaError, KafkaException

        with _said(self._topic):
            ends = self._ends()
            patience, latest = QUIET if self._heard else BROKER_TIMEOUT, time.monotonic()
            while ends:
                events = self._consumer.consume(MESSAGES_PER_CALL, POLL)
                messages = [event for event in events if event.error() is None]
                if messages:
                    yield from self._frames(messages)
                for event in events:  # after what they sent was taken; no more is awaited of those at their end
                    if (error := event.error()) is not None and error.code() != KafkaError._PARTITION_EOF:
                        raise KafkaException(error)
                    name = self._partitions[event.partition()]
                    self._offsets[name] = event.offset() + (error is None)
                    if self._offsets[name] >= ends.get(name, 0):
                        ends.pop(name, None)
                if events:
                    self._heard, patience, latest = True, QUIET, time.monotonic()
                elif time.monotonic() - latest > patience:
                    break
            for name, end in ends.items():
                before, silence = self._silent.get(name, (end, 0.0))
                self._silent[name] = end, patience + (silence if before == end else 0.0)

    def _ends(self) -> dict[str, int]:
        """The partitions that hold messages which were not read, each with the offset up to which there are some."""
        from confluent_kafka import TopicPartition

        known = {number: self._name(number) for number in _partitions(self._topic, self._watch)}
        listed = {number: name for number, name in known.items() if self._only is None or name in self._only}
        ends = {}
        for number, name in listed.items():
            partition = TopicPartition(self._topic.topic, number)
            low, high = self._watch.get_watermark_offsets(partition, timeout=BROKER_TIMEOUT)
            if not low <= self._offsets.setdefault(name, low) <= high:
                raise SourceError(
                    f"kafka topic {self._topic.topic!r}: the next message is held no more, or the topic was made anew; "
                    "what is missing cannot be counted, so begin anew."
                )
            end, silence = self._silent.get(name, (high, 0.0))
            if self._offsets[name] < high and not (end == high and silence >= BROKER_TIMEOUT):
                ends[name] = high
        if listed != self._partitions:
            self._consumer.assign(
                [TopicPartition(self._topic.topic, number, self._offsets[name]) for number, name in listed.items()]
            )
            self._partitions = listed
        return ends

    def _name(self, partition: int) -> str:
        return f"{partition}-{self._topic.topic}"

    def _frames(self, messages: list[Any]) -> Iterator[pl.DataFrame]:
        import pyarrow as pa

        self.offered += len(messages)
        values = pa.array([message.value() for message in messages], pa.large_binary())
        times = None
        if self._topic.arrived is not None:
            stamps = (message.timestamp() for message in messages)
            millis = [millisecond if kind == LOG_APPEND else None for kind, millisecond in stamps]
            stamped = pl.Series(self._topic.arrived, millis, pl.Int64)
            times = stamped.cast(pl.Datetime("ms", "UTC")).dt.cast_time_unit("us")
        frame = self._read(values, times, self._fields)
        if frame.height:
            yield frame.select(self._schema.names)


def reach(topic: Topic) -> None:
    """Make sure that the broker answers and holds the topic.

    Raises:
        SourceError: It does not.
    """
    consumer = _connect(topic)
    with _said(topic), closing(consumer):
        _partitions(topic, consumer)


def _partitions(topic: Topic, consumer: Any) -> list[int]:
    """The numbers of the partitions that there are by now."""
    result = consumer.list_topics(topic.topic, timeout=BROKER_TIMEOUT).topics[topic.topic]
    if result.error is not None:
        raise KeyError
    return sorted(result.partitions)


def _connect(topic: Topic) -> Any:
    """A consumer that reads what it is assigned to, and belongs to no group."""
    needs("kafka", "kafka(...)")
    from confluent_kafka import Consumer

    with _said(topic):
        return Consumer({"bootstrap.servers": ",".join(topic.brokers), **CONFIG, **dict(topic.config)})


@contextmanager
def _said(topic: Topic) -> Iterator[None]:
    """Turn errors into messages that name the topic and the reason, and quote no message of the topic."""
    from confluent_kafka import KafkaException

    try:
        yield
    except (KafkaException, RuntimeError, KeyError) as error:
        reason = error.args[0].str() if isinstance(error, KafkaException) else "it cannot be read on"
        raise SourceError(
            f"kafka topic {topic.topic!r} at {', '.join(topic.brokers)}: {reason}; is it there, and does it still hold "
            "what comes next?"
        ) from None
