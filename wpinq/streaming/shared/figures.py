"""Figures about a shared stream, as `prometheus-client` writes them: who keeps it, and when partitions were last read.

They follow from clocks and leases, never from what was read.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from typing import Any


def figures(read_at: Mapping[str, int | None], keeper: str | None) -> Iterator[Any]:
    """What a scraper is told.

    Args:
        read_at: For each partition the time in microseconds up to which it was read; None where that is not known.
        keeper: The name of the host of another process that keeps the stream; None where this one does.
    """
    from prometheus_client.core import GaugeMetricFamily

    text = "Whether this process keeps the stream, or waits for the one on a host."
    keeps = GaugeMetricFamily("wpinq_stream_keeps", text, labels=["keeper"])
    keeps.add_metric([socket.gethostname() if keeper is None else keeper], float(keeper is None))
    yield keeps
    if read := {name: time for name, time in read_at.items() if time is not None}:
        text = "When a partition was last read to its end, in seconds since 1970."
        gauge = GaugeMetricFamily("wpinq_stream_partition_read_seconds", text, labels=["partition"])
        for name, time in read.items():
            gauge.add_metric([name], time / 10**6)
        yield gauge
