"""Figures about a release for whoever runs it, as OpenMetrics: none of them depends on records.

Stages of periods, the time since the last one was published and until the next one is over, what is left of the budget
and what was refused for want of it, by a check of released numbers or since another process was at work, follow from
the release file, the clock, and numbers that were released. How many records came, how long a run took, or that a
source could not be read or was changed, does not; nothing of it is told. `prometheus-client` writes the format.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wpinq.apps.publish.publisher import HeldError
from wpinq.core import instant_of
from wpinq.errors import BudgetError, BusyError, SourceError, WpinqError, needs
from wpinq.streaming.shared.figures import figures

if TYPE_CHECKING:
    from wpinq.apps.publish.release import Release
    from wpinq.apps.publish.streams.hosts import Host

STAGES = ("published", "held", "computed", "begun", "refused", "missing")
REFUSALS = {BudgetError: "budget", HeldError: "held", BusyError: "busy"}
"""What may be counted, since no record moves it."""


@dataclass(frozen=True)
class Standings:
    """How a release stands at one moment.

    Attributes:
        release: Its name.
        stages: How many periods are in each stage.
        until: The end of the last published period, as seconds since 1970; None before there is one.
        over: When the period that goes on now can be published.
        unit: What the budget is of: "epsilon" or "rho".
        budget: The budget now, in all.
        left: What is left of it.
        at: When this was found out.
    """

    release: str
    stages: Counter[str] = field(default_factory=Counter)
    until: float | None = None
    over: float = 0.0
    unit: str = "epsilon"
    budget: float = 0.0
    left: float = 0.0
    at: float = 0.0


def standings(release: Release) -> Standings:
    """How a release stands; nothing is read but its ledger and its register."""
    all_periods, funds = release.status(), release.funds()
    done = [record.period for record in all_periods if record.stage == "published"]
    zone = release.file.period.zone
    until = instant_of(release.period(done[-1]).end, zone, last=True).timestamp() if done else None
    late = 0.0 if release.file.stream is None else release.file.stream.lateness
    over = instant_of(release.period().next.end, zone, last=True).timestamp() + late
    stages = Counter(record.stage for record in all_periods)
    return Standings(release.name, stages, until, over, funds.unit, float(funds.total), float(funds.left), _now())


class Figures:
    """The last standings, for a scraper that may ask at any time, or for a file.

    Attributes:
        host: What this host does for a release that several follow; None where one process follows it alone.

    Raises:
        ExtraError: `prometheus-client` is not installed.
    """

    def __init__(self) -> None:
        needs("metrics", "--metrics")
        from prometheus_client import CollectorRegistry

        self._last: Standings | None = None
        self.host: Host | None = None
        self._refused, self._began = dict.fromkeys(REFUSALS.values(), 0), _now()
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def tell(self, release: Release) -> None:
        """Find out how a release stands now."""
        self._last = standings(release)

    def refused(self, error: WpinqError) -> None:
        """Count a refusal, if it may be counted."""
        for kind, why in REFUSALS.items():
            self._refused[why] += isinstance(error, kind)

    def collect(self) -> Iterator[Any]:
        """What prometheus-client asks for."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        if self.host is not None:
            yield from figures(self.host.read_at, self.host.keeper)
        last = self._last
        if last is None:
            return
        periods = GaugeMetricFamily("wpinq_publish_periods", "Periods in each stage.", labels=["release", "stage"])
        for stage in STAGES:
            periods.add_metric([last.release, stage], last.stages[stage])
        yield periods
        refusals = CounterMetricFamily("wpinq_publish_refusals", "Periods that this process refused or held.",
                                       labels=["release", "why"])  # fmt: skip
        for why, count in self._refused.items():
            refusals.add_metric([last.release, why], count)
        yield refusals
        numbers = [
            ("up_seconds", "Seconds since this process began.", _now() - self._began),
            ("looked_seconds", "Seconds since the release was looked at.", _now() - last.at),
            ("next_seconds", "Seconds until the period that goes on can be published.", last.over - _now()),
            ("budget", f"The budget in all, as {last.unit}.", last.budget),
            ("budget_left", f"What is left of the budget, as {last.unit}.", last.left),
        ]
        if last.until is not None:
            numbers.append(("lag_seconds", "Seconds since the end of the last published period.", _now() - last.until))
        for name, text, number in numbers:
            gauge = GaugeMetricFamily(f"wpinq_publish_{name}", text, labels=["release"])
            gauge.add_metric([last.release], number)
            yield gauge

    def write(self, path: Path) -> None:
        """Write them to a file, whole or not at all, for the textfile collector of a node exporter.

        Raises:
            SourceError: It cannot be written.
        """
        from prometheus_client import write_to_textfile

        try:
            write_to_textfile(str(path), self.registry)
        except OSError as error:
            raise SourceError(f"--metrics-file {path}: cannot be written: {error.strerror}.") from None


def _now() -> float:
    return dt.datetime.now(dt.UTC).timestamp()
