"""What an audit of wpinq itself tells: as text, JSON, and a page."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict, dataclass
from typing import NamedTuple

from wpinq.html import parts
from wpinq.testing.checks.result import Result

WIDTH = 100
LOOK = "body{margin:2em}body .wpinq table td,body .wpinq table td.n{overflow-wrap:normal;text-align:left}"
"""Beside the style sheet of all tables: these hold words."""
NOT_LOOKED_AT = (
    "continual selections, windows and epochs of streams but for counts; ledgers that are killed, shared or damaged; "
    "several processes, servers; the machine, Python, AES. Tests of the project try many of these, and "
    "docs/vulnerabilities.md says what nobody promises."
)


class Found(NamedTuple):
    """What became of a planted fault.

    Attributes:
        what: The fault.
        check: Which check must find it.
        caught: Whether it did.
        text: What it was that it saw.
    """

    what: str
    check: str
    caught: bool
    text: str


@dataclass(frozen=True)
class Report:
    """An audit.

    Attributes:
        version: Of wpinq.
        python: Its version.
        minutes: How long was asked for.
        seconds: How long it took.
        checks: What each check did, by name.
        plants: What became of each planted fault, by name.
        absent: What each check needs that is not installed, by name.
    """

    version: str
    python: str
    minutes: float
    seconds: float
    checks: dict[str, Result]
    plants: dict[str, Found]
    absent: dict[str, str]

    @property
    def wrong(self) -> list[str]:
        """Checks that something is wrong with, or that broke."""
        return [name for name, check in self.checks.items() if not check.passed]

    @property
    def missed(self) -> list[str]:
        """Plants that no check found: as long as there is one, that nothing was found says little."""
        return [name for name, plant in self.plants.items() if not plant.caught]

    def __bool__(self) -> bool:
        """Whether nothing is wrong and every planted fault was found."""
        return not self.wrong and not self.missed and bool(self.checks) and bool(self.plants)

    @property
    def verdict(self) -> str:
        """All of it in a line."""
        if self.wrong:
            return f"WRONG: {', '.join(self.wrong)}."
        if self.missed:
            return f"BLIND: planted faults were not found: {', '.join(self.missed)}. Nothing else here counts."
        return (
            f"Nothing is wrong in what {len(self.checks)} checks tried, and each of {len(self.plants)} planted faults "
            f"was found. A right wpinq is called wrong with probability {self.alarm:.0e} at the most."
        )

    @property
    def alarm(self) -> float:
        """The probability, at the most, that a right product is called wrong."""
        return sum(check.alarm for check in self.checks.values())

    @property
    def head(self) -> str:
        """What was audited, and how long."""
        return f"wpinq {self.version}, Python {self.python}, {self.seconds:.0f} s"

    def __str__(self) -> str:
        lines = [self.head, "", "Checks"]
        for name, check in self.checks.items():
            mark = "ok   " if check.passed else "BROKE" if check.broke else "WRONG"
            lines += _wrapped(f"{mark} {name}, {check.tried:,} {check.of}: {check.text}")
        lines += _wrapped(*(f"---   {name}: {text}" for name, text in self.absent.items()))
        lines += ["", "Planted faults, in copies"]
        for name, plant in self.plants.items():
            mark, first = "found " if plant.caught else "MISSED", plant.text.partition("; ")[0]
            lines += _wrapped(f"{mark} {name}: {plant.what}. By {plant.check}: {first}")
        return "\n".join([*lines, "", *_wrapped(f"Not looked at: {NOT_LOOKED_AT}"), "", *_wrapped(self.verdict)])

    def json(self) -> str:
        """All of it, for programs."""
        content = {
            "wpinq": self.version, "python": self.python, "passed": bool(self), "verdict": self.verdict,
            "minutes": self.minutes, "seconds": round(self.seconds, 1), "alarm": self.alarm,
            "checks": {name: asdict(check) for name, check in self.checks.items()},
            "plants": {name: plant._asdict() for name, plant in self.plants.items()},
            "missed": self.missed, "not_installed": self.absent, "not_looked_at": NOT_LOOKED_AT,
        }  # fmt: skip
        return json.dumps(content, indent=1) + "\n"

    def page(self) -> str:
        """All of it as a page that needs no network."""
        checks = [["ok" if c.passed else "WRONG", n, f"{c.tried:,} {c.of}", c.text] for n, c in self.checks.items()]
        plants = [["found" if p.caught else "MISSED", n, p.what, p.check, p.text] for n, p in self.plants.items()]
        return parts.page("An audit of wpinq", LOOK, parts.framed(
            f"An audit of wpinq: {self.verdict}", parts.text(self.head),
            parts.table(["", "check", "tried", "what was looked at, or is wrong"], checks),
            *(parts.text(f"Not carried out, {name}: {text}") for name, text in self.absent.items()),
            parts.table(["", "planted fault", "what it is", "found by", "what it saw"], plants),
            parts.text(f"Not looked at: {NOT_LOOKED_AT}"),
        ))  # fmt: skip


def _wrapped(*paragraphs: str) -> list[str]:
    return [
        line
        for paragraph in paragraphs
        for line in textwrap.wrap(paragraph, WIDTH, subsequent_indent="      ", break_on_hyphens=False)
    ]
