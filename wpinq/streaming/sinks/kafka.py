"""A topic of Kafka."""

from __future__ import annotations

from typing import Any

from wpinq.errors import SourceError, needs
from wpinq.html.written import json_text
from wpinq.streaming.sinks.sink import Release
from wpinq.streaming.topic import from_url

TIMEOUT = 10.0
"""Seconds in which the broker must acknowledge an epoch."""


class KafkaTopic:
    """Sends a message for each answer, with the key of the answer as its key: a compacted topic holds each once.

    Args:
        url: `kafka://host:port,host:port/topic`, with settings of librdkafka after a question mark.
    """

    def __init__(self, url: str) -> None:
        topic = from_url(url)
        needs("kafka", "--to kafka://...")
        from confluent_kafka import Producer

        self.name, self._topic = f"kafka topic {topic.topic!r}", topic.topic
        self._config = {
            "bootstrap.servers": ",".join(topic.brokers),
            "acks": "all",
            "enable.idempotence": True,
            "log_level": 2,
            **dict(topic.config),
        }
        self._make: Any = Producer
        self._producer: Any = None

    def deliver(self, release: Release) -> None:
        """See `Sink.deliver`.

        Raises:
            SourceError: The broker has not acknowledged all messages.
        """
        from confluent_kafka import KafkaException

        missing = len(release.rows)

        def told(error: object, _: object) -> None:
            nonlocal missing
            missing -= error is None

        try:
            if self._producer is None:
                self._producer = self._make(self._config)
            for row in release.rows:
                value = json_text(row).encode()
                self._producer.produce(self._topic, value, key=row["key"], on_delivery=told)
                self._producer.poll(0)
            self._producer.flush(TIMEOUT)
        except (KafkaException, BufferError, ValueError):
            missing = missing or 1
        if missing:
            self.close()
            raise SourceError(f"{self.name}: the broker does not acknowledge what is sent; is it there?")

    def close(self) -> None:
        """Leave the broker, without what it has not acknowledged."""
        if self._producer is not None:
            self._producer.purge()
            self._producer.flush(0)
        self._producer = None
