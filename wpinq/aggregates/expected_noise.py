"""The noise that is to be expected in an answer, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wpinq.aggregates.moments import Moments
from wpinq.core.measurements.answer import LEVEL
from wpinq.core.plan.node import Node
from wpinq.core.pricing.quote import Quote

CHOOSING = "exponential"
"""What chooses a rank, as a mechanism is named that adds noise to a count."""


@dataclass(frozen=True)
class ExpectedNoise:
    """What noise is to be expected in one column of an answer, from public facts only.

    Of a sum scale and width are in the unit of its numbers. How far noise moves a mean, a spread or a rank depends on
    the answer, so that there is no width: the scale is that of what is measured for it.

    Attributes:
        column: What is counted or summed.
        mechanism: What adds noise.
        scale: Its scale; of Gaussian noise the standard deviation. None where it follows from a bound that is chosen.
        half_width: Half the width of the interval around one answer that holds it with probability 95%, for the noise;
            None where it depends on the answer.
    """

    column: str
    mechanism: str
    scale: float | None
    half_width: float | None


def numbers_unit(node: Node) -> float:
    """What a weight of 1 stands for in an answer: of a sum its largest number, else 1."""
    unit = node.unit if isinstance(node, Moments) else None
    return 1.0 if unit is None else unit


def expected_noise(quote: Quote[Any], column: str | None = None) -> ExpectedNoise:
    """The noise of what was quoted, before anything is spent; without a name it is called by its last step."""
    unit, half = numbers_unit(quote.node), getattr(quote.query, "interval", None)
    depends = isinstance(quote.node, Moments) and quote.node.unit is None
    width = None if half is None or depends else unit * float(half(LEVEL))
    mechanism = getattr(quote.mechanism, "name", CHOOSING)
    return ExpectedNoise(column or quote.node.title, mechanism, unit * float(quote.scale), width)
