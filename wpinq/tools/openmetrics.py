"""What is left of budgets as OpenMetrics, for Prometheus: of no figure a record moves anything but through charges.

`prometheus-client` writes the format, as it does of the figures of `wpinq publish --metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from wpinq.core.ledger import Ledger
from wpinq.core.ledger.budget import Allowance
from wpinq.errors import needs
from wpinq.streaming.shared.figures import figures as shared

MEDIA = "application/openmetrics-text; version=1.0.0; charset=utf-8"
"""The media type of the text."""

FIGURES = {
    "budget": "What may be spent in all.",
    "left": "What one more question may cost.",
    "delta": "Delta that may be spent in all on thresholds and selections.",
    "delta_left": "Delta that is left for them.",
}
CAPS = {"cap": "What an analyst may spend in all.", "cap_left": "What is left of an analyst's cap."}


def openmetrics(ledgers: Mapping[str, Ledger]) -> str:
    """Budgets as the text that Prometheus reads.

    Args:
        ledgers: Ledgers by the names that the label `ledger` is to have; a name and a ledger stand once each.

    Raises:
        ExtraError: `prometheus-client` is not installed.
        LedgerError: A ledger cannot be trusted or read.

    >>> from fractions import Fraction
    >>> ledger = Ledger.open(None, name="views", unit="record", budget=Fraction(1))
    >>> print(openmetrics({"views": ledger}).splitlines()[2])
    wpinq_ledger_budget{kind="epsilon",ledger="views"} 1.0
    """
    needs("metrics", "openmetrics")
    from prometheus_client import CollectorRegistry
    from prometheus_client.openmetrics.exposition import generate_latest

    gauges = list(_gauges(ledgers))
    registry = CollectorRegistry()
    registry.register(_Collector(lambda: gauges))
    text: str = generate_latest(registry).decode()
    return text


class Standing(NamedTuple):
    """How a stream stands at one moment.

    Attributes:
        ledgers: Its ledger, by its name; none while it waits.
        epoch: The last epoch that was answered; None while it waits.
        read_at: For each partition that several processes read, the time in microseconds up to which it was read; None
            where that is not known. It follows from the clock, and not from what was read.
        shared: Whether several processes read it.
        keeper: The name of the host of another process that keeps it; None where this one does.
    """

    ledgers: Mapping[str, Ledger] = {}
    epoch: int | None = None
    read_at: Mapping[str, int | None] = {}
    shared: bool = False
    keeper: str | None = None


def of_stream(standing: Callable[[], Standing]) -> Any:
    """A registry of the budgets of a stream and of the number of epochs that were answered, as they are when asked.

    Args:
        standing: Gives how it stands.

    Raises:
        ExtraError: `prometheus-client` is not installed.
    """
    needs("metrics", "run --metrics")
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import GaugeMetricFamily

    def figures() -> Iterator[Any]:
        now = standing()
        if now.epoch is not None:
            yield GaugeMetricFamily("wpinq_stream_epoch", "The last epoch that was answered.", now.epoch)
        if now.shared:
            yield from shared(now.read_at, now.keeper)
        if now.ledgers:
            yield from _gauges(now.ledgers)

    registry = CollectorRegistry()
    registry.register(_Collector(figures))
    return registry


class _Collector:
    """What was found, as prometheus-client asks for it."""

    def __init__(self, gauges: Callable[[], Iterable[Any]]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterator[Any]:
        yield from self._gauges()


def _gauges(ledgers: Mapping[str, Ledger]) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily

    def family(name: str, text: str, labels: list[str]) -> Any:
        return GaugeMetricFamily(f"wpinq_ledger_{name}", text, labels=labels)

    whole = {name: family(name, text, ["ledger", "kind"]) for name, text in FIGURES.items()}
    of_analysts = {name: family(name, text, ["ledger", "kind", "analyst"]) for name, text in CAPS.items()}
    for label, ledger in ledgers.items():
        now = Allowance.of(ledger, "")[0]
        for name, gauge in whole.items():
            gauge.add_metric([_utf8(label), now.kind], float(getattr(now, name)))
        for analyst in Allowance.capped(ledger):
            allowance = Allowance.of(ledger, analyst)[0]
            for name, amount in (("cap", allowance.cap), ("cap_left", allowance.own)):
                of_analysts[name].add_metric([_utf8(label), now.kind, _utf8(analyst)], float(amount or 0))
    yield from whole.values()
    yield from of_analysts.values()


def _utf8(label: str) -> str:
    """A label that can be written; the path of a ledger may have bytes that are no UTF-8."""
    return label.encode("utf-8", "backslashreplace").decode()
