"""Figures about a shared stream, as `prometheus-client` writes them: who keeps it, and when partitions were last read.

They follow from clocks and leases, never from what was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def figures(read_at: Mapping[str, int | None], *, keeps: bool) -> Iterator[Any]:
    """What a scraper is told.

    Args:
        read_at: For each partition the time in microseconds up to which it was read; None where that is not known.
        keeps: Whether this process keeps the stream.
    """
    from prometheus_client.core import GaugeMetricFamily

    yield GaugeMetricFamily("wpinq_stream_keeps", "Whether this process keeps the stream, or waits.", float(keeps))
    if read := {name: time for name, time in read_at.items() if time is not None}:
        text = "When a partition was last read to its end, in seconds since 1970."
        gauge = GaugeMetricFamily("wpinq_stream_partition_read_seconds", text, labels=["partition"])
        for name, time in read.items():
            gauge.add_metric([name], time / 10**6)
        yield gauge
