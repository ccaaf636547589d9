"""Bias: what bounds, clamping and weights keep out of an answer, in words. It is no noise, and no interval holds it."""

from __future__ import annotations

from typing import Protocol, cast

from wpinq.plan.node import Node, steps


class Biased(Protocol):
    """A step whose output need not add up to what people count."""

    @property
    def bias(self) -> str:
        """What is not in its output, or weighs otherwise, as a clause for people; empty where there is nothing."""


def biases(root: Node) -> tuple[str, ...]:
    """What the steps of a plan keep out of its answers, each once."""
    found = [cast(Biased, node).bias for node in steps(root) if hasattr(type(node), "bias")]
    return tuple(dict.fromkeys(one for one in found if one))
